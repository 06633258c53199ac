//! What the next request depends on.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haft_types::{CacheMatch, Entry, ModelSpec, TokenCounter, ToolSet};

use crate::build::documents::Documents;
use crate::build::reminders::Reminders;
use crate::build::system::SystemInput;
use crate::cache::prefix::Sent;
use crate::carried::{Carried, Cleared};
use crate::memo::{EntryMaker, Memo, RecallTool};
use crate::policy::Compression;
use crate::policy::Policy;
use crate::reduce::edits::EditState;
use crate::reduce::marks::Marks;

/// Everything the next request depends on.
#[derive(Clone, Copy)]
pub struct Snapshot<'a> {
    /// The model that will be asked.
    pub model: &'a ModelSpec,
    /// How requests are built.
    pub policy: &'a Policy,
    /// The system message, from [`render_system`](crate::render_system) and
    /// [`system_entry`](crate::system_entry).
    pub system: &'a Arc<Entry>,
    /// What the system message was rendered from: needed to shorten it when room is short.
    pub system_input: Option<&'a SystemInput<'a>>,
    /// The tools offered.
    pub tools: &'a Arc<ToolSet>,
    /// Every stored message in order, the current input included.
    pub history: &'a [Arc<Entry>],
    /// Counts the few messages made here.
    pub counter: &'a dyn TokenCounter,
    /// Rules and other standing texts.
    pub documents: Option<&'a Documents>,
    /// Role, TODO list, useful information and folder notes as they are now.
    pub reminders: Option<&'a Reminders>,
    /// Where the work stands, for the execute view.
    pub execution: Option<&'a ExecutionState>,
    /// Messages marked by people or the model.
    pub marks: Option<&'a Marks>,
    /// What people have edited of what is sent.
    pub edits: Option<&'a EditState>,
    /// What pruning decided for earlier requests.
    pub cleared: Option<&'a Cleared>,
    /// The request before, from its account.
    pub last: Option<&'a Sent>,
    /// What earlier requests decided for this one besides.
    pub carried: Option<&'a Carried>,
    /// Counted tokens a request may take at most, where the provider has refused a larger one.
    pub most: Option<u64>,
    /// How long ago the request before was sent: after the life of a cache entry nothing of it is
    /// left to spare.
    pub idle: Option<Duration>,
    /// Names the conversation to caches that route by key.
    pub cache_key: Option<&'a str>,
    /// What was made for earlier requests, so that it is not made again.
    pub memo: Option<&'a Memo>,
    /// The folder for the whole text of results that are sent as excerpts. Only its name is used
    /// here; without it an excerpt names the message to recall.
    pub spill: Option<&'a Path>,
}

impl<'a> Snapshot<'a> {
    /// A snapshot of what every request needs; the rest is empty and can be set field by field.
    pub fn new(
        model: &'a ModelSpec,
        policy: &'a Policy,
        system: &'a Arc<Entry>,
        tools: &'a Arc<ToolSet>,
        history: &'a [Arc<Entry>],
        counter: &'a dyn TokenCounter,
    ) -> Self {
        Self {
            model,
            policy,
            system,
            tools,
            history,
            counter,
            system_input: None,
            documents: None,
            reminders: None,
            execution: None,
            marks: None,
            edits: None,
            cleared: None,
            last: None,
            carried: None,
            most: None,
            idle: None,
            cache_key: None,
            memo: None,
            spill: None,
        }
    }

    /// Whether the provider's cache can hold nothing of the request before.
    pub(crate) fn is_cold(&self) -> bool {
        is_cold(self.model, self.last, self.idle)
    }

    /// Whether the request before was sent too long ago for anything of it to be in the cache,
    /// whatever this one holds.
    pub(crate) fn has_expired(&self) -> bool {
        has_expired(self.model, self.idle)
    }

    pub(crate) fn compression(&self) -> Compression {
        Compression {
            limits: self.policy.compress_limits,
            protocol: self.model.tool_protocol,
        }
    }

    pub(crate) fn maker(&self) -> EntryMaker<'a> {
        EntryMaker {
            counter: self.counter,
            memo: self.memo,
            recall: RecallTool::of(self.tools),
        }
    }
}

/// The state of execution as the model is told of it. Nothing here may be made up from what the
/// user said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionState {
    /// The most replies of the model in one run.
    pub max_replies: Option<u32>,
    /// The permission mode.
    pub mode: String,
    /// The step of the plan being done.
    pub plan_step: Option<PlanStep>,
    /// Tasks running or waiting.
    pub tasks: Vec<String>,
    /// What was written last.
    pub last_write: Option<String>,
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    /// What is to be done.
    pub step: String,
    /// When it is done.
    pub done_when: String,
}

/// Whether the provider's cache can hold nothing of the last request, which was sent so long ago.
pub fn is_cold(model: &ModelSpec, last: Option<&Sent>, idle: Option<Duration>) -> bool {
    let unknown = last.is_none_or(|last| last.model != model.full_name());
    unknown || has_expired(model, idle) || model.cache.rule.finds() == CacheMatch::Nothing
}

fn has_expired(model: &ModelSpec, idle: Option<Duration>) -> bool {
    idle.zip(model.cache.life())
        .is_some_and(|(idle, life)| idle > life)
}
