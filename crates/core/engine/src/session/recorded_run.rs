//! The record of an earlier run, for a session that replays it.
//!
//! The session runs its own turns: it builds requests, checks and permits calls, and appends notes.
//! The record supplies what came from outside: ids and times, results of calls, summaries, and
//! messages from background tasks and other agents. The replies of the model come through the
//! client; whoever answers for the model reports each reply with [`RecordedRun::begin_reply`].

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft_context::{CHANGED_FILES_KEY, Edits};
use haft_model::Reply;
use haft_store::{Store, StoreError};
use haft_tool::{Access, FileChange, Group, Tool, ToolOutput, Workspace};
use haft_types::{
    ChangeKind, Clock, ContentHash, ConversationId, Envelope, Image, LlmMetadata, Message,
    MessageId, Origin, Part, Prompt, PromptLanguage, Role, StopReason, Timestamp, ToolCall,
    ToolResult,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::names::{
    self, ANNOUNCED_TASKS_KEY, DESCRIPTION_HEADING, ENDED_AGENTS_KEY, GOAL_INSTRUCTION,
    PLAN_ON_NOTE, PLAN_OVER_NOTE,
};
use crate::stored_state::{self, ImageDescriptions};
use crate::turn::resume;

/// The beginning of the answer to a question, as the model reads it.
pub(crate) const ANSWER_PREFIX: &str = "The user answered: ";
/// Added to the answer that ends plan mode.
pub(crate) const PLAN_OVER_SUFFIX: &str =
    "\n\nPlan mode is over: you can change files and run commands now.";

/// The result of a call without a recorded result: the run was interrupted there.
pub(crate) const RECORD_ENDS_MESSAGE: &str = "The recorded run was interrupted here.";

/// Controls which calls of a replayed run are run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepeatedCalls {
    /// Calls that change only the conversation, such as the TODO list, and calls that steer the
    /// turn. The result of every call is taken from the record.
    Conversation,
    /// All calls except those to other agents, running programs, servers and the web. Files are
    /// read and changed in a copy of the project.
    InCopy {
        /// The project of the recorded run, as calls name it.
        project: PathBuf,
        /// The copy in which the calls run.
        copy: PathBuf,
    },
}

/// A call of a replayed run, with today's decision about it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayedCall {
    /// The index of the recorded reply that contains the call.
    pub reply: usize,
    /// The id of the call.
    pub id: String,
    /// The name of the tool, as the reply gives it.
    pub tool: String,
    /// The error result if the call was not run.
    pub refusal: Option<Envelope>,
    /// Today's result, if the call was run again in a copy of the project.
    pub result: Option<Envelope>,
}

/// The record of a run, and the position of its replay.
pub struct RecordedRun {
    messages: Vec<Message>,
    repeated: RepeatedCalls,
    progress: Mutex<RecordProgress>,
}

struct RecordProgress {
    /// The index of the recorded message whose id the next new message gets.
    next: usize,
    /// The index of the reply that the session received last.
    reply: Option<usize>,
    now: Timestamp,
    /// The number of ids that were requested after the last recorded one.
    further_ids: u64,
    /// The ids of the newest reply's calls that began.
    begun: HashSet<String>,
    calls: Vec<ReplayedCall>,
    interrupt: CancellationToken,
}

/// The source of a call's result in a replayed run.
pub(crate) enum PlannedCall {
    /// The call is run.
    Run,
    /// The call has the recorded result.
    Repeat(Box<ToolOutput>),
    /// The recorded run was interrupted before the call had a result.
    Interrupted,
}

/// The recorded parts of a call's result.
pub(crate) struct RecordedResult {
    pub(crate) envelope: Envelope,
    pub(crate) images: Vec<Image>,
    /// The files that the call changed, as the record shows them.
    pub(crate) changed: Vec<String>,
}

