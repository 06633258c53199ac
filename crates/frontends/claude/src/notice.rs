//! Notices about options that haft ignores or interprets differently.

use haft_permission::RuleError;

/// An option of Claude Code that haft ignores or interprets differently. The binary formats it for
/// users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaudeNotice {
    /// This flag has no effect in haft.
    IgnoredFlag(String),
    /// The value of `--permission-prompt-tool` is this tool; only `stdio` is supported.
    PromptTool(String),
    /// This key of `--settings` is not supported.
    IgnoredSetting(String),
    /// This hook of `--settings` is not supported.
    IgnoredHook(String),
    /// This rule names a tool that haft does not have.
    ForeignRule(String),
    /// A rule that allows cannot be parsed and is ignored.
    InvalidRule(RuleError),
    /// A rule that asks or denies cannot be expressed, so a rule that covers more replaces it.
    WiderRule {
        /// The rule, as given.
        rule: String,
        /// The rule that replaces it.
        wider: String,
    },
}
