//! Reads the conversations of `OpenHands`: events, each either an action or the observation that an
//! action caused.
//!
//! ```text
//! [{"action": …}, {"observation": …}, …]                  a trajectory
//! {"history": [[{"action": …}, {"observation": …}], …]}   pairs, as evaluations wrote them in 2024
//! {"history": [{"kind": "ActionEvent", …}, …]}            since 1.0, read in `sdk.rs`
//! ```
//!
//! Some files lack the source of a message and the cause of an observation. Both are then derived
//! from the position: the first message is the user's, and an observation answers the newest call
//! without a result.

mod sdk;

use haft_types::{Envelope, Metadata, Origin, Part, Role, Timestamp, ToolCall};
use serde_json::{Value, json};

use crate::conversation_builder::{
    ConversationBuilder, ConversationHeader, build_reply_metadata, get_text,
};
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, chat, time};

pub(crate) fn read_events(source: SourceText<'_>) -> Result<ImportedConversation, ImportError> {
    let file: Value = serde_json::from_str(source.text)?;
    let events = file
        .as_array()
        .or_else(|| file.get("history")?.as_array())
        .into_iter()
        .flatten();
    let mut reader = EventReader {
        builder: ConversationBuilder::new(source.now),
        open: Vec::new(),
        is_begun: false,
    };
    let mut sdk = sdk::SdkState::new(&file);
    for event in events.flat_map(|one| {
        one.as_array()
            .map_or(std::slice::from_ref(one), Vec::as_slice)
    }) {
        match get_text(event, "kind") {
            Some(kind) => sdk.read_event(&mut reader, event, kind),
            None => reader.read_event(event),
        }
    }
    let id = ["instance_id", "id"]
        .iter()
        .find_map(|key| get_text(&file, key))
        .map(str::to_owned);
    reader.builder.finish(
        ImportFormat::Openhands.name(),
        ConversationHeader {
            id,
            ..ConversationHeader::default()
        },
    )
}

/// True if `value` is an event of `OpenHands`, or a list that begins with one, such as an action
/// and its observation.
pub(crate) fn is_event(value: &Value) -> bool {
    let first = value
        .as_array()
        .and_then(|pair| pair.first())
        .unwrap_or(value);
    let is_sdk = get_text(first, "kind").is_some() && get_text(first, "source").is_some();
    is_sdk || first.get("action").or(first.get("observation")).is_some()
}

struct EventReader {
    builder: ConversationBuilder,
    /// The ids of the calls that have no result yet.
    open: Vec<String>,
    /// True if the conversation contains messages other than instructions.
    is_begun: bool,
}

impl EventReader {
    fn read_event(&mut self, event: &Value) {
        let at = event.get("timestamp").and_then(time::parse_timestamp);
        let said = |key: &str| {
            event
                .pointer(&format!("/args/{key}"))
                .and_then(Value::as_str)
        };
        let first = |keys: &[&str]| {
            keys.iter()
                .find_map(|key| said(key).filter(|text| !text.is_empty()))
        };
        let is_user = get_text(event, "source") == Some("user");
        match get_text(event, "action") {
            Some("message") => {
                let text = first(&["content"])
                    .or_else(|| get_text(event, "message"))
                    .unwrap_or_default();
                let (role, origin) = self.find_message_sender(event);
                self.push_message(role, origin, vec![Part::from_text(text)], at);
            }
            Some("system") => {
                self.push_instructions(
                    vec![Part::from_text(said("content").unwrap_or_default())],
                    at,
                );
            }
            Some("condensation") => self.push_summary(said("summary"), at),
            // These actions describe internal state of the program.
            Some("change_agent_state" | "recall" | "null" | "condensation_request") => {}
            // These actions have no observation; their text is the final reply.
            Some("finish" | "reject") => {
                let text =
                    first(&["final_thought", "thought"]).or_else(|| get_text(event, "message"));
                self.push_message(
                    Role::Assistant,
                    None,
                    text.map(Part::from_text).into_iter().collect(),
                    at,
                );
            }
            Some("run") if is_user => {
                let text = format!("Ran `{}`", said("command").unwrap_or_default());
                self.push_message(
                    Role::User,
                    Some(Origin::Engine),
                    vec![Part::from_text(text)],
                    at,
                );
            }
            Some(action) => {
                let call = self.read_call(event, action);
                self.open.push(call.id.clone());
                let thought = first(&["thought"]).map(Part::from_text);
                let parts = thought.into_iter().chain([Part::ToolCall(call)]).collect();
                let mut message = self.builder.new_message(Role::Assistant, parts, at);
                if let Some(response) = event.pointer("/tool_call_metadata/model_response") {
                    message.llm_metadata = build_reply_metadata(
                        get_text(response, "model"),
                        response.get("usage").map(chat::read_usage),
                    );
                }
                self.is_begun = true;
                self.builder.push(message);
            }
            None => self.read_observation(event, at),
        }
    }

