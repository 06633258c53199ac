//! Asks the session's own front end and all clients at once. The first answer wins.

use std::sync::Arc;

use async_trait::async_trait;
use haft_agent::{Approval, ApprovalReply, Approver};
use haft_types::{Form, FormOutcome};

use crate::room::Room;

pub(crate) struct AttachApprover {
    own: Arc<dyn Approver>,
    room: Arc<Room>,
}

impl AttachApprover {
    pub(crate) fn new(own: Arc<dyn Approver>, room: Arc<Room>) -> Self {
        Self { own, room }
    }
}

#[async_trait]
impl Approver for AttachApprover {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        let (question, mut of_client) = self.room.open_approval(approval);
        let own = tokio::select! {
            biased;
            Ok(reply) = &mut of_client => Err(reply),
            reply = self.own.ask(approval) => Ok(reply),
        };
        let reply = match own {
            Ok(reply) if question.answer_approval(&reply) => return reply,
            // A client answered between the two.
            Ok(reply) => of_client.await.unwrap_or(reply),
            Err(reply) => reply,
        };
        self.own.answered_elsewhere(approval, &reply);
        reply
    }

    async fn fill_form(&self, form: &Form) -> FormOutcome {
        let (question, mut of_client) = self.room.open_form(form);
        let own = tokio::select! {
            biased;
            Ok(outcome) = &mut of_client => return outcome,
            outcome = self.own.fill_form(form) => outcome,
        };
        if question.answer_form() {
            own
        } else {
            of_client.await.unwrap_or(own)
        }
    }

    async fn save_rules(&self, rules: &[String]) -> Result<(), String> {
        self.own.save_rules(rules).await
    }
}
