//! Whether the files a call is about may be read or written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_tool::{FileUse, ReadFilter, Workspace};
use haft_types::{Decision, PermissionMode};

use super::decide::Permissions;
use super::protected::protected;
use super::rule::{PermissionRule, READ_TOOLS, WRITE_TOOLS};
use super::verdict::{Ruling, Verdict};
use haft_tool::follow_links;

/// What is done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileAccess {
    Read,
    Write,
}

impl FileAccess {
    /// The tools that use files so.
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

impl Permissions {
    /// A call that reads or writes the files it names.
    pub(super) fn decide_files(&self, tool: &str, files: &[FileUse], workspace: &Workspace) -> Verdict {
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
                    Err(error) => Ruling::new(Decision::Ask, error.to_string()),
                };
                outside.extend(resolved.ok().filter(|resolved| !workspace.contains(resolved)));
                ruling.part(given)
            })
            .collect();
        Verdict { outside, ..Verdict::of_parts(parts) }
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
        if usage == FileAccess::Write
            && let Some(ruling) = self.forbidden_by_mode(tool, usage.verb())
        {
            return ruling;
        }
        let allow = self.rules.of(Decision::Allow);
        let by_path =
            allow.iter().find(|rule| rule.path_of(&[tool]).is_some_and(|path| path.names(workspace, resolved)));
        // What lies outside must be named: a rule for every call of a tool means the project.
        if !workspace.contains(resolved) && by_path.is_none() {
            let root = workspace.root.display();
            return Ruling::new(
                Decision::Ask,
                format!("`{given}` is `{shown}`, which is outside the project `{root}`"),
            );
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
            (FileAccess::Read, _) => Ruling::new(Decision::Allow, "reading in the project is allowed"),
            (FileAccess::Write, PermissionMode::AcceptEdits | PermissionMode::Auto | PermissionMode::Yolo) => {
                Ruling::new(Decision::Allow, format!("edits are allowed (permission mode `{}`)", self.mode))
            }
            (FileAccess::Write, PermissionMode::Ask | PermissionMode::Plan) => {
                Ruling::new(Decision::Ask, format!("`{tool}` changes files, and no rule allows `{shown}`"))
            }
        }
    }

    /// What may be read below a folder that is walked through; none where rules keep nothing from being read. Nobody is asked
    /// on the way, so what would be asked is left out as well.
    pub fn readable(&self, workspace: &Workspace) -> Option<ReadFilter> {
        let speaks = |rule: &PermissionRule| rule.path_of(FileAccess::Read.tools()).is_some();
        let asks = self.mode != PermissionMode::Yolo && self.rules.of(Decision::Ask).iter().any(speaks);
        if !asks && !self.rules.of(Decision::Deny).iter().any(speaks) {
            return None;
        }
        let (permissions, workspace) = (self.clone(), workspace.clone());
        Some(Arc::new(move |path: &Path| {
            permissions.forbidden_file(FileAccess::Read, &[path.to_owned()], &workspace).is_none()
        }))
    }

    /// The rule that denies or asks to use one of these files, which are forms of the same.
    pub(super) fn forbidden_file(&self, usage: FileAccess, forms: &[PathBuf], workspace: &Workspace) -> Option<Ruling> {
        let speaks = |rule: &&PermissionRule| {
            rule.path_of(usage.tools()).is_some_and(|path| forms.iter().any(|form| path.hits(workspace, form)))
        };
        let shown = forms.first().map(|form| workspace.display(form)).unwrap_or_default();
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
