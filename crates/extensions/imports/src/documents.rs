//! Reads documents: haft's own export, and a similar layout of one JSON file per conversation with
//! some differences (`conversation_id`, times in seconds, `timestamp` for a message's time, content
//! that is not text).

use haft_store::ConversationDocument;
use haft_types::{LlmMetadata, Message, MessageId, Metadata, Part, Role, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::conversation_builder::{ConversationBuilder, ConversationHeader, get_count};
use crate::{ImportError, ImportedConversation, SourceText, time};

/// The format name that is recorded as the source of documents that haft did not export itself.
const SOURCE_NAME: &str = "files";

/// Reads a file that contains one document, or one document per line.
pub(crate) fn read_documents(
    source: SourceText<'_>,
) -> Result<Vec<ImportedConversation>, ImportError> {
    let whole = read_document(source.text, source.now);
    // Unless every line is an object, the text is treated as a single document, so that a truncated
    // document is not reported as an invalid line.
    let lines: Vec<&str> = source
        .text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let each_is_one = |line: &&str| line.starts_with('{') && line.trim_end().ends_with('}');
    if whole.is_ok() || lines.len() < 2 || !lines.iter().all(each_is_one) {
        return whole.map(|one| vec![one]);
    }
    let read = |(index, line): (usize, &&str)| {
        read_document(line, source.now).map_err(|error| ImportError::Line {
            line: index + 1,
            problem: error.to_string(),
        })
    };
    lines.iter().enumerate().map(read).collect()
}

fn read_document(text: &str, now: Timestamp) -> Result<ImportedConversation, ImportError> {
    match serde_json::from_str::<ConversationDocument>(text) {
        Ok(document) => Ok(ImportedConversation {
            document,
            skipped: 0,
        }),
        // The error of the other layout is returned, because it is more helpful than the reason why
        // the document is not haft's own.
        Err(_) => read_loose_document(serde_json::from_str(text)?, now),
    }
}

#[derive(Deserialize)]
struct LooseDocument<'a> {
    #[serde(alias = "conversation_id")]
    id: Option<String>,
    name: Option<String>,
    description: Option<String>,
    #[serde(default)]
    created_at: Value,
    #[serde(default)]
    updated_at: Value,
    metadata: Option<Metadata>,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct LooseMessage<'a> {
    #[serde(alias = "id")]
    message_id: Option<String>,
    role: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(default, alias = "timestamp")]
    created_at: Value,
    metadata: Option<Metadata>,
    llm_metadata: Option<Value>,
}

fn read_loose_document(
    loose: LooseDocument<'_>,
    now: Timestamp,
) -> Result<ImportedConversation, ImportError> {
    let mut builder = ConversationBuilder::new(now);
    for (index, raw) in loose.messages.iter().enumerate() {
        read_message(&mut builder, raw).map_err(|problem| ImportError::Message {
            number: index + 1,
            problem,
        })?;
    }
    let created_at = parse_optional_time("created_at", &loose.created_at)?;
    let updated_at = parse_optional_time("updated_at", &loose.updated_at)?;
    let about = ConversationHeader {
        id: loose.id,
        name: loose.name,
        metadata: loose.metadata.unwrap_or_default(),
    };
    let mut read = builder.finish(SOURCE_NAME, about)?;
    let document = &mut read.document;
    document.description = loose.description.unwrap_or_default();
    document.created_at = created_at.unwrap_or(document.created_at);
    document.updated_at = updated_at.unwrap_or(document.updated_at);
    Ok(read)
}

/// Parses a time. A missing time is allowed, an invalid time is an error.
fn parse_optional_time(key: &'static str, value: &Value) -> Result<Option<Timestamp>, ImportError> {
    match (value, time::parse_timestamp(value)) {
        (Value::Null, _) => Ok(None),
        (_, Some(time)) => Ok(Some(time)),
        (value, None) => Err(ImportError::Value {
            key,
            value: value.to_string(),
            expected: "a time",
        }),
    }
}

fn read_message(builder: &mut ConversationBuilder, raw: &RawValue) -> Result<(), String> {
    let loose: LooseMessage<'_> =
        serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
    let role = match loose.role.as_str() {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        "summary" => Role::Summary,
        other => return Err(format!("unknown role `{other}`")),
    };
    let at =
        parse_optional_time("created_at", &loose.created_at).map_err(|error| error.to_string())?;
    let mut message = builder.new_message(role, read_content(loose.content)?, at);
    message.metadata = loose.metadata.unwrap_or_default();
    message.llm_metadata = loose
        .llm_metadata
        .as_ref()
        .filter(|made| made.is_object())
        .map(|made| read_llm_metadata(made).into());
    match loose.message_id.as_deref().map(str::parse::<MessageId>) {
        Some(Ok(id)) => builder.push_with_id(Message {
            message_id: id,
            ..message
        }),
        // An id in another format is kept, because other programs may use it to refer to the
        // message.
        Some(Err(_)) => {
            message
                .metadata
                .insert("source_id".into(), loose.message_id.into());
            builder.push(message);
        }
        None => builder.push(message),
    }
    Ok(())
}

/// Reads the content of a message, which is a text or a list of parts in haft's own format. Any
/// other JSON is kept as text.
fn read_content(raw: Option<&RawValue>) -> Result<Vec<Part>, String> {
    let Some(raw) = raw.map(RawValue::get).filter(|raw| *raw != "null") else {
        return Ok(Vec::new());
    };
    if raw.starts_with('"') {
        let text: String = serde_json::from_str(raw).map_err(|error| error.to_string())?;
        return Ok(vec![Part::from_text(text)]);
    }
    if let Ok(parts) = serde_json::from_str::<Vec<Part>>(raw) {
        return Ok(parts);
    }
    let value: Value = serde_json::from_str(raw).map_err(|error| error.to_string())?;
    Ok(vec![Part::from_text(value.to_string())])
}

fn read_llm_metadata(made: &Value) -> LlmMetadata {
    let cost = |key: &str| made.get(key).and_then(Value::as_f64);
    LlmMetadata {
        model_name: made
            .get("model_name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        input_tokens: get_count(made, "input_tokens"),
        output_tokens: get_count(made, "output_tokens"),
        cached_input_tokens: get_count(made, "cached_input_tokens"),
        cache_write_tokens: get_count(made, "cache_write_tokens"),
        reasoning_tokens: get_count(made, "reasoning_tokens"),
        input_cost: cost("input_cost"),
        output_cost: cost("output_cost"),
        cached_input_cost: cost("cached_input_cost"),
        cache_write_cost: cost("cache_write_cost"),
        conversation_round: get_count(made, "conversation_round") as u32,
        time_to_first_token_ms: made.get("time_to_first_token_ms").and_then(Value::as_u64),
        duration_ms: made.get("duration_ms").and_then(Value::as_u64),
    }
}
