//! File names that the shell puts in place of a pattern such as `*.txt`.
//!
//! They are looked up only where a sandbox hides the files that may not be read, so that a name
//! that appears between the decision and the command shows nothing.

use std::fs;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use crate::shell::{ShellWord, WordSplitting, WordValue};

/// Names that are looked at for one command.
const MAX_NAMES: usize = 1_000;
/// Folder entries that are looked at for one pattern.
const MAX_ENTRIES: usize = 10_000;

/// Words after the names in place of patterns were looked up.
pub(super) struct Expanded {
    pub(super) words: Vec<ShellWord>,
    pub(super) operands: Operands,
}

/// Whether a command is given files, so that one that would read the working directory does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
    /// A pattern that is no argument of an option stands for files.
    Files,
    Unknown,
}

/// Replaces every pattern after the program's name by the words that the shell makes of it in
/// `folder`. A pattern stays as it is if its names can't be known: it has quotes or expansions,
/// matches too much, or matches a name that starts with `-`.
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
            matching_names(word, folder)
        };
        let Some(names) = names.filter(|names| names.len() <= left) else {
            expanded.words.push(word.clone());
            continue;
        };
        left -= names.len();
        // What stands behind an option may be its argument; the first word may be what is searched
        // for.
        let is_operand = index > 1
            && words[index - 1]
                .literal()
                .is_some_and(|before| !before.starts_with('-'));
        if is_operand && names.iter().any(|name| *name != word.source) {
            expanded.operands = Operands::Files;
        }
        expanded.words.extend(names.into_iter().map(literal_word));
    }
    expanded
}

fn literal_word(name: String) -> ShellWord {
    ShellWord {
        source: name.clone(),
        shape: name.clone(),
        text: WordValue::Literal(name),
        scripts: Vec::new(),
    }
}

/// Returns the names that the shell makes of a word, or `None` if it is no plain pattern. A pattern
/// without a match stays itself, as the shell leaves it.
fn matching_names(word: &ShellWord, folder: &Path) -> Option<Vec<String>> {
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
            let matcher = matcher_for(component)?;
            for name in entries(
                &folder.join(if prefix.is_empty() { "." } else { &prefix }),
                &mut left,
            )? {
                // Whether `[.]` matches a leading dot is up to the shell, so it is taken to match.
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

/// True for a word whose characters mean the same to every shell: no quotes, expansions, lists or
/// named classes.
fn is_plain(source: &str) -> bool {
    let is_common = |c: char| c.is_alphanumeric() || "_./-+,@%=:".contains(c);
    let has_set = source.contains('[');
    source.chars().all(|c| is_common(c) || "*?[]!^".contains(c))
        && !(has_set && source.contains(':'))
}

fn matcher_for(component: &str) -> Option<GlobMatcher> {
    let mut pattern = component.to_owned();
    while pattern.contains("**") {
        pattern = pattern.replace("**", "*");
    }
    // Whether a range such as `[a-z]` holds capitals depends on the locale: both are looked at.
    let built = GlobBuilder::new(&pattern)
        .literal_separator(true)
        .case_insensitive(component.contains('['))
        .build();
    built.ok().map(|glob| glob.compile_matcher())
}

/// The names in a folder with `.` and `..`; `None` if it can't be read or has too many. A folder
/// that is missing has none.
fn entries(folder: &PathBuf, left: &mut usize) -> Option<Vec<String>> {
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
