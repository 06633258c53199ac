//! Builds a conversation from messages: derives ids from content, counts rounds, and chooses a
//! name.

use std::collections::{HashMap, HashSet};

use haft_store::ConversationDocument;
use haft_types::{
    ContentHash, ConversationId, Envelope, Hasher, LlmMetadata, Message, MessageId, Metadata,
    Origin, Part, Role, ShortId, Timestamp, ToolCall, ToolResult,
};
use serde_json::Value;

use crate::{ImportError, ImportedConversation, tool_data};

/// The key under which a conversation's metadata stores the name of the format it was imported
/// from.
const IMPORTED_FROM: &str = "imported_from";

/// Collects the messages of a conversation that is being imported.
pub(crate) struct ConversationBuilder {
    messages: Vec<Message>,
    short_ids: HashSet<ShortId>,
    /// The tool calls added so far, by call id.
    calls: HashMap<String, ToolCall>,
    round: u32,
    now: Timestamp,
    /// The number of lines and message parts that could not be imported.
    pub(crate) skipped: usize,
}

/// The id, name, and metadata that the source gives for a conversation.
#[derive(Default)]
pub(crate) struct ConversationHeader {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) metadata: Metadata,
}

impl ConversationBuilder {
    pub(crate) fn new(now: Timestamp) -> Self {
        let short_ids = HashSet::new();
        let calls = HashMap::new();
        Self {
            messages: Vec::new(),
            short_ids,
            calls,
            round: 0,
            now,
            skipped: 0,
        }
    }

    /// Creates a message from `parts`, without adding it. If `at` is `None`, the message gets the
    /// time of the previous message.
    pub(crate) fn new_message(
        &self,
        role: Role,
        parts: Vec<Part>,
        at: Option<Timestamp>,
    ) -> Message {
        let at = at
            .or_else(|| Some(self.messages.last()?.created_at))
            .unwrap_or(self.now);
        Message::new(
            MessageId::from_hash(ContentHash::from_content(b"")),
            role,
            parts,
            at,
        )
    }

    /// Creates a message from text that neither the user nor the model wrote, but the program that
    /// recorded the conversation. At the start of the conversation, this is a system message;
    /// later, a user message with the origin [`Origin::Engine`].
    pub(crate) fn new_instructions(&self, parts: Vec<Part>, at: Option<Timestamp>) -> Message {
        if self
            .messages
            .iter()
            .all(|message| message.role == Role::System)
        {
            self.new_message(Role::System, parts, at)
        } else {
            self.new_message(Role::User, parts, at)
                .with_origin(Origin::Engine)
        }
    }

    /// Sets the start time of the conversation, which the first messages get if they have no time.
    pub(crate) fn set_start(&mut self, at: Option<Timestamp>) {
        self.now = at.unwrap_or(self.now);
    }

    /// Adds a message and assigns an id to it. A message without content is dropped, because every
    /// API would reject it.
    pub(crate) fn push(&mut self, mut message: Message) {
        if message.content.is_empty() {
            return;
        }
        self.calls.extend(
            message
                .tool_calls()
                .map(|call| (call.id.clone(), call.clone())),
        );
        self.round += u32::from(message.opens_round());
        if let Some(made) = &mut message.llm_metadata
            && made.conversation_round == 0
        {
            made.conversation_round = self.round;
        }
        message.message_id = self.unused_id(&message);
        // The id is computed before this data is added, so that it does not depend on the data.
        tool_data::add_tool_data(&mut message, &self.calls);
        self.add_message(message);
    }

    pub(crate) fn message_count(&self) -> usize {
        self.messages.len()
    }

    /// True if one of the last 64 tool results belongs to the call with the id `call`.
    pub(crate) fn has_result(&self, call: &str) -> bool {
        let results = self.messages.iter().rev().flat_map(Message::tool_results);
        results.take(64).any(|result| result.tool_call_id == call)
    }

