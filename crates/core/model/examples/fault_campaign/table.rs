//! Every fault, and what must come of it. Written before the first run; in words in
//! `docs/faults.md`.

use std::fmt::Display;

use haft_testkit::{Garbage, Reply, ScriptedError};
use haft_types::Api;

use crate::recorded::{Phase, Recorded, is_of_call};

/// What must come of a request whose first try meets the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The reply counts as if nothing had been.
    Whole,
    /// The reply counts; its words may differ from the recorded ones, which nobody could tell. No
    /// call runs twice.
    Altered,
    /// Nothing of the reply counts; the request is sent once more and that reply counts.
    Again,
    /// Nothing counts and nothing is sent again; the error has this code.
    Refused(&'static str),
}

/// One fault done to one reply.
pub(crate) struct Case {
    pub(crate) api: Api,
    /// The recorded reply it is compared with, by its number among all.
    pub(crate) recorded: usize,
    /// The kind of fault and the phase it comes in, for the summary.
    pub(crate) kind: &'static str,
    pub(crate) phase: &'static str,
    /// Which one exactly.
    pub(crate) detail: String,
    /// What the server says to the first try.
    pub(crate) reply: Reply,
    /// The wait the client must choose, where the server names one.
    pub(crate) wait_ms: Option<u64>,
    /// Whether the client has had a valid reply before.
    pub(crate) age: Age,
    pub(crate) outcome: Outcome,
}

/// Whether a server has proved itself to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    First,
    Later,
}

/// Every case there is.
pub(crate) fn all(recorded: &[Recorded]) -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, reply) in recorded.iter().enumerate() {
        let mut one = OfReply {
            number,
            reply,
            cases: &mut cases,
        };
        one.cuts();
        one.duplicates();
        one.unknown();
        one.unreadable();
        one.error_events();
        one.wrong_usage();
        one.slow();
    }
    for api in Api::ALL {
        let number = recorded
            .iter()
            .position(|reply| reply.api == api)
            .unwrap_or_default();
        statuses(api, number, &mut cases);
    }
    cases
}

fn stream(body: Vec<u8>) -> Reply {
    Reply {
        garbage: Some(Garbage {
            body,
            content_type: "text/event-stream".into(),
        }),
        ..Reply::default()
    }
}

struct OfReply<'a> {
    number: usize,
    reply: &'a Recorded,
    cases: &'a mut Vec<Case>,
}

