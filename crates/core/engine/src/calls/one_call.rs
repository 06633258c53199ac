//! Runs one tool call in its own task, decides which calls may run in parallel, and records the
//! results for the turn.

use std::path::Path;
use std::time::{Duration, Instant};

use haft_tool::{Access, FileChange, Intent, Registry, ToolContext, ToolOutput, TurnFlow};
use haft_types::{ContentHash, Envelope, EventBody, Hasher, ModelProfile, ToolCall};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::caches;
use super::call_check::AdmittedCall;
use crate::names;
use crate::session::recorded_run::{PlannedCall, RECORD_ENDS_MESSAGE, RecordedRun};
use crate::turn::event_log::CallRun;
use crate::turn::outcome::RequestedResult;
use crate::turn::turn_io::TurnIo;
use crate::turn::{EffectCount, Question, QuestionKind, ToolsDone};

/// A tool call that runs in its own task.
pub(crate) struct StartedCall {
    task: JoinHandle<(ToolOutput, Duration)>,
    since: Instant,
    /// The programs in the call's command line, for the log.
    programs: Vec<String>,
}

/// Starts a call in its own task, so that a panic in a tool becomes an error result. `replayed` is
/// the record of the run that the session replays.
pub(crate) fn start_call(
    admitted: AdmittedCall,
    registry: Registry,
    context: ToolContext,
    replayed: Option<&RecordedRun>,
) -> (ToolCall, StartedCall) {
    let AdmittedCall {
        call,
        tool,
        arguments,
    } = admitted;
    let programs = match tool.intent(&arguments) {
        Intent::Command { line, .. } => haft_permission::find_program_names(&line),
        Intent::Files(_)
        | Intent::Hosts(_)
        | Intent::Input(_)
        | Intent::Server { .. }
        | Intent::Program(_)
        | Intent::Nothing
        | Intent::Unknown => Vec::new(),
    };
    let planned = replayed.map_or(PlannedCall::Run, |run| {
        run.plan_call(&call, tool.as_ref(), &context.workspace)
    });
    let since = Instant::now();
    let task = tokio::spawn(async move {
        let output = match planned {
            PlannedCall::Run => registry.call(tool.as_ref(), &context, arguments).await,
            PlannedCall::Repeat(recorded) => *recorded,
            PlannedCall::Interrupted => {
                Envelope::failure("interrupted", RECORD_ENDS_MESSAGE).into()
            }
        };
        (output, since.elapsed())
    });
    (
        call,
        StartedCall {
            task,
            since,
            programs,
        },
    )
}

/// Waits until a call has ended. Returns its output and the details for the log.
pub(crate) async fn finish_call(call: &ToolCall, started: StartedCall) -> (ToolOutput, CallRun) {
    let StartedCall {
        task,
        since,
        programs,
    } = started;
    let (output, ran) = task.await.unwrap_or_else(|error| {
        let message = format!(
            "`{}` crashed ({error}). This is a bug in the tool; try another way.",
            call.name
        );
        (
            Envelope::failure("crashed", message).into(),
            since.elapsed(),
        )
    });
    (output, CallRun { ran, programs })
}

