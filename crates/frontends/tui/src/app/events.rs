//! What the engine's events do to what is shown.
//!
//! Invariant: what arrives is printed in the order it arrived; whatever ends a piece of text (a
//! call, a result, an error) first finishes that text.

use haft_agent::{Approval, MAIN};
use haft_text::grouped;
use haft_types::{
    CallPhase, CompactionPhase, Event, EventBody, Outcome, SubagentPhase, TaskPhase, ToolStatus,
    TurnResult,
};

use serde_json::Value;

use super::App;
use super::reply_rows::FreshRows;
use crate::call::{ToolCallView, about};
use crate::line::{StyledLine, TextStyle};
use crate::markdown;
use crate::wrap::{hang, wrap};

/// So much of an id names a conversation.
const ID_CHARS: usize = 8;
/// The notice of a request that another model answers.
const MODEL_SWITCHED: &str = "model_switched";

impl App {
    pub(super) fn event(&mut self, event: &Event) {
        if !matches!(event.body, EventBody::Retry { .. }) {
            self.activity.hear();
        }
        if event.agent != MAIN {
            return self.event_of_another(event);
        }
        match &event.body {
            EventBody::Conversation { model, sandbox, .. } => {
                self.conversation = Some(
                    event
                        .conversation_id
                        .as_str()
                        .chars()
                        .take(ID_CHARS)
                        .collect(),
                );
                self.status.model.clone_from(model);
                self.status.sandbox = sandbox.as_ref().map(|status| status.layer);
            }
            EventBody::Text { text } => {
                self.finish_thinking();
                self.activity.hear_text(text);
                let was_new = self.answer.is_new();
                let rows = self.answer.push(text, self.columns);
                let fresh = self.reply.take(rows);
                self.print_reply(fresh, was_new);
            }
            EventBody::Thinking { text } => {
                self.activity.hear_text(text);
                self.thinking.push_str(text);
            }
            EventBody::ToolCall {
                id,
                name,
                phase,
                arguments,
                ..
            } => {
                self.finish_text();
                match phase {
                    CallPhase::Started => self.calls.push(ToolCallView::new(id, name)),
                    CallPhase::Arguments => {}
                    CallPhase::Finished => {
                        if let Some(arguments) = arguments.as_ref().filter(|_| name == "todo_write")
                        {
                            self.panes.take_todo(arguments);
                        }
                        let about = arguments.as_ref().map(about).unwrap_or_default();
                        let now = self.activity.now();
                        let link = arguments
                            .as_ref()
                            .and_then(|arguments| self.link_of(arguments));
                        let call = self.call(id, name);
                        (call.about, call.since, call.link) = (about, now, link);
                    }
                }
            }
            EventBody::ToolProgress { id, name, text } => {
                text.clone_into(&mut self.call(id, name).progress);
            }
            EventBody::ToolResult {
                id,
                name,
                status,
                text,
                ..
            } => self.result_of_call(id, name, *status, text),
            EventBody::Usage { usage, cost, .. } => {
                self.activity.hear_usage(*usage);
                self.status.usage = Some(*usage);
                self.status.add(*usage, *cost);
            }
            EventBody::Window { tokens, window, .. } => {
                (self.status.tokens, self.status.window) = (*tokens, *window);
            }
            EventBody::Budget { layers, .. } => self.status.layers.clone_from(layers),
            EventBody::PrefixBreak {
                message, tokens, ..
            } => {
                let message = haft_messages::error_text(message);
                self.last_break = Some(text!(
                    "app-prefix-break",
                    message,
                    tokens = grouped(*tokens)
                ));
            }
            EventBody::Pruning { message, .. } => {
                self.note(&haft_messages::error_text(message), TextStyle::Dim);
            }
            EventBody::Compaction { phase, message, .. } => {
                let style = match phase {
                    CompactionPhase::Started | CompactionPhase::Finished => TextStyle::Dim,
                    CompactionPhase::Failed => TextStyle::Warning,
                };
                self.note(&haft_messages::error_text(message), style);
            }
            EventBody::Retry {
                attempt,
                limit,
                delay_ms,
                reason,
            } => {
                self.lose_reply();
                self.activity.retry(*attempt, *limit, *delay_ms, reason);
            }
            EventBody::Error { message, code } => {
                self.finish_text();
                self.note(&worded(code, message), TextStyle::Warning);
                self.last_error = Some(message.clone());
            }
            // Printed before the terminal was taken over.
            EventBody::Notice { code, .. } if code == haft_agent::UNKNOWN_VARIABLE => {}
            EventBody::Notice { code, message } => {
                if code == MODEL_SWITCHED {
                    self.lose_reply();
                }
                self.finish_text();
                self.note(&worded(code, message), TextStyle::Warning);
            }
            EventBody::Question { question, options } => {
                self.put_before_the_user(question, options);
            }
            EventBody::Plan { response, options } => {
                self.put_before_the_user(response, options);
                self.has_plan = true;
            }
            EventBody::Completion { result, command } => {
                self.finish_text();
                self.print_apart(markdown::render(result, self.columns));
                if let Some(command) = command {
                    self.note(&text!("app-see-result", command), TextStyle::Dim);
                }
            }
            EventBody::BackgroundTask {
                id,
                phase,
                command,
                message,
                ..
            } => {
                self.panes.task(id, *phase, command);
                let style = match phase {
                    TaskPhase::Started | TaskPhase::Finished => TextStyle::Dim,
                    TaskPhase::Failed | TaskPhase::Killed | TaskPhase::Lost => TextStyle::Warning,
                };
                self.note(&haft_messages::error_text(message), style);
            }
            EventBody::Result(result) => self.result(result),
            // The call that changed the file shows how; where reminders stand is shown by `haft
            // context`.
            EventBody::FileChanged { .. }
            | EventBody::Reminders { .. }
            | EventBody::Subagent { .. } => {}
        }
    }

