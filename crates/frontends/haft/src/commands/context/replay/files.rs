//! Reads conversations of other programs from a file or a folder. Input is bounded: a file is text
//! of at most a gigabyte, a line of it at most 64 megabytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use haft_imports::{ImportedConversation, SourceText, read_conversations, stored_text};
use haft_lab::{ImaginedReminders, RecordedConversation};
use haft_model::O200k;
use haft_types::Timestamp;

use super::ReplayArgs;
use crate::exit::usage_error;
use crate::output;

const LONGEST_LINE: u64 = 64 << 20;
const LARGEST_FILE: u64 = 1 << 30;
/// The number of folder levels that are searched below the named folder.
const DEEPEST: usize = 8;

/// Reads the recordings in the file or folder that the arguments name.
pub(super) fn read(args: &ReplayArgs) -> anyhow::Result<Vec<RecordedConversation>> {
    let imagined = ImaginedReminders {
        tokens: args.reminders.tokens,
        changes: args.reminders.changes,
        from_first: false,
    };
    let all = match (&args.from_file, &args.import) {
        (Some(file), _) => return recorded_in(file, imagined),
        (None, Some(file)) if file.is_file() => return recorded_in(file, imagined),
        (None, Some(folder)) => in_folder(folder)?,
        (None, None) => Vec::new(),
    };
    recorded(all, imagined)
}

/// Reads the recordings in a file.
pub(super) fn recorded_in(
    file: &Path,
    imagined: ImaginedReminders,
) -> anyhow::Result<Vec<RecordedConversation>> {
    let read = conversations(file);
    let all = read
        .map_err(|problem| usage_error(text!("replay-bad-file", file = file.display(), problem)))?;
    recorded(all, imagined)
}

fn recorded(
    all: Vec<ImportedConversation>,
    imagined: ImaginedReminders,
) -> anyhow::Result<Vec<RecordedConversation>> {
    let mut recorded = Vec::new();
    for one in all {
        let name = one.document.name;
        let messages = one.document.messages;
        recorded.extend(RecordedConversation::of_messages(
            name, messages, imagined, &O200k,
        )?);
    }
    if recorded.is_empty() {
        return Err(usage_error(text!("replay-no-requests")));
    }
    Ok(recorded)
}

/// Reads the conversations of all files in a folder. Unreadable files are reported and skipped.
fn in_folder(folder: &Path) -> anyhow::Result<Vec<ImportedConversation>> {
    let mut files = Vec::new();
    list(folder, DEEPEST, &mut files).map_err(|error| {
        usage_error(text!(
            "replay-unreadable-folder",
            folder = folder.display(),
            error
        ))
    })?;
    files.sort();
    let mut all = Vec::new();
    for file in &files {
        match conversations(file) {
            Ok(some) => all.extend(some),
            Err(problem) => output::tell(&format!(
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

fn list(folder: &Path, deeper: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
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
            list(&path, deeper - 1, files)?;
        } else if kind.is_file() && wanted {
            files.push(path);
        }
    }
    Ok(())
}

/// Reads the conversations of a file. The error is a message about the file's problem.
fn conversations(path: &Path) -> Result<Vec<ImportedConversation>, String> {
    let stored = stored_text(path, None).map_err(|error| error.to_string())?;
    let text = if let Some(text) = stored {
        text
    } else if path == Path::new("-") {
        text(io::stdin().lock())?
    } else {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let mut reader = BufReader::new(file);
        let begin = reader.fill_buf().map_err(|error| error.to_string())?;
        if begin.starts_with(&[0x1f, 0x8b]) {
            text(BufReader::new(MultiGzDecoder::new(reader)))?
        } else {
            text(reader)?
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

/// Reads the text of a file, with limits on lines and on the whole.
fn text(mut reader: impl BufRead) -> Result<String, String> {
    let mut text = String::new();
    for number in 1.. {
        let mut line = Vec::new();
        let read = reader
            .by_ref()
            .take(LONGEST_LINE + 1)
            .read_until(b'\n', &mut line);
        let read = read.map_err(|error| text!("replay-line-unreadable", number, error))?;
        if read == 0 {
            break;
        }
        if read as u64 > LONGEST_LINE {
            return Err(text!(
                "replay-line-too-long",
                number,
                longest_line = LONGEST_LINE >> 20
            ));
        }
        if (text.len() + read) as u64 > LARGEST_FILE {
            return Err(text!(
                "replay-file-too-large",
                largest_file = LARGEST_FILE >> 20
            ));
        }
        text.push_str(str::from_utf8(&line).map_err(|_| text!("replay-line-not-text", number))?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(bytes: &[u8]) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        conversations(file.path()).unwrap_err()
    }

    #[test]
    fn bad_files_are_named_by_what_is_wrong() {
        assert_eq!(problem(b""), "it is empty");
        assert_eq!(
            problem(b"{\"messages\": []}\n\xff\n"),
            "line 2 is not UTF-8 text"
        );
        assert!(
            problem(b"{\"messages\": [").contains("not JSON"),
            "{}",
            problem(b"{\"messages\": [")
        );
        let two =
            b"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n{\"messages\": 7}\n";
        assert!(problem(two).starts_with("line 2: "), "{}", problem(two));
        assert!(
            problem(b"\x1f\x8bnot really").contains("line 1 cannot be read"),
            "{}",
            problem(b"\x1f\x8bnot really")
        );
    }

    #[test]
    fn a_line_without_end_is_refused_without_being_held() {
        let endless = BufReader::new(io::repeat(b'x'));
        assert_eq!(text(endless).unwrap_err(), "line 1 is longer than 64 MiB");
    }

    #[test]
    fn chats_one_a_line_are_conversations_of_their_own() {
        let line = r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}"#;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{line}\n\n{line}\n")).unwrap();
        assert_eq!(conversations(file.path()).unwrap().len(), 2);
    }
}
