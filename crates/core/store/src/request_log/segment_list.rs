//! The segments of a request's outline, in chunks.
//!
//! Consecutive requests of a conversation mostly have the same segments. Their lists share the
//! chunks that are equal, so the memory of a log's outlines grows with the text that is new, and
//! two lists are compared without reading the chunks that they share.

use std::collections::HashMap;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use haft_types::{Layer, SentSegment};

/// The number of segments in every chunk but the last. A request copies half a chunk on average,
/// and has a pointer for each chunk.
const CHUNK_LEN: usize = 64;

/// The tokens of segments by layer, in the order of [`Layer::ALL`].
pub type TokensByLayer = [u64; Layer::ALL.len()];

/// The segments of a request, in order.
#[derive(Clone, Default, PartialEq)]
pub struct SegmentList {
    chunks: Vec<Arc<SegmentChunk>>,
}

/// Consecutive segments of a request, with the sum of their tokens.
#[derive(Clone, Default, PartialEq)]
struct SegmentChunk {
    segments: Vec<SentSegment>,
    tokens: TokensByLayer,
}

impl SegmentChunk {
    fn push(&mut self, segment: SentSegment) {
        self.tokens[segment.layer as usize] += u64::from(segment.tokens);
        self.segments.push(segment);
    }

    fn truncate(&mut self, len: usize) {
        for segment in self.segments.drain(len..) {
            self.tokens[segment.layer as usize] -= u64::from(segment.tokens);
        }
    }
}

impl SegmentList {
    /// Returns the number of segments.
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| {
            (self.chunks.len() - 1) * CHUNK_LEN + last.segments.len()
        })
    }

    /// True if the list has no segments.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Returns the segment at `index`, or `None` behind the end.
    pub fn get(&self, index: usize) -> Option<&SentSegment> {
        self.chunks
            .get(index / CHUNK_LEN)?
            .segments
            .get(index % CHUNK_LEN)
    }

    /// Returns the last segment.
    pub fn last(&self) -> Option<&SentSegment> {
        self.chunks.last()?.segments.last()
    }

    /// Iterates over the segments in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &SentSegment> {
        self.chunks.iter().flat_map(|chunk| &chunk.segments)
    }

    /// Copies the segments.
    pub fn to_vec(&self) -> Vec<SentSegment> {
        self.iter().cloned().collect()
    }

    /// Appends a segment.
    pub fn push(&mut self, segment: SentSegment) {
        match self.chunks.last_mut() {
            Some(last) if last.segments.len() < CHUNK_LEN => Arc::make_mut(last).push(segment),
            _ => {
                let mut chunk = SegmentChunk::default();
                chunk.push(segment);
                self.chunks.push(Arc::new(chunk));
            }
        }
    }

    /// Removes the segments behind the first `len`.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len() {
            return;
        }
        self.chunks.truncate(len.div_ceil(CHUNK_LEN));
        let rest = len % CHUNK_LEN;
        if let Some(last) = self.chunks.last_mut().filter(|_| rest > 0) {
            Arc::make_mut(last).truncate(rest);
        }
    }

    /// Changes the segment at `index`. Lists that share its chunk keep the old segment.
    pub fn update(&mut self, index: usize, change: impl FnOnce(&mut SentSegment)) {
        let Some(chunk) = self.chunks.get_mut(index / CHUNK_LEN) else {
            return;
        };
        let SegmentChunk { segments, tokens } = Arc::make_mut(chunk);
        if let Some(segment) = segments.get_mut(index % CHUNK_LEN) {
            tokens[segment.layer as usize] -= u64::from(segment.tokens);
            change(segment);
            tokens[segment.layer as usize] += u64::from(segment.tokens);
        }
    }

    /// Returns the number of segments at the front that have equal hashes in both lists.
    pub fn common_prefix_len(&self, other: &Self) -> usize {
        let mut len = 0;
        for (one, other) in self.chunks.iter().zip(&other.chunks) {
            let same = if Arc::ptr_eq(one, other) {
                one.segments.len()
            } else {
                let pairs = one.segments.iter().zip(&other.segments);
                pairs
                    .take_while(|(one, other)| one.hash == other.hash)
                    .count()
            };
            len += same;
            if same < CHUNK_LEN {
                break;
            }
        }
        len
    }

    /// Returns the tokens of the first `len` segments by layer.
    pub fn layer_tokens(&self, len: usize) -> TokensByLayer {
        let mut sum = TokensByLayer::default();
        let whole = (len / CHUNK_LEN).min(self.chunks.len());
        for chunk in &self.chunks[..whole] {
            for (sum, tokens) in sum.iter_mut().zip(chunk.tokens) {
                *sum += tokens;
            }
        }
        for segment in self
            .chunks
            .get(whole)
            .into_iter()
            .flat_map(|chunk| chunk.segments.iter().take(len % CHUNK_LEN))
        {
            sum[segment.layer as usize] += u64::from(segment.tokens);
        }
        sum
    }
}

