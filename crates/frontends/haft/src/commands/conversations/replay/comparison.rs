//! Compares a replay with its record: requests, decisions on calls, results, and messages.

use haft_engine::{RecordedRun, ReplayedCall};
use haft_types::{Envelope, Message, Part, Role};
use serde::Serialize;

use super::difference::FieldDifference;
use super::drive::{EndedReplay, ReplayPlace};
use super::replayed_model::{ComparedOutcome, ComparedRequest};
use super::volatile::{PathNames, normalize_volatile};

/// The codes of results that haft itself gives to calls that do not run.
const REFUSAL_CODES: [&str; 5] = [
    "permission_denied",
    "hook_blocked",
    "unknown_tool",
    "cut",
    "not_closed",
];
/// A part of the reason why a call is refused in a run without a user.
const UNATTENDED: &str = "nobody can be asked in this run";

/// A replay compared with its record.
pub(super) struct RunComparison {
    pub(super) requests: Vec<ComparedRequest>,
    pub(super) calls: Vec<ComparedCall>,
    /// The differences, in the order of the conversation.
    pub(super) differences: Vec<RunDifference>,
}

/// A call with the decisions about it.
#[derive(Debug, Serialize)]
pub(super) struct ComparedCall {
    pub(super) tool: String,
    pub(super) id: String,
    /// The recorded decision: `ran`, or the code of the refusal.
    pub(super) recorded: String,
    /// Today's decision.
    pub(super) today: String,
    /// True if the call was run again and its result was compared.
    pub(super) result_compared: bool,
}

/// A difference between a replay and its record.
#[derive(Debug, Serialize)]
pub(super) struct RunDifference {
    #[serde(flatten)]
    pub(super) place: DifferencePlace,
    #[serde(flatten)]
    pub(super) difference: FieldDifference,
    /// The index of the message at which the difference shows.
    #[serde(skip)]
    position: usize,
}

/// The place of a difference.
#[derive(Debug, Serialize)]
#[serde(tag = "in", rename_all = "snake_case")]
pub(super) enum DifferencePlace {
    Request {
        number: u64,
    },
    Call {
        tool: String,
        id: String,
        /// The message that contains the call.
        message_id: String,
    },
    Message {
        #[serde(rename = "message_id")]
        id: String,
        role: Role,
    },
}

impl RunComparison {
    pub(super) fn new(replayed: EndedReplay, place: &ReplayPlace) -> Self {
        let names = PathNames::new(place);
        let recorded = replayed.recorded.as_ref();
        let mut differences = Vec::new();
        let mut calls = Vec::with_capacity(replayed.calls.len());
        for call in &replayed.calls {
            let (compared, found) = compare_call(recorded, call, &names);
            calls.push(compared);
            differences.extend(found);
        }
        differences.extend(replayed.requests.iter().filter_map(request_difference));
        differences.extend(compare_messages(recorded.messages(), &replayed.messages));
        // A stable sort: of differences at one message, the cause comes before the request.
        differences.sort_by_key(|difference| difference.position);
        Self {
            requests: replayed.requests,
            calls,
            differences,
        }
    }

    pub(super) fn is_equal(&self) -> bool {
        self.differences.is_empty()
    }
}

fn request_difference(request: &ComparedRequest) -> Option<RunDifference> {
    let difference = match &request.outcome {
        ComparedOutcome::Equal => return None,
        ComparedOutcome::Different(difference) => difference.clone(),
        ComparedOutcome::NotSent => FieldDifference {
            field: "request".to_owned(),
            recorded: vec!["sent".to_owned()],
            today: vec!["not sent".to_owned()],
        },
        ComparedOutcome::Further => FieldDifference {
            field: "request".to_owned(),
            recorded: vec!["not sent".to_owned()],
            today: vec!["sent".to_owned()],
        },
    };
    Some(RunDifference {
        place: DifferencePlace::Request {
            number: request.number,
        },
        difference,
        position: request.position,
    })
}

