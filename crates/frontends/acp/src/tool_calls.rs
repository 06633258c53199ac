//! The tool calls of a turn as the protocol shows them: kind, title, locations and results.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    Terminal, TerminalId, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use haft_agent::{Approval, MAIN_AGENT, SubjectKind};
use haft_messages::{CallHeadline, translate_error, translate_result};
use haft_text::reveal_controls;
use haft_types::ToolStatus;
use serde_json::Value;

use crate::diffs::{self, FileBefore};

/// The maximum amount of a running call's output that is shown, in bytes. If there is more, the
/// oldest output is dropped.
const MAX_OUTPUT_BYTES: usize = 16 * 1024;
/// The maximum length of a call's title in bytes.
const MAX_TITLE_BYTES: usize = 200;

/// True if the model uses `tool` to address the user. Calls of such a tool are shown as text or as
/// a plan, not as tool calls.
pub(crate) fn is_dialog_tool(tool: &str) -> bool {
    matches!(
        tool,
        "attempt_completion"
            | "ask_followup_question"
            | "plan_mode_respond"
            | "todo_write"
            | "TodoWrite"
            | "todo_read"
    )
}

pub(crate) fn tool_kind(tool: &str) -> ToolKind {
    match tool {
        "read_file" | "Read" | "list_files" | "LS" | "extract_to_text" | "count_tokens"
        | "use_skill" | "recall" => ToolKind::Read,
        "write_to_file" | "write_tool" | "edit_file" | "replace_in_file" | "multi_edit"
        | "apply_patch" | "undo_edit" | "Write" | "Edit" | "str_replace" | "MultiEdit" => {
            ToolKind::Edit
        }
        "search_files"
        | "glob"
        | "Grep"
        | "Glob"
        | "list_code_definition_names"
        | "tool_search"
        | "use_rag_tool" => ToolKind::Search,
        "execute_command"
        | "Bash"
        | "session_start"
        | "session_interactive"
        | "session_stop"
        | "background_task" => ToolKind::Execute,
        "web_fetch" | "web_search" | "WebFetch" | "WebSearch" => ToolKind::Fetch,
        "run_named_subagents" | "talk_to" | "talk_to_group" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

/// A tool call that has started but not ended.
#[derive(Debug)]
struct OpenCall {
    agent: String,
    tool: String,
    arguments: Value,
    files_before: Vec<FileBefore>,
    output: String,
    /// True if the call's output is shown by a terminal of the editor.
    at_terminal: bool,
}

/// The running calls, keyed by the ids that the editor uses for them.
#[derive(Debug)]
pub(crate) struct OpenCalls {
    cwd: PathBuf,
    calls: HashMap<String, OpenCall>,
    /// The number of approvals so far that belonged to no known call.
    unknown_calls: u32,
}

impl OpenCalls {
    pub(crate) fn new(cwd: PathBuf) -> Self {
        Self {
            cwd,
            calls: HashMap::new(),
            unknown_calls: 0,
        }
    }

    /// Records a call whose arguments are not known yet.
    pub(crate) fn begin_call(&mut self, agent: &str, id: &str, tool: &str) -> ToolCall {
        let id = editor_call_id(agent, id);
        let title = format_call_title(agent, tool, &Value::Null);
        let agent = agent.to_owned();
        let tool = tool.to_owned();
        let kind = tool_kind(&tool);
        let arguments = Value::Null;
        let open = OpenCall {
            agent,
            tool,
            arguments,
            files_before: Vec::new(),
            output: String::new(),
            at_terminal: false,
        };
        self.calls.insert(id.clone(), open);
        ToolCall::new(id, title)
            .kind(kind)
            .status(ToolCallStatus::Pending)
    }

    /// Records the complete arguments of a call, and reads the files it would change.
    pub(crate) fn set_arguments(
        &mut self,
        agent: &str,
        id: &str,
        arguments: &Value,
    ) -> Option<ToolCallUpdate> {
        let id = editor_call_id(agent, id);
        let call = self.calls.get_mut(&id)?;
        call.arguments.clone_from(arguments);
        let files = diffs::list_files_to_write(&call.tool, arguments);
        call.files_before = files
            .into_iter()
            .filter_map(|file| FileBefore::read(self.cwd.join(file)))
            .collect();
        let fields = ToolCallUpdateFields::new()
            .title(format_call_title(&call.agent, &call.tool, arguments))
            .status(ToolCallStatus::Pending)
            .locations(list_call_locations(&call.tool, arguments, &self.cwd))
            .content(diffs::derive_proposed_changes(
                &call.tool, arguments, &self.cwd,
            ))
            .raw_input(arguments.clone());
        Some(ToolCallUpdate::new(id, fields))
    }

    /// Records that a call was permitted and runs.
    pub(crate) fn start_call(&self, agent: &str, id: &str) -> Option<ToolCallUpdate> {
        let id = editor_call_id(agent, id);
        self.calls.contains_key(&id).then(|| {
            let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
            ToolCallUpdate::new(id, fields)
        })
    }

    /// Adds output that a running call printed.
    pub(crate) fn append_output(
        &mut self,
        agent: &str,
        id: &str,
        text: &str,
    ) -> Option<ToolCallUpdate> {
        let id = editor_call_id(agent, id);
        let call = self.calls.get_mut(&id)?;
        call.output.push_str(text);
        if !text.ends_with('\n') {
            call.output.push('\n');
        }
        let start = call
            .output
            .ceil_char_boundary(call.output.len().saturating_sub(MAX_OUTPUT_BYTES));
        call.output.drain(..start);
        let fields = ToolCallUpdateFields::new()
            .status(ToolCallStatus::InProgress)
            .content(vec![output_content(&call.tool, &call.output)]);
        Some(ToolCallUpdate::new(id, fields))
    }

    /// Records that a call runs in a terminal of the editor. `id` does not contain the agent's
    /// name, so a call with this id matches whichever agent made it.
    pub(crate) fn attach_terminal(
        &mut self,
        id: &str,
        terminal: &TerminalId,
    ) -> Option<ToolCallUpdate> {
        let agent_suffix = format!("/{id}");
        let (id, call) = self
            .calls
            .iter_mut()
            .find(|(known, _)| *known == id || known.ends_with(&agent_suffix))?;
        call.at_terminal = true;
        let fields = ToolCallUpdateFields::new()
            .status(ToolCallStatus::InProgress)
            .content(vec![ToolCallContent::Terminal(Terminal::new(
                terminal.clone(),
            ))]);
        Some(ToolCallUpdate::new(id.clone(), fields))
    }

    /// Removes an ended call, and returns the update that reports its result.
    pub(crate) fn end_call(
        &mut self,
        agent: &str,
        id: &str,
        status: ToolStatus,
        text: &str,
    ) -> Option<ToolCallUpdate> {
        let id = editor_call_id(agent, id);
        let call = self.calls.remove(&id)?;
        let status = match status {
            ToolStatus::Success | ToolStatus::Partial => ToolCallStatus::Completed,
            ToolStatus::Error => ToolCallStatus::Failed,
        };
        let mut content: Vec<_> = call
            .files_before
            .into_iter()
            .filter_map(FileBefore::diff_to_current)
            .collect();
        if content.is_empty() && !text.trim().is_empty() {
            content.push(result_content(&call.tool, status, text));
        }
        let fields = ToolCallUpdateFields::new()
            .status(status)
            .raw_output(Value::from(text));
        // The terminal stays the call's content.
        let fields = if call.at_terminal {
            fields
        } else {
            fields.content(content)
        };
        Some(ToolCallUpdate::new(id, fields))
    }

    /// Removes the calls that can no longer end because their turn is over, and reports them as
    /// failed.
    pub(crate) fn fail_open_calls(&mut self) -> Vec<ToolCallUpdate> {
        self.calls
            .drain()
            .map(|(id, _)| {
                ToolCallUpdate::new(
                    id,
                    ToolCallUpdateFields::new().status(ToolCallStatus::Failed),
                )
            })
            .collect()
    }

    /// Returns the update that shows the call for which an approval is requested, with the reason
    /// for the request. An approval for an unknown call gets an id of its own.
    ///
    /// Invariant: the content shows the approval's whole subject, with control characters spelled
    /// out. It is not derived from the arguments, which may claim something other than what the
    /// tool does.
    pub(crate) fn approval_update(&mut self, approval: &Approval) -> ToolCallUpdate {
        let by_arguments = self
            .calls
            .iter()
            .find(|(_, call)| call.agent == approval.agent && call.arguments == approval.arguments);
        let by_tool = || {
            self.calls
                .iter()
                .find(|(_, call)| call.agent == approval.agent && call.tool == approval.tool)
        };
        let id = if let Some((id, _)) = by_arguments.or_else(by_tool) {
            id.clone()
        } else {
            self.unknown_calls += 1;
            format!("question-{}", self.unknown_calls)
        };
        let tool = &approval.tool;
        let arguments = &approval.arguments;
        let diffs = match approval.subject_kind {
            SubjectKind::Diff => diffs::convert_diff_preview(&approval.subject, &self.cwd),
            // A command line can look like a diff.
            SubjectKind::Text => None,
        };
        let mut content =
            diffs.unwrap_or_else(|| vec![format_code_block(&approval.shown_subject())]);
        content.push(
            translate_error(&approval.shown_reason())
                .into_owned()
                .into(),
        );
        let title = format_call_title(&approval.agent, tool, arguments);
        let title = if approval.leaves_sandbox {
            format!("{title} (outside the sandbox)")
        } else {
            title
        };
        let fields = ToolCallUpdateFields::new()
            .title(title)
            .kind(tool_kind(tool))
            .status(ToolCallStatus::Pending)
            .locations(list_call_locations(tool, arguments, &self.cwd))
            .content(content)
            .raw_input(arguments.clone());
        ToolCallUpdate::new(id, fields)
    }
}

/// Returns the message that shows a call of a stored conversation.
pub(crate) fn replayed_call(id: &str, tool: &str, arguments: &Value, cwd: &Path) -> ToolCall {
    ToolCall::new(
        id.to_owned(),
        format_call_title(MAIN_AGENT, tool, arguments),
    )
    .kind(tool_kind(tool))
    .status(ToolCallStatus::Pending)
    .locations(list_call_locations(tool, arguments, cwd))
    .content(diffs::derive_proposed_changes(tool, arguments, cwd))
    .raw_input(arguments.clone())
}

/// Formats the result of a call for the editor. Messages of haft in the result are reworded for
/// people; the output of programs and the content of files are unchanged.
pub(crate) fn result_content(tool: &str, status: ToolCallStatus, text: &str) -> ToolCallContent {
    if status == ToolCallStatus::Failed || tool_kind(tool) == ToolKind::Execute {
        output_content(tool, &translate_result(text))
    } else {
        output_content(tool, text)
    }
}

/// Formats the output of a call for the editor: as a code block for commands, otherwise as plain
/// text.
pub(crate) fn output_content(tool: &str, text: &str) -> ToolCallContent {
    let text = text.trim_end();
    if tool_kind(tool) == ToolKind::Execute {
        format_code_block(text)
    } else {
        text.to_owned().into()
    }
}

/// Formats text as a code block. Editors render text as Markdown, which would hide comments and the
/// targets of links.
fn format_code_block(text: &str) -> ToolCallContent {
    let fence = "`".repeat(longest_backtick_run(text).max(2) + 1);
    format!("{fence}\n{text}\n{fence}").into()
}

/// Formats text as inline code, with a delimiter longer than any run of backticks in the text.
fn format_inline_code(text: &str) -> String {
    match longest_backtick_run(text) {
        0 => format!("`{text}`"),
        longest => {
            let fence = "`".repeat(longest + 1);
            format!("{fence} {text} {fence}")
        }
    }
}

fn longest_backtick_run(text: &str) -> usize {
    text.split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default()
}

/// Returns the id that the editor uses for a call. Because call ids are unique only within one
/// agent, the calls of a sub-agent get the agent's name as a prefix.
fn editor_call_id(agent: &str, id: &str) -> String {
    if agent == MAIN_AGENT {
        id.to_owned()
    } else {
        format!("{agent}/{id}")
    }
}

/// Returns a one-line title for a call, derived from its tool and its arguments.
fn format_call_title(agent: &str, tool: &str, arguments: &Value) -> String {
    let command = arguments.get("command").and_then(Value::as_str);
    let about = match (tool_kind(tool), command) {
        (ToolKind::Execute, Some(command)) => format_inline_code(&shorten_to_line(command)),
        _ => shorten_to_line(&CallHeadline::new(tool, arguments).to_line()),
    };
    if agent == MAIN_AGENT {
        about
    } else {
        format!("{agent}: {about}")
    }
}

fn shorten_to_line(text: &str) -> String {
    let text = reveal_controls(text)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    if text.len() <= MAX_TITLE_BYTES {
        text
    } else {
        format!("{}…", &text[..text.floor_char_boundary(MAX_TITLE_BYTES)])
    }
}

/// Returns the files that a call reads or writes, so that the editor can follow the agent.
fn list_call_locations(tool: &str, arguments: &Value, cwd: &Path) -> Vec<ToolCallLocation> {
    let mut files = diffs::list_files_to_write(tool, arguments);
    if files.is_empty() && !matches!(tool_kind(tool), ToolKind::Execute | ToolKind::Fetch) {
        let path = arguments
            .get("path")
            .or_else(|| arguments.get("file_path"))
            .and_then(Value::as_str);
        files.extend(path.map(str::to_owned));
    }
    let line = arguments
        .get("start_line")
        .and_then(Value::as_u64)
        .and_then(|line| u32::try_from(line).ok());
    files
        .into_iter()
        .map(|file| ToolCallLocation::new(cwd.join(file)).line(line))
        .collect()
}

#[cfg(test)]
mod tests {
    use haft_testkit::support::hostile_commands;
    use serde_json::json;

    use super::*;

    #[test]
    fn call_title_describes_the_call() {
        for (agent, tool, arguments, title) in [
            (
                MAIN_AGENT,
                "execute_command",
                json!({"command": "cargo\n  test"}),
                "`cargo test`",
            ),
            (
                MAIN_AGENT,
                "search_files",
                json!({"regex": "fn ", "path": "src"}),
                "Search \"fn \" in src",
            ),
            (
                MAIN_AGENT,
                "multi_edit",
                json!({"edits": [{"path": "a"}, {"path": "b"}]}),
                "Edit a, b",
            ),
            ("scout", "read_file", json!({"path": "a"}), "scout: Read a"),
            (MAIN_AGENT, "mcp__x__y", json!({"n": 1}), "Call x.y(n: 1)"),
        ] {
            assert_eq!(format_call_title(agent, tool, &arguments), title);
        }
    }

    #[test]
    fn approval_update_refers_to_the_waiting_call() {
        let mut calls = OpenCalls::new("/work".into());
        let arguments = json!({"command": "make"});
        for (agent, id) in [(MAIN_AGENT, "1"), ("scout", "1")] {
            drop(calls.begin_call(agent, id, "execute_command"));
            drop(calls.set_arguments(agent, id, &arguments));
        }
        let mut approval = Approval {
            agent: "scout".into(),
            call_id: None,
            tool: "execute_command".into(),
            arguments,
            subject: "make".into(),
            subject_kind: SubjectKind::Text,
            reason: "no rule allows `make`".into(),
            leaves_sandbox: true,
            parts: Vec::new(),
            remember: Vec::new(),
        };
        let asked = calls.approval_update(&approval);
        assert_eq!(asked.tool_call_id.0.as_ref(), "scout/1");
        assert_eq!(
            asked.fields.title.as_deref(),
            Some("scout: `make` (outside the sandbox)")
        );
        approval.agent = "nobody".into();
        assert_eq!(
            calls.approval_update(&approval).tool_call_id.0.as_ref(),
            "question-1"
        );
    }

    #[test]
    fn approval_update_shows_the_whole_subject() {
        let mut calls = OpenCalls::new("/work".into());
        let mut asked = |tool: &str, arguments: Value, kind: SubjectKind, subject: &str| {
            let approval = Approval {
                agent: MAIN_AGENT.into(),
                call_id: None,
                tool: tool.into(),
                arguments,
                subject: subject.into(),
                subject_kind: kind,
                reason: "why\r".into(),
                leaves_sandbox: false,
                parts: Vec::new(),
                remember: Vec::new(),
            };
            serde_json::to_value(calls.approval_update(&approval)).unwrap()
        };
        let hostile = "rm -rf ~\r\u{1b}[2Kls `a` \u{202e}\n<!-- b -->";
        for tool in ["execute_command", "mcp__x__y"] {
            let call = asked(
                tool,
                json!({"command": hostile}),
                SubjectKind::Text,
                hostile,
            );
            let text = &call["content"][0]["content"]["text"];
            assert_eq!(
                text, "```\nrm -rf ~␍␛[2Kls `a` <U+202E>\n<!-- b -->\n```",
                "{tool}"
            );
            assert_eq!(call["content"][1]["content"]["text"], "why␍", "{tool}");
        }
        let call = asked(
            "execute_command",
            json!({"command": hostile}),
            SubjectKind::Text,
            hostile,
        );
        assert_eq!(
            call["title"],
            "`` rm -rf ~␍␛[2Kls `a` <U+202E> <!-- b --> ``"
        );
        // The arguments show less than the tool would write.
        let subject = "--- a\n+++ a\n@@ -1 +1,2 @@\n one\n+evil\u{1b}\n--- /dev/null\n+++ b\n@@ -0,0 +1 @@\n+two\n";
        let call = asked(
            "edit_file",
            json!({"path": "a", "old_text": "one", "new_text": "one"}),
            SubjectKind::Diff,
            subject,
        );
        let diffs: Vec<_> = call["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["newText"].as_str())
            .collect();
        assert_eq!(diffs, [Some("one\nevil␛\n"), Some("two\n"), None]);
    }

    #[test]
    fn approval_update_shows_hostile_commands_exactly() {
        for command in hostile_commands(44, 1_000) {
            let approval = Approval {
                agent: MAIN_AGENT.into(),
                call_id: None,
                tool: "execute_command".into(),
                arguments: json!({ "command": command }),
                subject: command.clone(),
                subject_kind: SubjectKind::Text,
                reason: "why".into(),
                leaves_sandbox: false,
                parts: Vec::new(),
                remember: vec![command.clone()],
            };
            let shown = approval.shown_subject();
            let update = OpenCalls::new("/work".into()).approval_update(&approval);
            let update = serde_json::to_value(update).unwrap();
            let block = update["content"][0]["content"]["text"].as_str().unwrap();
            let (fence, rest) = block.split_once('\n').unwrap();
            assert_eq!(rest, format!("{shown}\n{fence}"), "{command:?}");
            assert!(!shown.contains(fence), "{command:?}");
        }
    }

    #[test]
    fn approval_update_shows_commands_that_look_like_diffs_as_text() {
        let line = "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+$(rm -rf ~)\n";
        let approval = Approval {
            agent: MAIN_AGENT.into(),
            call_id: None,
            tool: "execute_command".into(),
            arguments: json!({ "command": line }),
            subject: line.to_owned(),
            subject_kind: SubjectKind::Text,
            reason: String::new(),
            leaves_sandbox: false,
            parts: Vec::new(),
            remember: Vec::new(),
        };
        let update = OpenCalls::new("/work".into()).approval_update(&approval);
        let update = serde_json::to_value(update).unwrap();
        assert_eq!(
            update["content"][0]["content"]["text"],
            "```\n--- a\n+++ a\n@@ -1 +1 @@\n-x\n+$(rm -rf ~)␊\n```"
        );
    }

    #[test]
    fn output_content_cannot_leave_its_fence() {
        let ToolCallContent::Content(content) = output_content("execute_command", "a ``` b") else {
            panic!()
        };
        let agent_client_protocol::v1::schema::ContentBlock::Text(text) = content.content else {
            panic!()
        };
        assert_eq!(text.text, "````\na ``` b\n````");
    }
}
