//! The layers of a request before they are laid out.
//!
//! ```text
//! system · documents · summaries · history … run … history · current request · its tool calls and results
//! ```

use std::sync::Arc;

use haft_types::{
    ContentHash, Entry, Layer, Message, MessageId, ModelProfile, Origin, Request, Role, Segment,
    ToolSet,
};

use crate::build::placement::{Placement, find_run_index, is_run_stable};
use crate::build::reminders::{KINDS, reminder_message};
use crate::build::rounds::{LEDGER_OWNER, SUMMARY_OWNER, Timeline, TimelineItem};
use crate::build::system::{REQUIRED_SECTIONS, REQUIRED_SMALL_SECTIONS, SystemSection};
use crate::cache::boundaries::RunMotion;
use crate::carried::ReminderCopy;
use crate::memo::{EntryMaker, MessageForm};
use crate::policy::{Policy, View};
use crate::snapshot::Snapshot;

/// A message with its owner: the name of the part of haft that added the message.
pub(crate) type OwnedEntry = (&'static str, Arc<Entry>);

/// A reminder copy of an earlier request, with the message rebuilt from it.
#[derive(Clone, Debug)]
pub(crate) struct Copied {
    pub(crate) copy: ReminderCopy,
    pub(crate) owned: OwnedEntry,
}

/// Rebuilds the reminder copies of earlier requests as messages. Returns an empty list unless the
/// placement is [`Placement::CacheAware`].
fn rebuild_copies(snapshot: &Snapshot<'_>) -> Vec<Copied> {
    let policy = snapshot.policy;
    let kept = snapshot
        .carried
        .filter(|_| policy.view == View::Layered && policy.reminders == Placement::CacheAware);
    let copied = |copy: &ReminderCopy| {
        let kind = KINDS.into_iter().find(|kind| kind.owner == copy.owner)?;
        let owned = (
            kind.owner,
            reminder_message(snapshot.entry_maker(), kind.owner, &copy.text),
        );
        Some(Copied {
            copy: copy.clone(),
            owned,
        })
    };
    kept.into_iter()
        .flat_map(|carried| &carried.copies)
        .filter_map(copied)
        .collect()
}

/// All parts of a request before they are laid out.
pub(crate) struct Layers {
    pub(crate) system: Arc<Entry>,
    pub(crate) tools: Arc<ToolSet>,
    pub(crate) documents: Vec<OwnedEntry>,
    pub(crate) run: Vec<OwnedEntry>,
    /// The reminder copies of earlier requests.
    pub(crate) copies: Vec<Copied>,
    pub(crate) line: Timeline,
    /// The sections that the system message must have.
    pub(crate) required: &'static [SystemSection],
}

impl Layers {
    pub(crate) fn new(snapshot: &Snapshot<'_>, line: Timeline) -> Self {
        let run = snapshot
            .reminders
            .map(|reminders| reminders.build_run(snapshot.policy, snapshot.entry_maker()));
        Self {
            system: Arc::clone(snapshot.system),
            tools: Arc::clone(snapshot.tools),
            documents: snapshot
                .documents
                .map(|documents| documents.messages.clone())
                .unwrap_or_default(),
            run: run.unwrap_or_default(),
            copies: rebuild_copies(snapshot),
            line,
            required: match snapshot.model.profile {
                ModelProfile::Full => REQUIRED_SECTIONS,
                ModelProfile::Small => REQUIRED_SMALL_SECTIONS,
            },
        }
    }

    /// Returns the estimated tokens of everything but the timeline. For reminders this is an upper
    /// limit: it assumes that all earlier copies stay and that a new copy of every reminder is
    /// appended.
    pub(crate) fn fixed_tokens(&self) -> u64 {
        let tools = Arc::clone(&self.tools);
        let segments = Vec::new();
        let empty = Request {
            segments,
            tools,
            max_output_tokens: None,
            cache_key: None,
        };
        let copies = self.copies.iter().map(|copied| &copied.owned);
        let made = self
            .documents
            .iter()
            .chain(&self.run)
            .chain(copies)
            .map(|(_, entry)| u64::from(entry.tokens))
            .sum::<u64>();
        empty.estimated_tokens() + u64::from(self.system.tokens) + made
    }

    /// Returns the estimated number of tokens in the request.
    pub(crate) fn tokens(&self) -> u64 {
        self.fixed_tokens() + self.line.tokens()
    }

    /// Predicts the change in the position of the run of reminders from this request to the next.
    pub(crate) fn run_motion(&self, policy: &Policy) -> RunMotion {
        if policy.reminders == Placement::CacheAware {
            RunMotion::Appended
        } else if self.run.is_empty() || is_run_stable(policy.reminders, &self.line.items) {
            RunMotion::Stays
        } else {
            RunMotion::Moves
        }
    }

    /// Returns the segments before the conversation: system message, documents, and summaries.
    pub(crate) fn head_segments(&self) -> Vec<Segment> {
        let documents = self
            .documents
            .iter()
            .map(|(owner, entry)| new_segment(Layer::Documents, owner, Arc::clone(entry)));
        let summaries = self.line.summaries.iter().map(|entry| {
            let owner = if entry.message.origin() == Origin::Engine {
                LEDGER_OWNER
            } else {
                SUMMARY_OWNER
            };
            new_segment(Layer::History, owner, Arc::clone(entry))
        });
        let system = new_segment(Layer::System, "system", Arc::clone(&self.system));
        [system]
            .into_iter()
            .chain(documents)
            .chain(summaries)
            .collect()
    }

    /// Inserts a user message at the front if the conversation would otherwise begin with an answer
    /// whose input was left out, because some APIs reject such a conversation.
    pub(crate) fn insert_opening_message(&mut self, maker: EntryMaker<'_>) {
        const OPENING: &str = "[What was said before is left out.]";
        let Some(first) = self.line.items.first() else {
            return;
        };
        if first.role() == Role::User
            || !self.documents.is_empty()
            || !self.line.summaries.is_empty()
        {
            return;
        }
        let at = first.entry.message.created_at;
        let hash = ContentHash::from_content(format!("{OPENING} {}", first.id()).as_bytes());
        let id = MessageId::from_hash(hash);
        let entry = maker.derived_entry(id, hash, MessageForm::Made, || {
            Message::from_text(id, Role::User, OPENING, at).with_origin(Origin::Engine)
        });
        let opening = TimelineItem {
            entry,
            block: u32::MAX,
            round: 0,
            layer: Layer::History,
            owner: "history:opening",
            pinned: false,
            unseen: false,
        };
        self.line.items.insert(0, opening);
    }

    /// Lays out the layers in order and inserts the run of reminders into the history.
    pub(crate) fn into_segments(self, policy: &Policy) -> Vec<Segment> {
        let mut segments = self.head_segments();
        let line = self.line;
        segments.reserve(line.items.len() + self.run.len());
        let place = find_run_index(policy.reminders, &line.items, policy.max_distance);
        let mut items = line
            .items
            .into_iter()
            .map(|item| new_segment(item.layer, item.owner, item.entry));
        segments.extend(items.by_ref().take(place));
        segments.extend(
            self.run
                .into_iter()
                .map(|(owner, entry)| new_segment(Layer::Reminders, owner, entry)),
        );
        segments.extend(items);
        segments
    }
}

pub(crate) fn new_segment(layer: Layer, owner: &'static str, entry: Arc<Entry>) -> Segment {
    Segment {
        layer,
        owner,
        entry,
        boundary: false,
    }
}
