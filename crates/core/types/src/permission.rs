//! Permission modes and decisions.

use std::str::FromStr;

use serde::de::IntoDeserializer;
use serde::de::value::Error;
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

/// How much may happen without asking.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, Display,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum PermissionMode {
    /// Read only.
    Plan,
    /// Everything that changes or runs something is asked.
    #[default]
    #[serde(alias = "default")]
    Ask,
    /// Edits in the project are allowed, commands are asked.
    #[serde(alias = "acceptEdits")]
    AcceptEdits,
    /// Nothing is asked inside the sandbox.
    Auto,
    /// Nothing is asked and nothing is confined.
    #[serde(alias = "bypassPermissions")]
    Yolo,
}

impl PermissionMode {
    /// The name used in configuration and flags.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Not the name of a permission mode.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a permission mode; use plan, ask, accept-edits or auto")]
pub struct UnknownMode(String);

impl FromStr for PermissionMode {
    type Err = UnknownMode;

    /// Takes haft's names and those Claude Code users know.
    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        let read: Result<Self, Error> = Self::deserialize(text.into_deserializer());
        read.map_err(|_| UnknownMode(text.to_owned()))
    }
}

/// What is to happen with a tool call. The strictest of several is the greatest.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    IntoStaticStr,
    Display,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Decision {
    /// It runs.
    Allow,
    /// The user is asked; where nobody can be asked, that means no.
    Ask,
    /// It does not run.
    Deny,
}

impl Decision {
    /// The name in configuration and reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Files and folders of a project that decide what other programs run: no rule that allows covers
/// writing them, wherever in a project they lie. An entry with a slash names a path's end or
/// middle. Compare without case.
pub const PROTECTED: &[&str] = &[
    // Version control
    ".git",
    ".gitconfig",
    ".gitmodules",
    ".githooks",
    ".hg",
    ".husky",
    ".jj",
    ".pre-commit-config.yaml",
    ".svn",
    "lefthook.yml", // haft, and what it reads of other agents
    ".agents",
    ".auto-coder",
    ".autocoderagents",
    ".autocoderrules",
    ".autocodertools",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".haft",
    ".mcp.json", // Shells
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/fish",
    ".cshrc",
    ".envrc",
    ".inputrc",
    ".kshrc",
    ".login",
    ".profile",
    ".tcshrc",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    // Editors
    ".devcontainer",
    ".dir-locals.el",
    ".emacs",
    ".emacs.d",
    ".exrc",
    ".fleet",
    ".gvimrc",
    ".helix",
    ".idea",
    ".nvim.lua",
    ".nvimrc",
    ".vim",
    ".vimrc",
    ".vscode",
    ".zed", // Continuous integration
    ".appveyor.yml",
    ".buildkite",
    ".circleci",
    ".cirrus.yml",
    ".drone.yml",
    ".forgejo",
    ".gitea",
    ".github/actions",
    ".github/workflows",
    ".gitlab-ci.yml",
    ".gitlab/ci",
    ".semaphore",
    ".teamcity",
    ".travis.yml",
    ".woodpecker",
    ".woodpecker.yml",
    "appveyor.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "jenkinsfile",
];

/// Files that steer later runs of agents and tools: changing one is asked like changing a protected
/// one. A command that is confined cannot change those that are there; the others are not covered
/// while it runs, as an empty one would already mean something. One that begins with `*` stands for
/// every name with that ending.
pub const STEERING: &[&str] = &[
    "*.code-workspace",
    ".aider.conf.yml",
    ".bazelrc",
    ".cargo/config",
    ".cargo/config.toml",
    ".clinerules",
    ".curlrc",
    ".cursorrules",
    ".gdbinit",
    ".irbrc",
    ".lldbinit",
    ".mise.toml",
    ".mvn",
    ".netrc",
    ".npmrc",
    ".pnpmfile.cjs",
    ".psqlrc",
    ".pypirc",
    ".python-version",
    ".rprofile",
    ".sqliterc",
    ".tool-versions",
    ".wgetrc",
    ".windsurfrules",
    ".yarnrc",
    ".yarnrc.yml",
    "agents.md",
    "agents.override.md",
    "bunfig.toml",
    "claude.local.md",
    "claude.md",
    "code_law.md",
    "copilot-instructions.md",
    "gemini.md",
    "mise.toml",
    "pip.conf",
    "rust-toolchain",
    "rust-toolchain.toml",
];
