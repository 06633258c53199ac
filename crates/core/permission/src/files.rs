//! Decides calls that read or write files.

use std::collections::VecDeque;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_tool::{FileUse, ReadFilter, Workspace};
use haft_types::{Decision, PermissionMode};

use super::decide::Permissions;
use super::protected::find_protected_name_in_workspace;
use super::rule::{PermissionRule, READ_TOOLS, WRITE_TOOLS};
use super::verdict::{Ruling, Verdict};
use haft_tool::follow_links;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileAccess {
    Read,
    Write,
}

impl FileAccess {
    /// Returns the names of the tools that access files in the way that `self` describes.
    pub(super) fn tool_names(self) -> &'static [&'static str] {
        match self {
            Self::Read => &READ_TOOLS,
            Self::Write => &WRITE_TOOLS,
        }
    }

    /// Returns a phrase for the access, such as `reads files`.
    fn effect(self) -> &'static str {
        match self {
            Self::Read => "reads files",
            Self::Write => "changes files",
        }
    }
}

/// The maximum number of entries that a walk examines below a folder to judge one call.
pub(super) const MAX_CALL_ENTRIES: usize = 10_000;
/// The maximum number of entries that are examined at the start of a session, to hide files from
/// all commands. In a larger project, commands need approval.
const MAX_SESSION_ENTRIES: usize = 500_000;

/// The paths that a sandbox must hide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadablePaths {
    pub paths: Vec<PathBuf>,
    /// False if the project has too many entries, so that paths may be missing.
    pub is_complete: bool,
}

/// The visitor's decision on an entry: the walk enters the entry, skips the entry, or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Descent {
    Yes,
    No,
    /// The walk ends.
    Stop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkEnd {
    Whole,
    LimitReached,
}

/// Calls `visit` for the entries below a folder, level by level, up to `max_entries`. Links are not
/// followed.
pub(super) fn walk_entries(
    folder: &Path,
    max_entries: usize,
    mut visit: impl FnMut(&Path) -> Descent,
) -> WalkEnd {
    let mut open = VecDeque::from([folder.to_owned()]);
    let mut left = max_entries;
    while let Some(folder) = open.pop_front() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            left -= 1;
            match visit(&entry.path()) {
                Descent::Yes if entry.file_type().is_ok_and(|kind| kind.is_dir()) => {
                    open.push_back(entry.path());
                }
                Descent::Yes | Descent::No => {}
                Descent::Stop => return WalkEnd::Whole,
            }
            if left == 0 {
                return WalkEnd::LimitReached;
            }
        }
    }
    WalkEnd::Whole
}

impl Permissions {
    /// Decides a call that reads or writes the files it names.
    pub(super) fn decide_files(
        &self,
        tool: &str,
        files: &[FileUse],
        workspace: &Workspace,
    ) -> Verdict {
        let mut outside = Vec::new();
        let parts = files
            .iter()
            .map(|file| {
                let (usage, given) = match file {
                    FileUse::Read(given) => (FileAccess::Read, given),
                    FileUse::Write(given) => (FileAccess::Write, given),
                };
                let resolved = follow_links(&workspace.cwd, given);
                let ruling = match &resolved {
                    Ok(resolved) => self.decide_file(tool, usage, given, resolved, workspace),
                    Err(error) => self.ask_unless_yolo(error.to_string()),
                };
                outside.extend(
                    resolved
                        .ok()
                        .filter(|resolved| !workspace.contains(resolved)),
                );
                ruling.into_part(given)
            })
            .collect();
        Verdict {
            outside,
            ..Verdict::from_parts(parts)
        }
    }

    fn decide_file(
        &self,
        tool: &str,
        usage: FileAccess,
        given: &str,
        resolved: &Path,
        workspace: &Workspace,
    ) -> Ruling {
        let shown = workspace.display_path(resolved);
        let forms = [resolved.to_owned(), workspace.cwd.join(given)];
        if let Some(ruling) = self.find_strict_file_ruling(usage, &forms, workspace) {
            return ruling;
        }
        // An edit shows the lines around it, and a move makes the file readable under another name.
        let is_there = |path: &PathBuf| {
            !path
                .symlink_metadata()
                .is_err_and(|error| error.kind() == ErrorKind::NotFound)
        };
        if usage == FileAccess::Write
            && forms.iter().any(is_there)
            && let Some(ruling) = self.find_strict_file_ruling(FileAccess::Read, &forms, workspace)
        {
            return Ruling {
                reason: format!("{}, and changing a file shows what it holds", ruling.reason),
                ..ruling
            };
        }
        if usage == FileAccess::Write
            && let Some(ruling) = self.deny_in_plan_mode(tool, usage.effect())
        {
            return ruling;
        }
        let allow = self.rules.rules_for(Decision::Allow);
        let by_path = allow.iter().find(|rule| {
            rule.path_pattern_for(&[tool])
                .is_some_and(|path| path.matches_exactly(workspace, resolved))
        });
        // A rule without a path covers only files in the project.
        if !workspace.contains(resolved) && by_path.is_none() {
            let root = workspace.root.display();
            let reason = if given == shown {
                format!("`{given}` is outside the project `{root}`")
            } else {
                format!("`{given}` is `{shown}`, which is outside the project `{root}`")
            };
            return self.ask_unless_yolo(reason);
        }
        if usage == FileAccess::Write
            && self.mode != PermissionMode::Yolo
            && let Some(name) = find_protected_name_in_workspace(workspace, resolved)
        {
            return Ruling::new(
                Decision::Ask,
                format!(
                    "`{shown}` is protected (`{name}`): such files decide what other programs run, and no rule allows writing them"
                ),
            );
        }
        if let Some(rule) =
            by_path.or_else(|| allow.iter().find(|rule| rule.covers_all_calls_of(tool)))
        {
            return Ruling::by_rule(rule, Decision::Allow, "it");
        }
        match (usage, self.mode) {
            (FileAccess::Read, _) => {
                Ruling::new(Decision::Allow, "reading in the project is allowed")
            }
            (
                FileAccess::Write,
                PermissionMode::AcceptEdits | PermissionMode::Auto | PermissionMode::Yolo,
            ) => Ruling::new(
                Decision::Allow,
                format!("edits are allowed (permission mode `{}`)", self.mode),
            ),
            (FileAccess::Write, PermissionMode::Ask | PermissionMode::Plan) => Ruling::new(
                Decision::Ask,
                format!("`{tool}` changes files, and no rule allows `{shown}`"),
            ),
        }
    }

