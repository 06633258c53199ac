//! Reports a finished command to the model.
//!
//! Invariant: both streams together stay within the limits. If anything is omitted, the text names
//! the file with the complete output, or the reason why there is none.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use haft_sandbox::{Aftermath, AwaitedInput, CapturedOutput, CommandExit, FinishedCommand};
use haft_text::{Cut, CutLimits};
use haft_tool::ToolNames;
use haft_types::{Envelope, ToolError, ToolStatus};
use serde_json::{Value, json};

use crate::running::phrases::{
    DATA, add_exit, hidden_hint, millis, section, signal_name, whereabouts,
};

/// A finished command.
pub(super) struct CommandRun {
    pub(super) finished: FinishedCommand,
    pub(super) command: String,
    pub(super) cwd: String,
    /// The working folder of the command.
    pub(super) folder: PathBuf,
    pub(super) timeout: Duration,
    /// The input that the command waited for at the last poll.
    pub(super) awaited: Option<AwaitedInput>,
    /// The tools that the model knows.
    pub(super) tools: ToolNames,
}

/// The envelope. If it names spill files, these must be kept.
pub(super) struct CommandReport {
    pub(super) envelope: Envelope,
    pub(super) names_files: bool,
}

impl CommandRun {
    pub(super) fn report(&self, limits: CutLimits) -> CommandReport {
        let FinishedCommand {
            stdout,
            stderr,
            aftermath,
            ..
        } = &self.finished;
        let (out, err) = share(stdout, stderr, limits);
        let (headline, error) = self.verdict();
        let mut text = headline;
        if stdout.bytes == 0 && stderr.bytes == 0 {
            text.push_str(" No output.");
        }
        section(&mut text, "stdout", &out);
        section(&mut text, "stderr", &err);
        let mut names_files = false;
        for (name, cut, captured) in [("stdout", &out, stdout), ("stderr", &err, stderr)] {
            if cut.is_cut() {
                let _ = write!(text, "\n{}", whereabouts(name, captured));
                names_files |= captured.spill.is_some();
            }
        }
        if let Some(hint) = self.hint() {
            let _ = write!(text, "\n[{hint}]");
        }
        match aftermath {
            Aftermath::AllGone => {}
            Aftermath::StillDying => {
                text.push_str("\n[Some of its processes could not be ended yet.]");
            }
        }

        let mut envelope =
            Envelope::success(text).with_data(self.data(names_files, out.is_cut() || err.is_cut()));
        envelope.stats = json!({ "duration_ms": millis(self.finished.duration) });
        if let Some(error) = error {
            envelope.status = ToolStatus::Error;
            envelope.error = Some(error);
        }
        CommandReport {
            envelope,
            names_files,
        }
    }

