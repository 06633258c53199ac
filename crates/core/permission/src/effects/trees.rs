//! Recognizes commands that read everything below the folders they name.

use super::risks::may_be_option;
use super::tables::program_tables;
use crate::shell::ShellWord;

/// The files that a command reads below a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TreeReading {
    /// The command reads all files except hidden ones.
    Visible,
    All,
}

/// Determines the files that a command reads below the folders that it names. Returns `None` if the
/// command does not read folders.
pub(crate) fn detect_tree_reading(words: &[ShellWord]) -> Option<TreeReading> {
    let name = words.first().and_then(ShellWord::base_name)?;
    let walkers = program_tables()?
        .walkers
        .iter()
        .filter(|walker| walker.names.contains(name));
    let readings = walkers.filter_map(|walker| {
        let asked = |(at, word): (usize, &ShellWord)| {
            at > 0 && (walker.is_risky(word, at) || may_be_option(word))
        };
        let walks = walker.names_no_words() || words.iter().enumerate().any(asked);
        walks.then_some(if walker.skips_hidden {
            TreeReading::Visible
        } else {
            TreeReading::All
        })
    });
    readings.max()
}
