//! What a run of a task logs and spends: noted with the queue before a request is sent, and after
//! it was answered.

use std::collections::HashMap;

use haft_engine::EventSink;
use haft_postgres::TaskSpending;
use haft_types::{CallPhase, ConversationId, Event, EventBody, Price};
use haft_worker::TaskRun;
use serde_json::json;

#[cfg(feature = "otel")]
use crate::wiring::traces;

/// Listens to a run, and to whoever works for it.
pub(super) struct TaskMeter {
    run: TaskRun,
    /// Of the models that may be asked.
    prices: Vec<Price>,
    spent: TaskSpending,
    /// Whether the worst a request may cost is noted before it is sent.
    limited: bool,
    /// By conversation, the request that is being put together or was sent.
    requests: HashMap<ConversationId, FlyingRequest>,
}

/// The tokens of a request, and the most it can cost once it is sent.
#[derive(Default)]
struct FlyingRequest {
    input: u64,
    usd: f64,
    tokens: i64,
}

impl TaskMeter {
    pub(super) fn new(run: TaskRun, prices: Vec<Price>) -> Self {
        let task = &run.task;
        let spent = TaskSpending {
            usd: task.spent_usd,
            tokens: task.spent_tokens,
            ..TaskSpending::default()
        };
        let limited = task.usd_limit.is_some() || task.token_limit.is_some();
        Self {
            run,
            prices,
            spent,
            limited,
            requests: HashMap::new(),
        }
    }

    /// A request is about to be sent: should this worker be lost, it counts as if it had cost the
    /// most it can.
    fn before_request(&mut self, of: &ConversationId, output: u64) {
        if !self.limited {
            return;
        }
        let request = self.requests.entry(of.clone()).or_default();
        let worst = |price: &Price| {
            let (input, out) = price.dearest(request.input);
            input + output as f64 * out
        };
        request.usd = self.prices.iter().map(worst).fold(0.0, f64::max);
        request.tokens = (request.input + output).cast_signed();
        self.note();
    }

    fn note(&mut self) {
        self.spent.flying_usd = self.requests.values().map(|request| request.usd).sum();
        self.spent.flying_tokens = self.requests.values().map(|request| request.tokens).sum();
        self.run.spend(self.spent);
    }

    /// What a hook said when a session was closed.
    pub(super) fn hook_said(&self, message: &str) {
        self.run
            .slot
            .log(json!({"type": "notice", "code": "hook", "message": message}).to_string());
    }
}

#[cfg(feature = "workflows")]
impl haft_workflows::WorkflowObserver for TaskMeter {
    fn event(&mut self, event: &Event) {
        EventSink::event(self, event);
    }

    fn closing_message(&mut self, message: &str) {
        self.hook_said(message);
    }
}

impl EventSink for TaskMeter {
    fn event(&mut self, event: &Event) {
        #[cfg(feature = "otel")]
        traces::event(event, || Some(traces::ids_of_task(&self.run.task)));
        let of = &event.conversation_id;
        match &event.body {
            EventBody::Window { tokens, .. } => {
                self.requests.entry(of.clone()).or_default().input = *tokens;
            }
            EventBody::Budget { output_reserve, .. } => self.before_request(of, *output_reserve),
            EventBody::Usage { usage, cost, .. } => {
                self.spent.usd += cost.map_or(0.0, |cost| cost.total);
                self.spent.tokens += usage.total().cast_signed();
                let request = self.requests.entry(of.clone()).or_default();
                (request.usd, request.tokens) = (0.0, 0);
                self.note();
            }
            _ => {}
        }
        if is_logged(&event.body)
            && let Ok(line) = serde_json::to_string(event)
        {
            self.run.slot.log(line);
        }
    }
}

/// Whether an event is worth a line of the log: pieces of text are in the conversation, and how a
/// request is laid out in its log.
fn is_logged(body: &EventBody) -> bool {
    !matches!(
        body,
        EventBody::Text { .. }
            | EventBody::Thinking { .. }
            | EventBody::ToolProgress { .. }
            | EventBody::ToolCall {
                phase: CallPhase::Started | CallPhase::Arguments,
                ..
            }
            | EventBody::Window { .. }
            | EventBody::Budget { .. }
            | EventBody::Reminders { .. }
    )
}
