//! Counts how often content that had been left out was needed again.
//!
//! ```text
//! read a.rs 1-80 (cleared)  …  read a.rs 40-60      regretted: the lines were there
//! read a.rs (cleared)  …  edit a.rs  …  read a.rs   not regretted: the file has changed since
//! run cargo test (cleared)  …  run cargo test       regretted: its output was there
//! run cargo test (cleared)  …  edit a.rs  …  run cargo test   not regretted: a new output is wanted
//! (cleared, id 1a2b3c4d)  …  recall 1a2b3c4d        regretted: the model asked for it by id
//! ```
//!
//! Every message is examined once, when it is new.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use haft_context::{CallSubject, Cleared};
use haft_types::{Entry, MessageId, Role, ShortId, ToolCall, ToolStatus};

/// The tool with which a model requests an omitted message again.
const RECALL_TOOL: &str = "recall";

/// The tool results of a conversation so far, by the file that was read or the command that was
/// run.
#[derive(Debug, Default)]
pub(crate) struct Regrets {
    /// The position of each message in the conversation.
    places: HashMap<MessageId, usize>,
    /// Calls whose results have not been processed yet, by call id.
    waiting: HashMap<String, ToolCall>,
    /// The reads of each file: first line, last line, and the message with the result.
    reads: HashMap<String, Vec<(u64, u64, MessageId)>>,
    runs: HashMap<(String, String), Vec<MessageId>>,
    /// The number of messages at the beginning that are archived.
    archived: usize,
    /// The number of tokens of each message.
    tokens: HashMap<MessageId, u64>,
    /// The total number of tokens in messages that were requested again.
    pub(crate) asked_tokens: u64,
}

/// The messages that were left out of the last request.
struct Gone<'a> {
    cleared: Option<&'a BTreeSet<MessageId>>,
    /// All messages before this position were left out, in addition to those in `cleared`.
    before: usize,
    places: &'a HashMap<MessageId, usize>,
}

impl Gone<'_> {
    fn contains(&self, id: MessageId) -> bool {
        self.cleared.is_some_and(|cleared| cleared.contains(&id))
            || self
                .places
                .get(&id)
                .is_some_and(|place| *place < self.before)
    }
}

impl Regrets {
    /// Adds the messages that are new since the last request. Returns the number of tool calls in
    /// these messages that request content which the last request left out.
    pub(crate) fn count_new_regrets(
        &mut self,
        new: &[Arc<Entry>],
        cleared: Option<&Cleared>,
    ) -> usize {
        let mut regretted = 0;
        for entry in new {
            let message = &entry.message;
            for call in message.tool_calls() {
                if let Some(gone) = self.missed_message(call, cleared) {
                    regretted += 1;
                    self.asked_tokens += self.tokens.get(&gone).copied().unwrap_or_default();
                }
            }
            self.tokens
                .insert(message.message_id, u64::from(entry.tokens));
            self.places.insert(message.message_id, self.places.len());
            self.waiting.extend(
                message
                    .tool_calls()
                    .map(|call| (call.id.clone(), call.clone())),
            );
            if message.role == Role::Tool {
                for result in message.tool_results() {
                    let call = self.waiting.remove(&result.tool_call_id);
                    for subject in
                        CallSubject::from_call_and_result(call.as_ref(), result, &message.metadata)
                    {
                        self.record_result(subject, message.message_id, result.envelope.status);
                    }
                }
            }
        }
        regretted
    }

    /// Records that all messages before `first_kept` are archived.
    pub(crate) fn mark_archived(&mut self, first_kept: MessageId) {
        self.archived = self
            .places
            .get(&first_kept)
            .copied()
            .unwrap_or(self.archived);
    }

    fn record_result(&mut self, subject: CallSubject, id: MessageId, status: ToolStatus) {
        match subject {
            CallSubject::Read { path, from, to } => {
                self.reads.entry(path).or_default().push((from, to, id));
            }
            CallSubject::Run { command, cwd } => {
                self.runs.entry((command, cwd)).or_default().push(id);
            }
            // An edit makes content that was read before outdated.
            CallSubject::Edit { paths } if status != ToolStatus::Error => {
                self.reads.retain(|path, _| !paths.contains(path));
                // An edit makes the output of commands outdated, too: tests and builds are run
                // again after a change.
                self.runs.retain(|_, runs| runs.contains(&id));
            }
            CallSubject::Edit { .. } => {}
        }
    }

    /// Returns the message with the content that `call` requests, if the last request left that
    /// message out.
    fn missed_message(&self, call: &ToolCall, cleared: Option<&Cleared>) -> Option<MessageId> {
        let first = cleared
            .and_then(|cleared| self.places.get(&cleared.first_kept?))
            .copied()
            .unwrap_or(0);
        let before = first.max(self.archived);
        let gone = Gone {
            cleared: cleared.map(|cleared| &cleared.ids),
            before,
            places: &self.places,
        };
        if call.name == RECALL_TOOL {
            return parse_recalled_ids(call).find_map(|short| {
                let mut known = self.places.keys().copied();
                known.find(|id| id.short_id() == short && gone.contains(*id))
            });
        }
        match CallSubject::from_call(call) {
            Some(CallSubject::Read { path, from, to }) => {
                // A model that still sees some of the lines has another reason to read them again.
                let overlap =
                    |(first, last, _): &&(u64, u64, MessageId)| *first <= to && from <= *last;
                let read = || self.reads.get(&path).into_iter().flatten().filter(overlap);
                let newest = read().next_back().map(|(_, _, id)| *id);
                newest.filter(|_| read().all(|(_, _, id)| gone.contains(*id)))
            }
            Some(CallSubject::Run { command, cwd }) => {
                let newest = self.runs.get(&(command, cwd)).and_then(|runs| runs.last());
                newest.copied().filter(|id| gone.contains(*id))
            }
            Some(CallSubject::Edit { .. }) | None => None,
        }
    }
}

/// Returns the message ids in the arguments of a [`RECALL_TOOL`] call.
fn parse_recalled_ids(call: &ToolCall) -> impl Iterator<Item = ShortId> {
    call.arguments
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests;
