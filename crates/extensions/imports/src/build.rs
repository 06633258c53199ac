//! Puts a conversation together: ids from content, rounds, names.

use std::collections::{HashMap, HashSet};

use haft_store::ConversationDocument;
use haft_types::{
    ContentHash, ConversationId, Envelope, Hasher, LlmMetadata, Message, MessageId, Metadata,
    Origin, Part, Role, ShortId, Timestamp, ToolCall, ToolResult,
};
use serde_json::Value;

use crate::{ImportError, ImportedConversation, tool_data};

/// Under which key a conversation says which program it comes from.
const IMPORTED_FROM: &str = "imported_from";

/// A conversation under construction.
pub(crate) struct ConversationBuilder {
    messages: Vec<Message>,
    short_ids: HashSet<ShortId>,
    /// The calls so far, by id.
    calls: HashMap<String, ToolCall>,
    round: u32,
    now: Timestamp,
    /// What could not be taken in.
    pub(crate) skipped: usize,
}

/// What is known of a conversation besides its messages.
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

    /// A message of these parts. Its time is that of the message before where it has none.
    pub(crate) fn message(&self, role: Role, parts: Vec<Part>, at: Option<Timestamp>) -> Message {
        let at = at
            .or_else(|| Some(self.messages.last()?.created_at))
            .unwrap_or(self.now);
        Message::new(MessageId::derived(ContentHash::of(b"")), role, parts, at)
    }

    /// Words of the program: instructions where nothing else was said yet, in the middle a message
    /// that is not the user's.
    pub(crate) fn instructions(&self, parts: Vec<Part>, at: Option<Timestamp>) -> Message {
        if self
            .messages
            .iter()
            .all(|message| message.role == Role::System)
        {
            self.message(Role::System, parts, at)
        } else {
            self.message(Role::User, parts, at).from(Origin::Engine)
        }
    }

    /// When the conversation began, for messages without a time.
    pub(crate) fn begun(&mut self, at: Option<Timestamp>) {
        self.now = at.unwrap_or(self.now);
    }

    /// Takes a message in and gives it its id. One without content is left out: every API would
    /// refuse it.
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
        message.message_id = self.fresh_id(&message);
        // After the id is made: the same text had the same id before there was any data.
        tool_data::add(&mut message, &self.calls);
        self.take(message);
    }

    /// How many messages there are.
    pub(crate) fn count(&self) -> usize {
        self.messages.len()
    }

    /// Whether a result of this call is there.
    pub(crate) fn is_answered(&self, call: &str) -> bool {
        let results = self.messages.iter().rev().flat_map(Message::tool_results);
        results.take(64).any(|result| result.tool_call_id == call)
    }

    /// An id for a conversation from how it begins: the same when there is more of it.
    pub(crate) fn id_of_first(&self, count: usize) -> Option<String> {
        self.messages
            .get(..count)
            .map(|first| id_of(first).to_string())
    }

    /// Takes a message in with the id it has, unless that is taken.
    pub(crate) fn push_with_id(&mut self, mut message: Message) {
        if self.short_ids.contains(&message.message_id.short()) {
            message
                .metadata
                .insert("source_id".into(), message.message_id.to_string().into());
            message.message_id = self.fresh_id(&message);
        }
        self.take(message);
    }

    fn take(&mut self, message: Message) {
        self.short_ids.insert(message.message_id.short());
        self.messages.push(message);
    }

    /// An id from place and content, free in this conversation.
    fn fresh_id(&self, message: &Message) -> MessageId {
        let mut hasher = Hasher::default();
        hasher
            .update(&(self.messages.len() as u64).to_le_bytes())
            .update(&message.content_hash().0);
        loop {
            let id = MessageId::derived(hasher.finish());
            if !self.short_ids.contains(&id.short()) {
                return id;
            }
            hasher.update(b"another");
        }
    }

    /// A result of a call, with the name of the tool that was called.
    pub(crate) fn result(&self, call: &str, name: Option<&str>, envelope: Envelope) -> Part {
        let known = name
            .or_else(|| self.calls.get(call).map(|call| call.name.as_str()))
            .unwrap_or("unknown");
        Part::ToolResult(Box::new(ToolResult {
            tool_call_id: call.to_owned(),
            name: known.to_owned(),
            envelope,
        }))
    }

    /// Adds to the model's reply while nothing has answered it, else begins a new one: for
    /// recordings that keep each part of a reply apart.
    pub(crate) fn reply(&mut self, part: Part) {
        if let Part::ToolCall(call) = &part {
            self.calls.insert(call.id.clone(), call.clone());
        }
        match self.messages.last_mut() {
            Some(reply) if reply.role == Role::Assistant => reply.content.push(part),
            _ => {
                let reply = self.message(Role::Assistant, vec![part], None);
                self.push(reply);
            }
        }
    }

    /// The newest reply of the model.
    pub(crate) fn last_reply_mut(&mut self) -> Option<&mut Message> {
        self.messages
            .iter_mut()
            .rev()
            .find(|message| message.role == Role::Assistant)
    }

    /// The conversation, which must have a message.
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
            .map_or_else(|| id_of(&self.messages), ConversationId::new);
        let name = about
            .name
            .filter(|name| !name.trim().is_empty())
            .or_else(|| title(&self.messages));
        let document = ConversationDocument {
            name: name.unwrap_or_else(|| format!("Conversation {}", id.short())),
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

/// The id of a conversation that has none: from all it holds.
fn id_of(messages: &[Message]) -> ConversationId {
    let mut hasher = Hasher::default();
    for message in messages {
        hasher.update(message.message_id.0.as_bytes());
    }
    ConversationId::from(MessageId::derived(hasher.finish()).0)
}

/// The first line the user wrote, short enough for a table.
fn title(messages: &[Message]) -> Option<String> {
    const LONGEST: usize = 60;
    let first = messages.iter().find(|message| message.opens_round())?;
    let lines = first.content.iter().flat_map(|part| match part {
        Part::Text { text, .. } => text.lines(),
        Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => "".lines(),
    });
    let line = lines
        .map(|line| without_tags(line).trim())
        .find(|line| !line.is_empty())?;
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    Some(match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    })
}

