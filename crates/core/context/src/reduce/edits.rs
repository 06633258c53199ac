//! The context editor: what people drop, pin, mask or summarise of a conversation, and what the
//! model deletes ([marks](crate::reduce::marks)). What is stored never changes.
//!
//! ```text
//! stored   U A T₁ T₂ a U A T a U
//! edits    drop T₁ · mask a · summarise the second round
//! sent     U ▒ Σ U                     dropping one result drops its whole block
//! ```
//!
//! Edits are a list that only grows: an undo is an entry, too. [`Edits::state`] is what they come
//! to, and the one step that [`assemble`](crate::assemble) applies. Invariants: a block is dropped,
//! pinned or summarised whole or not at all; the current input is never touched; an edit of
//! messages that a fork does not hold does nothing there.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use haft_types::{
    ContentHash, Entry, Envelope, Layer, Message, MessageId, Origin, Part, Role, ShortId,
    TokenCounter, ToolCall, ToolResult,
};
use serde::{Deserialize, Serialize};

use crate::build::blocks::repair;
use crate::build::rounds::{MASKED, Timeline, TimelineItem};
use crate::memo::{EntryMaker, MessageForm, RecallTool};
use crate::reduce::compress::status_name;
use crate::reduce::marks::Marks;

/// One edit of what is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "snake_case", deny_unknown_fields)]
pub enum ContextEdit {
    /// These are not sent.
    Drop {
        /// The messages.
        ids: BTreeSet<MessageId>,
    },
    /// These are never pruned, compressed or archived.
    Pin {
        /// The messages.
        ids: BTreeSet<MessageId>,
    },
    /// Of these only a line is sent that names them.
    Mask {
        /// The messages.
        ids: BTreeSet<MessageId>,
    },
    /// These are sent as they are again; a summary of any of them goes.
    Restore {
        /// The messages.
        ids: BTreeSet<MessageId>,
    },
    /// A text is sent in place of these.
    Summarise {
        /// The messages, in order.
        ids: Vec<MessageId>,
        /// What stands for them.
        text: String,
    },
    /// The newest edits still in force are taken back.
    Undo {
        /// How many.
        edits: u32,
    },
}

/// All edits of a conversation, oldest first. Keep them with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Edits {
    list: Vec<ContextEdit>,
}

/// What edits come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EditState {
    dropped: BTreeSet<MessageId>,
    pinned: BTreeSet<MessageId>,
    masked: BTreeSet<MessageId>,
    summaries: Vec<Summarised>,
}

/// Messages that a text stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Summarised {
    ids: Vec<MessageId>,
    text: String,
}

/// What became of a message by edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Edited {
    /// It is not sent.
    Dropped,
    /// It is never pruned, compressed or archived.
    Pinned,
    /// Only its name is sent.
    Masked,
    /// A summary stands for it.
    Summarised,
}

impl Edited {
    /// The word people read.
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

    /// Every edit ever made, undone ones and undos included.
    pub fn all(&self) -> &[ContextEdit] {
        &self.list
    }

    /// The edits that were not taken back.
    pub fn in_force(&self) -> Vec<&ContextEdit> {
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

    /// What they come to: of a message the last word counts.
    pub fn state(&self) -> EditState {
        let mut state = EditState::default();
        for edit in self.in_force() {
            state.take(edit);
        }
        state
    }
}

impl EditState {
    fn take(&mut self, edit: &ContextEdit) {
        match edit {
            ContextEdit::Drop { ids } => {
                self.release(ids);
                self.dropped.extend(ids);
            }
            ContextEdit::Pin { ids } => {
                self.release(ids);
                self.pinned.extend(ids);
            }
            ContextEdit::Mask { ids } => {
                self.release(ids);
                self.masked.extend(ids);
            }
            ContextEdit::Restore { ids } => self.release(ids),
            ContextEdit::Summarise { ids, text } => {
                self.release(&ids.iter().copied().collect());
                self.summaries.push(Summarised {
                    ids: ids.clone(),
                    text: text.clone(),
                });
            }
            ContextEdit::Undo { .. } => {}
        }
    }

    fn release(&mut self, ids: &BTreeSet<MessageId>) {
        for set in [&mut self.dropped, &mut self.pinned, &mut self.masked] {
            set.retain(|id| !ids.contains(id));
        }
        self.summaries
            .retain(|summary| !summary.ids.iter().any(|id| ids.contains(id)));
    }

