//! How a person is asked: before a call runs, and by servers in the middle of one.

use std::sync::Arc;

use async_trait::async_trait;
use haft_permission::PartVerdict;
use haft_types::{Filled, Form};
use serde_json::Value;
use tokio::sync::Mutex;

/// A call that waits for a yes or no.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    /// The agent that calls: `main`, or a sub-agent's name.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// Exactly what would run or be written, whole. It comes from the model: clean it before a terminal shows it.
    pub subject: String,
    /// Why it is asked.
    pub reason: String,
    /// What each part of it came to.
    pub parts: Vec<PartVerdict>,
    /// The rules that "always" would write; none where no rule can allow it.
    pub remember: Vec<String>,
}

/// What the person said.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// This once.
    Once,
    /// This once, with these arguments instead. What a rule denies stays denied.
    Changed {
        /// The arguments.
        arguments: Value,
    },
    /// From now on, by the rules of the approval.
    Always,
    /// No.
    No {
        /// Words for the model; may be empty.
        words: String,
    },
}

/// Who is asked. Without one, asking means no, and forms are declined.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Shows the approval and waits for the answer. It is dropped when the run is cancelled.
    async fn ask(&self, approval: &Approval) -> Answer;

    /// Shows a form that an MCP server sends in the middle of a call, and waits for the answers. It is dropped when the call
    /// is. Whoever cannot show one declines.
    async fn fill(&self, _form: &Form) -> Filled {
        Filled::Declined
    }

    /// Writes rules that allow where the user can read them.
    async fn remember(&self, rules: &[String]) -> Result<(), String>;
}

/// Puts one question at a time to a person: those of calls, of hooks and servers that would start, and forms of servers come from
/// agents that run side by side.
pub struct OneAtATime {
    person: Arc<dyn Approver>,
    asking: Mutex<()>,
}

impl OneAtATime {
    /// The same person, who is asked by one at a time.
    pub fn new(person: Arc<dyn Approver>) -> Self {
        Self { person, asking: Mutex::default() }
    }
}

#[async_trait]
impl Approver for OneAtATime {
    async fn ask(&self, approval: &Approval) -> Answer {
        let _alone = self.asking.lock().await;
        self.person.ask(approval).await
    }

    async fn fill(&self, form: &Form) -> Filled {
        let _alone = self.asking.lock().await;
        self.person.fill(form).await
    }

    async fn remember(&self, rules: &[String]) -> Result<(), String> {
        self.person.remember(rules).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;

    /// Counts the questions that are open at once.
    #[derive(Default)]
    struct Counting {
        open: AtomicUsize,
        most: AtomicUsize,
    }

    impl Counting {
        async fn look(&self) {
            let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(open, Ordering::SeqCst);
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            self.open.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[async_trait]
    impl Approver for Counting {
        async fn ask(&self, _: &Approval) -> Answer {
            self.look().await;
            Answer::Once
        }

        async fn fill(&self, _: &Form) -> Filled {
            self.look().await;
            Filled::Declined
        }

        async fn remember(&self, _: &[String]) -> Result<(), String> {
            Ok(())
        }
    }

    fn approval(tool: &str) -> Approval {
        Approval {
            agent: "main".into(),
            tool: tool.into(),
            arguments: json!({}),
            subject: String::new(),
            reason: String::new(),
            parts: Vec::new(),
            remember: Vec::new(),
        }
    }

    #[tokio::test]
    async fn questions_of_calls_hooks_and_servers_wait_for_each_other() {
        let person = Arc::new(Counting::default());
        let one = OneAtATime::new(Arc::clone(&person) as _);
        let form = Form { from: "s".into(), message: String::new(), fields: Vec::new() };
        let (call, hook) = (approval("execute_command"), approval("hook"));
        let (first, second, third) = tokio::join!(one.ask(&call), one.ask(&hook), one.fill(&form));
        assert_eq!((first, second), (Answer::Once, Answer::Once));
        assert!(matches!(third, Filled::Declined));
        assert_eq!(person.most.load(Ordering::SeqCst), 1);
        // A question that is given up does not keep others waiting.
        let mut given_up = Box::pin(one.ask(&call));
        assert!(futures::poll!(&mut given_up).is_pending());
        drop(given_up);
        assert_eq!(one.ask(&hook).await, Answer::Once);
    }
}
