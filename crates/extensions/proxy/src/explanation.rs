//! Compares a request with the previous one of its conversation: which segments were kept, where
//! and why the requests differ, what the cache should have matched, and what a client that only
//! appends would have paid.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use haft_context::{
    BreakPrice, BrokenInput, CacheSimulator, Cause, estimate_new_tokens, request_pieces,
};
use haft_types::{
    CacheKind, CacheMatch, ContentHash, ConversationId, Message, ModelSpec, Price, Request,
    Segment, Usage,
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
    /// The estimated number of tokens in the request, as the model counts them.
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
    /// The cost of the input in units of an input token at full price. `None` if no usage was
    /// reported or the model has a price.
    pub units: Option<CostInUnits>,
    /// The estimated number of input tokens that could not have been read from the cache even if
    /// the client had only appended to the previous request.
    pub append_only_uncached: u64,
}

/// The cost of a request's input if no price is known, in units of an input token at full price.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CostInUnits {
    pub sent: f64,
    /// The estimated cost if the client had only appended to the previous request.
    pub append_only: f64,
}

/// The first difference between a request and the previous one.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedBreak {
    /// The number of unchanged segments before the difference.
    pub kept: usize,
    /// The number of segments in the request.
    pub segments: usize,
    /// The owner of the first segment that differs.
    pub owner: &'static str,
    /// The cause of the difference, as far as the bytes show it.
    pub cause: Cause,
    /// The price of the break; `None` until the reply has ended.
    pub price: Option<BreakPrice>,
}

/// The state of a recorded conversation with which its next request is compared.
pub(crate) struct ConversationPast {
    pub(crate) model: String,
    pub(crate) segments: Vec<Segment>,
    seen: HashSet<ContentHash>,
    /// The simulated cache of each model, by the model's name.
    caches: HashMap<String, CacheSimulator>,
}

/// The result of comparing a request with the previous one.
pub(crate) struct RequestComparison {
    pub(crate) broken: Option<RecordedBreak>,
    pub(crate) predicted: Usage,
    /// The number of tokens in segments that no earlier request contained, as the model counts
    /// them.
    pub(crate) new_tokens: u64,
    /// The number of tokens in the request, as the model counts them.
    pub(crate) tokens: u64,
}

impl RequestComparison {
    /// Returns the price of a break at this request.
    pub(crate) fn break_price(&self, billed: Option<Usage>, spec: &ModelSpec) -> BreakPrice {
        let Usage {
            input, cache_write, ..
        } = self.predicted;
        let again = (input + cache_write).saturating_sub(self.new_tokens);
        // New tokens are at the end of a request, behind the tokens that are written.
        let written = again.min(cache_write);
        let broken = BrokenInput {
            total: self.tokens,
            new: self.new_tokens,
            again: Usage {
                input: again - written,
                cache_write: written,
                ..Usage::default()
            },
        };
        broken.price(billed, spec)
    }
}