impl OfReply<'_> {
    fn add(
        &mut self,
        kind: &'static str,
        phase: &'static str,
        detail: impl Display,
        reply: Reply,
        outcome: Outcome,
    ) {
        let detail = format!("{} `{}` {detail}", self.reply.api, self.reply.name);
        self.cases.push(Case {
            api: self.reply.api,
            recorded: self.number,
            kind,
            phase,
            detail,
            reply,
            wait_ms: None,
            age: Age::First,
            outcome,
        });
    }

    /// The phase a byte stands in.
    fn phase_at(&self, byte: usize) -> &'static str {
        let mut end = 0;
        for (number, event) in self.reply.events.iter().enumerate() {
            end += event.len();
            if byte < end {
                return self.reply.phase(number).name();
            }
        }
        Phase::Tail.name()
    }

    /// The connection breaks, or the stream ends, after every byte.
    fn cuts(&mut self) {
        let whole = self.reply.bytes();
        for at in 0..whole.len() {
            let outcome = if at >= self.reply.ends_at() {
                Outcome::Whole
            } else {
                Outcome::Again
            };
            let phase = self.phase_at(at);
            let dropped = Reply {
                drop_after_bytes: Some(at),
                ..stream(whole.clone())
            };
            self.add(
                "connection dropped",
                phase,
                format!("after byte {at}"),
                dropped,
                outcome,
            );
            let ended = stream(whole.get(..at).unwrap_or_default().to_vec());
            self.add(
                "stream ended early",
                phase,
                format!("after byte {at}"),
                ended,
                outcome,
            );
        }
    }

    fn duplicates(&mut self) {
        for (number, event) in self.reply.events.iter().enumerate() {
            let body = self.reply.with(number, event.as_bytes());
            let outcome = self.duplicated(number, event);
            let phase = self.reply.phase(number).name();
            self.add(
                "event twice",
                phase,
                format!("event {number}"),
                stream(body),
                outcome,
            );
        }
    }

    fn duplicated(&self, number: usize, event: &str) -> Outcome {
        let says = |word: &str| event.contains(word);
        let unreadable = match self.reply.api {
            // Blocks are opened and closed once.
            Api::Anthropic => says("\"content_block_start\"") || says("\"content_block_stop\""),
            // A call behind the end.
            Api::OpenaiChat => is_of_call(event) && number == self.reply.ending(),
            // Calls are whole here, and mostly without an id: the same event twice would be a call
            // made twice.
            Api::Gemini => is_of_call(event),
            Api::OpenaiResponses => false,
        };
        let counts_as_it_is = match self.reply.api {
            // The closed item counts, not its pieces.
            Api::OpenaiResponses => true,
            Api::Anthropic => !says("\"content_block_delta\""),
            Api::OpenaiChat | Api::Gemini => false,
        };
        match (unreadable, counts_as_it_is) {
            (true, _) => Outcome::Again,
            (false, true) => Outcome::Whole,
            (false, false) => Outcome::Altered,
        }
    }

    /// What is added to the protocols later is no fault.
    fn unknown(&mut self) {
        let additions: &[&str] = match self.reply.api {
            Api::OpenaiChat => &[
                "data: {\"choices\":[{\"index\":0,\"delta\":{\"hologram\":{\"x\":1}},\"finish_reason\":null}]}\n\n",
                "event: hologram\nhologram: 1\n\n",
                ": a comment\n\n",
            ],
            Api::OpenaiResponses => &[
                "data: {\"type\":\"response.hologram.delta\",\"output_index\":90,\"delta\":\"x\"}\n\n",
                "data: {\"type\":\"response.output_item.added\",\"output_index\":90,\"item\":{\"type\":\"hologram\"}}\n\ndata: {\"type\":\"response.output_item.done\",\"output_index\":90,\"item\":{\"type\":\"hologram\"}}\n\n",
                ": a comment\n\n",
            ],
            Api::Anthropic => &[
                "data: {\"type\":\"hologram\",\"x\":[1]}\n\n",
                "data: {\"type\":\"content_block_start\",\"index\":90,\"content_block\":{\"type\":\"hologram\"}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":90,\"delta\":{\"type\":\"hologram_delta\"}}\n\ndata: {\"type\":\"content_block_stop\",\"index\":90}\n\n",
                ": a comment\n\n",
            ],
            Api::Gemini => &[
                "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"hologram\":{\"x\":1}}]},\"index\":0}]}\n\n",
                "data: {\"candidates\":[{\"index\":0,\"hologram\":1}],\"holograms\":[]}\n\n",
                ": a comment\n\n",
            ],
        };
        for number in 0..=self.reply.events.len() {
            for (which, addition) in additions.iter().enumerate() {
                let body = self.reply.with(number, addition.as_bytes());
                let phase = self.reply.phase(number).name();
                self.add(
                    "unknown block",
                    phase,
                    format!("{which} before event {number}"),
                    stream(body),
                    Outcome::Whole,
                );
            }
        }
    }

    /// Bytes that are no event of the protocol: nothing is skipped or repaired.
    fn unreadable(&mut self) {
        let pieces: [(&str, &[u8]); 5] = [
            ("half an object", b"data: {\"type\":\n\n"),
            ("no JSON", b"data: <html>502</html>\n\n"),
            ("no object", b"data: 5\n\n"),
            ("no UTF-8", b"data: {\"type\":\"\xff\xfe\"}\n\n"),
            ("a key twice", b"data: {\"type\":\"ping\",\"type\":\"ping\",\"choices\":[],\"choices\":[],\"candidates\":[],\"candidates\":[]}\n\n"),
        ];
        for number in 0..=self.reply.events.len() {
            for (what, piece) in pieces {
                let outcome = if number > self.reply.closing() {
                    Outcome::Whole
                } else {
                    Outcome::Again
                };
                let body = self.reply.with(number, piece);
                let phase = self.reply.phase(number).name();
                self.add(
                    "unreadable event",
                    phase,
                    format!("{what} before event {number}"),
                    stream(body),
                    outcome,
                );
            }
        }
    }

    fn error_events(&mut self) {
        let errors: &[(&str, Outcome)] = match self.reply.api {
            Api::OpenaiChat => &[
                (
                    r#"{"error":{"message":"Oops","type":"server_error","code":null}}"#,
                    Outcome::Again,
                ),
                (
                    r#"{"error":{"message":"Slow down","type":"requests","code":"rate_limit_exceeded"}}"#,
                    Outcome::Again,
                ),
                (
                    r#"{"error":{"message":"No","type":"invalid_request_error","code":null}}"#,
                    REFUSED,
                ),
                (
                    r#"{"error":{"message":"No","type":"invalid_request_error","code":"invalid_api_key"}}"#,
                    UNAUTHORIZED,
                ),
                (
                    r#"{"error":{"message":"No","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                    SPENT,
                ),
            ],
            Api::OpenaiResponses => &[
                (
                    r#"{"type":"error","code":"server_error","message":"Oops"}"#,
                    Outcome::Again,
                ),
                (
                    r#"{"type":"error","code":"rate_limit_exceeded","message":"Slow down"}"#,
                    Outcome::Again,
                ),
                (
                    r#"{"type":"response.failed","response":{"status":"failed","output":[],"error":{"code":"server_error","message":"Oops"}}}"#,
                    Outcome::Again,
                ),
                (
                    r#"{"type":"error","code":"invalid_prompt","message":"No"}"#,
                    REFUSED,
                ),
                (
                    r#"{"type":"error","code":"insufficient_quota","message":"No"}"#,
                    SPENT,
                ),
            ],
            Api::Anthropic => &[
                (
                    r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                    Outcome::Again,
                ),
                (
                    r#"{"type":"error","error":{"type":"api_error","message":"Oops"}}"#,
                    Outcome::Again,
                ),
                (
                    r#"{"type":"error","error":{"type":"rate_limit_error","message":"Slow down"}}"#,
                    Outcome::Again,
                ),
                (
                    r#"{"type":"error","error":{"type":"invalid_request_error","message":"No"}}"#,
                    REFUSED,
                ),
                (
                    r#"{"type":"error","error":{"type":"billing_error","message":"No"}}"#,
                    SPENT,
                ),
            ],
            Api::Gemini => &[
                (
                    r#"{"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}"#,
                    Outcome::Again,
                ),
                (
                    r#"{"error":{"code":429,"message":"Slow down","status":"RESOURCE_EXHAUSTED"}}"#,
                    Outcome::Again,
                ),
                (
                    r#"{"error":{"code":400,"message":"No","status":"INVALID_ARGUMENT"}}"#,
                    REFUSED,
                ),
                (
                    r#"{"error":{"code":401,"message":"No","status":"UNAUTHENTICATED"}}"#,
                    UNAUTHORIZED,
                ),
                (
                    r#"{"error":{"code":429,"message":"over your spending cap","status":"RESOURCE_EXHAUSTED"}}"#,
                    SPENT,
                ),
            ],
        };
        for number in 0..=self.reply.events.len() {
            for (error, outcome) in errors {
                let outcome = if number > self.reply.closing() {
                    Outcome::Whole
                } else {
                    *outcome
                };
                let body = self
                    .reply
                    .with(number, format!("data: {error}\n\n").as_bytes());
                let phase = self.reply.phase(number).name();
                self.add(
                    "error event",
                    phase,
                    format!("{error} before event {number}"),
                    stream(body),
                    outcome,
                );
            }
        }
    }

    /// A server that counts wrongly has still answered.
    fn wrong_usage(&mut self) {
        const WRONG: [&str; 10] = [
            "\"12\"",
            "-5",
            "1.5",
            "null",
            "{}",
            "[1]",
            "true",
            "18446744073709551615",
            "1e300",
            "99999999999999999999999999",
        ];
        let text = self.reply.events.concat();
        let counts = text
            .match_indices("okens\":")
            .chain(text.match_indices("TokenCount\":"));
        let objects = text
            .match_indices("\"usage\":")
            .chain(text.match_indices("\"usageMetadata\":"));
        let places: Vec<usize> = counts
            .chain(objects)
            .map(|(at, key)| at + key.len())
            .collect();
        for at in places {
            let Some((before, after)) = text.split_at_checked(at) else {
                continue;
            };
            let length = if after.starts_with('{') {
                object_length(after)
            } else {
                number_length(after)
            };
            for wrong in WRONG {
                let body = format!("{before}{wrong}{}", after.get(length..).unwrap_or_default());
                let phase = self.phase_at(at);
                self.add(
                    "wrong usage",
                    phase,
                    format!("{wrong} at byte {at}"),
                    stream(body.into_bytes()),
                    Outcome::Whole,
                );
            }
        }
    }

    fn slow(&mut self) {
        let whole = self.reply.bytes();
        let trickle = Reply {
            chunk_bytes: Some(1),
            ..stream(whole.clone())
        };
        self.add(
            "slow server",
            "throughout",
            "byte by byte".to_owned(),
            trickle,
            Outcome::Whole,
        );
        let ends = self.reply.ends_at();
        for at in [1, ends / 3, ends - 1, ends] {
            let outcome = if at >= ends {
                Outcome::Whole
            } else {
                Outcome::Again
            };
            // With nothing behind it there is no silence, only the end.
            if at < whole.len() {
                let phase = self.phase_at(at);
                let silent = Reply {
                    chunk_bytes: Some(at),
                    delta_delay_ms: 600_000,
                    ..stream(whole.clone())
                };
                self.add(
                    "server falls silent",
                    phase,
                    format!("after byte {at}"),
                    silent,
                    outcome,
                );
            }
        }
        let late = Reply {
            delay_ms: 600_000,
            ..stream(whole)
        };
        self.add(
            "server falls silent",
            "before the head",
            String::new(),
            late,
            Outcome::Again,
        );
    }
}

