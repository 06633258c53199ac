//! Requests of an imported conversation, rebuilt from its messages: each reply has a request with
//! the messages before it.
//!
//! Content that the recording lacks is left out, not invented: the tools, in most cases the system
//! prompt, and the body as it was sent. Commands that print rebuilt requests also print a note
//! about the missing content.

use std::sync::Arc;

use haft_model::O200k;
use haft_store::{LoggedRequest, LoggedSegment, RequestOutline, RequestSummary};
use haft_types::{Api, ContentHash, Entry, Layer, Message, Metadata, Role, SentSegment};
use serde_json::Value;

/// The messages of an imported conversation, and the positions of the replies among them.
pub struct ImportedRequests {
    entries: Vec<Arc<Entry>>,
    replies: Vec<usize>,
    api: Api,
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
        let is_summary =
            |entry: &Arc<Entry>| entry.message.metadata.contains_key("compact_summary");
        let from = before.iter().rposition(is_summary).unwrap_or(0);
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

    fn summarize_request(&self, index: usize) -> RequestSummary {
        let reply = &self.entries[self.replies[index]].message;
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
        let made = reply
            .llm_metadata
            .as_ref()
            .map(|made| made.model_name.as_str())
            .filter(|name| !name.is_empty());
        RequestSummary {
            number: index as u64 + 1,
            sent_at: sent
                .last()
                .map_or(reply.created_at, |(_, _, entry)| entry.message.created_at),
            model: match made {
                Some(name) if name.contains('/') => name.to_owned(),
                made => format!("unknown/{}", made.unwrap_or("model")),
            },
            api: self.api,
            kept,
            segments: sent.len(),
            tokens: sent
                .iter()
                .map(|(_, _, entry)| u64::from(entry.tokens))
                .sum(),
            cause: (kept < last.len()).then(|| "compaction".to_owned()),
        }
    }

    /// Returns all requests without their texts.
    pub fn outlines(&self) -> Vec<RequestOutline> {
        let segment = |(layer, owner, entry): (Layer, &str, &Entry)| SentSegment {
            layer,
            owner: owner.to_owned().into(),
            message: entry.message.message_id,
            hash: entry.hash,
            tokens: entry.tokens,
            boundary: false,
        };
        let outline = |index| RequestOutline {
            summary: self.summarize_request(index),
            tools: ContentHash::from_content(b""),
            encoding: None,
            segments: self
                .sent_messages(self.replies[index])
                .into_iter()
                .map(segment)
                .collect(),
        };
        (0..self.replies.len()).map(outline).collect()
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
            summary: self.summarize_request(index),
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
