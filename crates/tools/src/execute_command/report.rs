//! What the model reads of a command that has ended.
//!
//! Invariant: both streams together stay within the limits; when anything is left out the text says where the whole is, or why
//! it is nowhere.

use std::fmt::Write as _;
use std::time::Duration;

use haft_sandbox::{Aftermath, Captured, Exit, Finished};
use haft_text::{Cut, Limits};
use haft_types::{Envelope, ToolError, ToolStatus};
use serde_json::{Value, json};

/// What is kept as data; later rounds keep fewer lines still.
const DATA: Limits = Limits { lines: 200, bytes: 8 * 1024 };

/// A command that ran.
pub(super) struct Ran {
    pub(super) finished: Finished,
    pub(super) command: String,
    pub(super) cwd: String,
    pub(super) timeout: Duration,
}

/// The envelope, and whether it names spill files, which then have to stay.
pub(super) struct Report {
    pub(super) envelope: Envelope,
    pub(super) names_files: bool,
}

impl Ran {
    pub(super) fn report(&self, limits: Limits) -> Report {
        let Finished { stdout, stderr, aftermath, .. } = &self.finished;
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
        match aftermath {
            Aftermath::AllGone => {}
            Aftermath::StillDying => text.push_str("\n[Some of its processes could not be ended yet.]"),
        }

        let mut envelope = Envelope::success(text).with_data(self.data(names_files, out.is_cut() || err.is_cut()));
        envelope.stats = json!({ "duration_ms": millis(self.finished.duration) });
        if let Some(error) = error {
            envelope.status = ToolStatus::Error;
            envelope.error = Some(error);
        }
        Report { envelope, names_files }
    }

    /// The first line, and the error if it is one.
    fn verdict(&self) -> (String, Option<ToolError>) {
        let (headline, code, message) = match self.finished.exit {
            Exit::Code(0) => return ("Exit code 0.".to_owned(), None),
            Exit::Code(code) => (format!("Exit code {code}."), "exit_status", format!("exit status {code}")),
            Exit::Signal(signal) => {
                let name = signal_name(signal);
                (format!("Ended by signal {signal}{name}."), "signal", format!("ended by signal {signal}{name}"))
            }
            Exit::TimedOut => {
                let seconds = self.timeout.as_secs();
                let headline = format!("Timed out after {seconds} s; it and everything it started were ended.");
                (headline, "timed_out", format!("timed out after {seconds} s; raise `timeout` if it needs longer"))
            }
            Exit::Cancelled => {
                let headline = "Cancelled; it and everything it started were ended.".to_owned();
                (headline, "cancelled", "cancelled by the user".to_owned())
            }
        };
        (headline, Some(ToolError { code: code.to_owned(), message }))
    }

    fn data(&self, names_files: bool, truncated: bool) -> Value {
        let Finished { exit, stdout, stderr, duration, .. } = &self.finished;
        let mut data = json!({ "command": self.command, "cwd": self.cwd });
        match exit {
            Exit::Code(code) => data["exit_code"] = (*code).into(),
            Exit::Signal(signal) => data["signal"] = (*signal).into(),
            Exit::TimedOut => data["timed_out"] = true.into(),
            Exit::Cancelled => data["cancelled"] = true.into(),
        }
        data["stdout"] = stdout.text(DATA).text.into();
        data["stderr"] = stderr.text(DATA).text.into();
        for (lines, bytes, captured) in
            [("stdout_lines", "stdout_bytes", stdout), ("stderr_lines", "stderr_bytes", stderr)]
        {
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

/// Both streams within the limits: what one does not need the other may have, and neither gets less than half.
fn share(stdout: &Captured, stderr: &Captured, limits: Limits) -> (Cut, Cut) {
    let (out, err) = (stdout.text(limits), stderr.text(limits));
    let (out_size, err_size) = (size(&out), size(&err));
    let rest = |all: usize, other: usize| all.saturating_sub(other).max(all / 2);
    if out_size.lines + err_size.lines <= limits.lines && out_size.bytes + err_size.bytes <= limits.bytes {
        return (out, err);
    }
    let room =
        |other: Limits| Limits { lines: rest(limits.lines, other.lines), bytes: rest(limits.bytes, other.bytes) };
    (stdout.text(room(err_size)), stderr.text(room(out_size)))
}

fn size(cut: &Cut) -> Limits {
    Limits { lines: cut.text.lines().count(), bytes: cut.text.len() }
}

fn section(text: &mut String, name: &str, cut: &Cut) {
    let shown = cut.text.trim_end_matches('\n');
    if !shown.is_empty() {
        let _ = write!(text, "\n--- {name} ---\n{shown}");
    }
}

/// Where the whole of a stream is that was cut.
fn whereabouts(name: &str, captured: &Captured) -> String {
    let Captured { lines, bytes, spill, spill_problem, .. } = captured;
    let whole = format!("The whole {name} has {lines} lines and {bytes} bytes");
    match (spill, spill_problem) {
        (Some(path), None) => {
            format!("[{whole}. It is in `{}`: use `read_file` with a range, or `search_files`.]", path.display())
        }
        (_, Some(problem)) => format!("[{whole}; {problem}.]"),
        (None, None) => format!("[{whole} and was not kept; run it again with less output.]"),
    }
}

fn signal_name(signal: i32) -> &'static str {
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

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}
