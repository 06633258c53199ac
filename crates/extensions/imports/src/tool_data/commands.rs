//! Extracts the exit code and the output from the results of commands.

use haft_types::{Envelope, ToolError, ToolStatus};
use serde_json::{Map, Value};

use super::ForeignArguments;

/// Sets the data of a command result. `code` is the exit code, if the format stores it. If
/// `is_exact` is true, a successful result without a code has the exit code 0.
pub(super) fn shape_command_result(
    arguments: &ForeignArguments,
    envelope: &mut Envelope,
    code: Option<i64>,
    is_exact: bool,
) {
    let output = CommandResultText::parse(&envelope.text);
    let succeeded = envelope.status == ToolStatus::Success;
    let code = code
        .or(output.code)
        .or((is_exact && succeeded).then_some(0));
    if code.is_none() && !succeeded {
        // The command was never run, or its exit code is unknown. The text is the error.
        return;
    }
    let mut data = Map::new();
    if let Some(command) = command_line(arguments) {
        data.insert("command".into(), command.into());
    }
    if let Some(cwd) = arguments.first_text(&["cwd", "workdir", "working_directory", "directory"]) {
        data.insert("cwd".into(), cwd.into());
    }
    if let Some(code) = code {
        data.insert("exit_code".into(), code.into());
    }
    data.insert("stdout".into(), output.text.into());
    data.insert("stderr".into(), "".into());
    data.insert("stdout_lines".into(), output.text.lines().count().into());
    data.insert("stdout_bytes".into(), output.text.len().into());
    if let Some(code) = code.filter(|code| *code != 0) {
        envelope.status = ToolStatus::Error;
        envelope.error = Some(ToolError {
            code: "exit_status".into(),
            message: format!("exit status {code}"),
        });
    }
    envelope.data = data.into();
}

/// Returns the command line in the arguments of a call. If it is given as a list of words, these
/// are joined with spaces.
fn command_line(arguments: &ForeignArguments) -> Option<String> {
    if let Some(line) = arguments.first_text(&["command", "cmd"]) {
        return Some(line.to_owned());
    }
    let words: Vec<&str> = arguments
        .first_list(&["command", "cmd", "commands"])?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    match words.as_slice() {
        // For `bash -lc SCRIPT`, only the script is returned, because that is what the model wrote.
        [_, flag, script] if flag.starts_with('-') && flag.ends_with('c') => {
            Some((*script).to_owned())
        }
        words => Some(words.join(" ")),
    }
}

/// The command output in the text of a result, and the exit code if the text contains one.
struct CommandResultText<'a> {
    code: Option<i64>,
    text: &'a str,
}

impl<'a> CommandResultText<'a> {
    fn parse(text: &'a str) -> Self {
        Self::parse_tags(text)
            .or_else(|| Self::parse_header(text))
            .or_else(|| Self::parse_footer(text))
            .or_else(|| Self::parse_success_line(text))
            .unwrap_or(Self { code: None, text })
    }

    /// Parses a text in which the output follows the line `Command executed successfully.` or a
    /// `<system>` element.
    fn parse_success_line(text: &'a str) -> Option<Self> {
        if let Some(output) = text.strip_prefix("Command executed successfully.\n\n") {
            return Some(Self {
                code: Some(0),
                text: output,
            });
        }
        let (_, output) = text.strip_prefix("<system>")?.split_once("</system>")?;
        Some(Self {
            code: None,
            text: output.strip_prefix('\n').unwrap_or(output),
        })
    }

    /// Parses a text that consists of a `<returncode>` and an `<output>` element.
    fn parse_tags(text: &'a str) -> Option<Self> {
        let (code, rest) = text
            .trim_start()
            .strip_prefix("<returncode>")?
            .split_once("</returncode>")?;
        let rest = rest.trim_start();
        let inner = rest
            .strip_prefix("<output>\n")
            .and_then(|rest| rest.trim_end().strip_suffix("</output>"));
        Some(Self {
            code: code.trim().parse().ok(),
            text: inner.unwrap_or(rest),
        })
    }

    /// Parses a text in which the output follows a line such as `Exit code 1`, or header lines that
    /// end with `Output:`.
    fn parse_header(text: &'a str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix("Exit code ") {
            let (code, output) = rest.split_once('\n').unwrap_or((rest, ""));
            return Some(Self {
                code: Some(code.trim().parse().ok()?),
                text: output,
            });
        }
        let (head, output) = text.split_once("Output:\n")?;
        let marks = ["Exit code: ", "Process exited with code "];
        let code = |line: &str| {
            marks
                .iter()
                .find_map(|mark| line.strip_prefix(mark)?.trim().parse().ok())
        };
        let is_head = |line: &str| {
            [
                "Chunk ID: ",
                "Wall time: ",
                "Original token count: ",
                "Process running with ",
                "Total output lines: ",
            ]
            .iter()
            .chain(&marks)
            .any(|mark| line.starts_with(mark))
        };
        let mut lines = head
            .lines()
            .filter(|line| !line.trim().is_empty())
            .peekable();
        lines.peek()?;
        lines.all(is_head).then(|| Self {
            code: head.lines().find_map(code),
            text: output,
        })
    }

    /// Parses a text in which the output is followed by a last line such as `Command exited with
    /// code 1` or `[The command completed with exit code 1.]`.
    fn parse_footer(text: &'a str) -> Option<Self> {
        let trimmed = text.trim_end();
        let (output, last) = trimmed.rsplit_once('\n').unwrap_or(("", trimmed));
        let said = last.strip_prefix("Command exited with code ");
        let said = said.or_else(|| {
            last.strip_prefix("[The command completed with exit code ")?
                .strip_suffix(".]")
        });
        Some(Self {
            code: Some(said?.trim().parse().ok()?),
            text: output.trim_end_matches('\n'),
        })
    }
}
