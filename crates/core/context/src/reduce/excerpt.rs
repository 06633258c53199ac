//! Excerpts of unseen results: the only reduction of results that the model has not seen.
//!
//! The ladder uses excerpts when the newest step alone exceeds the window. The largest results are
//! cut to head and tail until the request fits; smaller results stay whole. An excerpt names the
//! file that holds the whole text, which the engine writes before the request is sent.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_text::{CutLimits, cut_lines};
use haft_types::{Entry, Envelope, Message, MessageId, Part, ToolResult};

use crate::build::rounds::{EXCERPT_OWNER, Timeline, TimelineItem};
use crate::memo::MessageForm;
use crate::snapshot::Snapshot;

/// The minimum size of an excerpt, in bytes; a shorter one would be useless to the model.
const MIN_EXCERPT_BYTES: usize = 600;
/// The maximum number of attempts to shorten results enough. Bytes per token differ between
/// results, so the first estimate may be too large.
const MAX_ATTEMPTS: usize = 6;

/// Returns the path of the file that contains the full text of a result of which only an excerpt
/// was sent.
pub fn excerpt_path(folder: &Path, id: MessageId) -> PathBuf {
    folder.join(format!("result-{id}.txt"))
}

/// The number of bytes kept of each result, by message.
pub(crate) type Excerpts = BTreeMap<MessageId, u32>;

/// Applies the excerpts that earlier requests decided on.
pub(crate) fn apply_earlier_excerpts(
    line: &mut Timeline,
    excerpts: Option<&Excerpts>,
    snapshot: &Snapshot<'_>,
) {
    let Some(excerpts) = excerpts.filter(|excerpts| !excerpts.is_empty()) else {
        return;
    };
    for item in &mut line.items {
        if let Some(bytes) = excerpts.get(&item.id()).filter(|_| !item.pinned) {
            item.entry = excerpt_entry(item, *bytes, snapshot);
            item.owner = EXCERPT_OWNER;
        }
    }
}

/// Cuts the largest results that the model has not seen to excerpts, until the timeline takes
/// `excess` tokens less or no result can be cut further.
pub(crate) fn excerpt_unseen(
    line: &mut Timeline,
    excess: u64,
    snapshot: &Snapshot<'_>,
) -> Excerpts {
    let sizes = unseen_sizes(line);
    let bytes: usize = sizes.iter().sum();
    let tokens = unseen_tokens(line);
    let mut excerpts = Excerpts::new();
    if tokens == 0 {
        return excerpts;
    }
    let goal = tokens.saturating_sub(excess);
    let whole: Vec<_> = line
        .items
        .iter()
        .map(|item| Arc::clone(&item.entry))
        .collect();
    let mut room = (bytes as u128 * u128::from(goal) / u128::from(tokens)) as usize;
    for _ in 0..MAX_ATTEMPTS {
        let limit = largest_limit(&sizes, room).max(MIN_EXCERPT_BYTES);
        excerpts.clear();
        for (item, entry) in line
            .items
            .iter_mut()
            .zip(&whole)
            .filter(|(item, _)| item.unseen)
        {
            item.entry = Arc::clone(entry);
            if entry
                .message
                .tool_results()
                .any(|result| result.envelope.text.len() > limit)
            {
                item.entry = excerpt_entry(item, limit as u32, snapshot);
                item.owner = EXCERPT_OWNER;
                excerpts.insert(item.id(), limit as u32);
            }
        }
        if unseen_tokens(line) <= goal || limit == MIN_EXCERPT_BYTES {
            break;
        }
        room = room / 10 * 8;
    }
    excerpts
}

fn unseen_tokens(line: &Timeline) -> u64 {
    line.items
        .iter()
        .filter(|item| item.unseen)
        .map(|item| u64::from(item.entry.tokens))
        .sum()
}

/// Returns the size in bytes of every result that the model has not seen, in ascending order.
fn unseen_sizes(line: &Timeline) -> Vec<usize> {
    let unseen = line.items.iter().filter(|item| item.unseen);
    let mut sizes: Vec<_> = unseen
        .flat_map(|item| item.entry.message.tool_results())
        .map(|result| result.envelope.text.len())
        .collect();
    sizes.sort_unstable();
    sizes
}

/// Returns the largest limit per result with which all results together take at most `room` bytes.
/// `sizes` is sorted.
pub(crate) fn largest_limit(sizes: &[usize], room: usize) -> usize {
    let mut left = room;
    for (index, size) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - index);
        if *size > share {
            return share;
        }
        left -= size;
    }
    usize::MAX
}

fn excerpt_entry(item: &TimelineItem, bytes: u32, snapshot: &Snapshot<'_>) -> Arc<Entry> {
    let message = &item.entry.message;
    let form = MessageForm::Excerpt { bytes };
    snapshot
        .entry_maker()
        .derived_entry(message.message_id, item.entry.hash, form, || Message {
            content: message
                .content
                .iter()
                .map(|part| excerpt_part(part, message.message_id, bytes, snapshot))
                .collect(),
            ..message.clone()
        })
}

fn excerpt_part(part: &Part, id: MessageId, bytes: u32, snapshot: &Snapshot<'_>) -> Part {
    let Part::ToolResult(result) = part else {
        return part.clone();
    };
    let limits = CutLimits {
        lines: usize::MAX,
        bytes: bytes as usize,
    };
    let cut = cut_lines(&result.envelope.text, limits);
    if !cut.is_cut() {
        return part.clone();
    }
    let mut text = cut.text.trim_end_matches('\n').to_owned();
    let _ = write!(
        text,
        "\n[This result did not fit the window: {} of {} bytes are omitted. ",
        cut.omitted_bytes, cut.total_bytes
    );
    let _ = match snapshot.spill {
        Some(folder) => write!(
            text,
            "The whole text is in `{}`: read it by range, or search it.]",
            excerpt_path(folder, id).display()
        ),
        None => write!(text, "Message {} holds it whole.]", id.short_id()),
    };
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
