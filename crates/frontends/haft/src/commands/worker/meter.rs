//! What a run of a task logs and spends: noted with the queue before a request is sent, and after it was answered.

use haft_engine::EventSink;
use haft_postgres::TaskSpending;
use haft_types::{CallPhase, Event, EventBody, Price};
use haft_worker::TaskRun;

/// Listens to a run.
pub(super) struct TaskMeter<'a> {
    run: &'a TaskRun,
    price: Option<Price>,
    spent: TaskSpending,
    /// Whether the worst a request may cost is noted before it is sent.
    limited: bool,
    /// Tokens of the request that is being put together.
    input: u64,
}

impl<'a> TaskMeter<'a> {
    pub(super) fn new(run: &'a TaskRun, price: Option<Price>) -> Self {
        let task = &run.task;
        let spent = TaskSpending { usd: task.spent_usd, tokens: task.spent_tokens, ..TaskSpending::default() };
        let limited = task.usd_limit.is_some() || task.token_limit.is_some();
        Self { run, price, spent, limited, input: 0 }
    }

    /// A request is about to be sent: should this worker be lost, it counts as if it had cost the most it can.
    fn before_request(&mut self, output: u64) {
        if !self.limited {
            return;
        }
        let (input, out) = self.price.map_or((0.0, 0.0), |price| price.dearest(self.input));
        self.spent.flying_usd = input + output as f64 * out;
        self.spent.flying_tokens = (self.input + output).cast_signed();
        self.run.spend(self.spent);
    }
}

impl EventSink for TaskMeter<'_> {
    fn event(&mut self, event: &Event) {
        match &event.body {
            EventBody::Window { tokens, .. } => self.input = *tokens,
            EventBody::Budget { output_reserve, .. } => self.before_request(*output_reserve),
            EventBody::Usage { usage, cost, .. } => {
                self.spent.usd += cost.map_or(0.0, |cost| cost.total);
                self.spent.tokens += usage.total().cast_signed();
                (self.spent.flying_usd, self.spent.flying_tokens) = (0.0, 0);
                self.run.spend(self.spent);
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

/// Whether an event is worth a line of the log: pieces of text are in the conversation, and how a request is laid out in its log.
fn is_logged(body: &EventBody) -> bool {
    !matches!(
        body,
        EventBody::Text { .. }
            | EventBody::Thinking { .. }
            | EventBody::ToolProgress { .. }
            | EventBody::ToolCall { phase: CallPhase::Started | CallPhase::Arguments, .. }
            | EventBody::Window { .. }
            | EventBody::Budget { .. }
            | EventBody::Reminders { .. }
    )
}
