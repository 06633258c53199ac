//! A tool call: a few rows while it runs and when it has finished, all of it when the user opens
//! it.
//!
//! Invariant: a running call shows its time at every width, and takes one row and at most
//! [`LIVE_ROWS`] rows of output. A result takes a bounded number of rows and a bounded amount of
//! work unless it is opened. Omitted rows are indicated.

use std::borrow::Cow;
use std::time::Duration;

use haft_agent::CHANGED_ARGUMENTS_NOTE;
use haft_messages::{CallHeadline, translate_result};
use haft_types::ToolStatus;
use serde_json::Value;

use crate::app::format_elapsed;
use crate::diff::{self, DiffHeaders};
use crate::line::{StyledLine, StyledSpan, TextStyle};
use crate::proposed_files;
use crate::wrap::wrap_hanging;

/// The maximum number of rows of an error message, unless the user opens the result.
const ERROR_ROWS: usize = 6;
const OUTPUT_ROWS: usize = 5;
/// The maximum number of rows of output that a running call shows.
const LIVE_ROWS: usize = 3;
/// The number of bytes of a running call's output that are kept.
const LIVE_BYTES: usize = 4 * 1024;
pub(crate) const DIFF_ROWS: usize = 60;
/// The maximum number of bytes of a result that are shown when the user opens the result.
const OPENED_BYTES: usize = 64 * 1024;

/// A tool call, running or finished, as it is shown to the user.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolCallView {
    pub(crate) id: String,
    pub(crate) tool: String,
    /// What the call does to its object, such as `Read`.
    pub(crate) verb: String,
    /// The object of the call, such as a path or a command.
    pub(crate) about: String,
    /// The end of the output that the call has reported while it runs.
    pub(crate) progress: String,
    /// The time at which the call started to run. `None` while it waits for earlier calls or for an
    /// approval.
    pub(crate) since: Option<Duration>,
    /// The absolute path of the call's file, if the terminal supports links.
    pub(crate) link: Option<String>,
    /// True if the user has edited the arguments.
    pub(crate) edited: bool,
}

impl ToolCallView {
    pub(crate) fn new(id: &str, tool: &str) -> Self {
        Self {
            id: id.to_owned(),
            tool: tool.to_owned(),
            verb: CallHeadline::new(tool, &Value::Null).verb,
            about: String::new(),
            progress: String::new(),
            since: None,
            link: None,
            edited: false,
        }
    }

    /// Sets the headline from the arguments of the call.
    pub(crate) fn describe(&mut self, arguments: &Value) {
        let headline = CallHeadline::new(&self.tool, arguments);
        self.verb = headline.verb;
        self.about = headline.object;
    }

