//! Finds the conversation of a request: either the new request extends the last request of the
//! conversation, or the two share the most segments.

use std::collections::{HashMap, HashSet};

use haft_store::LoggedRequest;
use haft_types::{
    Api, ContentHash, ConversationId, Entry, Message, MessageId, Metadata, ModelSpec, Part, Role,
    Segment,
};

use super::RecordedBody;
use super::entries::{intern_owner, segment_messages};
use crate::explanation::{ConversationPast, SYSTEM_OWNER, TOOLS_OWNER};

/// A recorded conversation that further requests can continue.
pub(super) struct ProxiedConversation {
    pub(super) id: ConversationId,
    api: Api,
    session: Option<String>,
    pub(super) is_side: bool,
    /// True if this process has forwarded a request of the conversation. False for a conversation
    /// that was only loaded from the store.
    pub(super) is_live: bool,
    pub(super) past: ConversationPast,
    /// The ids of the conversation's messages that are stored already.
    stored_messages: HashSet<MessageId>,
    /// The names of called tools, by tool call id.
    calls: HashMap<String, String>,
    /// The number of segments in the last request, if its reply was stored. The next request then
    /// repeats this reply at that position.
    answered_at: Option<usize>,
    /// The number of messages that the user sent.
    pub(super) rounds: u32,
}

impl ProxiedConversation {
    pub(super) fn new(
        id: ConversationId,
        api: Api,
        session: Option<String>,
        is_side: bool,
        spec: &ModelSpec,
    ) -> Self {
        let past = ConversationPast::new(spec);
        let stored_messages = HashSet::new();
        let calls = HashMap::new();
        Self {
            id,
            api,
            session,
            is_side,
            is_live: true,
            past,
            stored_messages,
            calls,
            answered_at: None,
            rounds: 0,
        }
    }

    /// Restores a recorded conversation from its last request and its messages.
    pub(super) fn from_stored(
        id: ConversationId,
        metadata: &Metadata,
        logged: &LoggedRequest,
        messages: &[Message],
    ) -> Option<Self> {
        let spec = RecordedBody::from_encoding(logged.encoding.as_deref()?)?.spec;
        let is_side = metadata
            .get("side")
            .and_then(serde_json::Value::as_bool)
            .unwrap_or_default();
        let session = metadata
            .get("session")
            .and_then(serde_json::Value::as_str)
            .map(str::to_owned);
        let mut one = Self::new(id, logged.summary.api, session, is_side, &spec);
        let segment = |segment: &haft_store::LoggedSegment| Segment {
            layer: segment.layer,
            owner: intern_owner(&segment.owner),
            entry: Entry {
                message: segment.message.clone(),
                hash: segment.hash,
                tokens: segment.tokens,
            }
            .into(),
            boundary: segment.boundary,
        };
        one.past.segments = logged.segments.iter().map(segment).collect();
        // A reply that was stored on arrival has a different id from its copies in later requests.
        one.stored_messages = logged
            .segments
            .iter()
            .map(|segment| segment.message.message_id)
            .collect();
        let calls = messages.iter().flat_map(Message::tool_calls);
        one.calls = calls
            .map(|call| (call.id.clone(), call.name.clone()))
            .collect();
        let is_reply = messages
            .last()
            .is_some_and(|last| last.role == Role::Assistant);
        one.answered_at = is_reply.then_some(logged.segments.len());
        one.rounds = messages
            .iter()
            .filter(|message| message.opens_round())
            .count() as u32;
        one.is_live = false;
        Some(one)
    }

    pub(super) fn has_tools(&self) -> bool {
        has_tools(&self.past.segments)
    }

