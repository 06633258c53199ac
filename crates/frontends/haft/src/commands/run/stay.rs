//! Further turns of a headless run: messages of attached front ends, and the wait for them at a
//! question (`--stay`).

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use haft_agent::{AttachPort, Places};
use haft_engine::{Approval, ApprovalReply, Approver, RunReport, Session};
use haft_messages::CallHeadline;
use haft_types::{Decision, Form, FormOutcome, Outcome};
use tokio_util::sync::CancellationToken;

use super::approve::describe_reply_elsewhere;
use crate::cli::options::RunArgs;
use crate::commands::permissions;
use crate::output;
use crate::output::progress_line::pause_line;

/// The user of a run with `--stay`, who answers only through `haft attach`.
pub(super) struct AbsentUser {
    places: Places,
    /// True if the run is a background job, whose stderr is shown as the reason for a failure.
    is_job: bool,
    /// The short id of the conversation, once it is open.
    conversation: OnceLock<String>,
}

impl AbsentUser {
    pub(super) fn new(args: &RunArgs, places: &Places) -> Arc<Self> {
        Arc::new(Self {
            places: places.clone(),
            is_job: args.job.is_some(),
            conversation: OnceLock::new(),
        })
    }

    /// Prints that the run waits for `what`, and the command that answers.
    fn report_wait(&self, what: &str) {
        if !self.is_job {
            let id = self.conversation.get().map_or("", String::as_str);
            output::print_to_stderr(&format!("haft: {}", text!("run-stay-waits", what, id)));
        }
    }
}

#[async_trait]
impl Approver for AbsentUser {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        let call = CallHeadline::new(&approval.tool, &approval.arguments).to_line();
        self.report_wait(&text!("run-stay-approval", call));
        let _paused = pause_line();
        std::future::pending().await
    }

    async fn fill_form(&self, form: &Form) -> FormOutcome {
        let from = &form.requester;
        self.report_wait(&text!("run-stay-form", from));
        let _paused = pause_line();
        std::future::pending().await
    }

    fn answered_elsewhere(&self, _approval: &Approval, reply: &ApprovalReply) {
        if !self.is_job {
            output::print_to_stderr(describe_reply_elsewhere(reply));
        }
    }

    async fn save_rules(&self, rules: &[String]) -> Result<(), String> {
        permissions::add_rules(&self.places, Decision::Allow, rules)
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

/// Decides after each turn of a headless run whether another one follows.
pub(super) struct AttendedTurns<'a> {
    port: Option<Arc<dyn AttachPort>>,
    /// `Some` with `--stay`.
    absent: Option<&'a AbsentUser>,
    cancel: &'a CancellationToken,
}

impl<'a> AttendedTurns<'a> {
    pub(super) fn new(
        session: &Session,
        absent: Option<&'a AbsentUser>,
        cancel: &'a CancellationToken,
    ) -> Self {
        if let Some(absent) = absent {
            let id = session.conversation().id.short_prefix().to_owned();
            // A run has a single session, which is opened once.
            drop(absent.conversation.set(id));
        }
        let port = session.attach_port().cloned();
        if let Some(port) = &port {
            port.accept_prompts();
        }
        Self {
            port,
            absent,
            cancel,
        }
    }

    /// Returns the prompt of the next turn: a message of an attached front end. With `--stay`, waits
    /// for one if the turn needs a person or was interrupted by one. Returns `None` if the run is
    /// over.
    pub(super) async fn next_prompt(&mut self, report: &RunReport) -> Option<String> {
        let port = self.port.as_ref()?;
        if self.cancel.is_cancelled() {
            return None;
        }
        if let Some(prompt) = port.take_prompt() {
            return Some(prompt);
        }
        let absent = self.absent?;
        if report.result.outcome != Outcome::Waiting && !port.was_interrupted() {
            return None;
        }
        absent.report_wait(text!("run-stay-message"));
        self.cancel.run_until_cancelled(port.next_prompt()).await
    }
}
