//! The context editor: messages that the user drops, pins, masks or summarizes, and messages that
//! the model deletes ([marks](crate::reduce::marks)). Stored messages never change.
//!
//! ```text
//! stored   U A T₁ T₂ a U A T a U
//! edits    drop T₁ · mask a · summarize the second round
//! sent     U ▒ Σ U                     dropping one result drops its whole block
//! ```
//!
//! Edits are a list that only grows: an undo is an entry, too. [`Edits::combined_state`] is their
//! combined effect, which [`assemble`](crate::assemble()) applies in one step. Invariants: a block is
//! dropped, pinned or summarized whole or not at all; the current input is never edited; in a fork,
//! edits of messages that it lacks have no effect.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use haft_types::{
    ContentHash, Entry, Envelope, Layer, Message, MessageId, Origin, Part, Role, ShortId,
    TokenCounter, ToolCall, ToolResult,
};
use serde::{Deserialize, Serialize};

use crate::build::blocks::repair_blocks;
use crate::build::rounds::{MASKED_OWNER, Timeline, TimelineItem};
use crate::memo::{EntryMaker, MessageForm, RecallTool};
use crate::reduce::compress::status_name;
use crate::reduce::marks::Marks;

/// An edit of the messages that are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "snake_case", deny_unknown_fields)]
pub enum ContextEdit {
    /// Leaves the messages out of all later requests.
    Drop { ids: BTreeSet<MessageId> },
    /// Protects the messages from pruning, compression and archiving.
    Pin { ids: BTreeSet<MessageId> },
    /// Sends each message without its content, which is replaced by the message id.
    Mask { ids: BTreeSet<MessageId> },
    /// Sends the messages in full again, and removes every summary that replaces any of them.
    Restore { ids: BTreeSet<MessageId> },
    /// Sends a text in place of the messages.
    Summarise {
        /// The messages that the text replaces, in order.
        ids: Vec<MessageId>,
        /// The text that replaces the messages.
        text: String,
    },
    /// Reverts the newest edits that were not yet reverted.
    Undo {
        /// The number of edits to revert.
        edits: u32,
    },
}

/// All edits of a conversation, oldest first. Store them with the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Edits {
    list: Vec<ContextEdit>,
}

/// The combined effect of all edits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EditState {
    dropped: BTreeSet<MessageId>,
    pinned: BTreeSet<MessageId>,
    masked: BTreeSet<MessageId>,
    summaries: Vec<Summarised>,
}

/// Messages that the user replaced by a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Summarised {
    ids: Vec<MessageId>,
    text: String,
}

/// The effect of edits on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Edited {
    /// The message is not sent.
    Dropped,
    /// The message is never pruned, compressed or archived.
    Pinned,
    /// The content of the message is replaced by its id.
    Masked,
    /// A summary replaces the message.
    Summarised,
}

impl Edited {
    /// Returns the word for this effect that is shown to the user.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Pinned => "pinned",
            Self::Masked => "masked",
            Self::Summarised => "summarised",
        }
    }
}

impl Edits {
    /// Adds an edit to the list.
    pub fn push(&mut self, edit: ContextEdit) {
        self.list.push(edit);
    }

    /// Returns every edit ever made, including undone ones and undos.
    pub fn all_edits(&self) -> &[ContextEdit] {
        &self.list
    }

    /// Returns the edits that were not undone.
    pub fn edits_in_force(&self) -> Vec<&ContextEdit> {
        let mut stack: Vec<&ContextEdit> = Vec::new();
        for edit in &self.list {
            match edit {
                ContextEdit::Undo { edits } => {
                    stack.truncate(stack.len().saturating_sub(*edits as usize));
                }
                ContextEdit::Drop { .. }
                | ContextEdit::Pin { .. }
                | ContextEdit::Mask { .. }
                | ContextEdit::Restore { .. }
                | ContextEdit::Summarise { .. } => stack.push(edit),
            }
        }
        stack
    }

