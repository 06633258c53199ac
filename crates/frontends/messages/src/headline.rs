//! Describes tool calls for people: a verb and the object of the call.

use serde_json::Value;

use crate::MessageFile;

macro_rules! text {
    ($($message:tt)+) => { crate::message!(&FILES, $($message)+) };
}

static FILES: [MessageFile; 1] = [MessageFile::new(
    "headline",
    include_str!("../messages/en/headline.ftl"),
    include_str!("../messages/zh-CN/headline.ftl"),
)];

/// The maximum length of an argument of an external tool, in characters.
const MAX_ARGUMENT_CHARS: usize = 60;

/// What a tool call does, in a few words: `Run` `cargo test`, `Edit` `src/main.rs`.
///
/// The texts come from the model: they must be sanitized before they are printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallHeadline {
    /// The verb, or the name of a tool that is not one of haft's.
    pub verb: String,
    /// The object of the call, such as a path or a command. It is empty if the arguments are not
    /// known yet, and may have several lines.
    pub object: String,
}

impl CallHeadline {
    /// Describes a call of `tool` with `arguments`, which are [`Value::Null`] if they have not
    /// arrived yet.
    pub fn new(tool: &str, arguments: &Value) -> Self {
        if let Some(headline) = describe_indirect_call(tool, arguments) {
            return headline;
        }
        let text = |name: &str| find_text(arguments, &[name]);
        let path = || find_text(arguments, &["path", "file_path", "filePath", "target_file"]);
        let (verb, object) = match tool {
            "execute_command" | "Bash" => (text!("headline-run"), text("command")),
            "background_task" => describe_task(arguments),
            "session_start" => (text!("headline-start-session"), text("command")),
            "session_interactive" => (text!("headline-type"), describe_sent_input(arguments)),
            "session_stop" => (text!("headline-stop-session"), text("session_id")),
            "read_file" | "Read" => (text!("headline-read"), describe_range(arguments, path())),
            "list_files" | "LS" => (text!("headline-list"), path()),
            "list_code_definition_names" => (text!("headline-definitions"), path()),
            "search_files" | "Grep" => (text!("headline-search"), describe_search(arguments)),
            "glob" | "Glob" => (text!("headline-find"), describe_search(arguments)),
            "write_to_file" | "Write" => (text!("headline-write"), path()),
            "edit_file" | "replace_in_file" | "multi_edit" | "apply_patch" | "Edit"
            | "MultiEdit" | "str_replace" => (text!("headline-edit"), list_paths(arguments)),
            "undo_edit" => {
                let undone = find_text(arguments, &["path", "call_id"]);
                if undone.is_empty() {
                    (text!("headline-undo"), undone)
                } else {
                    (text!("headline-undo-of"), undone)
                }
            }
            "extract_to_text" => (text!("headline-extract"), path()),
            "count_tokens" => (
                text!("headline-count"),
                find_text(arguments, &["path", "text"]),
            ),
            "ask_followup_question" => (text!("headline-ask"), text("question")),
            "plan_mode_respond" => (text!("headline-plan"), String::new()),
            "attempt_completion" => (text!("headline-finish"), String::new()),
            "todo_write" | "TodoWrite" => (text!("headline-write-todo"), String::new()),
            "todo_read" => (text!("headline-read-todo"), String::new()),
            "use_skill" => (text!("headline-skill"), text("name")),
            "tool_search" => (text!("headline-search-tools"), text("query")),
            "run_named_subagents" => (text!("headline-agents"), list_subagents(arguments)),
            "talk_to" => (
                text!("headline-talk"),
                join_pair(&text("agent"), &text("message")),
            ),
            "talk_to_group" => (
                text!("headline-talk"),
                join_pair(&text("group"), &text("message")),
            ),
            "web_crawl" | "WebFetch" => (text!("headline-fetch"), text("url")),
            "web_search" | "WebSearch" => (text!("headline-search-web"), text("query")),
            "use_rag_tool" => (
                text!("headline-search-collection"),
                join_pair(&text("server_name"), &text("query")),
            ),
            "note_add" => (
                text!("headline-add-note"),
                join_pair(&text("path"), &text("note")),
            ),
            "note_query" => (text!("headline-read-notes"), text("path")),
            "note_update" => (
                text!("headline-change-note"),
                join_pair(&text("note_id"), &text("note")),
            ),
            "note_delete" => (text!("headline-delete-note"), text("note_id")),
            "useful_info_add" => (
                text!("headline-keep"),
                describe_range(arguments, text("path")),
            ),
            "useful_info_list" => (text!("headline-list-kept"), String::new()),
            "useful_info_delete" => (
                text!("headline-drop-kept"),
                format_value(&arguments["number"]),
            ),
            "conversation_message_ids_read" => (text!("headline-list-messages"), String::new()),
            "conversation_message_ids_write" => {
                (text!("headline-mark-messages"), text("message_ids"))
            }
            "recall" => (text!("headline-recall"), text("message_id")),
            "ac_mod_list" => (text!("headline-list-modules"), text("path")),
            "ac_mod_read" => (text!("headline-read-module"), text("path")),
            "ac_mod_write" => (text!("headline-write-module"), text("path")),
            "write_tool" => (text!("headline-write-tool"), text("name")),
            _ => return Self::from_parts(tool, list_arguments(arguments)),
        };
        Self::from_parts(verb, object)
    }

