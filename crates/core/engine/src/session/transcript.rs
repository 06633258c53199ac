//! Holds the messages of a conversation, in memory exactly as they are stored, and stores documents
//! with them.
//!
//! Invariant: [`Transcript::history`] contains exactly the messages in the store, in order and with
//! secrets masked.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use haft_context::{CHANGED_FILES_KEY, TOOL_NAME_KEY, add_reminder_tag, user_text};
use haft_store::{Conversation, Fact, NewConversation, StoreError, WriteLock};
use haft_text::Masker;
use haft_types::{
    ConversationId, Entry, Envelope, Image, LlmMetadata, Message, MessageId, Metadata, Origin,
    Outcome, Part, Role, ShortId, StopReason, Timestamp, ToolCall, ToolResult, Usage,
};

use super::config::SharedServices;
use super::secrets;
use crate::error::EngineError;
use crate::stored_state::{self, StateDocument};
use crate::turn::Unfinished;
use crate::turn::resume::{self, CallKey, Resumption};

/// A conversation that was found or drafted, and whose state is not loaded yet.
pub(crate) struct FoundConversation {
    pub(crate) conversation: Conversation,
    /// True if the conversation is in the store.
    pub(crate) resumed: bool,
    pub(crate) messages: Vec<Message>,
    /// The lock that keeps other processes from writing to the conversation while the session has
    /// it open; `None` if the session is read-only.
    pub(crate) lock: Option<WriteLock>,
}

/// Controls whether a new conversation becomes the current conversation of its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnCreation {
    MakeCurrent,
    LeaveCurrent,
}

/// The messages of a conversation, and the facts recorded about them.
pub(crate) struct Transcript {
    services: Arc<SharedServices>,
    masker: Masker,
    conversation: Conversation,
    /// The lock that keeps other processes from writing to the conversation while it is open.
    _lock: Option<WriteLock>,
    /// True if the conversation is in the store.
    stored: bool,
    on_creation: OnCreation,
    history: Vec<Arc<Entry>>,
    short_ids: HashSet<ShortId>,
    /// The calls that were started and may have changed files or run programs.
    begun: HashSet<CallKey>,
    /// True if, when the conversation was opened, its newest message was recorded as the end of a
    /// turn.
    turn_ended: bool,
}

/// The content of a call's result, ready to be stored.
pub(crate) struct ResultParts {
    pub(crate) envelope: Envelope,
    pub(crate) images: Vec<Image>,
    /// The files that the call changed, according to the change record.
    pub(crate) changed: Vec<String>,
}

impl Transcript {
    /// Creates the transcript of a conversation, and reads the facts recorded about its messages.
    pub(crate) async fn load(
        services: Arc<SharedServices>,
        masker: Masker,
        found: FoundConversation,
        on_creation: OnCreation,
    ) -> Result<Self, StoreError> {
        let FoundConversation {
            conversation,
            resumed,
            messages,
            lock,
        } = found;
        let facts = if resumed {
            services.store.facts(&conversation.id).await?
        } else {
            Vec::new()
        };
        let (begun, ended) = split_facts(facts);
        let newest = messages
            .iter()
            .rfind(|message| message.role != Role::Summary);
        let turn_ended = newest.is_some_and(|last| ended.contains(&last.message_id));
        let short_ids = messages
            .iter()
            .map(|message| message.message_id.short_id())
            .collect();
        let counter = services.counter.as_ref();
        // Pushed instead of collected: `collect` would build the list of pointers in the allocation
        // of the messages, and keep all its memory.
        let mut history = Vec::with_capacity(messages.len());
        history.extend(
            messages
                .into_iter()
                .map(|message| Entry::new(message, counter)),
        );
        Ok(Self {
            services,
            masker,
            conversation,
            _lock: lock,
            stored: resumed,
            on_creation,
            history,
            short_ids,
            begun,
            turn_ended,
        })
    }

    pub(crate) fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Changes the name in memory, after it was changed in the store.
    pub(crate) fn set_name(&mut self, name: String) {
        self.conversation.name = name;
    }

