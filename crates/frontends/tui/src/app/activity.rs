//! Work in progress and its duration: the turn, commands in the user's shell, the wait before a
//! request is sent again.
//!
//! Invariant: the clock is set from outside, so everything here is a function of events and times.

use std::time::Duration;

use haft_text::format_thousands;
use haft_types::Usage;

use crate::line::{StyledLine, TextStyle};
use crate::wrap::wrap_line;

/// The maximum number of rows for the cause of a retry.
const MAX_RETRY_ROWS: usize = 3;
/// The time without data after which a server is reported as silent.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(10);
/// The estimated number of bytes per token, used for text that the server has not counted yet.
const TOKEN_BYTES: u64 = 4;
/// The images of the sign that moves while a turn runs, each shown for [`FRAME_TIME`].
const FRAMES: [&str; 10] = ["⠋ ", "⠙ ", "⠹ ", "⠸ ", "⠼ ", "⠴ ", "⠦ ", "⠧ ", "⠇ ", "⠏ "];
pub(crate) const FRAME_TIME: Duration = Duration::from_millis(120);

#[derive(Debug, Default)]
pub(super) struct Activity {
    now: Duration,
    /// The time at which the current turn started.
    turn: Duration,
    /// The time of the last event in the current turn.
    heard: Duration,
    /// The number of output tokens in this turn, as counted by the server. `bytes` is the length of
    /// the text that arrived after the last count.
    tokens: u64,
    bytes: u64,
    shells: Vec<ShellRun>,
    retry: Option<PendingRetry>,
    /// True if a sign moves while the turn runs.
    is_animated: bool,
}

/// A command in the user's shell.
#[derive(Debug)]
struct ShellRun {
    id: u64,
    line: String,
    since: Duration,
    ended: bool,
}

/// A failed request that will be sent again at the time `at`.
#[derive(Debug)]
struct PendingRetry {
    at: Duration,
    /// The number of the next attempt, as text.
    attempt: String,
    reason: String,
}

impl Activity {
    pub(super) fn set_time(&mut self, now: Duration) {
        self.now = now;
    }

    pub(super) fn enable_animation(&mut self) {
        self.is_animated = true;
    }

    pub(super) fn is_animated(&self) -> bool {
        self.is_animated
    }

    pub(super) fn now(&self) -> Duration {
        self.now
    }

    /// Starts measuring the time of a turn.
    pub(super) fn begin_turn(&mut self) {
        (self.turn, self.heard, self.tokens, self.bytes, self.retry) =
            (self.now, self.now, 0, 0, None);
    }

    /// Returns the duration of the turn so far.
    pub(super) fn turn_time(&self) -> Duration {
        self.now.saturating_sub(self.turn)
    }

    /// Records that the server or a tool has just sent something.
    pub(super) fn note_activity(&mut self) {
        (self.heard, self.retry) = (self.now, None);
    }

    pub(super) fn note_text(&mut self, text: &str) {
        self.bytes += text.len() as u64;
    }

    pub(super) fn note_usage(&mut self, usage: Usage) {
        (self.tokens, self.bytes) = (self.tokens + usage.output, 0);
    }

    /// Records that the request will be sent again after `delay_ms`.
    pub(super) fn set_retry(
        &mut self,
        attempt: u32,
        limit: Option<u32>,
        delay_ms: u64,
        reason: &str,
    ) {
        let attempt = match limit {
            Some(limit) => text!("app-retry-of", attempt, limit),
            None => text!("app-retry-unlimited", attempt),
        };
        let at = self.now + Duration::from_millis(delay_ms);
        self.bytes = 0;
        self.retry = Some(PendingRetry {
            at,
            attempt,
            reason: haft_messages::translate_error(reason).into_owned(),
        });
    }

    pub(super) fn add_shell(&mut self, id: u64, line: String) {
        self.shells.push(ShellRun {
            id,
            line,
            since: self.now,
            ended: false,
        });
    }

    pub(super) fn end_shell(&mut self, id: u64) {
        self.shells
            .iter_mut()
            .filter(|shell| shell.id == id)
            .for_each(|shell| shell.ended = true);
    }

    /// Forgets the commands that have ended, once their output is printed.
    pub(super) fn forget_ended(&mut self) {
        self.shells.retain(|shell| !shell.ended);
    }

    /// Returns the command lines that are still running.
    pub(super) fn shell_lines(&self) -> impl Iterator<Item = &str> {
        self.shells
            .iter()
            .filter(|shell| !shell.ended)
            .map(|shell| shell.line.as_str())
    }

    /// Returns the id of the newest command that is still running.
    pub(super) fn newest_shell(&self) -> Option<u64> {
        self.shells
            .iter()
            .rfind(|shell| !shell.ended)
            .map(|shell| shell.id)
    }

    /// Returns true if the rows must be redrawn regularly because they show times.
    pub(super) fn changes_over_time(&self) -> bool {
        self.retry.is_some() || !self.shells.is_empty()
    }