/// The largest value of a function over the segments of lists. The value of each chunk is computed
/// once, however many lists share it. The lists must outlive the memo's use.
#[derive(Debug)]
pub struct ChunkMaximum<V> {
    known: HashMap<*const (), Option<V>>,
}

impl<V> Default for ChunkMaximum<V> {
    fn default() -> Self {
        Self {
            known: HashMap::new(),
        }
    }
}

impl<V: Ord + Copy> ChunkMaximum<V> {
    /// Returns the largest value of `value` over `segments`, or `None` if no segment has one.
    /// `value` must return equal values for equal segments in every call.
    pub fn find(
        &mut self,
        segments: &SegmentList,
        value: impl Fn(&SentSegment) -> Option<V>,
    ) -> Option<V> {
        let chunks = segments.chunks.iter().map(|chunk| {
            *self
                .known
                .entry(Arc::as_ptr(chunk).cast())
                .or_insert_with(|| chunk.segments.iter().filter_map(&value).max())
        });
        chunks.max().flatten()
    }
}

impl fmt::Debug for SegmentList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Index<usize> for SegmentList {
    type Output = SentSegment;

    fn index(&self, index: usize) -> &SentSegment {
        &self.chunks[index / CHUNK_LEN].segments[index % CHUNK_LEN]
    }
}

impl Extend<SentSegment> for SegmentList {
    fn extend<I: IntoIterator<Item = SentSegment>>(&mut self, segments: I) {
        segments.into_iter().for_each(|segment| self.push(segment));
    }
}

impl FromIterator<SentSegment> for SegmentList {
    fn from_iter<I: IntoIterator<Item = SentSegment>>(segments: I) -> Self {
        let mut list = Self::default();
        list.extend(segments);
        list
    }
}

impl From<Vec<SentSegment>> for SegmentList {
    fn from(segments: Vec<SentSegment>) -> Self {
        segments.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use haft_types::{ContentHash, MessageId};

    use super::*;

    fn segment(number: usize) -> SentSegment {
        let hash = ContentHash::from_content(&number.to_le_bytes());
        SentSegment {
            layer: Layer::ALL[number % Layer::ALL.len()],
            owner: "history".into(),
            message: MessageId::from_hash(hash),
            hash,
            tokens: number as u32 + 1,
            boundary: false,
        }
    }

    /// Computes what the list answers, from the plain segments.
    fn assert_matches(list: &SegmentList, plain: &[SentSegment]) {
        assert_eq!(list.to_vec(), plain);
        assert_eq!(
            (list.len(), list.is_empty()),
            (plain.len(), plain.is_empty())
        );
        assert_eq!((list.last(), list.get(plain.len())), (plain.last(), None));
        for len in [0, 1, 63, 64, 65, plain.len() / 2, plain.len()] {
            let mut tokens = TokensByLayer::default();
            for segment in plain.iter().take(len) {
                tokens[segment.layer as usize] += u64::from(segment.tokens);
            }
            assert_eq!(
                list.layer_tokens(len),
                tokens,
                "first {len} of {}",
                plain.len()
            );
        }
    }

    #[test]
    fn segment_list_behaves_like_a_vector() {
        let mut list = SegmentList::default();
        let mut plain: Vec<SentSegment> = Vec::new();
        let mut earlier = Vec::new();
        for step in 0..400 {
            // Most steps append; some take back up to two chunks, to the edges of chunks, too.
            if step % 7 == 6 {
                let len = [
                    plain.len() / 64 * 64,
                    plain.len().saturating_sub(step % 130),
                ][step % 2];
                list.truncate(len);
                plain.truncate(len);
            }
            if let Some(index) = (step % 5 == 4).then(|| step * 31 % plain.len().max(1)) {
                let relabel = |segment: &mut SentSegment| {
                    segment.layer = Layer::System;
                    segment.tokens += 7;
                };
                list.update(index, relabel);
                plain.get_mut(index).map(relabel);
            }
            let added = (0..step % 40).map(|more| segment(step * 40 + more));
            list.extend(added.clone());
            plain.extend(added);
            assert_matches(&list, &plain);
            earlier.push((list.clone(), plain.clone()));
        }
        for (list, plain) in &earlier {
            assert_matches(list, plain);
        }
        for pair in earlier.windows(2) {
            let pairs = pair[0].1.iter().zip(&pair[1].1);
            let same = pairs.take_while(|(old, new)| old.hash == new.hash).count();
            assert_eq!(pair[0].0.common_prefix_len(&pair[1].0), same);
        }
    }

    #[test]
    fn chunk_maximum_is_the_maximum_over_all_segments() {
        let mut maximum = ChunkMaximum::default();
        let value =
            |segment: &SentSegment| segment.tokens.is_multiple_of(3).then_some(segment.tokens);
        let mut list = SegmentList::default();
        let mut lists = Vec::new();
        for number in 0..200 {
            list.push(segment(200 - number));
            lists.push(list.clone());
        }
        for list in &lists {
            assert_eq!(
                maximum.find(list, value),
                list.iter().filter_map(value).max()
            );
        }
    }
}