/// Records a call's result for the turn, and emits the question, plan or completion that the result
/// contains. Adds advice to the result if the call failed with an equal result before.
pub(crate) fn record_output(
    call: &ToolCall,
    output: &mut ToolOutput,
    done: &mut ToolsDone,
    audience: Audience<'_>,
    io: &mut TurnIo<'_>,
) {
    let seen = call_fingerprint(call, &output.envelope);
    done.seen.push(seen);
    done.any_failed |= output.envelope.error.is_some();
    let without_result = call_fingerprint(call, &Envelope::default());
    if output.envelope.error.is_none() {
        io.record_success(without_result);
    } else if !io.has_succeeded(without_result) {
        done.failed.push(seen);
    }
    if let Some(error) = &output.envelope.error
        && io.count_failure(seen) > 1
    {
        let advice = failure_advice(&error.code, &call.name, audience);
        let text = output.envelope.text.trim_end();
        output.envelope.text = format!(
            "{text}\n[The same call failed in the same way before, and it will again: do not repeat it. {advice}]"
        );
    }
    if haft_model::was_read_from_text(call) {
        // States only the fact: a small model that is instructed to make calls properly apologizes
        // and ignores the result.
        output
            .envelope
            .text
            .push_str("\n[Read from the text of your reply.]");
    }
    if haft_model::was_converted_to_json(call) {
        output
            .envelope
            .text
            .push_str(" [Doubled braces or triple quotes were read as JSON.]");
    }
    match &output.flow {
        TurnFlow::Continue => {}
        TurnFlow::Ask { question, options } => {
            io.emit(EventBody::Question {
                question: question.clone(),
                options: options.clone(),
            });
            done.question = Some(Question {
                question: question.clone(),
                options: options.clone(),
                about: QuestionKind::Question,
            });
        }
        TurnFlow::Plan { response, options } => {
            io.emit(EventBody::Plan {
                response: response.clone(),
                options: options.clone(),
            });
            done.question = Some(Question {
                question: response.clone(),
                options: options.clone(),
                about: QuestionKind::Plan,
            });
        }
        TurnFlow::Complete { result, command } => {
            io.emit(EventBody::Completion {
                result: result.clone(),
                command: command.clone(),
            });
            done.completed = Some(result.clone());
        }
    }
}

/// Adds the outcome of a call to `counts`: of an attempt to change files, or of another call that
/// changed some.
pub(crate) fn count_effect(
    call: &ToolCall,
    outcome: CallOutcome,
    audience: Audience<'_>,
    requested: RequestedResult,
    counts: &mut EffectCount,
) {
    let Some(found) = audience.registry.resolve(&call.name) else {
        // A small model that should change a file invents tools for that.
        let is_attempt =
            audience.profile == ModelProfile::Small && requested == RequestedResult::Change;
        counts.failed += u32::from(is_attempt);
        return;
    };
    let name = found.tool.spec().name.as_str();
    let kind = match found.tool.access() {
        Access::Read | Access::State => return,
        Access::Execute if name == names::EXECUTE_TOOL => CallEffectKind::Recorded,
        Access::Write if !names::CONDITIONAL_TOOLS.contains(&name) => CallEffectKind::Attempt,
        Access::Execute | Access::Write => CallEffectKind::Unknown,
    };
    match (outcome, kind) {
        (CallOutcome::ChangedFiles, _)
        | (CallOutcome::Succeeded, CallEffectKind::Attempt | CallEffectKind::Unknown) => {
            counts.took_effect += 1;
        }
        (CallOutcome::Failed, CallEffectKind::Attempt) => counts.failed += 1,
        (CallOutcome::Refused, _) => counts.refused += 1,
        (CallOutcome::Succeeded, CallEffectKind::Recorded)
        | (CallOutcome::Failed, CallEffectKind::Recorded | CallEffectKind::Unknown) => {}
    }
}

/// The way in which a call can change files.
#[derive(Clone, Copy)]
enum CallEffectKind {
    /// The call is a write or an edit.
    Attempt,
    /// The call is a command. The files that it changed are recorded.
    Recorded,
    /// The call is to an MCP server, a terminal session or another agent, whose changes the engine
    /// does not know.
    Unknown,
}

/// The outcome of a call, as far as files are concerned.
#[derive(Clone, Copy)]
pub(crate) enum CallOutcome {
    /// The call changed files, even if it then failed.
    ChangedFiles,
    /// The call succeeded without a recorded change.
    Succeeded,
    /// The call failed, was malformed, or wrote the existing content.
    Failed,
    /// The user, a rule or a hook did not allow the call.
    Refused,
}

impl CallOutcome {
    /// Determines the outcome of a call that ran. Files in caches below `root` do not count.
    pub(crate) fn from_output(output: &ToolOutput, root: &Path) -> Self {
        let in_vain = output.envelope.error.is_some()
            || output.envelope.data["change"] == haft_tool::UNCHANGED;
        let changed = |change: &FileChange| !caches::is_in_cache(root, &change.path);
        if output.changes.iter().any(changed) {
            Self::ChangedFiles
        } else if in_vain {
            Self::Failed
        } else {
            Self::Succeeded
        }
    }