    fn from_parts(verb: &str, object: String) -> Self {
        Self {
            verb: verb.to_owned(),
            object,
        }
    }

    /// Returns the headline in one line. Of an object with several lines, the first is kept.
    pub fn to_line(&self) -> String {
        let object = self.object.trim();
        match object.split_once('\n') {
            _ if object.is_empty() => self.verb.trim_end_matches([':', '：']).to_owned(),
            Some((first, _)) => format!("{} {} …", self.verb, first.trim_end()),
            None => format!("{} {object}", self.verb),
        }
    }
}

/// Returns true if `tool` talks to the user, who sees its text as part of the conversation.
pub fn is_dialogue_tool(tool: &str) -> bool {
    matches!(
        tool,
        "attempt_completion" | "ask_followup_question" | "plan_mode_respond"
    )
}

/// Describes a call of a tool that is reached through another one: a tool of an MCP server, or a
/// tool that the model found.
fn describe_indirect_call(tool: &str, arguments: &Value) -> Option<CallHeadline> {
    let call = |server: &str, name: &str, arguments: &Value| {
        let arguments = list_arguments(arguments);
        CallHeadline::from_parts(
            text!("headline-call"),
            format!("{server}.{name}({arguments})"),
        )
    };
    if let Some((server, name)) = tool
        .strip_prefix("mcp__")
        .and_then(|rest| rest.split_once("__"))
    {
        return Some(call(server, name, arguments));
    }
    match tool {
        "use_mcp_tool" => {
            let server = arguments.get("server_name")?.as_str()?;
            let name = arguments.get("tool_name")?.as_str()?;
            Some(call(server, name, &parse_nested(&arguments["arguments"])))
        }
        "use_tool" => {
            let name = arguments.get("name")?.as_str()?;
            let nested = parse_nested(&arguments["arguments"]);
            // A tool that calls itself would be described for ever.
            (name != "use_tool").then(|| CallHeadline::new(name, &nested))
        }
        _ => None,
    }
}

/// Returns nested arguments, which some models send as JSON in a string.
fn parse_nested(arguments: &Value) -> Value {
    arguments
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_else(|| arguments.clone())
}

fn describe_task(arguments: &Value) -> (&'static str, String) {
    let text = |name: &str| find_text(arguments, &[name]);
    match &*text("action") {
        "list" => (text!("headline-list-tasks"), String::new()),
        "monitor" => (text!("headline-watch-task"), text("task_id")),
        "kill" => (text!("headline-kill-task"), text("task_id")),
        "cleanup" => (text!("headline-clean-tasks"), String::new()),
        _ => (text!("headline-start-task"), text("command")),
    }
}

fn describe_sent_input(arguments: &Value) -> String {
    let input = find_text(arguments, &["input"]);
    let keys = arguments.get("keys").and_then(Value::as_array);
    let keys = keys
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join(" ");
    let typed = [input, keys]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    join_pair(&find_text(arguments, &["session_id"]), &typed)
}

fn describe_range(arguments: &Value, path: String) -> String {
    let line = |name: &str| arguments.get(name).and_then(Value::as_u64);
    match (line("start_line"), line("end_line")) {
        (None, None) => path,
        (first, Some(last)) => text!("headline-range", path, first = first.unwrap_or(1), last),
        (Some(first), None) => text!("headline-range-from", path, first),
    }
}

fn describe_search(arguments: &Value) -> String {
    let pattern = find_text(arguments, &["regex", "pattern"]);
    let place = find_text(arguments, &["path"]);
    match (pattern.is_empty(), &*place) {
        (true, _) => place,
        (false, "" | ".") => format!("\"{pattern}\""),
        (false, _) => text!("headline-search-in", pattern, place),
    }
}