    /// A sub-agent is followed in one row; what it does is in its own conversation.
    fn event_of_another(&mut self, event: &Event) {
        match &event.body {
            EventBody::Subagent {
                phase: SubagentPhase::Started,
                task,
                ..
            } => {
                self.panes.agent_does(&event.agent, task.clone());
            }
            EventBody::Subagent {
                phase: SubagentPhase::Finished,
                result,
                ..
            } => {
                self.panes.agent_ends(&event.agent);
                let agent = &event.agent;
                let text = match result {
                    Some(result) => text!(
                        "app-subagent-outcome",
                        agent,
                        outcome = result.outcome.name()
                    ),
                    None => text!("app-subagent-ended", agent),
                };
                self.note(&text, TextStyle::Dim);
            }
            EventBody::ToolCall {
                name,
                phase: CallPhase::Finished,
                arguments,
                ..
            } => {
                let about = arguments.as_ref().map(about).unwrap_or_default();
                self.panes
                    .agent_does(&event.agent, format!("{name} {about}"));
            }
            EventBody::Usage { usage, cost, .. } => self.status.add(*usage, *cost),
            EventBody::Error { message, code } | EventBody::Notice { message, code } => {
                let text = text!(
                    "app-agent-says",
                    agent = event.agent,
                    message = worded(code, message)
                );
                self.note(&text, TextStyle::Warning);
            }
            EventBody::Conversation { .. }
            | EventBody::Text { .. }
            | EventBody::Thinking { .. }
            | EventBody::ToolCall { .. }
            | EventBody::ToolResult { .. }
            | EventBody::ToolProgress { .. }
            | EventBody::Window { .. }
            | EventBody::Budget { .. }
            | EventBody::Reminders { .. }
            | EventBody::PrefixBreak { .. }
            | EventBody::Pruning { .. }
            | EventBody::Compaction { .. }
            | EventBody::Retry { .. }
            | EventBody::Question { .. }
            | EventBody::Plan { .. }
            | EventBody::Completion { .. }
            | EventBody::FileChanged { .. }
            | EventBody::BackgroundTask { .. }
            | EventBody::Result(_) => {}
        }
    }

