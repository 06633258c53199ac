//! Asks the editor's user for approval, and saves the rules they choose to keep.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    NoticeSeverity, PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, SessionUpdate, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use agent_client_protocol::{is_connection_terminated, is_incoming_transport_closed};
use async_trait::async_trait;
use haft_agent::{Approval, ApprovalReply, Approver};
use haft_types::{Form, FormOutcome};

use crate::forms;
use crate::host::Host;
use crate::updates::{SharedCalls, UpdateSender};

const ALLOW_ONCE: &str = "allow-once";
const ALLOW_ALWAYS: &str = "allow-always";
const REJECT_ONCE: &str = "reject-once";

/// Asks the user for approvals, and to fill in forms, through the editor.
pub(crate) struct EditorApprover {
    pub(crate) sender: UpdateSender,
    pub(crate) calls: SharedCalls,
    pub(crate) host: Arc<Host>,
}

#[async_trait]
impl Approver for EditorApprover {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        let rejected = ApprovalReply::No {
            reason: String::new(),
        };
        let call = self.calls.lock().approval_update(approval);
        let id = call.tool_call_id.clone();
        let request = RequestPermissionRequest::new(
            self.sender.session.clone(),
            call,
            permission_options(&approval.shown_rules()),
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
            Err(_) => return rejected,
        };
        let reply = match answer.outcome {
            RequestPermissionOutcome::Selected(chosen) => match chosen.option_id.0.as_ref() {
                ALLOW_ONCE => ApprovalReply::Once,
                ALLOW_ALWAYS if !approval.remember.is_empty() => ApprovalReply::Always,
                _ => return rejected,
            },
            _ => return rejected,
        };
        let running = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
        self.sender
            .send_update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(
                id, running,
            )));
        reply
    }

    async fn fill_form(&self, form: &Form) -> FormOutcome {
        let request = self
            .sender
            .features
            .forms
            .then(|| forms::build_form_request(&self.sender.session, form))
            .flatten();
        let Some(request) = request else {
            let from = &form.requester;
            let message = &form.message;
            let text = format!(
                "{from} asked \"{message}\". This editor cannot show the form, so it was declined."
            );
            self.sender.send_notice(NoticeSeverity::Warning, &text);
            return FormOutcome::Declined;
        };
        match self.sender.editor.send_request(request).block_task().await {
            Ok(answer) => forms::parse_form_answer(form, answer.action),
            Err(_) => FormOutcome::Declined,
        }
    }

    async fn save_rules(&self, rules: &[String]) -> Result<(), String> {
        self.host.save_rules(rules)
    }
}

/// Returns the choices that the user has for an approval. "Always" names `rules`, which it would
/// save, and is offered only if there are such rules.
fn permission_options(rules: &[String]) -> Vec<PermissionOption> {
    let mut choices = vec![PermissionOption::new(
        ALLOW_ONCE,
        "Allow once",
        PermissionOptionKind::AllowOnce,
    )];
    if !rules.is_empty() {
        let name = format!(
            "Always allow {}",
            rules
                .iter()
                .map(|rule| format!("`{rule}`"))
                .collect::<Vec<_>>()
                .join(", ")
        );
        choices.push(PermissionOption::new(
            ALLOW_ALWAYS,
            name,
            PermissionOptionKind::AllowAlways,
        ));
    }
    choices.push(PermissionOption::new(
        REJECT_ONCE,
        "Reject",
        PermissionOptionKind::RejectOnce,
    ));
    choices
}
