//! Permission modes and decisions.

mod name_list;

use std::str::FromStr;

use serde::de::IntoDeserializer;
use serde::de::value::Error;
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use name_list::{count_names, parse_names};

/// The mode that determines which actions run without asking the user. Modes are ordered from the
/// least to the most permissive.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoStaticStr,
    Display,
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

const PROTECTED_TEXT: &str = include_str!("permission/protected_paths.txt");
const STEERING_TEXT: &str = include_str!("permission/steering_files.txt");

/// Files and folders of a project that determine what other programs execute. Allow rules never
/// cover writes to these paths, at any depth of a project. An entry with a slash matches the end or
/// the middle of a path. Paths must be compared without regard to case.
///
/// The file `permission/protected_paths.txt` lists the names with their sources.
pub const PROTECTED_PATHS: &[&str] =
    &parse_names::<{ count_names(PROTECTED_TEXT) }>(PROTECTED_TEXT);

/// Files that control later runs of agents and tools. Changing such a file needs approval, like
/// changing a protected path. A confined command cannot change an existing file that this list
/// names. A missing file is not protected while the command runs, because an empty placeholder
/// would already have a meaning. In an entry, one `*` stands for any part of a name.
///
/// The file `permission/steering_files.txt` lists the names with their sources.
pub const STEERING_FILES: &[&str] = &parse_names::<{ count_names(STEERING_TEXT) }>(STEERING_TEXT);

/// True if `name`, one part of a path, matches one part of an entry of [`PROTECTED_PATHS`] or
/// [`STEERING_FILES`]. The case of ASCII letters is ignored.
pub fn matches_listed_name(name: &str, listed: &str) -> bool {
    let Some((start, end)) = listed.split_once('*') else {
        return name.eq_ignore_ascii_case(listed);
    };
    let rest = name
        .split_at_checked(start.len())
        .filter(|(head, _)| head.eq_ignore_ascii_case(start))
        .map(|(_, rest)| rest);
    let tail = rest.and_then(|rest| rest.get(rest.len().checked_sub(end.len())?..));
    tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every name in `text` is below a comment that names its source, and is written as
    /// the code that compares names expects it.
    fn check_sources(text: &str, names: &[&str]) {
        let mut source: Option<&str> = None;
        let mut previous = "";
        for line in text.lines() {
            if let Some(comment) = line.strip_prefix('#') {
                source = Some(comment);
                previous = "";
            } else if !line.is_empty() {
                let source = source.unwrap_or_default();
                let is_page = source.contains("https://") || source.contains("docs/");
                let is_manual = source.contains("(1)") || source.contains("(3)");
                assert!(is_page || is_manual, "no source for `{line}`: {source:?}");
                assert_eq!(line, line.trim().to_lowercase());
                assert!(line.split('/').count() <= 2, "{line}");
                assert!(previous < line, "`{previous}` must come after `{line}`");
                previous = line;
            }
        }
        let unique: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "a name is listed twice");
    }

    #[test]
    fn matches_listed_name_allows_one_star() {
        for (name, listed, matches) in [
            ("AGENTS.md", "agents.md", true),
            ("agents.md.bak", "agents.md", false),
            ("x.code-workspace", "*.code-workspace", true),
            ("x.Code-Workspace", "*.code-workspace", true),
            (".code-workspaces", "*.code-workspace", false),
            ("mise.ci.toml", "mise.*.toml", true),
            ("mise.ci.local.toml", "mise.*.toml", true),
            ("mise.toml", "mise.*.toml", false),
            ("mise.ü", "mise.*.toml", false),
            ("ü", "*.toml", false),
        ] {
            assert_eq!(
                matches_listed_name(name, listed),
                matches,
                "{name} {listed}"
            );
        }
    }

    #[test]
    fn protected_names_have_sources() {
        check_sources(PROTECTED_TEXT, PROTECTED_PATHS);
        check_sources(STEERING_TEXT, STEERING_FILES);
        assert!(
            STEERING_FILES
                .iter()
                .all(|name| !PROTECTED_PATHS.contains(name))
        );
    }
}
