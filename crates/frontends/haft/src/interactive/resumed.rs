//! The last messages of a conversation that is opened again, with their tool calls, its size and its
//! cost.

use std::collections::HashMap;
use std::sync::Arc;

use haft_engine::Session;
use haft_tui::{ConversationTotals, EarlierMessage, MAX_RESULTS};
use haft_types::{Entry, Origin, Role};

use super::rewind::typed_part;
use crate::commands::conversations::cost_of_request;

/// The number of rounds shown when a conversation is resumed.
const MAX_SHOWN_ROUNDS: usize = 10;

/// Returns the newest tool results of a conversation, which the user can open.
pub(super) fn collect_newest_results(history: &[Arc<Entry>]) -> Vec<EarlierMessage> {
    let mut calls = HashMap::new();
    let mut results = Vec::new();
    for message in history.iter().map(|entry| &entry.message) {
        calls.extend(message.tool_calls().map(|call| (call.id.as_str(), call)));
        for result in message.tool_results() {
            results.extend(
                calls
                    .remove(result.tool_call_id.as_str())
                    .map(|call| (call, result)),
            );
        }
    }
    // Only the results that the user can open are returned, because each is copied.
    let newest = results
        .split_off(results.len().saturating_sub(MAX_RESULTS))
        .into_iter();
    newest
        .map(|(call, result)| EarlierMessage::Result {
            tool: call.name.clone(),
            arguments: serde_json::from_str(&call.arguments).unwrap_or_default(),
            text: result.envelope.text.clone(),
        })
        .collect()
}

/// Returns the texts of the user and the model, and the calls with their results, in the last
/// [`MAX_SHOWN_ROUNDS`] rounds.
pub(super) fn collect_last_rounds(history: &[Arc<Entry>]) -> Vec<EarlierMessage> {
    let messages = || history.iter().map(|entry| &entry.message);
    let rounds = messages().filter(|message| message.opens_round()).count();
    let mut before = rounds.saturating_sub(MAX_SHOWN_ROUNDS) + 1;
    let since = messages().skip_while(|message| {
        before -= usize::from(message.opens_round());
        before > 0
    });
    let mut calls = HashMap::new();
    let mut shown = Vec::new();
    for message in since {
        match (message.role, message.origin()) {
            (Role::User, Origin::User | Origin::Joined) => shown.push(EarlierMessage::User(
                typed_part(&message.joined_text()).to_owned(),
            )),
            (Role::Assistant, _) => {
                shown.push(EarlierMessage::Model(message.joined_text()));
                calls.extend(message.tool_calls().map(|call| (call.id.as_str(), call)));
            }
            _ => {}
        }
        for result in message.tool_results() {
            let Some(call) = calls.remove(result.tool_call_id.as_str()) else {
                continue;
            };
            shown.push(EarlierMessage::Call {
                tool: call.name.clone(),
                arguments: serde_json::from_str(&call.arguments).unwrap_or_default(),
                status: result.envelope.status,
                text: result.envelope.text.clone(),
            });
        }
    }
    shown.retain(|message| match message {
        EarlierMessage::User(text) | EarlierMessage::Model(text) => !text.trim().is_empty(),
        EarlierMessage::Result { .. } | EarlierMessage::Call { .. } => true,
    });
    shown
}

/// Returns the size of the next request, and the usage and the cost of all requests so far.
pub(super) fn collect_totals(session: &Session) -> ConversationTotals {
    let mut totals = ConversationTotals::default();
    if let Some(next) = session.preview_next_request() {
        let budget = &next.account.budget;
        totals.layers.clone_from(&budget.layers);
        totals.tokens = budget.used_tokens();
        totals.window = budget.window;
    }
    let requests = session
        .history()
        .iter()
        .filter_map(|entry| entry.message.llm_metadata.as_deref());
    for made in requests {
        totals.requests += 1;
        totals.total += made.usage();
        totals.last = Some(made.usage());
        match cost_of_request(made) {
            Some(cost) => *totals.spent.get_or_insert(0.0) += cost.total,
            None => totals.unpriced = true,
        }
    }
    for kept in session.keep_alives() {
        totals.requests += 1;
        totals.total += kept.usage;
        match kept.cost {
            Some(cost) => *totals.spent.get_or_insert(0.0) += cost.total,
            None => totals.unpriced = true,
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use haft_model::O200k;
    use haft_types::{
        ContentHash, Envelope, Message, MessageId, Part, Timestamp, ToolCall, ToolResult,
    };

    use super::*;

    #[test]
    fn newest_results_are_limited_in_a_long_conversation() {
        let entry = |number: usize, role, part| {
            let id = MessageId::from_hash(ContentHash::from_content(&number.to_le_bytes()));
            Entry::new(
                Message::new(id, role, vec![part], Timestamp::UNIX_EPOCH),
                &O200k,
            )
        };
        let history: Vec<_> = (0..MAX_RESULTS + 3)
            .flat_map(|number| {
                let id = format!("c{number}");
                let call = ToolCall {
                    id: id.clone(),
                    name: "glob".into(),
                    arguments: "{}".into(),
                    signature: None,
                };
                let envelope = Envelope::success(number.to_string());
                let result = ToolResult {
                    tool_call_id: id,
                    name: "glob".into(),
                    envelope,
                };
                [
                    entry(2 * number, Role::Assistant, Part::ToolCall(call)),
                    entry(
                        2 * number + 1,
                        Role::Tool,
                        Part::ToolResult(Box::new(result)),
                    ),
                ]
            })
            .collect();
        let copied = collect_newest_results(&history);
        assert_eq!(copied.len(), MAX_RESULTS);
        assert!(matches!(&copied[0], EarlierMessage::Result { text, .. } if text == "3"));
    }
}
