//! Reads conversations of other agents as documents of haft's store: session files, request bodies,
//! recorded event streams, and haft's own exports. Writes conversations in ATIF.
//!
//! One module per format. Each is a pure function of the text: it must not read a clock or a store,
//! and nothing is written. The caller supplies the text and passes the documents to
//! [`Store::import`](haft_store::Store::import). For a session that is not a text file,
//! [`read_stored_text`] builds the text from the agent's database or folder. Only that module,
//! `conversation_files.rs`, and `session_folders.rs`, which finds the sessions of other agents,
//! read files.
//!
//! Invariant: identical text gives identical ids, and a text that was only appended to gives its
//! earlier messages followed by new ones. Data that haft has no field for is kept in metadata or
//! counted as skipped, never guessed.
//!
//! Read first: [`read_conversations`], [`ImportFormat`], [`ImportedConversation`]; then
//! `claude_code.rs`, the longest of the formats, and `tool_data.rs`, which converts results to the
//! shapes of haft's own tools.

mod atif;
mod auto_coder;
mod chat;
mod claude_code;
mod cline;
mod codex;
mod codex_exec;
mod conversation_builder;
mod conversation_files;
mod documents;
mod gemini;
mod goose;
mod kimi;
mod opencode;
mod openhands;
mod pi;
mod session_export;
mod session_folders;
mod single_conversation;
mod swe_agent;
mod time;
mod tool_data;
mod trajectory;

use std::str::FromStr;

use haft_store::ConversationDocument;
use haft_types::Timestamp;
use serde_json::Value;
use strum::{Display, IntoStaticStr, VariantArray, VariantNames};

pub use atif::{AtifTrajectory, convert_to_atif};
pub use conversation_files::{
    ConversationFileError, list_conversation_files, read_conversation_file,
};
pub use session_export::{StoredSession, is_database, list_stored_sessions, read_stored_text};
pub use session_folders::{
    ForeignSession, SessionError, SessionPlace, SessionRoots, find_session, format_session_folders,
    list_foreign_sessions, list_session_files, read_session,
};
pub use single_conversation::{
    ConversationFile, SingleConversationError, read_single_conversation,
};

/// A format from which conversations can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum ImportFormat {
    /// JSON documents with one conversation each, as exported by haft, or with similar keys.
    Document,
    /// Messages in the format of OpenAI's Chat Completions API: a list, or an object with
    /// `messages`.
    OpenaiChat,
    /// A session file of Claude Code: JSON lines.
    ClaudeCode,
    /// A rollout file of codex: JSON lines.
    Codex,
    /// Recorded trajectories in OpenAI's message format, with one conversation per line.
    Trajectory,
    /// The events that `codex exec --json` prints: JSON lines.
    CodexExec,
    /// A session file of pi: JSON lines.
    Pi,
    /// A conversation of `OpenHands`: a list of events, or a folder that its command line wrote.
    Openhands,
    /// The `.traj` file of SWE-agent, or the `.traj.json` of mini-swe-agent: one JSON object.
    SweAgent,
    /// A session of cline, from its editor extension or its command line: messages in Anthropic's
    /// format.
    Cline,
    /// A session file of gemini-cli: one JSON object, or JSON lines.
    #[strum(serialize = "gemini-cli")]
    Gemini,
    /// A session exported by opencode, or opencode's database.
    Opencode,
    /// A session exported by goose, a session file of an older version, or goose's database.
    Goose,
    /// A context file of kimi-cli: JSON lines.
    #[strum(serialize = "kimi-cli")]
    Kimi,
    /// A conversation of auto-coder: one JSON object.
    AutoCoder,
    /// A trajectory in ATIF, the format of Harbor: one JSON object.
    Atif,
}

impl ImportFormat {
    /// All formats, in the order in which this enum declares them.
    pub const ALL: &'static [Self] = <Self as VariantArray>::VARIANTS;

    const NAMES: &'static [&'static str] = <Self as VariantNames>::VARIANTS;

    /// Returns the name of the format as used on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl FromStr for ImportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let format = Self::ALL
            .iter()
            .copied()
            .find(|format| format.name() == text);
        format.ok_or_else(|| {
            format!(
                "`{text}` is not a format; the formats are {}",
                Self::NAMES.join(", ")
            )
        })
    }
}

/// A text to import, and the time for messages that contain no time.
#[derive(Clone, Copy, Debug)]
pub struct SourceText<'a> {
    /// The content of the file to import.
    pub text: &'a str,
    /// The time that is assigned to messages that contain no time.
    pub now: Timestamp,
}

/// A conversation that was read from another program's text, with the number of skipped parts.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedConversation {
    /// The conversation, ready to be stored.
    pub document: ConversationDocument,
    /// The number of lines and message parts that could not be read or have no equivalent in haft.
    pub skipped: usize,
}

/// The reason why a text cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The text is in none of the supported formats.
    #[error("its format is not known: it has no `messages`, and is neither {}", ImportFormat::NAMES.join(", "))]
    Unknown,
    /// The text is not valid JSON.
    #[error("it is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A line of the text cannot be read.
    #[error("line {line}: {problem}")]
    Line {
        /// The line number, from 1.
        line: usize,
        problem: String,
    },
    /// A message in the text cannot be read.
    #[error("message {number}: {problem}")]
    Message {
        /// The number of the message, from 1.
        number: usize,
        problem: String,
    },
    /// A JSON value in the text has the wrong type or is malformed, such as an invalid time.
    #[error("`{key}` is `{value}`, which is not {expected}")]
    Value {
        /// The JSON key of the value.
        key: &'static str,
        /// The value as JSON.
        value: String,
        /// A description of a valid value.
        expected: &'static str,
    },
    /// The database that contains the session cannot be read.
    #[error("its database cannot be read: {0}")]
    Database(#[from] rusqlite::Error),
    /// The text contains no messages.
    #[error("it holds no messages")]
    Empty,
}

