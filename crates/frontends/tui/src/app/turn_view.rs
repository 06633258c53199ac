//! The running turn as it is shown: the reply, tool calls, results, and other work in progress.
//!
//! Invariant: events are printed in the order in which they arrive; an event that ends a piece of
//! text (a call, a result, an error) first prints that text.

use std::time::Duration;

use haft_agent::{Approval, ApprovalReply};
use haft_messages::{capitalize_sentence, is_dialogue_tool};
use haft_types::{
    CallPhase, CompactionPhase, EventBody, Outcome, TaskPhase, ToolStatus, TurnResult, Usage,
};
use serde_json::Value;

use super::activity::Activity;
use super::call_list::CallList;
use super::panes::{AgentWork, Panes};
use super::reply::Reply;
use super::scrollback::{Scrollback, layout_prompt};
use crate::approval::ApprovalDialog;
use crate::call::{DIFF_ROWS, OmittedEnd, ToolCallView, cut_rows, wrap_text};
use crate::diff::{self, DiffHeaders};
use crate::line::{StyledLine, TextStyle};
use crate::link::{EarlierMessage, RunningTask};
use crate::markdown;
use crate::viewer::ResultList;
use crate::wrap::wrap_hanging;

/// The code of the notice that reports that the session switched to another model.
const MODEL_SWITCHED: &str = "model_switched";
/// The code of the notice that reports that the project is not trusted.
const UNTRUSTED: &str = "untrusted";
/// The tool whose calls set the TODO list.
const TODO_TOOL: &str = "todo_write";
/// The minimum duration of a turn after which the end of the turn raises an alert.
const LONG_TURN: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct TurnView {
    /// True while a turn runs.
    busy: bool,
    /// True once the user has interrupted the turn.
    interrupted: bool,
    reply: Reply,
    calls: CallList,
    /// The results and reasoning that the user can open.
    results: ResultList,
    activity: Activity,
    panes: Panes,
    /// The last error, kept because the turn's result repeats the error.
    last_error: Option<String>,
    /// The answers that the model proposes to its own question. The user chooses one by its number.
    options: Vec<String>,
    /// What the model expects from the user at the end of the turn.
    awaited: Awaited,
}

/// The reaction of the user that the end of a turn calls for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Awaited {
    #[default]
    Nothing,
    /// The model has answered. In plan mode, the answer is a plan.
    Reaction,
    /// The model has asked a question.
    Answer,
    /// The model has presented a plan.
    Decision,
}

