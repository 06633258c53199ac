//! Requests of an imported conversation, rebuilt from its messages: each reply has a request with
//! the messages before it.
//!
//! Content that the recording lacks is left out, not invented: the tools, in most cases the system
//! prompt, and the body as it was sent. Commands that print rebuilt requests also print a note
//! about the missing content.

use std::sync::Arc;

use haft_model::O200k;
use haft_store::{LoggedRequest, LoggedSegment, RequestOutline, RequestSummary, SegmentList};
use haft_types::{Api, ContentHash, Entry, Layer, Message, MessageId, Metadata, Role, SentSegment};
use serde_json::Value;

/// The messages of an imported conversation, and the positions of the replies among them.
pub struct ImportedRequests {
    entries: Vec<Arc<Entry>>,
    replies: Vec<usize>,
    api: Api,
}

/// The figures of a request that depend on its messages and on the previous request.
#[derive(Clone, Copy)]
struct SentFigures {
    /// The last message.
    last: Option<MessageId>,
    /// The number of messages.
    segments: usize,
    tokens: u64,
    /// The number of messages at the front that are equal in the previous request.
    kept: usize,
    /// True if the previous request has no other messages.
    kept_all: bool,
}

/// True if a message replaces all messages before it.
fn is_summary(entry: &Entry) -> bool {
    entry.message.metadata.contains_key("compact_summary")
}

/// Returns the agent from which a conversation was imported, or `None` if it was not imported.
pub(crate) fn source_agent(metadata: &Metadata) -> Option<&str> {
    metadata.get("imported_from").and_then(Value::as_str)
}

impl ImportedRequests {
    pub fn new(agent: &str, messages: &[Message]) -> Self {
        let entries: Vec<_> = messages
            .iter()
            .map(|message| Entry::new(message.clone(), &O200k))
            .collect();
        let replies = messages
            .iter()
            .enumerate()
            .filter(|(_, message)| message.role == Role::Assistant);
        let replies = replies
            .map(|(index, _)| index)
            .filter(|index| *index > 0)
            .collect();
        // Agents that always use one API. Other agents use several APIs; the most common one is
        // assumed.
        let api = match agent {
            "claude-code" | "cline" => Api::Anthropic,
            "codex" | "codex-exec" => Api::OpenaiResponses,
            "gemini-cli" => Api::Gemini,
            _ => Api::OpenaiChat,
        };
        Self {
            entries,
            replies,
            api,
        }
    }

    pub fn count(&self) -> u64 {
        self.replies.len() as u64
    }

    /// True if the conversation begins with a system message.
    pub fn has_system(&self) -> bool {
        self.entries
            .first()
            .is_some_and(|entry| entry.message.role == Role::System)
    }

    /// Returns the messages of the request that the message at index `reply` answers. A summary
    /// replaces all earlier messages except the system messages.
    fn sent_messages(&self, reply: usize) -> Vec<(Layer, &'static str, &Entry)> {
        let before = &self.entries[..reply];
        let from = before
            .iter()
            .rposition(|entry| is_summary(entry))
            .unwrap_or(0);
        let current = before.iter().rposition(|entry| entry.message.opens_round());
        let place = |(index, entry)| {
            let entry: &Arc<Entry> = entry;
            let entry: &Entry = entry;
            match (entry.message.role, Some(index) == current) {
                (Role::System, _) => Some((Layer::System, "system", entry)),
                (Role::User | Role::Assistant | Role::Tool | Role::Summary, _) if index < from => {
                    None
                }
                (Role::User | Role::Assistant | Role::Tool | Role::Summary, true) => {
                    Some((Layer::Current, "current", entry))
                }
                (Role::User | Role::Assistant | Role::Tool | Role::Summary, false) => {
                    Some((Layer::History, "history", entry))
                }
            }
        };
        before.iter().enumerate().filter_map(place).collect()
    }

    /// Returns the figures of the request that the reply at index `reply` answers.
    fn sent_figures(&self, index: usize) -> SentFigures {
        let sent = self.sent_messages(self.replies[index]);
        let last = index
            .checked_sub(1)
            .map(|before| self.sent_messages(self.replies[before]))
            .unwrap_or_default();
        let kept = last
            .iter()
            .zip(&sent)
            .take_while(|((_, _, one), (_, _, other))| one.hash == other.hash)
            .count();
        SentFigures {
            last: sent.last().map(|(_, _, entry)| entry.message.message_id),
            segments: sent.len(),
            tokens: sent
                .iter()
                .map(|(_, _, entry)| u64::from(entry.tokens))
                .sum(),
            kept,
            kept_all: kept == last.len(),
        }
    }

    fn summarize_request(&self, index: usize, sent: SentFigures) -> RequestSummary {
        let place = self.replies[index];
        let reply = &self.entries[place].message;
        let before = self.entries[..place].iter().rev();
        let last = before
            .map(|entry| &entry.message)
            .find(|message| Some(message.message_id) == sent.last);
        let made = reply
            .llm_metadata
            .as_ref()
            .map(|made| made.model_name.as_str())
            .filter(|name| !name.is_empty());
        RequestSummary {
            number: index as u64 + 1,
            sent_at: last.map_or(reply.created_at, |message| message.created_at),
            model: match made {
                Some(name) if name.contains('/') => name.to_owned(),
                made => format!("unknown/{}", made.unwrap_or("model")),
            },
            api: self.api,
            kept: sent.kept,
            segments: sent.segments,
            tokens: sent.tokens,
            cause: (!sent.kept_all).then(|| "compaction".to_owned()),
        }
    }