impl RecordedRun {
    /// Creates the replay of a run with these messages.
    pub fn new(messages: Vec<Message>, repeated: RepeatedCalls) -> Self {
        let now = messages
            .first()
            .map_or(Timestamp::UNIX_EPOCH, |first| first.created_at);
        Self {
            messages,
            repeated,
            progress: Mutex::new(RecordProgress {
                next: 0,
                reply: None,
                now,
                further_ids: 0,
                begun: HashSet::new(),
                calls: Vec::new(),
                interrupt: CancellationToken::new(),
            }),
        }
    }

    /// Returns the recorded messages, in order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the index of the next recorded message that the replay has not reached.
    pub fn position(&self) -> usize {
        self.progress().next
    }

    /// Returns the next recorded message, or `None` at the end of the record.
    pub fn next_message(&self) -> Option<&Message> {
        self.messages.get(self.position())
    }

    /// Returns the recorded reply at `index`, or `None` if the message there is no reply.
    pub fn reply_at(&self, index: usize) -> Option<Reply> {
        let message = self
            .messages
            .get(index)
            .filter(|message| message.role == Role::Assistant)?;
        let assumed = if message.tool_calls().next().is_some() {
            StopReason::ToolUse
        } else {
            StopReason::EndTurn
        };
        let made = message.llm_metadata.as_deref();
        let time = |millis: Option<u64>| Duration::from_millis(millis.unwrap_or_default());
        Some(Reply {
            parts: message.content.clone(),
            stop: resume::stored_stop_reason(message).unwrap_or(assumed),
            usage: made.map(LlmMetadata::usage).unwrap_or_default(),
            time_to_first_token: time(made.and_then(|made| made.time_to_first_token_ms)),
            duration: time(made.and_then(|made| made.duration_ms)),
        })
    }

    /// Reports that the session receives the recorded reply at `index` now. The message that stores
    /// the reply gets the recorded id and time.
    pub fn begin_reply(&self, index: usize) {
        let mut progress = self.progress();
        progress.next = progress.next.max(index);
        progress.reply = Some(index);
        progress.begun.clear();
    }

    /// Returns the index of the recorded reply that the session received last.
    pub fn last_reply(&self) -> Option<usize> {
        self.progress().reply
    }

    /// Continues at the recorded message at `index`, after a session that appended other messages
    /// than the recorded run.
    pub fn continue_at(&self, index: usize) {
        self.progress().next = index;
    }

    /// Sets the token that interrupts the turn at a call that was interrupted in the recorded run.
    pub fn set_interrupt(&self, interrupt: CancellationToken) {
        self.progress().interrupt = interrupt;
    }

    /// Returns the calls that were decided so far, in order.
    pub fn calls(&self) -> Vec<ReplayedCall> {
        self.progress().calls.clone()
    }

    /// Returns the result of a call in the recorded reply at `reply`.
    pub fn result_of(&self, reply: usize, call_id: &str) -> Option<&ToolResult> {
        self.find_result(reply, call_id).map(|(_, result)| result)
    }

    /// True if the message is the result of a call at which the recorded run was interrupted. The
    /// record has no such message.
    pub fn is_interruption(message: &Message) -> bool {
        message
            .tool_results()
            .any(|result| result.envelope.text == RECORD_ENDS_MESSAGE)
    }

    /// Returns the user's answer in the result of a question, and whether the answer ended plan
    /// mode. Returns `None` for every other message.
    pub fn parse_answer(message: &Message) -> Option<(&str, bool)> {
        let result = message.tool_results().next()?;
        let answer = result.envelope.text.strip_prefix(ANSWER_PREFIX)?;
        Some(match answer.strip_suffix(PLAN_OVER_SUFFIX) {
            Some(answer) => (answer, true),
            None => (answer, false),
        })
    }