    /// Combines the edits. If several edits affect one message, the last one counts.
    pub fn combined_state(&self) -> EditState {
        let mut state = EditState::default();
        for edit in self.edits_in_force() {
            state.apply_edit(edit);
        }
        state
    }
}

impl EditState {
    fn apply_edit(&mut self, edit: &ContextEdit) {
        match edit {
            ContextEdit::Drop { ids } => {
                self.restore(ids);
                self.dropped.extend(ids);
            }
            ContextEdit::Pin { ids } => {
                self.restore(ids);
                self.pinned.extend(ids);
            }
            ContextEdit::Mask { ids } => {
                self.restore(ids);
                self.masked.extend(ids);
            }
            ContextEdit::Restore { ids } => self.restore(ids),
            ContextEdit::Summarise { ids, text } => {
                self.restore(&ids.iter().copied().collect());
                self.summaries.push(Summarised {
                    ids: ids.clone(),
                    text: text.clone(),
                });
            }
            ContextEdit::Undo { .. } => {}
        }
    }

    fn restore(&mut self, ids: &BTreeSet<MessageId>) {
        for set in [&mut self.dropped, &mut self.pinned, &mut self.masked] {
            set.retain(|id| !ids.contains(id));
        }
        self.summaries
            .retain(|summary| !summary.ids.iter().any(|id| ids.contains(id)));
    }

    /// True if nothing is edited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the effect of the edits on this message.
    pub fn get(&self, id: MessageId) -> Option<Edited> {
        if self.dropped.contains(&id) {
            Some(Edited::Dropped)
        } else if self.masked.contains(&id) {
            Some(Edited::Masked)
        } else if self.pinned.contains(&id) {
            Some(Edited::Pinned)
        } else {
            self.summaries
                .iter()
                .any(|one| one.ids.contains(&id))
                .then_some(Edited::Summarised)
        }
    }

    /// Returns the messages that the model may see, from which a summary can be written.
    pub fn visible_entries(
        &self,
        entries: &[Arc<Entry>],
        counter: &dyn TokenCounter,
    ) -> Vec<Arc<Entry>> {
        if self.is_empty() {
            return entries.to_vec();
        }
        let mut line = Timeline::new(repair_blocks(entries, counter));
        line.items
            .iter_mut()
            .for_each(|item| item.layer = Layer::History);
        let prepared = Prepared::new(&mut line, Some(self));
        prepared.edit_items(
            self,
            &mut line.items,
            EntryMaker {
                counter,
                memo: None,
                recall: RecallTool::Missing,
            },
        );
        line.items.into_iter().map(|item| item.entry).collect()
    }

    /// Returns the hash of the edits: requests built under different edits may differ for that
    /// reason alone.
    pub fn hash(&self) -> ContentHash {
        // The state consists of ids and texts, so serialization cannot fail.
        ContentHash::from_content(&serde_json::to_vec(self).unwrap_or_default())
    }
}

/// Creates edits that drop the messages that are marked for deletion.
impl From<&Marks> for EditState {
    fn from(marks: &Marks) -> Self {
        Self {
            dropped: marks.deleted.clone(),
            ..Self::default()
        }
    }
}

/// The error for an edit that would leave the model nothing to answer. The timeline is unchanged.
#[derive(Debug)]
pub(crate) struct NothingLeft;

/// The reason why an edit cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// No message has this id.
    #[error("there is no message `{0}` here")]
    Unknown(String),
    /// The message is the input that is being answered.
    #[error("message {0} is what is being answered: it stays")]
    Current(ShortId),
    /// The message is a summary of archived rounds.
    #[error(
        "message {0} is the summary of archived rounds: without it they would be lost to the model"
    )]
    Archive(ShortId),
    /// After the edit, the model would have no message to answer.
    #[error("without these messages nothing would be left to answer")]
    NothingLeft,
    /// A range ends before it begins.
    #[error("`{0}` ends before it begins")]
    Backwards(String),
    /// There are not enough edits to undo.
    #[error("there are only {0} edits to take back")]
    TooManyUndos(usize),
    /// The text of a summary is empty.
    #[error("a summary without text says nothing")]
    EmptySummary,
}

