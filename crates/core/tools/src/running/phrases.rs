//! Phrases about commands, shared by all tools that run commands.

use std::fmt::Write as _;
use std::time::Duration;

use haft_sandbox::{CapturedOutput, CommandExit, FinishedCommand, HiddenPath};
use haft_text::{Cut, CutLimits, sanitize_bytes};
use haft_types::TaskPhase;
use serde_json::Value;

/// The limits of an output in the data of a result. Later rounds keep even fewer lines.
pub(crate) const DATA_LIMITS: CutLimits = CutLimits {
    lines: 200,
    bytes: 8 * 1024,
};

/// Returns the name of a background task's phase.
pub(crate) fn phase_name(phase: TaskPhase) -> &'static str {
    match phase {
        TaskPhase::Started => "running",
        TaskPhase::Finished => "finished",
        TaskPhase::Failed => "failed",
        TaskPhase::Killed => "killed",
        TaskPhase::Lost => "lost",
    }
}

/// Describes the exit of a command, as the rest of a sentence.
pub(crate) fn describe_exit(exit: CommandExit) -> String {
    match exit {
        CommandExit::Code(code) => format!("exit code {code}"),
        CommandExit::Signal(signal) => format!("ended by signal {signal}{}", signal_name(signal)),
        CommandExit::TimedOut => "its time was over".to_owned(),
        CommandExit::Cancelled => "it was ended".to_owned(),
    }
}

/// Adds the exit of a command to the data of a result, except for a cancellation, which the caller
/// adds.
pub(crate) fn add_exit(data: &mut Value, exit: CommandExit) {
    match exit {
        CommandExit::Code(code) => data["exit_code"] = code.into(),
        CommandExit::Signal(signal) => data["signal"] = signal.into(),
        CommandExit::TimedOut => data["timed_out"] = true.into(),
        CommandExit::Cancelled => {}
    }
}

pub(crate) fn add_stdout(data: &mut Value, output: &CapturedOutput) {
    data["stdout"] = output.text(DATA_LIMITS).text.into();
    data["stdout_lines"] = output.lines.into();
    data["stdout_bytes"] = output.bytes.into();
}

/// Returns the name of a signal in parentheses, after a space; empty for rare signals.
pub(crate) fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        24 => " (SIGXCPU)",
        25 => " (SIGXFSZ)",
        31 => " (SIGSYS)",
        _ => "",
    }
}

/// Returns a hint about a file that a command could not access because the sandbox hides it.
pub(crate) fn hidden_path_hint(hidden: &HiddenPath) -> String {
    format!(
        "{hidden}. Use a copy in the project, or run the command with `sandbox` set to `outside`, which asks the user. The user can add the path to `[sandbox] readable`."
    )
}

/// Returns a remark about protected entries that a command created or replaced, or `None` if there
/// are none.
pub(crate) fn undone_entries_hint(finished: &FinishedCommand) -> Option<String> {
    if finished.undone.is_empty() {
        return None;
    }
    let shown = finished.undone.iter().take(MAX_NAMED_ENTRIES);
    let mut names: Vec<_> = shown.map(|path| format!("`{}`", path.display())).collect();
    let left = finished.undone.len() - names.len();
    if left > 0 {
        names.push(format!("{left} more"));
    }
    Some(format!(
        "The command created or replaced protected entries, so all of its processes were ended and this was undone: {}. Commands in the sandbox may not do this; use the file tools, which ask the user.",
        names.join(", ")
    ))
}

/// The maximum number of entries that a remark names.
const MAX_NAMED_ENTRIES: usize = 10;

/// Returns a remark about a cut output: its size, and the file that contains the complete output,
/// if there is one.
pub(crate) fn describe_spill(name: &str, captured: &CapturedOutput) -> String {
    let CapturedOutput {
        lines,
        bytes,
        spill,
        spill_problem,
        ..
    } = captured;
    let whole = format!("The whole {name} has {lines} lines and {bytes} bytes");
    match (spill, spill_problem) {
        (Some(path), None) => {
            format!(
                "[{whole}. It is in `{}`: read it by range, or search it.]",
                path.display()
            )
        }
        (_, Some(problem)) => format!("[{whole}; {problem}.]"),
        (None, None) => format!("[{whole} and was not kept; run it again with less output.]"),
    }
}

/// Appends a cut output to `text` under the heading `name`, unless the output is empty.
pub(crate) fn add_cut_section(text: &mut String, name: &str, cut: &Cut) {
    add_section(text, name, &cut.text);
}

/// Appends the text `shown` to `text` under the heading `name`, unless it is empty. The caller must
/// have limited its length.
pub(crate) fn add_section(text: &mut String, name: &str, shown: &str) {
    let shown = shown.trim_end_matches('\n');
    if !shown.is_empty() {
        let _ = write!(text, "\n--- {name} ---\n{shown}");
    }
}

/// Returns the last lines of an output, and the number of lines before them.
pub(crate) fn last_lines(captured: &CapturedOutput, lines: usize, bytes: usize) -> (String, u64) {
    let end = if captured.tail.is_empty() {
        &captured.head
    } else {
        &captured.tail
    };
    let whole = captured.bytes == (captured.head.len() + captured.tail.len()) as u64;
    let text = if whole {
        sanitize_bytes(&[captured.head.as_slice(), &captured.tail].concat())
    } else {
        sanitize_bytes(end)
    };
    let from = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    let text = &text[from..];
    let all: Vec<_> = text.lines().collect();
    let kept = &all[all.len().saturating_sub(lines)..];
    (
        kept.join("\n"),
        captured.lines.saturating_sub(kept.len() as u64),
    )
}

/// Formats a duration in at most two units, such as `3 min 20 s`.
pub(crate) fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

pub(crate) fn to_millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}

/// Shortens a command to its first line, for use in a sentence.
pub(crate) fn command_title(command: &str) -> String {
    const MAX_COLUMNS: usize = 120;
    let line = command.trim().lines().next().unwrap_or_default();
    let more = if command.trim().lines().nth(1).is_some() {
        " …"
    } else {
        ""
    };
    format!(
        "`{}{more}`",
        haft_text::truncate_to_width(&haft_text::sanitize(line), MAX_COLUMNS)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_is_short() {
        for (seconds, said) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (200, "3 min 20 s"),
            (7_260, "2 h 1 min"),
        ] {
            assert_eq!(format_duration(Duration::from_secs(seconds)), said);
        }
    }

    #[test]
    fn last_lines_returns_the_end_of_the_output() {
        let captured = |text: &str| CapturedOutput {
            head: text.into(),
            bytes: text.len() as u64,
            lines: text.lines().count() as u64,
            ..CapturedOutput::default()
        };
        assert_eq!(
            last_lines(&captured("a\nb\nc\n"), 2, 100),
            ("b\nc".to_owned(), 1)
        );
        assert_eq!(
            last_lines(&captured("a\nb"), 9, 100),
            ("a\nb".to_owned(), 0)
        );
        assert_eq!(
            last_lines(&captured("ää"), 9, 3).0,
            "ä",
            "a character is not cut"
        );
        assert_eq!(
            last_lines(&CapturedOutput::default(), 9, 100),
            (String::new(), 0)
        );
    }

    #[test]
    fn title_is_one_line() {
        assert_eq!(command_title("make\nmake test"), "`make …`");
        assert_eq!(command_title("  make \u{1b}[31m test "), "`make  test`");
    }
}
