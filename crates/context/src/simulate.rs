//! What a provider's prefix cache would do with a sequence of requests: read, written and fresh tokens of each (SPEC 8.11).
//!
//! A request is a list of [`Piece`]s. Equal pieces at the front of two requests are equal bytes there; what lies within a
//! piece is not looked at, so a match ends where a piece ends. The rules, each as its provider documents it (looked up in
//! October 2026):
//!
//! | rule | found again | billed as written | source |
//! | --- | --- | --- | --- |
//! | `anthropic` | the longest prefix stored at a marker, if it ends at a marker of this request or at most 20 content blocks up to it, the marker's own counted first | from there to the last marker | platform.claude.com, `build-with-claude/prompt-caching` |
//! | `openai` | the longest common prefix, from 1,024 tokens on, in steps of 128 | nothing | developers.openai.com, `guides/prompt-caching`, up to GPT-5.5 |
//! | `openai-breakpoints` | the longest of the newest 80 prefixes stored at a breakpoint; the end of a request is one | from there to the last breakpoint | the same page, from GPT-5.6 on |
//! | `gemini` | the longest common prefix; never promised, so this is the most that can be read | nothing | ai.google.dev, `caching` (implicit) |
//! | `deepseek` | the longest stored unit that the request holds whole: a unit ends where a request ended and where two requests parted | nothing | api-docs.deepseek.com, `guides/kv_cache` |
//! | `vllm` | the longest common prefix in whole blocks of 16 tokens | nothing | docs.vllm.ai, `design/prefix_caching` |
//! | `llama-cpp` | the common prefix with the request before, token by token: one slot | nothing | llama.cpp, `tools/server` (`cache_prompt`) |
//! | `automatic` | the longest common prefix | nothing | – |
//!
//! An entry lives for the rule's `ttl` after it was last used; vLLM and llama.cpp forget by pressure, not by time. DeepSeek cuts
//! units at intervals too, which it does not publish: they are left out, so that it may read more than is said here.

use std::collections::HashMap;
use std::time::Duration;

use haft_types::{CacheKind, CacheRule, ContentHash, Hasher, Request, Usage};

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
pub struct Piece {
    /// What it is.
    pub hash: ContentHash,
    /// Its tokens.
    pub tokens: u64,
    /// Its content blocks.
    pub blocks: u32,
    /// Whether the provider is asked to remember the prefix that ends here.
    pub boundary: bool,
}

/// The pieces of a request, its tools first, in the model's own tokens.
pub fn pieces(request: &Request, tokenizer_factor: f64) -> Vec<Piece> {
    let scale = Scale::new(tokenizer_factor);
    let tools =
        Piece { hash: request.tools.hash, tokens: scale.up(request.tools.tokens.into()), blocks: 1, boundary: false };
    let segments = request.segments.iter().map(|segment| Piece {
        hash: segment.entry.hash,
        tokens: scale.up(segment.entry.tokens.into()),
        blocks: segment.entry.message.content.len().max(1) as u32,
        boundary: segment.boundary,
    });
    [tools].into_iter().chain(segments).collect()
}

/// When a prefix was used last, and as the how manieth one it was stored.
#[derive(Clone, Copy, Debug)]
struct Stored {
    used: Duration,
    order: usize,
}

/// A provider's cache, one conversation long.
#[derive(Clone, Debug)]
pub struct CacheSimulator {
    rule: CacheRule,
    stored: HashMap<ContentHash, Stored>,
    /// How many prefixes were ever stored.
    count: usize,
    /// The prefixes of the request before.
    before: Vec<ContentHash>,
}

/// A prefix of the request at hand: everything up to the end of a piece.
#[derive(Clone, Copy)]
struct Prefix {
    hash: ContentHash,
    tokens: u64,
    /// Content blocks up to here.
    blocks: u32,
    boundary: bool,
}

impl CacheSimulator {
    /// An empty cache of this kind.
    pub fn new(rule: &CacheRule) -> Self {
        Self { rule: rule.clone(), stored: HashMap::new(), count: 0, before: Vec::new() }
    }

