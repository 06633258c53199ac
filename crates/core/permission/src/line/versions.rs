//! Decides git commands that print the content of files from the index or from commits. Neither a
//! path rule nor the sandbox can leave out a single file there.

use std::path::PathBuf;

use haft_types::Decision;

use super::LineJudge;
use crate::effects::{self, ProgramRun, RepositoryChoice, VersionReading};
use crate::files::FileAccess;
use crate::git_history::{History, read_history};
use crate::git_index::{
    Repository, TrackedFiles, find_repository, is_in_bare_repository, list_tracked_files,
};
use crate::rule::PermissionRule;
use crate::shell::ShellWord;
use crate::verdict::Ruling;

/// Options with which a command limited to some files prints others as well.
const UNLIMITED_OPTIONS: [&str; 4] = ["follow", "full-diff", "no-index", "stdin"];

impl LineJudge<'_> {
    /// Returns the rule on reading files that a command could circumvent, because it prints
    /// versions of files that its words do not name.
    pub(super) fn find_version_rule(&self, run: &ProgramRun) -> Option<&PermissionRule> {
        let (rule, _) = self.strict_path_rules(FileAccess::Read).next()?;
        let reading = effects::detect_version_reading(&run.words)?;
        (!self.names_only_files(run, reading)).then_some(rule)
    }

    /// Explains why a command that prints versions of files needs an approval.
    pub(super) fn explain_versions(&self, run: &ProgramRun) -> Option<String> {
        let rule = self.find_version_rule(run)?;
        Some(format!(
            "it prints files from the repository, and the rule `{rule}` may speak of one of them"
        ))
    }

    /// Returns the ruling for a command that prints versions of files, if the repository may hold
    /// one of a file that a rule covers. This ruling precedes rules and modes that allow the command.
    pub(super) fn find_stored_version_ruling(&self, run: &ProgramRun) -> Option<Ruling> {
        let rule = self.find_version_rule(run)?;
        let reading = effects::detect_version_reading(&run.words)?;
        if !self.may_hold_unreadable_version(run, reading) {
            return None;
        }
        let reason = self.explain_versions(run)?;
        Some(Ruling::new(Decision::Ask, reason).with_rule(rule))
    }

    /// True if the command's words limit it to existing files, which are compared with the rules
    /// one by one. A revision other than `HEAD` could name the content of any file.
    fn names_only_files(&self, run: &ProgramRun, reading: VersionReading) -> bool {
        let rest = run.words.get(reading.from..).unwrap_or_default();
        let mut files = 0;
        let mut reads_options = true;
        for word in rest {
            let Some(text) = word.literal() else {
                return false;
            };
            if text == "--" {
                reads_options = false;
            } else if reads_options && text.starts_with('-') {
                if is_unlimited(text) {
                    return false;
                }
            } else if is_pathspec_pattern(text) {
                return false;
            } else if self.is_file(run, text) {
                files += 1;
            } else if files > 0 || !reads_options || !is_head(text) {
                return false;
            }
        }
        files > 0
    }

    fn is_file(&self, run: &ProgramRun, text: &str) -> bool {
        let paths = effects::resolve_path(&run.folders, text);
        paths.is_some_and(|paths| {
            let is_inside = |path: &PathBuf| self.workspace.contains(path) && path.is_file();
            paths.iter().all(is_inside)
        })
    }

    /// True if a repository that the command may read holds a version of a file that a rule covers.
    /// Also true if that is unknown: for contents without a path, and for repositories that cannot be
    /// read in full.
    fn may_hold_unreadable_version(&self, run: &ProgramRun, reading: VersionReading) -> bool {
        let Some(repositories) = self.find_repositories(run, reading) else {
            return true;
        };
        let operands = list_operands(run, reading);
        repositories.iter().any(|repository| {
            let Some(history) = self.read_allowed_history(repository) else {
                return true;
            };
            reading.takes_ids
                && match &operands {
                    Some(operands) => operands
                        .iter()
                        .any(|word| history.names_loose_content(word)),
                    None => history.has_loose_contents(),
                }
        })
    }

    /// True if a rule covers a file that the project's repository tracks or has in any commit, or if
    /// the repository cannot be read in full. Text that cannot be judged could print the file.
    pub(super) fn project_may_hold_unreadable_version(&self) -> bool {
        self.strict_path_rules(FileAccess::Read).next().is_some()
            && find_repository(&self.workspace.root)
                .is_some_and(|repository| self.read_allowed_history(&repository).is_none())
    }

    /// Returns the history of a repository, or `None` if a rule covers a file that the repository
    /// tracks or has in any commit, or if its files are unknown.
    fn read_allowed_history(&self, repository: &Repository) -> Option<History> {
        let is_readable = |file: &PathBuf| {
            let path = repository.work_tree.join(file);
            !self
                .strict_path_rules(FileAccess::Read)
                .any(|(_, pattern)| pattern.matches_widely(self.workspace, &path))
        };
        let TrackedFiles::Known(tracked) = list_tracked_files(repository) else {
            return None;
        };
        if !tracked.iter().all(is_readable) {
            return None;
        }
        read_history(repository).filter(|history| history.files.iter().all(is_readable))
    }

    /// Returns the repositories that the command may read, or `None` if that is unknown.
    fn find_repositories(
        &self,
        run: &ProgramRun,
        reading: VersionReading,
    ) -> Option<Vec<Repository>> {
        if self.names_git_variables || reading.repository == RepositoryChoice::Named {
            return None;
        }
        let mut starts = effects::resolve_path(&run.folders, ".")?;
        starts.push(self.workspace.root.clone());
        // The value of `-C`, or any other folder that the command names.
        let words = run.words.iter().skip(1).filter_map(ShellWord::literal);
        let named = words.filter_map(|word| effects::resolve_path(&run.folders, word));
        starts.extend(named.flatten().filter(|path| path.is_dir()));
        if starts.iter().any(|start| is_in_bare_repository(start)) {
            return None;
        }
        let mut repositories: Vec<_> = starts
            .iter()
            .filter_map(|start| find_repository(start))
            .collect();
        repositories.sort();
        repositories.dedup();
        Some(repositories)
    }
}

