//! From a source text to its definitions.
//!
//! A query of a language captures a whole definition under the word of its kind, and its name as
//! `@name`. Two more captures make names that say more: `@of` (the trait an `impl` is of) and
//! `@receiver` (the type a method outside of it belongs to). So does `(#set! prefix "…")`. Where
//! several patterns fit one name, the pattern that stands first in the query decides.
//!
//! Invariant: the work is bounded by the limits whatever the text is, and so is what comes out.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{
    Node, ParseOptions, Parser, QueryCursor, QueryCursorOptions, QueryMatch, StreamingIterator,
    Tree,
};

use crate::languages::CompiledGrammar;
use crate::{DefinitionKind, SourceLanguage};

/// The longest name that is kept, in characters.
const MAX_NAME: usize = 200;

/// Matches that may be under way at a time. More are only needed by text made to need them.
const MAX_OPEN_MATCHES: u32 = 65_536;

/// How much work a text may cost and how much may come of it.
#[derive(Clone, Copy, Debug)]
pub struct OutlineLimits {
    /// The longest text, in bytes.
    pub bytes: usize,
    /// The longest time, for parsing and searching together.
    pub time: Duration,
    /// The most definitions.
    pub definitions: usize,
}

impl Default for OutlineLimits {
    fn default() -> Self {
        Self {
            bytes: 1024 * 1024,
            time: Duration::from_secs(3),
            definitions: 5_000,
        }
    }
}

/// One definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// What it is.
    pub kind: DefinitionKind,
    /// Its name, on one line.
    pub name: String,
    /// Its first line, from 1.
    pub start_line: usize,
    /// Its last line, included.
    pub end_line: usize,
    /// In how many other definitions it lies.
    pub depth: usize,
}

/// The definitions of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// In order of their beginnings.
    pub definitions: Vec<Definition>,
    /// Whether parts of the text are no valid code of the language, so that definitions may be
    /// missing.
    pub damaged: bool,
    /// How many definitions there were beyond the limit.
    pub left_out: usize,
}

