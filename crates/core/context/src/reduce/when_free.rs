//! Compresses results when that is free: messages that were sent before are changed when the
//! provider must read them anew anyway, or when the change pays.
//!
//! ```text
//! warm   S U A T A T a U A T        compressing the first round saves X tokens in every later request,
//! now    S U A t A t a U A T        but R tokens after it are written again: it pays after (w − r)/r · R/X requests
//! cold   S U A t A t a U A T        nothing is cached: compression costs nothing, and everything that waits is done at once
//! ```

use haft_types::{CacheMatch, Layer, ModelSpec, Role};

use crate::build::layers::Layers;
use crate::build::rounds::{Timeline, TimelineItem};
use crate::carried::Cleared;
use crate::reduce::compress::{compress_rounds_before, compressed_tokens, is_compressible};
use crate::reduce::prune::MIN_SAVING_DIVISOR;
use crate::snapshot::Snapshot;

/// For each of this many past requests, one more is expected in which a compressed result saves
/// tokens.
const PAST_PER_EXPECTED: u64 = 16;

/// A change of messages that were sent before, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixEdit {
    /// The tokens saved in every later request.
    pub saved: u64,
    /// The tokens after the change that are written to the cache again.
    pub rewritten: u64,
}

impl PrefixEdit {
    /// True if `requests` more requests save more than the rewriting costs. Returns false if the
    /// model has no price.
    pub fn pays_off(self, requests: u64, model: &ModelSpec) -> bool {
        let Some(price) = model.price else {
            return false;
        };
        let read = price.cached_input.unwrap_or(price.input);
        let write = match model.cache.rule.cache_match() {
            CacheMatch::NoCache => return self.saved > 0,
            CacheMatch::Prefix => price.input,
            CacheMatch::Boundaries => price.cache_write.unwrap_or(price.input),
        };
        let saved = self.saved as f64;
        let rewritten = self.rewritten as f64;
        saved * requests as f64 * read > rewritten * (write - read).max(0.0)
    }
}

/// True if the message with this index, and everything after it, is sent anew in any case.
pub(crate) fn is_rewritten(line: &Timeline, index: usize, snapshot: &Snapshot<'_>) -> bool {
    let Some(last) = snapshot
        .last
        .filter(|last| !snapshot.is_cold() && last.tools == snapshot.tools.hash)
    else {
        return true;
    };
    let hashes_of = |layer: Layer| {
        last.segments
            .iter()
            .filter(move |segment| segment.layer == layer)
            .map(|one| one.hash)
    };
    let documents = snapshot
        .documents
        .map(|documents| documents.messages.as_slice())
        .unwrap_or_default();
    if !hashes_of(Layer::System).eq([snapshot.system.hash])
        || !hashes_of(Layer::Documents).eq(documents.iter().map(|(_, entry)| entry.hash))
    {
        return true;
    }
    let sent = last
        .segments
        .iter()
        .filter(|one| matches!(one.layer, Layer::History | Layer::Current));
    let sent: Vec<_> = sent.map(|segment| segment.message).collect();
    let summaries = line.summaries.iter().map(|entry| entry.message.message_id);
    let now: Vec<_> = summaries
        .chain(line.items.iter().take(index + 1).map(TimelineItem::id))
        .collect();
    !sent.starts_with(&now)
}

/// Compresses the results of finished rounds if that is free, needed or pays off; otherwise
/// compresses only results that were compressed before. `decided` holds the decisions of earlier
/// requests. Returns the first round whose results are not compressed, and whether the request
/// exceeded the target before.
pub(crate) fn compress_when_free(
    layers: &mut Layers,
    target: u64,
    decided: Option<&Cleared>,
    snapshot: &Snapshot<'_>,
) -> (u32, bool) {
    let compression = snapshot.compression_settings();
    let maker = snapshot.entry_maker();
    let fixed = layers.fixed_tokens();
    let line = &mut layers.line;
    let done = snapshot
        .carried
        .map_or(0, |carried| carried.compressed_rounds)
        .min(line.round);
    compress_rounds_before(line, done, compression, maker);
    let is_gone =
        |item: &TimelineItem| decided.is_some_and(|cleared| cleared.ids.contains(&item.id()));
    let tokens = |item: &TimelineItem| {
        if is_gone(item) {
            0
        } else {
            u64::from(item.entry.tokens)
        }
    };
    let is_over = fixed + line.items.iter().map(tokens).sum::<u64>() > target;
    let round = line.first_uncompressible_round();
    let waits = |item: &TimelineItem| {
        is_compressible(item) && !is_gone(item) && (done..round).contains(&item.round)
    };
    let Some(first) = line.items.iter().position(waits) else {
        return (done, is_over);
    };
    let before = line.items[first..].iter().map(tokens).sum::<u64>();
    let compressed = |item: &TimelineItem| {
        if waits(item) {
            compressed_tokens(item, compression, maker).into()
        } else {
            tokens(item)
        }
    };
    let after = line.items[first..].iter().map(compressed).sum::<u64>();
    let edit = PrefixEdit {
        saved: before.saturating_sub(after),
        rewritten: after,
    };
    // The longer a conversation has lasted, the longer it is likely to last. But what is compressed
    // now would often be cleared or compressed for nothing soon: when half of the past requests
    // were counted on, a change of a warm prefix made a third of the conversations dearer.
    let requests = line
        .items
        .iter()
        .filter(|item| item.role() == Role::Assistant)
        .count() as u64
        / PAST_PER_EXPECTED;
    let needed = is_over && edit.saved * MIN_SAVING_DIVISOR >= target;
    let free =
        needed || is_rewritten(line, first, snapshot) || edit.pays_off(requests, snapshot.model);
    if edit.saved == 0 || !free {
        return (done, is_over);
    }
    compress_rounds_before(line, round, compression, maker);
    (round, is_over)
}

#[cfg(test)]
mod tests;
