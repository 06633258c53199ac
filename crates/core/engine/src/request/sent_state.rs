//! Keeps the state of sent requests that the next request depends on: the last request, the content
//! that was left out, the user's edits, and the stand-in for a failed summary.
//!
//! Invariant: a decision that affects later requests is stored before the request is sent, so that
//! a resumed conversation sends equal messages.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use haft_context::{
    Account, Carried, Cleared, ContextEdit, EarlierRequest, EditState, Edits, Memo, PrefixCache,
    Sent, Snapshot, first_kept_of_summary, is_cold,
};
use haft_store::{LoggedRequest, LoggedSegment, Store, StoreError};
use haft_types::{
    ContentHash, Entry, Message, MessageId, ModelSpec, Role, SentSegment, Timestamp, TokenCounter,
    ToolSet,
};

use crate::error::{EditContextError, EngineError};
use crate::session::config::SessionConfig;
use crate::session::transcript::Transcript;
use crate::stored_state::{
    self, FailedSummaries, SentEdits, SentPolicy, StoredState, SummaryStandIn,
};

/// The number of consecutive failed or rejected summaries after which automatic compaction stops.
const MAX_FAILED_SUMMARIES: u32 = 3;

/// The placeholder for the user's input in a preview of the next request.
const INPUT_PLACEHOLDER: &str = "[the user's next input]";

/// The state that earlier requests leave behind for the next request.
pub(crate) struct SentState {
    /// A cache of computed parts of earlier requests.
    memo: Memo,
    /// The last request.
    last: Option<Sent>,
    /// The newest request to each model that was used before the model of `last`, by the name of
    /// the model. Its cache may still contain the request when the user switches back.
    earlier: HashMap<String, TimedRequest>,
    /// The time of the last request; `None` if another process sent it.
    last_at: Option<Timestamp>,
    /// The results that pruning has cleared so far.
    cleared: Option<Cleared>,
    /// Other decisions of earlier requests that apply to later requests.
    carried: Option<Carried>,
    /// The user's edits of the context.
    edits: Edits,
    edited: EditState,
    /// The message that is sent in place of a summary that could not be created. This message is
    /// not part of the conversation.
    stand_in: Option<Arc<Entry>>,
    /// The number of consecutive summaries that failed or were rejected.
    failed_summaries: u32,
    /// The maximum number of locally counted tokens of a request, set after the provider has
    /// rejected a request as too long.
    token_limit: Option<u64>,
}

/// A request, and the time at which it was sent.
pub(crate) struct TimedRequest {
    sent: Sent,
    at: Timestamp,
}

/// The requests of a stored conversation that the next request depends on.
#[derive(Default)]
pub(crate) struct LoggedState {
    /// The newest request in the log.
    last: Option<Sent>,
    /// The newest request to the session's model, if `last` went to another one.
    own: Option<TimedRequest>,
}

impl SentState {
    /// Restores the state of a conversation.
    pub(crate) fn restore(
        logged: LoggedState,
        history: &[Arc<Entry>],
        counter: &dyn TokenCounter,
        state: &mut StoredState,
    ) -> Self {
        let edits: Edits = state.take().unwrap_or_default();
        Self {
            memo: Memo::default(),
            last: logged.last,
            earlier: logged
                .own
                .map(|own| (own.sent.model.clone(), own))
                .into_iter()
                .collect(),
            last_at: None,
            cleared: state.take(),
            carried: state.take(),
            edited: edits.combined_state(),
            edits,
            stand_in: state
                .take()
                .and_then(|kept| restore_stand_in(kept, history, counter)),
            failed_summaries: state.take().map_or(0, |FailedSummaries(failures)| failures),
            token_limit: None,
        }
    }

    pub(crate) fn last(&self) -> Option<&Sent> {
        self.last.as_ref()
    }

    /// Returns the results that pruning has cleared so far.
    pub(crate) fn cleared(&self) -> Option<&Cleared> {
        self.cleared.as_ref()
    }

    /// Returns true if the provider's cache can no longer contain any part of the last request.
    pub(crate) fn is_cache_cold(&self, model: &ModelSpec, idle: Option<Duration>) -> bool {
        is_cold(model, self.last.as_ref(), idle)
    }

    /// Returns true if the last request contained this message unchanged.
    pub(crate) fn contains_unchanged(&self, entry: &Entry) -> bool {
        let id = entry.message.message_id;
        let mut sent = self.last.iter().flat_map(|sent| &sent.segments);
        sent.any(|segment| segment.message == id && segment.hash == entry.hash)
    }

    /// Returns the expected content of the provider's cache after the last request; `None` before
    /// the first request.
    pub(crate) fn expected_cache(
        &self,
        model: &ModelSpec,
        tools: u32,
        blocks: impl Fn(MessageId) -> usize,
    ) -> Option<PrefixCache> {
        let mut cache = PrefixCache::new(model);
        cache.record_request(
            Duration::ZERO,
            self.last.as_ref()?,
            tools,
            |segment: &SentSegment| blocks(segment.message),
        );
        Some(cache)
    }