    /// Suggests an alternative if the sandbox hid a file, the command needed input, or a script was
    /// called like a program.
    fn hint(&self) -> Option<Cow<'static, str>> {
        let FinishedCommand {
            exit,
            stdout,
            stderr,
            hidden,
            ..
        } = &self.finished;
        if let Some(hidden) = hidden {
            return Some(hidden_hint(hidden).into());
        }
        match exit {
            CommandExit::Code(0) | CommandExit::Cancelled => None,
            CommandExit::TimedOut => self.awaited.map(|_| {
                let why = "It was waiting for input at a terminal that nobody can type at.";
                format!("{why} {}", self.how_to_answer()).into()
            }),
            CommandExit::Code(126 | 127) => stderr
                .text(DATA)
                .text
                .lines()
                .find_map(|line| script_hint(line, &self.folder)),
            CommandExit::Code(_) | CommandExit::Signal(_) => {
                let wanted = [stdout, stderr]
                    .into_iter()
                    .any(|stream| wants_terminal(&stream.text(DATA).text));
                wanted.then(|| {
                    let why = "It seems to want a terminal or an answer, and has neither.";
                    format!("{why} {}", self.how_to_answer()).into()
                })
            }
        }
    }

    /// Suggests how to answer a program's questions.
    fn how_to_answer(&self) -> &'static str {
        if self.tools.contains("session_start") {
            "Use `session_start` and type there, or give the answers as options."
        } else {
            "Give the answers as options."
        }
    }

    /// Returns the first line of the text, and the error unless the command succeeded.
    fn verdict(&self) -> (String, Option<ToolError>) {
        let (headline, code, message) = match self.finished.exit {
            CommandExit::Code(0) => return ("Exit code 0.".to_owned(), None),
            CommandExit::Code(code) => (
                format!("Exit code {code}."),
                "exit_status",
                format!("exit status {code}"),
            ),
            CommandExit::Signal(signal) => {
                let name = signal_name(signal);
                (
                    format!("Ended by signal {signal}{name}."),
                    "signal",
                    format!("ended by signal {signal}{name}"),
                )
            }
            CommandExit::TimedOut => {
                let seconds = self.timeout.as_secs();
                let headline = format!(
                    "Timed out after {seconds} s; it and everything it started were ended."
                );
                (
                    headline,
                    "timed_out",
                    format!("timed out after {seconds} s; raise `timeout` if it needs longer"),
                )
            }
            CommandExit::Cancelled => {
                let headline = "Cancelled; it and everything it started were ended.".to_owned();
                (headline, "cancelled", "cancelled by the user".to_owned())
            }
        };
        (
            headline,
            Some(ToolError {
                code: code.to_owned(),
                message,
            }),
        )
    }

    fn data(&self, names_files: bool, truncated: bool) -> Value {
        let FinishedCommand {
            exit,
            stdout,
            stderr,
            duration,
            ..
        } = &self.finished;
        let mut data = json!({ "command": self.command, "cwd": self.cwd });
        add_exit(&mut data, *exit);
        if *exit == CommandExit::Cancelled {
            data["cancelled"] = true.into();
        }
        data["stdout"] = stdout.text(DATA).text.into();
        data["stderr"] = stderr.text(DATA).text.into();
        for (lines, bytes, captured) in [
            ("stdout_lines", "stdout_bytes", stdout),
            ("stderr_lines", "stderr_bytes", stderr),
        ] {
            data[lines] = captured.lines.into();
            data[bytes] = captured.bytes.into();
        }
        data["duration_ms"] = millis(*duration).into();
        if names_files {
            let files = [&stdout.spill, &stderr.spill].into_iter().flatten();
            data["spill"] = files.map(|path| path.display().to_string()).collect();
        }
        if truncated {
            data["truncated"] = true.into();
        }
        data
    }
}

/// Cuts both streams to the limits. Each stream gets at least half, and the room that the other
/// does not need.
fn share(stdout: &CapturedOutput, stderr: &CapturedOutput, limits: CutLimits) -> (Cut, Cut) {
    let out = stdout.text(limits);
    let err = stderr.text(limits);
    let out_size = size(&out);
    let err_size = size(&err);
    let rest = |all: usize, other: usize| all.saturating_sub(other).max(all / 2);
    if out_size.lines + err_size.lines <= limits.lines
        && out_size.bytes + err_size.bytes <= limits.bytes
    {
        return (out, err);
    }
    let room = |other: CutLimits| CutLimits {
        lines: rest(limits.lines, other.lines),
        bytes: rest(limits.bytes, other.bytes),
    };
    (stdout.text(room(err_size)), stderr.text(room(out_size)))
}

/// Suggests how to run a script in `folder` that the shell reports as not startable. The
/// interpreter is derived from the script's name: printed output is no reason for haft to read a
/// file.
fn script_hint(said: &str, folder: &Path) -> Option<Cow<'static, str>> {
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let is_here =
        |name: &&str| Path::new(name).components().all(inside) && folder.join(name).is_file();
    let name = said.rsplit(": ").take(2).find(is_here)?;
    let program = match name.rsplit_once('.')?.1 {
        "py" => "python3",
        "sh" | "bash" => "bash",
        _ => return None,
    };
    Some(
        format!(
            "`{name}` is a file here that the shell cannot start. Run it so: `{program} {name}`"
        )
        .into(),
    )
}

/// True if the output contains a message of a program that found no terminal, or no answer to its
/// question.
fn wants_terminal(text: &str) -> bool {
    const SAID: &[&str] = &[
        "/dev/tty",
        "a terminal is required",
        "a tty is required",
        "is not a tty",
        "is not a terminal",
        "not attached to a terminal",
        "eof when reading a line",
        "terminal prompts disabled",
        "inappropriate ioctl for device",
    ];
    let text = text.to_lowercase();
    SAID.iter().any(|said| text.contains(said))
}

fn size(cut: &Cut) -> CutLimits {
    CutLimits {
        lines: cut.text.lines().count(),
        bytes: cut.text.len(),
    }
}
