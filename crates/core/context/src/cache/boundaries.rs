//! Where a provider is asked to remember the prefix.
//!
//! ```text
//! system ¹ documents ² history ³ run history ⁴      ⁴ only when nothing moves before it
//! ```
//!
//! Some providers find a prefix only where a request before this one put a mark, so the mark right
//! before the run is what makes a moving run cheap. They look back a limited number of content
//! blocks, hence the extra mark after a long step.

use haft_types::{CacheRule, Layer, Segment};

use crate::cache::prefix::Sent;

/// Marks a provider takes in one request.
const MOST: usize = 4;

/// Content blocks that may lie between a mark and the one of the request before, of a look-back
/// this long.
const REACH: usize = 15;
const LOOK_BACK: usize = 20;

/// Whether the next request will find the run where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunMotion {
    /// There is no run, or it stays.
    Stays,
    /// It will move.
    Moves,
    /// Its copies stay, new ones are appended: nothing before the end is ever looked for.
    Appended,
}

/// How far from the last mark the next one may be.
fn reach(cache: &CacheRule) -> usize {
    cache.look_back.map_or(REACH, |blocks| {
        (blocks as usize * REACH / LOOK_BACK).min(REACH)
    })
}

/// Marks up to four segments. `kept` is how many segments are the same as in the request before.
pub(crate) fn set(
    segments: &mut [Segment],
    run: RunMotion,
    last: Option<(&Sent, usize)>,
    cache: &CacheRule,
) {
    let mut marks = base(segments, run);
    if let Some(before) =
        last.and_then(|(sent, kept)| sent.segments[..kept].iter().rposition(|one| one.boundary))
    {
        let next = marks.iter().copied().find(|mark| *mark >= before);
        let blocks = |to: usize| {
            segments[before + 1..=to]
                .iter()
                .map(blocks_of)
                .sum::<usize>()
        };
        if next.is_none_or(|next| blocks(next) > reach(cache)) {
            marks.push(before);
            marks.sort_unstable();
        }
    }
    // The mark after the documents covers the one after the system message.
    if marks.len() > MOST {
        marks.remove(0);
    }
    for mark in marks {
        segments[mark].boundary = true;
    }
}

/// The marks every request has, in order.
fn base(segments: &[Segment], run: RunMotion) -> Vec<usize> {
    let Some(end) = segments.len().checked_sub(1) else {
        return Vec::new();
    };
    let mut marks = Vec::with_capacity(MOST + 1);
    marks.push(0);
    marks.extend(
        segments
            .iter()
            .rposition(|segment| segment.layer == Layer::Documents),
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

fn blocks_of(segment: &Segment) -> usize {
    segment.entry.message.content.len().max(1)
}

#[cfg(test)]
mod tests;
