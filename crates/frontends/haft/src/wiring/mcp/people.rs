//! Passes forms of servers to the approver of calls.

use std::sync::Arc;

use async_trait::async_trait;
use haft_engine::Approver;
use haft_mcp::Elicitor;
use haft_types::{Filled, Form};

/// The person who is asked before calls run.
pub(super) struct Person(pub(super) Arc<dyn Approver>);

#[async_trait]
impl Elicitor for Person {
    async fn fill(&self, form: Form) -> Filled {
        self.0.fill(&form).await
    }
}
