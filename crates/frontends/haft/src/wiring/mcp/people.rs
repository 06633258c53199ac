//! Passes forms of servers to the approver of calls.

use std::sync::Arc;

use async_trait::async_trait;
use haft_engine::{Approver, DecisionState};
use haft_mcp::Elicitor;
use haft_types::{Filled, Form};

/// The person who is asked before calls run.
pub(super) struct Person {
    pub(super) approver: Arc<dyn Approver>,
    pub(super) shared: Arc<DecisionState>,
}

#[async_trait]
impl Elicitor for Person {
    async fn fill(&self, form: Form) -> Filled {
        let _alone = self.shared.turn_to_ask().await;
        self.approver.fill(&form).await
    }
}
