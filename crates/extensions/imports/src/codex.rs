//! Reads the rollout files of codex: one item of OpenAI's Responses API per line, in an envelope
//! with time and type.
//!
//! Only `response_item` lines contain the conversation. Event lines repeat it for display, except
//! for the token counts. Consecutive reasoning, text, and calls without a result between them form
//! one reply.

use haft_types::{Envelope, Message, Metadata, Origin, Part, Role, Thinking, Timestamp, ToolCall};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::build::{
    ConversationBuilder, ConversationHeader, ReportedUsage, chosen, count, made_by,
};
use crate::chat::image_of;
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, time};

#[derive(Deserialize)]
struct RolloutLine<'a> {
    r#type: Option<String>,
    #[serde(default)]
    timestamp: Value,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

/// The state of the reader.
struct RolloutReader {
    builder: ConversationBuilder,
    about: ConversationHeader,
    model: Option<String>,
    provider: String,
    /// The reply under construction.
    reply: Option<Message>,
    /// The total usage so far, if the file records it.
    total: Option<ReportedUsage>,
}

pub(crate) fn read(source: SourceText<'_>) -> Result<ImportedConversation, ImportError> {
    let mut reader = RolloutReader {
        builder: ConversationBuilder::new(source.now),
        about: ConversationHeader::default(),
        model: None,
        provider: "openai".to_owned(),
        reply: None,
        total: None,
    };
    for text in source.text.lines().filter(|line| !line.trim().is_empty()) {
        // The last line of a killed session may be truncated.
        match serde_json::from_str::<RolloutLine<'_>>(text) {
            Ok(line) => reader.take(&line, text),
            Err(_) => reader.builder.skipped += 1,
        }
    }
    reader.end_reply();
    reader
        .builder
        .finish(ImportFormat::Codex.name(), reader.about)
}

impl RolloutReader {
    fn take(&mut self, line: &RolloutLine<'_>, text: &str) {
        let at = time::read(&line.timestamp);
        // Older files have neither envelope nor payload: each line is an item, and the first
        // describes the session.
        let raw = line.payload.map_or(text, RawValue::get);
        let value: Value = serde_json::from_str(raw).unwrap_or_default();
        match (line.type_or_session(), line.payload.is_some()) {
            ("session_meta", _) => self.session(&value),
            ("turn_context", _) => {
                self.model = value
                    .get("model")
                    .and_then(Value::as_str)
                    .map(str::to_owned);
            }
            ("event_msg", _) => self.event(&value),
            ("compacted", _) => self.compacted(&value, at),
            ("response_item", true) | (_, false) => self.item(&value, raw, at),
            (_, true) => self.builder.skipped += 1,
        }
    }

    fn session(&mut self, session: &Value) {
        if self.about.id.is_some() {
            return;
        }
        self.about.id = session.get("id").and_then(Value::as_str).map(str::to_owned);
        self.builder
            .begun(session.get("timestamp").and_then(time::read));
        let keys = [
            ("cwd", "cwd"),
            ("cli_version", "version"),
            ("originator", "originator"),
            ("git", "git"),
        ];
        self.about.metadata = chosen(session, &keys);
        if let Some(provider) = session.get("model_provider").and_then(Value::as_str) {
            provider.clone_into(&mut self.provider);
        }
    }

    /// Adds a token count to the last reply. The count follows the reply, and may follow its
    /// results.
    fn event(&mut self, event: &Value) {
        if event.get("type").and_then(Value::as_str) != Some("token_count") {
            return;
        }
        let Some(usage) = self.counted(event) else {
            return;
        };
        let reply = self
            .reply
            .as_mut()
            .or_else(|| self.builder.last_reply_mut());
        if let Some(reply) = reply {
            let model = reply
                .llm_metadata
                .as_ref()
                .map(|made| made.model_name.clone());
            let round = reply
                .llm_metadata
                .as_ref()
                .map_or(0, |made| made.conversation_round);
            reply.llm_metadata = made_by(model.as_deref(), Some(usage));
            if let Some(made) = &mut reply.llm_metadata {
                made.conversation_round = round;
            }
        }
    }

