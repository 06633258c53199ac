//! Whether an admitted call may run: the rules decide, and where they say ask, a person does.
//!
//! Invariant: a call runs only with arguments that were permitted, and a denial is final.

mod advice;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_permission::{PermissionRequest, PermissionRule, Permissions, ProjectFiles, Verdict};
use haft_tool::{Intent, ReadFilter, Tool, ToolContext, Workspace};
use haft_types::{Decision, Envelope, PermissionMode};
use serde_json::Value;
use tracing::{debug, info};

use super::approval::{Approval, ApprovalReply, Approver};
use crate::budget::meter::millis;
use crate::names;
use advice::AdviceContext;

/// What decides for one session.
pub(crate) struct Permit {
    /// Shared with sub-agents: what is allowed to one from now on is allowed to all.
    permissions: Arc<Mutex<Permissions>>,
    approver: Option<Arc<dyn Approver>>,
    /// Its turn is held while a person is asked: agents that run side by side ask one after
    /// another.
    shared: Arc<DecisionState>,
    workspace: Workspace,
    /// On whose calls it decides.
    agent: String,
}

/// What all share that decide on what may run in a session, beside the rules: the mode, which
/// follows every switch, and whose turn it is to ask a person.
#[derive(Debug, Default)]
pub struct DecisionState {
    mode: Mutex<PermissionMode>,
    asking: tokio::sync::Mutex<()>,
}

impl DecisionState {
    /// One that begins with this mode.
    pub fn new(mode: PermissionMode) -> Self {
        Self {
            mode: Mutex::new(mode),
            ..Self::default()
        }
    }

    /// The mode at this moment.
    pub fn mode(&self) -> PermissionMode {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody else asks; others wait until what comes back is dropped.
    pub async fn turn_to_ask(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.asking.lock().await
    }
}

/// A call may run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Granted {
    /// Files outside the workspace it may reach.
    pub(crate) outside: Vec<PathBuf>,
    /// Whether it may write to the project's repository as a commit does.
    pub(crate) commits: bool,
    /// The arguments it runs with, if they are not those it was made with.
    pub(crate) changed: Option<Value>,
    /// What went wrong on the way that the user should know.
    pub(crate) notice: Option<String>,
}

/// A call may not run.
#[derive(Debug, PartialEq)]
pub(crate) struct Denied {
    /// What the model is told.
    pub(crate) envelope: Envelope,
    /// Whether a person is needed to go on.
    pub(crate) wants_person: bool,
}

/// What callbacks say of a call before the rules do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Opinion {
    /// Nothing: the rules alone decide.
    #[default]
    None,
    /// Nobody needs to be asked.
    Allow,
    /// Somebody must be asked.
    Ask,
}

impl Opinion {
    /// A verdict with this opinion in it. A rule that denies is never overruled.
    fn weigh(self, mut verdict: Verdict) -> Verdict {
        match (verdict.decision, self) {
            (Decision::Ask, Self::Allow) => verdict.decision = Decision::Allow,
            (Decision::Allow, Self::Ask) => {
                verdict.decision = Decision::Ask;
                "a hook wants it to be asked".clone_into(&mut verdict.reason);
            }
            (Decision::Allow | Decision::Ask | Decision::Deny, _) => {}
        }
        verdict
    }
}

impl Permit {
    pub(crate) fn new(
        permissions: Permissions,
        approver: Option<Arc<dyn Approver>>,
        workspace: Workspace,
    ) -> Self {
        let shared = Arc::new(DecisionState::new(permissions.mode));
        let agent = names::MAIN.to_owned();
        Self {
            permissions: Arc::new(Mutex::new(permissions)),
            approver,
            shared,
            workspace,
            agent,
        }
    }

    /// The same, whose mode and turn to ask others share.
    pub(crate) fn sharing(self, shared: Arc<DecisionState>) -> Self {
        *shared.mode.lock().unwrap_or_else(PoisonError::into_inner) = self.mode();
        Self { shared, ..self }
    }

    /// The same for a sub-agent: the same rules, the same person, another name.
    pub(crate) fn for_agent(&self, agent: &str, workspace: Workspace) -> Self {
        Self {
            permissions: Arc::clone(&self.permissions),
            approver: self.approver.clone(),
            shared: Arc::clone(&self.shared),
            workspace,
            agent: agent.to_owned(),
        }
    }