    /// Returns a filter for files below a folder that a tool searches, or `None` if no rule
    /// restricts reading. The filter leaves out files that are denied, and files that need an
    /// approval, because the user cannot be asked during a search.
    pub fn read_filter(&self, workspace: &Workspace) -> Option<ReadFilter> {
        let speaks = |rule: &PermissionRule| {
            rule.path_pattern_for(FileAccess::Read.tool_names())
                .is_some()
        };
        let asks = self.mode != PermissionMode::Yolo
            && (self.rules.rules_for(Decision::Ask).iter().any(speaks)
                || self.rules.has_own_files_in(workspace));
        if !asks && !self.rules.rules_for(Decision::Deny).iter().any(speaks) {
            return None;
        }
        let permissions = self.clone();
        let workspace = workspace.clone();
        Some(Arc::new(move |path: &Path| {
            permissions
                .find_strict_file_ruling(FileAccess::Read, &[path.to_owned()], &workspace)
                .is_none()
        }))
    }

    /// Returns the paths that a sandbox must hide because rules deny reading them: existing entries
    /// below the folders of the workspace, up to a maximum number of examined entries, and paths
    /// outside that a rule names without a pattern.
    pub fn unreadable_paths(&self, workspace: &Workspace) -> UnreadablePaths {
        self.find_unreadable_paths(workspace, MAX_SESSION_ENTRIES)
    }

    pub(super) fn find_unreadable_paths(
        &self,
        workspace: &Workspace,
        max_entries: usize,
    ) -> UnreadablePaths {
        let paths = self
            .rules
            .rules_for(Decision::Deny)
            .iter()
            .filter_map(|rule| rule.path_pattern_for(FileAccess::Read.tool_names()));
        let paths: Vec<_> = paths.collect();
        let mut found: Vec<PathBuf> = paths.iter().filter_map(|path| path.whole_path()).collect();
        let mut is_complete = true;
        let folders = std::iter::once(&workspace.root).chain(&workspace.extra);
        for folder in folders.filter(|_| !paths.is_empty()) {
            let end = walk_entries(folder, max_entries, |path| {
                let denied = paths
                    .iter()
                    .any(|denied| denied.matches_widely(workspace, path));
                found.extend(denied.then(|| path.to_owned()));
                if denied { Descent::No } else { Descent::Yes }
            });
            is_complete &= end == WalkEnd::Whole;
        }
        UnreadablePaths {
            paths: found,
            is_complete,
        }
    }

    /// Returns the ruling of a rule that denies the use of a file or asks for an approval; `forms`
    /// are spellings of the file's path.
    pub(super) fn find_strict_file_ruling(
        &self,
        usage: FileAccess,
        forms: &[PathBuf],
        workspace: &Workspace,
    ) -> Option<Ruling> {
        let speaks = |rule: &&PermissionRule| {
            rule.path_pattern_for(usage.tool_names())
                .is_some_and(|path| {
                    forms
                        .iter()
                        .any(|form| path.matches_widely(workspace, form))
                })
        };
        let shown = forms
            .first()
            .map(|form| workspace.display_path(form))
            .unwrap_or_default();
        if let Some(rule) = self.rules.rules_for(Decision::Deny).iter().find(speaks) {
            return Some(Ruling::by_rule(rule, Decision::Deny, &format!("`{shown}`")));
        }
        if self.mode == PermissionMode::Yolo {
            return None;
        }
        if forms.iter().any(|form| self.rules.is_own(form, workspace)) {
            return Some(Ruling::new(
                Decision::Ask,
                format!(
                    "`{shown}` belongs to haft itself: its settings, trust list or conversations, which no rule covers"
                ),
            ));
        }
        let rule = self.rules.rules_for(Decision::Ask).iter().find(speaks)?;
        Some(Ruling::by_rule(rule, Decision::Ask, &format!("`{shown}`")))
    }
}
