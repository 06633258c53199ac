//! Decides whether an admitted call may run: by the permission rules, or by asking the user if the
//! rules require approval.
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

use super::approval::{Approval, ApprovalReply, Approver, SubjectKind};
use crate::budget::meter::to_millis;
use crate::names;
use advice::{AdviceContext, Attendance};

/// The permission check for the tool calls of one agent.
pub(crate) struct Permit {
    /// The rules and the mode, shared with sub-agents: a rule added for one agent applies to all
    /// agents.
    permissions: Arc<Mutex<Permissions>>,
    approver: Option<Arc<dyn Approver>>,
    /// The state shared with all agents of the session.
    shared: Arc<DecisionState>,
    workspace: Workspace,
    /// The agent whose calls are checked.
    agent: String,
}

/// Changes the permission mode and adds rules, even while a turn runs. The change applies to
/// sub-agents too.
#[derive(Clone)]
pub struct ModeSwitch(Arc<Permit>);

impl ModeSwitch {
    pub(crate) fn new(permit: Arc<Permit>) -> Self {
        Self(permit)
    }

    /// Sets the mode, starting with the next tool call.
    pub fn set(&self, mode: PermissionMode) {
        self.0.set_mode(mode);
    }

    /// Returns the current mode.
    pub fn mode(&self) -> PermissionMode {
        self.0.mode()
    }

    /// Adds a rule for the rest of the session, starting with the next tool call. Nothing is
    /// written to a file.
    pub fn add_rule(&self, decision: Decision, rule: PermissionRule) {
        self.0.add_session_rule(decision, rule);
    }
}

/// State shared by all permission checks of a session, besides the rules: the current mode, and a
/// lock that limits the questions to the user to one at a time.
#[derive(Debug, Default)]
pub struct DecisionState {
    mode: Mutex<PermissionMode>,
    asking: tokio::sync::Mutex<()>,
}

impl DecisionState {
    /// Creates a state with the initial `mode`.
    pub fn new(mode: PermissionMode) -> Self {
        Self {
            mode: Mutex::new(mode),
            ..Self::default()
        }
    }

    /// Returns the current mode.
    pub fn mode(&self) -> PermissionMode {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other question to the user is open, and returns a guard. Other questions wait
    /// until the guard is dropped.
    pub async fn lock_prompt(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.asking.lock().await
    }
}

/// Permission to run a call.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Granted {
    /// Paths outside the workspace that the call may access.
    pub(crate) outside: Vec<PathBuf>,
    /// True if the call may write the repository files that `git commit` writes.
    pub(crate) commits: bool,
    /// The arguments to use in the call, if they differ from the original arguments.
    pub(crate) changed: Option<Value>,
    /// A problem that occurred during the decision, to show to the user.
    pub(crate) notice: Option<String>,
}

/// The denial of a call.
#[derive(Debug, PartialEq)]
pub(crate) struct Denied {
    /// The error result for the model.
    pub(crate) envelope: Envelope,
    /// True if the call can proceed only with the user's help.
    pub(crate) needs_user: bool,
}

/// The permission that hooks request for a call, before the rules are applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Opinion {
    /// The rules alone decide.
    #[default]
    None,
    /// The call may run without asking the user.
    Allow,
    /// The user must be asked.
    Ask,
}

impl Opinion {
    /// Returns the opinion as far as it counts for a call with this intent: a hook never replaces
    /// the approval of a program for later use.
    fn limit_to(self, intent: &Intent) -> Self {
        match (self, intent) {
            (Self::Allow, Intent::Program(_)) => Self::None,
            (opinion, _) => opinion,
        }
    }

    /// Applies this opinion to a verdict of the rules. A deny rule is never overruled.
    fn apply_to(self, mut verdict: Verdict) -> Verdict {
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
        let agent = names::MAIN_AGENT.to_owned();
        Self {
            permissions: Arc::new(Mutex::new(permissions)),
            approver,
            shared,
            workspace,
            agent,
        }
    }

    /// Replaces the state with `shared`, which other permission checks use too. Sets the mode of
    /// `shared` to the mode of this check.
    pub(crate) fn with_shared_state(self, shared: Arc<DecisionState>) -> Self {
        *shared.mode.lock().unwrap_or_else(PoisonError::into_inner) = self.mode();
        Self { shared, ..self }
    }

    /// Creates the permission check of a sub-agent, with this check's rules and approver.
    pub(crate) fn for_agent(&self, agent: &str, workspace: Workspace) -> Self {
        Self {
            permissions: Arc::clone(&self.permissions),
            approver: self.approver.clone(),
            shared: Arc::clone(&self.shared),
            workspace,
            agent: agent.to_owned(),
        }
    }

