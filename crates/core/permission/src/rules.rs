//! The rules of the user and the project, and the built-in rules.

mod load;

use std::path::{Path, PathBuf};

use haft_tool::Workspace;
use haft_types::Decision;
use serde::Serialize;

pub use load::RulesError;

use super::builtin::{ReadingRule, commit_rules, reading_rules};
use super::protected::fold_name;
use super::rule::PermissionRule;

/// All permission rules of a run: the user's rules, the stricter rules of the project, and the
/// choice of built-in rules.
#[derive(Clone, Debug, Default)]
pub struct PermissionRules {
    allow: Vec<PermissionRule>,
    ask: Vec<PermissionRule>,
    deny: Vec<PermissionRule>,
    project: Vec<(Decision, String)>,
    reading: ReadingCommands,
    git: GitUse,
    /// The files and folders of haft itself, in the form of [`fold_path`].
    own: Vec<PathBuf>,
}

/// Controls whether built-in rules may allow git commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum GitUse {
    #[default]
    Trusted,
    /// No built-in rule allows git, which would apply the configuration of an untrusted folder.
    Never,
}

/// Returns a path in the form in which two paths are equal if any file system treats them as equal.
fn fold_path(path: &Path) -> PathBuf {
    PathBuf::from(fold_name(&path.to_string_lossy()))
}

/// Selects the built-in rules for commands that only read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReadingCommands {
    #[default]
    None,
    All,
}

/// The origin of a permission rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleOrigin {
    /// The rule is from the user's configuration or from an option of this run.
    User,
    /// The rule is from the project's configuration, which can only tighten the rules.
    Project,
    /// The rule is built into haft and applies only inside the namespace sandbox.
    BuiltIn,
}

/// A rule in force, with its decision and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveRule<'a> {
    pub decision: Decision,
    /// The text of the rule, such as `execute_command(cargo test:*)`.
    pub rule: &'a str,
    pub origin: RuleOrigin,
}

impl PermissionRules {
    /// Disables the built-in rules for git. Use this in an untrusted folder, whose configuration
    /// git would apply.
    #[must_use]
    pub fn without_git_rules(mut self) -> Self {
        self.git = GitUse::Never;
        self
    }

    /// Sets the files and folders of haft itself: settings, trust, conversations. Where they lie in
    /// the project, every call that reads or writes them needs an approval. Otherwise, the model
    /// could add a hook to the settings, or read other conversations.
    #[must_use]
    pub fn with_own_paths(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.own = paths.into_iter().map(|path| fold_path(&path)).collect();
        self
    }

    /// True if `path` is a file of haft itself that lies in the workspace. A project in a folder of
    /// haft, such as the copy in which a sub-agent works, is no such file.
    pub(super) fn is_own(&self, path: &Path, workspace: &Workspace) -> bool {
        // Output of this conversation that was too long for a result.
        if path.starts_with(&workspace.spill) {
            return false;
        }
        let path = fold_path(path);
        self.own_paths_in(workspace)
            .any(|own| path.starts_with(own))
    }

    /// True if files of haft itself lie in the workspace.
    pub(super) fn has_own_files_in(&self, workspace: &Workspace) -> bool {
        self.own_paths_in(workspace).next().is_some()
    }

    fn own_paths_in(&self, workspace: &Workspace) -> impl Iterator<Item = &PathBuf> {
        let folders = std::iter::once(&workspace.root).chain(&workspace.extra);
        let folders: Vec<_> = folders.map(|folder| fold_path(folder)).collect();
        self.own
            .iter()
            .filter(move |own| folders.iter().any(|folder| own.starts_with(folder)))
    }

    #[must_use]
    pub fn with_rule(mut self, decision: Decision, rule: PermissionRule) -> Self {
        self.add(decision, rule);
        self
    }

    /// Returns every rule in force: deny rules first, then ask rules, allow rules, and built-in
    /// rules.
    pub fn iter(&self) -> impl Iterator<Item = ActiveRule<'_>> {
        let of = |decision: Decision| {
            self.rules_for(decision).iter().map(move |rule| {
                let rule = rule.text();
                let of_project = self
                    .project
                    .iter()
                    .any(|(by, text)| *by == decision && text == rule);
                let origin = if of_project {
                    RuleOrigin::Project
                } else {
                    RuleOrigin::User
                };
                ActiveRule {
                    decision,
                    rule,
                    origin,
                }
            })
        };
        let built_in = self.reading_rules().map(|reading| {
            let decision = Decision::Allow;
            let origin = RuleOrigin::BuiltIn;
            ActiveRule {
                decision,
                rule: reading.rule.text(),
                origin,
            }
        });
        of(Decision::Deny)
            .chain(of(Decision::Ask))
            .chain(of(Decision::Allow))
            .chain(built_in)
    }

    /// Returns the built-in rules in force for commands that only read.
    pub(super) fn reading_rules(&self) -> impl Iterator<Item = &'static ReadingRule> {
        let rules: &[ReadingRule] = match self.reading {
            ReadingCommands::None => &[],
            ReadingCommands::All => reading_rules(),
        };
        let git = self.git;
        rules
            .iter()
            .filter(move |rule| git == GitUse::Trusted || !rule.runs_git())
    }

    /// Returns the built-in rules for commands that stage files or commit and do nothing else;
    /// empty if built-in rules for git are disabled.
    pub(super) fn commit_rules(&self) -> &'static [ReadingRule] {
        match self.git {
            GitUse::Trusted => commit_rules(),
            GitUse::Never => &[],
        }
    }

    pub(super) fn rules_for(&self, decision: Decision) -> &[PermissionRule] {
        match decision {
            Decision::Allow => &self.allow,
            Decision::Ask => &self.ask,
            Decision::Deny => &self.deny,
        }
    }

    fn add(&mut self, decision: Decision, rule: PermissionRule) {
        match decision {
            Decision::Allow => self.allow.push(rule),
            Decision::Ask => self.ask.push(rule),
            Decision::Deny => self.deny.push(rule),
        }
    }
}