    /// Returns the input that the user typed, from its message: without descriptions of images, the
    /// instruction of a goal and the note on mentioned files.
    pub fn typed_input(message: &Message) -> String {
        let whole = message.joined_text();
        let described = whole
            .find(&format!("\n\n{DESCRIPTION_HEADING}\n"))
            .filter(|_| !collect_images(message).is_empty());
        let mut text = &whole[..described.unwrap_or(whole.len())];
        for goal in wordings(GOAL_INSTRUCTION) {
            let stripped = text.strip_suffix(goal);
            text = stripped
                .and_then(|before| before.strip_suffix("\n\n"))
                .unwrap_or(text);
        }
        let note = text
            .rfind("\n\n<system-reminder>\n")
            .filter(|_| text.ends_with("</system-reminder>"));
        text[..note.unwrap_or(text.len())].to_owned()
    }

    /// Returns true if the message informs the model that plan mode begins, and false if it informs
    /// the model that plan mode is over; `None` for every other message.
    pub fn plan_mode_note(message: &Message) -> Option<bool> {
        if message.role != Role::User || message.origin() != Origin::Engine {
            return None;
        }
        let text = message.joined_text();
        let contains = |note: Prompt| wordings(note).iter().any(|wording| text.contains(wording));
        if contains(PLAN_ON_NOTE) {
            Some(true)
        } else {
            contains(PLAN_OVER_NOTE).then_some(false)
        }
    }

    /// True if a session that offers these tools was opened in plan mode: only then does it offer
    /// the tool that presents plans.
    pub fn was_opened_in_plan_mode(tools: &[String]) -> bool {
        tools.iter().any(|name| name == names::PLAN_TOOL)
    }

    /// True if a session that offers these tools has a user to ask.
    pub fn was_attended(tools: &[String]) -> bool {
        tools.iter().any(|name| name == names::ASK_TOOL)
    }

    /// Returns the id for a new message: that of the next recorded message, whose time becomes the
    /// current time. After the end of the record, ids are numbered.
    pub fn next_id(&self) -> MessageId {
        let mut progress = self.progress();
        if let Some(message) = self.messages.get(progress.next) {
            progress.next += 1;
            progress.now = message.created_at;
            return message.message_id;
        }
        progress.further_ids += 1;
        let seed = format!("message {} after the record", progress.further_ids);
        MessageId::from_hash(ContentHash::from_content(seed.as_bytes()))
    }

    fn progress(&self) -> MutexGuard<'_, RecordProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the result of a call between the reply at `reply` and the next reply.
    fn find_result(&self, reply: usize, call_id: &str) -> Option<(&Message, &ToolResult)> {
        self.messages
            .get(reply + 1..)?
            .iter()
            .take_while(|message| message.role != Role::Assistant)
            .find_map(|message| {
                let result = message
                    .tool_results()
                    .find(|result| result.tool_call_id == call_id)?;
                Some((message, result))
            })
    }
}

/// Returns the descriptions of a conversation's images, by the hash of their data. Unreadable
/// descriptions count as missing.
pub async fn load_image_descriptions(
    store: &dyn Store,
    id: &ConversationId,
) -> Result<BTreeMap<String, String>, StoreError> {
    let stored = stored_state::read_document::<ImageDescriptions>(store, id).await?;
    let described = stored.and_then(Result::ok);
    Ok(described.map_or_else(BTreeMap::new, |ImageDescriptions(described)| described))
}

/// True if the user has edited the context of a conversation.
pub async fn has_context_edits(store: &dyn Store, id: &ConversationId) -> Result<bool, StoreError> {
    let stored = stored_state::read_document::<Edits>(store, id).await?;
    Ok(stored
        .and_then(Result::ok)
        .is_some_and(|edits| edits != Edits::default()))
}

/// The methods that the session calls.
impl RecordedRun {
    /// Returns the next recorded message and moves past it if it came from a background task,
    /// another agent or a hook: the replay has none of them.
    pub(crate) fn take_outside_message(&self) -> Option<Message> {
        let mut progress = self.progress();
        let message = self.messages.get(progress.next)?;
        let is_outside = message.role == Role::User
            && match message.origin() {
                Origin::Agent => true,
                Origin::Engine => {
                    message.metadata.contains_key(ANNOUNCED_TASKS_KEY)
                        || message.metadata.contains_key(ENDED_AGENTS_KEY)
                        || message.joined_text().starts_with("<hook_context>\n")
                }
                Origin::User | Origin::Joined => false,
            };
        is_outside.then(|| {
            progress.next += 1;
            progress.now = message.created_at;
            message.clone()
        })
    }

