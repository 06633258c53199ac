//! Cache marks: the positions at which a provider is asked to store the prefix.
//!
//! ```text
//! system ¹ documents ² place ²' history ³ run history ⁴      ⁴ only when nothing moves before it
//! ```
//!
//! Mark ²' is left out if a request has four others.
//!
//! Some providers find a prefix only at a mark of an earlier request, so the mark directly before
//! the run makes a moving run cheap. They search back a limited number of content blocks, so a long
//! step needs an extra mark.

use haft_types::{CacheRule, Layer, Segment};

use crate::build::documents::PLACE_OWNER;
use crate::cache::prefix::Sent;

/// The maximum number of marks that a provider accepts in one request.
const MAX_MARKS: usize = 4;

/// The maximum number of content blocks between a mark and the previous request's mark, for a
/// provider that looks back [`DEFAULT_LOOK_BACK`] blocks.
const MAX_MARK_DISTANCE: usize = 15;
const DEFAULT_LOOK_BACK: usize = 20;

/// The change in the position of the run of reminders from this request to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunMotion {
    /// The request has no run, or the run keeps its position.
    Stays,
    /// The run will move to another position.
    Moves,
    /// Earlier copies of the reminders stay and new copies are appended, so the next request can
    /// match this request up to its end.
    Appended,
}

/// Returns the maximum number of content blocks between a mark and the next one, which depends on
/// how far back the provider searches for stored prefixes.
fn max_mark_distance(cache: &CacheRule) -> usize {
    cache.look_back.map_or(MAX_MARK_DISTANCE, |blocks| {
        (blocks as usize * MAX_MARK_DISTANCE / DEFAULT_LOOK_BACK).min(MAX_MARK_DISTANCE)
    })
}

/// Sets up to four cache marks in `segments`. `last` contains the previous request, and the number
/// of its segments that this request repeats unchanged.
pub(crate) fn mark_boundaries(
    segments: &mut [Segment],
    run: RunMotion,
    last: Option<(&Sent, usize)>,
    cache: &CacheRule,
) {
    let mut marks = find_default_marks(segments, run);
    if let Some(before) =
        last.and_then(|(sent, kept)| sent.segments[..kept].iter().rposition(|one| one.boundary))
    {
        let next = marks.iter().copied().find(|mark| *mark >= before);
        let is_far = next.is_none_or(|next| {
            let blocks: usize = segments[before + 1..=next].iter().map(count_blocks).sum();
            blocks > max_mark_distance(cache)
        });
        if is_far {
            marks.push(before);
            marks.sort_unstable();
        }
    }
    // The mark after the documents also covers the system message.
    if marks.len() > MAX_MARKS {
        marks.remove(0);
    }
    // Sessions in one place share the documents about it, too.
    if marks.len() < MAX_MARKS {
        marks.extend(
            segments
                .iter()
                .rposition(|segment| segment.layer == Layer::Documents),
        );
    }
    for mark in marks {
        segments[mark].boundary = true;
    }
}

/// Returns the indices of the segments that are marked whatever the previous request was, in order.
fn find_default_marks(segments: &[Segment], run: RunMotion) -> Vec<usize> {
    let Some(end) = segments.len().checked_sub(1) else {
        return Vec::new();
    };
    let mut marks = Vec::with_capacity(MAX_MARKS + 1);
    marks.push(0);
    marks.extend(
        segments
            .iter()
            .rposition(|segment| is_shared_document(segment.layer, segment.owner)),
    );
    let before_run = segments
        .iter()
        .position(|segment| segment.layer == Layer::Reminders);
    let before_run = before_run.map(|run| run.saturating_sub(1));
    match run {
        RunMotion::Stays => marks.extend(before_run.into_iter().chain([end])),
        RunMotion::Moves => marks.extend(before_run),
        RunMotion::Appended => marks.push(end),
    }
    marks.sort_unstable();
    marks.dedup();
    marks
}

/// True for the segment of a document that other sessions of the project send, too. The documents
/// about the place follow the mark, because they differ between sessions.
pub(crate) fn is_shared_document(layer: Layer, owner: &str) -> bool {
    layer == Layer::Documents && owner != PLACE_OWNER
}

fn count_blocks(segment: &Segment) -> usize {
    segment.entry.message.content.len().max(1)
}

#[cfg(test)]
mod tests;
