//! Translates tool calls to Claude Code's names, and changed arguments back.
//!
//! Programs written for Claude Code decide by these names which calls they allow.
//!
//! Invariant: a call is shown in one form, no matter how the model wrote it: paths are absolute,
//! and a tool of an MCP server is named `mcp__server__tool`. Tools and arguments without another
//! name keep haft's.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

/// A tool's name in haft, its name in Claude Code, and the arguments that Claude Code names
/// differently.
type ToolNames = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const TOOL_NAMES: [ToolNames; 13] = [
    ("execute_command", "Bash", &[]),
    ("write_to_file", "Write", &[("path", "file_path")]),
    (
        "edit_file",
        "Edit",
        &[
            ("path", "file_path"),
            ("old_text", "old_string"),
            ("new_text", "new_string"),
        ],
    ),
    ("replace_in_file", "Edit", &[("path", "file_path")]),
    ("multi_edit", "MultiEdit", &[]),
    (
        "read_file",
        "Read",
        &[("path", "file_path"), ("start_line", "offset")],
    ),
    (
        "search_files",
        "Grep",
        &[("regex", "pattern"), ("file_pattern", "glob")],
    ),
    ("glob", "Glob", &[]),
    ("list_files", "LS", &[]),
    ("web_crawl", "WebFetch", &[]),
    ("web_search", "WebSearch", &[]),
    ("todo_write", "TodoWrite", &[]),
    ("run_named_subagents", "Task", &[]),
];

/// The name of haft's tool through which tools of MCP servers are called.
const USE_MCP_TOOL: &str = "use_mcp_tool";

/// The tool names that a client uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolNaming {
    /// The names that haft uses.
    #[default]
    Haft,
    /// The names that Claude Code uses.
    Claude,
}

/// A tool call with the tool name and the argument names that the client knows.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaudeCall {
    pub name: String,
    pub input: Value,
}

impl ToolNaming {
    /// Returns the client's name for haft's tool `own`.
    pub fn tool_name(self, own: &str) -> &str {
        match self {
            Self::Haft => own,
            Self::Claude => TOOL_NAMES
                .iter()
                .find(|(name, ..)| *name == own)
                .map_or(own, |(_, name, _)| name),
        }
    }

    /// True if a tool with this name exists in haft or, for [`Self::Claude`], in Claude Code.
    pub fn is_known(self, name: &str) -> bool {
        TOOL_NAMES
            .iter()
            .any(|(own, other, _)| name == *own || self == Self::Claude && name == *other)
    }

    /// Translates a call of haft's tool `own` to the names that the client knows. Relative paths
    /// refer to `cwd`.
    pub fn translate_call(self, own: &str, arguments: &Value, cwd: &Path) -> ClaudeCall {
        let (Self::Claude, Value::Object(fields)) = (self, arguments) else {
            return ClaudeCall {
                name: own.to_owned(),
                input: arguments.clone(),
            };
        };
        if let Some(call) = translate_mcp_call(own, fields) {
            return call;
        }
        let mut input = Map::new();
        for (key, value) in fields {
            let key = find_client_argument(own, key).unwrap_or(key);
            let value = match (key, value) {
                ("file_path", Value::String(path)) => to_absolute_path(cwd, path).into(),
                // haft counts seconds, and Claude Code counts milliseconds.
                ("timeout", Value::Number(seconds)) if own == "execute_command" => {
                    seconds.as_u64().map_or_else(
                        || value.clone(),
                        |seconds| seconds.saturating_mul(1_000).into(),
                    )
                }
                _ => value.clone(),
            };
            input.insert(key.to_owned(), value);
        }
        ClaudeCall {
            name: self.tool_name(own).to_owned(),
            input: input.into(),
        }
    }

    /// Translates arguments that a client returned back to those of haft's tool `own`. The client
    /// received `shown` in place of `arguments` and returned `changed`. Arguments that the client
    /// did not change keep the value that the model wrote.
    pub fn restore_arguments(
        self,
        own: &str,
        arguments: &Value,
        shown: &Value,
        changed: &Value,
    ) -> Value {
        let (Self::Claude, Value::Object(before), Value::Object(fields)) =
            (self, arguments, changed)
        else {
            return changed.clone();
        };
        if shown == changed {
            return arguments.clone();
        }
        if own == USE_MCP_TOOL {
            let mut call = before.clone();
            call.insert("arguments".to_owned(), changed.clone());
            return call.into();
        }
        let mut restored = Map::new();
        for (key, value) in fields {
            let name = find_own_argument(own, key).unwrap_or(key);
            let value = match (shown.get(key), before.get(name)) {
                (Some(seen), Some(kept)) if seen == value => kept.clone(),
                _ if own == "execute_command" && name == "timeout" => value.as_u64().map_or_else(
                    || value.clone(),
                    |milliseconds| milliseconds.div_ceil(1_000).max(1).into(),
                ),
                _ => value.clone(),
            };
            restored.insert(name.to_owned(), value);
        }
        // haft requires this argument, but Claude Code does not have it.
        if let Some(kept) = before.get("requires_approval") {
            restored
                .entry("requires_approval")
                .or_insert_with(|| kept.clone());
        }
        restored.into()
    }
}

