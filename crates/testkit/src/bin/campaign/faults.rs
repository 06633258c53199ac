//! Checks that haft runs a command at most once despite faults of the model's server, and that the
//! run ends as the table in `docs/faults.md` specifies.
//!
//! A small sample, with the real binary, of what the example `fault_campaign` of `haft-model` tests
//! in one process for every byte. This campaign also covers the engine's gate, the store and the
//! exit code. The task is one command, then an answer; one of the two replies has the fault. The
//! seed selects the API, the kind of fault and the reply. `docs/faults.md` describes the table.

use std::time::Duration;

use haft_testkit::support::{Campaign, HaftCase, Random, Trial};
use haft_testkit::{
    Garbage, Replace, Reply, Script, ScriptCall, ScriptedError, ScriptedServer, Stop,
};
use haft_types::Api;
use serde_json::{Value, json};

use crate::kill::process::{EndedRun, Running};
use crate::kill::workspace::Workspace;

pub(crate) const CAMPAIGN: Campaign = Campaign {
    name: "faults",
    about: "Whatever a model's server does wrong, a command runs once or not at all, and the run ends as the table says.",
    trial: Trial::WithHaft(run_case),
};

/// The time limit for a run. It is far above the usual duration, so a run that exceeds it hangs.
const RUN_TIMEOUT: Duration = Duration::from_mins(1);
const ANSWER: &str = "The command was run. Grüße, 世界.";
/// A number of bytes that is less than the size of any streamed reply.
const MIN_STREAM_BYTES: usize = 6_000;

/// The reply to which the fault is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Call,
    Answer,
}

/// A fault of the model's server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Dropped,
    EndMissing,
    ErrorEvent,
    Status,
    StatusWithHint,
    Page,
    NotUtf8,
    Refusal,
    SpendLimit,
    BadKey,
    BrokenArguments,
    KeyTwice,
    WordsBehindArguments,
    CutByLength,
}

const FAULTS: [Fault; 14] = [
    Fault::Dropped,
    Fault::EndMissing,
    Fault::ErrorEvent,
    Fault::Status,
    Fault::StatusWithHint,
    Fault::Page,
    Fault::NotUtf8,
    Fault::Refusal,
    Fault::SpendLimit,
    Fault::BadKey,
    Fault::BrokenArguments,
    Fault::KeyTwice,
    Fault::WordsBehindArguments,
    Fault::CutByLength,
];

/// The expected outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expected {
    code: i32,
    retries: usize,
    requests: usize,
    /// The number of times that the command took effect.
    effects: usize,
}

impl Fault {
    /// True if the fault can occur only in a reply with a tool call.
    fn needs_call(self) -> bool {
        matches!(
            self,
            Self::BrokenArguments | Self::KeyTwice | Self::WordsBehindArguments | Self::CutByLength
        )
    }

    /// Returns the outcome that the table in `docs/faults.md` specifies for a fault in the reply
    /// `at`.
    fn expected_outcome(self, at: Target) -> Expected {
        let effects = usize::from(at == Target::Answer);
        let before = 1 + effects;
        match self {
            // The reply is discarded and requested once more.
            Self::Dropped
            | Self::EndMissing
            | Self::ErrorEvent
            | Self::Status
            | Self::StatusWithHint
            | Self::Page
            | Self::NotUtf8 => Expected {
                code: 0,
                retries: 1,
                requests: 3,
                effects: 1,
            },
            // A retry would not help. Without any valid reply, the run fails as a configuration
            // error.
            Self::Refusal | Self::SpendLimit | Self::BadKey => Expected {
                code: if effects == 0 { 2 } else { 1 },
                retries: 0,
                requests: before,
                effects,
            },
            // The reply is kept, but its call doesn't run.
            Self::BrokenArguments | Self::KeyTwice | Self::WordsBehindArguments => Expected {
                code: 0,
                retries: 0,
                requests: 2,
                effects: 0,
            },
            // The reply is continued, and the next reply repeats the call.
            Self::CutByLength => Expected {
                code: 0,
                retries: 0,
                requests: 3,
                effects: 1,
            },
        }
    }

