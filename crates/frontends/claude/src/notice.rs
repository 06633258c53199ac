//! Notices about options that haft ignores or takes differently.

use haft_permission::RuleError;

/// An option of Claude Code that haft ignores or takes differently. The binary words it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaudeNotice {
    /// This flag has no effect in haft.
    IgnoredFlag(String),
    /// `--permission-prompt-tool` names this tool; only `stdio` is supported.
    PromptTool(String),
    /// This key of `--settings` is not supported.
    IgnoredSetting(String),
    /// This hook of `--settings` is not supported.
    IgnoredHook(String),
    /// This rule names a tool that haft does not have.
    ForeignRule(String),
    /// A rule that allows can't be parsed; it is left out.
    InvalidRule(RuleError),
    /// A rule that asks or denies can't be expressed; one that covers more replaces it.
    WiderRule {
        /// The rule, as written.
        rule: String,
        /// The rule that is used.
        wider: String,
    },
}