    /// Returns the usage of the newest request: reported directly, as the difference of two totals,
    /// or without an envelope in older versions.
    fn counted(&mut self, event: &Value) -> Option<ReportedUsage> {
        let total = event.pointer("/info/total_token_usage").map(used);
        let before = self.total;
        self.total = total.or(before);
        if let Some(last) = event.pointer("/info/last_token_usage") {
            return Some(used(last));
        }
        match (total, before) {
            // An unchanged total does not describe a new request.
            (Some(total), before) if Some(total) != before => {
                Some(total.since(before.unwrap_or_default()))
            }
            (Some(_), _) => None,
            (None, _) => event.get("input_tokens").is_some().then(|| used(event)),
        }
    }

    fn compacted(&mut self, compacted: &Value, at: Option<Timestamp>) {
        self.end_reply();
        let Some(text) = compacted
            .get("message")
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
        else {
            return;
        };
        let mut message = self
            .builder
            .message(Role::User, vec![Part::text(text)], at)
            .from(Origin::Engine);
        message.metadata.extend(Metadata::from_iter([(
            "compact_summary".to_owned(),
            Value::Bool(true),
        )]));
        self.builder.push(message);
    }

    fn item(&mut self, item: &Value, raw: &str, at: Option<Timestamp>) {
        let text = |key: &str| item.get(key).and_then(Value::as_str);
        match text("type") {
            Some("message") => self.message(item, at),
            Some("reasoning") => self.reply_part(reasoning(item, raw), at),
            Some("function_call" | "custom_tool_call" | "local_shell_call") => {
                match call(item, raw) {
                    Some(call) => self.reply_part(Part::ToolCall(call), at),
                    None => self.builder.skipped += 1,
                }
            }
            Some("function_call_output" | "custom_tool_call_output") => {
                self.end_reply();
                let Some(id) = text("call_id") else {
                    return self.builder.skipped += 1;
                };
                let envelope = output(item.get("output").unwrap_or(&Value::Null));
                let content = vec![self.builder.result(id, None, envelope)];
                let message = self.builder.message(Role::Tool, content, at);
                self.builder.push(message);
            }
            _ => self.builder.skipped += 1,
        }
    }

    fn message(&mut self, item: &Value, at: Option<Timestamp>) {
        let parts = content(item.get("content").unwrap_or(&Value::Null));
        match item.get("role").and_then(Value::as_str) {
            Some("assistant") => parts.into_iter().for_each(|part| self.reply_part(part, at)),
            Some("user") => {
                self.end_reply();
                let injected =
                    matches!(parts.first(), Some(Part::Text { text, .. }) if is_injected(text));
                let message = self.builder.message(Role::User, parts, at);
                self.builder.push(if injected {
                    message.from(Origin::Engine)
                } else {
                    message
                });
            }
            Some("system" | "developer") => {
                self.end_reply();
                let message = self.builder.instructions(parts, at);
                self.builder.push(message);
            }
            _ => self.builder.skipped += 1,
        }
    }

    fn reply_part(&mut self, part: Part, at: Option<Timestamp>) {
        if let Some(reply) = &mut self.reply {
            reply.content.push(part);
            return;
        }
        let mut reply = self.builder.message(Role::Assistant, vec![part], at);
        let model = self
            .model
            .as_ref()
            .map(|model| format!("{}/{model}", self.provider));
        reply.llm_metadata = made_by(model.as_deref(), None);
        self.reply = Some(reply);
    }

    fn end_reply(&mut self) {
        if let Some(reply) = self.reply.take() {
            self.builder.push(reply);
        }
    }
}

impl RolloutLine<'_> {
    fn type_or_session(&self) -> &str {
        self.r#type.as_deref().unwrap_or("session_meta")
    }
}

