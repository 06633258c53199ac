//! What a provider's prefix cache would do with a sequence of requests: read, written and fresh
//! tokens of each.
//!
//! A request is a list of [`CachePiece`]s. Equal pieces at the front of two requests are equal
//! bytes there; what lies within a piece is not looked at, so a match ends where a piece ends. The
//! rules, each as its provider documents it (looked up in November 2026; `docs/context-lab.md` has
//! the addresses):
//!
//! | rule | found again | billed as written | source |
//! | --- | --- | --- | --- |
//! | `anthropic` | the longest prefix stored at a marker, if it ends at a marker of this request or at most 20 content blocks up to it, the marker's own counted first | from there to the last marker | platform.claude.com, `build-with-claude/prompt-caching` |
//! | `openai` | the longest common prefix, from 1,024 tokens on, in steps of 128 | nothing | developers.openai.com, `guides/prompt-caching`, up to GPT-5.5 |
//! | `openai-breakpoints` | the longest of the newest 80 prefixes stored at a breakpoint; the end of a request is one | from there to the last breakpoint | the same page, from GPT-5.6 on |
//! | `gemini` | the longest common prefix, in whole steps of [`CacheRule::interval`] where that is set; never promised, so this is the most that can be read | nothing | ai.google.dev, `caching` (implicit) |
//! | `deepseek` | the longest stored unit that the request holds whole: a unit ends where a request ended, where its reply ended, where two requests parted, and at every [`CacheRule::interval`] | nothing | api-docs.deepseek.com, `guides/kv_cache` |
//! | `vllm` | the longest common prefix in whole blocks of 16 tokens, replies included, but for the last token | nothing | docs.vllm.ai, `design/prefix_caching` |
//! | `llama-cpp` | the common prefix with the request before and its reply, but for the last token: one slot | nothing | llama.cpp, `tools/server` (`cache_prompt`) |
//! | `automatic` | the longest common prefix | nothing | – |
//!
//! An entry lives for the rule's `ttl` after it was last used; vLLM and llama.cpp forget by
//! pressure, not by time. The two compute the last token of a prompt in any case: what follows it
//! is made from it.
//!
//! Invariant: per request nothing is hashed again that the request before began with.

use std::collections::HashMap;
use std::time::Duration;

use haft_types::{
    CacheKind, CacheMatch, CacheRule, ContentHash, Entry, Hasher, ModelSpec, Request, Usage,
};

use crate::scale::Scale;

/// Content blocks a marker looks back where the rule names no number.
const LOOK_BACK: u32 = 20;
/// Tokens in a step of OpenAI's automatic cache.
const OPENAI_STEP: u64 = 128;
/// Stored prefixes OpenAI's breakpoints are matched with.
const NEWEST: usize = 80;
/// Tokens in a block of vLLM's cache.
const VLLM_BLOCK: u64 = 16;

/// One message of a request, as a prefix cache sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachePiece {
    /// What it is.
    pub hash: ContentHash,
    /// Its tokens.
    pub tokens: u64,
    /// Its content blocks.
    pub blocks: u32,
    /// Whether the provider is asked to remember the prefix that ends here.
    pub boundary: bool,
}

impl CachePiece {
    /// A reply as later requests will hold it, in the model's own tokens.
    pub fn reply(entry: &Entry, model: &ModelSpec) -> Self {
        let tokens = Scale::of(model).up(entry.tokens.into());
        Self {
            hash: entry.hash,
            tokens,
            blocks: entry.message.content.len().max(1) as u32,
            boundary: false,
        }
    }
}

/// The pieces of a request, its tools first, in the model's own tokens.
pub fn pieces(request: &Request, tokenizer_factor: f64) -> Vec<CachePiece> {
    let scale = Scale::new(tokenizer_factor);
    let tools = CachePiece {
        hash: request.tools.hash,
        tokens: scale.up(request.tools.tokens.into()),
        blocks: 1,
        boundary: false,
    };
    let segments = request.segments.iter().map(|segment| CachePiece {
        hash: segment.entry.hash,
        tokens: scale.up(segment.entry.tokens.into()),
        blocks: segment.entry.message.content.len().max(1) as u32,
        boundary: segment.boundary,
    });
    [tools].into_iter().chain(segments).collect()
}

