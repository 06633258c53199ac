//! Reads recorded conversations from the gzipped file named by `HAFT_TRAJECTORIES`, with one JSON
//! object per line.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use flate2::read::GzDecoder;
use haft_types::{
    ContentHash, Entry, Envelope, Message, MessageId, Part, Role, Thinking, Timestamp,
    TokenCounter, ToolCall, ToolResult, ToolSet, ToolSpec,
};
use serde::Deserialize;
use serde_json::json;

/// A recorded conversation, counted and hashed.
pub(crate) struct Conversation {
    /// The messages without the recorded system prompt.
    pub(crate) history: Vec<Arc<Entry>>,
    /// The recorded system prompt; empty if there was none.
    pub(crate) prompt: String,
    /// One tool for each called name.
    pub(crate) tools: Arc<ToolSet>,
    /// The recorded agent.
    pub(crate) agent: String,
    /// The repository in which the conversation was published.
    pub(crate) source: String,
    /// Indices of the messages at which the recorded agent summarized the conversation.
    pub(crate) compactions: Vec<usize>,
    /// The number of system messages before the history.
    systems: usize,
    /// The time of each message since the first; `None` if not recorded.
    times: Vec<Option<Duration>>,
    /// The provider's counts for each request.
    pub(crate) billed: Vec<Billed>,
}

/// The provider's counts for one request, with the index of the message that answered it.
#[derive(Clone, Copy, Deserialize)]
pub(crate) struct Billed {
    pub(crate) at: usize,
    pub(crate) input: u64,
    pub(crate) read: u64,
    pub(crate) write: u64,
    #[serde(default)]
    pub(crate) w1h: u64,
}

impl Billed {
    /// Returns the total input tokens.
    pub(crate) fn prompt_tokens(&self) -> u64 {
        self.input + self.read + self.write
    }
}

impl Conversation {
    /// Returns the time of the message with this index in the recording.
    pub(crate) fn message_time(&self, message: usize) -> Option<Duration> {
        self.times.get(message).copied().flatten()
    }

    /// Converts an index in the recording to an index in the history.
    pub(crate) fn history_index(&self, message: usize) -> usize {
        message.saturating_sub(self.systems)
    }

    /// Returns the number of messages in each request. A request precedes every assistant message.
    pub(crate) fn request_lengths(&self) -> impl Iterator<Item = usize> {
        let role = |index: usize| self.history.get(index).map(|entry| entry.message.role);
        (1..=self.history.len()).filter(move |end| {
            matches!(role(end - 1), Some(Role::User | Role::Tool))
                && matches!(role(*end), Some(Role::Assistant) | None)
        })
    }
}

#[derive(Deserialize)]
struct Line {
    agent: Option<String>,
    source: Option<String>,
    #[serde(default)]
    compactions: Vec<Compaction>,
    messages: Vec<Recorded>,
    #[serde(default)]
    ts: Vec<Option<Timestamp>>,
    #[serde(default)]
    usage: Vec<Billed>,
}

#[derive(Deserialize)]
struct Compaction {
    at: usize,
}

#[derive(Deserialize)]
struct Recorded {
    role: Role,
    content: Option<String>,
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<Call>,
    tool_call_id: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Call {
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

/// Iterates over the conversations in the file.
pub(crate) fn read_conversations(
    path: &Path,
    counter: &dyn TokenCounter,
) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Conversation>>> {
    Ok(read_lines(path)?.map(move |line| parse_conversation(&line?, counter)))
}

pub(crate) fn read_lines(
    path: &Path,
) -> anyhow::Result<impl Iterator<Item = io::Result<String>> + use<>> {
    let file = File::open(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    Ok(BufReader::new(GzDecoder::new(file)).lines())
}

pub(crate) fn parse_conversation(
    line: &str,
    counter: &dyn TokenCounter,
) -> anyhow::Result<Conversation> {
    Ok(build_conversation(serde_json::from_str(line)?, counter))
}

fn build_conversation(line: Line, counter: &dyn TokenCounter) -> Conversation {
    let start = line.ts.iter().flatten().min().copied();
    let since = |time: Timestamp| Duration::try_from(time.duration_since(start?)).ok();
    let times = line.ts.iter().map(|time| time.and_then(since)).collect();
    let (system, said): (Vec<_>, Vec<_>) = line
        .messages
        .into_iter()
        .partition(|one| one.role == Role::System);
    let systems = system.len();
    let prompt = system
        .into_iter()
        .filter_map(|one| one.content)
        .collect::<Vec<_>>()
        .join("\n\n");
    let history: Vec<_> = said
        .into_iter()
        .enumerate()
        .map(|(number, one)| Entry::new(build_message(number, one), counter))
        .collect();
    let names: BTreeSet<_> = history
        .iter()
        .flat_map(|entry| entry.message.tool_calls())
        .map(|call| call.name.clone())
        .collect();
    let spec = |name| {
        let parameters = json!({"type": "object", "properties": {}});
        ToolSpec {
            name,
            description: "A recorded tool.".into(),
            parameters,
        }
    };
    let tools = ToolSet::new(names.into_iter().map(spec).collect(), counter);
    let agent = line.agent.unwrap_or_default();
    // `github:owner/name@commit:path`; only the repository is kept.
    let source = line.source.unwrap_or_default();
    let source = source
        .split(['@', ':'])
        .find(|part| part.contains('/'))
        .unwrap_or(&agent)
        .to_owned();
    let compactions = line.compactions.iter().map(|one| one.at).collect();
    Conversation {
        history,
        prompt,
        tools,
        agent,
        source,
        compactions,
        systems,
        times,
        billed: line.usage,
    }
}

fn build_message(number: usize, recorded: Recorded) -> Message {
    let mut parts = Vec::new();
    if let Some(text) = recorded.reasoning_content {
        parts.push(Part::Thinking(Thinking {
            text,
            ..Thinking::default()
        }));
    }
    match (recorded.role, recorded.tool_call_id) {
        (Role::Tool, Some(tool_call_id)) => {
            let envelope = Envelope::success(recorded.content.unwrap_or_default());
            let name = recorded.name.unwrap_or_else(|| "unknown".into());
            parts.push(Part::ToolResult(Box::new(ToolResult {
                tool_call_id,
                name,
                envelope,
            })));
        }
        _ => parts.extend(recorded.content.map(Part::from_text)),
    }
    parts.extend(recorded.tool_calls.into_iter().map(|call| {
        let Function { name, arguments } = call.function;
        Part::ToolCall(ToolCall {
            id: call.id,
            name,
            arguments,
            signature: None,
        })
    }));
    let id = MessageId::from_hash(ContentHash::from_content(&number.to_le_bytes()));
    Message::new(id, recorded.role, parts, Timestamp::UNIX_EPOCH)
}
