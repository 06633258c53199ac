//! Answers the requests of a replayed session with the recorded replies, and compares each request
//! with the recorded one.
//!
//! A request belongs to a recorded request if both are sent at the same message of the conversation.
//! The body is encoded with the settings of the recorded request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use haft_engine::RecordedRun;
use haft_model::{ModelError, Reply};
use haft_types::{ContentHash, Message, Origin, Part, Request, Role, StopReason, Usage};

use super::difference::{FieldDifference, compare_bodies};
use super::record::RecordedRequest;

/// The status of a provider that is overloaded.
const OVERLOAD_STATUS: u16 = 529;
/// The status of a request that is too long.
const TOO_LONG_STATUS: u16 = 400;

/// Answers requests in the order of a recorded run.
pub(super) struct ReplayedModel {
    recorded: Arc<RecordedRun>,
    requests: Vec<RecordedRequest>,
    /// Descriptions of images, by the hash of their data.
    image_descriptions: BTreeMap<String, String>,
    progress: Mutex<RequestProgress>,
}

#[derive(Default)]
struct RequestProgress {
    /// The index of the next recorded request.
    next: usize,
    compared: Vec<ComparedRequest>,
}

/// A recorded request, and its difference from the request that is sent today.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ComparedRequest {
    pub(super) number: u64,
    pub(super) model: String,
    pub(super) position: usize,
    pub(super) outcome: ComparedOutcome,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ComparedOutcome {
    /// Today's body is equal, byte for byte.
    Equal,
    Different(FieldDifference),
    /// Today's session sends no request at this message.
    NotSent,
    /// Today's session sends a request that the record does not have.
    Further,
}

impl ReplayedModel {
    pub(super) fn new(
        recorded: Arc<RecordedRun>,
        requests: Vec<RecordedRequest>,
        image_descriptions: BTreeMap<String, String>,
    ) -> Self {
        Self {
            recorded,
            requests,
            image_descriptions,
            progress: Mutex::default(),
        }
    }

    /// Returns the model of the next recorded request, if it is sent before the user's next input.
    pub(super) fn next_model(&self, input: usize) -> Option<String> {
        let next = self.lock().next;
        let request = self.requests.get(next)?;
        let is_of_input = !self.recorded.messages()[..]
            .iter()
            .take(request.position)
            .skip(input + 1)
            .any(Message::opens_round);
        is_of_input.then(|| request.encoding.spec.full_name())
    }

    /// Returns true if the session was opened in plan mode for the next recorded request, or `None`
    /// if there is none.
    pub(super) fn is_next_opened_in_plan_mode(&self) -> Option<bool> {
        let next = self.lock().next;
        Some(self.requests.get(next)?.opened_in_plan_mode)
    }

    /// Returns the encoding that the run used first for a model.
    pub(super) fn find_encoding(&self, model: &str) -> Option<haft_model::BodyEncoding> {
        self.requests
            .iter()
            .map(|request| &request.encoding)
            .find(|encoding| encoding.spec.full_name() == model)
            .cloned()
    }

