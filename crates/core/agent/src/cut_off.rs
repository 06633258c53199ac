//! Recognizes a conversation whose last turn did not end.

use std::sync::Arc;

use haft_types::{Entry, Role, ToolCall};

/// Tools that end a turn, or wait for the user.
const ENDING_TOOLS: [&str; 3] = [
    "attempt_completion",
    "ask_followup_question",
    "plan_mode_respond",
];

/// Returns true if the last turn was cut off before its end.
pub fn is_cut_off(history: &[Arc<Entry>]) -> bool {
    let Some(reply) = history
        .iter()
        .rposition(|entry| entry.message.role == Role::Assistant)
    else {
        return !history.is_empty();
    };
    let waits = |call: &ToolCall| ENDING_TOOLS.contains(&call.name.as_str());
    match history[reply].message.tool_calls().next() {
        Some(_) => !history[reply].message.tool_calls().any(waits),
        None => reply + 1 < history.len(),
    }
}