impl TurnView {
    /// Creates the view of a session. `root` is the project's folder if the terminal supports
    /// links to its files.
    pub(super) fn new(root: Option<String>) -> Self {
        Self {
            calls: CallList::new(root),
            ..Self::default()
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy
    }

    pub(super) fn set_time(&mut self, now: Duration) {
        self.activity.set_time(now);
    }

    /// Returns true if the view must be redrawn regularly because it shows times.
    pub(super) fn changes_over_time(&self) -> bool {
        self.busy || self.activity.changes_over_time() || self.panes.changes_over_time()
    }

    /// Returns true if a sign moves while the turn runs.
    pub(super) fn is_animated(&self) -> bool {
        self.busy && self.activity.is_animated()
    }

    pub(super) fn results(&self) -> &ResultList {
        &self.results
    }

    pub(super) fn options(&self) -> &[String] {
        &self.options
    }

    /// Starts a turn.
    pub(super) fn start_turn(&mut self) {
        self.busy = true;
        self.activity.begin_turn();
    }

    /// Records that another front end has started a turn, unless one is running.
    pub(super) fn start_turn_elsewhere(&mut self) {
        if !self.busy {
            self.options.clear();
            self.awaited = Awaited::Nothing;
            self.last_error = None;
            self.start_turn();
        }
    }

    /// Starts a turn with the user's input and returns the prompt to send: a proposed answer if the
    /// input is the number of that answer, else the input itself.
    pub(super) fn start_turn_with_input(&mut self, input: String, out: &mut Scrollback) -> String {
        let chosen = input
            .trim()
            .parse::<usize>()
            .ok()
            .and_then(|number| self.options.get(number.checked_sub(1)?));
        let prompt = chosen.cloned().unwrap_or(input);
        self.options.clear();
        self.awaited = Awaited::Nothing;
        out.print_prompt(&prompt);
        self.start_turn();
        self.last_error = None;
        prompt
    }

    /// Marks the turn as interrupted. Returns false if no turn is running.
    pub(super) fn mark_interrupted(&mut self) -> bool {
        self.interrupted |= self.busy;
        self.busy
    }

    /// Returns true if the turn has taken so long that the user may be doing something else.
    pub(super) fn is_long(&self) -> bool {
        self.busy && !self.interrupted && self.activity.turn_time() >= LONG_TURN
    }

    /// Records that a question was printed: the next call stands apart from it.
    pub(super) fn note_printed_question(&mut self) {
        self.reply.note_printed_text();
    }

    /// Ends the turn. Returns true if the user interrupted it.
    pub(super) fn end_turn(&mut self, out: &mut Scrollback) -> bool {
        self.busy = false;
        self.calls.cancel_all(self.activity.now(), out);
        std::mem::take(&mut self.interrupted)
    }

    /// Returns the reaction of the user that the end of the turn calls for, and resets it.
    pub(super) fn take_awaited(&mut self) -> Awaited {
        std::mem::take(&mut self.awaited)
    }

    /// Forgets the answers that the model has proposed, so that a number is a prompt again.
    pub(super) fn forget_options(&mut self) {
        self.options.clear();
    }

    /// Prints the answers that the model has proposed, with their numbers.
    pub(super) fn print_options(&self, out: &mut Scrollback) {
        for (at, option) in self.options.iter().enumerate() {
            out.print_rows(wrap_hanging(
                &StyledLine::new(option, TextStyle::Plain),
                &StyledLine::new(format!(" {} ", at + 1), TextStyle::Accent),
                &StyledLine::new("   ", TextStyle::Plain),
                out.columns(),
            ));
        }
    }

    /// Resets the state of the conversation, because another one was opened.
    pub(super) fn forget_conversation(&mut self) {
        self.results = ResultList::default();
        self.panes = Panes::default();
    }

    pub(super) fn toggle_todo(&mut self) {
        self.panes.toggle_todo();
    }

    pub(super) fn add_shell(&mut self, id: u64, line: String) {
        self.activity.add_shell(id, line);
    }

    /// Prints the output of a command in the user's shell.
    pub(super) fn end_shell(&mut self, id: u64, text: &str, out: &mut Scrollback) {
        self.activity.end_shell(id);
        self.print_text(text, out);
        if !self.reply.has_held_rows() {
            self.activity.forget_ended();
        }
    }

    /// Returns the id of the newest command that is still running in the user's shell.
    pub(super) fn newest_shell(&self) -> Option<u64> {
        self.activity.newest_shell()
    }

    /// Prints text that isn't part of the reply. A diff is drawn as a diff.
    pub(super) fn print_text(&mut self, text: &str, out: &mut Scrollback) {
        let text = text.trim_end();
        let rows = if diff::is_diff(text) {
            let rows = diff::draw_diff_rows("", DiffHeaders::Paths, text.lines(), out.columns());
            if rows.len() > DIFF_ROWS {
                let call = ToolCallView::new("", text!("app-changes"));
                self.results.push(call, text);
            }
            cut_rows(&rows, DIFF_ROWS, OmittedEnd::Last)
        } else {
            wrap_text(text, TextStyle::Plain, out.columns())
        };
        self.reply.print_aside(rows, out);
    }

    /// Prints a command line that the user entered for the shell.
    pub(super) fn print_shell_command(&mut self, text: &str, out: &mut Scrollback) {
        let mut rows = vec![StyledLine::empty()];
        rows.extend(layout_prompt(text, out.columns()));
        self.reply.print_aside(rows, out);
    }

    /// Prints the messages of a conversation that was resumed.
    pub(super) fn print_earlier_messages(
        &mut self,
        messages: Vec<EarlierMessage>,
        out: &mut Scrollback,
    ) {
        for message in messages {
            match message {
                EarlierMessage::User(text) => out.print_prompt(&text),
                EarlierMessage::Model(text) => {
                    out.print_separated(markdown::draw_block(&text, out.columns()));
                    self.reply.note_printed_text();
                }
                EarlierMessage::Call {
                    tool,
                    arguments,
                    status,
                    text,
                } => self.print_earlier_call(&tool, &arguments, status, &text, out),
                EarlierMessage::Result {
                    tool,
                    arguments,
                    text,
                } => {
                    let mut call = ToolCallView::new("", &tool);
                    call.describe(&arguments);
                    self.results.push(call, &text);
                }
            }
        }
    }

    /// Prints a call of a conversation that was resumed.
    fn print_earlier_call(
        &mut self,
        tool: &str,
        arguments: &Value,
        status: ToolStatus,
        text: &str,
        out: &mut Scrollback,
    ) {
        if tool == TODO_TOOL {
            return self.panes.set_todo(arguments);
        }
        let shown = ["result", "question", "response"];
        if is_dialogue_tool(tool)
            && let Some(text) = shown.iter().find_map(|name| arguments.get(name)?.as_str())
        {
            out.print_separated(markdown::draw_block(text, out.columns()));
            return self.reply.note_printed_text();
        }
        let now = self.activity.now();
        let mut call = ToolCallView::new("", tool);
        call.describe(arguments);
        // How long the call took is not known any more.
        call.since = Some(now);
        let rows = call.draw_finished(status, text, now, out.columns());
        self.reply.print_call(rows, out);
    }

    /// Prints the part of the reply that has arrived so far.
    pub(super) fn finish_text(&mut self, out: &mut Scrollback) {
        if self.reply.finish_reply(&mut self.results, out) {
            self.activity.forget_ended();
        }
    }

    /// Records that the server or a tool has just sent something.
    pub(super) fn note_activity(&mut self) {
        self.activity.note_activity();
    }

    pub(super) fn count_usage(&mut self, usage: Usage) {
        self.activity.note_usage(usage);
    }

    /// Shows an event of the main agent.
    pub(super) fn show_event(&mut self, body: &EventBody, out: &mut Scrollback) {
        match body {
            EventBody::Text { text } => {
                self.reply.push_text(text, &mut self.results, out);
                self.activity.note_text(text);
            }
            EventBody::Thinking { text } => {
                self.activity.note_text(text);
                self.reply.push_thinking(text);
            }
            EventBody::ToolCall {
                id,
                name,
                phase,
                arguments,
                ..
            } => self.show_call(id, name, *phase, arguments.as_ref(), out),
            EventBody::ToolProgress { id, name, text } => {
                let now = self.activity.now();
                self.calls.add_progress(id, name, text, now);
            }
            EventBody::ToolResult {
                id,
                name,
                status,
                text,
                ..
            } => self.show_result(id, name, *status, text, out),
            EventBody::Retry {
                attempt,
                limit,
                delay_ms,
                reason,
            } => {
                self.discard_reply();
                self.activity.set_retry(*attempt, *limit, *delay_ms, reason);
            }
            EventBody::Question { question, options } => {
                self.show_question(question, options, out);
                self.awaited = Awaited::Answer;
            }
            EventBody::Plan { response, options } => {
                self.show_question(response, options, out);
                self.awaited = Awaited::Decision;
            }
            EventBody::Completion { result, command } => {
                self.finish_text(out);
                out.print_separated(markdown::draw_block(result, out.columns()));
                if let Some(command) = command {
                    out.print_note(&text!("app-see-result", command), TextStyle::Dim);
                }
            }
            EventBody::Result(result) => self.show_outcome(result, out),
            body => self.show_notice(body, out),
        }
    }

    /// Shows an event that is printed as a sentence.
    fn show_notice(&mut self, body: &EventBody, out: &mut Scrollback) {
        match body {
            EventBody::Pruning { message, .. } => {
                let text = haft_messages::translate_error(message);
                out.print_notice(&capitalize_sentence(&text), TextStyle::Dim);
            }
            EventBody::Compaction { phase, message, .. } => {
                let style = match phase {
                    CompactionPhase::Started | CompactionPhase::Finished => TextStyle::Dim,
                    CompactionPhase::Failed => TextStyle::Warning,
                };
                let text = haft_messages::translate_error(message);
                out.print_notice(&capitalize_sentence(&text), style);
            }
            EventBody::Error { message, code } => {
                self.finish_text(out);
                let text = translate_message(code, message);
                out.print_notice(&capitalize_sentence(&text), TextStyle::Warning);
                self.last_error = Some(message.clone());
            }
            // Printed before the terminal was switched to raw mode.
            EventBody::Notice { code, .. } if code == haft_agent::UNKNOWN_VARIABLE_CODE => {}
            EventBody::Notice { code, message } => {
                if code == MODEL_SWITCHED {
                    self.discard_reply();
                }
                self.finish_text(out);
                let text = translate_message(code, message);
                out.print_notice(&capitalize_sentence(&text), TextStyle::Warning);
                if code == UNTRUSTED {
                    out.print_notice(text!("app-trust-hint"), TextStyle::Dim);
                }
            }
            EventBody::BackgroundTask {
                id,
                phase,
                command,
                message,
                ..
            } => {
                let now = self.activity.now();
                self.panes.update_task(id, *phase, command, now);
                let style = match phase {
                    TaskPhase::Started | TaskPhase::Finished => TextStyle::Dim,
                    TaskPhase::Failed | TaskPhase::Killed | TaskPhase::Lost => TextStyle::Warning,
                };
                // A task may end while a reply is arriving.
                let message = haft_messages::translate_error(message);
                self.reply
                    .print_aside(wrap_text(&message, style, out.columns()), out);
            }
            // Shown by `show_event`.
            EventBody::Text { .. }
            | EventBody::Thinking { .. }
            | EventBody::ToolCall { .. }
            | EventBody::ToolProgress { .. }
            | EventBody::ToolResult { .. }
            | EventBody::Retry { .. }
            | EventBody::Question { .. }
            | EventBody::Plan { .. }
            | EventBody::Completion { .. }
            | EventBody::Result(_)
            // Shown by the status line and `/context`.
            | EventBody::Conversation { .. }
            | EventBody::Usage { .. }
            | EventBody::Window { .. }
            | EventBody::Budget { .. }
            | EventBody::PrefixBreak { .. }
            // The call that changed a file shows the change; `haft context` shows reminders.
            | EventBody::FileChanged { .. }
            | EventBody::Reminders { .. }
            | EventBody::Subagent { .. } => {}
        }
    }

    fn show_call(
        &mut self,
        id: &str,
        name: &str,
        phase: CallPhase,
        arguments: Option<&Value>,
        out: &mut Scrollback,
    ) {
        self.finish_text(out);
        match phase {
            CallPhase::Started => self.calls.add_announced(id, name),
            CallPhase::Arguments => {}
            CallPhase::Finished => {
                if let Some(arguments) = arguments.filter(|_| name == TODO_TOOL) {
                    self.panes.set_todo(arguments);
                }
                self.calls.add_complete(id, name, arguments);
            }
            CallPhase::Running => self.calls.start_call(id, name, self.activity.now()),
        }
    }

    fn show_result(
        &mut self,
        id: &str,
        name: &str,
        status: ToolStatus,
        text: &str,
        out: &mut Scrollback,
    ) {
        if self.calls.forget_hidden(id) {
            return;
        }
        self.finish_text(out);
        let call = self.calls.remove(id, name);
        let text = call.strip_edit_note(text);
        // The TODO list itself is on the screen, and so is the text that a tool shows to the user.
        let is_shown = name == TODO_TOOL || is_dialogue_tool(name);
        if !is_shown || status != ToolStatus::Success {
            let now = self.activity.now();
            let rows = self
                .calls
                .draw_finished(&call, status, text, now, out.columns());
            self.reply.print_call(rows, out);
        }
        let whole = call.word_result(status, text);
        self.results.push(call, &whole);
    }

    fn show_outcome(&mut self, result: &TurnResult, out: &mut Scrollback) {
        self.finish_text(out);
        self.panes.remove_all_agents();
        let style = match result.outcome {
            Outcome::Completed => {
                self.awaited = Awaited::Reaction;
                return;
            }
            // The refused call has shown the reason, and the model has answered.
            Outcome::Waiting if result.code == "denied" => {
                self.awaited = Awaited::Reaction;
                return;
            }
            Outcome::Waiting => TextStyle::Dim,
            Outcome::Aborted => {
                // The calls that the sentence explains come first.
                self.calls.cancel_all(self.activity.now(), out);
                return out.print_notice(text!("app-interrupted"), TextStyle::Warning);
            }
            Outcome::Exhausted => TextStyle::Warning,
            Outcome::Failed => TextStyle::Bad,
        };
        let is_repeated = self
            .last_error
            .take()
            .is_some_and(|error| error == result.message);
        // A question that was just shown needs no explanation.
        let has_asked = match self.awaited {
            Awaited::Answer | Awaited::Decision => true,
            Awaited::Nothing | Awaited::Reaction => false,
        };
        if !has_asked && !is_repeated {
            let message = translate_message(&result.code, &result.message);
            out.print_notice(
                &text!("app-outcome", outcome = result.outcome.name(), message),
                style,
            );
        }
    }

    /// Shows a question or plan of the model. Its options are offered when the turn has ended.
    fn show_question(&mut self, text: &str, options: &[String], out: &mut Scrollback) {
        self.finish_text(out);
        self.calls.hide_question();
        out.print_separated(markdown::draw_block(text, out.columns()));
        self.options = options.to_vec();
    }

    /// Discards the partial reply, because the request is being retried.
    fn discard_reply(&mut self) {
        self.reply.discard_reply();
        self.calls.discard_calls();
    }

    /// Shows the last action of a sub-agent, in one row.
    pub(super) fn show_agent_action(&mut self, agent: &str, action: String) {
        self.panes.update_agent(agent, action, self.activity.now());
    }

    /// Records a call of a sub-agent that waits for earlier calls or for an approval.
    pub(super) fn add_agent_call(&mut self, agent: &str, id: &str, title: String) {
        self.panes
            .add_agent_call(agent, id, title, self.activity.now());
    }

    /// Shows a call of a sub-agent that begins to run.
    pub(super) fn start_agent_call(&mut self, agent: &str, id: &str) {
        self.panes.start_agent_call(agent, id, self.activity.now());
    }

    /// Shows the text and output of a sub-agent.
    pub(super) fn follow_agent(&mut self, agent: &str, body: &EventBody) {
        self.panes.follow_agent(agent, body);
    }

    /// Removes a sub-agent that has ended, and returns its work.
    pub(super) fn remove_agent(&mut self, agent: &str) -> AgentWork {
        self.panes.remove_agent(agent, self.activity.now())
    }

    /// Replaces the list of running background tasks.
    pub(super) fn set_tasks(&mut self, tasks: Vec<RunningTask>) {
        self.panes.set_tasks(tasks, self.activity.now());
    }

    /// Returns the command lines that would be ended if the user left: of background tasks, and of
    /// commands in the user's shell.
    pub(super) fn running_commands(&self) -> Vec<String> {
        self.panes
            .task_commands()
            .chain(self.activity.shell_lines())
            .map(str::to_owned)
            .collect()
    }

    /// Updates the calls after the user has answered an approval.
    pub(super) fn note_approval_answer(
        &mut self,
        dialog: Option<&ApprovalDialog>,
        reply: &ApprovalReply,
    ) {
        let approved_diff = match reply {
            ApprovalReply::Changed { arguments } => {
                if let Some(dialog) = dialog {
                    self.calls.set_edited(&dialog.approval, arguments);
                }
                None
            }
            ApprovalReply::No { .. } => None,
            ApprovalReply::Once
            | ApprovalReply::Always
            | ApprovalReply::AlwaysBy { .. }
            | ApprovalReply::Session => dialog.and_then(ApprovalDialog::diff_tool),
        };
        self.calls.set_tool_of_shown_diff(approved_diff);
    }

    /// Draws the rows that aren't printed yet. `asked` is the open approval, if any.
    pub(super) fn draw_live_rows(
        &self,
        asked: Option<&Approval>,
        columns: usize,
    ) -> Vec<StyledLine> {
        let now = self.activity.now();
        let mut rows = self.reply.draw_live_rows(columns);
        rows.extend(self.calls.draw_rows(asked, now, columns));
        rows.extend(self.activity.draw_rows(columns));
        // An approval must stand right below its subject.
        if asked.is_none() {
            rows.extend(self.panes.draw_rows(now, columns));
        }
        rows
    }

    /// Draws the time and the tokens that the turn has taken. `is_queued` is true if input waits for
    /// the end of the turn.
    pub(super) fn draw_working_line(&self, is_queued: bool, columns: usize) -> StyledLine {
        self.activity
            .draw_working_line(self.calls.is_empty(), is_queued, columns)
    }

    /// Animates the working line.
    pub(super) fn enable_animation(&mut self) {
        self.activity.enable_animation();
    }
}

/// Translates an error or notice to the user's language. If there is no translation, the message is
/// preceded by the meaning of its code.
pub fn translate_message(code: &str, message: &str) -> String {
    let message = haft_messages::translate_error(message);
    let is_chinese = message.chars().any(|c| c >= '\u{2e80}');
    if is_chinese {
        message.into_owned()
    } else {
        text!("app-coded", code, message)
    }
}
