//! Reads conversations of other programs from a file or a folder. Input is bounded: a file is text
//! of at most one gigabyte, with lines of at most 64 megabytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use haft_imports::{ImportedConversation, SourceText, read_conversations, read_stored_text};
use haft_lab::{ImaginedReminders, RecordedConversation};
use haft_model::O200k;
use haft_types::Timestamp;

use super::ReplayArgs;
use crate::exit::usage_error;
use crate::output;

const MAX_LINE_BYTES: u64 = 64 << 20;
const MAX_FILE_BYTES: u64 = 1 << 30;
/// The number of folder levels that are searched below the named folder.
const MAX_FOLDER_DEPTH: usize = 8;

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
    let all = read
        .map_err(|problem| usage_error(text!("replay-bad-file", file = file.display(), problem)))?;
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
    let mut files = Vec::new();
    list_files(folder, MAX_FOLDER_DEPTH, &mut files).map_err(|error| {
        usage_error(text!(
            "replay-unreadable-folder",
            folder = folder.display(),
            error
        ))
    })?;
    files.sort();
    let mut all = Vec::new();
    for file in &files {
        match read_conversation_file(file) {
            Ok(some) => all.extend(some),
            Err(problem) => output::print_to_stderr(&format!(
                "haft: {}",
                text!("replay-skipped", file = file.display(), problem)
            )),
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

fn list_files(folder: &Path, deeper: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let kind = entry.file_type()?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let wanted = [".json", ".jsonl", ".traj", ".json.gz", ".jsonl.gz", ".db"]
            .iter()
            .any(|end| name.ends_with(end));
        if name == "events" && folder.join("base_state.json").is_file() {
            // These are the events of one OpenHands conversation, which is imported by
            // `base_state.json`.
            continue;
        }
        if kind.is_dir() && deeper > 0 {
            list_files(&path, deeper - 1, files)?;
        } else if kind.is_file() && wanted {
            files.push(path);
        }
    }
    Ok(())
}

/// Reads the conversations of a file. The error is a message about the file's problem.
fn read_conversation_file(path: &Path) -> Result<Vec<ImportedConversation>, String> {
    let stored = read_stored_text(path, None).map_err(|error| error.to_string())?;
    let text = if let Some(text) = stored {
        text
    } else if path == Path::new("-") {
        read_bounded_text(io::stdin().lock())?
    } else {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let mut reader = BufReader::new(file);
        let begin = reader.fill_buf().map_err(|error| error.to_string())?;
        if begin.starts_with(&[0x1f, 0x8b]) {
            read_bounded_text(BufReader::new(MultiGzDecoder::new(reader)))?
        } else {
            read_bounded_text(reader)?
        }
    };
    if text.trim().is_empty() {
        return Err(text!("replay-empty-file").to_owned());
    }
    let read = |text: &str| {
        read_conversations(
            SourceText {
                text,
                now: Timestamp::UNIX_EPOCH,
            },
            None,
        )
    };
    match read(&text) {
        Ok(all) => Ok(all),
        Err(error) => {
            // Chats of other programs may be stored one per line.
            let lines = || {
                text.lines()
                    .enumerate()
                    .filter(|(_, line)| !line.trim().is_empty())
            };
            let object =
                |line: &str| line.trim_start().starts_with('{') && line.contains("\"messages\"");
            if lines().count() < 2 || !lines().all(|(_, line)| object(line)) {
                return Err(error.to_string());
            }
            let mut all = Vec::new();
            for (index, line) in lines() {
                all.extend(read(line).map_err(|error| format!("line {}: {error}", index + 1))?);
            }
            Ok(all)
        }
    }
}

/// Reads the text of a file. Returns an error if a line or the whole text exceeds its limit.
fn read_bounded_text(mut reader: impl BufRead) -> Result<String, String> {
    let mut text = String::new();
    for number in 1.. {
        let mut line = Vec::new();
        let read = reader
            .by_ref()
            .take(MAX_LINE_BYTES + 1)
            .read_until(b'\n', &mut line);
        let read = read.map_err(|error| text!("replay-line-unreadable", number, error))?;
        if read == 0 {
            break;
        }
        if read as u64 > MAX_LINE_BYTES {
            return Err(text!(
                "replay-line-too-long",
                number,
                longest_line = MAX_LINE_BYTES >> 20
            ));
        }
        if (text.len() + read) as u64 > MAX_FILE_BYTES {
            return Err(text!(
                "replay-file-too-large",
                largest_file = MAX_FILE_BYTES >> 20
            ));
        }
        text.push_str(str::from_utf8(&line).map_err(|_| text!("replay-line-not-text", number))?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_for(bytes: &[u8]) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        read_conversation_file(file.path()).unwrap_err()
    }

    #[test]
    fn read_conversation_file_rejects_bad_files_with_the_reason() {
        assert_eq!(error_for(b""), "it is empty");
        assert_eq!(
            error_for(b"{\"messages\": []}\n\xff\n"),
            "line 2 is not UTF-8 text"
        );
        assert!(
            error_for(b"{\"messages\": [").contains("not JSON"),
            "{}",
            error_for(b"{\"messages\": [")
        );
        let two =
            b"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n{\"messages\": 7}\n";
        assert!(error_for(two).starts_with("line 2: "), "{}", error_for(two));
        assert!(
            error_for(b"\x1f\x8bnot really").contains("line 1 cannot be read"),
            "{}",
            error_for(b"\x1f\x8bnot really")
        );
    }

    #[test]
    fn read_bounded_text_refuses_a_line_without_end() {
        let endless = BufReader::new(io::repeat(b'x'));
        assert_eq!(
            read_bounded_text(endless).unwrap_err(),
            "line 1 is longer than 64 MiB"
        );
    }

    #[test]
    fn read_conversation_file_reads_one_chat_per_line() {
        let line = r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{line}\n\n{line}\n")).unwrap();
        assert_eq!(read_conversation_file(file.path()).unwrap().len(), 2);
    }
}