    /// Returns the messages that a request adds to the conversation, and marks them as stored. A
    /// reply that was stored on arrival is not returned again.
    pub(super) fn take_new_messages(&mut self, segments: &[Segment]) -> Vec<Message> {
        let since = self.answered_at.take().unwrap_or(segments.len());
        let replied = segments
            .iter()
            .skip(since)
            .take_while(|segment| segment.owner == "assistant")
            .count();
        let mut new = Vec::new();
        for (index, segment) in segments.iter().enumerate() {
            if segment.owner == TOOLS_OWNER
                || segment.owner == SYSTEM_OWNER
                || !self
                    .stored_messages
                    .insert(segment.entry.message.message_id)
            {
                continue;
            }
            let mut messages = segment_messages(segment);
            for message in &mut messages {
                self.calls.extend(
                    message
                        .tool_calls()
                        .map(|call| (call.id.clone(), call.name.clone())),
                );
                self.set_tool_names(message);
            }
            if !(since..since + replied).contains(&index) {
                new.append(&mut messages);
            }
        }
        self.rounds += new.iter().filter(|message| message.opens_round()).count() as u32;
        self.is_live = true;
        new
    }

    /// Sets the tool names of tool results, because some APIs send results without them.
    fn set_tool_names(&self, message: &mut Message) {
        for part in &mut message.content {
            if let Part::ToolResult(result) = part
                && let Some(name) = self.calls.get(&result.tool_call_id)
            {
                result.name.clone_from(name);
            }
        }
    }

    /// Notes that the reply to the newest request was stored as a message.
    pub(super) fn mark_answered(&mut self) {
        self.answered_at = Some(self.past.segments.len());
    }
}

pub(super) fn has_tools(segments: &[Segment]) -> bool {
    segments.iter().any(|segment| segment.owner == TOOLS_OWNER)
}

fn segment_hashes<'a>(
    segments: &'a [Segment],
    wanted: impl Fn(&str) -> bool + 'a,
) -> Vec<ContentHash> {
    segments
        .iter()
        .filter(|segment| wanted(segment.owner))
        .map(|segment| segment.entry.hash)
        .collect()
}

/// Returns the index of the conversation that a request continues, or `None` if the request starts
/// a new conversation.
pub(super) fn find_conversation(
    conversations: &[ProxiedConversation],
    api: Api,
    session: Option<&str>,
    segments: &[Segment],
) -> Option<usize> {
    let scored = conversations
        .iter()
        .enumerate()
        .filter(|(_, one)| one.api == api)
        .filter_map(|(index, one)| Some((score_match(one, session, segments)?, index)));
    scored.max().map(|(_, index)| index)
}

/// Rates how well a request fits a conversation: the kind of match (3 is the best), then the number
/// of shared segments. Returns `None` if the request does not fit.
fn score_match(
    one: &ProxiedConversation,
    session: Option<&str>,
    segments: &[Segment],
) -> Option<(u8, usize)> {
    let is_message = |owner: &str| owner != TOOLS_OWNER && owner != SYSTEM_OWNER;
    let old = segment_hashes(&one.past.segments, is_message);
    let new = segment_hashes(segments, is_message);
    let same_session = session.is_some() && session == one.session.as_deref();
    let other_session = session.is_some() && one.session.is_some() && !same_session;
    // Requests for a title or a summary are sent without tools.
    if other_session || one.has_tools() != has_tools(segments) {
        return None;
    }
    let fixed = |segments: &[Segment]| segment_hashes(segments, |owner| !is_message(owner));
    let same_prefix = fixed(&one.past.segments) == fixed(segments);
    // Side requests repeat the history behind system messages of their own: one for a title, another
    // one for a check. They have nothing else in common.
    if one.is_side && !same_prefix {
        return None;
    }
    let shared = old
        .iter()
        .zip(&new)
        .take_while(|(old, new)| old == new)
        .count();
    if shared > 0 && shared == old.len() {
        return Some((3, shared));
    }
    // Sessions of one program start with the same messages. A request with a reply of the model is
    // not the start of a session.
    let has_reply = segments.iter().any(|segment| segment.owner == "assistant");
    if shared > 0 && (has_reply || same_session || shared == new.len()) {
        return Some((2, shared));
    }
    let known: HashSet<_> = old.iter().collect();
    let common = new.iter().filter(|hash| known.contains(hash)).count();
    let continues = same_prefix && (same_session && has_tools(segments) || common > 0 && has_reply);
    continues.then_some((1, common))
}