    pub(crate) fn id(&self) -> &ConversationId {
        &self.conversation.id
    }

    pub(crate) fn history(&self) -> &[Arc<Entry>] {
        &self.history
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.stored
    }

    /// Returns a message id whose short form is unused in this conversation.
    pub(crate) fn fresh_id(&self) -> MessageId {
        loop {
            let id = self.services.ids.new_message_id();
            if !self.short_ids.contains(&id.short_id()) {
                return id;
            }
        }
    }

    /// Creates a message without appending it.
    pub(crate) fn draft_message(&self, role: Role, content: Vec<Part>) -> Message {
        Message::new(self.fresh_id(), role, content, self.services.clock.now())
    }

    /// Creates a text message without appending it.
    pub(crate) fn draft_text_message(&self, role: Role, text: impl Into<String>) -> Message {
        Message::from_text(self.fresh_id(), role, text, self.services.clock.now())
    }

    /// Stores a message, then adds it to the history. For a new conversation, the first message and
    /// the conversation are stored in one transaction: if the process is killed, both are stored or
    /// neither.
    pub(crate) async fn append(&mut self, mut message: Message) -> Result<(), EngineError> {
        secrets::mask_message(&self.masker, &mut message);
        let store = &self.services.store;
        if self.stored {
            store
                .append_message(&self.conversation.id, &message)
                .await?;
        } else {
            let new = NewConversation {
                messages: vec![message.clone()],
                metadata: self.conversation.metadata.clone(),
                make_current: self.on_creation == OnCreation::MakeCurrent,
                ..NewConversation::new(self.conversation.id.clone(), &self.conversation.namespace)
                    .with_name(&self.conversation.name)
            };
            store.create(new).await?;
            self.stored = true;
        }
        self.short_ids.insert(message.message_id.short_id());
        self.history
            .push(Entry::new(message, self.services.counter.as_ref()));
        Ok(())
    }

    pub(crate) async fn append_user(
        &mut self,
        text: String,
        origin: Origin,
    ) -> Result<(), EngineError> {
        let message = self
            .draft_text_message(Role::User, text)
            .with_origin(origin);
        self.append(message).await
    }

    /// Like [`Self::append_user`], with images after the text and with metadata.
    pub(crate) async fn append_input(
        &mut self,
        text: String,
        images: Vec<Image>,
        origin: Origin,
        metadata: Metadata,
    ) -> Result<(), EngineError> {
        let mut message = self
            .draft_text_message(Role::User, text)
            .with_origin(origin);
        message.metadata.extend(metadata);
        message.content.extend(images.into_iter().map(Part::Image));
        self.append(message).await
    }

    /// Appends a note from haft as a user message, marked by a tag.
    pub(crate) async fn append_note(&mut self, text: &str) -> Result<(), EngineError> {
        self.append_user(add_reminder_tag(text), Origin::Engine)
            .await
    }

    /// Appends the result of a call. `tool` is the canonical name of the tool.
    pub(crate) async fn append_result(
        &mut self,
        call: &ToolCall,
        tool: &str,
        ResultParts {
            envelope,
            images,
            changed,
        }: ResultParts,
    ) -> Result<(), EngineError> {
        // APIs require the name that the reply uses for the call.
        let reply = self
            .history
            .iter()
            .rfind(|entry| entry.message.role == Role::Assistant);
        let written =
            reply.and_then(|entry| entry.message.tool_calls().find(|one| one.id == call.id));
        let name = written.unwrap_or(call).name.clone();
        let result = ToolResult {
            tool_call_id: call.id.clone(),
            name,
            envelope,
        };
        let mut content = vec![Part::ToolResult(Box::new(result))];
        content.extend(images.into_iter().map(Part::Image));
        let mut metadata = Metadata::from_iter([
            (TOOL_NAME_KEY.to_owned(), tool.into()),
            ("step".to_owned(), self.next_step_number().into()),
        ]);
        if !changed.is_empty() {
            metadata.insert(CHANGED_FILES_KEY.to_owned(), changed.into());
        }
        let message = self.draft_message(Role::Tool, content);
        self.append(Message {
            metadata,
            ..message
        })
        .await
    }

