//! The effects of the engine's events.

use haft_agent::MAIN_AGENT;
use haft_messages::CallHeadline;
use haft_types::{CallPhase, Event, EventBody, SubagentPhase};
use serde_json::Value;

use super::App;
use super::turn_view::translate_message;
use crate::line::TextStyle;

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
                self.turn.remove_agent(agent);
                let text = match result {
                    Some(result) => text!(
                        "app-subagent-outcome",
                        agent,
                        outcome = result.outcome.name()
                    ),
                    None => text!("app-subagent-ended", agent),
                };
                self.scrollback.print_notice(&text, TextStyle::Dim);
            }
            EventBody::ToolCall {
                name,
                phase: CallPhase::Finished,
                arguments,
                ..
            } => {
                let headline = CallHeadline::new(name, arguments.as_ref().unwrap_or(&Value::Null));
                self.turn.show_agent_action(agent, headline.to_line());
            }
            EventBody::Usage { usage, cost, .. } => self.status.add_usage(*usage, *cost),
            EventBody::Error { message, code } | EventBody::Notice { message, code } => {
                let message = translate_message(code, message);
                let text = text!("app-agent-says", agent, message);
                self.scrollback.print_notice(&text, TextStyle::Warning);
            }
            EventBody::Conversation { .. }
            | EventBody::Text { .. }
            | EventBody::Thinking { .. }
            | EventBody::ToolCall { .. }
            | EventBody::ToolResult { .. }
            | EventBody::ToolProgress { .. }
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
