//! Decides git commands that print the content of files from the index or from commits. Neither a
//! path rule nor the sandbox can leave out a single file there.

use std::path::{Path, PathBuf};

use haft_types::Decision;

use super::LineJudge;
use crate::effects::{self, ProgramRun, VersionReading};
use crate::files::FileAccess;
use crate::git_index::{TrackedFiles, find_repository, list_tracked_files};
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

    /// Returns the ruling for a command that prints versions of files, if the repository tracks a
    /// file that a rule covers. This ruling precedes rules and modes that allow the command.
    pub(super) fn find_tracked_ruling(&self, run: &ProgramRun) -> Option<Ruling> {
        let rule = self.find_version_rule(run)?;
        if !self.tracks_unreadable_file(run) {
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

    fn tracks_unreadable_file(&self, run: &ProgramRun) -> bool {
        let mut starts = effects::resolve_path(&run.folders, ".").unwrap_or_default();
        starts.push(self.workspace.root.clone());
        // The value of `-C`, or any other folder that the command names.
        let words = run.words.iter().skip(1).filter_map(ShellWord::literal);
        let named = words.filter_map(|word| effects::resolve_path(&run.folders, word));
        starts.extend(named.flatten().filter(|path| path.is_dir()));
        let mut repositories: Vec<_> = starts
            .iter()
            .filter_map(|start| find_repository(start))
            .collect();
        repositories.sort();
        repositories.dedup();
        repositories
            .iter()
            .any(|repository| match list_tracked_files(repository) {
                TrackedFiles::Unknown => true,
                TrackedFiles::Known(files) => files
                    .iter()
                    .any(|file| self.is_unreadable(&repository.work_tree.join(file))),
            })
    }

    fn is_unreadable(&self, path: &Path) -> bool {
        self.strict_path_rules(FileAccess::Read)
            .any(|(_, pattern)| pattern.matches_widely(self.workspace, path))
    }
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