    /// Returns the whole result. What haft itself says in it is worded for people; what a program
    /// printed or a file contains stays as it is.
    pub(crate) fn word_result<'a>(&self, status: ToolStatus, text: &'a str) -> Cow<'a, str> {
        if status == ToolStatus::Error || shows_output(&self.tool) {
            translate_result(text)
        } else {
            text.into()
        }
    }

    /// Removes the part of a result that reports the user's edit of the call, because that part is
    /// meant for the model.
    pub(crate) fn strip_edit_note<'a>(&self, text: &'a str) -> &'a str {
        let note = text.rfind(CHANGED_ARGUMENTS_NOTE).filter(|_| self.edited);
        note.map_or(text, |at| &text[..at])
    }

    /// Adds output that the running call has reported.
    pub(crate) fn add_progress(&mut self, text: &str) {
        self.progress.push_str(text);
        if !text.ends_with('\n') {
            self.progress.push('\n');
        }
        let start = self.progress.len().saturating_sub(LIVE_BYTES);
        let start = self.progress.ceil_char_boundary(start);
        self.progress.drain(..start);
    }

    /// Returns the time for which the call has run.
    fn elapsed(&self, now: Duration) -> Duration {
        self.since
            .map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }

    /// Draws a call without a result: its title, its time, and the last lines of its output.
    pub(crate) fn draw_running(&self, now: Duration, columns: usize) -> Vec<StyledLine> {
        let took = self.elapsed(now);
        let state = if self.since.is_none() {
            format!("  {}", text!("app-call-waits"))
        } else if took < Duration::from_secs(1) {
            String::new()
        } else {
            format!("  {}", format_elapsed(took))
        };
        let title = self.draw_title(StyledLine::new("… ", TextStyle::Accent));
        let mut rows = vec![title.with_end(&StyledLine::new(state, TextStyle::Dim), columns)];
        rows.extend(draw_last_lines(&self.progress, LIVE_ROWS, columns));
        rows
    }

    /// Draws a finished call with its outcome and, for some tools, a part of its result.
    pub(crate) fn draw_finished(
        &self,
        status: ToolStatus,
        text: &str,
        now: Duration,
        columns: usize,
    ) -> Vec<StyledLine> {
        let mark = match status {
            ToolStatus::Success => StyledLine::new("✓ ", TextStyle::Good),
            ToolStatus::Partial => StyledLine::new("~ ", TextStyle::Warning),
            ToolStatus::Error => StyledLine::new("✗ ", TextStyle::Bad),
        };
        let measure = StyledLine::new(self.summarize_outcome(status, text, now), TextStyle::Dim);
        let room = columns.saturating_sub(measure.width());
        // The outcome stays visible, however long the path is.
        let title = if room < columns / 2 {
            self.draw_title(mark)
        } else {
            self.draw_title(mark).cut(room)
        };
        let mut rows = vec![
            title
                .spans()
                .iter()
                .chain(measure.spans())
                .cloned()
                .collect::<StyledLine>(),
        ];
        rows.extend(match (status, self.tool.as_str()) {
            (ToolStatus::Error, "execute_command") => {
                draw_failed_command(&translate_result(text), columns)
            }
            (ToolStatus::Error, _) => cut_rows(
                &layout_indented(
                    &translate_result(user_part(&self.tool, text)),
                    columns,
                    TextStyle::Bad,
                ),
                ERROR_ROWS,
                OmittedEnd::Last,
            ),
            _ if diff::is_diff(text) => {
                let from = text
                    .lines()
                    .skip_while(|line| !line.starts_with("---") && !line.starts_with("@@ -"));
                let room = columns.saturating_sub(2);
                let headers = DiffHeaders::PathsOfSeveral;
                let rows = diff::draw_diff_rows(&self.about, headers, from, room);
                cut_rows(&indent_rows(rows), DIFF_ROWS, OmittedEnd::Last)
            }
            (_, tool) if shows_output(tool) => {
                // The mark already indicates success.
                let said = text
                    .strip_prefix("Exit code 0.\n--- stdout ---\n")
                    .unwrap_or(text);
                let said = said.strip_prefix("Exit code 0. No output.").unwrap_or(said);
                cut_rows(
                    &layout_indented(&translate_result(said), columns, TextStyle::Dim),
                    OUTPUT_ROWS,
                    OmittedEnd::First,
                )
            }
            _ => Vec::new(),
        });
        rows.into_iter().map(|row| row.cut(columns)).collect()
    }

    /// Draws the whole result, up to [`OPENED_BYTES`].
    pub(crate) fn draw_opened(&self, text: &str, columns: usize) -> Vec<StyledLine> {
        let mut rows = vec![
            self.draw_title(StyledLine::new("▾ ", TextStyle::Accent))
                .cut(columns),
        ];
        let limits = haft_text::CutLimits {
            lines: usize::MAX,
            bytes: OPENED_BYTES,
        };
        let text = haft_text::cut_lines(text, limits).text;
        rows.extend(indent_rows(diff::draw_diff_rows(
            "",
            DiffHeaders::Verbatim,
            text.lines(),
            columns.saturating_sub(2),
        )));
        rows
    }

    /// Summarizes the outcome in a few words: the number of matches, or the duration.
    fn summarize_outcome(&self, status: ToolStatus, text: &str, now: Duration) -> String {
        let lines = || text.lines().filter(|line| !line.trim().is_empty()).count();
        let shown = |count: usize| haft_text::format_thousands(count as u64);
        let took = self.elapsed(now);
        let said = match self.tool.as_str() {
            _ if status == ToolStatus::Error && took < Duration::from_secs(1) => {
                return String::new();
            }
            "read_file" if status == ToolStatus::Success => {
                // Notes to the model stand beside the numbered lines of the file.
                let count = match text.lines().filter(|line| is_numbered(line)).count() {
                    0 => lines(),
                    numbered => numbered,
                };
                text!("app-lines", count, shown = shown(count))
            }
            "search_files" if status == ToolStatus::Success => {
                let hits = text
                    .split_whitespace()
                    .next()
                    .and_then(|word| word.replace(',', "").parse().ok());
                let count = hits.unwrap_or(0_usize);
                text!("app-hits", count, shown = shown(count))
            }
            "list_files" | "glob" if status == ToolStatus::Success => {
                text!("app-entries", count = lines(), shown = shown(lines()))
            }
            _ if status == ToolStatus::Success && diff::is_change(text) => {
                diff::format_change_counts(text)
            }
            _ if took < Duration::from_secs(1) => return String::new(),
            _ => format!("{:.1} s", took.as_secs_f64()),
        };
        format!("  {said}")
    }

    fn draw_title(&self, mark: StyledLine) -> StyledLine {
        // Control characters of a command or path are made visible, not executed: they could hide a
        // part of it.
        let about = haft_text::reveal_controls(&cut_to_first_line(&self.about)).into_owned();
        let mut line = mark.with_text(haft_text::reveal_controls(&self.verb), TextStyle::Strong);
        if about.is_empty() {
            return line;
        }
        line.push(StyledSpan::new(" ", TextStyle::Plain));
        let about = StyledSpan::new(about, TextStyle::Plain);
        line.push(match &self.link {
            Some(path) => about.with_link(path),
            None => about,
        });
        line
    }
}