    /// Decides on a call, asking where that is needed.
    pub(crate) async fn decide(
        &self,
        tool: &dyn Tool,
        context: &ToolContext,
        arguments: &Value,
        opinion: Opinion,
        project_files: ProjectFiles,
    ) -> Result<Granted, Denied> {
        let call = PermissionRequest {
            project_files,
            ..PermissionRequest::of(tool, arguments)
        };
        let (verdict, mode) = self.verdict(&call);
        let mut verdict = opinion.weigh(verdict);
        self.log_verdict(&call, &verdict, mode);
        let mut _alone = None;
        if verdict.decision == Decision::Ask && self.approver.is_some() {
            _alone = Some(self.shared.turn_to_ask().await);
            // Whoever was asked before may have allowed this too.
            verdict = opinion.weigh(self.verdict(&call).0);
        }
        match (verdict.decision, &self.approver) {
            (Decision::Allow, _) => Ok(Granted {
                outside: verdict.outside,
                commits: verdict.commits,
                ..Granted::default()
            }),
            (Decision::Deny, _) => Err(denied(call.tool, &verdict)),
            (Decision::Ask, Some(approver)) => {
                let subject = match tool.preview(context, arguments).await {
                    Ok(Some(diffs)) => diffs,
                    // What lies outside can be looked at only once that is allowed.
                    Err(envelope) if verdict.outside.is_empty() => {
                        return Err(Denied {
                            envelope,
                            wants_person: false,
                        });
                    }
                    Ok(None) | Err(_) => subject(&call, arguments),
                };
                self.ask(approver.as_ref(), tool, arguments, subject, verdict)
                    .await
            }
            (Decision::Ask, None) => {
                let ways = {
                    let permissions = self
                        .permissions
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner);
                    let context = AdviceContext {
                        permissions: &permissions,
                        workspace: &self.workspace,
                        opinion,
                    };
                    context.ways(&call, &verdict)
                };
                let inside = PermissionRequest {
                    leaves_sandbox: false,
                    ..call
                };
                let runs_inside =
                    opinion.weigh(self.verdict(&inside).0).decision == Decision::Allow;
                Err(nobody(inside.tool, &verdict, mode, runs_inside, &ways))
            }
        }
    }

    /// How much may happen without asking.
    pub(crate) fn mode(&self) -> PermissionMode {
        self.permissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .mode
    }

    /// What calls may read of folders they walk through, where rules keep something from being
    /// read.
    pub(crate) fn readable(&self) -> Option<ReadFilter> {
        self.permissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .readable(&self.workspace)
    }

    /// From now on this mode decides, for all who share the rules.
    pub(crate) fn set_mode(&self, mode: PermissionMode) {
        self.permissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .mode = mode;
        *self
            .shared
            .mode
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// What the rules say of a call, and in which mode.
    fn verdict(&self, call: &PermissionRequest<'_>) -> (Verdict, PermissionMode) {
        let permissions = self
            .permissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        (permissions.decide(call, &self.workspace), permissions.mode)
    }

    async fn ask(
        &self,
        approver: &dyn Approver,
        tool: &dyn Tool,
        arguments: &Value,
        subject: String,
        verdict: Verdict,
    ) -> Result<Granted, Denied> {
        let call = PermissionRequest::of(tool, arguments);
        let approval = Approval {
            agent: self.agent.clone(),
            tool: call.tool.to_owned(),
            arguments: arguments.clone(),
            subject,
            reason: verdict.reason,
            leaves_sandbox: verdict.leaves_sandbox,
            parts: verdict.parts,
            remember: verdict.remember,
        };
        let mut granted = Granted {
            outside: verdict.outside,
            commits: verdict.commits,
            ..Granted::default()
        };
        let since = Instant::now();
        let reply = approver.ask(&approval).await;
        self.log_approval(&call, &reply, &approval.remember, since.elapsed());
        match reply {
            ApprovalReply::Once => Ok(granted),
            ApprovalReply::Changed { arguments } => {
                let call = PermissionRequest::of(tool, &arguments);
                let (verdict, _) = self.verdict(&call);
                match verdict.decision {
                    Decision::Deny => Err(denied(call.tool, &verdict)),
                    Decision::Allow | Decision::Ask => {
                        let outside = verdict.outside;
                        let commits = verdict.commits;
                        Ok(Granted {
                            outside,
                            commits,
                            changed: Some(arguments),
                            ..granted
                        })
                    }
                }
            }
            reply @ (ApprovalReply::Always
            | ApprovalReply::AlwaysBy { .. }
            | ApprovalReply::Session) => {
                let rules = if let ApprovalReply::AlwaysBy { rules } = &reply {
                    rules
                } else {
                    &approval.remember
                };
                self.remember(rules);
                if reply != ApprovalReply::Session {
                    let written = approver.remember(rules).await;
                    granted.notice = written
                        .err()
                        .map(|why| format!("the rule could not be written: {why}"));
                }
                Ok(granted)
            }
            ApprovalReply::No { reason } => {
                let reason = reason.trim();
                let said = if reason.is_empty() {
                    String::new()
                } else {
                    format!(" They said: {reason}")
                };
                let message = format!(
                    "The user did not allow this call of `{}`.{said} Find another way, or ask what they want.",
                    call.tool
                );
                Err(Denied {
                    envelope: Envelope::failure("permission_denied", message),
                    wants_person: false,
                })
            }
        }
    }

    /// Logs what the rules decided. The reason of a verdict repeats words of the command, so it is
    /// left out.
    fn log_verdict(&self, call: &PermissionRequest<'_>, verdict: &Verdict, mode: PermissionMode) {
        if tracing::enabled!(tracing::Level::DEBUG) {
            let agent = &self.agent;
            let tool = call.tool;
            let programs = programs(call);
            let decision = verdict.decision.name();
            let rule = verdict.rule.as_deref();
            debug!(agent, tool, decision, rule, %mode, programs, "permission decided");
        }
    }

    /// Logs what a person answered, and the rules that hold from now on.
    fn log_approval(
        &self,
        call: &PermissionRequest<'_>,
        reply: &ApprovalReply,
        remember: &[String],
        waited: Duration,
    ) {
        let agent = &self.agent;
        let tool = call.tool;
        let ms = millis(waited);
        let programs = programs(call);
        let (answer, rules) = match reply {
            ApprovalReply::Once => ("once", None),
            ApprovalReply::Changed { .. } => ("changed", None),
            ApprovalReply::Session => ("session", Some(remember.join(", "))),
            ApprovalReply::Always => ("always", Some(remember.join(", "))),
            ApprovalReply::AlwaysBy { rules } => ("always", Some(rules.join(", "))),
            ApprovalReply::No { .. } => ("no", None),
        };
        info!(agent, tool, programs, answer, rules, ms, "approval asked");
    }

    /// The rules hold for the rest of this session, whatever becomes of the file.
    fn remember(&self, rules: &[String]) {
        let mut permissions = self
            .permissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for rule in rules
            .iter()
            .filter_map(|text| PermissionRule::parse(text, None).ok())
        {
            let rules = std::mem::take(&mut permissions.rules);
            permissions.rules = rules.with(Decision::Allow, rule);
        }
    }
}

