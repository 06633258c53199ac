//! What takes time, and for how long: the turn, commands in the user's shell, the wait before a
//! request is sent again.
//!
//! Invariant: it knows the time only from whoever draws, so everything here is a function of what
//! happened and when.

use std::time::Duration;

use haft_text::grouped;
use haft_types::Usage;

use crate::line::{StyledLine, TextStyle};

/// A server that says nothing for so long is reported.
const SILENCE: Duration = Duration::from_secs(10);
/// Bytes of text that are counted as a token until the server has counted.
const TOKEN_BYTES: u64 = 4;

#[derive(Debug, Default)]
pub(super) struct Activity {
    now: Duration,
    /// When the turn began.
    turn: Duration,
    /// When anything was heard of it last.
    heard: Duration,
    /// What the model wrote in this turn: counted, and in bytes since then.
    tokens: u64,
    bytes: u64,
    shells: Vec<ShellRun>,
    retry: Option<PendingRetry>,
}

/// A command in the user's shell.
#[derive(Debug)]
struct ShellRun {
    id: u64,
    line: String,
    since: Duration,
    ended: bool,
}

/// A request that failed and is sent again.
#[derive(Debug)]
struct PendingRetry {
    at: Duration,
    /// Which one it is, and why.
    attempt: String,
    reason: String,
}

impl Activity {
    pub(super) fn set_time(&mut self, now: Duration) {
        self.now = now;
    }

    pub(super) fn now(&self) -> Duration {
        self.now
    }

    /// A turn begins.
    pub(super) fn begin(&mut self) {
        (self.turn, self.heard, self.tokens, self.bytes, self.retry) =
            (self.now, self.now, 0, 0, None);
    }

    /// How long the turn has taken.
    pub(super) fn turn_time(&self) -> Duration {
        self.now.saturating_sub(self.turn)
    }

    /// The server, or a call, has said something.
    pub(super) fn hear(&mut self) {
        (self.heard, self.retry) = (self.now, None);
    }

    pub(super) fn hear_text(&mut self, text: &str) {
        self.bytes += text.len() as u64;
    }

    pub(super) fn hear_usage(&mut self, usage: Usage) {
        (self.tokens, self.bytes) = (self.tokens + usage.output, 0);
    }

    /// The request is sent again after this time.
    pub(super) fn retry(&mut self, attempt: u32, limit: Option<u32>, delay_ms: u64, reason: &str) {
        let attempt = match limit {
            Some(limit) => text!("app-retry-of", attempt, limit),
            None => text!("app-retry-unlimited", attempt),
        };
        let at = self.now + Duration::from_millis(delay_ms);
        self.bytes = 0;
        self.retry = Some(PendingRetry {
            at,
            attempt,
            reason: haft_messages::error_text(reason).into_owned(),
        });
    }

    pub(super) fn shell_started(&mut self, id: u64, line: String) {
        self.shells.push(ShellRun {
            id,
            line,
            since: self.now,
            ended: false,
        });
    }

    pub(super) fn shell_ended(&mut self, id: u64) {
        self.shells
            .iter_mut()
            .filter(|shell| shell.id == id)
            .for_each(|shell| shell.ended = true);
    }

    /// What the commands that have ended said is on the screen.
    pub(super) fn forget_ended(&mut self) {
        self.shells.retain(|shell| !shell.ended);
    }

    /// The command that was started last and still runs.
    pub(super) fn newest_shell(&self) -> Option<u64> {
        self.shells
            .iter()
            .rfind(|shell| !shell.ended)
            .map(|shell| shell.id)
    }

    /// Whether anything is shown that changes with time.
    pub(super) fn is_timed(&self) -> bool {
        self.retry.is_some() || !self.shells.is_empty()
    }