impl ConversationPast {
    pub(crate) fn new(spec: &ModelSpec) -> Self {
        let segments = Vec::new();
        let seen = HashSet::new();
        Self {
            model: spec.full_name(),
            segments,
            seen,
            caches: HashMap::new(),
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
        let pieces = request_pieces(request, spec.tokenizer_factor);
        let cache = self
            .caches
            .entry(model.clone())
            .or_insert_with(|| CacheSimulator::new(&spec.cache));
        let predicted = cache.send_request(at, &pieces);
        // A proxied request has its tools among its segments, so the piece of the tools is empty.
        let new_tokens = request
            .segments
            .iter()
            .zip(pieces.iter().skip(1))
            .filter(|(segment, _)| !self.seen.contains(&segment.entry.hash))
            .map(|(_, piece)| piece.tokens)
            .sum();
        self.seen
            .extend(request.segments.iter().map(|segment| segment.entry.hash));
        self.model = model;
        self.segments.clone_from(&request.segments);
        RequestComparison {
            broken,
            predicted,
            new_tokens,
            tokens: predicted.all_input(),
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
            price: None,
        });
    }
    let old = past.segments.get(kept)?;
    let cause = infer_cause(&past.segments[kept..], &current[kept..]);
    Some(RecordedBreak {
        kept,
        segments: current.len(),
        owner: old.owner,
        cause,
        price: None,
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
    if removed == 1 && has_moved_and_changed(first, &new[1..], &old_hashes) {
        return Cause::RemindersMoved;
    }
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

/// True if one of the segments `later`, which no earlier request contained, is the segment `gone`
/// with a changed text, such as a block with the time and the fill level of the window that an
/// agent moves to the newest step of each request.
fn has_moved_and_changed(
    gone: &Segment,
    later: &[Segment],
    old_hashes: &HashSet<ContentHash>,
) -> bool {
    const MAX_TOKENS: u32 = 2_000;
    // Calls and results are never moved.
    let is_text = gone.owner != ASSISTANT_OWNER && gone.owner != TOOL_RESULT_OWNER;
    let mut candidates = later.iter().filter(|one| {
        one.owner == gone.owner
            && one.entry.tokens <= MAX_TOKENS
            && !old_hashes.contains(&one.entry.hash)
    });
    is_text
        && gone.entry.tokens <= MAX_TOKENS
        && candidates.any(|one| have_similar_lines(&gone.entry.message, &one.entry.message))
}

/// True if at least half of the lines of two messages are equal, apart from their digits.
fn have_similar_lines(one: &Message, other: &Message) -> bool {
    // The text is the JSON that was sent, in which a line break is escaped.
    let lines = |message: &Message| -> HashSet<String> {
        let text = message.joined_text();
        text.split("\\n")
            .flat_map(str::lines)
            .map(|line| line.chars().filter(|one| !one.is_ascii_digit()).collect())
            .collect()
    };
    let one = lines(one);
    let other = lines(other);
    2 * one.intersection(&other).count() >= one.len().max(other.len())
}

/// The owner name of segments that contain a message of the model.
pub(crate) const ASSISTANT_OWNER: &str = "assistant";
/// The owner name of segments that contain the results of tools.
const TOOL_RESULT_OWNER: &str = "tool";
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
    // Tokens that were read from the cache anyway would have been for that client as well.
    let fresh = billed.map_or(comparison.new_tokens, |usage| {
        estimate_new_tokens(comparison.tokens, comparison.new_tokens, usage)
    });
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

/// Returns the cost of a request's input, and that of a client that only appends, in units of an
/// input token at full price.
pub(crate) fn compute_units(sent: Usage, append_only: Usage, spec: &ModelSpec) -> CostInUnits {
    let price = Price::relative_to_input(spec.cache.rule);
    let units = |usage: Usage| price.request_cost(usage).total * 1e6;
    CostInUnits {
        sent: units(sent),
        append_only: units(append_only),
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
                "R" => TOOL_RESULT_OWNER,
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
            // A volatile block moves to the newest step and changes.
            (
                "S a r1 b c",
                "S a b c r2 d e",
                Some((2, Cause::RemindersMoved)),
            ),
            // One segment is left out, and an unrelated one is added.
            ("S a b c d", "S a c d x", Some((2, Cause::MessagesDeleted))),
            // Two segments went, so it was not a block that moved.
            (
                "S a r1 x b c",
                "S a b c r2 d",
                Some((2, Cause::MessagesDeleted)),
            ),
            // A result that differs in its number only is another result.
            (
                "S a R1 b c",
                "S a b c R2 d",
                Some((2, Cause::MessagesDeleted)),
            ),
        ];
        for (old, new, expected) in table {
            let past = ConversationPast {
                model: "p/m".into(),
                segments: segments(old),
                seen: HashSet::new(),
                caches: HashMap::new(),
            };
            let found = find_break(&past, "p/m", &segments(new)).map(|one| (one.kept, one.cause));
            assert_eq!(found, expected, "{old} -> {new}");
            let other =
                find_break(&past, "p/other", &segments(new)).map(|one| (one.kept, one.cause));
            assert_eq!(other, Some((0, Cause::ModelSwitched)));
        }
    }

    #[test]
    fn similar_lines_ignore_digits_and_a_few_changes() {
        let similar = |one: &str, other: &str| {
            let message = |text: &str| {
                Message::from_text(
                    MessageId::from_hash(ContentHash::from_content(text.as_bytes())),
                    Role::User,
                    text,
                    Timestamp::UNIX_EPOCH,
                )
            };
            have_similar_lines(&message(one), &message(other))
        };
        let block = |time: &str, todo: &str| {
            format!(
                r#"{{"role":"user","content":"<info>\nIt is {time}\nDirectory: /w\n{todo}\n</info>"}}"#
            )
        };
        assert!(similar(
            &block("10:01", "- [ ] a"),
            &block("23:59", "- [x] b")
        ));
        assert!(!similar(
            &block("10:01", "- [ ] a"),
            r#"{"role":"user","content":"Make a plan.\nThen wait."}"#
        ));
    }

    #[test]
    fn comparison_counts_all_figures_in_the_models_tokens() {
        let spec = ModelSpec {
            provider: "p".into(),
            name: "m".into(),
            api: haft_types::Api::Anthropic,
            context_window: 1_000_000,
            max_output_tokens: None,
            price: None,
            cache: haft_types::CacheRule {
                rule: CacheKind::Automatic,
                min: 0,
                ..haft_types::CacheRule::default()
            },
            tool_protocol: haft_types::ToolProtocol::default(),
            capabilities: haft_types::Capabilities::default(),
            profile: haft_types::ModelProfile::Full,
            tokenizer_factor: 1.5,
        };
        let mut past = ConversationPast::new(&spec);
        let other = ModelSpec {
            name: "other".into(),
            ..spec.clone()
        };
        let mut compare_with = |spec: &ModelSpec, text: &str, seconds: u64| {
            let request = Request {
                segments: segments(text),
                tools: haft_types::ToolSet::new(Vec::new(), &haft_model::O200k),
                max_output_tokens: None,
                cache_key: None,
            };
            past.compare_and_advance(&request, spec, Duration::from_secs(seconds))
        };
        let mut compare = |text: &str, seconds: u64| compare_with(&spec, text, seconds);
        let first = compare("S longA longB", 0);
        assert_eq!((first.tokens, first.new_tokens), (4_500, 4_500));
        let second = compare("S longA longB c", 1);
        assert_eq!((second.tokens, second.new_tokens), (4_515, 15));
        assert_eq!(second.predicted.cached_input, 4_500);
        // What is predicted to be read is never more than the whole request.
        let third = compare("S longA d longB c", 2);
        assert_eq!((third.tokens, third.predicted.cached_input), (4_530, 3_000));
        let forecast = third.break_price(None, &spec);
        assert_eq!(forecast.tokens, 1_515, "B and c were sent before");
        let bill = Usage {
            input: 500,
            cached_input: 4_030,
            ..Usage::default()
        };
        assert_eq!(
            third.break_price(Some(bill), &spec).tokens,
            485,
            "what was billed as not read, without the new segment"
        );
        // A switch sends everything again; a switch back finds the model's own cache.
        let away = compare_with(&other, "S longA d longB c e", 3);
        assert_eq!(away.break_price(None, &other).tokens, 4_530);
        let back = compare_with(&spec, "S longA d longB c e f", 4);
        assert_eq!(back.predicted.cached_input, 4_530);
        assert_eq!(
            back.break_price(None, &spec).tokens,
            15,
            "only e was sent to the other model alone"
        );
    }
}