    /// Determines the outcome of a call that did not run, from its error result.
    pub(crate) fn from_refusal(envelope: &Envelope) -> Self {
        match envelope.error.as_ref().map(|error| error.code.as_str()) {
            Some("permission_denied" | "hook_blocked") => Self::Refused,
            Some(_) | None => Self::Failed,
        }
    }
}

/// Tells whether a call succeeded earlier in the turn, with whatever result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallHistory {
    New,
    SucceededBefore,
}

impl CallHistory {
    pub(crate) fn of_call(call: &ToolCall, io: &TurnIo<'_>) -> Self {
        if io.has_succeeded(call_fingerprint(call, &Envelope::default())) {
            Self::SucceededBefore
        } else {
            Self::New
        }
    }
}

/// The model that reads a result: its profile, and the tools that it may call.
#[derive(Clone, Copy)]
pub(crate) struct Audience<'a> {
    pub(crate) profile: ModelProfile,
    pub(crate) registry: &'a Registry,
}

/// Returns the advice for a call that failed repeatedly with `code`. Mentions only offered tools.
fn failure_advice(code: &str, tool: &str, audience: Audience<'_>) -> String {
    let registry = audience.registry;
    let with = |name: &str, advice: &str| {
        if registry.offers_tool(name) {
            advice.to_owned()
        } else {
            String::new()
        }
    };
    let other = "Send other arguments, use another tool, or answer and say what does not work.";
    let advice = match code {
        "no_match" => {
            with(
                names::READ_TOOL,
                "Read the file with `read_file` and copy the text from its result. ",
            ) + &with(
                names::WRITE_TOOL,
                "Or give the whole new file to `write_to_file`. ",
            )
        }
        "ambiguous_match" => {
            "Add the lines before and after it to the text you look for. ".to_owned()
        }
        "not_found" => {
            "Use a path that is named above. ".to_owned()
                + &with(names::WRITE_TOOL, "Or make the file with `write_to_file`. ")
        }
        "invalid_arguments" | "invalid_diff" => {
            match registry.get(tool).map(|tool| tool.manual().example) {
                Some(example) if !example.is_empty() => {
                    format!("Arguments that fit look like this: {example} ")
                }
                _ => String::new(),
            }
        }
        // The guidance for small models names the tool to use.
        "unknown_tool" if audience.profile == ModelProfile::Small => String::new(),
        "unknown_tool" => {
            let told = registry.offered_tools().chain(registry.deferred_tools());
            let names: Vec<_> = told.map(|tool| format!("`{}`", tool.spec().name)).collect();
            format!("The tools are {}. ", names.join(", "))
        }
        "exit_status" => {
            "Read its output, then change the command or the files it works on. ".to_owned()
        }
        _ => String::new(),
    };
    if advice.is_empty() {
        other.to_owned()
    } else {
        advice.trim_end().to_owned()
    }
}

/// Returns a hash of a call and its result. The formatting of the arguments does not matter.
fn call_fingerprint(call: &ToolCall, envelope: &Envelope) -> ContentHash {
    let arguments = serde_json::from_str(&call.arguments)
        .map_or(call.arguments.clone(), |read: Value| read.to_string());
    let mut hasher = Hasher::default();
    hasher
        .update(call.name.as_bytes())
        .update(arguments.as_bytes());
    hasher
        .update(&[envelope.status as u8])
        .update(envelope.text.as_bytes());
    hasher.finish()
}

/// Returns true if calls with this access may run in parallel, and may run again after a crash.
pub(crate) fn is_read_only(access: Access) -> bool {
    access == Access::Read
}

/// Returns true if calls with this access change files or run programs, so that each call must be
/// recorded before it begins.
pub(crate) fn has_effects(access: Access) -> bool {
    match access {
        Access::Write | Access::Execute => true,
        Access::Read | Access::State => false,
    }
}

/// Returns true if the user provides the call's result later.
pub(crate) fn waits_for_user(flow: &TurnFlow) -> bool {
    matches!(flow, TurnFlow::Ask { .. } | TurnFlow::Plan { .. })
}