/// Reads all conversations in a text. If `format` is `None`, the format is detected from the text.
pub fn read_conversations(
    source: SourceText<'_>,
    format: Option<ImportFormat>,
) -> Result<Vec<ImportedConversation>, ImportError> {
    let source = SourceText {
        text: source.text.trim_start_matches('\u{feff}').trim(),
        ..source
    };
    let format = match format {
        Some(format) => format,
        None => detect_format(source.text)?,
    };
    match format {
        ImportFormat::Document => documents::read_documents(source),
        ImportFormat::OpenaiChat => chat::read_chat(source).map(|one| vec![one]),
        ImportFormat::ClaudeCode => claude_code::read_session(source).map(|one| vec![one]),
        ImportFormat::Codex => codex::read_rollout(source).map(|one| vec![one]),
        ImportFormat::Trajectory => trajectory::read_trajectories(source),
        ImportFormat::CodexExec => codex_exec::read_stream(source).map(|one| vec![one]),
        ImportFormat::Pi => pi::read_session(source).map(|one| vec![one]),
        ImportFormat::Openhands => openhands::read_events(source).map(|one| vec![one]),
        ImportFormat::SweAgent => swe_agent::read_trajectory(source).map(|one| vec![one]),
        ImportFormat::Cline => cline::read_session(source).map(|one| vec![one]),
        ImportFormat::Gemini => gemini::read_session(source).map(|one| vec![one]),
        ImportFormat::Opencode => opencode::read_sessions(source),
        ImportFormat::Goose => goose::read_sessions(source),
        ImportFormat::Kimi => kimi::read_context(source).map(|one| vec![one]),
        ImportFormat::AutoCoder => auto_coder::read_conversation(source).map(|one| vec![one]),
        ImportFormat::Atif => atif::read_trajectories(source),
    }
}

/// Detects the format of a text from its first JSON value.
fn detect_format(text: &str) -> Result<ImportFormat, ImportError> {
    if text.starts_with('[') {
        let list: Vec<Value> = serde_json::from_str(text)?;
        return Ok(if list.iter().any(openhands::is_event) {
            ImportFormat::Openhands
        } else if cline::is_cline_session(&list) {
            ImportFormat::Cline
        } else {
            ImportFormat::OpenaiChat
        });
    }
    // The whole text is tried as one value before its first lines.
    let whole = serde_json::from_str::<Value>(text);
    let lines = || {
        text.lines()
            .take(20)
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
    };
    match whole {
        Ok(value) => detect_value_format(&value).ok_or(ImportError::Unknown),
        Err(error) => match lines().find_map(|value| detect_value_format(&value)) {
            Some(format) => Ok(format),
            None if lines().next().is_some() => Err(ImportError::Unknown),
            None => Err(error.into()),
        },
    }
}

fn detect_value_format(value: &Value) -> Option<ImportFormat> {
    let has = |key: &str| value.get(key).is_some();
    let is_text = |key: &str| value.get(key).is_some_and(Value::is_string);
    if is_text("sessionId") && is_text("projectHash") {
        return Some(ImportFormat::Gemini);
    }
    if is_text("working_dir") && (has("conversation") || has("description")) {
        return Some(ImportFormat::Goose);
    }
    if atif::is_trajectory(value) {
        return Some(ImportFormat::Atif);
    }
    let format = value.get("trajectory_format").and_then(Value::as_str);
    if format.is_some_and(|format| format.starts_with("mini-swe-agent")) {
        return Some(ImportFormat::SweAgent);
    }
    if let Some(messages) = value.get("messages").and_then(Value::as_array) {
        if has("info")
            && messages
                .iter()
                .all(|message| message.get("parts").is_some())
        {
            return Some(ImportFormat::Opencode);
        }
        if has("conversation_id") && auto_coder::has_auto_coder_marks(messages) {
            return Some(ImportFormat::AutoCoder);
        }
        let own = |message: &Value| message.get("message_id").is_some();
        return Some(
            if has("conversation_id") || (has("id") && has("name")) || messages.iter().any(own) {
                ImportFormat::Document
            } else if has("source") && has("licence") {
                ImportFormat::Trajectory
            } else if is_text("sessionId") && cline::is_cline_session(messages) {
                ImportFormat::Cline
            } else {
                ImportFormat::OpenaiChat
            },
        );
    }
    if is_text("type") && (is_text("sessionId") || has("leafUuid") || has("parentUuid")) {
        return Some(ImportFormat::ClaudeCode);
    }
    let kind = value
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if kind.starts_with("thread.") || kind.starts_with("turn.") || kind.starts_with("item.") {
        return Some(ImportFormat::CodexExec);
    }
    if value
        .get("role")
        .and_then(Value::as_str)
        .is_some_and(|role| role.starts_with('_'))
    {
        return Some(ImportFormat::Kimi);
    }
    if kind == "session" && is_text("id") {
        return Some(ImportFormat::Pi);
    }
    if let Some(history) = value.get("history").and_then(Value::as_array) {
        let is_said = |value: &Value| value.get("role").is_some() && value.get("content").is_some();
        if history.iter().any(is_said) {
            return Some(ImportFormat::SweAgent);
        }
        return history
            .iter()
            .any(openhands::is_event)
            .then_some(ImportFormat::Openhands);
    }
    // Older files of codex begin with a line that has the session id. The items after that line
    // have no envelope.
    let payload = is_text("type") && has("payload");
    let first = is_text("id") && is_text("timestamp") && has("instructions");
    (payload || first).then_some(ImportFormat::Codex)
}

#[cfg(test)]
mod tests;