/// Returns true if the line is one of a file, after its number and a tab.
fn is_numbered(line: &str) -> bool {
    line.split_once('\t').is_some_and(|(number, _)| {
        let number = number.trim_start();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns true if the end of a successful result is shown. The results of other tools repeat what
/// the user can look up, such as the content of a file.
fn shows_output(tool: &str) -> bool {
    matches!(
        tool,
        "execute_command" | "session_start" | "session_interactive" | "use_mcp_tool" | "use_tool"
    ) || tool.starts_with("mcp__")
}

/// Returns the part of an error that concerns the user. After the first line, the error of an edit
/// quotes the file for the model.
fn user_part<'a>(tool: &str, text: &'a str) -> &'a str {
    if proposed_files::has_editable_files(tool) {
        text.lines().next().unwrap_or_default()
    } else {
        text
    }
}

/// Draws the last lines of the output of running work: at most `at_most` rows, one for each line.
pub(crate) fn draw_last_lines(output: &str, at_most: usize, columns: usize) -> Vec<StyledLine> {
    let mut lines: Vec<_> = output
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty())
        .take(at_most)
        .collect();
    lines.reverse();
    lines
        .into_iter()
        .map(|line| {
            let line = haft_messages::translate_error(line.trim_end());
            StyledLine::new("  ", TextStyle::Plain)
                .with_text(truncate_line(&line), TextStyle::Dim)
                .cut(columns)
        })
        .collect()
}

/// Returns the first line, with a mark if more lines follow.
fn cut_to_first_line(text: &str) -> String {
    match text.trim().split_once('\n') {
        Some((first, _)) => format!("{first} …"),
        None => text.trim().to_owned(),
    }
}