    /// Returns the messages since older messages were last archived, by a summary or its stand-in.
    pub(crate) fn entries_since_archive(&self, stand_in: Option<&Message>) -> &[Arc<Entry>] {
        let summary = self
            .history
            .iter()
            .rposition(|entry| entry.message.role == Role::Summary)
            .map_or(0, |at| at + 1);
        let later = |message: &Message| {
            self.history
                .partition_point(|one| one.message.created_at <= message.created_at)
        };
        &self.history[stand_in.map_or(0, later).max(summary)..]
    }

    /// Returns the messages of the current round, newest first. The last one is the user's input.
    pub(crate) fn round_messages(&self) -> impl Iterator<Item = &Message> {
        let start = self
            .history
            .iter()
            .rposition(|entry| entry.message.opens_round())
            .unwrap_or(0);
        self.history[start..]
            .iter()
            .rev()
            .map(|entry| &entry.message)
    }

    /// Returns the user's own words in the current round, oldest first.
    pub(crate) fn round_prompt(&self) -> String {
        let mut prompts: Vec<String> = self
            .round_messages()
            .filter(|message| {
                message.role == Role::User
                    && matches!(message.origin(), Origin::User | Origin::Joined)
            })
            .map(|message| user_text(&message.joined_text()).to_owned())
            .collect();
        prompts.reverse();
        prompts.join("\n")
    }

    /// Returns true if a call of the current round succeeded.
    pub(crate) fn round_has_success(&self) -> bool {
        self.round_results()
            .flat_map(Message::tool_results)
            .any(|result| result.envelope.error.is_none())
    }

    /// Returns the tool results of the current round, newest first.
    fn round_results(&self) -> impl Iterator<Item = &Message> {
        self.round_messages()
            .filter(|message| message.role == Role::Tool)
    }

    /// Returns the number of the current round's next tool result, counting from 1.
    fn next_step_number(&self) -> usize {
        self.round_results().count() + 1
    }

    /// Returns true if the current round contains a result of the tool `tool`.
    pub(crate) fn round_has_called(&self, tool: &str) -> bool {
        self.round_results().any(|message| {
            message
                .metadata
                .get(TOOL_NAME_KEY)
                .is_some_and(|name| name == tool)
        })
    }

    /// Records that a call begins that may change files or run programs.
    pub(crate) async fn record_call_start(&mut self, call: &ToolCall) -> Result<(), EngineError> {
        let Some(message_id) = self.last_reply_id() else {
            return Ok(());
        };
        let fact = Fact::ToolStarted {
            message_id,
            call_id: call.id.clone(),
        };
        self.services
            .store
            .add_fact(&self.conversation.id, fact)
            .await?;
        self.begun.insert((message_id, call.id.clone()));
        Ok(())
    }

    /// Records that the newest message ends its turn.
    pub(crate) async fn record_turn_end(&self, outcome: Outcome) -> Result<(), EngineError> {
        let Some(last) = self.history.last() else {
            return Ok(());
        };
        let fact = Fact::TurnEnded {
            message_id: last.message.message_id,
            outcome,
        };
        Ok(self
            .services
            .store
            .add_fact(&self.conversation.id, fact)
            .await?)
    }

    /// Stores a document with the conversation.
    pub(crate) async fn store_state<T: StateDocument + Sync>(
        &self,
        document: &T,
    ) -> Result<(), EngineError> {
        Ok(stored_state::write_document(
            self.services.store.as_ref(),
            &self.conversation.id,
            document,
        )
        .await?)
    }

    /// Like [`Self::store_state`], but masks secrets in the document first.
    pub(crate) async fn store_masked_state<T: StateDocument + Sync>(
        &self,
        document: &T,
    ) -> Result<(), EngineError> {
        let store = self.services.store.as_ref();
        let masker = &self.masker;
        Ok(
            stored_state::write_masked_document(store, &self.conversation.id, document, masker)
                .await?,
        )
    }

