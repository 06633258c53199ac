//! Finds the definitions in a source text.
//!
//! The query of a language captures a whole definition under the word for its kind, and its name as
//! `@name`. Two more captures extend the name: `@of` (the trait of an `impl`) and `@receiver` (the
//! type of a method that is defined outside of it). `(#set! prefix "…")` extends it, too. If
//! several patterns match one name, the first pattern in the query wins.
//!
//! Invariant: the limits bound the work and the result, whatever the text is.

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

/// The maximum length of a definition's name, in characters. Longer names are cut.
const MAX_NAME_CHARS: usize = 200;

/// The maximum number of query matches that tree-sitter tracks at once. No ordinary text needs
/// more.
const MAX_OPEN_MATCHES: u32 = 65_536;

/// The limits on the work for one text, and on the size of the outline.
#[derive(Clone, Copy, Debug)]
pub struct OutlineLimits {
    /// The maximum length of a text, in bytes. Longer texts are rejected.
    pub bytes: usize,
    /// The time limit for parsing the text and finding the definitions, together.
    pub time: Duration,
    /// The maximum number of definitions that are returned. Further definitions are only counted.
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

/// A definition in a source text, such as a function or a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub kind: DefinitionKind,
    /// The name of the definition, on one line.
    pub name: String,
    /// The first line of the definition, from 1.
    pub start_line: usize,
    /// The last line of the definition, inclusive.
    pub end_line: usize,
    /// The number of definitions that contain this definition.
    pub depth: usize,
}

/// The definitions that were found in a source text, and whether some may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// The definitions, in the order in which they begin.
    pub definitions: Vec<Definition>,
    /// True if parts of the text are invalid code, so that definitions may be missing.
    pub damaged: bool,
    /// The number of definitions that were left out because of the limit.
    pub left_out: usize,
}

/// The reason why no outline could be created for a text.
#[derive(Debug, thiserror::Error)]
pub enum OutlineError {
    /// The text exceeds the maximum length.
    #[error("the source has {size} bytes; at most {limit} are parsed")]
    TooLarge {
        /// The length of the text, in bytes.
        size: usize,
        /// The maximum length, in bytes.
        limit: usize,
    },
    /// The text contains zero bytes. Grammars mistake each of them for the end of the text.
    #[error("the source holds zero bytes: it is no text")]
    NotText,
    #[error("parsing was given up after {} ms", .limit.as_millis())]
    TimedOut {
        /// The time limit that was exceeded.
        limit: Duration,
    },
    /// The caller canceled the work.
    #[error("parsing was cancelled")]
    Stopped,
    /// The grammar of the language is broken. The tests of this crate should prevent this.
    #[error("the grammar for {language} is broken: {reason}")]
    Grammar {
        language: &'static str,
        reason: String,
    },
}

/// Finds the definitions in a text. `stop` is called repeatedly, and cancels the work by returning
/// true.
pub fn outline_source(
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
        .get_or_compile()
        .map_err(|reason| OutlineError::Grammar {
            language: language.name(),
            reason: reason.to_owned(),
        })?;
    let watch = OutlineWatch {
        started: Instant::now(),
        limit: limits.time,
        stop,
    };
    let tree = parse_source(ready, source, &watch)?;
    let found = find_spans(ready, &tree, source, &watch)?;
    Ok(build_outline(
        found,
        tree.root_node().has_error(),
        limits.definitions,
    ))
}

/// Checks, while a text is being processed, whether the time limit is exceeded or the caller has
/// canceled the work.
struct OutlineWatch<'a> {
    started: Instant,
    limit: Duration,
    stop: &'a dyn Fn() -> bool,
}

impl OutlineWatch<'_> {
    fn check_limits(&self) -> ControlFlow<()> {
        if self.started.elapsed() > self.limit || (self.stop)() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn stop_error(&self) -> OutlineError {
        if (self.stop)() {
            OutlineError::Stopped
        } else {
            OutlineError::TimedOut { limit: self.limit }
        }
    }
}