    pub(super) fn draw_rows(&self, columns: usize) -> Vec<StyledLine> {
        let mut rows: Vec<_> = self
            .shells
            .iter()
            .map(|shell| self.draw_shell_row(shell, columns))
            .collect();
        if let Some(retry) = &self.retry {
            let left = retry.at.saturating_sub(self.now).as_millis().div_ceil(1000) as u64;
            let attempt = &retry.attempt;
            let reason = &retry.reason;
            let text = match left {
                0 => text!("app-retry-now", attempt, reason),
                _ => text!("app-retry", attempt, wait = left, reason),
            };
            let line = StyledLine::new(text, TextStyle::Warning);
            let wrapped = wrap_line(&line, columns);
            // A longer cause, such as a web page, is cut.
            if wrapped.len() <= MAX_RETRY_ROWS {
                rows.extend(wrapped);
            } else {
                rows.push(line.cut(columns));
            }
        }
        rows
    }

    fn draw_shell_row(&self, shell: &ShellRun, columns: usize) -> StyledLine {
        let row = StyledLine::new("… ", TextStyle::Accent)
            .with_text(haft_text::reveal_controls(&shell.line), TextStyle::Strong);
        let rest = if shell.ended {
            text!("app-shell-held").to_owned()
        } else {
            text!(
                "app-shell-running",
                elapsed = format_elapsed(self.now.saturating_sub(shell.since))
            )
        };
        row.with_end(
            &StyledLine::new(format!("  {rest}"), TextStyle::Dim),
            columns,
        )
    }

    /// Draws the duration of the turn, its output tokens, and a warning if the server is silent.
    /// `waits` is true if the turn waits for the server, not for a tool; `is_queued` is true if
    /// input waits for the end of the turn. The tokens are omitted if they don't fit.
    pub(super) fn draw_working_line(
        &self,
        waits: bool,
        is_queued: bool,
        columns: usize,
    ) -> StyledLine {
        let mut parts = vec![text!("app-working").to_owned()];
        let since = self.now.saturating_sub(self.turn);
        if since >= Duration::from_secs(1) {
            parts[0] = text!("app-working-for", elapsed = format_elapsed(since));
        }
        let tokens = self.tokens + self.bytes / TOKEN_BYTES;
        if tokens > 0 {
            let about = if self.bytes > 0 { "~" } else { "" };
            parts.push(text!(
                "app-tokens-out",
                tokens = format_args!("{about}{}", format_thousands(tokens)),
                count = tokens
            ));
        }
        parts.push(
            if is_queued {
                text!("app-send-key")
            } else {
                text!("app-interrupt-key")
            }
            .to_owned(),
        );
        let sign = if self.is_animated {
            let frame = self.now.as_millis() / FRAME_TIME.as_millis();
            FRAMES[frame as usize % FRAMES.len()]
        } else {
            ""
        };
        let mut line = StyledLine::new(format!("{sign}{}", parts.join(" · ")), TextStyle::Accent);
        if line.width() > columns && parts.len() > 2 {
            parts.remove(1);
            line = StyledLine::new(format!("{sign}{}", parts.join(" · ")), TextStyle::Accent);
        }
        let silence = self.now.saturating_sub(self.heard);
        if waits && silence >= SILENCE_TIMEOUT && self.retry.is_none() {
            let text = text!("app-silent", elapsed = format_elapsed(silence));
            return line.with_text(format!(" · {text}"), TextStyle::Warning);
        }
        line
    }
}

/// Formats a duration for people, in its two largest units.
pub fn format_elapsed(time: Duration) -> String {
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
    fn elapsed_uses_two_units() {
        let said = [0, 59, 60, 3_599, 3_600, 90_000]
            .map(|seconds| format_elapsed(Duration::from_secs(seconds)));
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
    fn retry_counts_down_and_disappears() {
        let mut activity = Activity::default();
        activity.set_retry(2, Some(5), 2_500, "too many requests");
        let row = |activity: &Activity| {
            activity
                .draw_rows(80)
                .iter()
                .map(StyledLine::plain)
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(row(&activity), "retry 2 of 5 in 3 s: too many requests");
        let narrow: Vec<_> = activity
            .draw_rows(24)
            .iter()
            .map(StyledLine::plain)
            .collect();
        assert_eq!(narrow, ["retry 2 of 5 in 3 s: too", "many requests"]);
        activity.set_time(Duration::from_secs(2));
        assert_eq!(row(&activity), "retry 2 of 5 in 1 s: too many requests");
        activity.set_time(Duration::from_secs(3));
        assert_eq!(
            row(&activity),
            "retry 2 of 5, waiting for a response: too many requests"
        );
        activity.note_activity();
        assert_eq!(row(&activity), "");
    }

    #[test]
    fn working_line_reports_a_silent_server() {
        let mut activity = Activity::default();
        activity.begin_turn();
        activity.set_time(Duration::from_secs(34));
        activity.note_text(&"x".repeat(400));
        activity.note_activity();
        assert_eq!(
            activity.draw_working_line(true, false, 80).plain(),
            "Working 34 s · ~100 tokens · Esc to interrupt"
        );
        assert_eq!(
            activity.draw_working_line(true, false, 40).plain(),
            "Working 34 s · Esc to interrupt"
        );
        activity.set_time(Duration::from_secs(46));
        assert!(
            activity
                .draw_working_line(true, false, 80)
                .plain()
                .ends_with("no data from the server for 12 s")
        );
        assert!(
            !activity
                .draw_working_line(false, false, 80)
                .plain()
                .contains("no data"),
            "a command runs"
        );
    }
}