    /// Returns a copy of `reply` that has the fault.
    fn apply_to(self, reply: Reply, at: Target, random: &mut Random) -> Reply {
        let error = |status: u16, message: &str| Reply::error(status, message);
        let arguments = |text: &str| Reply {
            tool_calls: vec![build_command_call(text.into())],
            ..reply.clone()
        };
        match self {
            Self::Dropped => Reply {
                drop_after_bytes: Some(random.below(MIN_STREAM_BYTES)),
                ..reply
            },
            Self::EndMissing => Reply {
                omit_end: true,
                ..reply
            },
            Self::ErrorEvent => {
                let status = random.choose(&[429, 500, 503, 529]).copied();
                Reply {
                    error_event_after: Some(random.below(40)),
                    status,
                    ..reply
                }
            }
            Self::Status => error(
                random
                    .choose(&[408, 409, 429, 500, 502, 503, 504, 529])
                    .copied()
                    .unwrap_or(500),
                "busy",
            ),
            Self::StatusWithHint => {
                let status = random.choose(&[429, 503, 529]).copied().unwrap_or(429);
                Reply {
                    retry_after: Some(0.0),
                    ..error(status, "come back at once")
                }
            }
            Self::Page => {
                let page = Garbage {
                    body: b"<html>gateway</html>".to_vec(),
                    content_type: "text/html".into(),
                };
                Reply {
                    garbage: Some(page),
                    ..Reply::default()
                }
            }
            Self::NotUtf8 => {
                let find = if at == Target::Call {
                    "padding"
                } else {
                    "words"
                };
                Reply {
                    replace: Some(Replace {
                        find: find.into(),
                        with: vec![0xff, 0xfe],
                    }),
                    delta_chars: Some(500),
                    ..reply
                }
            }
            Self::Refusal => error(
                random.choose(&[400, 413, 422]).copied().unwrap_or(400),
                "no",
            ),
            Self::SpendLimit => {
                let error = ScriptedError::new("You have reached your spend limit.");
                Reply {
                    status: Some(429),
                    error: Some(error),
                    ..Reply::default()
                }
            }
            Self::BadKey => error(401, "no such key"),
            Self::BrokenArguments => arguments(r#"{"command":"echo x >> effects","requires_appro"#),
            Self::KeyTwice => arguments(
                r#"{"command":"echo x >> effects","command":"echo x >> effects","requires_approval":false}"#,
            ),
            Self::WordsBehindArguments => {
                arguments(r#"{"command":"echo x >> effects","requires_approval":false} and so on"#)
            }
            Self::CutByLength => Reply {
                stop: Some(Stop::Length),
                ..reply
            },
        }
    }
}

fn run_case(case: &mut HaftCase<'_>) -> Result<(), String> {
    let api = Api::ALL[case.seed as usize % Api::ALL.len()];
    let turn = case.seed as usize / Api::ALL.len();
    let fault = FAULTS[turn % FAULTS.len()];
    let at = if fault.needs_call() || (turn / FAULTS.len()).is_multiple_of(2) {
        Target::Call
    } else {
        Target::Answer
    };
    let script = build_script(fault, at, &mut case.random).map_err(|error| error.to_string())?;
    let server = ScriptedServer::builder(script)
        .start_in_thread()
        .map_err(|error| error.to_string())?;
    let mut place = Workspace::new(case.haft, api, &server)?;
    let arguments = [
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "yolo",
        "Run the command.",
    ];
    let ended = Running::start(&place, &arguments, 1)?.finish(RUN_TIMEOUT)?;
    let effects = place
        .read_file("effects")
        .map_or(0, |text| text.lines().count());
    // Gemini can't carry broken arguments as text, so the server sends them as a string, which is
    // equally invalid.
    match check_outcome(
        fault.expected_outcome(at),
        &ended,
        server.generation_requests().len(),
        effects,
    ) {
        Ok(()) => {
            case.tally
                .count(format!("{fault:?} in the {at:?} over {api}"));
            Ok(())
        }
        Err(what) => Err(format!(
            "{fault:?} in the {at:?} over {api}: {what}\n        kept in {}",
            place.keep_folders()
        )),
    }
}

fn build_script(
    fault: Fault,
    at: Target,
    random: &mut Random,
) -> Result<Script, haft_testkit::ScriptError> {
    let arguments = json!({ "command": format!("echo x >> effects # {}", "padding ".repeat(40)), "requires_approval": false });
    let long = "A sentence of some words, sent in small pieces. ".repeat(12);
    let streamed = |reply: Reply| Reply {
        delta_chars: Some(6),
        ..reply
    };
    let calling = streamed(Reply::calls([build_command_call(arguments)]).with_text(&long));
    let answering = streamed(Reply::text(format!("{long}{ANSWER}")));
    let replies = match at {
        // The reply is kept, so the next one is the answer.
        Target::Call if fault.expected_outcome(at).requests == 2 => {
            vec![fault.apply_to(calling, at, random), answering]
        }
        Target::Call => vec![
            fault.apply_to(calling.clone(), at, random),
            calling,
            answering,
        ],
        Target::Answer => vec![
            calling,
            fault.apply_to(answering.clone(), at, random),
            answering,
        ],
    };
    Script::replies(replies)
}

fn build_command_call(arguments: Value) -> ScriptCall {
    ScriptCall::new("execute_command", arguments)
}

fn check_outcome(
    expected: Expected,
    ended: &EndedRun,
    requests: usize,
    effects: usize,
) -> Result<(), String> {
    let seen = Expected {
        code: ended.code.unwrap_or(-1),
        retries: ended
            .events
            .iter()
            .filter(|event| event["type"] == "retry")
            .count(),
        requests,
        effects,
    };
    if ended.stderr.contains("panicked") {
        return Err(format!("a panic: {}", ended.stderr));
    }
    if seen != expected {
        return Err(format!(
            "expected {expected:?}, found {seen:?}; {} {}",
            ended.last_event(),
            ended.stderr
        ));
    }
    let outcome = ended
        .events
        .last()
        .map(|event| event["outcome"].clone())
        .unwrap_or_default();
    if outcome
        != if expected.code == 0 {
            "completed"
        } else {
            "failed"
        }
    {
        return Err(format!("the outcome is {outcome}"));
    }
    Ok(())
}