    /// Whether nothing is edited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What became of this message.
    pub fn of(&self, id: MessageId) -> Option<Edited> {
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

    /// These messages as the model may see them: for whoever writes a summary of them.
    pub fn seen(&self, entries: &[Arc<Entry>], counter: &dyn TokenCounter) -> Vec<Arc<Entry>> {
        if self.is_empty() {
            return entries.to_vec();
        }
        let mut line = Timeline::new(repair(entries, counter));
        line.items
            .iter_mut()
            .for_each(|item| item.layer = Layer::History);
        let prepared = Prepared::of(&mut line, Some(self));
        prepared.edit(
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

    /// The hash of all of it: requests built under different edits may differ for that reason
    /// alone.
    pub fn hash(&self) -> ContentHash {
        // Ids and texts alone: writing them cannot fail.
        ContentHash::of(&serde_json::to_vec(self).unwrap_or_default())
    }
}

/// A message that the model deleted is one that was dropped.
impl From<&Marks> for EditState {
    fn from(marks: &Marks) -> Self {
        Self {
            dropped: marks.deleted.clone(),
            ..Self::default()
        }
    }
}

/// Nothing was left out: nothing would be left to answer.
#[derive(Debug)]
pub(crate) struct NothingLeft;

/// Why an edit cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// No message has this id.
    #[error("there is no message `{0}` here")]
    Unknown(String),
    /// It is the input that is being answered.
    #[error("message {0} is what is being answered: it stays")]
    Current(ShortId),
    /// It is a summary of archived rounds.
    #[error(
        "message {0} is the summary of archived rounds: without it they would be lost to the model"
    )]
    Archive(ShortId),
    /// Nothing would be left to answer.
    #[error("without these messages nothing would be left to answer")]
    NothingLeft,
    /// A range that ends before it begins.
    #[error("`{0}` ends before it begins")]
    Backwards(String),
    /// There is no edit to take back.
    #[error("there are only {0} edits to take back")]
    TooManyUndos(usize),
    /// The text that was to stand for messages says nothing.
    #[error("a summary without text says nothing")]
    NoWords,
}

/// The messages that a list of ids and ranges names, blocks whole, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditTargets {
    /// All of them.
    pub ids: Vec<MessageId>,
    /// Those that were not named but belong to the block of one that was.
    pub along: Vec<MessageId>,
}

/// Whether the rest of a block comes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditReach {
    /// Only what was named.
    Message,
    /// The whole block.
    Block,
    /// Everything from the first to the last that was named, blocks whole.
    Span,
}

