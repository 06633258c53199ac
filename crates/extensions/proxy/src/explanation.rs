//! Compares a request with the previous one of its conversation: which segments were kept, where
//! and why the requests differ, what the cache should have matched, and what a client that only
//! appends would have paid.

use std::collections::HashSet;
use std::time::Duration;

use haft_context::{CacheSimulator, Cause, request_pieces};
use haft_types::{
    CacheKind, CacheMatch, ContentHash, ConversationId, ModelSpec, Request, Segment, Usage,
};

/// The analysis of a recorded request, made when its reply has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestExplanation {
    /// The conversation in which the request was recorded.
    pub conversation: ConversationId,
    /// The number of the request in its conversation, starting at 1.
    pub number: u64,
    /// True for requests outside the agent's own conversation, such as those for a title, a summary
    /// or a check.
    pub is_side: bool,
    /// The model that the request names, as `provider/model`.
    pub model: String,
    /// The HTTP status of the reply.
    pub status: u16,
    /// True if the reply contains the end marker of its protocol.
    pub complete: bool,
    /// The estimated number of tokens in the request.
    pub tokens: u64,
    /// The first difference from the previous request, or `None` if this request only appends to
    /// it.
    pub broken: Option<RecordedBreak>,
    /// The usage estimated by a simulated cache that follows the provider's rules.
    pub predicted: Usage,
    /// The usage that the provider reported.
    pub billed: Option<Usage>,
    /// The cost of the reported usage in USD. `None` if no usage was reported or the model has no
    /// price.
    pub cost: Option<f64>,
    /// The estimated cost of the request in USD if the client had only appended to the previous
    /// request. `None` if the model has no price.
    pub append_only_cost: Option<f64>,
    /// The estimated number of input tokens that could not have been read from the cache even if
    /// the client had only appended to the previous request.
    pub append_only_uncached: u64,
}

/// The first difference between a request and the previous one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedBreak {
    /// The number of unchanged segments before the difference.
    pub kept: usize,
    /// The number of segments in the request.
    pub segments: usize,
    /// The owner of the first segment that differs.
    pub owner: &'static str,
    /// The cause of the difference, as far as the bytes show it.
    pub cause: Cause,
}

/// The state of a recorded conversation with which its next request is compared.
pub(crate) struct ConversationPast {
    pub(crate) model: String,
    pub(crate) segments: Vec<Segment>,
    seen: HashSet<ContentHash>,
    cache: CacheSimulator,
}

/// The result of comparing a request with the previous one.
pub(crate) struct RequestComparison {
    pub(crate) broken: Option<RecordedBreak>,
    pub(crate) predicted: Usage,
    /// The number of tokens in segments that no earlier request contained.
    pub(crate) new_tokens: u64,
    pub(crate) tokens: u64,
}

impl ConversationPast {
    pub(crate) fn new(spec: &ModelSpec) -> Self {
        let segments = Vec::new();
        let seen = HashSet::new();
        Self {
            model: spec.full_name(),
            segments,
            seen,
            cache: CacheSimulator::new(&spec.cache),
        }
    }

    /// Compares a request with the conversation's previous request, then stores it as the newest
    /// one. `at` is the time since an arbitrary starting point.
    pub(crate) fn compare_and_advance(
        &mut self,
        request: &Request,
        spec: &ModelSpec,
        at: Duration,
    ) -> RequestComparison {
        let model = spec.full_name();
        let broken = find_break(self, &model, &request.segments);
        if self.model != model {
            self.cache = CacheSimulator::new(&spec.cache);
            self.seen.clear();
        }
        let predicted = self
            .cache
            .send_request(at, &request_pieces(request, spec.tokenizer_factor));
        let is_new = |segment: &&Segment| !self.seen.contains(&segment.entry.hash);
        let new_tokens = request
            .segments
            .iter()
            .filter(is_new)
            .map(|segment| u64::from(segment.entry.tokens))
            .sum();
        self.seen
            .extend(request.segments.iter().map(|segment| segment.entry.hash));
        self.model = model;
        self.segments.clone_from(&request.segments);
        RequestComparison {
            broken,
            predicted,
            new_tokens,
            tokens: request.estimated_tokens(),
        }
    }
}

fn find_break(past: &ConversationPast, model: &str, current: &[Segment]) -> Option<RecordedBreak> {
    let same = |(old, new): &(&Segment, &Segment)| old.entry.hash == new.entry.hash;
    let kept = past.segments.iter().zip(current).take_while(same).count();
    if past.segments.is_empty() {
        return None;
    }
    if past.model != model {
        let owner = current.first().map_or("system", |segment| segment.owner);
        return Some(RecordedBreak {
            kept: 0,
            segments: current.len(),
            owner,
            cause: Cause::ModelSwitched,
        });
    }
    let old = past.segments.get(kept)?;
    let cause = infer_cause(&past.segments[kept..], &current[kept..]);
    Some(RecordedBreak {
        kept,
        segments: current.len(),
        owner: old.owner,
        cause,
    })
}

