//! The parts of running a reply's calls that every loop shares: a call in a task of its own, what may run beside others, and what
//! a result means for the turn.

use haft_tool::{Access, Registry, ToolContext, ToolOutput, TurnFlow};
use haft_types::{ContentHash, Envelope, EventBody, Hasher, ToolCall};
use tokio::task::JoinHandle;

use crate::call_check::Admitted;
use crate::turn::{About, Question, ToolsDone};
use crate::turn_io::TurnIo;

/// Starts one call in a task of its own, so that a tool that panics is an error result and nothing more.
pub(crate) fn start(
    admitted: Admitted,
    registry: Registry,
    context: ToolContext,
) -> (ToolCall, JoinHandle<ToolOutput>) {
    let Admitted { call, tool, arguments } = admitted;
    let task = tokio::spawn(async move { registry.call(tool.as_ref(), &context, arguments).await });
    (call, task)
}

/// Waits for a call that was started.
pub(crate) async fn finish(call: &ToolCall, task: JoinHandle<ToolOutput>) -> ToolOutput {
    match task.await {
        Ok(output) => output,
        Err(error) => {
            let message = format!("`{}` crashed ({error}). This is a bug in the tool; try another way.", call.name);
            Envelope::failure("crashed", message).into()
        }
    }
}

/// Notes what came of a call for the turn, and tells of what it asks or reports.
pub(crate) fn note_output(call: &ToolCall, output: &ToolOutput, done: &mut ToolsDone, io: &mut TurnIo<'_>) {
    done.seen.push(fingerprint(call, &output.envelope));
    match &output.flow {
        TurnFlow::Continue => {}
        TurnFlow::Ask { question, options } => {
            io.emit(EventBody::Question { question: question.clone(), options: options.clone() });
            done.question =
                Some(Question { question: question.clone(), options: options.clone(), about: About::Question });
        }
        TurnFlow::Plan { response, options } => {
            io.emit(EventBody::Plan { response: response.clone(), options: options.clone() });
            done.question = Some(Question { question: response.clone(), options: options.clone(), about: About::Plan });
        }
        TurnFlow::Complete { result, command } => {
            io.emit(EventBody::Completion { result: result.clone(), command: command.clone() });
            done.completed = Some(result.clone());
        }
    }
}

/// What tells one call and its result from another.
fn fingerprint(call: &ToolCall, envelope: &Envelope) -> ContentHash {
    let mut hasher = Hasher::default();
    hasher.update(call.name.as_bytes()).update(call.arguments.as_bytes());
    hasher.update(&[envelope.status as u8]).update(envelope.text.as_bytes());
    hasher.finish()
}

/// Whether a call may run beside others, and again after a crash.
pub(crate) fn is_harmless(access: Access) -> bool {
    access == Access::Read
}

/// Whether a call changes the world, so that it must be noted before it begins.
pub(crate) fn has_effects(access: Access) -> bool {
    match access {
        Access::Write | Access::Execute => true,
        Access::Read | Access::State => false,
    }
}

/// Whether the result comes from the user later.
pub(crate) fn waits_for_user(flow: &TurnFlow) -> bool {
    matches!(flow, TurnFlow::Ask { .. } | TurnFlow::Plan { .. })
}
