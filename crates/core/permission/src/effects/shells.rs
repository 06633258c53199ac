//! Shells that are given a script on the line.

use super::wrapper_table::Nature;
use super::wrappers::{NO_WORD, Unwrapped, Wrapped};
use crate::shell::{self, Word};

/// Shells that read the language of this program's parser.
const SHELLS: [&str; 5] = ["ash", "bash", "dash", "rbash", "sh"];
/// Shells with languages of their own.
const STRANGERS: [&str; 13] =
    ["csh", "elvish", "fish", "ksh", "ksh93", "mksh", "nu", "oksh", "pwsh", "tcsh", "xonsh", "yash", "zsh"];

pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name) || STRANGERS.contains(&name)
}

/// A shell: what its `-c` says, or the script it names.
pub(super) fn shell(words: &[Word]) -> Wrapped {
    let strange = words.first().and_then(Word::base_name).is_some_and(|name| STRANGERS.contains(&name));
    let Some(first) = words.get(1) else {
        return Wrapped::opaque(NO_WORD, "a shell that reads commands from its input");
    };
    let Some(option) = first.literal() else {
        return Wrapped::opaque(NO_WORD, "a shell that runs what only the shell knows");
    };
    match option.strip_prefix('-') {
        // A script in a file: a rule must name it.
        None => Wrapped::opaque(1, "a script in a file"),
        Some(letters) if letters.contains('c') && letters.chars().all(|one| "ceux".contains(one)) => {
            let mut wrapped = script_at(words, 2);
            if strange {
                wrapped.inner.push(Unwrapped::Opaque { at: 2, why: "a script in another shell's language" });
            }
            wrapped
        }
        Some(_) => Wrapped::opaque(words.len() - 1, "a shell with unusual options"),
    }
}

fn script_at(words: &[Word], at: usize) -> Wrapped {
    let Some(text) = words.get(at).and_then(Word::literal) else {
        return Wrapped::opaque(NO_WORD, "a script that only the shell knows");
    };
    match shell::parse(text) {
        Ok(script) => {
            Wrapped { nature: Some(Nature::Acts), inner: vec![Unwrapped::Script { at, script, same_shell: false }] }
        }
        Err(_) => Wrapped::opaque(at, "a script that this program cannot read"),
    }
}

/// `eval`: its words, joined, are a script of this very shell.
pub(super) fn evaluated(words: &[Word]) -> Wrapped {
    let mut wrapped = joined(words, 1, Nature::Acts);
    for inner in &mut wrapped.inner {
        if let Unwrapped::Script { same_shell, .. } = inner {
            *same_shell = true;
        }
    }
    wrapped
}

/// The words from this place on, joined by blanks, as a script.
pub(super) fn joined(words: &[Word], from: usize, nature: Nature) -> Wrapped {
    let last = words.len() - 1;
    let texts: Option<Vec<_>> = words.iter().skip(from).map(Word::literal).collect();
    let Some(texts) = texts else { return Wrapped::opaque(NO_WORD, "a script that only the shell knows") };
    match shell::parse(&texts.join(" ")) {
        Ok(script) => {
            Wrapped { nature: Some(nature), inner: vec![Unwrapped::Script { at: last, script, same_shell: false }] }
        }
        Err(_) => Wrapped::opaque(last, "a script that this program cannot read"),
    }
}
