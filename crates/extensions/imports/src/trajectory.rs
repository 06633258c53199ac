//! Reads recorded trajectories: one conversation per line, in OpenAI's message format, with
//! separate lists of times and usage.

use haft_types::{Metadata, Role};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::conversation_builder::{
    ConversationBuilder, ConversationHeader, ReportedUsage, build_reply_metadata, get_count,
};
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, chat, time};

#[derive(Deserialize)]
struct TrajectoryLine<'a> {
    id: String,
    model: Option<String>,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    #[serde(default)]
    ts: Vec<Value>,
    #[serde(default)]
    usage: Vec<Value>,
    // All other keys, such as source, license, kind, agent, tools and reward.
    #[serde(flatten)]
    rest: Metadata,
}

pub(crate) fn read_trajectories(
    source: SourceText<'_>,
) -> Result<Vec<ImportedConversation>, ImportError> {
    let lines = source
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let read = |(index, line): (usize, &str)| {
        let failed = |problem: String| ImportError::Line {
            line: index + 1,
            problem,
        };
        let line = serde_json::from_str(line).map_err(|error| failed(error.to_string()))?;
        import_line(line, source).map_err(|error| failed(error.to_string()))
    };
    lines.map(read).collect()
}

fn import_line(
    line: TrajectoryLine<'_>,
    source: SourceText<'_>,
) -> Result<ImportedConversation, ImportError> {
    let mut builder = ConversationBuilder::new(source.now);
    builder.set_start(line.ts.iter().find_map(time::parse_timestamp));
    for (index, raw) in line.messages.iter().enumerate() {
        let at = line.ts.get(index).and_then(time::parse_timestamp);
        let message = chat::read_message(&builder, raw, at);
        let mut message = message.map_err(|problem| ImportError::Message {
            number: index + 1,
            problem,
        })?;
        if message.role == Role::Assistant {
            let usage = line
                .usage
                .iter()
                .find(|usage| usage.get("at").and_then(Value::as_u64) == Some(index as u64));
            message.llm_metadata =
                build_reply_metadata(line.model.as_deref(), usage.map(read_usage));
        }
        builder.push(message);
    }
    builder.finish(
        ImportFormat::Trajectory.name(),
        ConversationHeader {
            id: Some(line.id),
            name: None,
            metadata: line.rest,
        },
    )
}

fn read_usage(usage: &Value) -> ReportedUsage {
    ReportedUsage {
        input: get_count(usage, "input"),
        cached: get_count(usage, "read"),
        written: get_count(usage, "write"),
        output: get_count(usage, "output"),
        reasoning: 0,
    }
}