    /// Returns a conversation id derived from the first `count` messages, so that the id remains
    /// valid when messages are appended. Returns `None` if there are fewer messages.
    pub(crate) fn id_from_first_messages(&self, count: usize) -> Option<String> {
        self.messages
            .get(..count)
            .map(|first| id_from_messages(first).to_string())
    }

    /// Adds a message that has an id. If another message already has that id, the added message
    /// gets a new one, and the old one is kept in its metadata.
    pub(crate) fn push_with_id(&mut self, mut message: Message) {
        if self.short_ids.contains(&message.message_id.short_id()) {
            message
                .metadata
                .insert("source_id".into(), message.message_id.to_string().into());
            message.message_id = self.unused_id(&message);
        }
        self.add_message(message);
    }

    fn add_message(&mut self, message: Message) {
        self.short_ids.insert(message.message_id.short_id());
        self.messages.push(message);
    }

    /// Derives an id for `message` from its position and content. No other message of the
    /// conversation has this id.
    fn unused_id(&self, message: &Message) -> MessageId {
        let mut hasher = Hasher::default();
        hasher
            .update(&(self.messages.len() as u64).to_le_bytes())
            .update(&message.content_hash().0);
        loop {
            let id = MessageId::from_hash(hasher.finish());
            if !self.short_ids.contains(&id.short_id()) {
                return id;
            }
            hasher.update(b"another");
        }
    }

    /// Creates the result of `call`. If `name` is `None`, the name of the tool is taken from the
    /// call.
    pub(crate) fn build_result_part(
        &self,
        call: &str,
        name: Option<&str>,
        envelope: Envelope,
    ) -> Part {
        let known = name
            .or_else(|| self.calls.get(call).map(|call| call.name.as_str()))
            .unwrap_or("unknown");
        Part::ToolResult(Box::new(ToolResult {
            tool_call_id: call.to_owned(),
            name: known.to_owned(),
            envelope,
        }))
    }

    /// Appends a part to the last message if that message is a reply of the model; otherwise begins
    /// a new reply. Used for formats that store each part of a reply separately.
    pub(crate) fn extend_reply(&mut self, part: Part) {
        if let Part::ToolCall(call) = &part {
            self.calls.insert(call.id.clone(), call.clone());
        }
        match self.messages.last_mut() {
            Some(reply) if reply.role == Role::Assistant => reply.content.push(part),
            _ => {
                let reply = self.new_message(Role::Assistant, vec![part], None);
                self.push(reply);
            }
        }
    }

    /// Returns the model's most recent reply for modification, or `None` if there is no reply yet.
    pub(crate) fn last_reply_mut(&mut self) -> Option<&mut Message> {
        self.messages
            .iter_mut()
            .rev()
            .find(|message| message.role == Role::Assistant)
    }

    /// Returns the conversation, or [`ImportError::Empty`] if it has no messages.
    pub(crate) fn finish(
        self,
        from: &str,
        about: ConversationHeader,
    ) -> Result<ImportedConversation, ImportError> {
        let (Some(first), Some(last)) = (self.messages.first(), self.messages.last()) else {
            return Err(ImportError::Empty);
        };
        let mut metadata = about.metadata;
        metadata.insert(IMPORTED_FROM.into(), from.into());
        let id = about
            .id
            .filter(|id| !id.is_empty())
            .map_or_else(|| id_from_messages(&self.messages), ConversationId::new);
        let name = about
            .name
            .filter(|name| !name.trim().is_empty())
            .or_else(|| derive_title(&self.messages));
        let document = ConversationDocument {
            name: name.unwrap_or_else(|| format!("Conversation {}", id.short_prefix())),
            id,
            description: String::new(),
            created_at: first.created_at,
            updated_at: last.created_at.max(first.created_at),
            metadata,
            messages: self.messages,
        };
        Ok(ImportedConversation {
            document,
            skipped: self.skipped,
        })
    }
}

/// Derives a conversation id from all messages.
fn id_from_messages(messages: &[Message]) -> ConversationId {
    let mut hasher = Hasher::default();
    for message in messages {
        hasher.update(message.message_id.0.as_bytes());
    }
    ConversationId::from(MessageId::from_hash(hasher.finish()).0)
}

