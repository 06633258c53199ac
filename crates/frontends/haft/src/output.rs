//! Everything that is printed: results for programs, tables and progress for people.
//!
//! Text for people goes through the sanitiser; in JSON what a terminal would act on is escaped. A
//! reader that went away (`haft … | head`) is no error.

mod agents;
mod events;
pub(crate) mod hints;
mod messages;
mod table;
pub(crate) mod usage;

use std::borrow::Borrow;
use std::fmt::Display;
use std::io::{ErrorKind, Write};

use haft_text::Masker;
use haft_types::{SandboxLayer, SandboxStatus};
use serde::Serialize;

pub(crate) use events::Printer;
pub(crate) use messages::MESSAGES;
pub(crate) use table::TextTable;

/// How wide rows for people may be: as `COLUMNS` says, else as wide as the terminal; none where
/// nobody looks.
pub(crate) fn columns() -> Option<usize> {
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

/// Prints text for people to stdout. Names of files and folders are as untrusted as anything else
/// in it.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    print_exact(&haft_text::sanitise(text))
}

/// Prints a line, or several, for people to stdout.
pub(crate) fn say(text: &str) -> anyhow::Result<()> {
    print(&format!("{text}\n"))
}

/// Prints to stdout as it is: for programs, or what is sanitised already.
pub(crate) fn print_exact(text: &str) -> anyhow::Result<()> {
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

/// Prints one line of JSON that somebody waits for. A reader that went away does not stop the run:
/// its work is stored.
pub(crate) fn print_line(value: &impl Serialize) {
    let mut out = std::io::stdout().lock();
    if let Ok(line) = serde_json::to_string(value) {
        let line = haft_text::escape_json(&line) + "\n";
        drop(out.write_all(line.as_bytes()).and_then(|()| out.flush()));
    }
}

/// Prints a message for a person, on stderr.
pub(crate) fn tell(line: &str) {
    // Where stderr is gone there is nowhere to report it.
    drop(writeln!(
        std::io::stderr(),
        "{}",
        haft_text::sanitise(&Masker::default().mask(line))
    ));
}

/// What a library says, in the language of this process.
pub(crate) fn localised(text: impl Display) -> String {
    haft_messages::error_text(&text.to_string()).into_owned()
}

/// Names behind each other.
pub(crate) fn listed<T: Borrow<str>>(names: &[T]) -> String {
    names.join(text!("output-between"))
}

/// What holds commands in, in one line.
pub(crate) fn sandbox(status: &SandboxStatus) -> String {
    text!("output-sandbox", what = sandbox_layer(status))
}

/// The same without saying what it is of.
pub(crate) fn sandbox_layer(status: &SandboxStatus) -> String {
    let what = match status.layer {
        SandboxLayer::Namespace => text!("output-sandbox-namespace"),
        SandboxLayer::Landlock => text!("output-sandbox-landlock"),
        SandboxLayer::None => text!("output-sandbox-none"),
    };
    let reasons = localised(status.reasons.join("; "));
    if reasons.is_empty() {
        what.to_owned()
    } else {
        text!("output-sandbox-because", what, reasons)
    }
}

/// A size for people.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if count < 1_000 {
        return format!("{count} B");
    }
    let mut size = count as f64 / 1_000.0;
    let mut unit = UNITS[0];
    for larger in &UNITS[1..] {
        // Rounded it would read as a thousand of the smaller unit.
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
    fn sizes_are_read_at_a_glance() {
        let sizes = [0, 999, 1_000, 999_949, 999_950, 2_147_483_648, u64::MAX].map(bytes);
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
