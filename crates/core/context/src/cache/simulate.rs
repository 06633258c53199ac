//! Simulates a provider's prefix cache for a sequence of requests: the read, written and fresh
//! tokens of each.
//!
//! A request is a list of [`CachePiece`]s. Equal pieces at the front of two requests are equal
//! bytes; the contents of a piece are not compared, so a match ends at the end of a piece. The
//! rules follow the documentation of each provider (as of November 2026; `docs/context-lab.md`
//! lists the addresses):
//!
//! | rule | found again | billed as written | source |
//! | --- | --- | --- | --- |
//! | `anthropic` | the longest prefix stored at a marker, if it ends at a marker of this request or at most 20 content blocks before one, counting the marker's own first | from there to the last marker | platform.claude.com, `build-with-claude/prompt-caching` |
//! | `openai` | the longest common prefix, from 1,024 tokens on, in steps of 128 | nothing | developers.openai.com, `guides/prompt-caching`, up to GPT-5.5 |
//! | `openai-breakpoints` | the longest of the newest 80 prefixes stored at a breakpoint; the end of a request is one | from there to the last breakpoint | the same page, from GPT-5.6 on |
//! | `gemini` | the longest common prefix, in whole steps of [`CacheRule::interval`] if that is set; never guaranteed, so this is the maximum that can be read | nothing | ai.google.dev, `caching` (implicit) |
//! | `deepseek` | the longest stored unit that the request contains whole: a unit ends where a request ended, where its reply ended, where two requests diverged, and at every [`CacheRule::interval`] | nothing | api-docs.deepseek.com, `guides/kv_cache` |
//! | `vllm` | the longest common prefix in whole blocks of 16 tokens, replies included, without the last token | nothing | docs.vllm.ai, `design/prefix_caching` |
//! | `llama-cpp` | the common prefix with the previous request and its reply, without the last token: one slot | nothing | llama.cpp, `tools/server` (`cache_prompt`) |
//! | `automatic` | the longest common prefix | nothing | – |
//!
//! An entry lives for the rule's `ttl` after its last use; vLLM and llama.cpp evict under memory
//! pressure, not by time. Both always compute the last token of a prompt, because the next token is
//! made from it.
//!
//! Invariant: pieces that a request shares with the start of the previous one are not hashed again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use haft_types::{
    CacheKind, CacheMatch, CacheRule, ContentHash, Entry, Hasher, ModelSpec, Request, Usage,
};

use crate::scale::Scale;

/// The number of content blocks before a marker that the provider searches for a stored prefix, if
/// the cache rule sets no number.
const DEFAULT_LOOK_BACK: u32 = 20;
/// The number of tokens in one step of OpenAI's automatic cache, which matches whole steps only.
const OPENAI_STEP: u64 = 128;
/// The maximum number of recently stored prefixes that OpenAI compares with the breakpoints of a
/// request.
const MAX_BREAKPOINT_MATCHES: usize = 80;
/// The number of tokens in a block of vLLM's cache.
const VLLM_BLOCK: u64 = 16;

/// A message of a request, or all of its tools, reduced to the facts that matter to a prefix cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachePiece {
    /// The hash of the content.
    pub hash: ContentHash,
    pub tokens: u64,
    /// The number of content blocks in the piece.
    pub blocks: u32,
    /// True if the provider is asked to store the prefix that ends with this piece.
    pub boundary: bool,
}

impl CachePiece {
    /// Converts a reply into the piece that stands for it in later requests, with its token count
    /// scaled to the model.
    pub fn from_reply(entry: &Entry, model: &ModelSpec) -> Self {
        let tokens = Scale::for_model(model).to_model_tokens(entry.tokens.into());
        Self {
            hash: entry.hash,
            tokens,
            blocks: entry.message.content.len().max(1) as u32,
            boundary: false,
        }
    }
}