/// The messages selected by a list of ids and ranges, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditTargets {
    /// The ids of all selected messages.
    pub ids: Vec<MessageId>,
    /// The messages that were selected only because they share a block with a named message.
    pub along: Vec<MessageId>,
}

/// The selection of further messages in addition to the named ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditReach {
    /// No further messages are selected.
    Message,
    /// The rest of each named message's block is selected.
    Block,
    /// Everything from the first to the last named message is selected, in whole blocks.
    Span,
}

/// Parses ids (short or full) and ranges `A..B`, both ends included, and returns the messages that
/// they select. `history` is the stored conversation in order.
pub fn select_messages(
    words: &[String],
    reach: EditReach,
    history: &[Arc<Entry>],
    counter: &dyn TokenCounter,
) -> Result<EditTargets, EditError> {
    let line = Timeline::new(repair_blocks(history, counter));
    let mut named = BTreeSet::new();
    for word in words {
        match word.split_once("..") {
            Some((from, to)) => {
                let from = find_message(from, &line)?;
                let to = find_message(to.trim_start_matches('='), &line)?;
                if to < from {
                    return Err(EditError::Backwards(word.clone()));
                }
                named.extend(from..=to);
            }
            None => drop(named.insert(find_message(word, &line)?)),
        }
    }
    if let (EditReach::Span, Some(first), Some(last)) =
        (reach, named.first().copied(), named.last().copied())
    {
        named.extend(first..=last);
    }
    let blocks: HashSet<_> = named.iter().map(|index| line.items[*index].block).collect();
    let mut chosen = EditTargets {
        ids: Vec::new(),
        along: Vec::new(),
    };
    for (index, item) in line.items.iter().enumerate() {
        if named.contains(&index) {
            chosen.ids.push(item.id());
        } else if reach != EditReach::Message && blocks.contains(&item.block) {
            chosen.ids.push(item.id());
            chosen.along.push(item.id());
        }
    }
    Ok(chosen)
}

/// Returns the first and the last message of the block of every message that can be edited. Unlike
/// [`select_messages`] for each message, it reads the history once.
pub fn block_ends(
    history: &[Arc<Entry>],
    counter: &dyn TokenCounter,
) -> HashMap<MessageId, (MessageId, MessageId)> {
    let line = Timeline::new(repair_blocks(history, counter));
    let mut ends: HashMap<u32, (MessageId, MessageId)> = HashMap::new();
    for item in &line.items {
        ends.entry(item.block).or_insert((item.id(), item.id())).1 = item.id();
    }
    let of_items = line
        .items
        .iter()
        .filter_map(|item| Some((item.id(), *ends.get(&item.block)?)));
    of_items.collect()
}

/// Returns the position of the message with a short or full id.
fn find_message(text: &str, line: &Timeline) -> Result<usize, EditError> {
    let text = text.trim().to_ascii_lowercase();
    let is_it = |id: MessageId| id.to_string() == text || id.short_id().to_string() == text;
    if let Some(summary) = line
        .summaries
        .iter()
        .find(|entry| is_it(entry.message.message_id))
    {
        return Err(EditError::Archive(summary.message.message_id.short_id()));
    }
    line.items
        .iter()
        .position(|item| is_it(item.id()))
        .ok_or(EditError::Unknown(text))
}

