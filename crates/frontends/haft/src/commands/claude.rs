//! Wording for notices of the Claude dialect.

use haft_claude::ClaudeNotice;

use crate::output;

/// Prints a notice on stderr.
pub(crate) fn print_notice(notice: &ClaudeNotice) {
    let text = match notice {
        ClaudeNotice::IgnoredFlag(flag) => text!("claude-ignored", flag),
        ClaudeNotice::PromptTool(tool) => text!("claude-prompt-tool", tool),
        ClaudeNotice::IgnoredSetting(key) => text!("claude-ignored-setting", key),
        ClaudeNotice::IgnoredHook(what) => text!("claude-ignored-hook", what),
        ClaudeNotice::ForeignRule(rule) => text!("claude-foreign-rule", rule),
        ClaudeNotice::InvalidRule(error) => error.to_string(),
        ClaudeNotice::WiderRule { rule, wider } => text!("claude-wider-rule", rule, wider),
    };
    output::tell(&format!("haft: {text}"));
}

/// Returns the error for a flag of Claude Code's that haft refuses.
pub(crate) fn refusal(flag: &str) -> String {
    text!("claude-refused", flag)
}
