//! Passes forms of servers to the approver of calls.

use std::sync::Arc;

use async_trait::async_trait;
use haft_agent::{Approver, DecisionState};
use haft_types::{Form, FormOutcome};

use crate::sdk::Elicitor;

/// Shows the forms of servers to the user through the session's approver, one form at a time.
pub(super) struct ApproverElicitor {
    pub(super) approver: Arc<dyn Approver>,
    pub(super) shared: Arc<DecisionState>,
}

#[async_trait]
impl Elicitor for ApproverElicitor {
    async fn fill_form(&self, form: Form) -> FormOutcome {
        let _alone = self.shared.lock_prompt().await;
        self.approver.fill_form(&form).await
    }
}
