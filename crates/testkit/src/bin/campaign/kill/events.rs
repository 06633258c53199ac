//! Evaluates the events printed before a kill: the replies and results that they acknowledge, and
//! the activity that the kill interrupted.

use std::fmt;

use serde_json::Value;

use super::process::EndedRun;
use super::task;
use super::workspace::Workspace;

/// A reply that haft acknowledged by printing its usage.
pub(crate) struct AckedReply {
    pub(crate) text: String,
    pub(crate) calls: Vec<String>,
}

/// A tool result that haft acknowledged by printing it.
pub(crate) struct AckedResult {
    pub(crate) call: String,
    pub(crate) status: String,
    pub(crate) text: String,
}

/// A tool call that is complete and therefore stored.
struct Call {
    id: String,
    command: String,
}

/// Everything that the events of all runs acknowledged, and the phase in which the last run ended.
#[derive(Default)]
pub(crate) struct Acknowledged {
    pub(crate) replies: Vec<AckedReply>,
    pub(crate) results: Vec<AckedResult>,
    open: Vec<Call>,
    /// The text of the reply in progress.
    text: String,
    calls: Vec<String>,
    phase: RunPhase,
}

/// The phase of a run, as shown by its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RunPhase {
    /// No request has been sent.
    #[default]
    Starting,
    /// No reply is arriving: the run is between requests, or waits for the first text of a reply.
    Between,
    /// A reply is arriving.
    Streaming,
    /// The final result was printed.
    Over,
}

impl Acknowledged {
    pub(crate) fn from_runs(runs: &[EndedRun]) -> Self {
        let mut told = Self::default();
        for run in runs {
            told.phase = RunPhase::Starting;
            told.forget_reply();
            run.events.iter().for_each(|event| told.apply_event(event));
        }
        told
    }

    fn forget_reply(&mut self) {
        self.text.clear();
        self.calls.clear();
    }

    fn apply_event(&mut self, event: &Value) {
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap_or_default() {
            "window" => self.phase = RunPhase::Between,
            "text" => {
                self.phase = RunPhase::Streaming;
                self.text += &text("text");
            }
            "tool_call" if event["phase"] == "finished" => {
                self.phase = RunPhase::Between;
                self.calls.push(text("id"));
                let command = event["arguments"]["command"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                self.open.push(Call {
                    id: text("id"),
                    command,
                });
            }
            "thinking" | "tool_call" => self.phase = RunPhase::Streaming,
            "retry" => self.forget_reply(),
            "usage" => {
                self.phase = RunPhase::Between;
                let text = std::mem::take(&mut self.text);
                let calls = std::mem::take(&mut self.calls);
                self.replies.push(AckedReply { text, calls });
            }
            "tool_result" => {
                let call = text("id");
                self.open.retain(|open| open.id != call);
                self.results.push(AckedResult {
                    call,
                    status: text("status"),
                    text: text("text"),
                });
            }
            "result" => self.phase = RunPhase::Over,
            _ => {}
        }
    }

    /// True if a command has created its start file but its result was not printed.
    fn has_running_command(&self, place: &Workspace) -> bool {
        let begun = |command: usize| {
            let trace = task::start_file_name(command);
            place.read_file(&trace).is_some()
                && self.open.iter().any(|open| open.command.contains(&trace))
        };
        (1..=task::COMMAND_COUNT).any(begun)
    }
}

/// The activity that a kill interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hit {
    BeforeRequest,
    Stream,
    Tool,
    Elsewhere,
    TooLate,
}

impl Hit {
    /// Returns the activity that was interrupted when the last run was killed.
    pub(crate) fn from_runs(runs: &[EndedRun], place: &Workspace) -> Self {
        let told = Acknowledged::from_runs(runs);
        match told.phase {
            _ if runs.last().is_some_and(|run| run.code.is_some()) => Self::TooLate,
            RunPhase::Streaming => Self::Stream,
            RunPhase::Starting | RunPhase::Between if told.has_running_command(place) => Self::Tool,
            RunPhase::Starting => Self::BeforeRequest,
            RunPhase::Between => Self::Elsewhere,
            RunPhase::Over => Self::TooLate,
        }
    }
}

impl fmt::Display for Hit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeforeRequest => "before the first request of the run",
            Self::Stream => "in the middle of a reply",
            Self::Tool => "between a tool's start and its result",
            Self::Elsewhere => "elsewhere between requests",
            Self::TooLate => "that came after the end",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(events: &[Value]) -> EndedRun {
        EndedRun {
            code: None,
            events: events.to_vec(),
            stderr: String::new(),
        }
    }

    #[test]
    fn a_reply_is_acknowledged_by_its_usage_and_not_before() {
        let window = json!({"type": "window"});
        let words = |text: &str| json!({"type": "text", "text": text});
        let call = json!({"type": "tool_call", "id": "c", "phase": "finished", "arguments": {"command": "true"}});
        let cut = Acknowledged::from_runs(&[run(&[window.clone(), words("Hal"), words("f")])]);
        assert_eq!((cut.phase, cut.replies.len()), (RunPhase::Streaming, 0));

        let whole = run(&[
            window,
            words("Who"),
            words("le"),
            call,
            json!({"type": "usage"}),
        ]);
        let result = json!({"type": "tool_result", "id": "c", "status": "success", "text": "ok"});
        let told = Acknowledged::from_runs(std::slice::from_ref(&whole));
        assert_eq!((told.phase, told.open.len()), (RunPhase::Between, 1));
        assert_eq!(
            (told.replies[0].text.as_str(), &told.replies[0].calls[..]),
            ("Whole", &["c".to_owned()][..])
        );

        let continued = Acknowledged::from_runs(&[whole, run(&[result])]);
        assert_eq!(
            (
                continued.phase,
                continued.open.len(),
                continued.results.len()
            ),
            (RunPhase::Starting, 0, 1)
        );
    }
}
