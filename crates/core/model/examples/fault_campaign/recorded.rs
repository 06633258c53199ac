//! The replies that faults are done to, cut into events, and what is known of each event without
//! decoding it.

use std::error::Error;
use std::fs;
use std::path::Path;

use haft_types::Api;

/// A recorded reply.
pub(crate) struct Recorded {
    pub(crate) api: Api,
    pub(crate) name: &'static str,
    /// Its events, each with the blank line that ends it.
    pub(crate) events: Vec<String>,
}

/// Where in a reply an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Opening,
    Words,
    Call,
    /// The event that ends the message.
    End,
    /// Behind it, while more may follow.
    Tail,
}

impl Phase {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Opening => "at the opening",
            Self::Words => "in words",
            Self::Call => "in a call",
            Self::End => "at the end",
            Self::Tail => "behind the end",
        }
    }
}

const NAMES: [(Api, [&str; 5]); 4] = [
    (
        Api::OpenaiChat,
        [
            "text",
            "parallel-calls",
            "interleaved-calls",
            "reasoning",
            "cut-by-length",
        ],
    ),
    (
        Api::OpenaiResponses,
        [
            "text",
            "reasoning-and-call",
            "unknown-items",
            "incomplete",
            "only-the-end",
        ],
    ),
    (
        Api::Anthropic,
        [
            "text",
            "thinking-and-parallel-calls",
            "redacted-and-unknown-blocks",
            "cut-by-length",
            "a-long-call",
        ],
    ),
    (
        Api::Gemini,
        [
            "text",
            "thoughts-signatures-calls",
            "signed-text",
            "ids-of-its-own",
            "cut-by-length",
        ],
    ),
];

/// Five replies of each API.
pub(crate) fn all() -> Result<Vec<Recorded>, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/replies");
    let mut all = Vec::new();
    for (api, names) in NAMES {
        for name in names {
            let text = fs::read_to_string(folder.join(api.name()).join(format!("{name}.sse")))?;
            let events = text
                .split_inclusive("\n\n")
                .filter(|event| !event.trim().is_empty());
            all.push(Recorded {
                api,
                name,
                events: events.map(str::to_owned).collect(),
            });
        }
    }
    Ok(all)
}

impl Recorded {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.events.concat().into_bytes()
    }

    /// The number of the event that ends the message.
    pub(crate) fn ending(&self) -> usize {
        let ends = |event: &String| match self.api {
            Api::OpenaiChat => event.contains("\"finish_reason\":\""),
            Api::OpenaiResponses => {
                event.contains("\"type\":\"response.completed\"")
                    || event.contains("\"type\":\"response.incomplete\"")
            }
            Api::Anthropic => event.contains("\"type\":\"message_stop\""),
            Api::Gemini => event.contains("\"finishReason\":"),
        };
        self.events
            .iter()
            .position(ends)
            .unwrap_or(self.events.len())
    }

    /// How many bytes there are up to and with the event that ends the message.
    pub(crate) fn ends_at(&self) -> usize {
        self.events
            .iter()
            .take(self.ending() + 1)
            .map(String::len)
            .sum()
    }

    /// The number of the event after which nothing is read any more: the ending one, or what
    /// follows it where usage may.
    pub(crate) fn closing(&self) -> usize {
        match self.api {
            Api::OpenaiResponses | Api::Anthropic => self.ending(),
            Api::OpenaiChat => self
                .events
                .iter()
                .position(|event| event.contains("[DONE]"))
                .unwrap_or(usize::MAX),
            Api::Gemini => usize::MAX,
        }
    }

    /// Where an event stands; a number behind the last is behind the end.
    pub(crate) fn phase(&self, number: usize) -> Phase {
        let Some(event) = self.events.get(number) else {
            return Phase::Tail;
        };
        match number.cmp(&self.ending()) {
            std::cmp::Ordering::Greater => Phase::Tail,
            std::cmp::Ordering::Equal => Phase::End,
            std::cmp::Ordering::Less if number == 0 => Phase::Opening,
            std::cmp::Ordering::Less if is_of_call(event) => Phase::Call,
            std::cmp::Ordering::Less => Phase::Words,
        }
    }

    /// The reply with this put before the event of that number.
    pub(crate) fn with(&self, number: usize, put: &[u8]) -> Vec<u8> {
        let mut bytes = self
            .events
            .get(..number)
            .unwrap_or_default()
            .concat()
            .into_bytes();
        bytes.extend_from_slice(put);
        bytes.extend_from_slice(
            self.events
                .get(number..)
                .unwrap_or_default()
                .concat()
                .as_bytes(),
        );
        bytes
    }
}

pub(crate) fn is_of_call(event: &str) -> bool {
    [
        "tool_use\"",
        "input_json",
        "\"tool_calls\":[{",
        "function_call",
        "functionCall",
    ]
    .iter()
    .any(|word| event.contains(word))
}