    /// Returns true if the last turn had already ended when the conversation was opened.
    pub(crate) fn last_turn_ended(&self) -> bool {
        self.turn_ended
    }

    /// Determines which calls lack a result, and at which position the next turn begins.
    pub(crate) fn plan_resumption(&self, unfinished: Option<Unfinished>) -> Resumption {
        resume::plan_resumption(&self.history, &self.begun, unfinished)
    }

    pub(crate) fn round_count(&self) -> u32 {
        self.history
            .iter()
            .filter(|entry| entry.message.opens_round())
            .count() as u32
    }

    fn newest_reply(&self) -> Option<&Arc<Entry>> {
        self.history
            .iter()
            .rfind(|entry| entry.message.role == Role::Assistant)
    }

    pub(crate) fn last_reply_id(&self) -> Option<MessageId> {
        self.newest_reply().map(|entry| entry.message.message_id)
    }

    /// Returns the reason why the model stopped writing its newest reply.
    pub(crate) fn last_stop_reason(&self) -> StopReason {
        self.newest_reply()
            .and_then(|entry| resume::stored_stop_reason(&entry.message))
            .unwrap_or(StopReason::ToolUse)
    }

    /// Returns the time of the model's newest reply.
    pub(crate) fn last_reply_at(&self) -> Option<Timestamp> {
        Some(self.newest_reply()?.message.created_at)
    }

    /// Returns the time since the model's newest reply.
    pub(crate) fn idle_time(&self) -> Option<Duration> {
        let asked = self.last_reply_at()?;
        self.services
            .clock
            .now()
            .duration_since(asked)
            .try_into()
            .ok()
    }

    /// Returns the newest non-empty text of a message with the role `role`, cut to `characters`
    /// characters.
    pub(crate) fn newest_text(&self, role: Role, characters: usize) -> String {
        let texts = self
            .history
            .iter()
            .rev()
            .map(|entry| &entry.message)
            .filter(|message| message.role == role);
        let text = texts
            .map(Message::joined_text)
            .find(|text| !text.trim().is_empty());
        text.unwrap_or_default().chars().take(characters).collect()
    }

    /// Returns the number of content blocks of each message.
    pub(crate) fn block_counts(&self) -> HashMap<MessageId, usize> {
        self.history
            .iter()
            .map(|entry| (entry.message.message_id, entry.message.content.len()))
            .collect()
    }

    /// Returns the counted tokens of the messages after the newest reply.
    pub(crate) fn tokens_since_reply(&self) -> u64 {
        let new = self
            .history
            .iter()
            .rev()
            .take_while(|entry| entry.message.role != Role::Assistant);
        new.map(|entry| u64::from(entry.tokens)).sum()
    }

    /// Returns the usage of the newest request. Returns `None` if a summary was appended since,
    /// because the next request is smaller then.
    pub(crate) fn usage_since_last_summary(&self) -> Option<Usage> {
        let newest = self
            .history
            .iter()
            .rfind(|entry| matches!(entry.message.role, Role::Assistant | Role::Summary))?;
        match newest.message.role {
            Role::Assistant => newest
                .message
                .llm_metadata
                .as_deref()
                .map(LlmMetadata::usage),
            Role::Summary | Role::System | Role::User | Role::Tool => None,
        }
    }
}

/// Splits the facts into the calls that began and the messages that ended a turn.
fn split_facts(facts: Vec<Fact>) -> (HashSet<CallKey>, HashSet<MessageId>) {
    let mut begun = HashSet::new();
    let mut ended = HashSet::new();
    for fact in facts {
        match fact {
            Fact::ToolStarted {
                message_id,
                call_id,
            } => {
                begun.insert((message_id, call_id));
            }
            Fact::TurnEnded { message_id, .. } => {
                ended.insert(message_id);
            }
        }
    }
    (begun, ended)
}

#[cfg(test)]
pub(crate) mod tests;