fn parse_source(
    ready: &CompiledGrammar,
    source: &str,
    watch: &OutlineWatch<'_>,
) -> Result<Tree, OutlineError> {
    let mut parser = Parser::new();
    // This call cannot fail, because the query was compiled for this grammar. If it did fail, there
    // would be no tree.
    let _ = parser.set_language(&ready.language);
    let mut read = |offset: usize, _| source.as_bytes().get(offset..).unwrap_or_default();
    let mut progress = |_: &_| watch.check_limits();
    let options = ParseOptions::new().progress_callback(&mut progress);
    parser
        .parse_with_options(&mut read, None, Some(options))
        .ok_or_else(|| watch.stop_error())
}

/// A definition whose nesting is not yet known.
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

fn find_spans(
    ready: &CompiledGrammar,
    tree: &Tree,
    source: &str,
    watch: &OutlineWatch<'_>,
) -> Result<Vec<DefinitionSpan>, OutlineError> {
    let mut cursor = QueryCursor::new();
    cursor.set_match_limit(MAX_OPEN_MATCHES);
    let mut given_up = false;
    let mut progress = |_: &_| {
        let over = watch.check_limits();
        given_up |= over.is_break();
        over
    };
    let options = QueryCursorOptions::new().progress_callback(&mut progress);
    let mut by_name: HashMap<usize, DefinitionSpan> = HashMap::new();
    let mut matches =
        cursor.matches_with_options(&ready.query, tree.root_node(), source.as_bytes(), options);
    while let Some(found) = matches.next() {
        let Some(one) = span_from_match(ready, found, source) else {
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
        Err(watch.stop_error())
    } else {
        Ok(by_name.into_values().collect())
    }
}

/// Returns the definition of a query match, or `None` if the match has no name or kind.
fn span_from_match(
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
    let own = node_text(name, source);
    if own.is_empty() {
        return None;
    }
    let shown = match (of_trait, receiver) {
        (Some(of_trait), _) => format!("{} for {own}", node_text(of_trait, source)),
        (None, Some(receiver)) => format!("{}.{own}", node_text(receiver, source)),
        (None, None) => format!("{}{own}", find_name_prefix(ready, found)),
    };
    let range = whole.byte_range();
    // A definition whose text ends with a line break ends on the line before that break.
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

/// Returns the prefix for the names of definitions that the matched pattern of the query sets, or
/// an empty string.
fn find_name_prefix<'a>(ready: &'a CompiledGrammar, found: &QueryMatch<'_, '_>) -> &'a str {
    let settings = ready.query.property_settings(found.pattern_index);
    settings
        .iter()
        .find(|setting| &*setting.key == "prefix")
        .and_then(|setting| setting.value.as_deref())
        .unwrap_or_default()
}

/// Returns the text of a node on one line, cut to [`MAX_NAME_CHARS`] characters.
fn node_text(node: Node<'_>, source: &str) -> String {
    let words: Vec<&str> = source
        .get(node.byte_range())
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let joined = words.join(" ");
    match joined.char_indices().nth(MAX_NAME_CHARS) {
        Some((cut, _)) => format!("{}…", joined.get(..cut).unwrap_or_default()),
        None => joined,
    }
}

/// Sorts the definitions and computes their nesting.
fn build_outline(mut found: Vec<DefinitionSpan>, damaged: bool, limit: usize) -> Outline {
    // If two definitions begin at one position, the outer one comes first.
    found.sort_by_key(|one| (one.start, Reverse(one.end), one.name_at));
    let left_out = found.len().saturating_sub(limit);
    found.truncate(limit);
    let mut open: Vec<(DefinitionKind, usize, usize)> = Vec::new();
    let mut definitions = Vec::with_capacity(found.len());
    for one in found {
        // Two names in one statement, such as `a, b = 1, 2`, are siblings.
        while let Some(&(_, start, end)) = open.last() {
            if end >= one.end && end > one.start && (start, end) != (one.start, one.end) {
                break;
            }
            open.pop();
        }
        let kind = one
            .kind
            .adjust_to_outer(open.last().map(|(kind, _, _)| *kind));
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
        // `typedef struct a { … } b;` defines a type and a structure as siblings.
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
