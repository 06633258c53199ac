//! Expands file name patterns such as `*.txt` as the shell does.
//!
//! Patterns are expanded only where a sandbox hides the files that must not be read. A name that
//! appears between the decision and the command then discloses nothing.

use std::fs;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use crate::shell::{ShellWord, WordSplitting, WordValue};

/// The maximum number of names that the patterns of one command may expand to.
const MAX_NAMES: usize = 1_000;
/// The maximum number of folder entries that are examined for one pattern.
const MAX_ENTRIES: usize = 10_000;

/// The words of a command after the names of matching files have replaced its patterns.
pub(super) struct Expanded {
    pub(super) words: Vec<ShellWord>,
    pub(super) operands: Operands,
}

/// Records whether a command certainly has files as operands. A command without file operands may
/// read the working folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
    /// The command has at least one file operand: a pattern that is not the argument of an option.
    Files,
    Unknown,
}

/// Replaces every pattern after the program's name with the words to which the shell expands the
/// pattern in `folder`. A pattern stays unchanged if it has quotes or expansions, matches too many
/// files, or matches a name that starts with `-`.
pub(super) fn expand_words(words: &[ShellWord], folder: &Path) -> Expanded {
    let mut left = MAX_NAMES;
    let mut expanded = Expanded {
        words: Vec::with_capacity(words.len()),
        operands: Operands::Unknown,
    };
    for (index, word) in words.iter().enumerate() {
        let names = if index == 0 {
            None
        } else {
            find_matching_names(word, folder)
        };
        let Some(names) = names.filter(|names| names.len() <= left) else {
            expanded.words.push(word.clone());
            continue;
        };
        left -= names.len();
        // A word after an option may be its argument, and the first word may be the search pattern.
        let is_operand = index > 1
            && words[index - 1]
                .literal()
                .is_some_and(|before| !before.starts_with('-'));
        if is_operand && names.iter().any(|name| *name != word.source) {
            expanded.operands = Operands::Files;
        }
        expanded
            .words
            .extend(names.into_iter().map(make_literal_word));
    }
    expanded
}

fn make_literal_word(name: String) -> ShellWord {
    ShellWord {
        source: name.clone(),
        shape: name.clone(),
        text: WordValue::Literal(name),
        scripts: Vec::new(),
    }
}

/// Returns the names to which the shell expands a word, or `None` if the word is not a plain
/// pattern. A pattern without a match stays unchanged, as in the shell.
fn find_matching_names(word: &ShellWord, folder: &Path) -> Option<Vec<String>> {
    let is_pattern = match &word.text {
        WordValue::Dynamic {
            splits: WordSplitting::No,
            ..
        } => word.scripts.is_empty() && is_plain(&word.source),
        WordValue::Dynamic {
            splits: WordSplitting::Yes,
            ..
        }
        | WordValue::Literal(_)
        | WordValue::Home(_) => false,
    };
    if !is_pattern {
        return None;
    }
    let mut left = MAX_ENTRIES;
    let mut found = vec![String::new()];
    for (index, component) in word.source.split('/').enumerate() {
        let mut next = Vec::new();
        for start in found {
            let prefix = if index == 0 {
                String::new()
            } else {
                format!("{start}/")
            };
            if !component.contains(['*', '?', '[']) {
                next.push(format!("{prefix}{component}"));
                continue;
            }
            let matcher = build_matcher(component)?;
            for name in list_entries(
                &folder.join(if prefix.is_empty() { "." } else { &prefix }),
                &mut left,
            )? {
                // Shells differ on whether `[.]` matches a leading dot, so it is assumed to match.
                let is_skipped = name.starts_with('.') && !component.starts_with(['.', '[']);
                if !is_skipped && matcher.is_match(&name) {
                    next.push(format!("{prefix}{name}"));
                }
            }
        }
        found = next;
    }
    found.retain(|name| folder.join(name).symlink_metadata().is_ok());
    if found.is_empty() {
        found.push(word.source.clone());
    } else if found.iter().any(|name| name.starts_with('-')) {
        return None;
    }
    Some(found)
}

/// True for a word that every shell interprets in the same way: a word without quotes, expansions,
/// lists, or named classes.
fn is_plain(source: &str) -> bool {
    let has_set = source.contains('[');
    source
        .chars()
        .all(|c| c.is_alphanumeric() || "_./-+,@%=:*?[]!^".contains(c))
        && !(has_set && source.contains(':'))
}

fn build_matcher(component: &str) -> Option<GlobMatcher> {
    let mut pattern = component.to_owned();
    while pattern.contains("**") {
        pattern = pattern.replace("**", "*");
    }
    // The locale decides if a range such as `[a-z]` contains capitals, so both cases are matched.
    let built = GlobBuilder::new(&pattern)
        .literal_separator(true)
        .case_insensitive(component.contains('['))
        .build();
    built.ok().map(|glob| glob.compile_matcher())
}

/// Returns the names in a folder, including `.` and `..`. Returns `None` if the folder cannot be
/// read or has too many entries, and an empty list if the folder is missing.
fn list_entries(folder: &PathBuf, left: &mut usize) -> Option<Vec<String>> {
    let mut names = vec![".".to_owned(), "..".to_owned()];
    let read = match fs::read_dir(folder) {
        Ok(read) => read,
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            return Some(Vec::new());
        }
        Err(_) => return None,
    };
    for entry in read {
        *left = left.checked_sub(1)?;
        names.push(entry.ok()?.file_name().into_string().ok()?);
    }
    Some(names)
}