/// Checks that an edit can be made after the edits `before`. `history` ends with the input that is
/// being answered.
pub fn check_edit(
    edit: &ContextEdit,
    before: &Edits,
    history: &[Arc<Entry>],
    counter: &dyn TokenCounter,
) -> Result<(), EditError> {
    let line = Timeline::new(repair_blocks(history, counter));
    let touched: Vec<_> = match edit {
        ContextEdit::Drop { ids } | ContextEdit::Mask { ids } => ids.iter().copied().collect(),
        ContextEdit::Summarise { ids, text } => {
            if text.trim().is_empty() {
                return Err(EditError::EmptySummary);
            }
            ids.clone()
        }
        ContextEdit::Pin { .. } | ContextEdit::Restore { .. } => Vec::new(),
        ContextEdit::Undo { edits } => {
            let there = before.edits_in_force().len();
            return if *edits as usize > there {
                Err(EditError::TooManyUndos(there))
            } else {
                Ok(())
            };
        }
    };
    let current = touched.iter().find(|id| {
        line.items
            .iter()
            .any(|item| item.layer == Layer::Current && item.id() == **id)
    });
    if let Some(id) = current {
        return Err(EditError::Current(id.short_id()));
    }
    let mut after = before.clone();
    after.push(edit.clone());
    let mut line = line;
    let state = after.combined_state();
    let plan = Prepared::new(&mut line, Some(&state));
    plan.apply_to(
        &mut line,
        EntryMaker {
            counter,
            memo: None,
            recall: RecallTool::Missing,
        },
    )
    .map(drop)
    .map_err(|NothingLeft| EditError::NothingLeft)
}

/// The owner of a message whose text replaces messages that the user summarized.
const SUMMARISED_OWNER: &str = "history:summarised";

/// The edits of one conversation, prepared for its timeline.
#[derive(Default)]
pub(crate) struct Prepared<'a> {
    state: Option<&'a EditState>,
    /// The summaries whose messages are all in the timeline; others cannot be applied.
    summaries: Vec<&'a Summarised>,
}

impl<'a> Prepared<'a> {
    /// Marks the pinned blocks and finds the summaries that can be applied. Call it before messages
    /// are archived.
    pub(crate) fn new(line: &mut Timeline, state: Option<&'a EditState>) -> Self {
        let Some(state) = state.filter(|state| !state.is_empty()) else {
            return Self::default();
        };
        if !state.pinned.is_empty() {
            let pinned = line
                .items
                .iter()
                .filter(|item| state.pinned.contains(&item.id()));
            let blocks: HashSet<_> = pinned.map(|item| item.block).collect();
            line.items
                .iter_mut()
                .for_each(|item| item.pinned = blocks.contains(&item.block));
        }
        let places: HashMap<_, _> = line.items.iter().map(|item| (item.id(), item)).collect();
        let stands = |summary: &&Summarised| {
            let found: Option<Vec<_>> = summary
                .ids
                .iter()
                .map(|id| places.get(id).copied())
                .collect();
            let ids: HashSet<_> = summary.ids.iter().collect();
            found.is_some_and(|found| {
                let blocks: HashSet<_> = found.iter().map(|item| item.block).collect();
                let whole = line
                    .items
                    .iter()
                    .filter(|item| blocks.contains(&item.block));
                found.iter().all(|item| item.layer != Layer::Current)
                    && whole.map(TimelineItem::id).all(|id| ids.contains(&id))
            })
        };
        let summaries = state.summaries.iter().filter(stands).collect();
        Self {
            state: Some(state),
            summaries,
        }
    }

    /// Applies the edits and returns the number of tokens left out. Fails without changing the
    /// timeline if nothing would be left to answer.
    pub(crate) fn apply_to(
        &self,
        line: &mut Timeline,
        maker: EntryMaker<'_>,
    ) -> Result<u64, NothingLeft> {
        let Some(state) = self.state else {
            return Ok(0);
        };
        let tokens = line.tokens();
        let mut items = line.items.clone();
        self.edit_items(state, &mut items, maker);
        if !items
            .last()
            .is_some_and(|item| matches!(item.role(), Role::User | Role::Tool))
        {
            return Err(NothingLeft);
        }
        line.items = items;
        Ok(tokens.saturating_sub(line.tokens()))
    }

