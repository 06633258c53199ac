//! Reads conversations of other programs from a file or a folder.

use std::path::Path;

use haft_imports::{ImportedConversation, list_conversation_files, read_conversation_file};
use haft_lab::{ImaginedReminders, RecordedConversation};
use haft_model::O200k;

use super::ReplayArgs;
use crate::exit::usage_error;
use crate::output;

/// Reads the recordings in the file or folder that the arguments name.
pub(super) fn read_recordings(args: &ReplayArgs) -> anyhow::Result<Vec<RecordedConversation>> {
    let imagined = ImaginedReminders {
        tokens: args.reminders.tokens,
        changes: args.reminders.changes,
        from_first: false,
    };
    let all = match (&args.from_file, &args.import) {
        (Some(file), _) => return read_recording_file(file, imagined),
        (None, Some(file)) if file.is_file() => return read_recording_file(file, imagined),
        (None, Some(folder)) => read_folder(folder)?,
        (None, None) => Vec::new(),
    };
    convert_to_recordings(all, imagined)
}

/// Reads the recordings in a file.
pub(super) fn read_recording_file(
    file: &Path,
    imagined: ImaginedReminders,
) -> anyhow::Result<Vec<RecordedConversation>> {
    let read = read_conversation_file(file);
    let all = read.map_err(|error| {
        let problem = output::localize_text(error);
        usage_error(text!("replay-bad-file", file = file.display(), problem))
    })?;
    convert_to_recordings(all, imagined)
}

fn convert_to_recordings(
    all: Vec<ImportedConversation>,
    imagined: ImaginedReminders,
) -> anyhow::Result<Vec<RecordedConversation>> {
    let mut recorded = Vec::new();
    for one in all {
        let name = one.document.name;
        let messages = one.document.messages;
        recorded.extend(RecordedConversation::from_messages(
            name, messages, imagined, &O200k,
        )?);
    }
    if recorded.is_empty() {
        return Err(usage_error(text!("replay-no-requests")));
    }
    Ok(recorded)
}

/// Reads the conversations of all files in a folder. Unreadable files are reported and skipped.
fn read_folder(folder: &Path) -> anyhow::Result<Vec<ImportedConversation>> {
    let files = list_conversation_files(folder).map_err(|error| {
        usage_error(text!(
            "replay-unreadable-folder",
            folder = folder.display(),
            error
        ))
    })?;
    let mut all = Vec::new();
    for file in &files {
        match read_conversation_file(file) {
            Ok(some) => all.extend(some),
            Err(error) => {
                let problem = output::localize_text(error);
                output::print_to_stderr(&format!(
                    "haft: {}",
                    text!("replay-skipped", file = file.display(), problem)
                ));
            }
        }
    }
    if all.is_empty() {
        let files = files.len();
        return Err(usage_error(text!(
            "replay-none-in-folder",
            folder = folder.display(),
            files
        )));
    }
    Ok(all)
}