    /// Returns all recorded requests with the outcome of their comparison. Requests that the replay
    /// did not reach were not sent.
    pub(super) fn finish(&self) -> Vec<ComparedRequest> {
        let mut progress = self.lock();
        let reached = progress.next;
        for request in &self.requests[reached..] {
            progress.compared.push(not_sent(request));
        }
        progress.next = self.requests.len();
        progress.compared.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RequestProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares a request with the recorded one, and returns the recorded reply or failure.
    pub(super) fn answer(&self, request: &Request) -> Result<Reply, ModelError> {
        // Only requests of the conversation have a cache key.
        if request.cache_key.is_none() {
            return self.answer_side_request(request);
        }
        let mut progress = self.lock();
        let position = self.recorded.position();
        let matched = loop {
            let Some(next) = self.requests.get(progress.next) else {
                break None;
            };
            if self.is_same_step(next.position, position) {
                break Some(next);
            }
            if next.position > position {
                break None;
            }
            progress.compared.push(not_sent(next));
            progress.next += 1;
        };
        let Some(matched) = matched else {
            // A fork has no requests for the messages that it shares with its origin.
            let is_shared = progress.compared.is_empty();
            let reply = self.reply_after(position).ok_or(ModelError::Cancelled)?;
            if !is_shared {
                let number = progress.compared.len() as u64 + 1;
                progress.compared.push(ComparedRequest {
                    number,
                    model: String::new(),
                    position,
                    outcome: ComparedOutcome::Further,
                });
            }
            return Ok(reply);
        };
        progress.next += 1;
        let body = matched.encoding.encode_request(request);
        let outcome = compare_bodies(&matched.body, &body)
            .map_or(ComparedOutcome::Equal, ComparedOutcome::Different);
        progress.compared.push(ComparedRequest {
            number: matched.number,
            model: matched.encoding.spec.full_name(),
            position: matched.position,
            outcome,
        });
        let repeated = self
            .requests
            .get(progress.next)
            .filter(|next| next.position == matched.position);
        drop(progress);
        if let Some(next) = repeated {
            return Err(failure_before(matched, next));
        }
        match self.reply_after(matched.position) {
            Some(reply) => Ok(reply),
            None if self.has_nudge_after(matched.position) => Ok(empty_reply()),
            None => Err(ModelError::Cancelled),
        }
    }

    /// True if a request that is sent at `position` stands for the recorded one at `recorded`:
    /// today's session may have appended more or fewer notes before it.
    fn is_same_step(&self, recorded: usize, position: usize) -> bool {
        if position > recorded {
            return self
                .recorded
                .last_reply()
                .is_none_or(|reply| recorded > reply);
        }
        let between = self.recorded.messages().get(position..recorded);
        between.is_some_and(|messages| messages.iter().all(is_note))
    }

    /// Returns the reply at `position`, after notes that today's session did not append, and tells
    /// the record that the session receives it.
    fn reply_after(&self, position: usize) -> Option<Reply> {
        let messages = self.recorded.messages();
        let rest = messages.get(position..)?;
        let index = position + rest.iter().take_while(|message| is_note(message)).count();
        // A note after the request means that the reply was empty.
        if index > position && self.requests.iter().any(|one| one.position == index) {
            return None;
        }
        let reply = self.recorded.reply_at(index)?;
        self.recorded.begin_reply(index);
        Some(reply)
    }

    /// True if haft added a note instead of a reply: the reply was empty.
    fn has_nudge_after(&self, position: usize) -> bool {
        self.recorded.messages().get(position).is_some_and(is_note)
    }

    /// Answers a request that is not part of the conversation: one for the description of an image.
    fn answer_side_request(&self, request: &Request) -> Result<Reply, ModelError> {
        let images = request
            .segments
            .iter()
            .flat_map(|segment| &segment.entry.message.content)
            .filter_map(|part| match part {
                Part::Image(image) => Some(image),
                Part::Text { .. } | Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => {
                    None
                }
            });
        let text = images
            .map(|image| ContentHash::from_content(image.data.as_bytes()).to_string())
            .find_map(|hash| self.image_descriptions.get(&hash));
        let text = text.ok_or_else(|| ModelError::BadReply {
            problem: "the record has no reply to this request".to_owned(),
        })?;
        Ok(Reply {
            parts: vec![Part::from_text(text.as_str())],
            ..empty_reply()
        })
    }
}

/// True if haft added the message on its own.
fn is_note(message: &Message) -> bool {
    message.role == Role::User && message.origin() == Origin::Engine
}

fn not_sent(request: &RecordedRequest) -> ComparedRequest {
    ComparedRequest {
        number: request.number,
        model: request.encoding.spec.full_name(),
        position: request.position,
        outcome: ComparedOutcome::NotSent,
    }
}

/// Returns the failure after which a run sends a request again: an overload if another model was
/// asked, else a request that is too long.
fn failure_before(failed: &RecordedRequest, next: &RecordedRequest) -> ModelError {
    let is_same_model = failed.encoding.spec.full_name() == next.encoding.spec.full_name();
    if is_same_model {
        ModelError::Status {
            status: TOO_LONG_STATUS,
            code: "context_length_exceeded".to_owned(),
            message: "the recorded request was refused".to_owned(),
        }
    } else {
        ModelError::Status {
            status: OVERLOAD_STATUS,
            code: "overloaded".to_owned(),
            message: "the recorded request was refused".to_owned(),
        }
    }
}

fn empty_reply() -> Reply {
    Reply {
        parts: Vec::new(),
        stop: StopReason::EndTurn,
        usage: Usage::default(),
        time_to_first_token: std::time::Duration::ZERO,
        duration: std::time::Duration::ZERO,
    }
}
