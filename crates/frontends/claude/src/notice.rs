//! Notices about options that haft ignores or interprets differently.

use haft_permission::RuleError;

/// An option of Claude Code that haft ignores or interprets differently. The binary formats it for
/// users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaudeNotice {
    /// A flag that has no effect in haft.
    IgnoredFlag(String),
    /// The tool that `--permission-prompt-tool` names; only `stdio` is supported.
    PromptTool(String),
    /// A key of `--settings` that is not supported.
    IgnoredSetting(String),
    /// A hook of `--settings` that is not supported.
    IgnoredHook(String),
    /// A rule for a tool that haft does not have.
    ForeignRule(String),
    /// An allow rule that cannot be parsed and is ignored.
    InvalidRule(RuleError),
    /// An ask or deny rule that cannot be expressed, so a rule that covers more replaces it.
    WiderRule {
        /// The rule, as given.
        rule: String,
        /// The rule that is used instead.
        wider: String,
    },
}
