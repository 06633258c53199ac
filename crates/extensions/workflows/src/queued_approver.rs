//! Queues the questions of steps that run in parallel, so that the user sees one question at a
//! time.

use std::sync::Arc;

use async_trait::async_trait;
use haft_agent::{Approval, ApprovalReply, Approver};
use haft_types::{Form, FormOutcome};
use tokio::sync::Mutex;

/// Forwards the questions of parallel steps to an approver, one at a time.
pub(crate) struct QueuedApprover {
    approver: Arc<dyn Approver>,
    turn: Mutex<()>,
}

impl QueuedApprover {
    pub(crate) fn new(approver: Arc<dyn Approver>) -> Self {
        Self {
            approver,
            turn: Mutex::default(),
        }
    }
}

#[async_trait]
impl Approver for QueuedApprover {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        let _turn = self.turn.lock().await;
        self.approver.ask(approval).await
    }

    async fn fill_form(&self, form: &Form) -> FormOutcome {
        let _turn = self.turn.lock().await;
        self.approver.fill_form(form).await
    }

    async fn save_rules(&self, rules: &[String]) -> Result<(), String> {
        self.approver.save_rules(rules).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts concurrent questions.
    #[derive(Default)]
    struct Counting {
        now: AtomicUsize,
        most: AtomicUsize,
    }

    #[async_trait]
    impl Approver for Counting {
        async fn ask(&self, _: &Approval) -> ApprovalReply {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            tokio::task::yield_now().await;
            self.now.fetch_sub(1, Ordering::SeqCst);
            ApprovalReply::Once
        }

        async fn save_rules(&self, _: &[String]) -> Result<(), String> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn queued_approver_asks_one_question_at_a_time() {
        let counting = Arc::new(Counting::default());
        let queued = QueuedApprover::new(Arc::<Counting>::clone(&counting) as _);
        let approval = Approval {
            agent: "a".into(),
            call_id: None,
            tool: "execute_command".into(),
            arguments: serde_json::Value::Null,
            subject: "ls".into(),
            subject_kind: haft_agent::SubjectKind::Text,
            reason: "x".into(),
            leaves_sandbox: false,
            parts: Vec::new(),
            remember: Vec::new(),
        };
        let asked = tokio::join!(
            queued.ask(&approval),
            queued.ask(&approval),
            queued.ask(&approval)
        );
        assert_eq!(
            asked,
            (
                ApprovalReply::Once,
                ApprovalReply::Once,
                ApprovalReply::Once
            )
        );
        assert_eq!(counting.most.load(Ordering::SeqCst), 1);
    }
}
