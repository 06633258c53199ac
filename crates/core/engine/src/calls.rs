//! Runs the calls of one reply: reads side by side, everything with effects one after another, results in the order of the calls.

use haft_tool::{Access, Flow, Registry, ToolContext, ToolOutput};
use haft_types::{Envelope, ToolCall};
use tokio::task::JoinHandle;

use crate::call_check::Admitted;

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

/// Whether a call may run beside others, and again after a crash.
pub(crate) fn is_harmless(access: Access) -> bool {
    match access {
        Access::Read => true,
        Access::State | Access::Write | Access::Execute => false,
    }
}

/// Whether a call changes the world, so that it must be noted before it begins.
pub(crate) fn has_effects(access: Access) -> bool {
    match access {
        Access::Write | Access::Execute => true,
        Access::Read | Access::State => false,
    }
}

/// Whether the result comes from the user later.
pub(crate) fn waits_for_user(flow: &Flow) -> bool {
    match flow {
        Flow::Ask { .. } | Flow::Plan { .. } => true,
        Flow::Continue | Flow::Complete { .. } => false,
    }
}
