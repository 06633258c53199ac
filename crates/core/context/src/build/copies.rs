//! `cache-aware` placement: copies of reminders stay where they were sent, and new copies are
//! appended.
//!
//! ```text
//! S U A T                 a result has just shown the TODO list: no copy is needed until that result is too far from the end
//! S U A T *¹              a reminder that no message states yet is appended
//! S U A T *¹ A T          all reminders are stated: nothing moves, the request only appends
//! S U A T *¹ A T *²       the list changed, or its newest copy was too far from the end
//! S U a t A T *²          the prefix is rewritten or cold anyway: older copies are dropped
//! ```
//!
//! Invariants: on a warm prefix no copy moves, changes or is removed. After a break everything is
//! sent anew, so copies after the break are removed and those before it stay. The newest copy of
//! each kind holds the kind's current text and is at most [`Policy::max_distance`](crate::Policy)
//! messages from the end. While the request has no copy of the TODO list, the newest result of a
//! TODO tool that shows the current list takes its place.

use std::borrow::Cow;
use std::mem;
use std::sync::Arc;

use haft_types::{ContentHash, Layer, MessageId, Segment, ToolResult, ToolStatus};

use crate::build::layers::{Copied, Layers, OwnedEntry, new_segment};
use crate::build::reminders::{
    EMPTY_KIND_TEXT, KINDS, ReminderKind, Reminders, TODO_OWNER, reminder_message,
};
use crate::build::rounds::TimelineItem;
use crate::carried::ReminderCopy;
use crate::reduce::compress::tool_name;
use crate::snapshot::Snapshot;

/// A reminder copy of an earlier request, and the index of the item before which it is sent again.
struct StandingCopy {
    before: usize,
    copied: Copied,
}

/// The current text of one kind of reminder, as a message that can be appended.
struct LiveCopy {
    owned: OwnedEntry,
    says: ContentHash,
    /// True if the text is sent again once its newest copy is far from the end of the request. A
    /// text that only reports that the kind is empty is not repeated.
    repeat: bool,
}

/// Lays out the request. Returns its segments, and the reminder copies among these segments.
pub(crate) fn lay_out_with_copies(
    mut layers: Layers,
    snapshot: &Snapshot<'_>,
) -> (Vec<Segment>, Vec<ReminderCopy>) {
    let head = layers.head_segments();
    let items = mem::take(&mut layers.line.items);
    let copies = mem::take(&mut layers.copies);
    let in_place = |copied: Copied| {
        find_copy_index(&items, copied.copy.after).map(|before| StandingCopy { before, copied })
    };
    let mut standing: Vec<_> = copies.into_iter().filter_map(in_place).collect();
    standing.sort_by_key(|one| one.before);
    let cold = snapshot.is_cold()
        || snapshot
            .last
            .is_none_or(|last| last.tools != layers.tools.hash);
    standing.truncate(if cold {
        0
    } else {
        count_unchanged_copies(&head, &items, &standing, snapshot)
    });

    let length = head.len() + items.len() + standing.len();
    let laid = LaidMessages {
        head: &head,
        items: &items,
        standing: &standing,
    };
    let append = select_due_reminders(&layers.run, &laid, snapshot);
    let mut kept: Vec<_> = standing.iter().map(|one| one.copied.copy.clone()).collect();
    if let Some(last) = items.last() {
        kept.extend(append.iter().map(|live| ReminderCopy {
            owner: Cow::Borrowed(live.owned.0),
            text: live.owned.1.message.joined_text(),
            says: live.says,
            after: last.id(),
        }));
    }

    let reminder = |(owner, entry): OwnedEntry| new_segment(Layer::Reminders, owner, entry);
    let mut segments = head;
    segments.reserve(length + append.len());
    let mut standing = standing.into_iter().peekable();
    for (index, item) in items.into_iter().enumerate() {
        while let Some(one) = standing.next_if(|one| one.before <= index) {
            segments.push(reminder(one.copied.owned));
        }
        segments.push(new_segment(item.layer, item.owner, item.entry));
    }
    segments.extend(standing.map(|one| reminder(one.copied.owned)));
    segments.extend(append.into_iter().map(|live| reminder(live.owned)));
    (segments, kept)
}

/// Returns the index at which to insert a copy that was sent after the message `after`: just past
/// that message and the rest of its block. Returns `None` if the message is gone.
fn find_copy_index(items: &[TimelineItem], after: MessageId) -> Option<usize> {
    let mut index = items.iter().rposition(|item| item.id() == after)? + 1;
    while index < items.len() && items[index].block == items[index - 1].block {
        index += 1;
    }
    Some(index)
}

/// Returns the number of leading copies that are sent at an unchanged position, with everything
/// before them unchanged since the previous request.
fn count_unchanged_copies(
    head: &[Segment],
    items: &[TimelineItem],
    standing: &[StandingCopy],
    snapshot: &Snapshot<'_>,
) -> usize {
    let last = snapshot
        .last
        .map(|last| last.segments.as_slice())
        .unwrap_or_default();
    let mut now = head
        .iter()
        .map(|segment| segment.entry.hash)
        .collect::<Vec<_>>();
    now.reserve(items.len() + standing.len());
    let mut copies = standing.iter().peekable();
    for (index, item) in items.iter().enumerate() {
        while let Some(one) = copies.next_if(|one| one.before <= index) {
            now.push(one.copied.owned.1.hash);
        }
        now.push(item.entry.hash);
    }
    now.extend(copies.map(|one| one.copied.owned.1.hash));
    let same = last
        .iter()
        .zip(&now)
        .take_while(|(old, new)| old.hash == **new)
        .count();
    if same == last.len() {
        return standing.len();
    }
    (0..standing.len())
        .take_while(|copy| head.len() + standing[*copy].before + copy < same)
        .count()
}

