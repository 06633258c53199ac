//! The wording of notices about Claude Code's flags and settings.

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
    output::print_to_stderr(&format!("haft: {text}"));
}

/// Returns the error message for a flag of Claude Code that haft rejects.
pub(crate) fn rejection_message(flag: &str) -> String {
    text!("claude-refused", flag)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use haft_claude::{ClaudeCommandLine, lower_arguments};

    use crate::cli::Cli;

    /// The dialect's own tests use a part of haft's command line definition; this test uses all of
    /// it.
    #[test]
    fn lowered_command_lines_are_valid_for_haft() {
        for line in [
            "claude -p --output-format stream-json --verbose --model opus --max-turns 3 -- fix",
            "claude --input-format=stream-json --output-format=stream-json --allowedTools=Bash,Read",
            "claude -p --permission-mode acceptEdits --add-dir .. --append-system-prompt x -- fix",
            "claude -c -p go",
            "claude --set context.view=layered --max-total-tokens 500 -p go",
            "haft --compat claude -p --maxTurns 2 go",
        ] {
            let args: Vec<_> = line.split_whitespace().map(OsString::from).collect();
            let mut definition = Cli::definition();
            let Some(ClaudeCommandLine::Lowered { args, .. }) = lower_arguments(&args, &definition)
            else {
                panic!("{line} is not lowered");
            };
            let parsed = definition.try_get_matches_from_mut(&args);
            assert!(parsed.is_ok(), "{line}: {args:?}: {:?}", parsed.err());
        }
    }
}
