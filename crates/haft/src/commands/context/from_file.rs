//! A conversation from a file: an export of haft's, or chat messages as OpenAI's API takes them.
//!
//! ```text
//! {"messages": [{"role": "user", "content": "fix it"}, …]}        an export, a recorded trajectory
//! [{"role": "user", "content": "fix it"}, …]                      messages alone
//! ```
//!
//! Ids are derived from place and content: the same file gives the same request, and a longer one only appends.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use haft_types::{
    ConversationId, Envelope, Hasher, Image, Message, MessageId, Origin, Part, Role, Timestamp, ToolCall, ToolResult,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::exit::mistake;

/// What a file says.
#[derive(Debug)]
pub(super) struct FromFile {
    pub(super) id: ConversationId,
    /// The text of the system messages it begins with.
    pub(super) system: Option<String>,
    pub(super) messages: Vec<Message>,
}

/// Reads the file, or standard input for `-`.
pub(super) fn read(path: &Path) -> anyhow::Result<FromFile> {
    let shown = path.display();
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(|error| mistake(format!("cannot read the conversation `{shown}`: {error}")))?;
    parse(&text).map_err(|problem| mistake(format!("`{shown}` is not a conversation: {problem}")))
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(default)]
    id: Value,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

fn parse(text: &str) -> Result<FromFile, String> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    let document = if text.starts_with('[') {
        serde_json::from_str(text).map(|messages| Document { id: Value::Null, messages })
    } else {
        serde_json::from_str(text)
    };
    let document = document.map_err(|error| {
        let several = lines > 1 && text.lines().next().is_some_and(|line| serde_json::from_str::<Value>(line).is_ok());
        if several { format!("it holds {lines} lines of JSON; give one of them") } else { error.to_string() }
    })?;
    let mut reader = Reader::default();
    for (index, raw) in document.messages.iter().enumerate() {
        reader.take(index, raw).map_err(|problem| format!("message {}: {problem}", index + 1))?;
    }
    if reader.messages.is_empty() {
        return Err("it holds no messages".to_owned());
    }
    let id = document.id.as_str().filter(|id| !id.is_empty()).unwrap_or("from-file");
    let system = Some(reader.system.join("\n\n")).filter(|system| !system.is_empty());
    Ok(FromFile { id: ConversationId::new(id), system, messages: reader.messages })
}

/// One message as OpenAI's chat API takes it.
#[derive(Deserialize)]
struct ChatMessage<'a> {
    role: String,
    content: Option<Content>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ChatCall<'a>>>,
    tool_call_id: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Value>),
}

#[derive(Deserialize)]
struct ChatCall<'a> {
    id: String,
    #[serde(borrow)]
    function: ChatFunction<'a>,
}

#[derive(Deserialize)]
struct ChatFunction<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Default)]
struct Reader {
    system: Vec<String>,
    messages: Vec<Message>,
    /// The names of the tools called, by call.
    names: HashMap<String, String>,
}

impl Reader {
    fn take(&mut self, index: usize, raw: &RawValue) -> Result<(), String> {
        let own: Own = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
        if own.message_id.is_some() {
            let message: Message = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
            if message.role == Role::System && self.messages.is_empty() {
                self.system.push(message.joined_text());
            } else {
                self.messages.push(message);
            }
            return Ok(());
        }
        let chat: ChatMessage<'_> = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
        let parts = parts(chat.content)?;
        let id = message_id(index, raw.get());
        let message = |role, parts| Message::new(id, role, parts, Timestamp::UNIX_EPOCH);
        let message = match chat.role.as_str() {
            "system" | "developer" if self.messages.is_empty() => {
                self.system.push(message(Role::System, parts).joined_text());
                return Ok(());
            }
            // In the middle they are the program's words, not the user's.
            "system" | "developer" => message(Role::User, parts).from(Origin::Engine),
            "user" => message(Role::User, parts),
            "assistant" => {
                let calls = chat.tool_calls.unwrap_or_default().into_iter().map(|call| self.call(call));
                let calls = calls.collect::<Result<Vec<_>, _>>()?;
                message(Role::Assistant, parts.into_iter().chain(calls).collect())
            }
            "tool" => {
                let call = chat.tool_call_id.ok_or("a tool message needs a `tool_call_id`")?;
                let name = chat.name.or_else(|| self.names.get(&call).cloned()).unwrap_or_else(|| "unknown".into());
                message(Role::Tool, result(call, name, parts))
            }
            other => return Err(format!("unknown role `{other}`")),
        };
        // An empty message would be refused by every API.
        if !message.content.is_empty() {
            self.messages.push(message);
        }
        Ok(())
    }

    fn call(&mut self, call: ChatCall<'_>) -> Result<Part, String> {
        let raw = call.function.arguments.map_or("{}", RawValue::get);
        let arguments = if raw.starts_with('"') {
            serde_json::from_str(raw).map_err(|error| error.to_string())?
        } else {
            raw.to_owned()
        };
        self.names.insert(call.id.clone(), call.function.name.clone());
        Ok(Part::ToolCall(ToolCall { id: call.id, name: call.function.name, arguments, signature: None }))
    }
}

/// Only haft's own messages have an id.
#[derive(Deserialize)]
struct Own {
    message_id: Option<serde::de::IgnoredAny>,
}

/// The id of the message at this place.
fn message_id(index: usize, raw: &str) -> MessageId {
    let mut hasher = Hasher::default();
    hasher.update(&(index as u64).to_le_bytes()).update(raw.as_bytes());
    MessageId::derived(hasher.finish())
}

fn result(call: String, name: String, parts: Vec<Part>) -> Vec<Part> {
    let (mut text, mut images) = (String::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text { text: piece, .. } => text.push_str(&piece),
            Part::Image(_) => images.push(part),
            // Neither comes out of `parts`.
            Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => {}
        }
    }
    let result = ToolResult { tool_call_id: call, name, envelope: Envelope::success(text) };
    let mut content = vec![Part::ToolResult(Box::new(result))];
    content.append(&mut images);
    content
}

fn parts(content: Option<Content>) -> Result<Vec<Part>, String> {
    match content {
        None => Ok(Vec::new()),
        Some(Content::Text(text)) if text.is_empty() => Ok(Vec::new()),
        Some(Content::Text(text)) => Ok(vec![Part::text(text)]),
        Some(Content::Parts(parts)) => parts.iter().map(part).collect(),
    }
}

fn part(part: &Value) -> Result<Part, String> {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    match text("type") {
        Some("text" | "input_text" | "output_text" | "refusal") => {
            Ok(Part::text(text("text").or(text("refusal")).unwrap_or_default()))
        }
        Some("image_url") => {
            let image = part.get("image_url");
            let url = image.and_then(|image| image.as_str().or_else(|| image.get("url")?.as_str())).unwrap_or_default();
            Ok(image_of(url))
        }
        Some(other) => Err(format!("unknown kind of content `{other}`")),
        None => Err("a piece of content needs a `type`".to_owned()),
    }
}

fn image_of(url: &str) -> Part {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((media_type, data)) => Part::Image(Image { media_type: media_type.to_owned(), data: data.to_owned() }),
        None => Part::text(format!("[picture at {url}]")),
    }
}

#[cfg(test)]
mod tests;