/// The length of the object that a text begins with. No string in a usage holds a brace.
fn object_length(text: &str) -> usize {
    let mut depth = 0_i32;
    for (at, byte) in text.bytes().enumerate() {
        depth += i32::from(byte == b'{') - i32::from(byte == b'}');
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

fn number_length(text: &str) -> usize {
    text.find([',', '}']).unwrap_or(text.len())
}

const REFUSED: Outcome = Outcome::Refused("request_refused");
const UNAUTHORIZED: Outcome = Outcome::Refused("unauthorized");
const SPENT: Outcome = Outcome::Refused("spend_limit");

/// Statuses, with and without a hint when to come back, in the API's words and as a page; to a new
/// client and a known one.
fn statuses(api: Api, recorded: usize, cases: &mut Vec<Case>) {
    const STATUSES: [(u16, Outcome); 18] = [
        (400, REFUSED),
        (401, UNAUTHORIZED),
        (402, SPENT),
        (403, UNAUTHORIZED),
        (404, REFUSED),
        (405, REFUSED),
        (408, Outcome::Again),
        (409, Outcome::Again),
        (413, REFUSED),
        (422, REFUSED),
        (425, Outcome::Again),
        (429, Outcome::Again),
        (500, Outcome::Again),
        (502, Outcome::Again),
        (503, Outcome::Again),
        (504, Outcome::Again),
        (520, Outcome::Again),
        (529, Outcome::Again),
    ];
    let mut add = |kind, detail: String, reply: Reply, wait_ms, age, outcome| {
        let phase = match age {
            Age::First => "instead of the first reply",
            Age::Later => "instead of a later reply",
        };
        let detail = format!("{api} {detail}");
        cases.push(Case {
            api,
            recorded,
            kind,
            phase,
            detail,
            reply,
            wait_ms,
            age,
            outcome,
        });
    };
    for age in [Age::First, Age::Later] {
        for (status, outcome) in STATUSES {
            for (hint, wait) in [(None, None), (Some(0.0), Some(0)), (Some(0.003), Some(3))] {
                let reply = Reply {
                    retry_after: hint,
                    ..Reply::error(status, "as the script says")
                };
                let wait = wait.filter(|_| outcome == Outcome::Again);
                add(
                    "status",
                    format!("{status}, hint {hint:?}"),
                    reply,
                    wait,
                    age,
                    outcome,
                );
            }
            let page = Garbage {
                body: b"<html>no</html>".to_vec(),
                content_type: "text/html".into(),
            };
            let reply = Reply {
                status: Some(status),
                garbage: Some(page),
                ..Reply::default()
            };
            // A page under such a status comes from something that is no API.
            let outcome = if matches!(status, 404 | 405) {
                Outcome::Refused("not_an_api")
            } else {
                outcome
            };
            add(
                "status with a page",
                status.to_string(),
                reply,
                None,
                age,
                outcome,
            );
            // A body that breaks off says as much as none.
            let cut = Reply {
                drop_after_bytes: Some(5),
                ..Reply::error(status, "as the script says")
            };
            let outcome = if matches!(status, 404 | 405) {
                Outcome::Refused("not_an_api")
            } else {
                outcome
            };
            add("status, cut", status.to_string(), cut, None, age, outcome);
        }
        for message in [
            "You have reached your spend limit.",
            "Your credit balance is too low.",
        ] {
            let error = ScriptedError::new(message);
            let reply = Reply {
                status: Some(429),
                error: Some(error),
                ..Reply::default()
            };
            add("spend limit", message.to_owned(), reply, None, age, SPENT);
        }
        for (body, kind) in [
            ("<!doctype html><title>Hi</title>", "text/html"),
            ("{\"ok\":true}", "application/json"),
            ("", "text/html"),
            ("", "text/event-stream"),
            (": nothing\n\n", "text/event-stream"),
            ("no events at all", "text/event-stream"),
        ] {
            let garbage = Garbage {
                body: body.as_bytes().to_vec(),
                content_type: kind.into(),
            };
            let reply = Reply {
                garbage: Some(garbage),
                ..Reply::default()
            };
            add(
                "no reply at all",
                format!("{kind} {body:?}"),
                reply,
                None,
                age,
                Outcome::Again,
            );
        }
    }
}
