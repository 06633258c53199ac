//! Suggests flags, rules and modes that would allow a call. The call was denied by mode `plan`, or
//! because the run has no user to ask.
//!
//! Invariant: each suggestion was checked against the rules and allows the call. The narrowest
//! suggestion comes first. The mode without a sandbox is never suggested.

use std::path::{Path, PathBuf};

use haft_permission::{PermissionRequest, Permissions, Verdict};
use haft_tool::{Intent, Workspace, follow_links};
use haft_types::{Decision, PermissionMode};

use super::Opinion;

/// The permission state that advice on a denied call is based on.
pub(super) struct AdviceContext<'a> {
    pub(super) permissions: &'a Permissions,
    pub(super) workspace: &'a Workspace,
    pub(super) opinion: Opinion,
    /// The mode of `permissions`, if it differs from the run's mode. The flag for this mode is then
    /// part of every suggestion.
    pub(super) required_mode: Option<PermissionMode>,
}

/// Determines whether a user can be asked for approval during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attendance {
    Attended,
    Unattended,
}

impl AdviceContext<'_> {
    /// Describes, as the end of a sentence, how a user can allow `call`, which is denied by mode
    /// `plan`. Returns `None` if a rule denies the call in every mode.
    pub(super) fn describe_ways_out_of_plan(
        &self,
        call: &PermissionRequest<'_>,
        attendance: Attendance,
    ) -> Option<String> {
        let mode = PermissionMode::Ask;
        let permissions = Permissions {
            mode,
            ..self.permissions.clone()
        };
        let verdict = self
            .opinion
            .apply_to(permissions.decide(call, self.workspace));
        match (verdict.decision, attendance) {
            (Decision::Deny, _) => None,
            (Decision::Allow, _) => Some(format!("`--permission-mode {mode}`")),
            (Decision::Ask, Attendance::Attended) => {
                Some(format!("permission mode `{mode}`, which asks first"))
            }
            (Decision::Ask, Attendance::Unattended) => {
                let context = AdviceContext {
                    permissions: &permissions,
                    required_mode: Some(mode),
                    ..*self
                };
                Some(context.describe_ways_to_allow(call, &verdict))
            }
        }
    }

    /// Describes, as the end of a sentence, how a user can allow `call`.
    pub(super) fn describe_ways_to_allow(
        &self,
        call: &PermissionRequest<'_>,
        verdict: &Verdict,
    ) -> String {
        let mut ways = Vec::new();
        // A rule does not help if a hook wants the user to be asked.
        if !verdict.remember.is_empty() && self.opinion != Opinion::Ask {
            ways.push(self.describe_how_to_add(&verdict.remember));
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
                let flags = self.append_required_mode(&flags);
                ways.push(format!("`{flags}` (everything in this folder)"));
            } else if let Some(mode) = self.strictest_allowing_mode(call, &wider) {
                ways.push(format!(
                    "`{flags} --permission-mode {mode}` (everything in this folder)"
                ));
            }
        }
        if ways.is_empty() {
            return format!(
                "an answer at a terminal: `{}`, or `{}`",
                self.append_required_mode("haft"),
                self.append_required_mode("haft run --ask")
            );
        }
        ways.join(", or ")
    }

    /// Returns the commands or flags that add `rules` permanently, or for one run if another mode
    /// is required.
    fn describe_how_to_add(&self, rules: &[String]) -> String {
        if self.required_mode.is_none() {
            let added: Vec<_> = rules
                .iter()
                .map(|rule| format!("`haft permissions add {}`", quote_rule(rule)))
                .collect();
            return added.join(" and ");
        }
        let flags: Vec<_> = rules
            .iter()
            .map(|rule| format!("--allow {}", quote_rule(rule)))
            .collect();
        format!("`{}`", self.append_required_mode(&flags.join(" ")))
    }

    /// Returns `words` of a command line followed by the flag of the required mode, if any.
    fn append_required_mode(&self, words: &str) -> String {
        match self.required_mode {
            Some(mode) => format!("{words} --permission-mode {mode}"),
            None => words.to_owned(),
        }
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