/// Splits a request into pieces, tools first. Token counts are scaled by `tokenizer_factor`.
pub fn request_pieces(request: &Request, tokenizer_factor: f64) -> Vec<CachePiece> {
    let scale = Scale::new(tokenizer_factor);
    let tools = CachePiece {
        hash: request.tools.hash,
        tokens: scale.to_model_tokens(request.tools.tokens.into()),
        blocks: 1,
        boundary: false,
    };
    let segments = request.segments.iter().map(|segment| CachePiece {
        hash: segment.entry.hash,
        tokens: scale.to_model_tokens(segment.entry.tokens.into()),
        blocks: segment.entry.message.content.len().max(1) as u32,
        boundary: segment.boundary,
    });
    [tools].into_iter().chain(segments).collect()
}

/// The state of a stored prefix: its last use, its place in the storage order, and its purpose.
#[derive(Clone, Copy, Debug)]
struct StoredPrefix {
    used: Duration,
    order: usize,
    unit: PrefixUse,
}

/// The purpose of a stored prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PrefixUse {
    /// The prefix can be read from the cache.
    Readable,
    /// The prefix only serves to detect where two requests diverge.
    Compared,
}

/// A simulated provider cache for one conversation.
#[derive(Clone, Debug)]
pub struct CacheSimulator {
    rule: CacheRule,
    stored: HashMap<ContentHash, StoredPrefix>,
    /// The number of prefixes stored so far.
    count: usize,
    /// The hash of each piece of the previous request, with the prefix that ends at that piece.
    before: Vec<(ContentHash, KnownPrefix)>,
    /// The hash of each piece of a request that similar requests will be compared with, and the
    /// hash of the prefix that ends there. It only saves time.
    memo: Arc<[(ContentHash, ContentHash)]>,
}

/// A prefix of a request, which ends with one of the request's pieces.
#[derive(Clone, Copy, Debug)]
struct KnownPrefix {
    hash: ContentHash,
    tokens: u64,
    /// The number of content blocks in the prefix.
    blocks: u32,
    boundary: bool,
}

impl KnownPrefix {
    /// Returns the prefix `before` extended by one piece.
    fn with_piece(before: Option<&Self>, piece: &CachePiece) -> Self {
        let mut hasher = Hasher::default();
        if let Some(before) = before {
            hasher.update(&before.hash.0);
        }
        let hash = hasher.update(&piece.hash.0).finish();
        Self::with_piece_hash(before, piece, hash)
    }

    fn with_piece_hash(before: Option<&Self>, piece: &CachePiece, hash: ContentHash) -> Self {
        let (tokens, blocks) = before.map_or((0, 0), |before| (before.tokens, before.blocks));
        Self {
            hash,
            tokens: tokens + piece.tokens,
            blocks: blocks + piece.blocks,
            boundary: piece.boundary,
        }
    }
}

/// The part of a request that can be read from the cache.
#[derive(Clone, Copy, Default)]
struct CacheLookup {
    /// The index of the last piece of the prefix that is read; `None` if nothing is read.
    last: Option<usize>,
    tokens: u64,
}

impl CacheSimulator {
    /// Creates an empty cache that follows `rule`.
    pub fn new(rule: &CacheRule) -> Self {
        Self {
            rule: rule.clone(),
            stored: HashMap::new(),
            count: 0,
            before: Vec::new(),
            memo: Arc::default(),
        }
    }

    /// Computes the prefixes of `request` once, for several requests that begin like it.
    pub(crate) fn remember_prefixes(&mut self, request: &[CachePiece]) {
        let prefixes = self.build_prefixes(request, 0);
        let hashes = request.iter().zip(prefixes);
        self.memo = hashes
            .map(|(piece, prefix)| (piece.hash, prefix.hash))
            .collect();
    }

    /// Simulates sending a request and returns its input usage. `at` is the time since an arbitrary
    /// start.
    pub fn send_request(&mut self, at: Duration, request: &[CachePiece]) -> Usage {
        let same = self
            .before
            .iter()
            .zip(request)
            .take_while(|((old, _), new)| *old == new.hash)
            .count();
        let prefixes = self.build_prefixes(request, same);
        let total = prefixes.last().map_or(0, |last| last.tokens);
        self.evict_expired(at);
        let found = self.find_longest_prefix(&prefixes);
        let read = self.readable_tokens(found.tokens, total);
        let written = self
            .store_prefixes(at, &prefixes, found.last, same)
            .saturating_sub(read);
        self.before = request
            .iter()
            .map(|piece| piece.hash)
            .zip(prefixes)
            .collect();
        Usage {
            input: total - read - written,
            cached_input: read,
            cache_write: written,
            ..Usage::default()
        }
    }