/// The parts of the request that are laid out so far: the head, the items, and the reminder copies
/// between the items.
struct LaidMessages<'a> {
    head: &'a [Segment],
    items: &'a [TimelineItem],
    standing: &'a [StandingCopy],
}

impl LaidMessages<'_> {
    fn length(&self) -> usize {
        self.head.len() + self.items.len() + self.standing.len()
    }

    /// Returns the position of the newest result of a TODO tool if that result shows exactly the
    /// list in `text`.
    fn find_todo_result(&self, text: &str) -> Option<usize> {
        let mut items = self.items.iter().enumerate().rev();
        let (index, shown) =
            items.find_map(|(index, item)| Some((index, parse_todo_result(item)?)))?;
        let before = self
            .standing
            .iter()
            .filter(|one| one.before <= index)
            .count();
        let entries = text.lines().filter_map(|line| line.strip_prefix("- "));
        entries
            .eq(shown)
            .then_some(self.head.len() + index + before)
    }
}

/// Returns the lines of the TODO list in a result of a TODO tool; `None` for any other message.
fn parse_todo_result(item: &TimelineItem) -> Option<Vec<&str>> {
    let message = &item.entry.message;
    let is_list = |one: &&ToolResult| {
        matches!(tool_name(message, one), "todo_write" | "todo_read")
            && one.envelope.status != ToolStatus::Error
    };
    let list = message.tool_results().find(is_list)?;
    let is_entry = |line: &&str| {
        ["[ ] ", "[~] ", "[x] "]
            .iter()
            .any(|mark| line.starts_with(mark))
    };
    Some(list.envelope.text.lines().filter(is_entry).collect())
}

/// Returns the reminders that must be appended to the request.
fn select_due_reminders(
    run: &[OwnedEntry],
    laid: &LaidMessages<'_>,
    snapshot: &Snapshot<'_>,
) -> Vec<LiveCopy> {
    let mut length = laid.length();
    let mut waiting: Vec<_> = KINDS
        .into_iter()
        .filter_map(|kind| make_current_copy(kind, run, laid, snapshot))
        .collect();
    let mut append = Vec::new();
    // Each appended reminder moves the other copies further from the end.
    loop {
        let (now, later): (Vec<_>, Vec<_>) =
            waiting
                .into_iter()
                .partition(|(said, live): &(Option<usize>, LiveCopy)| {
                    said.is_none_or(|place| {
                        live.repeat && length - 1 - place > snapshot.policy.max_distance as usize
                    })
                });
        waiting = later;
        if now.is_empty() {
            break;
        }
        length += now.len();
        append.extend(now.into_iter().map(|(_, live)| live));
    }
    append.sort_by_key(|live: &LiveCopy| KINDS.iter().position(|kind| kind.owner == live.owned.0));
    append
}

/// Returns the current text of `kind`, and the position of a message that already contains this
/// text, if there is one. Returns `None` if the kind is empty and no earlier copy must be
/// retracted.
fn make_current_copy(
    kind: ReminderKind,
    run: &[OwnedEntry],
    laid: &LaidMessages<'_>,
    snapshot: &Snapshot<'_>,
) -> Option<(Option<usize>, LiveCopy)> {
    let newest = laid
        .standing
        .iter()
        .rposition(|one| one.copied.owned.0 == kind.owner);
    let copy = |says: ContentHash| {
        let same = newest.filter(|copy| laid.standing[*copy].copied.copy.says == says);
        same.map(|copy| laid.head.len() + laid.standing[copy].before + copy)
    };
    if let Some((_, entry)) = run.iter().find(|(owner, _)| *owner == kind.owner) {
        let says = if snapshot.policy.clock {
            hash_without_clock(kind, snapshot)
        } else {
            entry.hash
        };
        let said = match newest {
            Some(_) => copy(says),
            None if kind.owner == TODO_OWNER => laid.find_todo_result(&entry.message.joined_text()),
            None => None,
        };
        return Some((
            said,
            LiveCopy {
                owned: (kind.owner, Arc::clone(entry)),
                says,
                repeat: true,
            },
        ));
    }
    newest?;
    let entry = reminder_message(
        snapshot.entry_maker(),
        kind.owner,
        &kind.format_with_heading(EMPTY_KIND_TEXT),
    );
    let says = entry.hash;
    Some((
        copy(says),
        LiveCopy {
            owned: (kind.owner, entry),
            says,
            repeat: false,
        },
    ))
}

/// Returns the hash of the text of `kind` without the clock.
fn hash_without_clock(kind: ReminderKind, snapshot: &Snapshot<'_>) -> ContentHash {
    let reminders = snapshot.reminders.map(|reminders| Reminders {
        clock: None,
        ..reminders.clone()
    });
    let run = reminders
        .map(|reminders| reminders.build_run(snapshot.policy, snapshot.entry_maker()))
        .unwrap_or_default();
    let said = run
        .iter()
        .find(|(owner, _)| *owner == kind.owner)
        .map(|(_, entry)| entry.hash);
    // The text consists of the clock alone.
    said.unwrap_or_else(|| ContentHash::from_content(kind.owner.as_bytes()))
}

#[cfg(test)]
mod tests;
