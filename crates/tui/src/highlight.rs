//! Tones of code, line by line.
//!
//! Responsible for what of a line is a keyword, a string, a comment. Invariant: a line is read once, in order, and what it says is
//! what it said without tones. Grammars are loaded beside everything else: until they are there, and for languages nobody knows,
//! code is plain; nobody ever waits for them.

use std::path::Path;
use std::sync::{LazyLock, OnceLock};

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use crate::line::{Line, Span, Tone};

/// A longer line is data, and reading it would be felt.
const LONGEST: usize = 500;
/// So much of one text is read; what follows is plain.
const LINES: usize = 1_000;

static GRAMMARS: OnceLock<SyntaxSet> = OnceLock::new();

/// What parts of grammars' names mean; the first that fits counts.
static MEANINGS: LazyLock<Vec<(Scope, Tone)>> = LazyLock::new(|| {
    let meanings = [
        ("comment", Tone::Comment),
        ("string", Tone::Literal),
        ("constant.character", Tone::Literal),
        ("constant", Tone::Number),
        ("keyword.operator", Tone::Plain),
        ("keyword", Tone::Keyword),
        ("storage", Tone::Keyword),
        ("entity.name.function", Tone::Strong),
        ("entity.name.tag", Tone::Keyword),
        ("entity.name.section", Tone::Strong),
        ("entity.name", Tone::Number),
        ("entity.other.attribute-name", Tone::Number),
        ("support.type", Tone::Number),
        ("support.class", Tone::Number),
        ("variable", Tone::Plain),
        ("markup.heading", Tone::Strong),
        ("markup.inserted", Tone::Added),
        ("markup.deleted", Tone::Removed),
        ("meta.diff.range", Tone::Accent),
    ];
    meanings.into_iter().filter_map(|(name, tone)| Some((Scope::new(name).ok()?, tone))).collect()
});

/// Languages that models write most; their expressions are made ready before anyone asks.
const USUAL: &[(&str, &str)] = &[
    ("rs", "/// A.\npub fn a<T: B>(b: &str) -> u8 { let c = \"d\\n\"; if c.len() > 1 { return 0x1f; } // e\n}\n"),
    ("py", "# a\n@b\ndef c(d: int = 1) -> str:\n    return f\"{d}\" if d else 'e'\n"),
    ("js", "// a\nconst b = async (c) => { return `d${c}` + 'e' + 1; }\n"),
    ("ts", "// a\ninterface A { b?: string }\nconst c = (d: A): number => { return 1; }\n"),
    ("sh", "# a\nfor b in \"$c\"; do echo 'd' | grep -c e && exit 1; done\n"),
    ("json", "{\"a\": [1, true, \"b\"]}\n"),
    ("toml", "# a\n[b]\nc = \"d\"\ne = 1\n"),
];

/// Loads the grammars on a thread of their own, if nobody has.
pub(crate) fn prepare() {
    // Without a thread code stays plain.
    drop(std::thread::Builder::new().name("grammars".into()).spawn(load));
}

/// Loads the grammars.
pub(crate) fn load() {
    GRAMMARS.get_or_init(two_face::syntax::extra_newlines);
    for (language, sample) in USUAL {
        let mut highlighter = Highlighter::of_language(language);
        sample.lines().for_each(|line| drop(highlighter.line(line)));
    }
}

/// Code as it comes, one line after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Highlighter {
    /// None where nothing is known of the language.
    state: Option<(ParseState, ScopeStack)>,
    lines: usize,
}

impl Highlighter {
    /// Code of a language, named as after a fence: `rust`, `py`, `c++ title=x`.
    pub(crate) fn of_language(name: &str) -> Self {
        let first = name.split([' ', ',', '{', '\t']).find(|word| !word.is_empty()).unwrap_or_default();
        Self::of(|grammars| grammars.find_syntax_by_token(first).filter(|_| !first.is_empty()))
    }

    /// The code of a file.
    pub(crate) fn of_path(path: &str) -> Self {
        let path = Path::new(path.trim());
        let names = [path.file_name(), path.extension()].map(|name| name.and_then(|name| name.to_str()));
        Self::of(|grammars| names.iter().flatten().find_map(|name| grammars.find_syntax_by_extension(name)))
    }