    /// Returns the role and origin of a message. If the source is missing, a message with
    /// `wait_for_response` set to false is the user's.
    fn find_message_sender(&self, event: &Value) -> (Role, Option<Origin>) {
        let waits = event
            .pointer("/args/wait_for_response")
            .and_then(Value::as_bool);
        match (get_text(event, "source"), waits) {
            (Some("user"), _) | (None, Some(false)) => (Role::User, None),
            (Some("environment"), _) => (Role::User, Some(Origin::Engine)),
            (None, None) if !self.is_begun => (Role::User, None),
            _ => (Role::Assistant, None),
        }
    }

    fn read_observation(&mut self, event: &Value, at: Option<Timestamp>) {
        let Some(kind) = get_text(event, "observation") else {
            return self.builder.skipped += 1;
        };
        if matches!(kind, "agent_state_changed" | "recall" | "null") {
            return;
        }
        let text = get_text(event, "content").unwrap_or_default();
        let cause = event.get("cause").filter(|cause| !cause.is_null());
        let call = call_id(event, cause).or_else(|| self.open.last().cloned());
        match call.filter(|id| self.open.contains(id)) {
            Some(id) => {
                let failed = matches!(kind, "error" | "user_rejected")
                    || event.get("success") == Some(&false.into());
                let done = build_result_envelope(text, failed, event.get("extras"));
                self.push_result(&id, done, at);
            }
            None => self.push_message(
                Role::User,
                Some(Origin::Engine),
                vec![Part::from_text(text)],
                at,
            ),
        }
    }

    fn push_message(
        &mut self,
        role: Role,
        origin: Option<Origin>,
        parts: Vec<Part>,
        at: Option<Timestamp>,
    ) {
        let message = self.builder.new_message(role, parts, at);
        self.is_begun = true;
        self.builder.push(
            origin
                .into_iter()
                .fold(message, haft_types::Message::with_origin),
        );
    }

    fn push_instructions(&mut self, parts: Vec<Part>, at: Option<Timestamp>) {
        let message = self.builder.new_instructions(parts, at);
        self.builder.push(message);
    }

    fn push_summary(&mut self, summary: Option<&str>, at: Option<Timestamp>) {
        let Some(summary) = summary.filter(|summary| !summary.is_empty()) else {
            return;
        };
        let mut message = self
            .builder
            .new_message(Role::User, vec![Part::from_text(summary)], at)
            .with_origin(Origin::Engine);
        message.metadata.extend(Metadata::from_iter([(
            "compact_summary".to_owned(),
            Value::Bool(true),
        )]));
        self.builder.push(message);
    }

    fn push_result(&mut self, call: &str, done: Envelope, at: Option<Timestamp>) {
        self.open.retain(|open| open != call);
        let content = vec![self.builder.build_result_part(call, None, done)];
        let message = self.builder.new_message(Role::Tool, content, at);
        self.builder.push(message);
    }

    /// Returns the tool call as the model made it, if the event contains that. Otherwise builds a
    /// call from the action that was executed.
    fn read_call(&self, event: &Value, action: &str) -> ToolCall {
        let id = call_id(event, event.get("id"))
            .unwrap_or_else(|| format!("call_at_{}", self.builder.message_count()));
        let calls =
            event.pointer("/tool_call_metadata/model_response/choices/0/message/tool_calls");
        let calls = calls.and_then(Value::as_array).into_iter().flatten();
        let made = calls
            .filter(|call| get_text(call, "id") == Some(id.as_str()))
            .find_map(|call| {
                let function = call.get("function")?;
                Some((
                    get_text(function, "name")?.to_owned(),
                    get_text(function, "arguments")?.to_owned(),
                ))
            });
        let (name, arguments) = made.unwrap_or_else(|| {
            let name = match action {
                "run" => "execute_bash",
                "read" => "read_file",
                "write" => "write_to_file",
                "edit" => "str_replace",
                other => other,
            };
            (
                name.to_owned(),
                event
                    .get("args")
                    .map_or_else(|| "{}".to_owned(), Value::to_string),
            )
        });
        ToolCall {
            id,
            name,
            arguments,
            signature: None,
        }
    }
}

/// Returns the id of a tool call: the id in the event's metadata, or one derived from `number`,
/// which is the number of the action. Returns `None` if both are missing.
fn call_id(event: &Value, number: Option<&Value>) -> Option<String> {
    let own = event
        .pointer("/tool_call_metadata/tool_call_id")
        .and_then(Value::as_str);
    own.map(str::to_owned)
        .or_else(|| Some(format!("call_{}", number?)))
}

/// Builds the result of a call. The exit code is read from `about`, at the top level or in its
/// metadata; -1 is ignored, because it means that the command is still running.
fn build_result_envelope(text: &str, failed: bool, about: Option<&Value>) -> Envelope {
    let code = ["/exit_code", "/metadata/exit_code"]
        .iter()
        .find_map(|place| about?.pointer(place)?.as_i64());
    let code = code.filter(|code| *code >= 0);
    let failed = failed || code.is_some_and(|code| code != 0);
    let done = if failed {
        Envelope::failure("failed", text)
    } else {
        Envelope::success(text)
    };
    code.into_iter().fold(done, |done, code| {
        done.with_data(json!({ "exit_code": code }))
    })
}
