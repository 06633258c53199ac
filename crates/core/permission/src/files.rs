//! Decides calls that read or write files.

use std::collections::VecDeque;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_tool::{FileUse, ReadFilter, Workspace};
use haft_types::{Decision, PermissionMode};

use super::decide::Permissions;
use super::protected::protected;
use super::rule::{PermissionRule, READ_TOOLS, WRITE_TOOLS};
use super::verdict::{Ruling, Verdict};
use haft_tool::follow_links;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileAccess {
    Read,
    Write,
}

impl FileAccess {
    /// Returns the tools with this kind of access.
    pub(super) fn tools(self) -> &'static [&'static str] {
        match self {
            Self::Read => &READ_TOOLS,
            Self::Write => &WRITE_TOOLS,
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "changes",
        }
    }
}

/// Maximum entries below a folder that are examined.
const MAX_ENTRIES: usize = 10_000;

/// The continuation of a walk after an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Descent {
    Yes,
    No,
    /// Ends the walk.
    Enough,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkEnd {
    Whole,
    TooMuch,
}

/// Calls `visit` for the entries below a folder, upper entries first. Links are not followed.
pub(super) fn walk(folder: &Path, mut look: impl FnMut(&Path) -> Descent) -> WalkEnd {
    let mut open = VecDeque::from([folder.to_owned()]);
    let mut left = MAX_ENTRIES;
    while let Some(folder) = open.pop_front() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            left -= 1;
            match look(&entry.path()) {
                Descent::Yes if entry.file_type().is_ok_and(|kind| kind.is_dir()) => {
                    open.push_back(entry.path());
                }
                Descent::Yes | Descent::No => {}
                Descent::Enough => return WalkEnd::Whole,
            }
            if left == 0 {
                return WalkEnd::TooMuch;
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
                    Err(error) => self.unless_yolo(error.to_string()),
                };
                outside.extend(
                    resolved
                        .ok()
                        .filter(|resolved| !workspace.contains(resolved)),
                );
                ruling.part(given)
            })
            .collect();
        Verdict {
            outside,
            ..Verdict::of_parts(parts)
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
        let shown = workspace.display(resolved);
        let forms = [resolved.to_owned(), workspace.cwd.join(given)];
        if let Some(ruling) = self.forbidden_file(usage, &forms, workspace) {
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
            && let Some(ruling) = self.forbidden_file(FileAccess::Read, &forms, workspace)
        {
            return Ruling {
                reason: format!("{}, and changing a file shows what it holds", ruling.reason),
                ..ruling
            };
        }
        if usage == FileAccess::Write
            && let Some(ruling) = self.forbidden_by_mode(tool, usage.verb())
        {
            return ruling;
        }
        let allow = self.rules.of(Decision::Allow);
        let by_path = allow.iter().find(|rule| {
            rule.path_of(&[tool])
                .is_some_and(|path| path.names(workspace, resolved))
        });
        // Files outside must be named by a path: a rule for every call of a tool means the project.
        if !workspace.contains(resolved) && by_path.is_none() {
            let root = workspace.root.display();
            return self.unless_yolo(format!(
                "`{given}` is `{shown}`, which is outside the project `{root}`"
            ));
        }
        if usage == FileAccess::Write
            && self.mode != PermissionMode::Yolo
            && let Some(name) = protected(workspace, resolved)
        {
            return Ruling::new(
                Decision::Ask,
                format!(
                    "`{shown}` is protected (`{name}`): such files decide what other programs run, and no rule allows writing them"
                ),
            );
        }
        if let Some(rule) = by_path.or_else(|| allow.iter().find(|rule| rule.is_all_of(tool))) {
            return Ruling::by(rule, Decision::Allow, "it");
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
    /// restricts reading. The user cannot be asked during a search, so files that need an approval
    /// are left out too.
    pub fn readable(&self, workspace: &Workspace) -> Option<ReadFilter> {
        let speaks = |rule: &PermissionRule| rule.path_of(FileAccess::Read.tools()).is_some();
        let asks =
            self.mode != PermissionMode::Yolo && self.rules.of(Decision::Ask).iter().any(speaks);
        if !asks && !self.rules.of(Decision::Deny).iter().any(speaks) {
            return None;
        }
        let permissions = self.clone();
        let workspace = workspace.clone();
        Some(Arc::new(move |path: &Path| {
            permissions
                .forbidden_file(FileAccess::Read, &[path.to_owned()], &workspace)
                .is_none()
        }))
    }

    /// Returns the paths that a sandbox must hide because rules deny reading them: existing entries
    /// in the folders of the workspace, as far as they are examined, and paths outside that a rule
    /// names without a pattern.
    pub fn unreadable(&self, workspace: &Workspace) -> Vec<PathBuf> {
        let paths = self
            .rules
            .of(Decision::Deny)
            .iter()
            .filter_map(|rule| rule.path_of(FileAccess::Read.tools()));
        let paths: Vec<_> = paths.collect();
        let mut found: Vec<PathBuf> = paths
            .iter()
            .filter_map(|path| path.whole_folder())
            .collect();
        if paths.is_empty() {
            return found;
        }
        for folder in std::iter::once(&workspace.root).chain(&workspace.extra) {
            walk(folder, |path| {
                let denied = paths.iter().any(|denied| denied.hits(workspace, path));
                found.extend(denied.then(|| path.to_owned()));
                if denied { Descent::No } else { Descent::Yes }
            });
        }
        found
    }

    /// Returns the ruling of a rule that denies or asks for the use of a file, given by several
    /// forms of its path.
    pub(super) fn forbidden_file(
        &self,
        usage: FileAccess,
        forms: &[PathBuf],
        workspace: &Workspace,
    ) -> Option<Ruling> {
        let speaks = |rule: &&PermissionRule| {
            rule.path_of(usage.tools())
                .is_some_and(|path| forms.iter().any(|form| path.hits(workspace, form)))
        };
        let shown = forms
            .first()
            .map(|form| workspace.display(form))
            .unwrap_or_default();
        if let Some(rule) = self.rules.of(Decision::Deny).iter().find(speaks) {
            return Some(Ruling::by(rule, Decision::Deny, &format!("`{shown}`")));
        }
        if self.mode == PermissionMode::Yolo {
            return None;
        }
        let rule = self.rules.of(Decision::Ask).iter().find(speaks)?;
        Some(Ruling::by(rule, Decision::Ask, &format!("`{shown}`")))
    }
}
