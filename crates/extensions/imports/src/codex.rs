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

use crate::chat::image_from_url;
use crate::conversation_builder::{
    ConversationBuilder, ConversationHeader, ReportedUsage, build_reply_metadata, get_count,
    select_metadata,
};
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, time};

#[derive(Deserialize)]
struct RolloutLine<'a> {
    r#type: Option<String>,
    #[serde(default)]
    timestamp: Value,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

/// Reads the lines of a rollout file, and collects the messages of the conversation.
struct RolloutReader {
    builder: ConversationBuilder,
    about: ConversationHeader,
    model: Option<String>,
    provider: String,
    /// The model's reply that is being put together from several lines.
    reply: Option<Message>,
    /// The total usage of the session so far, if the file contains it.
    total: Option<ReportedUsage>,
}

pub(crate) fn read_rollout(source: SourceText<'_>) -> Result<ImportedConversation, ImportError> {
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
            Ok(line) => reader.import_line(&line, text),
            Err(_) => reader.builder.skipped += 1,
        }
    }
    reader.finish_reply();
    reader
        .builder
        .finish(ImportFormat::Codex.name(), reader.about)
}

impl RolloutReader {
    fn import_line(&mut self, line: &RolloutLine<'_>, text: &str) {
        let at = time::parse_timestamp(&line.timestamp);
        // Older files have neither envelope nor payload: each line is an item, and the first line
        // describes the session.
        let raw = line.payload.map_or(text, RawValue::get);
        let value: Value = serde_json::from_str(raw).unwrap_or_default();
        match (line.line_type(), line.payload.is_some()) {
            ("session_meta", _) => self.read_session_meta(&value),
            ("turn_context", _) => {
                self.model = value
                    .get("model")
                    .and_then(Value::as_str)
                    .map(str::to_owned);
            }
            ("event_msg", _) => self.read_token_count(&value),
            ("compacted", _) => self.push_summary(&value, at),
            ("response_item", true) | (_, false) => self.read_item(&value, raw, at),
            (_, true) => self.builder.skipped += 1,
        }
    }

    fn read_session_meta(&mut self, session: &Value) {
        if self.about.id.is_some() {
            return;
        }
        self.about.id = session.get("id").and_then(Value::as_str).map(str::to_owned);
        self.builder
            .set_start(session.get("timestamp").and_then(time::parse_timestamp));
        let keys = [
            ("cwd", "cwd"),
            ("cli_version", "version"),
            ("originator", "originator"),
            ("git", "git"),
        ];
        self.about.metadata = select_metadata(session, &keys);
        if let Some(provider) = session.get("model_provider").and_then(Value::as_str) {
            provider.clone_into(&mut self.provider);
        }
    }

    /// Adds a token count to the last reply. The file may contain the count after the results of
    /// the reply's calls.
    fn read_token_count(&mut self, event: &Value) {
        if event.get("type").and_then(Value::as_str) != Some("token_count") {
            return;
        }
        let Some(usage) = self.find_request_usage(event) else {
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
            reply.llm_metadata = build_reply_metadata(model.as_deref(), Some(usage));
            if let Some(made) = &mut reply.llm_metadata {
                made.conversation_round = round;
            }
        }
    }

    /// Returns the usage of the newest request. Depending on the version of codex, the event
    /// contains this usage, only the session's total, from which the previous total is subtracted,
    /// or bare counts without an envelope.
    fn find_request_usage(&mut self, event: &Value) -> Option<ReportedUsage> {
        let total = event.pointer("/info/total_token_usage").map(read_usage);
        let before = self.total;
        self.total = total.or(before);
        if let Some(last) = event.pointer("/info/last_token_usage") {
            return Some(read_usage(last));
        }
        match (total, before) {
            // An unchanged total does not describe a new request.
            (Some(total), before) if Some(total) != before => {
                Some(total.subtract(before.unwrap_or_default()))
            }
            (Some(_), _) => None,
            (None, _) => event
                .get("input_tokens")
                .is_some()
                .then(|| read_usage(event)),
        }
    }

    fn push_summary(&mut self, compacted: &Value, at: Option<Timestamp>) {
        self.finish_reply();
        let Some(text) = compacted
            .get("message")
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
        else {
            return;
        };
        let mut message = self
            .builder
            .new_message(Role::User, vec![Part::from_text(text)], at)
            .with_origin(Origin::Engine);
        message.metadata.extend(Metadata::from_iter([(
            "compact_summary".to_owned(),
            Value::Bool(true),
        )]));
        self.builder.push(message);
    }

