//! Logs the events of a task's run, and records its spending in the queue before each request is
//! sent and after it was answered.

use std::collections::HashMap;

use haft_agent::EventSink;
use haft_postgres::TaskSpending;
use haft_types::{CallPhase, ConversationId, Event, EventBody, Price};
use serde_json::json;

use crate::slot::TaskRun;

/// Logs and meters the events of a run and of its sub-agents.
pub(crate) struct TaskMeter {
    run: TaskRun,
    /// The prices of the models that may be used.
    prices: Vec<Price>,
    spent: TaskSpending,
    /// The newest request of each conversation, which is being built or was sent.
    requests: HashMap<ConversationId, PendingRequest>,
}

/// The tokens of a request, and the highest cost it can have once it is sent.
#[derive(Default)]
struct PendingRequest {
    input: u64,
    usd: f64,
    tokens: i64,
}

impl TaskMeter {
    pub(crate) fn new(run: TaskRun, prices: Vec<Price>) -> Self {
        let task = &run.task;
        let spent = TaskSpending {
            usd: task.spent_usd,
            tokens: task.spent_tokens,
            ..TaskSpending::default()
        };
        Self {
            run,
            prices,
            spent,
            requests: HashMap::new(),
        }
    }

    /// Records the highest possible cost of a request that is about to be sent. This cost counts if
    /// the worker is lost before the reply.
    fn reserve_request(&mut self, conversation: &ConversationId, output: u64) {
        let request = self.requests.entry(conversation.clone()).or_default();
        let worst = |price: &Price| {
            let (input, out) = price.max_cost(request.input);
            input + output as f64 * out
        };
        request.usd = self.prices.iter().map(worst).fold(0.0, f64::max);
        request.tokens = (request.input + output).cast_signed();
        self.record_spending();
    }

    fn record_spending(&mut self) {
        self.spent.flying_usd = self.requests.values().map(|request| request.usd).sum();
        self.spent.flying_tokens = self.requests.values().map(|request| request.tokens).sum();
        self.run.record_spending(self.spent);
    }

    /// Logs a message that a hook printed when a session was closed.
    pub(crate) fn log_hook_message(&self, message: &str) {
        self.run.slot.add_log_line(
            json!({"type": "notice", "code": "hook", "message": message}).to_string(),
        );
    }
}

#[cfg(feature = "workflows")]
impl haft_workflows::WorkflowObserver for TaskMeter {
    fn on_event(&mut self, event: &Event) {
        EventSink::event(self, event);
    }

    fn on_closing_message(&mut self, message: &str) {
        self.log_hook_message(message);
    }
}

impl EventSink for TaskMeter {
    fn event(&mut self, event: &Event) {
        #[cfg(feature = "otel")]
        haft_traces::record_event(event, || {
            let task = &self.run.task;
            Some(haft_traces::task_span_ids(&task.conversation, task.epoch))
        });
        let conversation_id = &event.conversation_id;
        match &event.body {
            EventBody::Window { tokens, .. } => {
                self.requests
                    .entry(conversation_id.clone())
                    .or_default()
                    .input = *tokens;
            }
            EventBody::Budget { output_reserve, .. } => {
                self.reserve_request(conversation_id, *output_reserve);
            }
            EventBody::Usage { usage, cost, .. } => {
                self.spent.usd += cost.map_or(0.0, |cost| cost.total);
                self.spent.tokens += usage.total().cast_signed();
                let request = self.requests.entry(conversation_id.clone()).or_default();
                (request.usd, request.tokens) = (0.0, 0);
                self.record_spending();
            }
            _ => {}
        }
        if is_logged(&event.body)
            && let Ok(line) = serde_json::to_string(event)
        {
            self.run.slot.add_log_line(line);
        }
    }
}

/// Returns true if an event is logged. Pieces of text are not logged, because the conversation
/// stores them; neither is the layout of a request, which the request log stores.
fn is_logged(body: &EventBody) -> bool {
    !matches!(
        body,
        EventBody::Text { .. }
            | EventBody::Thinking { .. }
            | EventBody::ToolProgress { .. }
            | EventBody::ToolCall {
                phase: CallPhase::Started | CallPhase::Arguments | CallPhase::Running,
                ..
            }
            | EventBody::Window { .. }
            | EventBody::Budget { .. }
            | EventBody::Reminders { .. }
    )
}
