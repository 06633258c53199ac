//! Prints the events of sub-agents, one line each. The answers of sub-agents are not printed: they
//! go to the agent that started them.

use haft_types::{CallPhase, Event, EventBody, SubagentPhase, ToolStatus};

use super::events::{format_call, format_result_lines};

pub(super) fn print_subagent_event(event: &Event, verbose: bool) {
    let agent = &event.agent;
    let line = match &event.body {
        EventBody::Subagent {
            phase: SubagentPhase::Started,
            model,
            ..
        } => text!("output-subagent-started", model),
        EventBody::Subagent {
            phase: SubagentPhase::Finished,
            result: Some(result),
            ..
        } => {
            text!(
                "output-subagent-ended",
                message = haft_messages::translate_error(&result.message)
            )
        }
        EventBody::ToolCall {
            name,
            phase: CallPhase::Finished,
            arguments,
            ..
        } => {
            format!("• {}", format_call(name, arguments.as_ref()))
        }
        EventBody::ToolResult { status, text, .. } if verbose || *status == ToolStatus::Error => {
            format!(
                "\n{}",
                format_result_lines(*status, text, if verbose { 40 } else { 6 })
            )
        }
        EventBody::Error { message, code } | EventBody::Notice { message, code } => {
            haft_tui::translate_message(code, message)
        }
        EventBody::Compaction { message, .. }
        | EventBody::Pruning { message, .. }
        | EventBody::BackgroundTask { message, .. } => {
            haft_messages::translate_error(message).into_owned()
        }
        EventBody::Retry {
            attempt, reason, ..
        } => {
            text!(
                "output-subagent-retry",
                attempt,
                reason = haft_messages::translate_error(reason)
            )
        }
        EventBody::Question { question, .. } => format!("? {question}"),
        EventBody::Subagent { .. }
        | EventBody::Conversation { .. }
        | EventBody::Text { .. }
        | EventBody::Thinking { .. }
        | EventBody::ToolCall { .. }
        | EventBody::ToolResult { .. }
        | EventBody::ToolProgress { .. }
        | EventBody::Usage { .. }
        | EventBody::Window { .. }
        | EventBody::Budget { .. }
        | EventBody::Reminders { .. }
        | EventBody::PrefixBreak { .. }
        | EventBody::Completion { .. }
        | EventBody::Plan { .. }
        | EventBody::FileChanged { .. }
        | EventBody::Result(_) => return,
    };
    super::print_to_stderr(&format!("[{agent}] {line}"));
}
