//! Reads the conversations of a file or a folder. Input is bounded: a file is text of at most a
//! gigabyte, a line of it at most 64 megabytes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use haft_types::Timestamp;

use crate::{ImportError, ImportedConversation, SourceText, read_conversations, read_stored_text};

const MAX_LINE_BYTES: u64 = 64 << 20;
const MAX_FILE_BYTES: u64 = 1 << 30;
/// The number of folder levels that are searched below the named folder.
const MAX_FOLDER_DEPTH: usize = 8;

/// The reason why a file has no readable conversations.
#[derive(Debug, thiserror::Error)]
pub enum ConversationFileError {
    #[error("it is empty")]
    Empty,
    #[error("{0}")]
    Unreadable(io::Error),
    #[error("line {number} cannot be read: {error}")]
    LineUnreadable { number: usize, error: io::Error },
    #[error("line {number} is longer than {most_megabytes} MiB")]
    LineTooLong { number: usize, most_megabytes: u64 },
    #[error("it is larger than {most_megabytes} MiB")]
    TooLarge { most_megabytes: u64 },
    #[error("line {number} is not UTF-8 text")]
    LineNotText { number: usize },
    /// The text has no conversation.
    #[error("{0}")]
    Format(#[from] ImportError),
    /// A line of a file with one conversation per line has none.
    #[error("line {number}: {error}")]
    Line { number: usize, error: ImportError },
}

/// Lists the files below a folder that may contain conversations, sorted.
pub fn list_conversation_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    list_files(folder, MAX_FOLDER_DEPTH, &mut files)?;
    files.sort();
    Ok(files)
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

/// Reads the conversations of a file, or of standard input for `-`. The file may be compressed.
pub fn read_conversation_file(
    path: &Path,
) -> Result<Vec<ImportedConversation>, ConversationFileError> {
    use ConversationFileError::Unreadable;
    let stored = read_stored_text(path, None)?;
    let text = if let Some(text) = stored {
        text
    } else if path == Path::new("-") {
        read_bounded_text(io::stdin().lock())?
    } else {
        let file = File::open(path).map_err(Unreadable)?;
        let mut reader = BufReader::new(file);
        let begin = reader.fill_buf().map_err(Unreadable)?;
        if begin.starts_with(&[0x1f, 0x8b]) {
            read_bounded_text(BufReader::new(MultiGzDecoder::new(reader)))?
        } else {
            read_bounded_text(reader)?
        }
    };
    if text.trim().is_empty() {
        return Err(ConversationFileError::Empty);
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
            let holds_chats = lines().all(|(_, line)| {
                line.trim_start().starts_with('{') && line.contains("\"messages\"")
            });
            if lines().count() < 2 || !holds_chats {
                return Err(error.into());
            }
            let mut all = Vec::new();
            for (index, line) in lines() {
                let number = index + 1;
                let read =
                    read(line).map_err(|error| ConversationFileError::Line { number, error })?;
                all.extend(read);
            }
            Ok(all)
        }
    }
}

/// Reads the text of a file. Returns an error if a line or the whole text exceeds its limit.
fn read_bounded_text(mut reader: impl BufRead) -> Result<String, ConversationFileError> {
    let mut text = String::new();
    for number in 1.. {
        let mut line = Vec::new();
        let read = reader
            .by_ref()
            .take(MAX_LINE_BYTES + 1)
            .read_until(b'\n', &mut line);
        let read = read.map_err(|error| ConversationFileError::LineUnreadable { number, error })?;
        if read == 0 {
            break;
        }
        if read as u64 > MAX_LINE_BYTES {
            return Err(ConversationFileError::LineTooLong {
                number,
                most_megabytes: MAX_LINE_BYTES >> 20,
            });
        }
        if (text.len() + read) as u64 > MAX_FILE_BYTES {
            return Err(ConversationFileError::TooLarge {
                most_megabytes: MAX_FILE_BYTES >> 20,
            });
        }
        let line =
            str::from_utf8(&line).map_err(|_| ConversationFileError::LineNotText { number })?;
        text.push_str(line);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_for(bytes: &[u8]) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        read_conversation_file(file.path()).unwrap_err().to_string()
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
            read_bounded_text(endless).unwrap_err().to_string(),
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