    /// Adds the decisions of earlier requests to the input of the next request.
    pub(crate) fn add_to_snapshot<'a>(
        &'a self,
        edits: &'a EditState,
        snapshot: Snapshot<'a>,
        now: Timestamp,
    ) -> Snapshot<'a> {
        let own = self.earlier.get(&snapshot.model.full_name());
        Snapshot {
            edits: Some(edits),
            cleared: self.cleared.as_ref(),
            last: self.last.as_ref(),
            own: own.map(|own| EarlierRequest {
                sent: &own.sent,
                idle: now.duration_since(own.at).try_into().ok(),
            }),
            carried: self.carried.as_ref(),
            most: self.token_limit,
            memo: Some(&self.memo),
            ..snapshot
        }
    }

    /// Stores the decisions of a request that apply to later requests.
    pub(crate) async fn record_account(
        &mut self,
        account: Account,
        transcript: &Transcript,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        if let Some(cleared) = account.cleared {
            transcript.store_state(&cleared).await?;
            self.cleared = Some(cleared);
        }
        if let Some(carried) = account.carried {
            transcript.store_state(&carried).await?;
            self.carried = Some(carried);
        }
        let last = self.last.as_ref();
        if last.is_none_or(|sent| sent.policy != account.sent.policy) {
            transcript
                .store_state(&SentPolicy(account.sent.policy))
                .await?;
        }
        if last.and_then(|sent| sent.edits) != account.sent.edits {
            transcript
                .store_state(&SentEdits(account.sent.edits))
                .await?;
        }
        self.earlier.remove(&account.sent.model);
        let before = self
            .last
            .take()
            .filter(|sent| sent.model != account.sent.model);
        if let Some((sent, at)) = before.zip(self.last_at.or(transcript.last_reply_at())) {
            let model = sent.model.clone();
            self.earlier.insert(model, TimedRequest { sent, at });
        }
        self.last = Some(account.sent);
        self.last_at = Some(now);
        Ok(())
    }

    pub(crate) fn edits(&self) -> &Edits {
        &self.edits
    }

    /// Returns the combined effect of the edits.
    pub(crate) fn edit_state(&self) -> &EditState {
        &self.edited
    }

    /// Stores an edit, which applies to later requests. The edit is added to the list in the store
    /// instead of the copy in memory, so that no concurrent edit is lost. A list that cannot be
    /// parsed is not overwritten.
    pub(crate) async fn add_edit(
        &mut self,
        edit: ContextEdit,
        store: &dyn Store,
        transcript: &Transcript,
    ) -> Result<(), EditContextError> {
        let stored = stored_state::read_document::<Edits>(store, transcript.id()).await?;
        let unreadable = |error: serde_json::Error| EditContextError::Unreadable(error.to_string());
        let mut edits = stored.transpose().map_err(unreadable)?.unwrap_or_default();
        edits.push(edit);
        stored_state::write_document(store, transcript.id(), &edits).await?;
        self.edited = edits.combined_state();
        self.edits = edits;
        Ok(())
    }

    /// Returns the messages from which the next request is built.
    pub(crate) fn history_to_send<'a>(&self, history: &'a [Arc<Entry>]) -> Cow<'a, [Arc<Entry>]> {
        match &self.stand_in {
            None => Cow::Borrowed(history),
            Some(stand_in) => history.iter().chain([stand_in]).cloned().collect(),
        }
    }

    /// Returns the messages to send. If the last message is a reply without tool calls, a
    /// placeholder for the user's next input follows.
    pub(crate) fn history_with_input<'a>(
        &self,
        history: &'a [Arc<Entry>],
        counter: &dyn TokenCounter,
    ) -> Cow<'a, [Arc<Entry>]> {
        let history = self.history_to_send(history);
        let last = history.iter().rev().find(|entry| match entry.message.role {
            Role::User | Role::Assistant | Role::Tool => true,
            Role::System | Role::Summary => false,
        });
        if last.is_some_and(|last| {
            last.message.role != Role::Assistant || last.message.tool_calls().next().is_some()
        }) {
            return history;
        }
        let id = MessageId::from_hash(ContentHash::from_content(INPUT_PLACEHOLDER.as_bytes()));
        let input = Message::from_text(id, Role::User, INPUT_PLACEHOLDER, Timestamp::UNIX_EPOCH);
        let mut history = history.into_owned();
        history.push(Entry::new(input, counter));
        Cow::Owned(history)
    }

    /// Returns the stand-in for a failed summary.
    pub(crate) fn stand_in_message(&self) -> Option<&Message> {
        self.stand_in.as_ref().map(|entry| &entry.message)
    }

    /// Sets the stand-in for a summary that could not be created. The stand-in is not a message of
    /// the conversation, but it is stored, so that a resumed conversation sends it too.
    pub(crate) async fn set_stand_in(
        &mut self,
        message: Message,
        counter: &dyn TokenCounter,
        transcript: &Transcript,
    ) -> Result<(), EngineError> {
        let document = SummaryStandIn(Some(message.clone()));
        if transcript.is_stored() {
            transcript.store_state(&document).await?;
        }
        self.stand_in = Some(Entry::new(message, counter));
        Ok(())
    }

    /// Removes the stand-in after a summary has replaced it.
    pub(crate) async fn clear_stand_in(
        &mut self,
        transcript: &Transcript,
    ) -> Result<(), EngineError> {
        if self.stand_in.take().is_some() {
            transcript.store_state(&SummaryStandIn(None)).await?;
        }
        Ok(())
    }

    /// Counts a summary that failed or was rejected.
    pub(crate) async fn record_failure(
        &mut self,
        transcript: &Transcript,
    ) -> Result<(), EngineError> {
        self.set_failures(self.failed_summaries + 1, transcript)
            .await
    }

    /// Resets the count of failures after an accepted summary or at the user's request.
    pub(crate) async fn reset_failures(
        &mut self,
        transcript: &Transcript,
    ) -> Result<(), EngineError> {
        self.set_failures(0, transcript).await
    }

    async fn set_failures(
        &mut self,
        failures: u32,
        transcript: &Transcript,
    ) -> Result<(), EngineError> {
        if failures != self.failed_summaries && transcript.is_stored() {
            transcript.store_state(&FailedSummaries(failures)).await?;
        }
        self.failed_summaries = failures;
        Ok(())
    }

    /// Returns true if automatic compaction has stopped after too many failures.
    pub(crate) fn has_stopped_compacting(&self) -> bool {
        self.failed_summaries >= MAX_FAILED_SUMMARIES
    }

    /// Limits later requests to `most` locally counted tokens, after the provider has rejected a
    /// request as too long.
    pub(crate) fn limit_tokens(&mut self, most: u64) {
        self.token_limit = Some(most);
    }

    /// Removes the token limit after a switch to another model.
    pub(crate) fn lift_token_limit(&mut self) {
        self.token_limit = None;
    }
}