    /// Decides whether a call may run, and asks the user if needed.
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
            ..PermissionRequest::for_tool(tool, arguments)
        };
        let opinion = opinion.limit_to(&call.intent);
        let (verdict, mode) = self.rule_verdict(&call);
        let mut verdict = opinion.apply_to(verdict);
        self.log_verdict(&call, &verdict, mode);
        let mut _alone = None;
        if verdict.decision == Decision::Ask && self.approver.is_some() {
            _alone = Some(self.shared.lock_prompt().await);
            // An earlier answer may have allowed this call as well.
            verdict = opinion.apply_to(self.rule_verdict(&call).0);
        }
        match (verdict.decision, &self.approver) {
            (Decision::Allow, _) => Ok(Granted {
                outside: verdict.outside,
                commits: verdict.commits,
                ..Granted::default()
            }),
            (Decision::Deny, _) => Err(self.build_denial(&call, &verdict, opinion)),
            (Decision::Ask, Some(approver)) => {
                let subject = match tool.preview(context, arguments).await {
                    Ok(Some(diffs)) => (SubjectKind::Diff, diffs),
                    // Files outside the workspace can be previewed only after access to them is
                    // allowed.
                    Err(envelope) if verdict.outside.is_empty() => {
                        return Err(Denied {
                            envelope,
                            needs_user: false,
                        });
                    }
                    Ok(None) | Err(_) => (SubjectKind::Text, describe_call(&call, arguments)),
                };
                let call_id = context.call_id.as_str();
                self.ask_user(
                    approver.as_ref(),
                    tool,
                    call_id,
                    arguments,
                    subject,
                    verdict,
                )
                .await
            }
            (Decision::Ask, None) if matches!(call.intent, Intent::Program(_)) => {
                Err(unattended_program_denial(call.tool))
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
                        required_mode: None,
                    };
                    context.describe_ways_to_allow(&call, &verdict)
                };
                let inside = PermissionRequest {
                    leaves_sandbox: false,
                    ..call
                };
                let runs_inside =
                    opinion.apply_to(self.rule_verdict(&inside).0).decision == Decision::Allow;
                Err(unattended_denial(
                    inside.tool,
                    &verdict,
                    mode,
                    runs_inside,
                    &ways,
                ))
            }
        }
    }

    /// True if the rules and the mode allow a call without asking the user.
    pub(crate) fn allows_unasked(
        &self,
        tool: &dyn Tool,
        arguments: &Value,
        project_files: ProjectFiles,
    ) -> bool {
        let call = PermissionRequest {
            project_files,
            ..PermissionRequest::for_tool(tool, arguments)
        };
        self.rule_verdict(&call).0.decision == Decision::Allow
    }

    pub(crate) fn mode(&self) -> PermissionMode {
        self.permissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .mode
    }

    /// Returns the filter for calls that read whole folders, or `None` if no rule hides files.
    pub(crate) fn read_filter(&self) -> Option<ReadFilter> {
        self.permissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .read_filter(&self.workspace)
    }

    /// Changes the mode for all agents that share the rules.
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

    /// Returns the decision of the rules on a call, and the current mode.
    fn rule_verdict(&self, call: &PermissionRequest<'_>) -> (Verdict, PermissionMode) {
        let permissions = self
            .permissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        (permissions.decide(call, &self.workspace), permissions.mode)
    }

    /// Returns the denial of a call by a rule or the mode.
    fn build_denial(
        &self,
        call: &PermissionRequest<'_>,
        verdict: &Verdict,
        opinion: Opinion,
    ) -> Denied {
        let permissions = self
            .permissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_by_mode = permissions.mode == PermissionMode::Plan && verdict.rule.is_none();
        if !is_by_mode {
            return rule_denial(call.tool, verdict, None);
        }
        let attendance = match self.approver {
            Some(_) => Attendance::Attended,
            None => Attendance::Unattended,
        };
        let context = AdviceContext {
            permissions: &permissions,
            workspace: &self.workspace,
            opinion,
            required_mode: None,
        };
        let ways = context.describe_ways_out_of_plan(call, attendance);
        rule_denial(call.tool, verdict, ways.as_deref())
    }

    async fn ask_user(
        &self,
        approver: &dyn Approver,
        tool: &dyn Tool,
        call_id: &str,
        arguments: &Value,
        (subject_kind, subject): (SubjectKind, String),
        verdict: Verdict,
    ) -> Result<Granted, Denied> {
        let call = PermissionRequest::for_tool(tool, arguments);
        // A user who misses the choice "always" reads why it is missing.
        let reasons = [Some(verdict.reason), verdict.not_remembered];
        let reason = reasons.into_iter().flatten().collect::<Vec<_>>().join("; ");
        let approval = Approval {
            agent: self.agent.clone(),
            call_id: Some(call_id.to_owned()),
            tool: call.tool.to_owned(),
            arguments: arguments.clone(),
            subject,
            subject_kind,
            reason,
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
                let call = PermissionRequest::for_tool(tool, &arguments);
                let (verdict, _) = self.rule_verdict(&call);
                match verdict.decision {
                    Decision::Deny => Err(self.build_denial(&call, &verdict, Opinion::None)),
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
                self.add_session_rules(rules);
                if reply != ApprovalReply::Session {
                    let written = approver.save_rules(rules).await;
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
                    let end = if reason.ends_with(['.', '!', '?', '。', '！', '？']) {
                        ""
                    } else {
                        "."
                    };
                    format!(" They said: {reason}{end}")
                };
                let message = format!(
                    "The user did not allow this call of `{}`.{said} Find another way, or ask what they want.",
                    call.tool
                );
                Err(Denied {
                    envelope: Envelope::failure("permission_denied", message),
                    needs_user: false,
                })
            }
        }
    }

    /// Logs the decision of the rules. The reason for the verdict is omitted, because it repeats
    /// words of the command.
    fn log_verdict(&self, call: &PermissionRequest<'_>, verdict: &Verdict, mode: PermissionMode) {
        if tracing::enabled!(tracing::Level::DEBUG) {
            let agent = &self.agent;
            let tool = call.tool;
            let programs = program_names(call);
            let decision = verdict.decision.name();
            let rule = verdict.rule.as_deref();
            debug!(agent, tool, decision, rule, %mode, programs, "permission decided");
        }
    }

    /// Logs the user's answer, and the rules that the answer added.
    fn log_approval(
        &self,
        call: &PermissionRequest<'_>,
        reply: &ApprovalReply,
        remember: &[String],
        waited: Duration,
    ) {
        let agent = &self.agent;
        let tool = call.tool;
        let ms = to_millis(waited);
        let programs = program_names(call);
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

    /// Adds allow rules for the rest of this session. Does not write them to a file.
    fn add_session_rules(&self, rules: &[String]) {
        for rule in rules
            .iter()
            .filter_map(|text| PermissionRule::parse(text, None).ok())
        {
            self.add_session_rule(Decision::Allow, rule);
        }
    }

    /// Adds a rule for the rest of this session. Does not write it to a file.
    pub(crate) fn add_session_rule(&self, decision: Decision, rule: PermissionRule) {
        let mut permissions = self
            .permissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let rules = std::mem::take(&mut permissions.rules);
        permissions.rules = rules.with_rule(decision, rule);
    }
}

