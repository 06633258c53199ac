//! Determines how a stored conversation continues: a pure function that maps its messages to the
//! calls without results and the next position.
//!
//! Invariant: a call that has begun and has no result is never run again. Its result reports that
//! its effect is uncertain. A call of an imported message never runs.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use haft_types::{Entry, Message, MessageId, Role, StopReason, ToolCall, ToolStatus};
use serde_json::Value;

use super::{Position, Question, QuestionKind, ReplySummary, Unfinished};
use crate::names;

/// The steps that continue a conversation after it is opened again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resumption {
    /// Calls that have begun and have no result. Before the turn begins, each call gets a result
    /// that reports its effect as uncertain.
    pub(crate) uncertain: Vec<ToolCall>,
    /// Calls of an imported message. Before the turn begins, each call gets a result that reports
    /// that it did not run.
    pub(crate) imported: Vec<ToolCall>,
    /// The position at which the turn begins.
    pub(crate) position: Position,
}

/// The metadata key of a reply's stop reason, which is stored so that a resumed turn recognizes a
/// reply that was cut off.
pub(crate) const STOP_REASON_KEY: &str = "stop_reason";

/// Returns the reason why the model stopped writing the stored reply `reply`.
pub(crate) fn stored_stop_reason(reply: &Message) -> Option<StopReason> {
    serde_json::from_value(reply.metadata.get(STOP_REASON_KEY)?.clone()).ok()
}

/// Returns the calls of the last reply that have no result.
pub(crate) fn unanswered_calls(history: &[Arc<Entry>]) -> Vec<ToolCall> {
    let Some(last) = last_reply_index(history) else {
        return Vec::new();
    };
    let answered: HashSet<&str> = history[last..]
        .iter()
        .flat_map(|entry| entry.message.tool_results())
        .map(|result| result.tool_call_id.as_str())
        .collect();
    let unanswered = history[last]
        .message
        .tool_calls()
        .filter(|call| !answered.contains(call.id.as_str()));
    unanswered
        .map(|call| call.resolve_indirect().into_owned())
        .collect()
}

/// Identifies a call by the id of the reply that contains it and the id of the call. Call ids alone
/// are not unique, because some servers reuse ids in every reply.
pub(crate) type CallKey = (MessageId, String);

/// Determines how a conversation continues. `begun` contains the calls with effects that have
/// begun.
pub(crate) fn plan_resumption(
    history: &[Arc<Entry>],
    begun: &HashSet<CallKey>,
    unfinished: Option<Unfinished>,
) -> Resumption {
    let reply = last_reply_index(history).map(|index| history[index].message.message_id);
    let was_begun =
        |call: &ToolCall| reply.is_some_and(|reply| begun.contains(&(reply, call.id.clone())));
    let (uncertain, rest): (Vec<_>, Vec<_>) =
        unanswered_calls(history).into_iter().partition(was_begun);
    let is_imported =
        last_reply_index(history).is_some_and(|index| history[index].message.is_imported());
    if let Some(question) = single_question(&rest) {
        return Resumption {
            uncertain,
            imported: Vec::new(),
            position: Position::WantsAnswer(question),
        };
    }
    let (imported, rest) = if is_imported {
        (rest, Vec::new())
    } else {
        (Vec::new(), rest)
    };
    let position = if !rest.is_empty() {
        Position::WantsTools(rest)
    } else if !uncertain.is_empty() || !imported.is_empty() {
        Position::WantsReply
    } else {
        position_after_results(history, unfinished)
    };
    Resumption {
        uncertain,
        imported,
        position,
    }
}

fn single_question(calls: &[ToolCall]) -> Option<Question> {
    match calls {
        [only] if only.name == names::ASK_TOOL => {
            parse_question(only, "question", QuestionKind::Question)
        }
        [only] if only.name == names::PLAN_TOOL => {
            parse_question(only, "response", QuestionKind::Plan)
        }
        _ => None,
    }
}

/// Returns the question that a call asks the user, which is the value of its argument `argument`.
fn parse_question(call: &ToolCall, argument: &str, about: QuestionKind) -> Option<Question> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let options = arguments
        .get("options")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    Some(Question {
        question: arguments.get(argument)?.as_str()?.to_owned(),
        options: options
            .filter_map(|option| option.as_str().map(str::to_owned))
            .collect(),
        about,
    })
}

/// Returns the position of a conversation whose calls all have results: either the model has
/// answered, or it must be sent a request.
fn position_after_results(history: &[Arc<Entry>], unfinished: Option<Unfinished>) -> Position {
    if let Some(report) = completion_report(history) {
        return Position::Completed(report);
    }
    match newest_message(history) {
        Some(last) if last.message.role == Role::Assistant => Position::HasReply(ReplySummary {
            calls: Vec::new(),
            text: last.message.joined_text(),
            stop: stored_stop_reason(&last.message).unwrap_or(StopReason::EndTurn),
            unfinished,
        }),
        _ => Position::WantsReply,
    }
}

/// Returns the report on the finished task if the newest message is the result of a successful
/// completion call.
fn completion_report(history: &[Arc<Entry>]) -> Option<String> {
    let result = newest_message(history)?.message.tool_results().next()?;
    if result.envelope.status == ToolStatus::Error {
        return None;
    }
    let reply = &history[last_reply_index(history)?].message;
    let call = reply
        .tool_calls()
        .find(|call| call.id == result.tool_call_id)?
        .resolve_indirect();
    if call.name != names::COMPLETE_TOOL {
        return None;
    }
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    arguments.get("result")?.as_str().map(str::to_owned)
}

/// Returns the newest message that is not a summary. A summary replaces older messages and can be
/// added at any time.
fn newest_message(history: &[Arc<Entry>]) -> Option<&Arc<Entry>> {
    history
        .iter()
        .rfind(|entry| entry.message.role != Role::Summary)
}

fn last_reply_index(history: &[Arc<Entry>]) -> Option<usize> {
    history
        .iter()
        .rposition(|entry| entry.message.role == Role::Assistant)
}