    fn of(find: impl FnOnce(&'static SyntaxSet) -> Option<&'static SyntaxReference>) -> Self {
        let state = GRAMMARS.get().and_then(find).filter(|syntax| syntax.name != "Plain Text");
        Self { state: state.map(|syntax| (ParseState::new(syntax), ScopeStack::new())), lines: 0 }
    }

    /// The next line, with its tones.
    pub(crate) fn line(&mut self, text: &str) -> Line {
        // Cleaned first: what is cut into spans afterwards is only cut.
        let clean = Line::of(text, Tone::Plain);
        self.lines += 1;
        if clean.width() > LONGEST || self.lines > LINES {
            return clean;
        }
        let Some(((state, stack), grammars)) = self.state.as_mut().zip(GRAMMARS.get()) else { return clean };
        let text = clean.plain() + "\n";
        let Ok(changes) = state.parse_line(&text, grammars) else {
            self.state = None;
            return clean;
        };
        let mut line = Line::empty();
        let mut from = 0;
        for (at, change) in changes {
            push(&mut line, text.get(from..at), stack);
            from = at.max(from);
            if stack.apply(&change).is_err() {
                self.state = None;
                return clean;
            }
        }
        push(&mut line, text.get(from..), stack);
        line
    }
}

fn push(line: &mut Line, piece: Option<&str>, stack: &ScopeStack) {
    let piece = piece.unwrap_or_default().trim_end_matches('\n');
    if !piece.is_empty() {
        line.push(Span::part(piece.to_owned(), tone(stack)));
    }
}

/// What the innermost part means that means anything.
fn tone(stack: &ScopeStack) -> Tone {
    let meaning = |scope: &Scope| MEANINGS.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope)).map(|found| found.1);
    stack.scopes.iter().rev().find_map(meaning).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tones(language: &str, text: &str) -> Vec<(String, Tone)> {
        load();
        let mut highlighter = Highlighter::of_language(language);
        let lines = text.lines().flat_map(|line| highlighter.line(line).spans().to_vec());
        lines.map(|span| (span.text().to_owned(), span.tone())).collect()
    }

    #[test]
    fn words_have_their_tones() {
        let spans = tones("rust", "pub fn sum() -> u8 { \"a\" } // b");
        for (text, tone) in
            [("fn", Tone::Keyword), ("sum", Tone::Strong), ("\"a\"", Tone::Literal), ("// b", Tone::Comment)]
        {
            assert!(spans.iter().any(|span| span.0.contains(text) && span.1 == tone), "{text}: {spans:?}");
        }
    }

    #[test]
    fn a_comment_goes_on_in_the_next_line() {
        assert_eq!(tones("c", "/* a\nb */ c")[1..], [("b */".into(), Tone::Comment), (" c".into(), Tone::Plain)]);
    }

    #[test]
    fn languages_are_known_by_many_names() {
        load();
        for name in
            ["rust", "rs", "Rust", "python", "py", "ts", "typescript", "tsx", "bash", "sh", "toml", "c++", "go", "yaml"]
        {
            assert!(Highlighter::of_language(name).state.is_some(), "{name}");
        }
        assert!(Highlighter::of_language("rust,ignore").state.is_some());
        for path in ["src/lib.rs", "Makefile", "Dockerfile", "a/b.yml"] {
            assert!(Highlighter::of_path(path).state.is_some(), "{path}");
        }
        for name in ["", "text", "klingon"] {
            assert!(Highlighter::of_language(name).state.is_none(), "{name}");
        }
    }

    #[test]
    fn a_line_of_a_megabyte_is_not_read() {
        assert_eq!(tones("rust", &"\"a\" ".repeat(250_000)).len(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn tones_change_no_letter(lines in prop::collection::vec("[a-z\"'/*{}()#\\\\ \u{1b}\u{202e}\u{301}日]{0,40}", 0..8)) {
            load();
            let mut highlighter = Highlighter::of_language("rust");
            for line in &lines {
                prop_assert_eq!(highlighter.line(line).plain(), Line::of(line, Tone::Plain).plain());
            }
        }
    }
}
