//! Reads sessions of opencode as `opencode export` prints them: messages of parts, where one part
//! holds a call and its result.
//!
//! A message of the model may contain several steps, each a separate request. The system prompt and
//! the tools are not recorded.

use haft_types::{Envelope, Metadata, Origin, Part, Role, Thinking, Timestamp, ToolCall};
use serde_json::{Value, json};

use crate::chat::image_from_url;
use crate::conversation_builder::{
    ConversationBuilder, ConversationHeader, ReportedUsage, build_reply_metadata, get_count,
    get_text, parse_json_values, select_metadata,
};
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, time};

pub(crate) fn read_sessions(
    source: SourceText<'_>,
) -> Result<Vec<ImportedConversation>, ImportError> {
    parse_json_values(source.text)?
        .iter()
        .map(|session| read_session(source, session))
        .collect()
}

fn read_session(
    source: SourceText<'_>,
    session: &Value,
) -> Result<ImportedConversation, ImportError> {
    let mut builder = ConversationBuilder::new(source.now);
    let info = session.get("info").unwrap_or(&Value::Null);
    builder.set_start(
        info.pointer("/time/created")
            .and_then(time::parse_timestamp),
    );
    for message in session
        .get("messages")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let (Some(said), Some(parts)) = (
            message.get("info"),
            message.get("parts").and_then(Value::as_array),
        ) else {
            builder.skipped += 1;
            continue;
        };
        match get_text(said, "role") {
            Some("user") => push_prompt(&mut builder, said, parts),
            Some("assistant") => ReplyStep::read_reply(&mut builder, said, parts),
            _ => builder.skipped += 1,
        }
    }
    let keys = [
        ("directory", "cwd"),
        ("version", "version"),
        ("parentID", "parent_session"),
    ];
    let about = ConversationHeader {
        id: get_text(info, "id").map(str::to_owned),
        name: get_text(info, "title").map(str::to_owned),
        metadata: select_metadata(info, &keys),
    };
    builder.finish(ImportFormat::Opencode.name(), about)
}

fn is_flag_set(part: &Value, key: &str) -> bool {
    part.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn push_prompt(builder: &mut ConversationBuilder, said: &Value, parts: &[Value]) {
    let at = said
        .pointer("/time/created")
        .and_then(time::parse_timestamp);
    // The text of attached files is included. The file marks it as synthetic.
    let part = |part: &Value| match get_text(part, "type")? {
        "text" => get_text(part, "text")
            .filter(|text| !text.is_empty())
            .map(Part::from_text),
        "file" => get_text(part, "url")
            .filter(|url| url.starts_with("data:image/"))
            .map(image_from_url),
        _ => None,
    };
    let sent = || parts.iter().filter(|part| !is_flag_set(part, "ignored"));
    let is_own = sent().any(|one| part(one).is_some() && !is_flag_set(one, "synthetic"));
    let message = builder.new_message(Role::User, sent().filter_map(part).collect(), at);
    builder.push(if is_own {
        message
    } else {
        message.with_origin(Origin::Engine)
    });
}

/// The part of a reply that the model produced in one request: its text and tool calls, with the
/// results of these calls.
#[derive(Default)]
struct ReplyStep {
    said: Vec<Part>,
    results: Vec<(String, Envelope, Option<Timestamp>)>,
}

impl ReplyStep {
    fn read_reply(builder: &mut ConversationBuilder, reply: &Value, parts: &[Value]) {
        if is_flag_set(reply, "summary") {
            let text = parts
                .iter()
                .filter_map(|part| get_text(part, "text"))
                .collect::<Vec<_>>()
                .join("\n");
            let at = reply
                .pointer("/time/created")
                .and_then(time::parse_timestamp);
            let mut message = builder
                .new_message(Role::User, vec![Part::from_text(text)], at)
                .with_origin(Origin::Engine);
            message.metadata.extend(Metadata::from_iter([(
                "compact_summary".to_owned(),
                Value::Bool(true),
            )]));
            return builder.push(message);
        }
        let mut step = Self::default();
        for part in parts {
            match get_text(part, "type") {
                Some("text") => step.said.extend(
                    get_text(part, "text")
                        .filter(|text| !text.is_empty())
                        .map(Part::from_text),
                ),
                Some("reasoning") => {
                    let text = get_text(part, "text").unwrap_or_default().to_owned();
                    step.said.push(Part::Thinking(Thinking {
                        text,
                        ..Thinking::default()
                    }));
                }
                Some("tool") => step.add_call(part),
                Some("step-finish") => {
                    std::mem::take(&mut step).push_messages(builder, reply, part.get("tokens"));
                }
                // These parts control the program and have no content.
                Some(
                    "step-start" | "snapshot" | "patch" | "agent" | "retry" | "subtask"
                    | "compaction",
                ) => {}
                _ => builder.skipped += 1,
            }
        }
        step.push_messages(builder, reply, None);
    }

    fn add_call(&mut self, part: &Value) {
        let (Some(id), Some(name), Some(state)) = (
            get_text(part, "callID"),
            get_text(part, "tool"),
            part.get("state"),
        ) else {
            return;
        };
        let arguments = state
            .get("input")
            .map_or_else(|| "{}".to_owned(), Value::to_string);
        self.said.push(Part::ToolCall(ToolCall {
            id: id.into(),
            name: name.into(),
            arguments,
            signature: None,
        }));
        let text = |key: &str| get_text(state, key).unwrap_or_default().to_owned();
        let envelope = match get_text(state, "status") {
            Some("completed") => Envelope::success(text("output")),
            Some("error") => Envelope::failure("failed", text("error")),
            // Calls that never ended are left out.
            _ => return,
        };
        let code = state.pointer("/metadata/exit").and_then(Value::as_i64);
        let envelope = match code {
            Some(code) => envelope.with_data(json!({ "exit_code": code })),
            None => envelope,
        };
        self.results.push((
            id.to_owned(),
            envelope,
            state.pointer("/time/end").and_then(time::parse_timestamp),
        ));
    }

    fn push_messages(
        self,
        builder: &mut ConversationBuilder,
        reply: &Value,
        tokens: Option<&Value>,
    ) {
        let at = reply
            .pointer("/time/created")
            .and_then(time::parse_timestamp);
        let mut message = builder.new_message(Role::Assistant, self.said, at);
        let model = get_text(reply, "providerID").zip(get_text(reply, "modelID"));
        let model = model.map(|(provider, model)| format!("{provider}/{model}"));
        message.llm_metadata = build_reply_metadata(model.as_deref(), tokens.map(read_usage));
        builder.push(message);
        for (call, envelope, at) in self.results {
            let content = vec![builder.build_result_part(&call, None, envelope)];
            let message = builder.new_message(Role::Tool, content, at);
            builder.push(message);
        }
    }
}

fn read_usage(tokens: &Value) -> ReportedUsage {
    let cache = tokens.get("cache").unwrap_or(&Value::Null);
    let reasoning = get_count(tokens, "reasoning");
    ReportedUsage {
        input: get_count(tokens, "input"),
        cached: get_count(cache, "read"),
        written: get_count(cache, "write"),
        output: get_count(tokens, "output") + reasoning,
        reasoning,
    }
}