/// Returns the words after the subcommand that are no options, or `None` if only the shell knows a
/// word or the command reads more words from its input.
fn list_operands(run: &ProgramRun, reading: VersionReading) -> Option<Vec<&str>> {
    let rest = run.words.get(reading.from..).unwrap_or_default();
    let words: Vec<&str> = rest.iter().map(ShellWord::literal).collect::<Option<_>>()?;
    let reads_input = |word: &&str| word.starts_with("--batch") || word.starts_with("--stdi");
    if words.iter().any(reads_input) {
        return None;
    }
    let is_operand = |word: &&str| !word.starts_with('-');
    Some(words.into_iter().filter(is_operand).collect())
}

/// True if git reads the word as a pattern, even if a file has this name: `*`, `:!name`.
fn is_pathspec_pattern(text: &str) -> bool {
    text.starts_with(':') || text.contains(['*', '?', '[', '\\'])
}

/// True for an option with which a command limited to files prints others.
fn is_unlimited(text: &str) -> bool {
    let Some(name) = text.strip_prefix("--") else {
        return false;
    };
    let name = name.split('=').next().unwrap_or(name);
    UNLIMITED_OPTIONS
        .iter()
        .any(|option| option.starts_with(name))
        || name.starts_with("pathspec-")
}

/// True for `HEAD` and its ancestors, which are commits.
fn is_head(text: &str) -> bool {
    let rest = text.strip_prefix("HEAD").or_else(|| text.strip_prefix('@'));
    rest.is_some_and(|rest| {
        rest.chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '~' | '^'))
    })
}