/// Infers why the segments `new` differ from the previous request's segments `old`. Both slices
/// begin at the first difference, and `old` must not be empty.
fn infer_cause(old: &[Segment], new: &[Segment]) -> Cause {
    let hashes = |segments: &[Segment]| {
        segments
            .iter()
            .map(|one| one.entry.hash)
            .collect::<HashSet<_>>()
    };
    let old_hashes = hashes(old);
    let new_hashes = hashes(new);
    let first = &old[0];
    let Some(next) = new.first() else {
        return Cause::Rewound;
    };
    if first.owner == TOOLS_OWNER || next.owner == TOOLS_OWNER {
        return Cause::ToolsChanged;
    }
    if first.owner == SYSTEM_OWNER || next.owner == SYSTEM_OWNER {
        return Cause::SystemChanged;
    }
    if new_hashes.contains(&first.entry.hash) {
        // The old segment appears later in the new request: it is either kept at the end, or
        // something was inserted before it.
        return Cause::RemindersMoved;
    }
    let Some(removed) = old
        .iter()
        .position(|one| new_hashes.contains(&one.entry.hash))
    else {
        return match (old.len(), new.len()) {
            (1, _) => Cause::RemindersChanged,
            (before, after) if after < before => Cause::Compaction,
            _ => Cause::MessageEdited,
        };
    };
    let added = new
        .iter()
        .position(|one| old_hashes.contains(&one.entry.hash))
        .unwrap_or(new.len());
    match (removed, added) {
        (_, 0) => Cause::MessagesDeleted,
        (gone, came) if gone > 1 && came < gone => Cause::Compaction,
        _ if first.owner == next.owner && next.entry.tokens < first.entry.tokens / 2 => {
            Cause::Pruning
        }
        _ => Cause::MessageEdited,
    }
}

/// The owner name of segments that contain a tool.
pub(crate) const TOOLS_OWNER: &str = "tools";
/// The owner name of segments that contain system text.
pub(crate) const SYSTEM_OWNER: &str = "system";

/// Estimates the usage of a client that only appends, for which everything sent before is read from
/// the cache. If the provider reported a usage, its input is divided according to the estimated
/// share of new tokens.
pub(crate) fn estimate_append_only_usage(
    comparison: &RequestComparison,
    billed: Option<Usage>,
    spec: &ModelSpec,
) -> Usage {
    let billed = billed.filter(|usage| usage.all_input() > 0);
    let all = billed.map_or(comparison.tokens, |usage| usage.all_input());
    let share = comparison.new_tokens as f64 / comparison.tokens.max(1) as f64;
    // Tokens that were read from the cache anyway would have been for that client as well.
    let uncached = billed.map_or(all, |usage| usage.input + usage.cache_write);
    let fresh = ((all as f64 * share).round() as u64).min(uncached);
    let output = billed.unwrap_or_default().output;
    let usage = Usage {
        cached_input: all - fresh,
        output,
        ..Usage::default()
    };
    match (spec.cache.rule, spec.cache.rule.cache_match()) {
        (CacheKind::None, _) | (_, CacheMatch::NoCache) => Usage {
            input: all,
            output,
            ..Usage::default()
        },
        (_, CacheMatch::Boundaries) => Usage {
            cache_write: fresh,
            ..usage
        },
        (_, CacheMatch::Prefix) => Usage {
            input: fresh,
            ..usage
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use haft_types::{Entry, Layer, Message, MessageId, Role, Timestamp};

    use super::*;

    fn segments(text: &str) -> Vec<Segment> {
        let one = |word: &str| {
            let owner = match &word[..1] {
                "T" => TOOLS_OWNER,
                "S" => SYSTEM_OWNER,
                _ => "user",
            };
            let hash = ContentHash::from_content(word.as_bytes());
            let message = Message::from_text(
                MessageId::from_hash(hash),
                Role::User,
                word,
                Timestamp::UNIX_EPOCH,
            );
            // A capital letter represents a long message.
            let tokens = if word.ends_with(char::is_uppercase) {
                1_000
            } else {
                10
            };
            Segment {
                layer: Layer::History,
                owner,
                entry: Arc::new(Entry {
                    message,
                    hash,
                    tokens,
                }),
                boundary: false,
            }
        };
        text.split_whitespace().map(one).collect()
    }

    #[test]
    fn explain_finds_the_cause_of_a_break() {
        let table = [
            ("T S a b", "T S a b c d", None),
            ("T S a b", "T S a b", None),
            ("T S a b", "T T2 S a b c", Some((1, Cause::ToolsChanged))),
            ("T1 S a b", "T2 S a b c", Some((0, Cause::ToolsChanged))),
            ("T S1 a b", "T S2 a b c", Some((1, Cause::SystemChanged))),
            ("S a b r", "S a b c d r", Some((3, Cause::RemindersMoved))),
            (
                "S a b r1",
                "S a b c d r2",
                Some((3, Cause::RemindersChanged)),
            ),
            ("S a b c d", "S a x c d e", Some((2, Cause::MessageEdited))),
            ("S a bigB c d", "S a x c d e", Some((2, Cause::Pruning))),
            (
                "S a b c d e",
                "S a d e f",
                Some((2, Cause::MessagesDeleted)),
            ),
            ("S a b c d e", "S sum d e f", Some((1, Cause::Compaction))),
            ("S a b c d e", "S sum", Some((1, Cause::Compaction))),
            ("S a b c d e", "S a b", Some((3, Cause::Rewound))),
        ];
        for (old, new, expected) in table {
            let past = ConversationPast {
                model: "p/m".into(),
                segments: segments(old),
                seen: HashSet::new(),
                cache: CacheSimulator::new(&haft_types::CacheRule::default()),
            };
            let found = find_break(&past, "p/m", &segments(new)).map(|one| (one.kept, one.cause));
            assert_eq!(found, expected, "{old} -> {new}");
            let other =
                find_break(&past, "p/other", &segments(new)).map(|one| (one.kept, one.cause));
            assert_eq!(other, Some((0, Cause::ModelSwitched)));
        }
    }
}