    /// The file that arguments name, where a click may open it.
    fn link_of(&self, arguments: &Value) -> Option<String> {
        let root = self.links.as_ref()?;
        let path = arguments
            .get("path")
            .or_else(|| arguments.get("file_path"))?
            .as_str()?;
        Some(if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("{root}/{path}")
        })
    }

    /// Shows a call with the arguments that the user has put in place of the model's.
    pub(crate) fn call_changed(&mut self, approval: &Approval, arguments: &Value) {
        if approval.agent != MAIN {
            return;
        }
        let link = self.link_of(arguments);
        let asked = about(&approval.arguments);
        let is_asked = |call: &&mut ToolCallView| call.tool == approval.tool && call.about == asked;
        if let Some(call) = self.calls.iter_mut().find(is_asked) {
            (call.about, call.link, call.edited) = (about(arguments), link, true);
        }
    }

    /// The call of that id; one that was never announced is now.
    fn call(&mut self, id: &str, name: &str) -> &mut ToolCallView {
        let at = self
            .calls
            .iter()
            .position(|call| call.id == id)
            .unwrap_or_else(|| {
                self.calls.push(ToolCallView {
                    since: self.activity.now(),
                    ..ToolCallView::new(id, name)
                });
                self.calls.len() - 1
            });
        &mut self.calls[at]
    }

    fn result_of_call(&mut self, id: &str, name: &str, status: ToolStatus, text: &str) {
        if let Some(at) = self.cancelled.iter().position(|cancelled| cancelled == id) {
            self.cancelled.remove(at);
            return;
        }
        self.finish_text();
        let call = match self.calls.iter().position(|call| call.id == id) {
            Some(at) => self.calls.remove(at),
            None => ToolCallView::new(id, name),
        };
        let text = call.shown_result(text);
        // The list itself is on the screen.
        if name != "todo_write" || status != ToolStatus::Success {
            let mut rows = call.finished(status, text, self.activity.now(), self.columns);
            // The change was on the screen when it was asked about.
            if self.shown_change.take_if(|tool| tool == name).is_some()
                && status == ToolStatus::Success
            {
                rows.truncate(1);
            }
            if std::mem::take(&mut self.after_words) {
                self.print_apart(rows);
            } else {
                self.print(rows);
            }
        }
        self.results.push(call, text);
    }

    fn result(&mut self, result: &TurnResult) {
        self.finish_text();
        self.panes.end_agents();
        let style = match result.outcome {
            Outcome::Completed => return,
            // The call that was refused has shown why, and the answer is there.
            Outcome::Waiting if result.code == "denied" => return,
            Outcome::Waiting => TextStyle::Dim,
            Outcome::Aborted => return self.note(text!("app-interrupted"), TextStyle::Warning),
            Outcome::Exhausted => TextStyle::Warning,
            Outcome::Failed => TextStyle::Bad,
        };
        let is_said = self
            .last_error
            .take()
            .is_some_and(|error| error == result.message);
        // A question that was just shown speaks for itself.
        if self.options.is_empty() && !self.has_plan && !is_said {
            let message = worded(&result.code, &result.message);
            self.note(
                &text!("app-outcome", outcome = result.outcome.name(), message),
                style,
            );
        }
    }

    fn put_before_the_user(&mut self, text: &str, options: &[String]) {
        self.finish_text();
        self.print_apart(markdown::render(text, self.columns));
        for (at, option) in options.iter().enumerate() {
            let front = StyledLine::of(format!(" {} ", at + 1), TextStyle::Accent);
            let rows = hang(
                &StyledLine::of(option, TextStyle::Plain),
                &front,
                &StyledLine::of("   ", TextStyle::Plain),
                self.columns,
            );
            self.print(rows);
        }
        self.options = options.to_vec();
    }

    /// What was still arriving has arrived.
    pub(super) fn finish_text(&mut self) {
        self.finish_thinking();
        let was_new = self.answer.is_new();
        let rows = self.answer.finish(self.columns);
        let fresh = self.reply.take(rows);
        self.print_reply(fresh, was_new);
        let fresh = self.reply.end();
        self.print_reply(fresh, false);
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.print_apart(held);
            self.activity.forget_ended();
        }
    }

    fn print_reply(&mut self, fresh: FreshRows, is_first: bool) {
        match fresh {
            FreshRows::Next(rows) => {
                self.after_words |= !rows.is_empty();
                if is_first {
                    self.print_apart(rows);
                } else {
                    self.print(rows);
                }
            }
            FreshRows::Again(rows) => {
                self.after_words = true;
                self.print_apart(wrap(
                    &StyledLine::of(text!("app-answer-again"), TextStyle::Dim),
                    self.columns,
                ));
                self.print_apart(rows);
            }
        }
    }

    /// What has arrived of the reply is void: the request is sent again.
    fn lose_reply(&mut self) {
        self.answer = markdown::MarkdownStream::default();
        self.reply.lose();
        self.thinking.clear();
        self.calls.clear();
    }

    /// Thoughts are folded; opened, they are all there.
    fn finish_thinking(&mut self) {
        let thought = std::mem::take(&mut self.thinking);
        if thought.trim().is_empty() {
            return;
        }
        let count = words(&thought);
        self.note(
            &text!("app-thought", count, words = grouped(count)),
            TextStyle::Dim,
        );
        self.results
            .push(ToolCallView::new("", text!("app-thoughts")), &thought);
    }

    pub(super) fn note(&mut self, text: &str, style: TextStyle) {
        let lines = text
            .lines()
            .flat_map(|line| wrap(&StyledLine::of(line, style), self.columns))
            .collect();
        self.print(lines);
    }
}

/// How many words a text has. Scripts that put no blanks between them are counted by character, as
/// their readers do.
fn words(text: &str) -> u64 {
    let wide = |word: &str| {
        word.chars()
            .filter(|c| c.is_alphabetic() && *c >= '\u{2e80}')
            .count() as u64
    };
    text.split_whitespace().map(|word| wide(word).max(1)).sum()
}

/// An error or a notice for people: one that has no translation stands behind what its code means.
pub fn worded(code: &str, message: &str) -> String {
    let message = haft_messages::error_text(message);
    let is_chinese = message.chars().any(|c| c >= '\u{2e80}');
    if is_chinese {
        message.into_owned()
    } else {
        text!("app-coded", code, message)
    }
}
