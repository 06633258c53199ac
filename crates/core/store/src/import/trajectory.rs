//! Recorded trajectories: one conversation a line, in OpenAI's chat messages, with times and usage beside them.

use haft_types::{Metadata, Role};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::build::{About, Builder, Used, count, made_by};
use super::{Foreign, Format, ImportError, ReadConversation, chat, time};

#[derive(Deserialize)]
struct Line<'a> {
    id: String,
    model: Option<String>,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    #[serde(default)]
    ts: Vec<Value>,
    #[serde(default)]
    usage: Vec<Value>,
    // Whatever else is said of it: source, licence, kind, agent, tools, reward…
    #[serde(flatten)]
    rest: Metadata,
}

pub(super) fn read(foreign: Foreign<'_>) -> Result<Vec<ReadConversation>, ImportError> {
    let lines = foreign.text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(index, line): (usize, &str)| {
        let failed = |problem: String| ImportError::Line { line: index + 1, problem };
        let line = serde_json::from_str(line).map_err(|error| failed(error.to_string()))?;
        read_line(line, foreign).map_err(|error| failed(error.to_string()))
    };
    lines.map(read).collect()
}

fn read_line(line: Line<'_>, foreign: Foreign<'_>) -> Result<ReadConversation, ImportError> {
    let mut builder = Builder::new(foreign.now);
    builder.begun(line.ts.iter().find_map(time::read));
    for (index, raw) in line.messages.iter().enumerate() {
        let at = line.ts.get(index).and_then(time::read);
        let message = chat::read_message(&builder, raw, at);
        let mut message = message.map_err(|problem| ImportError::Message { number: index + 1, problem })?;
        if message.role == Role::Assistant {
            let usage = line.usage.iter().find(|usage| usage.get("at").and_then(Value::as_u64) == Some(index as u64));
            message.llm_metadata = made_by(line.model.as_deref(), usage.map(used));
        }
        builder.push(message);
    }
    builder.finish(Format::Trajectory.name(), About { id: Some(line.id), name: None, metadata: line.rest })
}

fn used(usage: &Value) -> Used {
    Used {
        input: count(usage, "input"),
        cached: count(usage, "read"),
        written: count(usage, "write"),
        output: count(usage, "output"),
        reasoning: 0,
    }
}
