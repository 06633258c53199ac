//! Everything that is printed: results for programs, tables and progress for people.
//!
//! Text that haft did not write itself goes through the sanitiser before it reaches a terminal. A reader that went away
//! (`haft … | head`) is no error.

mod events;
mod table;

use std::io::{ErrorKind, Write};

use haft_text::Masker;

pub(crate) use events::Printer;
pub(crate) use table::Table;

/// Prints to stdout.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Prints a JSON value on one line.
pub(crate) fn print_json(value: &serde_json::Value) -> anyhow::Result<()> {
    print(&format!("{value}\n"))
}

/// Tells a person something, on stderr.
pub(crate) fn tell(line: &str) {
    // Where stderr is gone there is nobody to tell.
    drop(writeln!(std::io::stderr(), "{}", haft_text::sanitise(&Masker::default().mask(line))));
}