/// Returns the first line that the user wrote, truncated to 60 characters.
fn derive_title(messages: &[Message]) -> Option<String> {
    const MAX_CHARS: usize = 60;
    let first = messages.iter().find(|message| message.opens_round())?;
    let lines = first.content.iter().flat_map(|part| match part {
        Part::Text { text, .. } => text.lines(),
        Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => "".lines(),
    });
    let line = lines
        .map(|line| strip_tags(line).trim())
        .find(|line| !line.is_empty())?;
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    Some(match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    })
}

/// Removes the tags in which cline encloses the user's input.
fn strip_tags(line: &str) -> &str {
    ["<task", "<user_input"]
        .iter()
        .find_map(|tag| {
            let (_, inner) = line.trim().strip_prefix(tag)?.split_once('>')?;
            inner.split("</").next()
        })
        .unwrap_or(line)
}

/// Returns the metadata of a reply, or `None` if neither the model nor the usage is known.
pub(crate) fn build_reply_metadata(
    model: Option<&str>,
    usage: Option<ReportedUsage>,
) -> Option<Box<LlmMetadata>> {
    if model.is_none() && usage.is_none() {
        return None;
    }
    let usage = usage.unwrap_or_default();
    Some(Box::new(LlmMetadata {
        model_name: model.unwrap_or_default().to_owned(),
        input_tokens: usage.input,
        cached_input_tokens: usage.cached,
        cache_write_tokens: usage.written,
        output_tokens: usage.output,
        reasoning_tokens: usage.reasoning,
        ..LlmMetadata::default()
    }))
}

/// The token counts of a request, divided into the classes that haft uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReportedUsage {
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) written: u64,
    pub(crate) output: u64,
    pub(crate) reasoning: u64,
}

impl ReportedUsage {
    /// Subtracts the earlier total `before` from this total, class by class.
    pub(crate) fn subtract(self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            cached: self.cached.saturating_sub(before.cached),
            written: self.written.saturating_sub(before.written),
            output: self.output.saturating_sub(before.output),
            reasoning: self.reasoning.saturating_sub(before.reasoning),
        }
    }
}

/// Parses each line as JSON. Invalid lines are omitted and counted in `skipped`, because the last
/// line of a killed session may be truncated.
pub(crate) fn parse_json_lines(text: &str, skipped: &mut usize) -> Vec<Value> {
    let read = |line: &str| {
        serde_json::from_str(line)
            .inspect_err(|_| *skipped += 1)
            .ok()
    };
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .filter_map(read)
        .collect()
}

/// Returns the string under `key` in a JSON object, or `None` if the value is missing or not a
/// string.
pub(crate) fn get_text<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

/// Parses consecutive JSON values. Parsing stops at the first invalid value, because the last value
/// of a killed session may be truncated.
pub(crate) fn parse_json_values(text: &str) -> Result<Vec<Value>, ImportError> {
    let mut all = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter() {
        match value {
            Ok(value) => all.push(value),
            Err(error) if all.is_empty() => return Err(error.into()),
            Err(_) => break,
        }
    }
    Ok(all)
}

/// Returns the non-negative integer under `key` in a JSON object, or 0 if there is none.
pub(crate) fn get_count(object: &Value, key: &str) -> u64 {
    object.get(key).and_then(Value::as_u64).unwrap_or(0)
}

/// Copies values of a JSON object to new metadata. Each pair in `keys` contains a key of the object
/// and the metadata key under which its value is copied. Null and missing values are omitted.
pub(crate) fn select_metadata(object: &Value, keys: &[(&str, &str)]) -> Metadata {
    let known = |(theirs, ours): &(&str, &str)| {
        let value = object.get(theirs).filter(|value| !value.is_null())?;
        Some(((*ours).to_owned(), value.clone()))
    };
    keys.iter().filter_map(known).collect()
}
