//! The record of a run: read from the store, or from a file that `--save` wrote.
//!
//! A file contains the messages, and the body of each request as it was sent, as the difference to
//! the body before it. The project's folder is written as a placeholder, so that the file can be
//! checked in any checkout.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_context::Environment;
use haft_engine::{RecordedRun, has_context_edits, load_image_descriptions};
use haft_files::Durability;
use haft_inspect::RequestLogReader;
use haft_model::BodyEncoding;
use haft_store::{Conversation, ConversationDocument, Store};
use haft_text::Masker;
use haft_types::{Message, MessageId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::options::ReplayOptions;
use crate::commands::conversations::export::load_document;
use crate::exit::usage_error;
use crate::haft::Settings;
use crate::output;

/// The value of `format` in a file.
const FORMAT: &str = "haft-run";
const VERSION: u32 = 1;
/// Stands for the project's folder in a file.
const PROJECT_PLACEHOLDER: &str = "{{project}}";
/// The namespace suffix of the conversations of sub-agents.
const AGENTS_SUFFIX: &str = "#agents";

/// A recorded run.
#[derive(Clone)]
pub(super) struct StoredRun {
    pub(super) document: ConversationDocument,
    pub(super) requests: Vec<RecordedRequest>,
    /// The names of the tools that the first request offered.
    pub(super) tools: Vec<String>,
    /// Descriptions of images, by the hash of their data.
    pub(super) image_descriptions: BTreeMap<String, String>,
    /// The machine of the run; `None` if it is this machine.
    pub(super) environment: Option<Environment>,
    /// True if the project's rules are read even if the project is not trusted.
    pub(super) trusted: bool,
    pub(super) options: ReplayOptions,
}

/// A request of a recorded run.
#[derive(Clone)]
pub(super) struct RecordedRequest {
    pub(super) number: u64,
    /// The number of messages that the conversation had when the request was sent.
    pub(super) position: usize,
    /// The settings with which the body was encoded, including the model.
    pub(super) encoding: BodyEncoding,
    /// True if the session was opened in plan mode: only then is the tool for plans offered.
    pub(super) opened_in_plan_mode: bool,
    pub(super) body: Vec<u8>,
}

/// A recorded run in a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunFile {
    format: String,
    version: u32,
    options: ReplayOptions,
    environment: Environment,
    trusted: bool,
    conversation: ConversationDocument,
    tools: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    image_descriptions: BTreeMap<String, String>,
    encodings: Vec<BodyEncoding>,
    requests: Vec<FileRequest>,
}

/// A request in a file: the parts of its body that differ from the body before it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRequest {
    number: u64,
    position: usize,
    /// The index of the encoding.
    encoding: usize,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    opened_in_plan_mode: bool,
    /// The bytes at the beginning that are equal to those of the previous body.
    kept_start: usize,
    /// The bytes at the end that are equal to those of the previous body.
    kept_end: usize,
    /// The text between them.
    text: String,
}