    /// Returns the summary that the recorded run has at this position.
    pub(crate) fn next_summary(&self) -> Option<&Message> {
        self.next_message()
            .filter(|message| message.role == Role::Summary)
    }

    /// Changes the paths in a call's arguments to those of the copy in which the call runs.
    pub(crate) fn redirect_arguments(&self, arguments: &mut Value) {
        if let RepeatedCalls::InCopy { project, copy } = &self.repeated {
            replace_in_strings(
                arguments,
                &project.display().to_string(),
                &copy.display().to_string(),
            );
        }
    }

    /// Returns the recorded result of a call that a hook blocked.
    pub(crate) fn find_blocked_result(&self, call: &ToolCall) -> Option<Envelope> {
        let reply = self.progress().reply?;
        let envelope = &self.result_of(reply, &call.id)?.envelope;
        let error = envelope.error.as_ref()?;
        (error.code == "hook_blocked").then(|| envelope.clone())
    }

    /// Records today's decision about a call. `refusal` is the error result of a call that is not
    /// run.
    pub(crate) fn record_decision(&self, call: &ToolCall, refusal: Option<&Envelope>) {
        let mut progress = self.progress();
        let Some(reply) = progress.reply else {
            return;
        };
        progress.calls.push(ReplayedCall {
            reply,
            id: call.id.clone(),
            tool: call.name.clone(),
            refusal: refusal.cloned(),
            result: None,
        });
    }

    /// Returns the source of the result of a call that may run.
    pub(crate) fn plan_call(
        &self,
        call: &ToolCall,
        tool: &dyn Tool,
        workspace: &Workspace,
    ) -> PlannedCall {
        let recorded = self
            .progress()
            .reply
            .and_then(|reply| self.find_result(reply, &call.id));
        let mut progress = self.progress();
        let Some((message, result)) = recorded else {
            // The result of a question is the user's answer, which is stored later.
            if tool.spec().name == names::ASK_TOOL
                || tool.spec().name == names::PLAN_TOOL
                || tool.spec().name == names::COMPLETE_TOOL
            {
                return PlannedCall::Run;
            }
            progress.interrupt.cancel();
            return PlannedCall::Interrupted;
        };
        progress.begun.insert(call.id.clone());
        if self.is_repeated(tool) {
            return PlannedCall::Run;
        }
        let changed = parse_changed_files(message);
        PlannedCall::Repeat(Box::new(ToolOutput {
            envelope: result.envelope.clone(),
            images: collect_images(message),
            changes: changed
                .iter()
                .map(|path| FileChange {
                    path: workspace.root.join(path),
                    kind: ChangeKind::Modified,
                })
                .collect(),
            ..ToolOutput::default()
        }))
    }

    /// Takes the recorded result of a call that has ended, which replaces today's result. Today's
    /// result is kept for comparison if calls run in a copy of the project. Returns `None` for a
    /// call that was refused.
    pub(crate) fn finish_call(&self, call: &ToolCall, today: &Envelope) -> Option<RecordedResult> {
        let mut progress = self.progress();
        let reply = progress.reply?;
        if !progress.begun.remove(&call.id) {
            return None;
        }
        let (message, result) = self.find_result(reply, &call.id)?;
        let is_compared = matches!(self.repeated, RepeatedCalls::InCopy { .. });
        let decided = progress
            .calls
            .iter_mut()
            .rfind(|one| one.reply == reply && one.id == call.id);
        if let Some(decided) = decided.filter(|_| is_compared) {
            decided.result = Some(today.clone());
        }
        Some(RecordedResult {
            envelope: result.envelope.clone(),
            images: collect_images(message),
            changed: parse_changed_files(message),
        })
    }