    /// Sends a request at this time, counted from any beginning, and tells what becomes of its input.
    pub fn send(&mut self, at: Duration, request: &[Piece]) -> Usage {
        let prefixes = prefixes(request);
        let total = prefixes.last().map_or(0, |last| last.tokens);
        self.forget(at);
        let found = self.found(&prefixes);
        let read = self.readable(found.map_or(0, |index| prefixes[index].tokens));
        let written = self.store(at, &prefixes, found).saturating_sub(read);
        self.before = prefixes.iter().map(|prefix| prefix.hash).collect();
        Usage { input: total - read - written, cached_input: read, cache_write: written, ..Usage::default() }
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
            self.stored.retain(|_, stored| now.saturating_sub(stored.used) <= life);
        }
    }

    /// The index of the longest prefix that is found again.
    fn found(&self, prefixes: &[Prefix]) -> Option<usize> {
        let stored = |prefix: &Prefix| self.stored.contains_key(&prefix.hash);
        match self.rule.rule {
            CacheKind::None => None,
            CacheKind::Automatic
            | CacheKind::Openai
            | CacheKind::Gemini
            | CacheKind::Deepseek
            | CacheKind::Vllm
            | CacheKind::LlamaCpp => prefixes.iter().rposition(stored),
            CacheKind::OpenaiBreakpoints => {
                let oldest = self.count.saturating_sub(NEWEST);
                prefixes.iter().rposition(|one| self.stored.get(&one.hash).is_some_and(|one| one.order >= oldest))
            }
            CacheKind::Anthropic => {
                let reach = self.rule.look_back.unwrap_or(LOOK_BACK);
                let sees = |marker: &Prefix, one: &Prefix| {
                    one.blocks <= marker.blocks && marker.blocks - one.blocks < reach && stored(one)
                };
                let markers: Vec<_> = prefixes.iter().filter(|prefix| prefix.boundary).collect();
                prefixes.iter().rposition(|one| markers.iter().any(|marker| sees(marker, one)))
            }
        }
    }

    /// How many of so many common tokens can be read.
    fn readable(&self, common: u64) -> u64 {
        let stepped = match self.rule.rule {
            CacheKind::Openai => common - common % OPENAI_STEP,
            CacheKind::Vllm => common - common % VLLM_BLOCK,
            CacheKind::Anthropic
            | CacheKind::Automatic
            | CacheKind::OpenaiBreakpoints
            | CacheKind::Gemini
            | CacheKind::Deepseek
            | CacheKind::LlamaCpp
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

    /// Stores what this request leaves behind; returns up to which token that is billed.
    fn store(&mut self, at: Duration, prefixes: &[Prefix], found: Option<usize>) -> u64 {
        let (least, last) = (self.least(), prefixes.len().saturating_sub(1));
        // Reading a prefix uses everything before it, too.
        for prefix in &prefixes[..found.map_or(0, |index| index + 1)] {
            if let Some(stored) = self.stored.get_mut(&prefix.hash) {
                stored.used = at;
            }
        }
        let parted = self.before.iter().zip(prefixes).take_while(|(old, new)| **old == new.hash).count();
        if self.rule.rule == CacheKind::LlamaCpp {
            self.stored.clear();
        }
        let keeps = |index: usize, prefix: &Prefix| match self.rule.rule {
            CacheKind::None => false,
            CacheKind::Anthropic => prefix.boundary,
            CacheKind::OpenaiBreakpoints => prefix.boundary || index == last,
            CacheKind::Deepseek => index == last || index + 1 == parted,
            CacheKind::Automatic | CacheKind::Openai | CacheKind::Gemini | CacheKind::Vllm | CacheKind::LlamaCpp => {
                true
            }
        };
        let kept = prefixes.iter().enumerate().filter(|(index, prefix)| keeps(*index, prefix));
        let kept: Vec<_> = kept.map(|(_, prefix)| *prefix).filter(|prefix| prefix.tokens >= least).collect();
        for prefix in &kept {
            let order = self.count;
            self.stored.entry(prefix.hash).or_insert(Stored { used: at, order }).used = at;
            self.count += 1;
        }
        match self.rule.rule {
            CacheKind::Anthropic | CacheKind::OpenaiBreakpoints => kept.last().map_or(0, |prefix| prefix.tokens),
            CacheKind::Automatic
            | CacheKind::Openai
            | CacheKind::Gemini
            | CacheKind::Deepseek
            | CacheKind::Vllm
            | CacheKind::LlamaCpp
            | CacheKind::None => 0,
        }
    }
}

/// Every prefix of a request that ends with a piece.
fn prefixes(request: &[Piece]) -> Vec<Prefix> {
    let mut so_far: Option<Prefix> = None;
    let longer = |piece: &Piece| {
        let mut hasher = Hasher::default();
        if let Some(before) = so_far {
            hasher.update(before.hash.to_string().as_bytes());
        }
        let hash = hasher.update(piece.hash.to_string().as_bytes()).finish();
        let (tokens, blocks) = so_far.map_or((0, 0), |before| (before.tokens, before.blocks));
        let (tokens, blocks) = (tokens + piece.tokens, blocks + piece.blocks);
        let prefix = Prefix { hash, tokens, blocks, boundary: piece.boundary };
        so_far = Some(prefix);
        prefix
    };
    request.iter().map(longer).collect()
}

#[cfg(test)]
mod tests;
