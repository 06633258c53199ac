//! `` !`command` `` in custom commands: what the command line prints is put in its place. It is
//! permitted as the model's commands are, and held in by the same sandbox.

use std::sync::Arc;

use haft_agent::config::Config;
use haft_agent::{
    Approval, ApprovalReply, Approver, MAIN, Places, Project, confinement, set_up_sandbox,
};
use haft_permission::{PermissionRequest, Verdict};
use haft_project::commands::PromptPiece;
use haft_sandbox::{Capture, CommandExit, CommandSpec, Sandbox};
use haft_text::{CutLimits, Masker, sanitise_bytes};
use haft_tui::{UiHandle, UiMessage};
use haft_types::{Decision, PermissionMode};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::commands::permissions;
use crate::exit::usage_error;
use crate::wiring;

/// What of an output goes into the prompt.
const PLACED: CutLimits = CutLimits {
    lines: 400,
    bytes: 40_000,
};

/// Runs the command lines of prompts.
pub(crate) struct InlineCommands<'a> {
    pub(crate) places: &'a Places,
    pub(crate) config: &'a Config,
    pub(crate) project: &'a Project,
    pub(crate) mode: PermissionMode,
    /// Who is asked; nobody in a headless run.
    pub(crate) approver: Option<Arc<dyn Approver>>,
    /// Where the line that runs shows; nowhere in a headless run.
    pub(crate) ui: Option<&'a UiHandle>,
    /// Ends the line that runs.
    pub(crate) cancel: CancellationToken,
}

/// The number under which a line shows while it runs.
pub(crate) const INLINE: u64 = u64::MAX;

impl InlineCommands<'_> {
    /// The prompt with the output of its command lines.
    pub(crate) async fn fill(&self, pieces: Vec<PromptPiece>) -> anyhow::Result<String> {
        let mut prompt = String::new();
        let mut sandbox = None;
        for piece in pieces {
            match piece {
                PromptPiece::Text(text) => prompt.push_str(&text),
                PromptPiece::Command(line) => {
                    let sandbox = match &sandbox {
                        Some(sandbox) => sandbox,
                        None => sandbox.insert(self.sandbox().await?),
                    };
                    prompt.push_str(self.output(&line, sandbox).await?.trim_end());
                }
            }
        }
        Ok(prompt)
    }

    async fn sandbox(&self) -> anyhow::Result<Sandbox> {
        let rules = self.rules(haft_permission::Confinement::None)?;
        let mut config = self.config.sandbox.clone();
        config
            .hidden
            .extend(rules.unreadable(&wiring::workspace(self.places, self.project)));
        config
            .hidden
            .extend(wiring::project_policy(self.project).hidden);
        Ok(set_up_sandbox(
            self.places,
            &config,
            self.mode,
            vec![self.project.root.clone()],
        )
        .await?)
    }

    fn rules(
        &self,
        confined: haft_permission::Confinement,
    ) -> anyhow::Result<haft_permission::Permissions> {
        let rules = haft_agent::permissions(
            wiring::environment(),
            &self.config.permissions,
            self.mode,
            confined,
        )?;
        permissions::tightened(rules, self.places, self.project)
    }

    async fn output(&self, line: &str, sandbox: &Sandbox) -> anyhow::Result<String> {
        let workspace = wiring::workspace(self.places, self.project);
        let verdict = self
            .rules(confinement(sandbox))?
            .decide(&PermissionRequest::command(line), &workspace);
        let cancelled = || usage_error(text!("slash-command-interrupted", line));
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(cancelled()),
            permitted = self.permitted(line, &verdict) => permitted?,
        }
        let host = wiring::environment();
        let command = CommandSpec {
            argv: vec![haft_tools::shell().into(), "-c".into(), line.into()],
            env: host.child_environment(),
            confined: sandbox.confined(),
            ..CommandSpec::shell("", &self.project.cwd)
        };
        let capture = Capture {
            limits: PLACED,
            ..Capture::default()
        };
        self.show(UiMessage::Running {
            id: INLINE,
            line: line.to_owned(),
        });
        let ran = host
            .supervisor()
            .run(&command, &capture, &self.cancel)
            .await;
        self.show(UiMessage::Ran {
            id: INLINE,
            text: String::new(),
        });
        let ran = ran?;
        if ran.exit == CommandExit::Cancelled {
            return Err(cancelled());
        }
        if ran.exit != CommandExit::Code(0) {
            let said = sanitise_bytes(&ran.stderr.head);
            let said = match &ran.hidden {
                Some(hidden) => format!("{}\n{hidden}; {}", said.trim(), hidden.remedy()),
                None => said.trim().to_owned(),
            };
            return Err(usage_error(text!("slash-command-failed", line, said)));
        }
        let text = sanitise_bytes(&[ran.stdout.head, ran.stdout.tail].concat());
        Ok(Masker::knowing(host.secret_values())
            .mask(&text)
            .into_owned())
    }

    fn show(&self, message: UiMessage) {
        if let Some(ui) = self.ui {
            ui.tell(message);
        }
    }

    /// Whether a line may run: a rule says so, or a person who is asked.
    async fn permitted(&self, line: &str, verdict: &Verdict) -> anyhow::Result<()> {
        let refused = || {
            Err(usage_error(text!(
                "slash-command-refused",
                line,
                reason = verdict.reason
            )))
        };
        match (verdict.decision, &self.approver) {
            (Decision::Allow, _) => Ok(()),
            (Decision::Deny, _) | (Decision::Ask, None) => refused(),
            (Decision::Ask, Some(approver)) => {
                let approval = Approval {
                    agent: MAIN.to_owned(),
                    tool: "execute_command".to_owned(),
                    arguments: json!({ "command": line }),
                    subject: line.to_owned(),
                    reason: verdict.reason.clone(),
                    leaves_sandbox: false,
                    parts: verdict.parts.clone(),
                    remember: Vec::new(),
                };
                match approver.ask(&approval).await {
                    ApprovalReply::Once => Ok(()),
                    ApprovalReply::Always
                    | ApprovalReply::AlwaysBy { .. }
                    | ApprovalReply::Session
                    | ApprovalReply::Changed { .. }
                    | ApprovalReply::No { .. } => refused(),
                }
            }
        }
    }
}
