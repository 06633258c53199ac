//! Reads sessions of opencode as `opencode export` prints them: messages of parts, where one part
//! holds a call and its result.
//!
//! A message of the model may contain several steps, each a separate request. The system prompt and
//! the tools are not recorded.

use haft_types::{Envelope, Metadata, Origin, Part, Role, Thinking, Timestamp, ToolCall};
use serde_json::{Value, json};

use crate::build::{
    ConversationBuilder, ConversationHeader, ReportedUsage, chosen, count, made_by, text_of, values,
};
use crate::chat::image_of;
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, time};

pub(crate) fn read(source: SourceText<'_>) -> Result<Vec<ImportedConversation>, ImportError> {
    values(source.text)?
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
    builder.begun(info.pointer("/time/created").and_then(time::read));
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
        match text_of(said, "role") {
            Some("user") => take_prompt(&mut builder, said, parts),
            Some("assistant") => Step::read(&mut builder, said, parts),
            _ => builder.skipped += 1,
        }
    }
    let keys = [
        ("directory", "cwd"),
        ("version", "version"),
        ("parentID", "parent_session"),
    ];
    let about = ConversationHeader {
        id: text_of(info, "id").map(str::to_owned),
        name: text_of(info, "title").map(str::to_owned),
        metadata: chosen(info, &keys),
    };
    builder.finish(ImportFormat::Opencode.name(), about)
}

fn is_set(part: &Value, key: &str) -> bool {
    part.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn take_prompt(builder: &mut ConversationBuilder, said: &Value, parts: &[Value]) {
    let at = said.pointer("/time/created").and_then(time::read);
    // The text of attached files is included, marked as synthetic.
    let part = |part: &Value| match text_of(part, "type")? {
        "text" => text_of(part, "text")
            .filter(|text| !text.is_empty())
            .map(Part::text),
        "file" => text_of(part, "url")
            .filter(|url| url.starts_with("data:image/"))
            .map(image_of),
        _ => None,
    };
    let sent = || parts.iter().filter(|part| !is_set(part, "ignored"));
    let is_own = sent().any(|one| part(one).is_some() && !is_set(one, "synthetic"));
    let message = builder.message(Role::User, sent().filter_map(part).collect(), at);
    builder.push(if is_own {
        message
    } else {
        message.from(Origin::Engine)
    });
}

/// The part of a reply from one request: text and calls, and the results of the calls.
#[derive(Default)]
struct Step {
    said: Vec<Part>,
    results: Vec<(String, Envelope, Option<Timestamp>)>,
}

impl Step {
    fn read(builder: &mut ConversationBuilder, reply: &Value, parts: &[Value]) {
        if is_set(reply, "summary") {
            let text = parts
                .iter()
                .filter_map(|part| text_of(part, "text"))
                .collect::<Vec<_>>()
                .join("\n");
            let at = reply.pointer("/time/created").and_then(time::read);
            let mut message = builder
                .message(Role::User, vec![Part::text(text)], at)
                .from(Origin::Engine);
            message.metadata.extend(Metadata::from_iter([(
                "compact_summary".to_owned(),
                Value::Bool(true),
            )]));
            return builder.push(message);
        }
        let mut step = Self::default();
        for part in parts {
            match text_of(part, "type") {
                Some("text") => step.said.extend(
                    text_of(part, "text")
                        .filter(|text| !text.is_empty())
                        .map(Part::text),
                ),
                Some("reasoning") => {
                    let text = text_of(part, "text").unwrap_or_default().to_owned();
                    step.said.push(Part::Thinking(Thinking {
                        text,
                        ..Thinking::default()
                    }));
                }
                Some("tool") => step.call(part),
                Some("step-finish") => {
                    std::mem::take(&mut step).end(builder, reply, part.get("tokens"));
                }
                // Control parts of the program.
                Some(
                    "step-start" | "snapshot" | "patch" | "agent" | "retry" | "subtask"
                    | "compaction",
                ) => {}
                _ => builder.skipped += 1,
            }
        }
        step.end(builder, reply, None);
    }

    fn call(&mut self, part: &Value) {
        let (Some(id), Some(name), Some(state)) = (
            text_of(part, "callID"),
            text_of(part, "tool"),
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
        let text = |key: &str| text_of(state, key).unwrap_or_default().to_owned();
        let envelope = match text_of(state, "status") {
            Some("completed") => Envelope::success(text("output")),
            Some("error") => Envelope::failure("failed", text("error")),
            // The call never ended.
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
            state.pointer("/time/end").and_then(time::read),
        ));
    }

    fn end(self, builder: &mut ConversationBuilder, reply: &Value, tokens: Option<&Value>) {
        let at = reply.pointer("/time/created").and_then(time::read);
        let mut message = builder.message(Role::Assistant, self.said, at);
        let model = text_of(reply, "providerID").zip(text_of(reply, "modelID"));
        let model = model.map(|(provider, model)| format!("{provider}/{model}"));
        message.llm_metadata = made_by(model.as_deref(), tokens.map(used));
        builder.push(message);
        for (call, envelope, at) in self.results {
            let content = vec![builder.result(&call, None, envelope)];
            let message = builder.message(Role::Tool, content, at);
            builder.push(message);
        }
    }
}

fn used(tokens: &Value) -> ReportedUsage {
    let cache = tokens.get("cache").unwrap_or(&Value::Null);
    let reasoning = count(tokens, "reasoning");
    ReportedUsage {
        input: count(tokens, "input"),
        cached: count(cache, "read"),
        written: count(cache, "write"),
        output: count(tokens, "output") + reasoning,
        reasoning,
    }
}
