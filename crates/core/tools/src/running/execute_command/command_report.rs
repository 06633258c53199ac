//! Reports a finished command to the model.
//!
//! Invariant: both streams together stay within the limits. If any output is omitted, the text
//! names the file with the complete output, or the reason why there is no such file.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use haft_sandbox::{Aftermath, AwaitedInput, CapturedOutput, CommandExit, FinishedCommand};
use haft_text::{Cut, CutLimits};
use haft_tool::ToolNames;
use haft_types::{Envelope, ToolError, ToolStatus};
use serde_json::{Value, json};

use super::sandbox_refusal::{CommandSandbox, SandboxRefusal};
use crate::running::phrases::{
    DATA_LIMITS, add_cut_section, add_exit, describe_spill, hidden_path_hint, signal_name,
    to_millis, undone_entries_hint,
};

/// A finished command, with the values that its report needs.
pub(super) struct CommandRun {
    pub(super) finished: FinishedCommand,
    pub(super) command: String,
    pub(super) cwd: String,
    /// The working directory of the command.
    pub(super) folder: PathBuf,
    pub(super) timeout: Duration,
    /// The input that the command waited for at the last poll.
    pub(super) awaited: Option<AwaitedInput>,
    /// The sandbox of the command; `None` if it ran unconfined.
    pub(super) sandbox: Option<CommandSandbox>,
    /// The tools that are offered to the model.
    pub(super) tools: ToolNames,
}

/// The result of a command. If `names_files` is true, the envelope names spill files, which must be
/// kept.
pub(super) struct CommandReport {
    pub(super) envelope: Envelope,
    pub(super) names_files: bool,
}

impl CommandRun {
    pub(super) fn build_report(&self, limits: CutLimits) -> CommandReport {
        let FinishedCommand {
            stdout,
            stderr,
            aftermath,
            ..
        } = &self.finished;
        let (out, err) = cut_to_shared_limits(stdout, stderr, limits);
        let (headline, error) = self.headline_and_error();
        let mut text = headline;
        if stdout.bytes == 0 && stderr.bytes == 0 {
            text.push_str(" No output.");
        }
        add_cut_section(&mut text, "stdout", &out);
        add_cut_section(&mut text, "stderr", &err);
        let mut names_files = false;
        for (name, cut, captured) in [("stdout", &out, stdout), ("stderr", &err, stderr)] {
            if cut.is_cut() {
                let _ = write!(text, "\n{}", describe_spill(name, captured));
                names_files |= captured.spill.is_some();
            }
        }
        if let Some(hint) = self.failure_hint() {
            let _ = write!(text, "\n[{hint}]");
        }
        if let Some(hint) = undone_entries_hint(&self.finished) {
            let _ = write!(text, "\n[{hint}]");
        }
        match aftermath {
            Aftermath::AllGone => {}
            Aftermath::StillDying => {
                text.push_str("\n[Some of its processes could not be ended yet.]");
            }
        }

        let mut envelope = Envelope::success(text)
            .with_data(self.build_data(names_files, out.is_cut() || err.is_cut()));
        envelope.stats = json!({ "duration_ms": to_millis(self.finished.duration) });
        if let Some(error) = error {
            envelope.status = ToolStatus::Error;
            envelope.error = Some(error);
        }
        CommandReport {
            envelope,
            names_files,
        }
    }

    /// Returns a hint for a failed command if the sandbox hid a file or refused something, the
    /// command needed input, or a script was called like a program.
    fn failure_hint(&self) -> Option<Cow<'static, str>> {
        let FinishedCommand {
            exit,
            stdout,
            stderr,
            hidden,
            ..
        } = &self.finished;
        if let Some(hidden) = hidden {
            return Some(hidden_path_hint(hidden).into());
        }
        if let Some(refusal) = self.sandbox_refusal() {
            return Some(refusal.hint().into());
        }
        match exit {
            CommandExit::Code(0) | CommandExit::Cancelled => None,
            CommandExit::TimedOut => self.awaited.map(|_| {
                let why = "It was waiting for input at a terminal that nobody can type at.";
                format!("{why} {}", self.answer_hint()).into()
            }),
            CommandExit::Code(126 | 127) => stderr
                .text(DATA_LIMITS)
                .text
                .lines()
                .find_map(|line| script_hint(line, &self.folder)),
            CommandExit::Code(_) | CommandExit::Signal(_) => {
                let wanted = [stdout, stderr]
                    .into_iter()
                    .any(|stream| mentions_terminal(&stream.text(DATA_LIMITS).text));
                wanted.then(|| {
                    let why = "It seems to want a terminal or an answer, and has neither.";
                    format!("{why} {}", self.answer_hint()).into()
                })
            }
        }
    }

    /// Returns the part of the sandbox that made the command fail, if it failed for that reason.
    fn sandbox_refusal(&self) -> Option<SandboxRefusal> {
        let FinishedCommand {
            exit,
            stdout,
            stderr,
            ..
        } = &self.finished;
        match exit {
            CommandExit::Code(0) | CommandExit::Cancelled => None,
            CommandExit::Code(_) | CommandExit::Signal(_) | CommandExit::TimedOut => {
                let [out, err] = [stdout, stderr].map(|stream| stream.text(DATA_LIMITS).text);
                self.sandbox
                    .as_ref()?
                    .find_refusal(&format!("{err}\n{out}"))
            }
        }
    }

    /// Returns a hint on how the model can answer a program's questions.
    fn answer_hint(&self) -> &'static str {
        if self.tools.contains("session_start") {
            "Use `session_start` and type there, or give the answers as options."
        } else {
            "Give the answers as options."
        }
    }

    /// Returns the first line of the text, and an error if the command did not succeed.
    fn headline_and_error(&self) -> (String, Option<ToolError>) {
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

    fn build_data(&self, names_files: bool, truncated: bool) -> Value {
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
        data["stdout"] = stdout.text(DATA_LIMITS).text.into();
        data["stderr"] = stderr.text(DATA_LIMITS).text.into();
        for (lines, bytes, captured) in [
            ("stdout_lines", "stdout_bytes", stdout),
            ("stderr_lines", "stderr_bytes", stderr),
        ] {
            data[lines] = captured.lines.into();
            data[bytes] = captured.bytes.into();
        }
        data["duration_ms"] = to_millis(*duration).into();
        if let Some(refusal) = self.sandbox_refusal() {
            data["sandbox_refused"] = refusal.name().into();
        }
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

/// Cuts both streams to the shared limits. Each stream gets at least half of the limits, and the
/// room that the other stream does not need.
fn cut_to_shared_limits(
    stdout: &CapturedOutput,
    stderr: &CapturedOutput,
    limits: CutLimits,
) -> (Cut, Cut) {
    let out = stdout.text(limits);
    let err = stderr.text(limits);
    let out_size = cut_size(&out);
    let err_size = cut_size(&err);
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

/// Suggests how to run a script in `folder` that the shell could not start, according to the
/// shell's message `said`. The interpreter is derived from the extension of the script's name: haft
/// does not read a file only because a program printed its name.
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

/// True if the output contains a message of a program that found no terminal, or that got no answer
/// to its question.
fn mentions_terminal(text: &str) -> bool {
    const MESSAGES: &[&str] = &[
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
    MESSAGES.iter().any(|said| text.contains(said))
}

fn cut_size(cut: &Cut) -> CutLimits {
    CutLimits {
        lines: cut.text.lines().count(),
        bytes: cut.text.len(),
    }
}
