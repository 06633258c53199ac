//! The arguments of `haft useful` and `haft notes`.

use std::str::FromStr;

use clap::{Args, Subcommand};

use super::Common;

#[derive(Debug, Args)]
pub(crate) struct UsefulArgs {
    /// A list when absent.
    #[command(subcommand)]
    pub(crate) command: Option<UsefulCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UsefulCommand {
    /// List the file ranges the model keeps in view.
    List {
        #[command(flatten)]
        of: OfConversation,
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Show a file range as the model sees it: its current lines.
    Show {
        /// Its number, as `list` shows it.
        number: u32,
        #[command(flatten)]
        of: OfConversation,
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Keep a file range in view: its current lines are shown to the model in every request.
    Add {
        /// The file.
        path: String,
        /// Its lines, such as `10-20` or `7`.
        lines: Lines,
        /// Why it matters, in a few words.
        description: String,
        #[command(flatten)]
        of: OfConversation,
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Take a file range out of view. The file is not touched.
    Remove {
        /// Its number, as `list` shows it.
        number: u32,
        #[command(flatten)]
        of: OfConversation,
        #[command(flatten)]
        common: Common,
    },
}

/// Which conversation is meant.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OfConversation {
    /// An id, the beginning of one, or a name; the current conversation when absent.
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,
}

/// A range of lines, from 1, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl FromStr for Lines {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected lines from 1, such as `10-20` or `7`".to_owned();
        let (start, end) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let (start, end) = (number(start)?, number(end)?);
        if start == 0 || end < start { Err(wrong()) } else { Ok(Self { start, end }) }
    }
}

#[derive(Debug, Args)]
pub(crate) struct NotesArgs {
    /// A list when absent.
    #[command(subcommand)]
    pub(crate) command: Option<NotesCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NotesCommand {
    /// List all notes of this project.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Show the notes on a path, on the folders above it and on everything below it, whole.
    Show {
        /// A folder or file.
        path: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Write a note on a folder or file; the model is shown it when it works there.
    Add {
        /// The folder or file.
        path: String,
        /// The note.
        text: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Delete a note.
    Remove {
        /// Its id, as `list` shows it.
        id: String,
        #[command(flatten)]
        common: Common,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_one_number_or_two() {
        assert_eq!("7".parse(), Ok(Lines { start: 7, end: 7 }));
        assert_eq!("10-20".parse(), Ok(Lines { start: 10, end: 20 }));
        for wrong in ["", "0", "0-3", "5-4", "a", "1-", "-3", "1-2-3", "99999999999"] {
            assert!(wrong.parse::<Lines>().is_err(), "{wrong}");
        }
    }
}
