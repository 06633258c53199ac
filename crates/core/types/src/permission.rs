//! Permission modes and decisions.

use std::str::FromStr;

use serde::de::IntoDeserializer;
use serde::de::value::Error;
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

/// The mode that determines which actions run without asking the user.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, Display,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum PermissionMode {
    /// Only reading is allowed; nothing can be changed.
    Plan,
    /// Every change and every command needs approval.
    #[default]
    #[serde(alias = "default")]
    Ask,
    /// Edits in the project are allowed; commands need approval.
    #[serde(alias = "acceptEdits")]
    AcceptEdits,
    /// Nothing needs approval inside the sandbox.
    Auto,
    /// Nothing needs approval and nothing is confined.
    #[serde(alias = "bypassPermissions")]
    Yolo,
}

impl PermissionMode {
    /// Returns the name used in configuration and flags.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The error for a text that is not the name of a permission mode.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a permission mode; use plan, ask, accept-edits or auto")]
pub struct UnknownMode(String);

impl FromStr for PermissionMode {
    type Err = UnknownMode;

    /// Parses haft's names and those of Claude Code.
    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        let read: Result<Self, Error> = Self::deserialize(text.into_deserializer());
        read.map_err(|_| UnknownMode(text.to_owned()))
    }
}

/// The decision on whether a tool call runs. Decisions are ordered from the least to the most
/// strict.
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
    /// The call runs.
    Allow,
    /// The user is asked. If there is no user to ask, the call is denied.
    Ask,
    /// The call does not run.
    Deny,
}

impl Decision {
    /// Returns the name used in configuration and reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Files and folders of a project that determine what other programs execute. Allow rules never
/// cover writes to these paths, at any depth of a project. An entry with a slash matches the end or
/// the middle of a path. Paths must be compared without regard to case.
pub const PROTECTED_PATHS: &[&str] = &[
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
    "lefthook.yml",
    // haft, and the files of other agents that it reads
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
    ".mcp.json",
    // Shells
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
    ".zed",
    // Continuous integration
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

/// Files that control later runs of agents and tools. Changing such a file needs approval, like
/// changing a protected path. A confined command cannot change an existing file that this list
/// names. A missing file is not protected while the command runs, because an empty placeholder
/// would already have a meaning. An entry that begins with `*` matches every name with that ending.
pub const STEERING_FILES: &[&str] = &[
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