/// Reads a run from the store.
pub(super) async fn load_stored_run(
    settings: &Settings,
    store: Arc<dyn Store>,
    conversation: Conversation,
) -> anyhow::Result<StoredRun> {
    let id = conversation.id.clone();
    let refuse = |reason: &str| Err(usage_error(text!("conversations-replay-not", id, reason)));
    if conversation.namespace.ends_with(AGENTS_SUFFIX) {
        return refuse(text!("conversations-replay-subagent"));
    }
    if conversation.revisions > 0 {
        return refuse(&text!(
            "conversations-replay-revised",
            count = conversation.revisions
        ));
    }
    if has_context_edits(store.as_ref(), &id).await? {
        return refuse(text!("conversations-replay-edited"));
    }
    let image_descriptions = load_image_descriptions(store.as_ref(), &id).await?;
    let document = load_document(store.as_ref(), &id).await?;
    let log = RequestLogReader::for_conversation(
        Arc::clone(&store),
        settings.environment().clone(),
        settings.config.clone(),
        conversation,
        |_| {},
    )
    .await?;
    if log.imported.is_some() {
        return refuse(text!("conversations-replay-imported"));
    }
    let summaries = store.logged_requests(&id).await?;
    if summaries.is_empty() {
        return refuse(text!("conversations-replay-no-log"));
    }
    let missing = (1..)
        .zip(&summaries)
        .find(|(number, one)| one.number != *number);
    if let Some((number, _)) = missing {
        return refuse(&text!("conversations-replay-pruned", number));
    }
    let positions: BTreeMap<MessageId, usize> = document
        .messages
        .iter()
        .enumerate()
        .map(|(index, message)| (message.message_id, index))
        .collect();
    let mut requests = Vec::with_capacity(summaries.len());
    let mut tools = Vec::new();
    for summary in &summaries {
        let number = summary.number;
        let logged = log.sent_request(Some(number)).await?;
        let encoding = logged
            .encoding
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok());
        let Some(encoding) = encoding else {
            return refuse(&text!("conversations-replay-no-encoding", number));
        };
        let newest = logged
            .segments
            .iter()
            .filter_map(|segment| positions.get(&segment.message.message_id))
            .max();
        let offered: Vec<_> = logged.tools.iter().map(|tool| tool.name.clone()).collect();
        let opened_in_plan_mode = RecordedRun::was_opened_in_plan_mode(&offered);
        if requests.is_empty() {
            tools = offered;
        }
        requests.push(RecordedRequest {
            number,
            position: newest.map_or(0, |newest| newest + 1),
            encoding,
            opened_in_plan_mode,
            body: log.body(Some(number), None).await?,
        });
    }
    Ok(StoredRun {
        document,
        requests,
        tools,
        image_descriptions,
        environment: None,
        trusted: false,
        options: ReplayOptions::default(),
    })
}

