//! Converts results of other agents' tools to the shapes of haft's own.
//!
//! ```text
//! Read {"file_path":"/p/a.rs"} ─► "     1→fn main() {}"  ─►  read_file, {path, start_line, end_line, content}
//! ```
//!
//! haft uses a result's `data` and tool name to compress it, to find older copies that a newer
//! result replaces, and to list changed files. A recorded result is only text, so its data is built
//! here from the arguments of the call and from markers that the agent is known to write. The text
//! stays unchanged, because the model read it in that form.
//!
//! Invariant: facts that neither the call nor the text contains are left out of the data, never
//! guessed. A result of an unknown tool gets no data and is compressed by the default rule.

mod commands;
mod files;

use std::collections::HashMap;

use haft_context::TOOL_NAME_KEY;
use haft_types::{Envelope, Message, Part, Role, ToolCall, ToolResult, ToolStatus};
use serde_json::Value;

/// Extends each tool result of a message with the data that the corresponding haft tool would have
/// returned. If the message has only one result, the name of that haft tool is recorded in the
/// metadata.
pub(crate) fn add_tool_data(message: &mut Message, calls: &HashMap<String, ToolCall>) {
    if message.role != Role::Tool {
        return;
    }
    let single = message.tool_results().count() == 1;
    let mut tool = None;
    for part in &mut message.content {
        let Part::ToolResult(result) = part else {
            continue;
        };
        tool = calls
            .get(&result.tool_call_id)
            .and_then(|call| shape_result(call, result));
    }
    // The metadata can contain only one tool name, so the name is omitted if there are several
    // results.
    if let Some(tool) = tool.filter(|_| single) {
        message.metadata.insert(TOOL_NAME_KEY.into(), tool.into());
    }
}

/// Sets the data and status of a result. Returns the name of the corresponding haft tool, or `None`
/// if the result stays unchanged.
fn shape_result(call: &ToolCall, result: &mut ToolResult) -> Option<&'static str> {
    let arguments = ForeignArguments::from_call(call)?;
    let envelope = &mut result.envelope;
    // Some formats store the exit code separately from the text.
    let code = envelope.data.get("exit_code").and_then(Value::as_i64);
    if !envelope.data.is_null() && code.is_none() {
        return None;
    }
    if envelope.status == ToolStatus::Success
        && envelope.text.trim_start().starts_with("<tool_use_error>")
    {
        *envelope = Envelope::failure("failed", std::mem::take(&mut envelope.text));
    }
    let tool = find_haft_tool_name(&call.name, &arguments)?;
    if tool == "execute_command" {
        let is_exact = call.name == "Bash";
        commands::shape_command_result(&arguments, envelope, code, is_exact);
        return Some(tool);
    }
    if envelope.status == ToolStatus::Error || reports_failure(&envelope.text) {
        return Some(tool);
    }
    let text = &envelope.text;
    let data = match tool {
        "read_file" => files::shape_read_result(&arguments, text),
        "replace_in_file" => files::shape_edit_result(&arguments),
        "write_to_file" => files::shape_write_result(&arguments, text),
        "apply_patch" => files::shape_patch_result(&arguments),
        "search_files" => files::shape_search_result(&arguments, text),
        "glob" => files::shape_glob_result(&arguments, text),
        "list_files" => Some(files::shape_list_result(&arguments, text)),
        _ => files::shape_todo_result(&arguments),
    };
    envelope.data = data?;
    Some(tool)
}

/// Returns the name of the haft tool that corresponds to another agent's tool.
fn find_haft_tool_name(name: &str, arguments: &ForeignArguments) -> Option<&'static str> {
    Some(match name {
        "Read" | "read" | "read_file" | "view" | "open" | "read_files" | "ReadFile" => "read_file",
        "Edit" | "edit" | "MultiEdit" | "multi_edit" | "str_replace" | "replace_in_file"
        | "replace" | "editor" | "StrReplaceFile" => "replace_in_file",
        "Write" | "write" | "write_file" | "write_to_file" | "create_file" | "new_file"
        | "WriteFile" => "write_to_file",
        "Bash" | "bash" | "shell" | "execute_bash" | "execute_command" | "exec_command"
        | "shell_command" | "local_shell" | "run_shell_command" | "Shell" | "developer__shell"
        | "container.exec" | "run_commands" | "terminal" => "execute_command",
        "Grep" | "grep" | "search_files" | "search_file_content" | "grep_search" => "search_files",
        "Glob" | "glob" | "find" | "find_file" => "glob",
        "LS" | "ls" | "list_dir" | "list_directory" | "list_files" => "list_files",
        "TodoWrite" | "todowrite" | "todo_write" | "update_plan" | "write_todos"
        | "task_tracker" => "todo_write",
        "apply_patch" => "apply_patch",
        // These tools take the operation as an argument.
        "str_replace_editor"
        | "str_replace_based_edit_tool"
        | "file_editor"
        | "developer__text_editor" => match arguments.first_text(&["command"])? {
            "view" => "read_file",
            "create" | "write" => "write_to_file",
            "str_replace" | "insert" => "replace_in_file",
            _ => return None,
        },
        _ => return None,
    })
}

/// True if the text of a result reports a failed call. Needed because some recordings have no error
/// flag.
fn reports_failure(text: &str) -> bool {
    const FAILURE_PREFIXES: [&str; 9] = [
        "The user doesn't want to",
        "Could not find",
        "No replacement was performed",
        "Your proposed edit has introduced",
        "Error:",
        "ERROR:",
        "File not found",
        "File does not exist",
        "Invalid `path` parameter",
    ];
    let begin = text.trim_start();
    FAILURE_PREFIXES.iter().any(|mark| begin.starts_with(mark))
}

/// The arguments of a call to another agent's tool, as a JSON object.
struct ForeignArguments(Value);

impl ForeignArguments {
    fn from_call(call: &ToolCall) -> Option<Self> {
        let value: Value = serde_json::from_str(&call.arguments).ok()?;
        value.is_object().then_some(Self(value))
    }

    /// Returns the value of the first name in `names` whose argument is a string.
    fn first_text(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.0.get(name)?.as_str())
    }

    /// Returns the value of the first name in `names` whose argument is a non-negative integer.
    fn first_number(&self, names: &[&str]) -> Option<u64> {
        names.iter().find_map(|name| self.0.get(name)?.as_u64())
    }

    /// Returns the value of the first name in `names` whose argument is a list.
    fn first_list(&self, names: &[&str]) -> Option<&Vec<Value>> {
        names.iter().find_map(|name| self.0.get(name)?.as_array())
    }

    /// Returns the path of the file to which the call applies. Returns `None` if the arguments name
    /// no file or several files.
    fn file_path(&self) -> Option<&str> {
        const PATH_KEYS: [&str; 7] = [
            "path",
            "file_path",
            "filePath",
            "absolute_path",
            "filename",
            "target_file",
            "notebook_path",
        ];
        self.first_text(&PATH_KEYS)
            .or_else(|| match self.first_list(&["files"])?.as_slice() {
                [one] => one.get("path")?.as_str(),
                _ => None,
            })
    }
}

#[cfg(test)]
mod tests;