/// Restores the stand-in if the conversation still contains the first message that follows it.
fn restore_stand_in(
    SummaryStandIn(kept): SummaryStandIn,
    history: &[Arc<Entry>],
    counter: &dyn TokenCounter,
) -> Option<Arc<Entry>> {
    let message = kept?;
    let first = first_kept_of_summary(&message)?;
    let there = history
        .iter()
        .any(|entry| entry.message.message_id == first);
    there.then(|| Entry::new(message, counter))
}

/// Reads the requests of the log that the next request depends on.
pub(crate) async fn load_logged_state(
    store: &dyn Store,
    transcript: &Transcript,
    config: &SessionConfig,
    counter: &dyn TokenCounter,
    state: &mut StoredState,
) -> Result<LoggedState, StoreError> {
    let id = transcript.id();
    let summaries = store.logged_requests(id).await?;
    let Some(last) = summaries.last() else {
        return Ok(LoggedState::default());
    };
    let model = config.model.full_name();
    let own = summaries
        .iter()
        .rfind(|summary| summary.model == model)
        .filter(|_| last.model != model);
    let own = match own {
        Some(own) => store.logged_request(id, own.number).await?,
        None => None,
    };
    let own = own.map(|logged| TimedRequest {
        at: logged.summary.sent_at,
        sent: to_sent(logged, counter, config.policy.hash_for(&config.model), None),
    });
    let Some(last) = store.logged_request(id, last.number).await? else {
        return Ok(LoggedState { last: None, own });
    };
    let policy = state.take().map_or_else(
        || config.policy.hash_for(&config.model),
        |SentPolicy(hash)| hash,
    );
    let edits = state.take().and_then(|SentEdits(hash)| hash);
    Ok(LoggedState {
        last: Some(to_sent(last, counter, policy, edits)),
        own,
    })
}

/// Converts a logged request to an outline. The log contains neither the policy nor the edits.
fn to_sent(
    logged: LoggedRequest,
    counter: &dyn TokenCounter,
    policy: ContentHash,
    edits: Option<ContentHash>,
) -> Sent {
    let segment = |segment: LoggedSegment| SentSegment {
        layer: segment.layer,
        owner: segment.owner.into(),
        message: segment.message.message_id,
        hash: segment.hash,
        tokens: segment.tokens,
        boundary: segment.boundary,
    };
    Sent {
        model: logged.summary.model,
        tools: ToolSet::new(logged.tools, counter).hash,
        policy,
        edits,
        segments: logged.segments.into_iter().map(segment).collect(),
    }
}

#[cfg(test)]
mod tests;