/// Why a text has no outline.
#[derive(Debug, thiserror::Error)]
pub enum OutlineError {
    /// It is too long.
    #[error("the source has {size} bytes; at most {limit} are parsed")]
    TooLarge {
        /// Its length.
        size: usize,
        /// The longest that is parsed.
        limit: usize,
    },
    /// It holds zero bytes, which grammars take for its end over and over.
    #[error("the source holds zero bytes: it is no text")]
    NotText,
    /// Parsing took too long.
    #[error("parsing was given up after {} ms", .limit.as_millis())]
    TimedOut {
        /// The time it was given.
        limit: Duration,
    },
    /// Whoever asked wants no answer any more.
    #[error("parsing was cancelled")]
    Stopped,
    /// The grammar of the language does not work. The tests would have to be wrong too.
    #[error("the grammar for {language} is broken: {reason}")]
    Grammar {
        /// The language.
        language: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// Finds the definitions in a text. `stop` is asked now and then whether to give up.
pub fn outline(
    language: SourceLanguage,
    source: &str,
    limits: OutlineLimits,
    stop: &dyn Fn() -> bool,
) -> Result<Outline, OutlineError> {
    if source.len() > limits.bytes {
        return Err(OutlineError::TooLarge {
            size: source.len(),
            limit: limits.bytes,
        });
    }
    let ready = language
        .grammar()
        .ready()
        .map_err(|reason| OutlineError::Grammar {
            language: language.name(),
            reason: reason.to_owned(),
        })?;
    let watch = OutlineWatch {
        started: Instant::now(),
        limit: limits.time,
        stop,
    };
    let tree = parse(ready, source, &watch)?;
    let found = search(ready, &tree, source, &watch)?;
    Ok(arrange(
        found,
        tree.root_node().has_error(),
        limits.definitions,
    ))
}

/// Says when it is time to give up, and why.
struct OutlineWatch<'a> {
    started: Instant,
    limit: Duration,
    stop: &'a dyn Fn() -> bool,
}

impl OutlineWatch<'_> {
    fn over(&self) -> ControlFlow<()> {
        if self.started.elapsed() > self.limit || (self.stop)() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn reason(&self) -> OutlineError {
        if (self.stop)() {
            OutlineError::Stopped
        } else {
            OutlineError::TimedOut { limit: self.limit }
        }
    }
}

fn parse(
    ready: &CompiledGrammar,
    source: &str,
    watch: &OutlineWatch<'_>,
) -> Result<Tree, OutlineError> {
    let mut parser = Parser::new();
    // Can't fail: the query was compiled for this very grammar. If it did, there would be no tree.
    let _ = parser.set_language(&ready.language);
    let mut read = |offset: usize, _| source.as_bytes().get(offset..).unwrap_or_default();
    let mut progress = |_: &_| watch.over();
    let options = ParseOptions::new().progress_callback(&mut progress);
    parser
        .parse_with_options(&mut read, None, Some(options))
        .ok_or_else(|| watch.reason())
}

/// A definition before it is known what lies in what.
struct DefinitionSpan {
    kind: DefinitionKind,
    name: String,
    name_at: usize,
    start: usize,
    end: usize,
    start_line: usize,
    end_line: usize,
    pattern: usize,
}

fn search(
    ready: &CompiledGrammar,
    tree: &Tree,
    source: &str,
    watch: &OutlineWatch<'_>,
) -> Result<Vec<DefinitionSpan>, OutlineError> {
    let mut cursor = QueryCursor::new();
    cursor.set_match_limit(MAX_OPEN_MATCHES);
    let mut given_up = false;
    let mut progress = |_: &_| {
        let over = watch.over();
        given_up |= over.is_break();
        over
    };
    let options = QueryCursorOptions::new().progress_callback(&mut progress);
    let mut by_name: HashMap<usize, DefinitionSpan> = HashMap::new();
    let mut matches =
        cursor.matches_with_options(&ready.query, tree.root_node(), source.as_bytes(), options);
    while let Some(found) = matches.next() {
        let Some(one) = definition(ready, found, source) else {
            continue;
        };
        match by_name.entry(one.name_at) {
            Entry::Vacant(free) => {
                free.insert(one);
            }
            Entry::Occupied(mut taken) => {
                if one.pattern < taken.get().pattern {
                    taken.insert(one);
                }
            }
        }
    }
    drop(matches);
    if given_up {
        Err(watch.reason())
    } else {
        Ok(by_name.into_values().collect())
    }
}

/// The definition a match stands for.
fn definition(
    ready: &CompiledGrammar,
    found: &QueryMatch<'_, '_>,
    source: &str,
) -> Option<DefinitionSpan> {
    let mut name = None;
    let mut of_trait = None;
    let mut receiver = None;
    let mut whole = None;
    for capture in found.captures() {
        match ready
            .query
            .capture_names()
            .get(capture.index as usize)
            .copied()
        {
            Some("name") => name = Some(capture.node),
            Some("of") => of_trait = Some(capture.node),
            Some("receiver") => receiver = Some(capture.node),
            Some(word) => {
                whole = DefinitionKind::of_word(word)
                    .map(|kind| (kind, capture.node))
                    .or(whole);
            }
            None => {}
        }
    }
    let name = name?;
    let (kind, whole) = whole?;
    let own = text(name, source);
    if own.is_empty() {
        return None;
    }
    let shown = match (of_trait, receiver) {
        (Some(of_trait), _) => format!("{} for {own}", text(of_trait, source)),
        (None, Some(receiver)) => format!("{}.{own}", text(receiver, source)),
        (None, None) => format!("{}{own}", prefix(ready, found)),
    };
    let range = whole.byte_range();
    // A definition that ends with a line break ends on the line before it.
    let last = source.as_bytes().get(range.clone()).and_then(<[u8]>::last);
    let end_line = whole.end_position().row + usize::from(last != Some(&b'\n'));
    let start_line = whole.start_position().row + 1;
    let name_at = name.start_byte();
    let start = range.start;
    let end = range.end;
    let pattern = found.pattern_index;
    Some(DefinitionSpan {
        kind,
        name: shown,
        name_at,
        start,
        end,
        start_line,
        end_line,
        pattern,
    })
}

/// What a pattern puts before the names it finds.
fn prefix<'a>(ready: &'a CompiledGrammar, found: &QueryMatch<'_, '_>) -> &'a str {
    let settings = ready.query.property_settings(found.pattern_index);
    settings
        .iter()
        .find(|setting| &*setting.key == "prefix")
        .and_then(|setting| setting.value.as_deref())
        .unwrap_or_default()
}

/// A name on one line, cut if it is very long.
fn text(node: Node<'_>, source: &str) -> String {
    let words: Vec<&str> = source
        .get(node.byte_range())
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let joined = words.join(" ");
    match joined.char_indices().nth(MAX_NAME) {
        Some((cut, _)) => format!("{}…", joined.get(..cut).unwrap_or_default()),
        None => joined,
    }
}

/// Sorts the definitions and finds out what lies in what.
fn arrange(mut found: Vec<DefinitionSpan>, damaged: bool, limit: usize) -> Outline {
    // The outer one first where two begin at one place.
    found.sort_by_key(|one| (one.start, Reverse(one.end), one.name_at));
    let left_out = found.len().saturating_sub(limit);
    found.truncate(limit);
    let mut open: Vec<(DefinitionKind, usize, usize)> = Vec::new();
    let mut definitions = Vec::with_capacity(found.len());
    for one in found {
        // Two names of one statement, such as `a, b = 1, 2`, lie side by side.
        let holds =
            |start, end| end >= one.end && end > one.start && (start, end) != (one.start, one.end);
        while open
            .last()
            .is_some_and(|(_, start, end)| !holds(*start, *end))
        {
            open.pop();
        }
        let kind = one.kind.inside(open.last().map(|(kind, _, _)| *kind));
        let start_line = one.start_line;
        let end_line = one.end_line;
        let depth = open.len();
        definitions.push(Definition {
            kind,
            name: one.name,
            start_line,
            end_line,
            depth,
        });
        // `typedef struct a { … } b;` names a type and a structure side by side.
        if kind != DefinitionKind::Type {
            open.push((kind, one.start, one.end));
        }
    }
    Outline {
        definitions,
        damaged,
        left_out,
    }
}
