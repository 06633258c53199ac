//! Finds the scripts that are given to a shell on the command line.

use super::CommandRole;
use super::tables::ProgramTables;
use super::wrappers::{InnerRun, InnerRuns, UNREACHABLE_WORD};
use crate::shell::{self, ShellWord};

/// Finds the script that a shell command runs: the text after its `-c` option, or a script file.
pub(super) fn find_shell_runs(
    tables: &ProgramTables,
    name: &str,
    words: &[ShellWord],
) -> InnerRuns {
    let Some(first) = words.get(1) else {
        return InnerRuns::opaque_at(
            UNREACHABLE_WORD,
            "a shell that reads commands from its input",
        );
    };
    let Some(option) = first.literal() else {
        return InnerRuns::opaque_at(
            UNREACHABLE_WORD,
            "a shell that runs what only the shell knows",
        );
    };
    match option.strip_prefix('-') {
        // A rule must name the script file.
        None => InnerRuns::opaque_at(1, "a script in a file"),
        Some(letters) if letters.contains('c') && letters.chars().all(|c| "ceux".contains(c)) => {
            let mut wrapped = build_script_runs(words.get(2).and_then(ShellWord::literal), 2);
            if tables.foreign_shells.contains(name) {
                wrapped.inner.push(InnerRun::Opaque {
                    at: 2,
                    why: "a script in another shell's language",
                });
            }
            wrapped
        }
        Some(_) => InnerRuns::opaque_at(words.len() - 1, "a shell with unusual options"),
    }
}

/// Finds the script that `eval` runs in the current shell: the joined words.
pub(super) fn find_eval_runs(words: &[ShellWord]) -> InnerRuns {
    let mut wrapped = build_joined_script_runs(words, 1);
    for inner in &mut wrapped.inner {
        if let InnerRun::Script { same_shell, .. } = inner {
            *same_shell = true;
        }
    }
    wrapped
}

/// Describes the script that results from joining the words from index `from` on with blanks.
pub(super) fn build_joined_script_runs(words: &[ShellWord], from: usize) -> InnerRuns {
    let texts: Option<Vec<_>> = words.iter().skip(from).map(ShellWord::literal).collect();
    build_script_runs(
        texts.map(|texts| texts.join(" ")).as_deref(),
        words.len() - 1,
    )
}

/// Describes a script that runs in a separate shell; `at` is the index of the last word that
/// contains the script.
fn build_script_runs(text: Option<&str>, at: usize) -> InnerRuns {
    let Some(text) = text else {
        return InnerRuns::opaque_at(UNREACHABLE_WORD, "a script that only the shell knows");
    };
    match shell::parse_line(text) {
        Ok(script) => InnerRuns {
            role: CommandRole::Acts,
            inner: vec![InnerRun::Script {
                at,
                script,
                same_shell: false,
            }],
        },
        Err(_) => InnerRuns::opaque_at(at, "a script that this program cannot read"),
    }
}