    pub(super) fn rows(&self, columns: usize) -> Vec<StyledLine> {
        let mut rows: Vec<_> = self
            .shells
            .iter()
            .map(|shell| self.shell_row(shell).cut(columns))
            .collect();
        if let Some(retry) = &self.retry {
            let left = retry.at.saturating_sub(self.now).as_millis().div_ceil(1000) as u64;
            let attempt = &retry.attempt;
            let reason = &retry.reason;
            let text = match left {
                0 => text!("app-retry-now", attempt, reason),
                _ => text!("app-retry", attempt, wait = left, reason),
            };
            rows.push(StyledLine::of(text, TextStyle::Warning).cut(columns));
        }
        rows
    }

    fn shell_row(&self, shell: &ShellRun) -> StyledLine {
        let row = StyledLine::of("… ", TextStyle::Accent)
            .and(haft_text::reveal(&shell.line), TextStyle::Strong);
        let rest = if shell.ended {
            text!("app-shell-held").to_owned()
        } else {
            text!(
                "app-shell-running",
                elapsed = elapsed(self.now.saturating_sub(shell.since))
            )
        };
        row.and(format!("  {rest}"), TextStyle::Dim)
    }

    /// How long the turn has taken, what was written in it, and whether the server is silent;
    /// `waits` is whether it is the server that is waited for.
    pub(super) fn working(&self, waits: bool) -> StyledLine {
        let mut parts = vec![text!("app-working").to_owned()];
        let since = self.now.saturating_sub(self.turn);
        if since >= Duration::from_secs(1) {
            parts[0] = text!("app-working-for", elapsed = elapsed(since));
        }
        let tokens = self.tokens + self.bytes / TOKEN_BYTES;
        if tokens > 0 {
            let about = if self.bytes > 0 { "~" } else { "" };
            parts.push(text!(
                "app-tokens-out",
                tokens = format_args!("{about}{}", grouped(tokens)),
                count = tokens
            ));
        }
        let line = StyledLine::of(parts.join(text!("app-comma")), TextStyle::Accent);
        let silence = self.now.saturating_sub(self.heard);
        if waits && silence >= SILENCE && self.retry.is_none() {
            let text = text!("app-silent", elapsed = elapsed(silence));
            return line.and(format!("{}{text}", text!("app-comma")), TextStyle::Warning);
        }
        line
    }
}

/// A time as people say it.
pub(crate) fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_say_them() {
        let said =
            [0, 59, 60, 3_599, 3_600, 90_000].map(|seconds| elapsed(Duration::from_secs(seconds)));
        assert_eq!(
            said,
            [
                "0 s",
                "59 s",
                "1 min 0 s",
                "59 min 59 s",
                "1 h 0 min",
                "25 h 0 min"
            ]
        );
    }

    #[test]
    fn a_retry_counts_down_and_goes() {
        let mut activity = Activity::default();
        activity.retry(2, Some(5), 2_500, "too many requests");
        let row = |activity: &Activity| {
            activity
                .rows(80)
                .iter()
                .map(StyledLine::plain)
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(row(&activity), "retry 2 of 5 in 3 s: too many requests");
        activity.set_time(Duration::from_secs(2));
        assert_eq!(row(&activity), "retry 2 of 5 in 1 s: too many requests");
        activity.set_time(Duration::from_secs(3));
        assert_eq!(
            row(&activity),
            "retry 2 of 5, waiting for the answer: too many requests"
        );
        activity.hear();
        assert_eq!(row(&activity), "");
    }

    #[test]
    fn a_silent_server_is_told_from_a_busy_one() {
        let mut activity = Activity::default();
        activity.begin();
        activity.set_time(Duration::from_secs(34));
        activity.hear_text(&"x".repeat(400));
        activity.hear();
        assert_eq!(
            activity.working(true).plain(),
            "working 34 s, Esc interrupts, ~100 tokens"
        );
        activity.set_time(Duration::from_secs(46));
        assert!(
            activity
                .working(true)
                .plain()
                .ends_with("no data from the server for 12 s")
        );
        assert!(
            !activity.working(false).plain().contains("no data"),
            "a command runs"
        );
    }
}