/// A line without what cline puts around the user's words.
fn without_tags(line: &str) -> &str {
    let inner = |tag: &str| {
        line.trim()
            .strip_prefix(tag)?
            .split_once('>')?
            .1
            .split("</")
            .next()
    };
    ["<task", "<user_input"]
        .iter()
        .find_map(|tag| inner(tag))
        .unwrap_or(line)
}

/// What is known of the reply of a model; none where nothing is.
pub(crate) fn made_by(
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

/// Tokens by class, as haft tells them apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReportedUsage {
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) written: u64,
    pub(crate) output: u64,
    pub(crate) reasoning: u64,
}

impl ReportedUsage {
    /// What was added since a sum was `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            cached: self.cached.saturating_sub(before.cached),
            written: self.written.saturating_sub(before.written),
            output: self.output.saturating_sub(before.output),
            reasoning: self.reasoning.saturating_sub(before.reasoning),
        }
    }
}

/// The lines of a file as JSON. The last one of a session that was killed may be cut: what is none
/// is counted and left out.
pub(crate) fn json_lines(text: &str, skipped: &mut usize) -> Vec<Value> {
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

/// A text in a JSON object.
pub(crate) fn text_of<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

/// The JSON values of a text, one behind the other. The last one of a session that was killed may
/// be cut.
pub(crate) fn values(text: &str) -> Result<Vec<Value>, ImportError> {
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

/// A count in a JSON object; 0 when it is missing.
pub(crate) fn count(object: &Value, key: &str) -> u64 {
    object.get(key).and_then(Value::as_u64).unwrap_or(0)
}

/// Some keys of a JSON object as metadata, where they are there and not null.
pub(crate) fn chosen(object: &Value, keys: &[(&str, &str)]) -> Metadata {
    let known = |(theirs, ours): &(&str, &str)| {
        let value = object.get(theirs).filter(|value| !value.is_null())?;
        Some(((*ours).to_owned(), value.clone()))
    };
    keys.iter().filter_map(known).collect()
}
