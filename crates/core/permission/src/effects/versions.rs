//! Recognizes git commands that print the content of files from the index or from commits, or write
//! it to other files, where rules and the sandbox cannot hide single files.

use super::options::is_option;
use super::tables::{NameList, ProgramTables, VersionsEntry, program_tables};
use super::wrappers::find_options_end;
use crate::shell::ShellWord;

/// Subcommands with operands that may be the ids of folders and contents of files. Others take
/// commits only.
const TAKES_IDS: [&str; 18] = [
    "archive",
    "cat-file",
    "checkout",
    "diff",
    "diff-index",
    "diff-tree",
    "difftool",
    "fast-import",
    "grep",
    "merge-tree",
    "mktree",
    "read-tree",
    "replace",
    "restore",
    "show",
    "unpack-file",
    "update-index",
    "worktree",
];

/// The words of a git command that print versions of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VersionReading {
    /// The index of the first word after the subcommand.
    pub(crate) from: usize,
    pub(crate) repository: RepositoryChoice,
    /// True if an operand may be the id of an object that is in no commit.
    pub(crate) takes_ids: bool,
}

/// The way in which git finds the repository of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepositoryChoice {
    /// From the working folder upwards, or from the folder of one `-C`.
    Searched,
    /// An option names the repository, or only the shell knows the options.
    Named,
}

/// Returns a description of a command that prints versions of files, or `None` for any other
/// command.
pub(crate) fn detect_version_reading(words: &[ShellWord]) -> Option<VersionReading> {
    let tables = program_tables()?;
    if words.first().and_then(ShellWord::base_name) != Some("git") {
        return None;
    }
    let at = find_git_subcommand(tables, words)?;
    let verb = words.get(at)?.literal();
    let reading = VersionReading {
        from: at + 1,
        repository: detect_repository_choice(words.get(1..at).unwrap_or_default()),
        takes_ids: verb.is_none_or(|verb| TAKES_IDS.contains(&verb)),
    };
    let Some(verb) = verb else {
        return Some(reading);
    };
    let rest = words.get(at + 1..).unwrap_or_default();
    // With `--work-tree`, any subcommand may write files to another folder.
    let is_elsewhere = words.iter().take(at).any(|word| {
        word.literal()
            .is_none_or(|text| text.starts_with("--work-tree"))
    });
    if is_elsewhere {
        return Some(reading);
    }
    let mut entries = tables
        .versions
        .iter()
        .filter(|entry| entry.names.contains(verb));
    entries
        .any(|entry| entry.prints_content(rest))
        .then_some(reading)
}

fn detect_repository_choice(options: &[ShellWord]) -> RepositoryChoice {
    let mut folders = 0;
    for option in options {
        match option.literal() {
            Some("-C") => folders += 1,
            Some(text) if text != "--bare" && !text.starts_with("--git-dir") => {}
            Some(_) | None => return RepositoryChoice::Named,
        }
    }
    if folders > 1 {
        RepositoryChoice::Named
    } else {
        RepositoryChoice::Searched
    }
}

/// Returns the index of git's subcommand, or of the first word if an option before the subcommand
/// is unknown.
fn find_git_subcommand(tables: &ProgramTables, words: &[ShellWord]) -> Option<usize> {
    let main = tables
        .find_programs("git")
        .find(|program| program.after.is_empty())?;
    // After an unknown option, the first word that is no option counts.
    let at = match find_options_end(&main.before, words, 1) {
        Ok(at) => at,
        Err(at) => at + words.iter().skip(at).position(|word| !word.is_flag())?,
    };
    (at < words.len()).then_some(at)
}

impl VersionsEntry {
    fn prints_content(&self, rest: &[ShellWord]) -> bool {
        let options: Vec<&ShellWord> = rest
            .iter()
            .take_while(|word| word.literal() != Some("--"))
            .filter(|word| word.literal().is_none_or(is_option))
            .collect();
        let has_option = options.iter().any(|word| {
            word.literal().is_none_or(|text| {
                names_option(text, &self.short, &self.long, Spelling::Abbreviated)
            })
        });
        if has_option {
            return true;
        }
        let is_named = rest
            .first()
            .is_some_and(|word| word.literal().is_none_or(|text| self.words.contains(text)));
        if !self.words.is_empty() && is_named {
            return true;
        }
        let is_hidden = options.iter().any(|word| {
            word.literal().is_some_and(|text| {
                names_option(text, &self.without_short, &self.without, Spelling::Whole)
            })
        });
        self.always && !is_hidden
    }
}

/// Controls whether a long option may be abbreviated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    Abbreviated,
    Whole,
}

/// True if an option is one of these letters or long options.
fn names_option(text: &str, letters: &str, long: &NameList, form: Spelling) -> bool {
    if let Some(name) = text.strip_prefix("--") {
        let name = name.split('=').next().unwrap_or(name);
        return match form {
            Spelling::Abbreviated => {
                !name.is_empty() && long.iter().any(|known| known.starts_with(name))
            }
            Spelling::Whole => long.contains(name),
        };
    }
    let cluster = text.strip_prefix('-').unwrap_or_default();
    match form {
        // A letter may also stand in the value of another, which only asks once more.
        Spelling::Abbreviated => cluster.contains(|letter| letters.contains(letter)),
        Spelling::Whole => cluster.len() == 1 && letters.contains(cluster),
    }
}
