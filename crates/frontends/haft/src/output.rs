//! Prints all output: results for programs, tables and progress for people.
//!
//! Text for people is sanitized; in JSON, characters that a terminal would interpret are escaped. A
//! reader that closes the pipe (`haft … | head`) is not an error.

mod agents;
mod events;
pub(crate) mod hints;
mod live_run;
mod messages;
pub(crate) mod progress_line;
mod table;
pub(crate) mod usage;

use std::borrow::Borrow;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal as _, Write};

use haft_text::Masker;
use haft_tui::Palette;
use haft_types::{SandboxLayer, SandboxStatus};
use serde::Serialize;

pub(crate) use events::Printer;
pub(crate) use messages::MESSAGES;
pub(crate) use table::TextTable;

/// Returns the maximum width of rows for people: `COLUMNS` if it is set, else the width of the
/// terminal, or `None` if stdout is not a terminal.
pub(crate) fn available_columns() -> Option<usize> {
    let said = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    let shown = || {
        Some(
            rustix::termios::tcgetwinsize(std::io::stdout())
                .ok()?
                .ws_col
                .into(),
        )
    };
    said.or_else(shown).filter(|columns| *columns > 0)
}

/// Sanitizes text for people and prints it to stdout. Names of files and folders in the text are
/// untrusted, too.
pub(crate) fn print_text(text: &str) -> anyhow::Result<()> {
    print_exact(&haft_text::sanitize(text))
}

/// Like [`print_text`], but breaks long lines between words if stdout is a terminal.
pub(crate) fn print_wrapped(text: &str) -> anyhow::Result<()> {
    if std::io::stdout().is_terminal() {
        print_text(&haft_tui::wrap_to_terminal(text))
    } else {
        print_text(text)
    }
}

/// Prints one or more lines for people to stdout.
pub(crate) fn print_text_line(text: &str) -> anyhow::Result<()> {
    print_text(&format!("{text}\n"))
}

/// Prints text to stdout unchanged: output for programs, or text that is already sanitized.
pub(crate) fn print_exact(text: &str) -> anyhow::Result<()> {
    let _quiet = progress_line::hold_line();
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Prints a JSON value on one line.
pub(crate) fn print_json(value: &serde_json::Value) -> anyhow::Result<()> {
    print_exact(&haft_text::escape_json(&format!("{value}\n")))
}

/// Prints a value as one line of JSON and flushes stdout. Errors are ignored: a reader that closed
/// the pipe must not stop the run, whose work is stored.
pub(crate) fn print_json_line(value: &impl Serialize) {
    let mut out = std::io::stdout().lock();
    if let Ok(line) = serde_json::to_string(value) {
        let line = haft_text::escape_json(&line) + "\n";
        drop(out.write_all(line.as_bytes()).and_then(|()| out.flush()));
    }
}

/// Prints a message for people on stderr, with secrets masked.
pub(crate) fn print_to_stderr(line: &str) {
    let _quiet = progress_line::hold_line();
    let masker = Masker::default();
    let line = masker.mask(line);
    let line = haft_text::sanitize(&line);
    let shown = if std::io::stderr().is_terminal() {
        haft_tui::wrap_to_terminal(&line).into()
    } else {
        line
    };
    // If stderr is closed, the error cannot be reported anywhere.
    drop(writeln!(std::io::stderr(), "{shown}"));
}

/// Selects the colors of this process's terminal.
pub(crate) fn choose_palette() -> Palette {
    let without_colors = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match std::env::var("TERM").as_deref() {
        Ok("dumb") => Palette::Plain,
        _ if without_colors => Palette::Attributes,
        _ => Palette::Colour,
    }
}

/// Translates a library's message into the language of this process.
pub(crate) fn localize_text(text: impl Display) -> String {
    haft_messages::translate_error(&text.to_string()).into_owned()
}

/// Joins names with the separator of the user's language.
pub(crate) fn join_names<T: Borrow<str>>(names: &[T]) -> String {
    names.join(text!("output-between"))
}

/// Formats a cost to append to other text, or returns an empty string if it is unknown.
pub(crate) fn cost_suffix(usd: Option<f64>) -> String {
    usd.map_or_else(String::new, |usd| {
        format!(
            "{}{}",
            text!("output-comma"),
            haft_text::format_dollars(usd)
        )
    })
}

/// Describes the sandbox of commands in one line.
pub(crate) fn describe_sandbox(status: &SandboxStatus) -> String {
    text!("output-sandbox", what = describe_layer(status))
}

/// Like [`describe_sandbox`], but without the label in front.
pub(crate) fn describe_layer(status: &SandboxStatus) -> String {
    let what = match status.layer {
        SandboxLayer::Namespace => text!("output-sandbox-namespace"),
        SandboxLayer::Landlock => text!("output-sandbox-landlock"),
        SandboxLayer::None => text!("output-sandbox-none"),
    };
    let reasons = localize_text(status.reasons.join("; "));
    if reasons.is_empty() {
        what.to_owned()
    } else {
        text!("output-sandbox-because", what, reasons)
    }
}

/// Formats a size for people, such as `1.2 MB`.
pub(crate) fn format_bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if count < 1_000 {
        return format!("{count} B");
    }
    let mut size = count as f64 / 1_000.0;
    let mut unit = UNITS[0];
    for larger in &UNITS[1..] {
        // From 999.95 on, the size would print as `1000.0` of the smaller unit.
        if size < 999.95 {
            break;
        }
        (size, unit) = (size / 1_000.0, larger);
    }
    format!("{size:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_bytes_uses_decimal_units() {
        let sizes = [0, 999, 1_000, 999_949, 999_950, 2_147_483_648, u64::MAX].map(format_bytes);
        assert_eq!(
            sizes,
            [
                "0 B",
                "999 B",
                "1.0 kB",
                "999.9 kB",
                "1.0 MB",
                "2.1 GB",
                "18446744.1 TB"
            ]
        );
    }
}