/// True if codex itself added a user message, which then begins with one of its tags.
fn is_injected(text: &str) -> bool {
    let tags = [
        "<user_instructions>",
        "<environment_context>",
        "<user_action>",
        "<turn_aborted>",
        "# AGENTS.md instructions",
    ];
    tags.iter().any(|tag| text.trim_start().starts_with(tag))
}

fn reasoning(item: &Value, raw: &str) -> Part {
    let pieces = item
        .get("summary")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let text: Vec<&str> = pieces
        .filter_map(|piece| piece.get("text")?.as_str())
        .collect();
    let signature = item
        .get("encrypted_content")
        .and_then(Value::as_str)
        .map(str::to_owned);
    // The API accepts the item only unchanged and with its encrypted content.
    let raw = signature.is_some().then(|| raw.to_owned());
    Part::Thinking(Thinking {
        text: text.join("\n\n"),
        signature,
        raw,
    })
}

#[derive(Deserialize)]
struct RawCall<'a> {
    #[serde(borrow)]
    action: Option<&'a RawValue>,
}

fn call(item: &Value, raw: &str) -> Option<ToolCall> {
    let text = |key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
    let id = text("call_id").or_else(|| text("id"))?;
    let (name, arguments) = match item.get("type").and_then(Value::as_str)? {
        "function_call" => (text("name")?, text("arguments")?),
        // The input is free text, not JSON.
        "custom_tool_call" => (
            text("name")?,
            json!({ "input": text("input")? }).to_string(),
        ),
        _ => (
            "local_shell".to_owned(),
            serde_json::from_str::<RawCall<'_>>(raw)
                .ok()?
                .action?
                .get()
                .to_owned(),
        ),
    };
    Some(ToolCall {
        id,
        name,
        arguments,
        signature: None,
    })
}

/// Reads the output of a call: plain text, or JSON with text, exit code, or status.
fn output(output: &Value) -> Envelope {
    let mut exit_code = None;
    let (text, success) = match output {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner) if inner.get("output").is_some_and(Value::is_string) => {
                exit_code = inner.pointer("/metadata/exit_code").and_then(Value::as_i64);
                (
                    inner["output"].as_str().unwrap_or_default().to_owned(),
                    exit_code.is_none_or(|code| code == 0),
                )
            }
            Ok(_) | Err(_) => (text.clone(), true),
        },
        Value::Object(object) => {
            let text = object
                .get("content")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            (
                text,
                object
                    .get("success")
                    .and_then(Value::as_bool)
                    .unwrap_or(true),
            )
        }
        Value::Array(pieces) => (
            pieces
                .iter()
                .filter_map(|piece| piece.get("text")?.as_str())
                .collect::<Vec<_>>()
                .join("\n"),
            true,
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => (String::new(), true),
    };
    let envelope = if success {
        Envelope::success(text)
    } else {
        Envelope::failure("failed", text)
    };
    match exit_code {
        Some(code) => envelope.with_data(json!({ "exit_code": code })),
        None => envelope,
    }
}

fn content(content: &Value) -> Vec<Part> {
    let Some(pieces) = content.as_array() else {
        return content.as_str().map(Part::text).into_iter().collect();
    };
    let part = |piece: &Value| {
        let text = |key: &str| piece.get(key).and_then(Value::as_str);
        match text("type")? {
            "input_image" => text("image_url").map(image_of),
            _ => text("text").filter(|text| !text.is_empty()).map(Part::text),
        }
    };
    pieces.iter().filter_map(part).collect()
}

/// Reads token counts. Cached input is part of the input in this format, and reasoning is part of
/// the output.
pub(crate) fn used(usage: &Value) -> ReportedUsage {
    let cached = count(usage, "cached_input_tokens");
    let written = count(usage, "cache_write_input_tokens");
    ReportedUsage {
        input: count(usage, "input_tokens").saturating_sub(cached + written),
        cached,
        written,
        output: count(usage, "output_tokens"),
        reasoning: count(usage, "reasoning_output_tokens"),
    }
}
