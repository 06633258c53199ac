//! Passes forms of servers to the approver of calls.

use std::sync::Arc;

use async_trait::async_trait;
use haft_agent::{Approver, DecisionState};
use haft_types::{Filled, Form};

use crate::sdk::Elicitor;

/// Asks the person who approves calls to fill in forms, one question at a time.
pub(super) struct ApproverElicitor {
    pub(super) approver: Arc<dyn Approver>,
    pub(super) shared: Arc<DecisionState>,
}

#[async_trait]
impl Elicitor for ApproverElicitor {
    async fn fill(&self, form: Form) -> Filled {
        let _alone = self.shared.turn_to_ask().await;
        self.approver.fill(&form).await
    }
}