/// The programs of a command line, for the log.
fn programs(call: &PermissionRequest<'_>) -> Option<String> {
    match &call.intent {
        Intent::Command { line, .. } => Some(haft_permission::program_names(line).join(", ")),
        Intent::Files(_)
        | Intent::Hosts(_)
        | Intent::Input(_)
        | Intent::Server { .. }
        | Intent::Nothing
        | Intent::Unknown => None,
    }
}

/// A rule or the mode says no.
fn denied(tool: &str, verdict: &Verdict) -> Denied {
    let message = format!(
        "`{tool}` is not permitted: {}. Do not try to get around it; say what you would have done.",
        verdict.reason
    );
    Denied {
        envelope: Envelope::failure("permission_denied", message),
        wants_person: true,
    }
}

/// Refuses a call that only a person could allow, because there is none. `ways` names what would
/// allow it. A call that runs inside the sandbox without a question is told so instead.
fn nobody(
    tool: &str,
    verdict: &Verdict,
    mode: PermissionMode,
    runs_inside: bool,
    ways: &str,
) -> Denied {
    let reason = &verdict.reason;
    if runs_inside {
        let message = format!(
            "`{tool}` needs the user's permission ({reason}), and nobody can be asked in this run. Inside the sandbox it needs none: send the same call without `sandbox`."
        );
        return Denied {
            envelope: Envelope::failure("permission_denied", message),
            wants_person: true,
        };
    }
    if !verdict.outside.is_empty() {
        let message = format!(
            "{reason}, and nobody can be asked in this run; use a path inside it. The user can allow it with {ways}."
        );
        return Denied {
            envelope: Envelope::failure("outside_workspace", message),
            wants_person: false,
        };
    }
    let message = format!(
        "`{tool}` needs the user's permission ({reason}), and nobody can be asked in this run (permission mode `{mode}`). The user can allow it with {ways}."
    );
    Denied {
        envelope: Envelope::failure("permission_denied", message),
        wants_person: true,
    }
}

/// Exactly what a call would do: its command line, or every argument whole.
fn subject(call: &PermissionRequest<'_>, arguments: &Value) -> String {
    if let Intent::Command { line, cwd } = &call.intent {
        return match cwd {
            None => line.clone(),
            Some(cwd) => format!("{line}\n(in {cwd})"),
        };
    }
    let Value::Object(fields) = arguments else {
        return arguments.to_string();
    };
    let shown = |(name, value): (&String, &Value)| match value {
        Value::String(text) if text.contains('\n') => format!("{name}:\n{text}"),
        Value::String(text) => format!("{name}: {text}"),
        other => format!("{name}: {other:#}"),
    };
    fields.iter().map(shown).collect::<Vec<_>>().join("\n")
}