/// Reads ids (short or full) and ranges `A..B`, both ends included. `history` is what is stored, in
/// order.
pub fn choose(
    words: &[String],
    reach: EditReach,
    history: &[Arc<Entry>],
    counter: &dyn TokenCounter,
) -> Result<EditTargets, EditError> {
    let line = Timeline::new(repair(history, counter));
    let mut named = BTreeSet::new();
    for word in words {
        match word.split_once("..") {
            Some((from, to)) => {
                let from = find(from, &line)?;
                let to = find(to.trim_start_matches('='), &line)?;
                if to < from {
                    return Err(EditError::Backwards(word.clone()));
                }
                named.extend(from..=to);
            }
            None => drop(named.insert(find(word, &line)?)),
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

/// The place of the message with a short or full id.
fn find(text: &str, line: &Timeline) -> Result<usize, EditError> {
    let text = text.trim().to_ascii_lowercase();
    let is_it = |id: MessageId| id.to_string() == text || id.short().to_string() == text;
    if let Some(summary) = line
        .summaries
        .iter()
        .find(|entry| is_it(entry.message.message_id))
    {
        return Err(EditError::Archive(summary.message.message_id.short()));
    }
    line.items
        .iter()
        .position(|item| is_it(item.id()))
        .ok_or(EditError::Unknown(text))
}

/// Checks whether an edit can be made of this conversation, after those before it. `history` ends
/// with what is being answered.
pub fn check_edit(
    edit: &ContextEdit,
    before: &Edits,
    history: &[Arc<Entry>],
    counter: &dyn TokenCounter,
) -> Result<(), EditError> {
    let line = Timeline::new(repair(history, counter));
    let current = |id: &MessageId| {
        line.items
            .iter()
            .any(|item| item.layer == Layer::Current && item.id() == *id)
    };
    let touched: Vec<_> = match edit {
        ContextEdit::Drop { ids } | ContextEdit::Mask { ids } => ids.iter().copied().collect(),
        ContextEdit::Summarise { ids, text } => {
            if text.trim().is_empty() {
                return Err(EditError::NoWords);
            }
            ids.clone()
        }
        ContextEdit::Pin { .. } | ContextEdit::Restore { .. } => Vec::new(),
        ContextEdit::Undo { edits } => {
            let there = before.in_force().len();
            return if *edits as usize > there {
                Err(EditError::TooManyUndos(there))
            } else {
                Ok(())
            };
        }
    };
    if let Some(id) = touched.iter().find(|id| current(id)) {
        return Err(EditError::Current(id.short()));
    }
    let mut after = before.clone();
    after.push(edit.clone());
    let mut line = line;
    let state = after.state();
    let plan = Prepared::of(&mut line, Some(&state));
    plan.apply(
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

/// The owner of a summary among the history.
const SUMMARISED: &str = "history:summarised";

/// What of the edits concerns this conversation.
#[derive(Default)]
pub(crate) struct Prepared<'a> {
    state: Option<&'a EditState>,
    /// Summaries whose messages are all there.
    summaries: Vec<&'a Summarised>,
}

impl<'a> Prepared<'a> {
    /// Pins what is pinned, blocks whole, and finds the summaries that can stand. Before anything
    /// is archived.
    pub(crate) fn of(line: &mut Timeline, state: Option<&'a EditState>) -> Self {
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

    /// Applies them. Returns the tokens left out, or the line unchanged if nothing would be left to
    /// answer.
    pub(crate) fn apply(
        &self,
        line: &mut Timeline,
        maker: EntryMaker<'_>,
    ) -> Result<u64, NothingLeft> {
        let Some(state) = self.state else {
            return Ok(0);
        };
        let tokens = line.tokens();
        let mut items = line.items.clone();
        self.edit(state, &mut items, maker);
        if !items
            .last()
            .is_some_and(|item| matches!(item.role(), Role::User | Role::Tool))
        {
            return Err(NothingLeft);
        }
        line.items = items;
        Ok(tokens.saturating_sub(line.tokens()))
    }

    fn edit(&self, state: &EditState, items: &mut Vec<TimelineItem>, maker: EntryMaker<'_>) {
        for summary in &self.summaries {
            stand_in(items, summary, maker);
        }
        let is_in = |item: &TimelineItem, ids: &BTreeSet<MessageId>| {
            item.layer != Layer::Current && ids.contains(&item.id())
        };
        let dropped = items.iter().filter(|item| is_in(item, &state.dropped));
        let blocks: HashSet<_> = dropped.map(|item| item.block).collect();
        items.retain(|item| !blocks.contains(&item.block));
        for item in items.iter_mut().filter(|item| is_in(item, &state.masked)) {
            mask(item, maker);
        }
    }
}

/// Puts a summary in the place of its messages.
fn stand_in(items: &mut Vec<TimelineItem>, summary: &Summarised, maker: EntryMaker<'_>) {
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
        first_id.short(),
        last_id.short(),
        summary.text.trim()
    );
    let hash = ContentHash::of(format!("{first_id} {last_id} {text}").as_bytes());
    let at = items[first].entry.message.created_at;
    let block = items[first].block;
    let round = items[first].round;
    let id = MessageId::derived(hash);
    let entry = maker.entry(id, hash, MessageForm::Made, || {
        Message::text(id, Role::User, text, at).from(Origin::Engine)
    });
    items[first] = TimelineItem {
        entry,
        block,
        round,
        layer: Layer::History,
        owner: SUMMARISED,
        pinned: false,
        unseen: false,
    };
    items.retain(|item| !ids.contains(&item.id()));
}

/// Leaves only the name of a message.
fn mask(item: &mut TimelineItem, maker: EntryMaker<'_>) {
    let message = &item.entry.message;
    let id = message.message_id.short();
    item.entry = maker.entry(
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
                    Part::ToolResult(result) => content.push(masked_result(result, id)),
                    // What was thought or shown is part of what is masked.
                    Part::Text { .. } | Part::Thinking(_) | Part::Image(_) => {}
                }
            }
            if content.is_empty() {
                content.push(Part::text(stub));
            }
            Message {
                content,
                ..message.clone()
            }
        },
    );
    item.owner = MASKED;
}

fn masked_result(result: &ToolResult, id: ShortId) -> Part {
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
