//! Reads sessions of goose as `goose session export --format json` prints them, and the files of
//! versions before its database: one line about the session, then one line per message.
//!
//! The system prompt and the tools are not recorded, and tokens only as a total of the session.

use haft_types::{
    ContentHash, ConversationId, Envelope, Image, MessageId, Metadata, Origin, Part, Role,
    Thinking, ToolCall,
};
use serde_json::{Value, json};

use crate::conversation_builder::{
    ConversationBuilder, ConversationHeader, build_reply_metadata, get_text, parse_json_values,
    select_metadata,
};
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, time};

pub(crate) fn read_sessions(
    source: SourceText<'_>,
) -> Result<Vec<ImportedConversation>, ImportError> {
    let all = parse_json_values(source.text)?;
    match all.split_first() {
        Some((session, messages)) if session.get("conversation").is_none() => {
            read_session(source, session, messages).map(|one| vec![one])
        }
        _ => {
            let read = |one: &Value| {
                let messages = one.get("conversation").and_then(Value::as_array);
                read_session(source, one, messages.map_or(&[], Vec::as_slice))
            };
            all.iter().map(read).collect()
        }
    }
}

fn read_session(
    source: SourceText<'_>,
    session: &Value,
    messages: &[Value],
) -> Result<ImportedConversation, ImportError> {
    let mut builder = ConversationBuilder::new(source.now);
    builder.set_start(session.get("created_at").and_then(time::parse_timestamp));
    let model = session
        .pointer("/model_config/model_name")
        .and_then(Value::as_str);
    let model = get_text(session, "provider_name")
        .zip(model)
        .map(|(provider, model)| format!("{provider}/{model}"));
    for message in messages {
        push_message(&mut builder, message, model.as_deref());
    }
    let name = ["name", "description"]
        .iter()
        .find_map(|key| get_text(session, key).filter(|name| !name.is_empty()));
    let mut metadata = select_metadata(
        session,
        &[
            ("working_dir", "cwd"),
            ("id", "session_id"),
            ("session_type", "kind"),
        ],
    );
    metadata.extend(select_metadata(
        session,
        &[("accumulated_input_tokens", "input_tokens")],
    ));
    // The ids of goose consist of a date and a number, and are not unique across machines.
    let id = get_text(session, "id").map(|id| format!("goose {id} {}", session["created_at"]));
    let id = id.map(|id| {
        ConversationId::from(MessageId::from_hash(ContentHash::from_content(id.as_bytes())).0)
            .to_string()
    });
    let about = ConversationHeader {
        id,
        name: name.map(str::to_owned),
        metadata,
    };
    builder.finish(ImportFormat::Goose.name(), about)
}

fn push_message(builder: &mut ConversationBuilder, said: &Value, model: Option<&str>) {
    let at = said.get("created").and_then(time::parse_timestamp);
    let content = said
        .get("content")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let mut parts = Vec::new();
    for piece in content {
        if get_text(piece, "type") == Some("toolResponse") {
            let Some((call, result)) = get_text(piece, "id").zip(piece.get("toolResult")) else {
                continue;
            };
            let content = vec![builder.build_result_part(call, None, convert_result(result))];
            let message = builder.new_message(Role::Tool, content, at);
            builder.push(message);
        } else {
            match read_part(piece) {
                Some(part) => parts.push(part),
                None => builder.skipped += 1,
            }
        }
    }
    if get_text(said, "role") == Some("assistant") {
        let mut reply = builder.new_message(Role::Assistant, parts, at);
        reply.llm_metadata = build_reply_metadata(model, None);
        return builder.push(reply);
    }
    let mut message = builder.new_message(Role::User, parts, at);
    // Messages that are hidden from the user are summaries of earlier messages.
    let is_hidden = said
        .pointer("/metadata/userVisible")
        .and_then(Value::as_bool)
        == Some(false);
    if is_hidden {
        message = message.with_origin(Origin::Engine);
        message.metadata.extend(Metadata::from_iter([(
            "compact_summary".to_owned(),
            Value::Bool(true),
        )]));
    }
    builder.push(message);
}

fn read_part(piece: &Value) -> Option<Part> {
    let text = |key: &str| get_text(piece, key).map(str::to_owned);
    Some(match get_text(piece, "type")? {
        "text" => Part::from_text(text("text").filter(|text| !text.is_empty())?),
        "image" => Part::Image(Image {
            media_type: text("mimeType")?,
            data: text("data")?,
        }),
        "thinking" => Part::Thinking(Thinking {
            text: text("thinking")?,
            signature: text("signature"),
            raw: None,
        }),
        "toolRequest" => {
            let call = piece.pointer("/toolCall/value")?;
            let arguments = call
                .get("arguments")
                .map_or_else(|| "{}".to_owned(), Value::to_string);
            let name = get_text(call, "name")?.to_owned();
            Part::ToolCall(ToolCall {
                id: text("id")?,
                name,
                arguments,
                signature: None,
            })
        }
        _ => return None,
    })
}

/// Converts the result of an MCP call to haft's format. Keeps the content meant for the model and,
/// for a command, its exit code.
fn convert_result(result: &Value) -> Envelope {
    if let Some(error) = get_text(result, "error") {
        return Envelope::failure("failed", error);
    }
    let value = result.get("value").unwrap_or(&Value::Null);
    let pieces = value
        .get("content")
        .unwrap_or(value)
        .as_array()
        .into_iter()
        .flatten();
    let is_for_model = |piece: &&Value| {
        let audience = piece
            .pointer("/annotations/audience")
            .and_then(Value::as_array);
        audience.is_none_or(|audience| audience.iter().any(|one| one == "assistant"))
    };
    let text = pieces
        .filter(is_for_model)
        .filter_map(|piece| get_text(piece, "text"))
        .collect::<Vec<_>>()
        .join("\n");
    let is_error = value
        .get("isError")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let envelope = if is_error {
        Envelope::failure("failed", text)
    } else {
        Envelope::success(text)
    };
    match value
        .pointer("/structuredContent/exit_code")
        .and_then(Value::as_i64)
    {
        Some(code) => envelope.with_data(json!({ "exit_code": code })),
        None => envelope,
    }
}
