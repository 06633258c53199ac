//! The tool calls of a turn as the protocol shows them: kind, title, locations and results.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    Terminal, TerminalId, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use haft_agent::{Approval, MAIN};
use haft_text::reveal;
use haft_types::ToolStatus;
use serde_json::Value;

use crate::diffs::{self, FileBefore};

/// The maximum bytes of a running call's output that are shown; older output is dropped.
const PROGRESS: usize = 16 * 1024;
/// The maximum bytes of a title.
const TITLE: usize = 200;

/// True for the tools with which the model addresses the user. They are shown as text or as a plan,
/// not as calls.
pub(crate) fn is_speech(tool: &str) -> bool {
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

pub(crate) fn kind_of(tool: &str) -> ToolKind {
    match tool {
        "read_file" | "Read" | "list_files" | "LS" | "extract_to_text" | "count_tokens"
        | "use_skill" | "recall" => ToolKind::Read,
        "write_to_file" | "edit_file" | "replace_in_file" | "multi_edit" | "apply_patch"
        | "undo_edit" | "Write" | "Edit" | "str_replace" | "MultiEdit" => ToolKind::Edit,
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

/// A call that has started and not ended.
#[derive(Debug)]
struct OpenCall {
    agent: String,
    tool: String,
    arguments: Value,
    before: Vec<FileBefore>,
    printed: String,
    /// True if a terminal of the editor shows the output.
    at_terminal: bool,
}

/// The running calls, by the ids the editor has for them.
#[derive(Debug)]
pub(crate) struct OpenCalls {
    cwd: PathBuf,
    calls: HashMap<String, OpenCall>,
    /// The number of approvals that belonged to no known call.
    nameless: u32,
}

impl OpenCalls {
    pub(crate) fn new(cwd: PathBuf) -> Self {
        Self {
            cwd,
            calls: HashMap::new(),
            nameless: 0,
        }
    }

    /// Records a call of which only the tool's name is known so far.
    pub(crate) fn begin(&mut self, agent: &str, id: &str, tool: &str) -> ToolCall {
        let id = shown_id(agent, id);
        let title = titled(agent, tool, &Value::Null);
        let agent = agent.to_owned();
        let tool = tool.to_owned();
        let kind = kind_of(&tool);
        let arguments = Value::Null;
        let open = OpenCall {
            agent,
            tool,
            arguments,
            before: Vec::new(),
            printed: String::new(),
            at_terminal: false,
        };
        self.calls.insert(id.clone(), open);
        ToolCall::new(id, title)
            .kind(kind)
            .status(ToolCallStatus::Pending)
    }

    /// Records the complete arguments of a call, and reads the files it would change.
    pub(crate) fn whole(
        &mut self,
        agent: &str,
        id: &str,
        arguments: &Value,
    ) -> Option<ToolCallUpdate> {
        let id = shown_id(agent, id);
        let call = self.calls.get_mut(&id)?;
        call.arguments.clone_from(arguments);
        let files = diffs::written(&call.tool, arguments);
        call.before = files
            .into_iter()
            .filter_map(|file| FileBefore::at(self.cwd.join(file)))
            .collect();
        let fields = ToolCallUpdateFields::new()
            .title(titled(&call.agent, &call.tool, arguments))
            .status(ToolCallStatus::InProgress)
            .locations(locations(&call.tool, arguments, &self.cwd))
            .content(diffs::proposed(&call.tool, arguments, &self.cwd))
            .raw_input(arguments.clone());
        Some(ToolCallUpdate::new(id, fields))
    }

    /// Adds output that a running call printed.
    pub(crate) fn printed(&mut self, agent: &str, id: &str, text: &str) -> Option<ToolCallUpdate> {
        let id = shown_id(agent, id);
        let call = self.calls.get_mut(&id)?;
        call.printed.push_str(text);
        if !text.ends_with('\n') {
            call.printed.push('\n');
        }
        let from = call
            .printed
            .ceil_char_boundary(call.printed.len().saturating_sub(PROGRESS));
        call.printed.drain(..from);
        let fields = ToolCallUpdateFields::new()
            .status(ToolCallStatus::InProgress)
            .content(vec![said(&call.tool, &call.printed)]);
        Some(ToolCallUpdate::new(id, fields))
    }

    /// Records that a call runs in a terminal of the editor. `id` comes without the agent's name,
    /// so any agent's call matches.
    pub(crate) fn at_terminal(
        &mut self,
        id: &str,
        terminal: &TerminalId,
    ) -> Option<ToolCallUpdate> {
        let of_another = format!("/{id}");
        let (id, call) = self
            .calls
            .iter_mut()
            .find(|(known, _)| *known == id || known.ends_with(&of_another))?;
        call.at_terminal = true;
        let fields = ToolCallUpdateFields::new()
            .status(ToolCallStatus::InProgress)
            .content(vec![ToolCallContent::Terminal(Terminal::new(
                terminal.clone(),
            ))]);
        Some(ToolCallUpdate::new(id.clone(), fields))
    }

    /// Removes a call that has ended, and returns its result.
    pub(crate) fn end(
        &mut self,
        agent: &str,
        id: &str,
        status: ToolStatus,
        text: &str,
    ) -> Option<ToolCallUpdate> {
        let id = shown_id(agent, id);
        let call = self.calls.remove(&id)?;
        let status = match status {
            ToolStatus::Success | ToolStatus::Partial => ToolCallStatus::Completed,
            ToolStatus::Error => ToolCallStatus::Failed,
        };
        let mut content: Vec<_> = call
            .before
            .into_iter()
            .filter_map(FileBefore::since)
            .collect();
        if content.is_empty() && !text.trim().is_empty() {
            content.push(said(&call.tool, text));
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
    pub(crate) fn abandon(&mut self) -> Vec<ToolCallUpdate> {
        let failed = |id| {
            ToolCallUpdate::new(
                id,
                ToolCallUpdateFields::new().status(ToolCallStatus::Failed),
            )
        };
        self.calls.drain().map(|(id, _)| failed(id)).collect()
    }

    /// Returns the call that an approval is about, with the reason for asking. An approval for an
    /// unknown call gets an id of its own.
    ///
    /// Invariant: the content shows the approval's whole subject, with control characters spelled
    /// out. It is not derived from the arguments, which may claim something other than what the
    /// tool does.
    pub(crate) fn asked(&mut self, approval: &Approval) -> ToolCallUpdate {
        let same =
            |call: &OpenCall| call.agent == approval.agent && call.arguments == approval.arguments;
        let by_arguments = self.calls.iter().find(|(_, call)| same(call));
        let by_tool = || {
            self.calls
                .iter()
                .find(|(_, call)| call.agent == approval.agent && call.tool == approval.tool)
        };
        let id = if let Some((id, _)) = by_arguments.or_else(by_tool) {
            id.clone()
        } else {
            self.nameless += 1;
            format!("question-{}", self.nameless)
        };
        let tool = &approval.tool;
        let arguments = &approval.arguments;
        let mut content = diffs::foreseen(&approval.subject, &self.cwd)
            .unwrap_or_else(|| vec![fenced(&reveal(&approval.subject))]);
        content.push(reveal(&approval.reason).into_owned().into());
        let title = titled(&approval.agent, tool, arguments);
        let title = if approval.leaves_sandbox {
            format!("{title} (outside the sandbox)")
        } else {
            title
        };
        let fields = ToolCallUpdateFields::new()
            .title(title)
            .kind(kind_of(tool))
            .status(ToolCallStatus::Pending)
            .locations(locations(tool, arguments, &self.cwd))
            .content(content)
            .raw_input(arguments.clone());
        ToolCallUpdate::new(id, fields)
    }
}

/// Returns a call of a stored conversation that is shown again.
pub(crate) fn earlier(id: &str, tool: &str, arguments: &Value, cwd: &Path) -> ToolCall {
    ToolCall::new(id.to_owned(), titled(MAIN, tool, arguments))
        .kind(kind_of(tool))
        .status(ToolCallStatus::Pending)
        .locations(locations(tool, arguments, cwd))
        .content(diffs::proposed(tool, arguments, cwd))
        .raw_input(arguments.clone())
}

/// Returns the output of a call: a code block for commands, plain text otherwise.
pub(crate) fn said(tool: &str, text: &str) -> ToolCallContent {
    let text = text.trim_end();
    if kind_of(tool) == ToolKind::Execute {
        fenced(text)
    } else {
        text.to_owned().into()
    }
}

/// Returns a code block. Editors render text as Markdown, which would hide comments and the targets
/// of links.
fn fenced(text: &str) -> ToolCallContent {
    let fence = "`".repeat(longest_backticks(text).max(2) + 1);
    format!("{fence}\n{text}\n{fence}").into()
}

/// Returns inline code with a delimiter longer than any run of backticks in the text.
fn inline_code(text: &str) -> String {
    match longest_backticks(text) {
        0 => format!("`{text}`"),
        longest => {
            let fence = "`".repeat(longest + 1);
            format!("{fence} {text} {fence}")
        }
    }
}

fn longest_backticks(text: &str) -> usize {
    text.split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default()
}

/// Returns the id under which the editor knows a call. Ids are unique only within one agent, so the
/// ids of sub-agents get the agent's name as a prefix.
fn shown_id(agent: &str, id: &str) -> String {
    if agent == MAIN {
        id.to_owned()
    } else {
        format!("{agent}/{id}")
    }
}

/// Describes a call in one line.
fn titled(agent: &str, tool: &str, arguments: &Value) -> String {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let about = match (
        kind_of(tool),
        text("command"),
        text("regex").or_else(|| text("pattern")),
    ) {
        (ToolKind::Execute, Some(command), _) => inline_code(&one_line(command)),
        (_, _, Some(pattern)) => format!(
            "{tool} \"{}\" in {}",
            one_line(pattern),
            text("path").unwrap_or(".")
        ),
        _ => {
            let files = diffs::written(tool, arguments);
            let known = ["path", "file_path", "url", "query", "name", "target"];
            let named = known.iter().find_map(|key| text(key)).map(str::to_owned);
            match named.or_else(|| (!files.is_empty()).then(|| files.join(", "))) {
                Some(about) => format!("{tool} {}", one_line(&about)),
                None => tool.to_owned(),
            }
        }
    };
    if agent == MAIN {
        about
    } else {
        format!("{agent}: {about}")
    }
}

fn one_line(text: &str) -> String {
    let text = reveal(text)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    if text.len() <= TITLE {
        text
    } else {
        format!("{}…", &text[..text.floor_char_boundary(TITLE)])
    }
}

/// Returns the files that a call reads or writes.
fn locations(tool: &str, arguments: &Value, cwd: &Path) -> Vec<ToolCallLocation> {
    let mut files = diffs::written(tool, arguments);
    if files.is_empty() && !matches!(kind_of(tool), ToolKind::Execute | ToolKind::Fetch) {
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
    use serde_json::json;

    use super::*;

    #[test]
    fn titles_say_what_a_call_does() {
        for (agent, tool, arguments, title) in [
            (
                MAIN,
                "execute_command",
                json!({"command": "cargo\n  test"}),
                "`cargo test`",
            ),
            (
                MAIN,
                "search_files",
                json!({"regex": "fn ", "path": "src"}),
                "search_files \"fn\" in src",
            ),
            (
                MAIN,
                "multi_edit",
                json!({"edits": [{"path": "a"}, {"path": "b"}]}),
                "multi_edit a, b",
            ),
            (
                "scout",
                "read_file",
                json!({"path": "a"}),
                "scout: read_file a",
            ),
            (MAIN, "mcp__x__y", json!({"n": 1}), "mcp__x__y"),
        ] {
            assert_eq!(titled(agent, tool, &arguments), title);
        }
    }

    #[test]
    fn a_question_is_about_the_call_that_waits() {
        let mut calls = OpenCalls::new("/work".into());
        let arguments = json!({"command": "make"});
        for (agent, id) in [(MAIN, "1"), ("scout", "1")] {
            drop(calls.begin(agent, id, "execute_command"));
            drop(calls.whole(agent, id, &arguments));
        }
        let mut approval = Approval {
            agent: "scout".into(),
            tool: "execute_command".into(),
            arguments,
            subject: "make".into(),
            reason: "no rule allows `make`".into(),
            leaves_sandbox: true,
            parts: Vec::new(),
            remember: Vec::new(),
        };
        let asked = calls.asked(&approval);
        assert_eq!(asked.tool_call_id.0.as_ref(), "scout/1");
        assert_eq!(
            asked.fields.title.as_deref(),
            Some("scout: `make` (outside the sandbox)")
        );
        approval.agent = "nobody".into();
        assert_eq!(calls.asked(&approval).tool_call_id.0.as_ref(), "question-1");
    }

    #[test]
    fn asked_shows_the_whole_subject() {
        let mut calls = OpenCalls::new("/work".into());
        let mut asked = |tool: &str, arguments: Value, subject: &str| {
            let approval = Approval {
                agent: MAIN.into(),
                tool: tool.into(),
                arguments,
                subject: subject.into(),
                reason: "why\r".into(),
                leaves_sandbox: false,
                parts: Vec::new(),
                remember: Vec::new(),
            };
            serde_json::to_value(calls.asked(&approval)).unwrap()
        };
        let hostile = "rm -rf ~\r\u{1b}[2Kls `a` \u{202e}\n<!-- b -->";
        for tool in ["execute_command", "mcp__x__y"] {
            let call = asked(tool, json!({"command": hostile}), hostile);
            let text = &call["content"][0]["content"]["text"];
            assert_eq!(
                text, "```\nrm -rf ~␍␛[2Kls `a` <U+202E>\n<!-- b -->\n```",
                "{tool}"
            );
            assert_eq!(call["content"][1]["content"]["text"], "why␍", "{tool}");
        }
        let call = asked("execute_command", json!({"command": hostile}), hostile);
        assert_eq!(
            call["title"],
            "`` rm -rf ~␍␛[2Kls `a` <U+202E> <!-- b --> ``"
        );
        // The arguments show less than the tool would write.
        let subject = "--- a\n+++ a\n@@ -1 +1,2 @@\n one\n+evil\u{1b}\n--- /dev/null\n+++ b\n@@ -0,0 +1 @@\n+two\n";
        let call = asked(
            "edit_file",
            json!({"path": "a", "old_text": "one", "new_text": "one"}),
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
    fn output_cannot_leave_its_fence() {
        let ToolCallContent::Content(content) = said("execute_command", "a ``` b") else {
            panic!()
        };
        let agent_client_protocol::v1::schema::ContentBlock::Text(text) = content.content else {
            panic!()
        };
        assert_eq!(text.text, "````\na ``` b\n````");
    }
}