fn translate_mcp_call(own: &str, fields: &Map<String, Value>) -> Option<ClaudeCall> {
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    let (server, tool) = (own == USE_MCP_TOOL)
        .then(|| text("server_name").zip(text("tool_name")))
        .flatten()?;
    let input = match fields.get("arguments") {
        Some(Value::String(text)) => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::Object(Map::new()))
        }
        Some(Value::Null) | None => Value::Object(Map::new()),
        Some(input) => input.clone(),
    };
    Some(ClaudeCall {
        name: format!("mcp__{server}__{tool}"),
        input,
    })
}

fn argument_names(own: &str) -> &'static [(&'static str, &'static str)] {
    TOOL_NAMES
        .iter()
        .find(|(name, ..)| *name == own)
        .map_or(&[], |(.., renames)| renames)
}

fn find_client_argument(own: &str, key: &str) -> Option<&'static str> {
    argument_names(own)
        .iter()
        .find(|(from, _)| *from == key)
        .map(|(_, to)| *to)
}

fn find_own_argument(own: &str, key: &str) -> Option<&'static str> {
    argument_names(own)
        .iter()
        .find(|(_, to)| *to == key)
        .map(|(from, _)| *from)
}

/// Returns the absolute path without `.` and `..`. Links are not followed, because clients compare
/// paths as text.
fn to_absolute_path(cwd: &Path, path: &str) -> String {
    let mut all = PathBuf::new();
    for part in cwd.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(all.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => all.push(part),
        }
    }
    all.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn translated_call(own: &str, arguments: &Value) -> (String, Value) {
        let ClaudeCall { name, input } =
            ToolNaming::Claude.translate_call(own, arguments, Path::new("/p/sub"));
        (name, input)
    }

    #[test]
    fn translate_call_uses_claude_names_and_absolute_paths() {
        for (own, arguments, name, input) in [
            (
                "write_to_file",
                json!({"path": "a", "content": "x"}),
                "Write",
                json!({"file_path": "/p/sub/a", "content": "x"}),
            ),
            (
                "write_to_file",
                json!({"path": "../../etc/x"}),
                "Write",
                json!({"file_path": "/etc/x"}),
            ),
            (
                "execute_command",
                json!({"command": "ls", "timeout": 2}),
                "Bash",
                json!({"command": "ls", "timeout": 2000}),
            ),
            (
                "search_files",
                json!({"regex": "a", "path": "."}),
                "Grep",
                json!({"pattern": "a", "path": "."}),
            ),
            (
                "use_mcp_tool",
                json!({"server_name": "calc", "tool_name": "add", "arguments": {"a": 1}}),
                "mcp__calc__add",
                json!({"a": 1}),
            ),
            (
                "use_mcp_tool",
                json!({"server_name": "calc", "tool_name": "add"}),
                "mcp__calc__add",
                json!({}),
            ),
            (
                "attempt_completion",
                json!({"result": "done"}),
                "attempt_completion",
                json!({"result": "done"}),
            ),
            ("write_to_file", json!(3), "write_to_file", json!(3)),
        ] {
            assert_eq!(
                translated_call(own, &arguments),
                (name.to_owned(), input),
                "{arguments}"
            );
        }
    }

    #[test]
    fn restore_arguments_translates_changed_input_back() {
        let back = |own: &str, arguments: &Value, change: &dyn Fn(&mut Value)| {
            let shown = ToolNaming::Claude
                .translate_call(own, arguments, Path::new("/p"))
                .input;
            let mut changed = shown.clone();
            change(&mut changed);
            ToolNaming::Claude.restore_arguments(own, arguments, &shown, &changed)
        };
        let write = json!({"path": "a", "content": "x"});
        assert_eq!(back("write_to_file", &write, &|_| {}), write);
        let moved = back("write_to_file", &write, &|input| {
            input["file_path"] = json!("./safe/a");
        });
        assert_eq!(moved, json!({"path": "./safe/a", "content": "x"}));
        let kept = back("write_to_file", &write, &|input| {
            input["content"] = json!("y");
        });
        assert_eq!(
            kept,
            json!({"path": "a", "content": "y"}),
            "an argument that was left alone is as the model wrote it"
        );
        let run = json!({"command": "ls", "requires_approval": false, "timeout": 3});
        let faster = back("execute_command", &run, &|input| {
            *input = json!({"command": "ls -a", "timeout": 1500});
        });
        assert_eq!(
            faster,
            json!({"command": "ls -a", "requires_approval": false, "timeout": 2})
        );
        let add = json!({"server_name": "c", "tool_name": "add", "arguments": {"a": 1}});
        let other = back("use_mcp_tool", &add, &|input| input["a"] = json!(2));
        assert_eq!(
            other,
            json!({"server_name": "c", "tool_name": "add", "arguments": {"a": 2}})
        );
    }
}