    /// Records the model's reply to the previous request, because some caches also store replies.
    pub fn record_reply(&mut self, at: Duration, reply: &CachePiece) {
        let keeps = match self.rule.rule {
            CacheKind::Deepseek | CacheKind::Vllm | CacheKind::LlamaCpp => true,
            CacheKind::Anthropic
            | CacheKind::Automatic
            | CacheKind::Openai
            | CacheKind::OpenaiBreakpoints
            | CacheKind::Gemini
            | CacheKind::None => false,
        };
        let Some((_, before)) = self.before.last().filter(|_| keeps) else {
            return;
        };
        let whole = KnownPrefix::with_piece(Some(before), reply);
        if whole.tokens >= self.min_cached_tokens() {
            self.store_prefix(at, &whole, PrefixUse::Readable);
        }
    }

    /// Returns the prefixes of a request, one for each piece. The first `same` pieces are shared
    /// with the previous request.
    fn build_prefixes(&self, request: &[CachePiece], same: usize) -> Vec<KnownPrefix> {
        let mut prefixes: Vec<KnownPrefix> = Vec::with_capacity(request.len());
        let remembered = self.memo.iter().zip(request);
        let remembered = remembered
            .take_while(|((hash, _), piece)| *hash == piece.hash)
            .count();
        for (index, piece) in request.iter().enumerate() {
            let before = prefixes.last();
            let known = match self.before.get(index).filter(|_| index < same) {
                Some((_, known)) => Some(known.hash),
                None => self
                    .memo
                    .get(index)
                    .filter(|_| index < remembered)
                    .map(|(_, prefix)| *prefix),
            };
            let prefix = match known {
                Some(hash) => KnownPrefix::with_piece_hash(before, piece, hash),
                None => KnownPrefix::with_piece(before, piece),
            };
            prefixes.push(prefix);
        }
        prefixes
    }

    /// Removes the prefixes that were not used within the lifetime that the cache rule sets.
    fn evict_expired(&mut self, now: Duration) {
        if let Some(life) = self.rule.expires_after() {
            self.stored
                .retain(|_, stored| now.saturating_sub(stored.used) <= life);
        }
    }

    /// Finds the longest prefix of the request that the cache has stored.
    fn find_longest_prefix(&self, prefixes: &[KnownPrefix]) -> CacheLookup {
        let known = |prefix: &KnownPrefix| self.stored.get(&prefix.hash);
        let unit = |prefix: &KnownPrefix| {
            known(prefix).is_some_and(|stored| stored.unit == PrefixUse::Readable)
        };
        let last = match self.rule.rule.cache_match() {
            CacheMatch::NoCache => None,
            CacheMatch::Prefix => prefixes.iter().rposition(unit),
            CacheMatch::Boundaries if self.rule.rule == CacheKind::OpenaiBreakpoints => {
                let oldest = self.count.saturating_sub(MAX_BREAKPOINT_MATCHES);
                prefixes
                    .iter()
                    .rposition(|one| known(one).is_some_and(|one| one.order >= oldest))
            }
            CacheMatch::Boundaries => {
                let reach = self.rule.look_back.unwrap_or(DEFAULT_LOOK_BACK);
                let markers: Vec<_> = prefixes.iter().filter(|prefix| prefix.boundary).collect();
                prefixes.iter().rposition(|one| {
                    markers.iter().any(|marker| {
                        one.blocks <= marker.blocks
                            && marker.blocks - one.blocks < reach
                            && unit(one)
                    })
                })
            }
        };
        let found = CacheLookup {
            last,
            tokens: last.map_or(0, |index| prefixes[index].tokens),
        };
        let Some(interval) = self
            .interval()
            .filter(|_| self.rule.rule == CacheKind::Deepseek)
        else {
            return found;
        };
        // A unit ends at every interval of a sent request, so all units in the common part are
        // stored.
        let common = prefixes.iter().rposition(|prefix| known(prefix).is_some());
        let cut = common.map_or(0, |index| prefixes[index].tokens / interval * interval);
        if cut > found.tokens {
            CacheLookup {
                last: common,
                tokens: cut,
            }
        } else {
            found
        }
    }

