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

use crate::build::placement::{Placement, find, stays};
use crate::build::reminders::{KINDS, message};
use crate::build::rounds::{LEDGER, SUMMARY, Timeline, TimelineItem};
use crate::build::system::{REQUIRED, SMALL, SystemSection};
use crate::cache::boundaries::RunMotion;
use crate::carried::ReminderCopy;
use crate::memo::{EntryMaker, MessageForm};
use crate::policy::{Policy, View};
use crate::snapshot::Snapshot;

/// Who put a message there, and the message.
pub(crate) type Owned = (&'static str, Arc<Entry>);

/// A copy of a reminder that was sent, as a message again.
#[derive(Clone, Debug)]
pub(crate) struct Copied {
    pub(crate) copy: ReminderCopy,
    pub(crate) owned: Owned,
}

/// The copies that earlier requests hold, where they are kept at all.
fn sent_before(snapshot: &Snapshot<'_>) -> Vec<Copied> {
    let policy = snapshot.policy;
    let kept = snapshot
        .carried
        .filter(|_| policy.view == View::Layered && policy.reminders == Placement::CacheAware);
    let copied = |copy: &ReminderCopy| {
        let kind = KINDS.into_iter().find(|kind| kind.owner == copy.owner)?;
        let owned = (
            kind.owner,
            message(snapshot.maker(), kind.owner, &copy.text),
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

/// Everything that will be sent, still apart.
pub(crate) struct Layers {
    pub(crate) system: Arc<Entry>,
    pub(crate) tools: Arc<ToolSet>,
    pub(crate) documents: Vec<Owned>,
    pub(crate) run: Vec<Owned>,
    /// Copies of reminders that earlier requests hold.
    pub(crate) copies: Vec<Copied>,
    pub(crate) line: Timeline,
    /// Sections the system message must have.
    pub(crate) required: &'static [SystemSection],
}

impl Layers {
    pub(crate) fn new(snapshot: &Snapshot<'_>, line: Timeline) -> Self {
        let run = snapshot
            .reminders
            .map(|reminders| reminders.run(snapshot.policy, snapshot.maker()));
        Self {
            system: Arc::clone(snapshot.system),
            tools: Arc::clone(snapshot.tools),
            documents: snapshot
                .documents
                .map(|documents| documents.messages.clone())
                .unwrap_or_default(),
            run: run.unwrap_or_default(),
            copies: sent_before(snapshot),
            line,
            required: match snapshot.model.profile {
                ModelProfile::Full => REQUIRED,
                ModelProfile::Small => SMALL,
            },
        }
    }

    /// The estimated tokens of everything but the line. Of reminders this is the most they can
    /// take: all copies stay and the whole run is appended.
    pub(crate) fn fixed(&self) -> u64 {
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
        empty.tokens() + u64::from(self.system.tokens) + made
    }

    /// The estimated tokens of the request.
    pub(crate) fn tokens(&self) -> u64 {
        self.fixed() + self.line.tokens()
    }

    /// Whether the next request will find the run where it is now.
    pub(crate) fn outlook(&self, policy: &Policy) -> RunMotion {
        if policy.reminders == Placement::CacheAware {
            RunMotion::Appended
        } else if self.run.is_empty() || stays(policy.reminders, &self.line.items) {
            RunMotion::Stays
        } else {
            RunMotion::Moves
        }
    }

    /// What stands before the conversation.
    pub(crate) fn head(&self) -> Vec<Segment> {
        let documents = self
            .documents
            .iter()
            .map(|(owner, entry)| segment(Layer::Documents, owner, Arc::clone(entry)));
        let summaries = self.line.summaries.iter().map(|entry| {
            let owner = if entry.message.origin() == Origin::Engine {
                LEDGER
            } else {
                SUMMARY
            };
            segment(Layer::History, owner, Arc::clone(entry))
        });
        let system = segment(Layer::System, "system", Arc::clone(&self.system));
        [system]
            .into_iter()
            .chain(documents)
            .chain(summaries)
            .collect()
    }

    /// Puts a line of the user's before a model that would speak first, because what it answered
    /// was left out: not every API takes a conversation that begins with an answer.
    pub(crate) fn let_the_user_open(&mut self, maker: EntryMaker<'_>) {
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
        let hash = ContentHash::of(format!("{OPENING} {}", first.id()).as_bytes());
        let id = MessageId::derived(hash);
        let entry = maker.entry(id, hash, MessageForm::Made, || {
            Message::text(id, Role::User, OPENING, at).from(Origin::Engine)
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

    /// Lays them out in their order, the run among the history.
    pub(crate) fn into_segments(self, policy: &Policy) -> Vec<Segment> {
        let mut segments = self.head();
        let line = self.line;
        segments.reserve(line.items.len() + self.run.len());
        let place = find(policy.reminders, &line.items, policy.max_distance);
        let mut items = line
            .items
            .into_iter()
            .map(|item| segment(item.layer, item.owner, item.entry));
        segments.extend(items.by_ref().take(place));
        segments.extend(
            self.run
                .into_iter()
                .map(|(owner, entry)| segment(Layer::Reminders, owner, entry)),
        );
        segments.extend(items);
        segments
    }
}

pub(crate) fn segment(layer: Layer, owner: &'static str, entry: Arc<Entry>) -> Segment {
    Segment {
        layer,
        owner,
        entry,
        boundary: false,
    }
}