/// Compares the decision on a call and, if it was run again, its result.
fn compare_call(
    recorded: &RecordedRun,
    call: &ReplayedCall,
    names: &PathNames,
) -> (ComparedCall, Option<RunDifference>) {
    let result = recorded.result_of(call.reply, &call.id);
    let before = result.map(|result| &result.envelope);
    let was = before.map_or_else(
        || "ran".to_owned(),
        |before| describe_decision(before, call),
    );
    let is = call
        .refusal
        .as_ref()
        .map_or_else(|| "ran".to_owned(), error_code);
    let position = call.reply + 1;
    let message = recorded.messages().get(call.reply);
    let found = FieldDifference::between_texts("verdict", &was, &is).or_else(|| {
        let (before, today) = before.zip(call.result.as_ref())?;
        compare_results(before, today, names)
    });
    let difference = found.map(|difference| RunDifference {
        place: DifferencePlace::Call {
            tool: call.tool.clone(),
            id: call.id.clone(),
            message_id: message.map_or_else(String::new, short_id),
        },
        difference,
        position,
    });
    let compared = ComparedCall {
        tool: call.tool.clone(),
        id: call.id.clone(),
        recorded: was,
        today: is,
        result_compared: before.is_some() && call.result.is_some(),
    };
    (compared, difference)
}

/// Returns the recorded decision on a call. The code of an error result names a refusal if haft
/// refuses calls with it, or if today's refusal has that code.
fn describe_decision(recorded: &Envelope, call: &ReplayedCall) -> String {
    let Some(error) = &recorded.error else {
        return "ran".to_owned();
    };
    let code = error.code.as_str();
    let today = call.refusal.as_ref().map(error_code);
    let is_refusal = REFUSAL_CODES.contains(&code)
        || today.as_deref() == Some(code)
        || code == "outside_workspace" && error.message.contains(UNATTENDED);
    if is_refusal {
        code.to_owned()
    } else {
        "ran".to_owned()
    }
}

fn error_code(envelope: &Envelope) -> String {
    let error = envelope.error.as_ref();
    error.map_or_else(|| "ran".to_owned(), |error| error.code.clone())
}

fn compare_results(
    recorded: &Envelope,
    today: &Envelope,
    names: &PathNames,
) -> Option<FieldDifference> {
    let code = |envelope: &Envelope| {
        let error = envelope.error.as_ref();
        error.map_or_else(String::new, |error| error.code.clone())
    };
    let text = |envelope: &Envelope| normalize_volatile(&envelope.text, names);
    FieldDifference::between_texts("result.error", &code(recorded), &code(today))
        .or_else(|| FieldDifference::between_texts("result.text", &text(recorded), &text(today)))
}

/// Compares the messages of the recorded run with those of today's session, up to the first
/// difference.
fn compare_messages(recorded: &[Message], today: &[Message]) -> Option<RunDifference> {
    for index in 0..recorded.len().max(today.len()) {
        let old = recorded.get(index);
        let new = today.get(index);
        let message = old.or(new)?;
        let text = |message: Option<&Message>| message.map_or_else(String::new, message_text);
        let role = |message: Option<&Message>| {
            message.map_or_else(String::new, |message| message.role.to_string())
        };
        let found = FieldDifference::between_texts("role", &role(old), &role(new))
            .or_else(|| FieldDifference::between_texts("content", &text(old), &text(new)));
        if let Some(difference) = found {
            return Some(RunDifference {
                place: DifferencePlace::Message {
                    id: short_id(message),
                    role: message.role,
                },
                difference,
                position: index,
            });
        }
    }
    None
}

fn short_id(message: &Message) -> String {
    message.message_id.short_id().to_string()
}

/// Returns everything in a message that is sent.
fn message_text(message: &Message) -> String {
    let parts = message.content.iter().map(|part| match part {
        Part::Text { text, .. } => text.clone(),
        Part::Thinking(thinking) => thinking.text.clone(),
        Part::ToolCall(call) => format!("{} {}", call.name, call.arguments),
        Part::ToolResult(result) => result.envelope.text.clone(),
        Part::Image(image) => format!("{} of {} bytes", image.media_type, image.data.len()),
    });
    parts.collect::<Vec<_>>().join("\n")
}