/// Reads a run from a file that [`save_run`] wrote. `project` is the folder that the run is checked
/// in.
pub(super) fn read_run_file(path: &Path, project: &Path) -> anyhow::Result<StoredRun> {
    let wrong = |problem: String| {
        let path = path.display();
        usage_error(text!("conversations-replay-bad-file", path, problem))
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let folder = escape_in_json(&project.display().to_string());
    let kind: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    if kind["format"] != FORMAT || kind["version"] != VERSION {
        return Err(wrong(text!("conversations-replay-other-format").to_owned()));
    }
    // The bodies are differences in bytes, so they are restored before the folder is inserted.
    let file: RunFile = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let mut requests = Vec::with_capacity(file.requests.len());
    let mut before = String::new();
    for request in &file.requests {
        let broken = || {
            wrong(text!(
                "conversations-replay-bad-request",
                number = request.number
            ))
        };
        let start = before.get(..request.kept_start).ok_or_else(broken)?;
        let from = before.len().checked_sub(request.kept_end);
        let end = from
            .and_then(|from| before.get(from..))
            .ok_or_else(broken)?;
        let body = format!("{start}{}{end}", request.text);
        requests.push(RecordedRequest {
            number: request.number,
            position: request.position,
            encoding: file
                .encodings
                .get(request.encoding)
                .cloned()
                .ok_or_else(broken)?,
            opened_in_plan_mode: request.opened_in_plan_mode,
            body: body.replace(PROJECT_PLACEHOLDER, &folder).into_bytes(),
        });
        before = body;
    }
    let placed = text.replace(PROJECT_PLACEHOLDER, &folder);
    let file: RunFile = serde_json::from_str(&placed).map_err(|error| wrong(error.to_string()))?;
    Ok(StoredRun {
        document: file.conversation,
        requests,
        tools: file.tools,
        image_descriptions: file.image_descriptions,
        environment: Some(file.environment),
        trusted: file.trusted,
        options: file.options,
    })
}

/// Writes a run to a file. `environment` describes the machine, and `masker` removes secrets.
pub(super) fn save_run(
    path: &Path,
    record: &StoredRun,
    (environment, trusted): (Environment, bool),
    project: &Path,
    masker: &Masker,
) -> anyhow::Result<()> {
    let folder = escape_in_json(&project.display().to_string());
    let place = |text: &str| {
        let masked = masker.mask(text);
        // The root of the file system begins every path.
        if project.parent().is_none() {
            masked.into_owned()
        } else {
            masked.replace(&folder, PROJECT_PLACEHOLDER)
        }
    };
    let mut encodings: Vec<BodyEncoding> = Vec::new();
    let mut requests = Vec::with_capacity(record.requests.len());
    let mut before = String::new();
    for request in &record.requests {
        let known = encodings.iter().position(|one| *one == request.encoding);
        let encoding = known.unwrap_or_else(|| {
            encodings.push(request.encoding.clone());
            encodings.len() - 1
        });
        let body = place(&String::from_utf8_lossy(&request.body));
        let kept_start = shared_start(&before, &body);
        let kept_end = shared_end(&before[kept_start..], &body[kept_start..]);
        requests.push(FileRequest {
            number: request.number,
            position: request.position,
            encoding,
            opened_in_plan_mode: request.opened_in_plan_mode,
            kept_start,
            kept_end,
            text: body[kept_start..body.len() - kept_end].to_owned(),
        });
        before = body;
    }
    let file = RunFile {
        format: FORMAT.to_owned(),
        version: VERSION,
        options: record.options.clone(),
        environment,
        trusted,
        conversation: record.document.clone(),
        tools: record.tools.clone(),
        image_descriptions: record.image_descriptions.clone(),
        encodings,
        requests,
    };
    let text = place(&serde_json::to_string_pretty(&file)?) + "\n";
    haft_files::replace_file(path, text.as_bytes(), Durability::Process).map_err(|error| {
        let path = path.display();
        usage_error(text!("conversations-export-unwritable", path, error))
    })?;
    output::print_to_stderr(&format!(
        "haft: {}",
        text!("conversations-replay-saved", path = path.display())
    ));
    Ok(())
}

impl StoredRun {
    /// Returns the messages of the run.
    pub(super) fn messages(&self) -> Vec<Message> {
        self.document.messages.clone()
    }

    /// Returns a copy of the run to save with these options.
    pub(super) fn to_saved(&self, options: &ReplayOptions) -> Self {
        Self {
            options: options.clone(),
            ..self.clone()
        }
    }

    /// True if a user could be asked in the run.
    pub(super) fn was_attended(&self) -> bool {
        RecordedRun::was_attended(&self.tools)
    }

    /// Returns the project in which the run worked, if the store names it.
    pub(super) fn find_project(namespace: &str) -> Option<PathBuf> {
        let folder = namespace.split('#').next().unwrap_or_default();
        let path = PathBuf::from(folder);
        (path.is_absolute() && path.is_dir()).then_some(path)
    }
}

/// Returns a text as it stands between the quotes of a JSON string.
fn escape_in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text)
        .to_owned()
}

/// Returns the number of bytes at the beginning that are equal, up to a whole character.
fn shared_start(one: &str, other: &str) -> usize {
    let pairs = one.bytes().zip(other.bytes());
    let mut shared = pairs.take_while(|(one, other)| one == other).count();
    while !(one.is_char_boundary(shared) && other.is_char_boundary(shared)) {
        shared -= 1;
    }
    shared
}

/// Returns the number of bytes at the end that are equal, from a whole character.
fn shared_end(one: &str, other: &str) -> usize {
    let pairs = one.bytes().rev().zip(other.bytes().rev());
    let mut shared = pairs.take_while(|(one, other)| one == other).count();
    while !(one.is_char_boundary(one.len() - shared)
        && other.is_char_boundary(other.len() - shared))
    {
        shared -= 1;
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_ends_stop_at_whole_characters() {
        // Both letters begin with one byte and end with another: é is C3 A9, è is C3 A8, and © ends in A9.
        assert_eq!(shared_start("aé", "aè"), 1);
        assert_eq!(shared_end("é", "©"), 0);
        assert_eq!(
            (shared_start("abc", "abx"), shared_end("xbc", "ybc")),
            (2, 2)
        );
        assert_eq!((shared_start("", "abc"), shared_end("", "abc")), (0, 0));
    }

    #[test]
    fn escape_in_json_escapes_quotes() {
        assert_eq!(escape_in_json("/a \"b\""), "/a \\\"b\\\"");
    }
}
