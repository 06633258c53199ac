//! The input of the next request.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haft_types::{CacheMatch, Entry, ModelSpec, TokenCounter, ToolSet};

use crate::build::documents::Documents;
use crate::build::reminders::Reminders;
use crate::build::system::SystemInput;
use crate::cache::prefix::Sent;
use crate::cache::pricing::EarlierRequest;
use crate::carried::{Carried, Cleared};
use crate::memo::{EntryMaker, Memo, RecallTool};
use crate::policy::Compression;
use crate::policy::Policy;
use crate::reduce::edits::EditState;
use crate::reduce::marks::Marks;

/// Everything that the next request depends on.
#[derive(Clone, Copy)]
pub struct Snapshot<'a> {
    /// The model that the request is for.
    pub model: &'a ModelSpec,
    /// The settings for building requests.
    pub policy: &'a Policy,
    /// The system message, from [`render_system`](crate::render_system) and
    /// [`system_entry`](crate::system_entry).
    pub system: &'a Arc<Entry>,
    /// The input that the system message was rendered from, needed to shorten it when room is
    /// short.
    pub system_input: Option<&'a SystemInput<'a>>,
    pub tools: &'a Arc<ToolSet>,
    /// All stored messages in order, including the current input.
    pub history: &'a [Arc<Entry>],
    /// The counter for the tokens of messages that are derived for this request.
    pub counter: &'a dyn TokenCounter,
    /// Rules and other standing texts.
    pub documents: Option<&'a Documents>,
    /// The current role, TODO list, useful information and folder notes.
    pub reminders: Option<&'a Reminders>,
    /// The state of the work, for the execute view.
    pub execution: Option<&'a ExecutionState>,
    /// The messages that the user or the model has marked for deletion.
    pub marks: Option<&'a Marks>,
    /// The user's edits of the context.
    pub edits: Option<&'a EditState>,
    /// The pruning decisions of earlier requests.
    pub cleared: Option<&'a Cleared>,
    /// The outline of the previous request, from its account.
    pub last: Option<&'a Sent>,
    /// The newest earlier request to the model, if the previous request went to another one. The
    /// cache may still contain it.
    pub own: Option<EarlierRequest<'a>>,
    /// The decisions of earlier requests besides `cleared`, from
    /// [`Account::carried`](crate::Account::carried).
    pub carried: Option<&'a Carried>,
    /// The maximum number of counted tokens in the request; set after the provider has refused a
    /// larger request.
    pub most: Option<u64>,
    /// The time since the previous request. Once cache entries have expired, there is no cached
    /// prefix left to preserve.
    pub idle: Option<Duration>,
    /// A name for the conversation, for providers whose caches route requests by key.
    pub cache_key: Option<&'a str>,
    /// The messages derived for earlier requests, which need not be derived again.
    pub memo: Option<&'a Memo>,
    /// The folder for the full text of results that are sent as excerpts. Only the path is used
    /// here: the excerpt names the file. Without a folder, the excerpt names the message to recall.
    pub spill: Option<&'a Path>,
}

impl<'a> Snapshot<'a> {
    /// Creates a snapshot with the parts that every request needs. The other fields are empty and
    /// can be set one by one.
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
            own: None,
            carried: None,
            most: None,
            idle: None,
            cache_key: None,
            memo: None,
            spill: None,
        }
    }

    /// True if the provider's cache can hold no part of the previous request.
    pub(crate) fn is_cold(&self) -> bool {
        is_cold(self.model, self.last, self.idle)
    }

    /// Returns the previous request with the time since it was sent.
    pub(crate) fn previous_request(&self) -> Option<EarlierRequest<'a>> {
        let idle = self.idle;
        self.last.map(|sent| EarlierRequest { sent, idle })
    }

    pub(crate) fn compression_settings(&self) -> Compression {
        Compression {
            limits: self.policy.compress_limits,
            protocol: self.model.tool_protocol,
        }
    }

    pub(crate) fn entry_maker(&self) -> EntryMaker<'a> {
        EntryMaker {
            counter: self.counter,
            memo: self.memo,
            recall: RecallTool::from_tools(self.tools),
        }
    }
}

/// The state of execution that is reported to the model. Every field comes from haft itself; no
/// field may be inferred from the user's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionState {
    /// The maximum number of replies by the model in one run.
    pub max_replies: Option<u32>,
    /// The permission mode.
    pub mode: String,
    /// The step of the plan in progress.
    pub plan_step: Option<PlanStep>,
    /// Descriptions of the running and waiting tasks.
    pub tasks: Vec<String>,
    /// A description of the most recent write by a tool.
    pub last_write: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    /// A description of the work to do in this step.
    pub step: String,
    /// The condition under which the step is done.
    pub done_when: String,
}

/// True if the provider's cache can hold no part of the last request, which was sent `idle` ago.
pub fn is_cold(model: &ModelSpec, last: Option<&Sent>, idle: Option<Duration>) -> bool {
    let unknown = last.is_none_or(|last| last.model != model.full_name());
    unknown || has_expired(model, idle) || model.cache.rule.cache_match() == CacheMatch::NoCache
}

/// True if a request that was sent `idle` ago is too old for the cache to hold any part of it,
/// whatever the next request contains.
pub(crate) fn has_expired(model: &ModelSpec, idle: Option<Duration>) -> bool {
    idle.zip(model.cache.expires_after())
        .is_some_and(|(idle, life)| idle > life)
}