/// Returns the programs of a command line, for the log.
fn program_names(call: &PermissionRequest<'_>) -> Option<String> {
    match &call.intent {
        Intent::Command { line, .. } => Some(haft_permission::find_program_names(line).join(", ")),
        Intent::Files(_)
        | Intent::Hosts(_)
        | Intent::Input(_)
        | Intent::Server { .. }
        | Intent::Program(_)
        | Intent::Nothing
        | Intent::Unknown => None,
    }
}

/// Returns the denial of a call by a rule or the mode. `ways` describes how the call could be
/// allowed; `None` if it cannot be allowed.
fn rule_denial(tool: &str, verdict: &Verdict, ways: Option<&str>) -> Denied {
    let reason = &verdict.reason;
    let advice = ways.map_or_else(String::new, |ways| {
        format!(" The user can allow it with {ways}.")
    });
    let message = format!(
        "`{tool}` is not permitted: {reason}.{advice} Do not try to get around it; say what you would have done."
    );
    Denied {
        envelope: Envelope::failure("permission_denied", message),
        needs_user: true,
    }
}

/// Returns the denial of a call that needs the user's approval in a run without a user. `ways`
/// describes how the call could be allowed. If the call could run inside the sandbox without
/// approval, the message suggests that instead.
fn unattended_denial(
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
            needs_user: true,
        };
    }
    if !verdict.outside.is_empty() {
        let message = format!(
            "{reason}, and nobody can be asked in this run; use a path inside it. The user can allow it with {ways}."
        );
        return Denied {
            envelope: Envelope::failure("outside_workspace", message),
            needs_user: false,
        };
    }
    let message = format!(
        "`{tool}` needs the user's permission ({reason}), and nobody can be asked in this run (permission mode `{mode}`). The user can allow it with {ways}."
    );
    Denied {
        envelope: Envelope::failure("permission_denied", message),
        needs_user: true,
    }
}

/// Returns the denial of a call that writes a program for later use, in a run without a user.
fn unattended_program_denial(tool: &str) -> Denied {
    let message = format!(
        "`{tool}` writes a program only after a person has read and approved it, and nobody can be asked in this run. No rule and no mode allows it; the user can answer at a terminal: `haft`, or `haft run --ask`. Do without the tool, or say what it would do."
    );
    Denied {
        envelope: Envelope::failure("permission_denied", message),
        needs_user: true,
    }
}

/// Returns the complete text of a call for the approval: its command line, or all arguments.
fn describe_call(call: &PermissionRequest<'_>, arguments: &Value) -> String {
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