/// Lists the files that a call changes.
fn list_paths(arguments: &Value) -> String {
    let named = find_text(arguments, &["path", "file_path"]);
    if !named.is_empty() {
        return named;
    }
    let mut paths: Vec<_> = arguments
        .get("edits")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|edit| edit.get("path")?.as_str())
        .collect();
    let patch = find_text(arguments, &["patch"]);
    let headings = ["*** Update File: ", "*** Add File: ", "*** Delete File: "];
    paths.extend(
        patch
            .lines()
            .filter_map(|line| headings.iter().find_map(|front| line.strip_prefix(front))),
    );
    paths.dedup();
    paths.join(", ")
}

/// Lists the sub-agents that a call starts, by the names in its YAML text.
fn list_subagents(arguments: &Value) -> String {
    let yaml = find_text(arguments, &["subagents"]);
    let name = |line: &str| {
        let name = line.trim_start().trim_start_matches("- ").trim_start();
        let name = name.strip_prefix("name:")?.trim();
        Some(name.trim_matches(['"', '\'']).to_owned())
    };
    yaml.lines().filter_map(name).collect::<Vec<_>>().join(", ")
}

fn join_pair(front: &str, behind: &str) -> String {
    match (front.is_empty(), behind.is_empty()) {
        (_, true) => front.to_owned(),
        (true, false) => behind.to_owned(),
        (false, false) => format!("{front}: {behind}"),
    }
}

/// Returns the first argument with one of these names that is a text, or an empty text.
fn find_text(arguments: &Value, names: &[&str]) -> String {
    names
        .iter()
        .find_map(|name| arguments.get(name)?.as_str())
        .unwrap_or_default()
        .to_owned()
}

/// Lists all arguments in one line, each shortened.
fn list_arguments(arguments: &Value) -> String {
    let Value::Object(fields) = arguments else {
        return format_value(arguments);
    };
    fields
        .iter()
        .map(|(name, value)| format!("{name}: {}", format_value(value)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn format_value(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    };
    match text.char_indices().nth(MAX_ARGUMENT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn headline_names_verb_and_object() {
        for (tool, arguments, line) in [
            (
                "execute_command",
                json!({"timeout": 3, "command": "pytest -q"}),
                "Run pytest -q",
            ),
            ("execute_command", json!({"command": "a\nb"}), "Run a …"),
            (
                "read_file",
                json!({"path": "src/login.py"}),
                "Read src/login.py",
            ),
            (
                "read_file",
                json!({"path": "a", "start_line": 3, "end_line": 9}),
                "Read a, lines 3 to 9",
            ),
            (
                "edit_file",
                json!({"path": "a.py", "old_text": "x"}),
                "Edit a.py",
            ),
            (
                "multi_edit",
                json!({"edits": [{"path": "a"}, {"path": "a"}, {"path": "b"}]}),
                "Edit a, b",
            ),
            (
                "apply_patch",
                json!({"patch": "*** Begin Patch\n*** Add File: n.py\n+x\n*** End Patch"}),
                "Edit n.py",
            ),
            (
                "search_files",
                json!({"regex": "x", "path": "."}),
                "Search \"x\"",
            ),
            (
                "glob",
                json!({"pattern": "*.rs", "path": "src"}),
                "Find \"*.rs\" in src",
            ),
            (
                "background_task",
                json!({"action": "start", "command": "make"}),
                "Run in the background: make",
            ),
            (
                "background_task",
                json!({"action": "kill", "task_id": "t1"}),
                "Stop background task t1",
            ),
            (
                "run_named_subagents",
                json!({"subagents": "mode: parallel\nsubagents:\n  - name: scout\n    task: x\n"}),
                "Start sub-agents scout",
            ),
            (
                "mcp__files__add",
                json!({"a": 1, "b": "x\ny"}),
                "Call files.add(a: 1, b: x y)",
            ),
            (
                "use_mcp_tool",
                json!({"server_name": "files", "tool_name": "add", "arguments": "{\"a\": 1}"}),
                "Call files.add(a: 1)",
            ),
            (
                "use_tool",
                json!({"name": "glob", "arguments": {"pattern": "*"}}),
                "Find \"*\"",
            ),
            (
                "weather",
                json!({"city": "Oslo", "days": 2}),
                "weather city: Oslo, days: 2",
            ),
            ("execute_command", Value::Null, "Run"),
            ("session_start", Value::Null, "Start terminal session"),
            ("edit_file", json!("no object"), "Edit"),
        ] {
            assert_eq!(
                CallHeadline::new(tool, &arguments).to_line(),
                line,
                "{tool}"
            );
        }
    }
}