/// When a prefix was used last, and as the how manieth one it was stored.
#[derive(Clone, Copy, Debug)]
struct StoredPrefix {
    used: Duration,
    order: usize,
    unit: Unit,
}

/// Whether a stored prefix can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// As it is.
    CacheLookup,
    /// It only tells how far two requests are the same.
    Compared,
}

/// A provider's cache, one conversation long.
#[derive(Clone, Debug)]
pub struct CacheSimulator {
    rule: CacheRule,
    stored: HashMap<ContentHash, StoredPrefix>,
    /// How many prefixes were ever stored.
    count: usize,
    /// The request before: its pieces and its prefixes.
    before: Vec<(ContentHash, KnownPrefix)>,
}

/// A prefix of the request at hand: everything up to the end of a piece.
#[derive(Clone, Copy, Debug)]
struct KnownPrefix {
    hash: ContentHash,
    tokens: u64,
    /// Content blocks up to here.
    blocks: u32,
    boundary: bool,
}

impl KnownPrefix {
    /// This one with a piece behind it.
    fn with(before: Option<&Self>, piece: &CachePiece) -> Self {
        let mut hasher = Hasher::default();
        if let Some(before) = before {
            hasher.update(&before.hash.0);
        }
        let hash = hasher.update(&piece.hash.0).finish();
        Self::sized(before, piece, hash)
    }

    fn sized(before: Option<&Self>, piece: &CachePiece, hash: ContentHash) -> Self {
        let (tokens, blocks) = before.map_or((0, 0), |before| (before.tokens, before.blocks));
        Self {
            hash,
            tokens: tokens + piece.tokens,
            blocks: blocks + piece.blocks,
            boundary: piece.boundary,
        }
    }
}

/// What of a request is in the cache.
#[derive(Clone, Copy, Default)]
struct CacheLookup {
    /// The index of the last prefix that is used.
    last: Option<usize>,
    tokens: u64,
}

impl CacheSimulator {
    /// An empty cache of this kind.
    pub fn new(rule: &CacheRule) -> Self {
        Self {
            rule: rule.clone(),
            stored: HashMap::new(),
            count: 0,
            before: Vec::new(),
        }
    }

