//! Hooks: callbacks at fixed points of a run. A callback is a function of a program that embeds
//! haft, or a command that the user or the project configured.
//!
//! The callbacks of a point are called in order, one after another. Invariant: every callback of a
//! point is called even if one fails; a failure is reported and ends nothing. The session carries
//! out the requested outcome and ignores the parts that a point does not support.

mod command;
mod event;
mod output;
mod runner;
pub(crate) mod session_hooks;
mod start_guard;
#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::FutureExt as _;
use haft_types::{Decision, HookPoint, PermissionMode};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

pub use command::{CommandHook, HookHost};
pub use event::{HookEvent, ToolName, ToolResponse};
pub use output::parse_hook_output;
pub(crate) use runner::HookRunner;
pub use start_guard::{StartGuard, StartRefusal, StartRequest};

use crate::budget::meter::to_millis;
use crate::error::Notice;

/// An event, and the run in which it happens.
pub struct HookContext<'a> {
    pub event: &'a HookEvent,
    /// The id of the conversation; empty if none is chosen yet.
    pub conversation_id: &'a str,
    pub cwd: &'a Path,
    /// The project's root.
    pub root: &'a Path,
    pub mode: PermissionMode,
    /// The token that is canceled with the run; the outcome of the callback is then ignored.
    pub cancel: &'a CancellationToken,
}

/// The changes that a callback requests; none by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookOutcome {
    /// The reason to block the event: a tool call, a prompt, or the end of a turn. After a tool
    /// call: the objection to its result.
    pub block: Option<String>,
    /// Before a tool call: the permission decision, which never overrides a deny rule.
    pub permission: Option<Decision>,
    /// Before a tool call: the arguments to use instead of the model's. Permission is checked for
    /// the new arguments.
    pub input: Option<Value>,
    /// Texts to add to the next request.
    pub context: Vec<String>,
    /// The reason to end the turn.
    pub stop: Option<String>,
    /// Messages for the user.
    pub messages: Vec<String>,
    /// Messages for the user with codes of their own, from callbacks inside haft.
    pub notices: Vec<Notice>,
}

impl HookOutcome {
    /// Merges the outcome of the next callback into this outcome.
    fn merge(&mut self, next: Self) {
        self.block = match (self.block.take(), next.block) {
            (Some(one), Some(other)) => Some(format!("{one}\n{other}")),
            (one, other) => one.or(other),
        };
        // A callback that allowed the call did not see the new arguments.
        let allowed_other = next.input.is_some() && self.permission == Some(Decision::Allow);
        let before = self.permission.take().filter(|_| !allowed_other);
        self.permission = before.max(next.permission);
        self.input = next.input.or(self.input.take());
        self.context.extend(next.context);
        self.stop = self.stop.take().or(next.stop);
        self.messages.extend(next.messages);
        self.notices.extend(next.notices);
    }
}

/// A function that is called at certain points of a run, such as before a tool call.
#[async_trait]
pub trait Callback: Send + Sync {
    /// The name shown to the user.
    fn name(&self) -> &str;

    /// Returns true if the name is a command line, of which only the programs are logged.
    fn is_command(&self) -> bool {
        false
    }

    /// Returns true if the callback may want events of this point. If no callback does, the event
    /// is not built.
    fn listens_to(&self, point: HookPoint) -> bool;

    /// Returns true if the callback wants this event. The default implementation wants all events.
    fn wants(&self, _event: &HookEvent) -> bool {
        true
    }

    /// Handles the event. An error is shown to the user and changes nothing.
    async fn call(&self, context: &HookContext<'_>) -> Result<HookOutcome, String>;
}

/// Wraps a function as a callback for one point.
pub fn callback_at<F>(point: HookPoint, name: impl Into<String>, function: F) -> Arc<dyn Callback>
where
    F: Fn(&HookContext<'_>) -> HookOutcome + Send + Sync + 'static,
{
    Arc::new(FunctionCallback {
        point,
        name: name.into(),
        function,
    })
}

struct FunctionCallback<F> {
    point: HookPoint,
    name: String,
    function: F,
}

#[async_trait]
impl<F: Fn(&HookContext<'_>) -> HookOutcome + Send + Sync> Callback for FunctionCallback<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn listens_to(&self, point: HookPoint) -> bool {
        point == self.point
    }

    async fn call(&self, context: &HookContext<'_>) -> Result<HookOutcome, String> {
        Ok((self.function)(context))
    }
}

/// Logs the call of a hook: the programs of its command line or the name of a callback, but no
/// arguments and no output.
fn log_call(point: HookPoint, callback: &dyn Callback, succeeded: bool, took: Duration) {
    let name = callback.name();
    let (programs, name) = if callback.is_command() {
        let programs = haft_permission::find_program_names(name);
        (Some(programs.join(", ")), None)
    } else {
        (None, Some(name))
    };
    let ms = to_millis(took);
    if succeeded {
        info!(%point, programs, name, ms, "hook called");
    } else {
        warn!(%point, programs, name, ms, "hook failed");
    }
}

/// The callbacks of a session, in call order.
#[derive(Clone, Default)]
pub(crate) struct Callbacks(Vec<Arc<dyn Callback>>);

impl Callbacks {
    pub(crate) fn new(all: Vec<Arc<dyn Callback>>) -> Self {
        Self(all)
    }

    /// Returns true if any callback may want events of `point`.
    pub(crate) fn has_listener(&self, point: HookPoint) -> bool {
        self.0.iter().any(|callback| callback.listens_to(point))
    }

    /// Calls every callback that wants the event. Returns their merged outcome and the errors.
    pub(crate) async fn call(&self, context: &HookContext<'_>) -> (HookOutcome, Vec<String>) {
        let mut all = HookOutcome::default();
        let mut problems = Vec::new();
        let mut event = context.event.clone();
        let point = event.point();
        for callback in &self.0 {
            if !callback.listens_to(point) || !callback.wants(&event) {
                continue;
            }
            let context = HookContext {
                event: &event,
                ..*context
            };
            let since = Instant::now();
            let called = AssertUnwindSafe(callback.call(&context))
                .catch_unwind()
                .await;
            let called = called.unwrap_or_else(|_| Err("it crashed".to_owned()));
            log_call(point, callback.as_ref(), called.is_ok(), since.elapsed());
            match called {
                Ok(outcome) => {
                    if let Some(input) = &outcome.input {
                        event.change_input(input);
                    }
                    all.merge(outcome);
                }
                Err(why) => {
                    problems.push(format!(
                        "the {point} hook `{}` failed: {why}",
                        callback.name()
                    ));
                }
            }
        }
        (all, problems)
    }
}
