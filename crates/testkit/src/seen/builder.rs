//! Puts decoded parts into API-neutral order: merges messages of one role, numbers calls, and moves
//! images behind a run of results.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use super::{SeenMessage, SeenPart, SeenRole};

/// Collects the parts of a request in wire order. Every step takes constant time, so decoding is
/// linear in the size of the body.
#[derive(Default)]
pub(super) struct Builder {
    messages: Vec<SeenMessage>,
    calls: usize,
    /// The number of each call by its id in the request. A repeated id stands for the latest call.
    by_id: HashMap<String, usize>,
    /// The unanswered calls of each tool, oldest first, to which results without an id are
    /// assigned.
    open_by_name: HashMap<String, VecDeque<usize>>,
    /// The images that came with the current run of consecutive results.
    pending_images: Vec<SeenPart>,
}

impl Builder {
    /// Adds a part to the current message, or to a new message if the role differs.
    pub(super) fn push(&mut self, role: SeenRole, part: SeenPart) {
        self.flush_images();
        self.append(role, part);
    }

    /// Starts a message without parts, which still counts as a message.
    pub(super) fn start_message(&mut self, role: SeenRole) {
        self.flush_images();
        if self.messages.last().is_none_or(|last| last.role != role) {
            self.messages.push(SeenMessage {
                role,
                parts: Vec::new(),
            });
        }
    }

    /// Adds a tool call by the model.
    pub(super) fn push_call(
        &mut self,
        id: Option<&str>,
        name: &str,
        arguments: Value,
        signed: bool,
    ) {
        self.calls += 1;
        let number = self.calls;
        match id {
            Some(id) => {
                self.by_id.insert(id.to_owned(), number);
            }
            None => self
                .open_by_name
                .entry(name.to_owned())
                .or_default()
                .push_back(number),
        }
        let id = id.map(str::to_owned);
        let name = name.to_owned();
        self.push(
            SeenRole::Assistant,
            SeenPart::ToolCall {
                number,
                id,
                name,
                arguments,
                signed,
            },
        );
    }

    /// Adds the result of the call with the id `id`.
    pub(super) fn push_result(&mut self, id: &str, text: String, failed: Option<bool>) {
        let number = self.by_id.get(id).copied();
        self.append(
            SeenRole::Tool,
            SeenPart::ToolResult {
                number,
                id: Some(id.to_owned()),
                text,
                failed,
            },
        );
    }

    /// Adds the result of the oldest unanswered call of the tool `name`.
    pub(super) fn push_result_by_name(&mut self, name: &str, text: String, failed: Option<bool>) {
        let number = self
            .open_by_name
            .get_mut(name)
            .and_then(VecDeque::pop_front);
        self.append(
            SeenRole::Tool,
            SeenPart::ToolResult {
                number,
                id: None,
                text,
                failed,
            },
        );
    }

    /// Adds an image that came with a result. The image is placed after all results of the run.
    pub(super) fn push_result_image(&mut self, image: SeenPart) {
        self.pending_images.push(image);
    }

    /// Returns the finished messages.
    pub(super) fn finish(mut self) -> Vec<SeenMessage> {
        self.flush_images();
        self.messages
    }

    fn flush_images(&mut self) {
        for image in std::mem::take(&mut self.pending_images) {
            self.append(SeenRole::User, image);
        }
    }

    fn append(&mut self, role: SeenRole, part: SeenPart) {
        match self.messages.last_mut() {
            Some(last) if last.role == role => last.parts.push(part),
            _ => self.messages.push(SeenMessage {
                role,
                parts: vec![part],
            }),
        }
    }
}