fn layout_indented(text: &str, columns: usize, style: TextStyle) -> Vec<StyledLine> {
    let indent = StyledLine::new("  ", TextStyle::Plain);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    // A line of a megabyte would be thousands of rows, of which only a few are shown.
    lines
        .flat_map(|line| {
            wrap_hanging(
                &StyledLine::new(truncate_line(line), style),
                &indent,
                &indent,
                columns,
            )
        })
        .collect()
}

fn truncate_line(line: &str) -> &str {
    &line[..line.floor_char_boundary(2_000)]
}

fn indent_rows(rows: Vec<StyledLine>) -> Vec<StyledLine> {
    let indented = |row: StyledLine| {
        StyledLine::new("  ", TextStyle::Plain)
            .spans()
            .iter()
            .chain(row.spans())
            .cloned()
            .collect()
    };
    rows.into_iter().map(indented).collect()
}

/// Draws the exit status of a failed command and the end of its output, preferably of stderr, which
/// explains the failure.
fn draw_failed_command(text: &str, columns: usize) -> Vec<StyledLine> {
    let (said, errors) = text.split_once("\n--- stderr ---\n").unwrap_or((text, ""));
    let (verdict, said) = said.split_once("\n--- stdout ---\n").unwrap_or((said, ""));
    let mut rows = cut_rows(
        &layout_indented(verdict, columns, TextStyle::Bad),
        ERROR_ROWS,
        OmittedEnd::Last,
    );
    let errors = layout_indented(errors, columns, TextStyle::Bad);
    let room = (2 * ERROR_ROWS)
        .saturating_sub(errors.len())
        .max(if errors.is_empty() { 0 } else { OUTPUT_ROWS });
    rows.extend(cut_rows(
        &layout_indented(said, columns, TextStyle::Dim),
        room,
        OmittedEnd::First,
    ));
    rows.extend(cut_rows(&errors, 2 * ERROR_ROWS, OmittedEnd::First));
    rows
}

/// The rows that are left out when a list of rows is too long: the first or the last.
#[derive(Clone, Copy)]
pub(crate) enum OmittedEnd {
    First,
    Last,
}

pub(crate) fn cut_rows(
    rows: &[StyledLine],
    at_most: usize,
    left_out: OmittedEnd,
) -> Vec<StyledLine> {
    let Some(extra) = rows.len().checked_sub(at_most).filter(|extra| *extra > 0) else {
        return rows.to_vec();
    };
    let note = StyledLine::new(
        format!("  {}", text!("app-more-rows", extra)),
        TextStyle::Dim,
    );
    match left_out {
        OmittedEnd::Last => rows[..at_most].iter().cloned().chain([note]).collect(),
        OmittedEnd::First => [note]
            .into_iter()
            .chain(rows[extra..].iter().cloned())
            .collect(),
    }
}