    /// Returns the number of tokens between two prefixes that the cache stores without a marker;
    /// `None` if the rule does not set it.
    fn interval(&self) -> Option<u64> {
        self.rule
            .interval
            .filter(|tokens| *tokens > 0)
            .map(u64::from)
    }

    /// Returns the number of tokens that can be read from the cache if `common` of `total` tokens
    /// match a stored request.
    fn readable_tokens(&self, common: u64, total: u64) -> u64 {
        // The next token is made from the last one, so the last one is always computed.
        let but_one = common.min(total.saturating_sub(1));
        let stepped = match self.rule.rule {
            CacheKind::Openai => common - common % OPENAI_STEP,
            CacheKind::Vllm => but_one - but_one % VLLM_BLOCK,
            CacheKind::LlamaCpp => but_one,
            CacheKind::Gemini => common - common % self.interval().unwrap_or(1),
            CacheKind::Anthropic
            | CacheKind::Automatic
            | CacheKind::OpenaiBreakpoints
            | CacheKind::Deepseek
            | CacheKind::None => common,
        };
        if stepped < self.min_cached_tokens() {
            0
        } else {
            stepped
        }
    }

    /// Returns the minimum number of tokens in a cached prefix.
    fn min_cached_tokens(&self) -> u64 {
        match self.rule.rule {
            CacheKind::Vllm => VLLM_BLOCK,
            CacheKind::LlamaCpp => 1,
            CacheKind::Anthropic
            | CacheKind::Automatic
            | CacheKind::Openai
            | CacheKind::OpenaiBreakpoints
            | CacheKind::Gemini
            | CacheKind::Deepseek
            | CacheKind::None => self.rule.min.into(),
        }
    }

    /// Stores the prefixes of a request and returns the number of leading tokens whose storage is
    /// billed. The first `same` pieces are shared with the previous request.
    fn store_prefixes(
        &mut self,
        at: Duration,
        prefixes: &[KnownPrefix],
        found: Option<usize>,
        same: usize,
    ) -> u64 {
        let least = self.min_cached_tokens();
        let last = prefixes.len().saturating_sub(1);
        // Reading a prefix also uses every shorter one.
        for prefix in &prefixes[..found.map_or(0, |index| index + 1)] {
            if let Some(stored) = self.stored.get_mut(&prefix.hash) {
                stored.used = at;
            }
        }
        if self.rule.rule == CacheKind::LlamaCpp {
            self.stored.clear();
        }
        let everything = self.rule.rule == CacheKind::Deepseek && self.interval().is_some();
        let mut billed = 0;
        for (index, prefix) in prefixes
            .iter()
            .enumerate()
            .filter(|(_, prefix)| prefix.tokens >= least)
        {
            let unit = match self.rule.rule {
                CacheKind::None => false,
                CacheKind::Anthropic => prefix.boundary,
                CacheKind::OpenaiBreakpoints => prefix.boundary || index == last,
                CacheKind::Deepseek => index == last || index + 1 == same,
                CacheKind::Automatic
                | CacheKind::Openai
                | CacheKind::Gemini
                | CacheKind::Vllm
                | CacheKind::LlamaCpp => true,
            };
            if unit {
                self.store_prefix(at, prefix, PrefixUse::Readable);
                billed = prefix.tokens;
            } else if everything {
                self.store_prefix(at, prefix, PrefixUse::Compared);
            }
        }
        match self.rule.rule.cache_match() {
            CacheMatch::Boundaries => billed,
            CacheMatch::Prefix | CacheMatch::NoCache => 0,
        }
    }

    fn store_prefix(&mut self, at: Duration, prefix: &KnownPrefix, unit: PrefixUse) {
        let order = self.count;
        let stored = self.stored.entry(prefix.hash).or_insert(StoredPrefix {
            used: at,
            order,
            unit,
        });
        stored.used = at;
        if unit == PrefixUse::Readable {
            stored.unit = unit;
        }
        self.count += 1;
    }
}

#[cfg(test)]
mod tests;
