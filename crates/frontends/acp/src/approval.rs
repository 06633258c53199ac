//! Asks the editor's user for approval, and saves the rules they choose to keep.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    NoticeSeverity, PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, SessionUpdate, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use agent_client_protocol::{is_connection_terminated, is_incoming_transport_closed};
use async_trait::async_trait;
use haft_agent::{Approval, ApprovalReply, Approver};
use haft_text::reveal;
use haft_types::{Filled, Form};

use crate::forms;
use crate::host::Host;
use crate::updates::{SharedCalls, UpdateSender};

const ONCE: &str = "allow-once";
const ALWAYS: &str = "allow-always";
const NO: &str = "reject-once";

/// Sends approvals and forms to the editor.
pub(crate) struct EditorApprover {
    pub(crate) sender: UpdateSender,
    pub(crate) calls: SharedCalls,
    pub(crate) host: Arc<dyn Host>,
}

#[async_trait]
impl Approver for EditorApprover {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        let no = ApprovalReply::No {
            reason: String::new(),
        };
        let call = self.calls.lock().asked(approval);
        let id = call.tool_call_id.clone();
        let request = RequestPermissionRequest::new(
            self.sender.session.clone(),
            call,
            choices(&approval.remember),
        );
        let answer = match self.sender.editor.send_request(request).block_task().await {
            Ok(answer) => answer,
            // A closed connection is not a rejection: the turn is about to be canceled, and the
            // approval is requested again when it is resumed.
            Err(error)
                if is_connection_terminated(&error) || is_incoming_transport_closed(&error) =>
            {
                std::future::pending().await
            }
            Err(_) => return no,
        };
        let reply = match answer.outcome {
            RequestPermissionOutcome::Selected(chosen) => match chosen.option_id.0.as_ref() {
                ONCE => ApprovalReply::Once,
                ALWAYS if !approval.remember.is_empty() => ApprovalReply::Always,
                _ => return no,
            },
            _ => return no,
        };
        let running = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
        self.sender
            .send(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(
                id, running,
            )));
        reply
    }

    async fn fill(&self, form: &Form) -> Filled {
        let request = self
            .sender
            .taken
            .forms
            .then(|| forms::request(&self.sender.session, form))
            .flatten();
        let Some(request) = request else {
            let from = &form.from;
            let message = &form.message;
            let text = format!(
                "{from} asked \"{message}\". This editor cannot show the form, so it was declined."
            );
            self.sender.tell(NoticeSeverity::Warning, text);
            return Filled::Declined;
        };
        match self.sender.editor.send_request(request).block_task().await {
            Ok(answer) => forms::filled(form, answer.action),
            Err(_) => Filled::Declined,
        }
    }

    async fn remember(&self, rules: &[String]) -> Result<(), String> {
        self.host.remember(rules)
    }
}

/// Returns the options of an approval. "Always" lists the rules it would save, and is offered only
/// if a rule would match the call.
fn choices(rules: &[String]) -> Vec<PermissionOption> {
    let mut choices = vec![PermissionOption::new(
        ONCE,
        "Allow once",
        PermissionOptionKind::AllowOnce,
    )];
    if !rules.is_empty() {
        let name = format!(
            "Always allow {}",
            rules
                .iter()
                .map(|rule| format!("`{}`", reveal(rule)))
                .collect::<Vec<_>>()
                .join(", ")
        );
        choices.push(PermissionOption::new(
            ALWAYS,
            name,
            PermissionOptionKind::AllowAlways,
        ));
    }
    choices.push(PermissionOption::new(
        NO,
        "Reject",
        PermissionOptionKind::RejectOnce,
    ));
    choices
}
