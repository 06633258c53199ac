//! The trajectories of `OpenHands`: a list of events, each an action of somebody or an observation that an action caused.

use haft_types::{Envelope, Origin, Part, Role, ToolCall};
use serde_json::Value;

use crate::build::{ConversationBuilder, ConversationHeader, text_of};
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, time};

pub(crate) fn read(source: SourceText<'_>) -> Result<ImportedConversation, ImportError> {
    let file: Value = serde_json::from_str(source.text)?;
    let events = file.as_array().or_else(|| file.get("history")?.as_array());
    let mut builder = ConversationBuilder::new(source.now);
    for event in events.into_iter().flatten() {
        take(&mut builder, event);
    }
    let id = file.get("instance_id").and_then(Value::as_str).map(str::to_owned);
    builder.finish(ImportFormat::Openhands.name(), ConversationHeader { id, ..ConversationHeader::default() })
}

fn take(builder: &mut ConversationBuilder, event: &Value) {
    let at = event.get("timestamp").and_then(time::read);
    let said = |key: &str| event.pointer(&format!("/args/{key}")).and_then(Value::as_str).unwrap_or_default();
    let message = match (text_of(event, "action"), text_of(event, "source")) {
        (Some("message"), Some("user")) => builder.message(Role::User, vec![Part::text(said("content"))], at),
        (Some("message"), _) => builder.message(Role::Assistant, vec![Part::text(said("content"))], at),
        (Some("system"), _) => builder.instructions(vec![Part::text(said("content"))], at),
        // What the program does with itself.
        (Some("change_agent_state" | "recall" | "null" | "condensation"), _) => return,
        (Some(action), _) => {
            let thought = Some(said("thought")).filter(|text| !text.is_empty()).map(Part::text);
            let parts = thought.into_iter().chain([Part::ToolCall(call(event, action))]).collect();
            builder.message(Role::Assistant, parts, at)
        }
        (None, _) => match (text_of(event, "observation"), event.get("cause")) {
            (Some("agent_state_changed" | "recall" | "null") | None, _) => return,
            (Some(_), Some(_)) => {
                let text = text_of(event, "content").unwrap_or_default();
                let failed = text_of(event, "observation") == Some("error");
                let envelope = if failed { Envelope::failure("failed", text) } else { Envelope::success(text) };
                let id = call_id(event, event.get("cause"));
                let content = vec![builder.result(&id, None, envelope)];
                builder.message(Role::Tool, content, at)
            }
            (Some(_), None) => {
                let text = text_of(event, "content").unwrap_or_default();
                builder.message(Role::User, vec![Part::text(text)], at).from(Origin::Engine)
            }
        },
    };
    builder.push(message);
}

/// The id of a call: the model's own, else one from the number of the action.
fn call_id(event: &Value, number: Option<&Value>) -> String {
    match event.pointer("/tool_call_metadata/tool_call_id").and_then(Value::as_str) {
        Some(id) => id.to_owned(),
        None => format!("call_{}", number.unwrap_or(&Value::Null)),
    }
}

/// The call as the model made it where that is kept, else as the action says.
fn call(event: &Value, action: &str) -> ToolCall {
    let id = call_id(event, event.get("id"));
    let calls = event.pointer("/tool_call_metadata/model_response/choices/0/message/tool_calls");
    let calls = calls.and_then(Value::as_array).into_iter().flatten();
    let made = calls.filter(|call| text_of(call, "id") == Some(id.as_str())).find_map(|call| {
        let function = call.get("function")?;
        Some((text_of(function, "name")?.to_owned(), text_of(function, "arguments")?.to_owned()))
    });
    let (name, arguments) = made.unwrap_or_else(|| {
        let name = match action {
            "run" => "execute_bash",
            "read" => "read_file",
            "write" => "write_to_file",
            "edit" => "str_replace",
            other => other,
        };
        (name.to_owned(), event.get("args").map_or_else(|| "{}".to_owned(), Value::to_string))
    });
    ToolCall { id, name, arguments, signature: None }
}
