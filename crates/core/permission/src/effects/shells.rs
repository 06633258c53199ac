//! Shells that are given a script on the line.

use super::CommandRole;
use super::tables::ProgramTables;
use super::wrappers::{NO_WORD, Unwrapped, Wrapped};
use crate::shell::{self, Word};

/// A shell: what its `-c` says, or the script it names.
pub(super) fn shell(tables: &ProgramTables, name: &str, words: &[Word]) -> Wrapped {
    let Some(first) = words.get(1) else {
        return Wrapped::opaque(NO_WORD, "a shell that reads commands from its input");
    };
    let Some(option) = first.literal() else {
        return Wrapped::opaque(NO_WORD, "a shell that runs what only the shell knows");
    };
    match option.strip_prefix('-') {
        // A script in a file: a rule must name it.
        None => Wrapped::opaque(1, "a script in a file"),
        Some(letters) if letters.contains('c') && letters.chars().all(|c| "ceux".contains(c)) => {
            let mut wrapped = script(words.get(2).and_then(Word::literal), 2);
            if tables.foreign_shells.contain(name) {
                wrapped.inner.push(Unwrapped::Opaque { at: 2, why: "a script in another shell's language" });
            }
            wrapped
        }
        Some(_) => Wrapped::opaque(words.len() - 1, "a shell with unusual options"),
    }
}

/// `eval`: its words, joined, are a script of this very shell.
pub(super) fn evaluated(words: &[Word]) -> Wrapped {
    let mut wrapped = joined(words, 1);
    for inner in &mut wrapped.inner {
        if let Unwrapped::Script { same_shell, .. } = inner {
            *same_shell = true;
        }
    }
    wrapped
}

/// The words from this place on, joined by blanks, as a script.
pub(super) fn joined(words: &[Word], from: usize) -> Wrapped {
    let texts: Option<Vec<_>> = words.iter().skip(from).map(Word::literal).collect();
    script(texts.map(|texts| texts.join(" ")).as_deref(), words.len() - 1)
}

/// A script for a shell of its own; `at` is the last word that holds it.
fn script(text: Option<&str>, at: usize) -> Wrapped {
    let Some(text) = text else { return Wrapped::opaque(NO_WORD, "a script that only the shell knows") };
    match shell::parse(text) {
        Ok(script) => {
            Wrapped { role: CommandRole::Acts, inner: vec![Unwrapped::Script { at, script, same_shell: false }] }
        }
        Err(_) => Wrapped::opaque(at, "a script that this program cannot read"),
    }
}