    /// True if a call of `tool` is run again.
    fn is_repeated(&self, tool: &dyn Tool) -> bool {
        let group = tool.manual().group;
        let is_own =
            tool.access() == Access::State && matches!(group, Group::Dialogue | Group::Knowledge);
        match &self.repeated {
            RepeatedCalls::Conversation => is_own,
            RepeatedCalls::InCopy { .. } => {
                is_own
                    || group == Group::Files
                    || group == Group::Knowledge
                    || tool.spec().name == names::EXECUTE_TOOL
            }
        }
    }
}

impl Clock for RecordedRun {
    fn now(&self) -> Timestamp {
        self.progress().now
    }
}

/// Returns a text in all languages, as it is sent.
fn wordings(prompt: Prompt) -> [&'static str; 2] {
    [PromptLanguage::English, PromptLanguage::Chinese].map(|language| prompt.text(language))
}

fn collect_images(message: &Message) -> Vec<Image> {
    let images = message.content.iter().filter_map(|part| match part {
        Part::Image(image) => Some(image.clone()),
        Part::Text { .. } | Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
    });
    images.collect()
}

fn parse_changed_files(message: &Message) -> Vec<String> {
    let listed = message
        .metadata
        .get(CHANGED_FILES_KEY)
        .and_then(Value::as_array);
    let paths = listed.into_iter().flatten().filter_map(Value::as_str);
    paths.map(str::to_owned).collect()
}

fn replace_in_strings(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) => *text = replace_path(text, Path::new(from), to),
        Value::Array(values) => {
            for value in values {
                replace_in_strings(value, from, to);
            }
        }
        Value::Object(fields) => {
            for value in fields.values_mut() {
                replace_in_strings(value, from, to);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces a path where it stands alone or begins a longer path.
fn replace_path(text: &str, from: &Path, to: &str) -> String {
    let from = from.display().to_string();
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(&from) {
        let (before, found) = rest.split_at(at);
        let after = &found[from.len()..];
        replaced.push_str(before);
        let continues = after
            .chars()
            .next()
            .is_some_and(|next| next.is_alphanumeric() || matches!(next, '-' | '_' | '.'));
        replaced.push_str(if continues { &from } else { to });
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Message {
        let id = MessageId::from_hash(ContentHash::from_content(text.as_bytes()));
        Message::from_text(id, Role::User, text, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn typed_input_removes_what_haft_added() {
        let note = "\n\n<system-reminder>\nRead a.rs.\n</system-reminder>";
        let goal = GOAL_INSTRUCTION.text(PromptLanguage::English);
        let stored = format!("Fix @a.rs{note}\n\n{goal}");
        assert_eq!(RecordedRun::typed_input(&user(&stored)), "Fix @a.rs");
        let piped = "Sum it\n\n<stdin>\n1\n</stdin>";
        assert_eq!(RecordedRun::typed_input(&user(piped)), piped);
    }

    #[test]
    fn redirected_arguments_name_the_copy() {
        let repeated = RepeatedCalls::InCopy {
            project: "/home/ada/app".into(),
            copy: "/tmp/copy".into(),
        };
        let run = RecordedRun::new(Vec::new(), repeated);
        let mut arguments = serde_json::json!({
            "path": "/home/ada/app/a.rs",
            "command": "cat /home/ada/app /home/ada/app2/b /home/ada/app-old",
        });
        run.redirect_arguments(&mut arguments);
        assert_eq!(
            arguments,
            serde_json::json!({
                "path": "/tmp/copy/a.rs",
                "command": "cat /tmp/copy /home/ada/app2/b /home/ada/app-old",
            })
        );
    }

    #[test]
    fn next_id_returns_the_recorded_ids_in_order_and_then_others() {
        let messages = vec![user("one"), user("two")];
        let ids: Vec<_> = messages.iter().map(|message| message.message_id).collect();
        let run = RecordedRun::new(messages, RepeatedCalls::Conversation);
        assert_eq!([run.next_id(), run.next_id()], ids[..]);
        assert_eq!(run.position(), 2);
        assert_ne!(run.next_id(), run.next_id());
    }
}
