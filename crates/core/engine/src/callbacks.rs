//! Who is called at the points of a run: functions of a program that embeds haft, and the commands
//! users call hooks.
//!
//! Several at a point are called in order, each after the one before. Invariant: all of them are
//! called even if one fails; a failure is told and never ends anything. What one asks for is
//! carried out by the session; what a point cannot do, it ignores.

mod answer;
mod command;
mod guard;
mod moment;
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

pub use answer::reaction as hook_reaction;
pub use command::{CommandHook, HookHost};
pub use guard::{StartGuard, StartRefusal, StartRequest};
pub use moment::{Moment, ToolName, ToolResponse};

use crate::error::Notice;
use crate::meter::millis;

/// What happens, and where.
pub struct Occasion<'a> {
    /// What happens.
    pub moment: &'a Moment,
    /// The conversation; empty while none is chosen yet.
    pub conversation_id: &'a str,
    /// The working directory.
    pub cwd: &'a Path,
    /// The project's root.
    pub root: &'a Path,
    /// How much may happen without asking.
    pub mode: PermissionMode,
    /// Fires when the run is cancelled: the answer is of no interest any more.
    pub cancel: &'a CancellationToken,
}

/// What a callback asks for. Nothing, by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reaction {
    /// What is about to happen must not, and why: a call, words of the user, the end of a turn.
    /// After a call: what is wrong with it.
    pub block: Option<String>,
    /// Before a call: whether it may run. A rule that denies is never overruled.
    pub permission: Option<Decision>,
    /// Before a call: the arguments it is to run with. They are permitted like any others.
    pub input: Option<Value>,
    /// What the model is told with its next request.
    pub context: Vec<String>,
    /// The turn ends here, and why.
    pub stop: Option<String>,
    /// What the user is told.
    pub messages: Vec<String>,
    /// The same with a code of its own, from who is no hook.
    pub notices: Vec<Notice>,
}

impl Reaction {
    /// Adds what the next callback asks for.
    fn join(&mut self, next: Self) {
        self.block = match (self.block.take(), next.block) {
            (Some(one), Some(other)) => Some(format!("{one}\n{other}")),
            (one, other) => one.or(other),
        };
        // Who allowed a call has not seen the arguments that come after.
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

/// Somebody who is called at points of a run.
#[async_trait]
pub trait Callback: Send + Sync {
    /// What people know it by.
    fn name(&self) -> &str;

    /// Whether it may want to be called at this point: what nobody listens to is not even put
    /// together.
    fn listens_to(&self, point: HookPoint) -> bool;

    /// Whether it wants to be called now.
    fn wants(&self, _moment: &Moment) -> bool {
        true
    }

    /// Is called. The error is told to the user, and that is all.
    async fn call(&self, occasion: &Occasion<'_>) -> Result<Reaction, String>;
}

/// A function that is called at one point.
pub fn on<F>(point: HookPoint, name: impl Into<String>, function: F) -> Arc<dyn Callback>
where
    F: Fn(&Occasion<'_>) -> Reaction + Send + Sync + 'static,
{
    Arc::new(At {
        point,
        name: name.into(),
        function,
    })
}

struct At<F> {
    point: HookPoint,
    name: String,
    function: F,
}

#[async_trait]
impl<F: Fn(&Occasion<'_>) -> Reaction + Send + Sync> Callback for At<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn listens_to(&self, point: HookPoint) -> bool {
        point == self.point
    }

    async fn call(&self, occasion: &Occasion<'_>) -> Result<Reaction, String> {
        Ok((self.function)(occasion))
    }
}

/// Logs the call of a hook. Of its command line only the programs are logged, and nothing of what
/// it printed.
fn log_call(point: HookPoint, name: &str, succeeded: bool, took: Duration) {
    let programs = haft_permission::program_names(name).join(", ");
    let ms = millis(took);
    if succeeded {
        info!(%point, programs, ms, "hook called");
    } else {
        warn!(%point, programs, ms, "hook failed");
    }
}

/// Everybody who is called, in order.
#[derive(Clone, Default)]
pub(crate) struct Callbacks(Vec<Arc<dyn Callback>>);

impl Callbacks {
    pub(crate) fn new(all: Vec<Arc<dyn Callback>>) -> Self {
        Self(all)
    }

    /// Whether anybody may want to be called at this point.
    pub(crate) fn listen_to(&self, point: HookPoint) -> bool {
        self.0.iter().any(|callback| callback.listens_to(point))
    }

    /// Calls everybody who wants to be called. Gives what they ask for together, and what went
    /// wrong.
    pub(crate) async fn call(&self, occasion: &Occasion<'_>) -> (Reaction, Vec<String>) {
        let mut all = Reaction::default();
        let mut problems = Vec::new();
        let mut moment = occasion.moment.clone();
        let point = moment.point();
        for callback in &self.0 {
            if !callback.listens_to(point) || !callback.wants(&moment) {
                continue;
            }
            let occasion = Occasion {
                moment: &moment,
                ..*occasion
            };
            let since = Instant::now();
            let called = AssertUnwindSafe(callback.call(&occasion))
                .catch_unwind()
                .await;
            let called = called.unwrap_or_else(|_| Err("it crashed".to_owned()));
            log_call(point, callback.name(), called.is_ok(), since.elapsed());
            match called {
                Ok(reaction) => {
                    if let Some(input) = &reaction.input {
                        moment.change_input(input);
                    }
                    all.join(reaction);
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
