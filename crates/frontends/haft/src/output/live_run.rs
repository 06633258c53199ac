//! The view of a headless run at a terminal: a header, a progress line, the answer with its Markdown
//! drawn, and the cost. Nothing of it is printed if a program reads the output.

use std::collections::HashMap;
use std::time::Duration;

use haft_types::{CallPhase, CostSum, Event, EventBody, TurnResult};

use super::events::format_call;
use super::progress_line::ProgressLine;

/// The width for which Markdown is drawn if the terminal does not tell its own.
const DEFAULT_COLUMNS: usize = 80;
/// The number of characters at the start of an id that are enough to name a conversation.
const ID_CHARS: usize = 8;

/// Prints Markdown on stdout, which must be a terminal.
pub(super) fn print_markdown(text: &str) {
    let columns = haft_tui::terminal_columns().unwrap_or(DEFAULT_COLUMNS);
    let text = haft_tui::format_markdown(text.trim(), columns, super::choose_palette());
    // A terminal that is gone shows nothing.
    drop(super::print_exact(&text));
}

pub(super) struct LiveRun {
    line: ProgressLine,
    /// The titles of the calls that have not run yet, by id.
    waiting: HashMap<String, String>,
    /// The short id of the conversation.
    conversation: String,
    cost: CostSum,
    requests: u32,
}

impl LiveRun {
    /// Starts the view if the process has a terminal for it.
    pub(super) fn start() -> Option<Self> {
        Some(Self {
            line: ProgressLine::start()?,
            waiting: HashMap::new(),
            conversation: String::new(),
            cost: CostSum::default(),
            requests: 0,
        })
    }

    /// Updates the progress line, and prints the header of the run.
    pub(super) fn handle_event(&mut self, event: &Event) {
        self.count_cost(&event.body);
        match &event.body {
            EventBody::Conversation { model, .. } => {
                let id = event.conversation_id.as_str();
                self.conversation = id.chars().take(ID_CHARS).collect();
                let id = &self.conversation;
                super::print_to_stderr(&text!("output-run-header", model, id));
            }
            EventBody::ToolCall {
                id,
                name,
                phase: CallPhase::Finished,
                arguments,
                ..
            } => {
                let title = format_call(name, arguments.as_ref());
                self.waiting.insert(id.clone(), title);
            }
            EventBody::ToolCall {
                id,
                name,
                phase: CallPhase::Running,
                ..
            } => {
                let title = self
                    .waiting
                    .remove(id)
                    .unwrap_or_else(|| format_call(name, None));
                self.line.start_call(title);
            }
            EventBody::ToolProgress { text, .. } => self.line.set_output(text),
            EventBody::ToolResult { .. } => self.line.wait_for_model(),
            EventBody::ToolCall { .. }
            | EventBody::Text { .. }
            | EventBody::Thinking { .. }
            | EventBody::Usage { .. }
            | EventBody::Window { .. }
            | EventBody::Budget { .. }
            | EventBody::Reminders { .. }
            | EventBody::PrefixBreak { .. }
            | EventBody::Pruning { .. }
            | EventBody::Compaction { .. }
            | EventBody::Retry { .. }
            | EventBody::Question { .. }
            | EventBody::Plan { .. }
            | EventBody::Completion { .. }
            | EventBody::FileChanged { .. }
            | EventBody::BackgroundTask { .. }
            | EventBody::Subagent { .. }
            | EventBody::Error { .. }
            | EventBody::Notice { .. }
            | EventBody::Result(_) => {}
        }
    }

    /// Counts the cost of a request, of the main agent or of a sub-agent.
    pub(super) fn count_cost(&mut self, body: &EventBody) {
        if let EventBody::Usage { cost, .. } = body {
            self.requests += 1;
            self.cost.add(*cost);
        }
    }

    /// Removes the progress line, and prints the cost of the run and its conversation.
    pub(super) fn finish(self, result: &TurnResult) {
        let Self {
            line,
            conversation,
            cost,
            requests,
            ..
        } = self;
        drop(line);
        let elapsed = haft_tui::format_elapsed(Duration::from_millis(result.duration_ms));
        let total = cost.total().map(|cost| cost.total);
        let money = super::cost_suffix(total);
        super::print_to_stderr(&text!(
            "output-run-summary",
            count = requests,
            elapsed,
            money,
            id = conversation
        ));
    }
}
