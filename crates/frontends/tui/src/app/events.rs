//! The effects of the engine's events.

use haft_agent::MAIN_AGENT;
use haft_messages::CallHeadline;
use haft_text::format_thousands;
use haft_types::{CallPhase, Event, EventBody, SubagentPhase, TurnResult};
use serde_json::Value;

use super::App;
use super::activity::format_elapsed;
use super::panes::AgentWork;
use super::turn_view::translate_message;
use crate::line::{StyledLine, TextStyle};

/// The number of characters at the start of an id that are enough to name a conversation.
const ID_CHARS: usize = 8;

impl App {
    pub(super) fn handle_event(&mut self, event: &Event) {
        if !matches!(event.body, EventBody::Retry { .. }) {
            self.turn.note_activity();
        }
        if event.agent != MAIN_AGENT {
            return self.handle_subagent_event(&event.agent, &event.body);
        }
        match &event.body {
            EventBody::Conversation { model, sandbox, .. } => {
                let id = event.conversation_id.as_str();
                self.conversation = Some(id.chars().take(ID_CHARS).collect());
                self.status.model.clone_from(model);
                self.status.sandbox = sandbox.as_ref().map(|status| status.layer);
            }
            EventBody::Usage { usage, cost, .. } => {
                self.turn.count_usage(*usage);
                self.status.usage = Some(*usage);
                self.status.add_usage(*usage, *cost);
            }
            EventBody::Window { tokens, window, .. } => {
                self.status.tokens = *tokens;
                self.status.window = *window;
            }
            EventBody::Budget { layers, .. } => self.status.layers.clone_from(layers),
            EventBody::PrefixBreak {
                message, tokens, ..
            } => self.status.set_prefix_break(message, *tokens),
            body => self.turn.show_event(body, &mut self.scrollback),
        }
    }

    /// Shows a sub-agent's event in brief, because the sub-agent's own conversation has the
    /// details.
    fn handle_subagent_event(&mut self, agent: &str, body: &EventBody) {
        match body {
            EventBody::Subagent {
                phase: SubagentPhase::Started,
                task,
                ..
            } => self.turn.show_agent_action(agent, task.clone()),
            EventBody::Subagent {
                phase: SubagentPhase::Finished,
                result,
                ..
            } => {
                let work = self.turn.remove_agent(agent);
                let text = describe_agent_end(agent, result.as_deref(), work);
                self.scrollback.print_notice(&text, TextStyle::Dim);
                let answer = result.as_deref().map_or("", |result| result.text.as_str());
                if let Some(first) = answer.lines().find(|line| !line.trim().is_empty()) {
                    let columns = self.scrollback.columns();
                    let row = StyledLine::new(format!("  {}", first.trim()), TextStyle::Dim);
                    self.scrollback.print_rows(vec![row.cut(columns)]);
                }
            }
            EventBody::ToolCall {
                id,
                name,
                phase: CallPhase::Finished,
                arguments,
                ..
            } => {
                let headline = CallHeadline::new(name, arguments.as_ref().unwrap_or(&Value::Null));
                self.turn.add_agent_call(agent, id, headline.to_line());
            }
            EventBody::ToolCall {
                id,
                phase: CallPhase::Running,
                ..
            } => self.turn.start_agent_call(agent, id),
            EventBody::Usage { usage, cost, .. } => {
                self.turn.follow_agent(agent, body);
                self.status.add_usage(*usage, *cost);
            }
            EventBody::Text { .. } | EventBody::ToolProgress { .. } => {
                self.turn.follow_agent(agent, body);
            }
            EventBody::Error { message, code } | EventBody::Notice { message, code } => {
                let message = translate_message(code, message);
                let text = text!("app-agent-says", agent, message);
                self.scrollback.print_notice(&text, TextStyle::Warning);
            }
            EventBody::Conversation { .. }
            | EventBody::Thinking { .. }
            | EventBody::ToolCall { .. }
            | EventBody::ToolResult { .. }
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
            | EventBody::Result(_) => {}
        }
    }
}

/// Describes the end of a sub-agent: its outcome, time and tokens.
fn describe_agent_end(agent: &str, result: Option<&TurnResult>, work: AgentWork) -> String {
    let Some(result) = result else {
        return text!("app-subagent-ended", agent);
    };
    let outcome = result.outcome.name();
    text!(
        "app-subagent-outcome",
        agent,
        outcome,
        elapsed = format_elapsed(work.elapsed),
        tokens = format_thousands(result.usage.output.max(work.tokens))
    )
}