    fn read_item(&mut self, item: &Value, raw: &str, at: Option<Timestamp>) {
        let text = |key: &str| item.get(key).and_then(Value::as_str);
        match text("type") {
            Some("message") => self.read_message(item, at),
            Some("reasoning") => self.extend_reply(read_reasoning(item, raw), at),
            Some("function_call" | "custom_tool_call" | "local_shell_call") => {
                match read_call(item, raw) {
                    Some(call) => self.extend_reply(Part::ToolCall(call), at),
                    None => self.builder.skipped += 1,
                }
            }
            Some("function_call_output" | "custom_tool_call_output") => {
                self.finish_reply();
                let Some(id) = text("call_id") else {
                    return self.builder.skipped += 1;
                };
                let envelope = read_output(item.get("output").unwrap_or(&Value::Null));
                let content = vec![self.builder.build_result_part(id, None, envelope)];
                let message = self.builder.new_message(Role::Tool, content, at);
                self.builder.push(message);
            }
            _ => self.builder.skipped += 1,
        }
    }

    fn read_message(&mut self, item: &Value, at: Option<Timestamp>) {
        let parts = read_content(item.get("content").unwrap_or(&Value::Null));
        match item.get("role").and_then(Value::as_str) {
            Some("assistant") => parts
                .into_iter()
                .for_each(|part| self.extend_reply(part, at)),
            Some("user") => {
                self.finish_reply();
                let injected = matches!(parts.first(), Some(Part::Text { text, .. }) if is_added_by_codex(text));
                let message = self.builder.new_message(Role::User, parts, at);
                self.builder.push(if injected {
                    message.with_origin(Origin::Engine)
                } else {
                    message
                });
            }
            Some("system" | "developer") => {
                self.finish_reply();
                let message = self.builder.new_instructions(parts, at);
                self.builder.push(message);
            }
            _ => self.builder.skipped += 1,
        }
    }

    fn extend_reply(&mut self, part: Part, at: Option<Timestamp>) {
        if let Some(reply) = &mut self.reply {
            reply.content.push(part);
            return;
        }
        let mut reply = self.builder.new_message(Role::Assistant, vec![part], at);
        let model = self
            .model
            .as_ref()
            .map(|model| format!("{}/{model}", self.provider));
        reply.llm_metadata = build_reply_metadata(model.as_deref(), None);
        self.reply = Some(reply);
    }

    fn finish_reply(&mut self) {
        if let Some(reply) = self.reply.take() {
            self.builder.push(reply);
        }
    }
}

impl RolloutLine<'_> {
    fn line_type(&self) -> &str {
        self.r#type.as_deref().unwrap_or("session_meta")
    }
}

/// True if a user message was added by codex itself. Such a message begins with one of codex's
/// tags.
fn is_added_by_codex(text: &str) -> bool {
    let tags = [
        "<user_instructions>",
        "<environment_context>",
        "<user_action>",
        "<turn_aborted>",
        "# AGENTS.md instructions",
    ];
    tags.iter().any(|tag| text.trim_start().starts_with(tag))
}

fn read_reasoning(item: &Value, raw: &str) -> Part {
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
    // The item is kept unchanged, because the API accepts it only unchanged and with its encrypted
    // content.
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

fn read_call(item: &Value, raw: &str) -> Option<ToolCall> {
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

/// Reads the output of a call: plain text, or JSON that contains text and an exit code or status.
fn read_output(output: &Value) -> Envelope {
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

fn read_content(content: &Value) -> Vec<Part> {
    let Some(pieces) = content.as_array() else {
        return content.as_str().map(Part::from_text).into_iter().collect();
    };
    let part = |piece: &Value| {
        let text = |key: &str| piece.get(key).and_then(Value::as_str);
        match text("type")? {
            "input_image" => text("image_url").map(image_from_url),
            _ => text("text")
                .filter(|text| !text.is_empty())
                .map(Part::from_text),
        }
    };
    pieces.iter().filter_map(part).collect()
}

/// Reads token counts. In this format, cached input is included in the input, and reasoning in the
/// output.
pub(crate) fn read_usage(usage: &Value) -> ReportedUsage {
    let cached = get_count(usage, "cached_input_tokens");
    let written = get_count(usage, "cache_write_input_tokens");
    ReportedUsage {
        input: get_count(usage, "input_tokens").saturating_sub(cached + written),
        cached,
        written,
        output: get_count(usage, "output_tokens"),
        reasoning: get_count(usage, "reasoning_output_tokens"),
    }
}
