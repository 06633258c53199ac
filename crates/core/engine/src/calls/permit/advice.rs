//! Suggests what would allow a call that was denied because the run has no user to ask.
//!
//! Invariant: each suggestion was checked against the rules and allows the call; the narrowest
//! comes first. The mode without a sandbox is never suggested.

use std::path::{Path, PathBuf};

use haft_permission::{PermissionRequest, Permissions, Verdict};
use haft_tool::{Intent, Workspace, follow_links};
use haft_types::{Decision, PermissionMode};

use super::Opinion;

/// The values that decide on a call.
pub(super) struct AdviceContext<'a> {
    pub(super) permissions: &'a Permissions,
    pub(super) workspace: &'a Workspace,
    pub(super) opinion: Opinion,
}

impl AdviceContext<'_> {
    /// Returns what a user can do to allow `call`, as the end of a sentence.
    pub(super) fn describe_ways(&self, call: &PermissionRequest<'_>, verdict: &Verdict) -> String {
        let mut ways = Vec::new();
        // A rule does not help if a hook wants the user to be asked.
        if !verdict.remember.is_empty() && self.opinion != Opinion::Ask {
            let added: Vec<_> = verdict
                .remember
                .iter()
                .map(|rule| format!("`haft permissions add {}`", quote_rule(rule)))
                .collect();
            ways.push(added.join(" and "));
        }
        let added = self.outside_folders(call, verdict);
        if added.is_empty() {
            ways.extend(
                self.strictest_allowing_mode(call, self.workspace)
                    .map(describe_mode),
            );
        } else {
            let flags: Vec<_> = added
                .iter()
                .map(|folder| format!("--add-dir {}", quote_path(&folder.display().to_string())))
                .collect();
            let flags = flags.join(" ");
            let mut wider = self.workspace.clone();
            wider.extra.extend(added);
            if self.allows(self.permissions, call, &wider) {
                ways.push(format!("`{flags}` (everything in this folder)"));
            } else if let Some(mode) = self.strictest_allowing_mode(call, &wider) {
                ways.push(format!(
                    "`{flags} --permission-mode {mode}` (everything in this folder)"
                ));
            }
        }
        if ways.is_empty() {
            return "an answer at a terminal: `haft`, or `haft run --ask`".to_owned();
        }
        ways.join(", or ")
    }

    /// Returns the strictest mode that would allow the call.
    fn strictest_allowing_mode(
        &self,
        call: &PermissionRequest<'_>,
        workspace: &Workspace,
    ) -> Option<PermissionMode> {
        [PermissionMode::AcceptEdits, PermissionMode::Auto]
            .into_iter()
            .find(|mode| {
                self.allows(
                    &Permissions {
                        mode: *mode,
                        ..self.permissions.clone()
                    },
                    call,
                    workspace,
                )
            })
    }

    fn allows(
        &self,
        permissions: &Permissions,
        call: &PermissionRequest<'_>,
        workspace: &Workspace,
    ) -> bool {
        self.opinion
            .apply_to(permissions.decide(call, workspace))
            .decision
            == Decision::Allow
    }

    /// Returns the folders outside the workspace that the call accesses, without duplicates. Leaves
    /// out the root of the file system.
    fn outside_folders(&self, call: &PermissionRequest<'_>, verdict: &Verdict) -> Vec<PathBuf> {
        let folder_of = |path: &PathBuf| {
            if path.is_dir() {
                Some(path.clone())
            } else {
                path.parent().map(Path::to_owned)
            }
        };
        let mut folders: Vec<_> = verdict.outside.iter().filter_map(folder_of).collect();
        if let Intent::Command { cwd: Some(cwd), .. } = &call.intent {
            folders.extend(follow_links(&self.workspace.cwd, cwd));
        }
        folders.retain(|folder| !self.workspace.contains(folder) && folder.parent().is_some());
        folders.sort();
        folders.dedup();
        folders
    }
}

fn describe_mode(mode: PermissionMode) -> String {
    let meaning = match mode {
        PermissionMode::AcceptEdits => "all edits in the project",
        PermissionMode::Auto => "all commands, inside the sandbox",
        PermissionMode::Plan | PermissionMode::Ask | PermissionMode::Yolo => "",
    };
    format!("`--permission-mode {mode}` ({meaning})")
}

/// Quotes a rule for a shell.
fn quote_rule(rule: &str) -> String {
    if rule.contains(['"', '$', '`', '\\', '!']) {
        return format!("'{}'", rule.replace('\'', r"'\''"));
    }
    format!("\"{rule}\"")
}

/// Quotes a path for a shell if needed.
fn quote_path(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,=".contains(c);
    if path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}
