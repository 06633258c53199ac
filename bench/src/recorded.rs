//! Recorded conversations, from the gzipped file of one JSON object a line that `HAFT_TRAJECTORIES`
//! names.

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

/// One conversation, counted and hashed.
pub(crate) struct Conversation {
    /// The messages but for the recorded system prompt.
    pub(crate) history: Vec<Arc<Entry>>,
    /// The recorded system prompt, where there was one.
    pub(crate) prompt: String,
    /// A tool for every name that is called.
    pub(crate) tools: Arc<ToolSet>,
    /// The program that had it.
    pub(crate) agent: String,
    /// The repository it was published in.
    pub(crate) source: String,
    /// Where the recorded agent summarised: indices of messages.
    pub(crate) compactions: Vec<usize>,
    /// How many system messages stood before the history.
    systems: usize,
    /// When each message was made, counted from the first; absent where that was not recorded.
    times: Vec<Option<Duration>>,
    /// What the provider counted, request by request, with the index of the message that answered
    /// it.
    pub(crate) billed: Vec<Billed>,
}

/// What a provider counted of one request.
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
    /// All input.
    pub(crate) fn prompt(&self) -> u64 {
        self.input + self.read + self.write
    }
}

impl Conversation {
    /// When the message with this index of the recording was made.
    pub(crate) fn time(&self, message: usize) -> Option<Duration> {
        self.times.get(message).copied().flatten()
    }

    /// Where the message with this index of the recording stands in the history.
    pub(crate) fn place(&self, message: usize) -> usize {
        message.saturating_sub(self.systems)
    }

    /// How many messages each request had: one is made whenever the assistant is to speak.
    pub(crate) fn requests(&self) -> impl Iterator<Item = usize> {
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

/// Reads the file, one conversation after another.
pub(crate) fn read(
    path: &Path,
    counter: &dyn TokenCounter,
) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Conversation>>> {
    Ok(lines(path)?.map(move |line| parse(&line?, counter)))
}

/// The lines of the file.
pub(crate) fn lines(
    path: &Path,
) -> anyhow::Result<impl Iterator<Item = io::Result<String>> + use<>> {
    let file = File::open(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    Ok(BufReader::new(GzDecoder::new(file)).lines())
}

/// Reads one line.
pub(crate) fn parse(line: &str, counter: &dyn TokenCounter) -> anyhow::Result<Conversation> {
    Ok(conversation(serde_json::from_str(line)?, counter))
}

fn conversation(line: Line, counter: &dyn TokenCounter) -> Conversation {
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
        .map(|(number, one)| Entry::new(message(number, one), counter))
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
    // `github:owner/name@commit:path`: the repository is enough.
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

fn message(number: usize, recorded: Recorded) -> Message {
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
        _ => parts.extend(recorded.content.map(Part::text)),
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
    let id = MessageId::derived(ContentHash::of(&number.to_le_bytes()));
    Message::new(id, recorded.role, parts, Timestamp::UNIX_EPOCH)
}