/// Draws text, wrapped between words. Indentation is kept.
pub(crate) fn wrap_text(text: &str, style: TextStyle, columns: usize) -> Vec<StyledLine> {
    let rows = |line: &str| {
        let text = line.trim_start_matches(' ');
        let indent = StyledLine::new(
            " ".repeat((line.len() - text.len()).min(columns / 2)),
            TextStyle::Plain,
        );
        wrap_hanging(&StyledLine::new(text, style), &indent, &indent, columns)
    };
    text.lines().flat_map(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain_rows(rows: &[StyledLine]) -> Vec<String> {
        rows.iter().map(StyledLine::plain).collect()
    }

    fn call(tool: &str, about: &str) -> ToolCallView {
        ToolCallView {
            about: about.into(),
            ..ToolCallView::new("1", tool)
        }
    }

    #[test]
    fn word_result_words_errors_and_notes_for_people() {
        let refused = "The user did not allow this call of `execute_command`. Find another way, or ask what they want.";
        let command = call("execute_command", "make");
        assert_eq!(
            command.word_result(ToolStatus::Error, refused),
            "Not allowed."
        );
        let noted = "[The sandbox has no network. If the task needs it, send the call again with `sandbox` set to `outside`, which asks the user. The user can add hosts to `[sandbox] network`.]";
        let worded = command.word_result(ToolStatus::Success, noted);
        assert!(
            worded.starts_with("[The sandbox has no network access."),
            "{worded}"
        );
        let read = call("read_file", "src/main.rs");
        assert_eq!(read.word_result(ToolStatus::Success, refused), refused);
    }

    #[test]
    fn call_is_one_row_without_output() {
        let rows = call("read_file", "src/main.rs").draw_finished(
            ToolStatus::Success,
            "1\tfn main() {}",
            Duration::ZERO,
            40,
        );
        assert_eq!(plain_rows(&rows), ["✓ Read src/main.rs  1 line"]);
        let rows = call("execute_command", "make").draw_finished(
            ToolStatus::Success,
            &"line\n".repeat(8),
            Duration::ZERO,
            50,
        );
        assert_eq!(rows.len(), 7);
        assert_eq!(rows[1].plain(), "  … 3 more rows; Ctrl-O for all");
        let rows = call("read_file", "x").draw_finished(
            ToolStatus::Error,
            "there is no file `x`",
            Duration::ZERO,
            40,
        );
        assert_eq!(plain_rows(&rows), ["✗ Read x", "  there is no file `x`"]);
    }

    #[test]
    fn call_shows_a_diff() {
        let text = "Changed a.rs.\n\n--- a.rs\n+++ a.rs\n@@ -1 +1 @@\n-old\n+new\n";
        let rows = call("replace_in_file", "a.rs").draw_finished(
            ToolStatus::Success,
            text,
            Duration::ZERO,
            40,
        );
        assert_eq!(
            plain_rows(&rows),
            ["✓ Edit a.rs  +1 −1", "  1 -old", "  1 +new"]
        );
    }

    #[test]
    fn call_output_stays_in_its_rows() {
        let hostile = "a\u{1b}[1A\u{1b}[2K\nb\r✓ all tests passed";
        let running = ToolCallView {
            progress: hostile.into(),
            ..call("execute_command", hostile)
        }
        .draw_running(Duration::ZERO, 40);
        assert!(running.iter().all(|row| row.width() <= 40));
        assert!(
            running[0].plain().contains("a␛[1A␛[2K …"),
            "{}",
            running[0].plain()
        );
        let rows = call("execute_command", hostile).draw_finished(
            ToolStatus::Error,
            &"x".repeat(1_000_000),
            Duration::ZERO,
            40,
        );
        assert!(rows.len() <= ERROR_ROWS + 2);
        assert!(
            rows.iter()
                .chain(&running)
                .all(|row| !row.plain().contains(char::is_control))
        );
    }

    #[test]
    fn running_call_shows_time_and_last_lines_at_every_width() {
        let mut running = ToolCallView {
            since: Some(Duration::ZERO),
            ..call(
                "execute_command",
                "for i in 1 2 3 4 5 6; do echo tick $i; sleep 1; done",
            )
        };
        running.add_progress("tick 1\ntick 2\n");
        running.add_progress("tick 3\n\ntick 4");
        for columns in [20, 40, 80, 120] {
            let rows = plain_rows(&running.draw_running(Duration::from_secs(64), columns));
            assert!(rows[0].ends_with("  1 min 4 s"), "{columns}: {rows:?}");
            assert_eq!(rows[1..], ["  tick 2", "  tick 3", "  tick 4"]);
        }
        let waiting = call("execute_command", "make");
        let rows = waiting.draw_running(Duration::from_secs(64), 80);
        assert_eq!(plain_rows(&rows), ["… Run make  waiting"]);
    }
}