    fn edit_items(&self, state: &EditState, items: &mut Vec<TimelineItem>, maker: EntryMaker<'_>) {
        for summary in &self.summaries {
            insert_summary(items, summary, maker);
        }
        let is_in = |item: &TimelineItem, ids: &BTreeSet<MessageId>| {
            item.layer != Layer::Current && ids.contains(&item.id())
        };
        let dropped = items.iter().filter(|item| is_in(item, &state.dropped));
        let blocks: HashSet<_> = dropped.map(|item| item.block).collect();
        items.retain(|item| !blocks.contains(&item.block));
        for item in items.iter_mut().filter(|item| is_in(item, &state.masked)) {
            mask_item(item, maker);
        }
    }
}

/// Replaces messages by the user's summary of them.
fn insert_summary(items: &mut Vec<TimelineItem>, summary: &Summarised, maker: EntryMaker<'_>) {
    let ids: HashSet<_> = summary.ids.iter().collect();
    let Some(first) = items.iter().position(|item| ids.contains(&item.id())) else {
        return;
    };
    let (first_id, last_id) = match (summary.ids.first(), summary.ids.last()) {
        (Some(first), Some(last)) => (*first, *last),
        _ => return,
    };
    let recall = match maker.recall {
        RecallTool::Offered => " `recall` brings one back by its id.",
        RecallTool::Missing => "",
    };
    let text = format!(
        "[Summary of {} earlier messages, {} to {}.{recall}]\n\n{}",
        summary.ids.len(),
        first_id.short_id(),
        last_id.short_id(),
        summary.text.trim()
    );
    let hash = ContentHash::from_content(format!("{first_id} {last_id} {text}").as_bytes());
    let at = items[first].entry.message.created_at;
    let block = items[first].block;
    let round = items[first].round;
    let id = MessageId::from_hash(hash);
    let entry = maker.derived_entry(id, hash, MessageForm::Made, || {
        Message::from_text(id, Role::User, text, at).with_origin(Origin::Engine)
    });
    items[first] = TimelineItem {
        entry,
        block,
        round,
        layer: Layer::History,
        owner: SUMMARISED_OWNER,
        pinned: false,
        unseen: false,
    };
    items.retain(|item| !ids.contains(&item.id()));
}

/// Replaces the content of a message by a note with its id.
fn mask_item(item: &mut TimelineItem, maker: EntryMaker<'_>) {
    let message = &item.entry.message;
    let id = message.message_id.short_id();
    item.entry = maker.derived_entry(
        message.message_id,
        item.entry.hash,
        MessageForm::Masked,
        || {
            let stub = format!("[Masked by the user. The text is kept under message id {id}.]");
            let mut content = Vec::with_capacity(message.content.len());
            for part in &message.content {
                match part {
                    Part::ToolCall(call) => {
                        let arguments =
                            serde_json::json!({"masked": format!("message id {id}")}).to_string();
                        content.push(Part::ToolCall(ToolCall {
                            arguments,
                            ..call.clone()
                        }));
                    }
                    Part::ToolResult(result) => content.push(mask_result(result, id)),
                    // Text, reasoning and images are masked, too.
                    Part::Text { .. } | Part::Thinking(_) | Part::Image(_) => {}
                }
            }
            if content.is_empty() {
                content.push(Part::from_text(stub));
            }
            Message {
                content,
                ..message.clone()
            }
        },
    );
    item.owner = MASKED_OWNER;
}

fn mask_result(result: &ToolResult, id: ShortId) -> Part {
    let status = status_name(result.envelope.status);
    let text = format!(
        "[Masked by the user: result of `{}` ({status}). Its text is kept under message id {id}.]",
        result.name
    );
    let envelope = Envelope {
        status: result.envelope.status,
        text,
        ..Envelope::default()
    };
    let tool_call_id = result.tool_call_id.clone();
    let name = result.name.clone();
    Part::ToolResult(Box::new(ToolResult {
        tool_call_id,
        name,
        envelope,
    }))
}

#[cfg(test)]
mod tests;