    /// Returns all requests without their texts. Each is derived from the previous one.
    pub fn outlines(&self) -> Vec<RequestOutline> {
        let mut outlines = Vec::with_capacity(self.replies.len());
        let mut segments = SegmentList::default();
        let mut before = SegmentList::default();
        // The position of the current input in the list.
        let mut current = None;
        let mut entries = self.entries.iter().enumerate().peekable();
        for (index, reply) in self.replies.iter().enumerate() {
            while let Some((_, entry)) = entries.next_if(|(at, _)| at < reply) {
                if is_summary(entry) {
                    let is_system = |segment: &&SentSegment| segment.layer == Layer::System;
                    segments = segments.iter().filter(is_system).cloned().collect();
                    current = None;
                }
                let (layer, owner) = if entry.message.role == Role::System {
                    (Layer::System, "system")
                } else if entry.message.opens_round() {
                    if let Some(earlier) = current.replace(segments.len()) {
                        segments.update(earlier, |segment| {
                            segment.layer = Layer::History;
                            segment.owner = "history".into();
                        });
                    }
                    (Layer::Current, "current")
                } else {
                    (Layer::History, "history")
                };
                segments.push(SentSegment {
                    layer,
                    owner: owner.into(),
                    message: entry.message.message_id,
                    hash: entry.hash,
                    tokens: entry.tokens,
                    boundary: false,
                });
            }
            let kept = before.common_prefix_len(&segments);
            let sent = SentFigures {
                last: segments.last().map(|segment| segment.message),
                segments: segments.len(),
                tokens: segments.layer_tokens(segments.len()).iter().sum(),
                kept,
                kept_all: kept == before.len(),
            };
            outlines.push(RequestOutline {
                summary: self.summarize_request(index, sent),
                tools: ContentHash::from_content(b""),
                encoding: None,
                segments: segments.clone(),
            });
            before.clone_from(&segments);
        }
        outlines
    }

    /// Returns the request with this number, counted from 1.
    pub fn request(&self, number: u64) -> Option<LoggedRequest> {
        let index = usize::try_from(number)
            .ok()?
            .checked_sub(1)
            .filter(|index| *index < self.replies.len())?;
        let segment = |(layer, owner, entry): (Layer, &str, &Entry)| LoggedSegment {
            layer,
            owner: owner.to_owned(),
            message: entry.message.clone(),
            hash: entry.hash,
            tokens: entry.tokens,
            boundary: false,
        };
        Some(LoggedRequest {
            summary: self.summarize_request(index, self.sent_figures(index)),
            segments: self
                .sent_messages(self.replies[index])
                .into_iter()
                .map(segment)
                .collect(),
            tools: Vec::new(),
            max_output_tokens: None,
            cache_key: None,
            encoding: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use haft_types::{MessageId, Timestamp};

    use super::*;

    /// Creates a conversation from letters: system, user, assistant, tool, and a compact summary.
    fn messages(roles: &str) -> Vec<Message> {
        let message = |(index, role): (usize, char)| {
            let (role, text) = match role {
                'S' => (Role::System, "system"),
                'U' => (Role::User, "user"),
                'A' => (Role::Assistant, "assistant"),
                'T' => (Role::Tool, "tool"),
                _ => (Role::User, "summary"),
            };
            let hash = ContentHash::from_content(&index.to_le_bytes());
            let at = Timestamp::UNIX_EPOCH + std::time::Duration::from_secs(index as u64);
            let id = MessageId::from_hash(hash);
            let mut message = Message::from_text(id, role, format!("{text} {index}"), at);
            if text == "summary" {
                let mark = Value::Bool(true);
                message.metadata.insert("compact_summary".to_owned(), mark);
            }
            message
        };
        roles.chars().enumerate().map(message).collect()
    }

    #[test]
    fn outlines_agree_with_single_requests() {
        for roles in [
            "A",
            "UA",
            "SUATATUAUA",
            "UAUATATACATAUASUATA",
            "SSUACAUACUAATUAA",
            &format!("S{}C{}", "UATA".repeat(60), "UATATA".repeat(40)),
        ] {
            let made = ImportedRequests::new("codex", &messages(roles));
            let outlines = made.outlines();
            assert_eq!(outlines.len() as u64, made.count(), "{roles}");
            for outline in outlines {
                let number = outline.summary.number;
                let request = made.request(number).unwrap();
                assert_eq!(outline.summary, request.summary, "{roles}");
                let sent = request.segments.into_iter().map(|segment| SentSegment {
                    layer: segment.layer,
                    owner: segment.owner.into(),
                    message: segment.message.message_id,
                    hash: segment.hash,
                    tokens: segment.tokens,
                    boundary: segment.boundary,
                });
                assert_eq!(
                    outline.segments,
                    sent.collect(),
                    "{roles}, request {number}"
                );
            }
        }
    }
}