    /// Sends a request at this time, counted from any beginning, and tells what becomes of its
    /// input.
    pub fn send(&mut self, at: Duration, request: &[CachePiece]) -> Usage {
        let same = self
            .before
            .iter()
            .zip(request)
            .take_while(|((old, _), new)| *old == new.hash)
            .count();
        let prefixes = self.prefixes(request, same);
        let total = prefixes.last().map_or(0, |last| last.tokens);
        self.forget(at);
        let found = self.found(&prefixes);
        let read = self.readable(found.tokens, total);
        let written = self
            .store(at, &prefixes, found.last, same)
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

    /// Notes what the model answered to the request before: some caches hold that, too.
    pub fn reply(&mut self, at: Duration, reply: &CachePiece) {
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
        let whole = KnownPrefix::with(Some(before), reply);
        if whole.tokens >= self.least() {
            self.keep(at, &whole, Unit::CacheLookup);
        }
    }

    /// Every prefix of a request that ends with a piece; the first `same` pieces are those of the
    /// request before.
    fn prefixes(&self, request: &[CachePiece], same: usize) -> Vec<KnownPrefix> {
        let mut prefixes: Vec<KnownPrefix> = Vec::with_capacity(request.len());
        for (index, piece) in request.iter().enumerate() {
            let before = prefixes.last();
            let prefix = match self.before.get(index).filter(|_| index < same) {
                Some((_, known)) => KnownPrefix::sized(before, piece, known.hash),
                None => KnownPrefix::with(before, piece),
            };
            prefixes.push(prefix);
        }
        prefixes
    }

    /// Takes out what has not been used for too long.
    fn forget(&mut self, now: Duration) {
        let life = match self.rule.rule {
            CacheKind::Vllm | CacheKind::LlamaCpp | CacheKind::None => None,
            CacheKind::Anthropic
            | CacheKind::Automatic
            | CacheKind::Openai
            | CacheKind::OpenaiBreakpoints
            | CacheKind::Gemini
            | CacheKind::Deepseek => self.rule.life(),
        };
        if let Some(life) = life {
            self.stored
                .retain(|_, stored| now.saturating_sub(stored.used) <= life);
        }
    }

    /// The longest prefix that is found again.
    fn found(&self, prefixes: &[KnownPrefix]) -> CacheLookup {
        let known = |prefix: &KnownPrefix| self.stored.get(&prefix.hash);
        let unit = |prefix: &KnownPrefix| {
            known(prefix).is_some_and(|stored| stored.unit == Unit::CacheLookup)
        };
        let last = match self.rule.rule.finds() {
            CacheMatch::Nothing => None,
            CacheMatch::Prefix => prefixes.iter().rposition(unit),
            CacheMatch::Boundaries if self.rule.rule == CacheKind::OpenaiBreakpoints => {
                let oldest = self.count.saturating_sub(NEWEST);
                prefixes
                    .iter()
                    .rposition(|one| known(one).is_some_and(|one| one.order >= oldest))
            }
            CacheMatch::Boundaries => {
                let reach = self.rule.look_back.unwrap_or(LOOK_BACK);
                let sees = |marker: &KnownPrefix, one: &KnownPrefix| {
                    one.blocks <= marker.blocks && marker.blocks - one.blocks < reach && unit(one)
                };
                let markers: Vec<_> = prefixes.iter().filter(|prefix| prefix.boundary).collect();
                prefixes
                    .iter()
                    .rposition(|one| markers.iter().any(|marker| sees(marker, one)))
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
        // Units are cut at every interval of what was sent, so all of them that lie in the common
        // part are there.
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

    /// Tokens between two prefixes that are stored whatever they hold.
    fn interval(&self) -> Option<u64> {
        self.rule
            .interval
            .filter(|tokens| *tokens > 0)
            .map(u64::from)
    }

    /// How many of so many common tokens can be read, in a request of this length.
    fn readable(&self, common: u64, total: u64) -> u64 {
        // What follows the last token is made from it, so it is computed in any case.
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
        if stepped < self.least() { 0 } else { stepped }
    }

    /// Shorter prefixes are not cached.
    fn least(&self) -> u64 {
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

    /// Stores what this request leaves behind; returns up to which token that is billed. The first
    /// `same` pieces are those of the request before.
    fn store(
        &mut self,
        at: Duration,
        prefixes: &[KnownPrefix],
        found: Option<usize>,
        same: usize,
    ) -> u64 {
        let least = self.least();
        let last = prefixes.len().saturating_sub(1);
        // Reading a prefix uses everything before it, too.
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
                self.keep(at, prefix, Unit::CacheLookup);
                billed = prefix.tokens;
            } else if everything {
                self.keep(at, prefix, Unit::Compared);
            }
        }
        match self.rule.rule.finds() {
            CacheMatch::Boundaries => billed,
            CacheMatch::Prefix | CacheMatch::Nothing => 0,
        }
    }

    fn keep(&mut self, at: Duration, prefix: &KnownPrefix, unit: Unit) {
        let order = self.count;
        let stored = self.stored.entry(prefix.hash).or_insert(StoredPrefix {
            used: at,
            order,
            unit,
        });
        stored.used = at;
        if unit == Unit::CacheLookup {
            stored.unit = unit;
        }
        self.count += 1;
    }
}

#[cfg(test)]
mod tests;
