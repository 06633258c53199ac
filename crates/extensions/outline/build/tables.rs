//! Reads the large tables of a grammar that is linked into the build script.
//!
//! This is the only `unsafe` of the script. The structure is the one that every `parser.c` of
//! versions 14 and 15 returns (`struct TSLanguage` in its `tree_sitter/parser.h`; the additional
//! fields of version 15 are not read). The lengths of the tables follow from the counts in the
//! structure, or from the indexes in other tables.

use tree_sitter_language::LanguageFn;

/// A table of a grammar: its name in `parser.c`, its number of elements, and its bytes.
pub(crate) struct GrammarTable {
    pub(crate) name: &'static str,
    pub(crate) length: usize,
    pub(crate) bytes: Vec<u8>,
}

#[repr(C)]
struct LinkedGrammar {
    version: u32,
    symbols: u32,
    aliases: u32,
    tokens: u32,
    external_tokens: u32,
    states: u32,
    large_states: u32,
    productions: u32,
    fields: u32,
    longest_alias_sequence: u16,
    large: *const u16,
    small: *const u16,
    small_map: *const u32,
    actions: *const [u8; 8],
    names_and_small_tables: [*const (); 8],
    lex_modes: *const u16,
    lexers: [*const (); 2],
    keyword: u16,
    scanner: [*const (); 7],
    primary_states: *const u16,
}

/// Reads the tables of a grammar, in the order in which they are packed.
pub(crate) fn read_tables(language: LanguageFn) -> [GrammarTable; 6] {
    // SAFETY: the function comes from a grammar crate and returns a constant structure that begins
    // with the fields above.
    let grammar = unsafe { &*language.into_raw()().cast::<LinkedGrammar>() };
    assert!(
        [14, 15].contains(&grammar.version),
        "grammars of version {} are not known here",
        grammar.version
    );
    let [symbols, tokens, states, large_states] = [
        grammar.symbols,
        grammar.tokens,
        grammar.states,
        grammar.large_states,
    ]
    .map(|count| count as usize);
    // SAFETY: these are the lengths with which `parser.c` declares the tables.
    let (large, small_map, lex_modes, primary_states) = unsafe {
        let of_mode = if grammar.version == 14 { 2 } else { 3 };
        (
            std::slice::from_raw_parts(grammar.large, large_states * symbols),
            std::slice::from_raw_parts(grammar.small_map, states - large_states),
            std::slice::from_raw_parts(grammar.lex_modes, states * of_mode),
            std::slice::from_raw_parts(grammar.primary_states, states),
        )
    };
    // For a terminal symbol, a table contains the index of its actions; for other symbols, a state.
    let mut used: Vec<u16> = large
        .chunks(symbols)
        .flat_map(|row| &row[..tokens])
        .copied()
        .collect();
    let mut small = 0;
    for begin in small_map {
        small = small.max(read_small_state(grammar, *begin as usize, &mut used));
    }
    let last = usize::from(used.into_iter().max().unwrap_or_default());
    // SAFETY: the first byte of the last entry that is referred to is the number of actions after
    // it.
    let (small, actions) = unsafe {
        let actions = last + 1 + usize::from((*grammar.actions.add(last))[0]);
        (
            std::slice::from_raw_parts(grammar.small, small),
            std::slice::from_raw_parts(grammar.actions, actions),
        )
    };
    [
        build_table("ts_parse_table", large, |number| number.to_ne_bytes()),
        build_table("ts_small_parse_table", small, |number| number.to_ne_bytes()),
        build_table("ts_small_parse_table_map", small_map, |number| {
            number.to_ne_bytes()
        }),
        build_table("ts_parse_actions", actions, |action| *action),
        build_table("ts_lex_modes", lex_modes, |number| number.to_ne_bytes()),
        build_table("ts_primary_state_ids", primary_states, |number| {
            number.to_ne_bytes()
        }),
    ]
}

fn build_table<T, const N: usize>(
    name: &'static str,
    elements: &[T],
    bytes: impl Fn(&T) -> [u8; N],
) -> GrammarTable {
    GrammarTable {
        name,
        length: elements.len(),
        bytes: elements.iter().flat_map(bytes).collect(),
    }
}

/// Reads a state's entry in the small table and returns its end. An entry is a number of groups,
/// each with a value, a number of symbols, and these symbols. Adds the values that refer to actions
/// to `used`.
fn read_small_state(grammar: &LinkedGrammar, begin: usize, used: &mut Vec<u16>) -> usize {
    // SAFETY: the map refers to entries of this form, and only indexes within an entry are read.
    let at = |index: usize| unsafe { *grammar.small.add(index) };
    let mut next = begin + 1;
    for _ in 0..at(begin) {
        let value = at(next);
        let symbols = usize::from(at(next + 1));
        next += 2;
        if (next..next + symbols).any(|index| u32::from(at(index)) < grammar.tokens) {
            used.push(value);
        }
        next += symbols;
    }
    next
}
