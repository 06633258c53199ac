//! Notices about options that haft ignores or interprets differently.

use haft_permission::RuleError;

/// An option of Claude Code that haft ignores or interprets differently. The binary formats it for
/// users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaudeNotice {
    /// A flag that has no effect in haft.
    IgnoredFlag(String),
    /// A value of `--permission-prompt-tool` other than `stdio`, which is the only supported one.
    PromptTool(String),
    /// A key of `--settings` that is not supported.
    IgnoredSetting(String),
    /// A hook of `--settings` that is not supported.
    IgnoredHook(String),
    /// A permission rule for a tool that haft does not have.
    ForeignRule(String),
    /// An allow rule that cannot be parsed and is therefore ignored.
    InvalidRule(RuleError),
    /// An ask or deny rule that haft cannot express. A more general rule replaces it.
    WiderRule {
        /// The rule, as given.
        rule: String,
        /// The more general rule that is used in its place.
        wider: String,
    },
}
