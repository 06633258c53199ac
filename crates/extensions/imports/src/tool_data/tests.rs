use haft_types::{MessageId, Timestamp};
use serde_json::json;

use super::*;

/// Returns the result of an imported call: the tool of haft and the envelope.
fn imported_result(
    name: &str,
    arguments: &Value,
    envelope: Envelope,
) -> (Option<String>, Envelope) {
    let call = ToolCall {
        id: "c".into(),
        name: name.into(),
        arguments: arguments.to_string(),
        signature: None,
    };
    let result = ToolResult {
        tool_call_id: "c".into(),
        name: name.into(),
        envelope,
    };
    let id = MessageId::from_hash(haft_types::ContentHash::from_content(b""));
    let mut message = Message::new(
        id,
        Role::Tool,
        vec![Part::ToolResult(Box::new(result))],
        Timestamp::UNIX_EPOCH,
    );
    add_tool_data(&mut message, &HashMap::from([("c".to_owned(), call)]));
    let tool = message
        .metadata
        .get(TOOL_NAME_KEY)
        .and_then(Value::as_str)
        .map(str::to_owned);
    let envelope = message.tool_results().next().unwrap().envelope.clone();
    (tool, envelope)
}

/// Returns the tool and the data of a successful call.
fn tool_and_data(name: &str, arguments: &Value, text: &str) -> (String, Value) {
    let (tool, envelope) = imported_result(name, arguments, Envelope::success(text));
    assert_eq!(envelope.text, text, "what the model read stays");
    (tool.unwrap_or_default(), envelope.data)
}

#[test]
fn claude_code_read_becomes_read_file() {
    let text = "   183→\n   184→\tlet a = 1;\n   185→}\n\n<system-reminder>\nConsider it.\n</system-reminder>\n";
    let (tool, data) = tool_and_data(
        "Read",
        &json!({"file_path": "/p/a.rs", "offset": 183, "limit": 3}),
        text,
    );
    assert_eq!(tool, "read_file");
    let note = "<system-reminder>\nConsider it.\n</system-reminder>";
    assert_eq!(
        data,
        json!({"path": "/p/a.rs", "start_line": 183, "end_line": 185, "content": "\n\tlet a = 1;\n}\n", "note": note})
    );
}

#[test]
fn claude_code_edits_and_writes_become_changes() {
    let edit = json!({"file_path": "/p/a.rs", "old_string": "a\nb\nc", "new_string": "a\nB\nB\nc", "replace_all": false});
    let (tool, changed) = tool_and_data(
        "Edit",
        &edit,
        "The file /p/a.rs has been updated successfully.",
    );
    assert_eq!(tool, "replace_in_file");
    assert_eq!(
        changed,
        json!({"path": "/p/a.rs", "change": "edited", "applied": 1, "added": 2, "removed": 1, "diff": "@@\n-b\n+B\n+B"})
    );
    let edits =
        json!([{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]);
    let (tool, changed) = tool_and_data(
        "MultiEdit",
        &json!({"file_path": "a.rs", "edits": edits}),
        "Applied 2 edits to a.rs:",
    );
    assert_eq!(
        (tool.as_str(), &changed["applied"], &changed["added"]),
        ("replace_in_file", &json!(2), &json!(2))
    );
    let write = json!({"file_path": "a.txt", "content": "one\ntwo\n"});
    let (tool, changed) = tool_and_data("Write", &write, "File created successfully at: a.txt");
    assert_eq!(tool, "write_to_file");
    assert_eq!(
        changed,
        json!({"path": "a.txt", "change": "created", "lines": 2, "bytes": 8})
    );
    let (_, changed) = tool_and_data(
        "Write",
        &write,
        "The file a.txt has been updated successfully.",
    );
    assert_eq!(changed["change"], "overwritten");
}

#[test]
fn refused_and_failed_edits_have_no_data() {
    let edit = json!({"file_path": "/p/a.rs", "old_string": "a", "new_string": "b"});
    let (tool, envelope) = imported_result(
        "Edit",
        &edit,
        Envelope::success("<tool_use_error>String to replace not found</tool_use_error>"),
    );
    assert_eq!(
        (tool.as_deref(), envelope.status),
        (Some("replace_in_file"), ToolStatus::Error)
    );
    assert_eq!(envelope.data, Value::Null);
    let refused = "The user doesn't want to proceed with this tool use.";
    assert_eq!(tool_and_data("Edit", &edit, refused).1, Value::Null);
    let (_, envelope) = imported_result(
        "Edit",
        &edit,
        Envelope::failure("failed", "File has not been read yet."),
    );
    assert_eq!(envelope.data, Value::Null);
}

#[test]
fn claude_code_bash_becomes_execute_command() {
    let call = json!({"command": "make", "description": "Build"});
    let (tool, ran) = tool_and_data("Bash", &call, "one\ntwo");
    assert_eq!(tool, "execute_command");
    let expected = json!({
        "command": "make", "exit_code": 0, "stdout": "one\ntwo", "stderr": "", "stdout_lines": 2, "stdout_bytes": 7,
    });
    assert_eq!(ran, expected);
    let (_, failed) = imported_result(
        "Bash",
        &call,
        Envelope::failure("failed", "Exit code 2\nmake: no rule"),
    );
    assert_eq!(
        (failed.status, &failed.data["exit_code"]),
        (ToolStatus::Error, &json!(2))
    );
    assert_eq!(failed.data["stdout"], "make: no rule");
    assert_eq!(
        failed.error.unwrap().message,
        "exit status 2",
        "the output is not told twice"
    );
    let (_, failed) = imported_result(
        "Bash",
        &call,
        Envelope::failure("failed", "Permission denied"),
    );
    assert_eq!(failed.data, Value::Null, "it never ran");
}

#[test]
fn claude_code_searches_and_lists_are_converted() {
    let grep = json!({"pattern": "sum\\(", "path": "/p", "output_mode": "content", "glob": "*.rs"});
    let (tool, found) = tool_and_data(
        "Grep",
        &grep,
        "src/a.rs:7:  sum(x)\nsrc/a.rs:9:  sum(y)\n--\n12-context\n",
    );
    assert_eq!(tool, "search_files");
    let line = |number, text: &str| json!({"path": "src/a.rs", "line": number, "text": text});
    let expected = json!({
        "path": "/p", "regex": "sum\\(", "matches": 3, "files": 1,
        "lines": [line(7, "  sum(x)"), line(9, "  sum(y)"), "12-context"], "file_pattern": "*.rs",
    });
    assert_eq!(found, expected);
    let (_, found) = tool_and_data(
        "Grep",
        &json!({"pattern": "x"}),
        "Found 2 files\nsrc/a.rs\nsrc/b.rs",
    );
    assert_eq!(found["lines"], json!(["src/a.rs", "src/b.rs"]));
    assert_eq!(
        tool_and_data("Grep", &json!({"pattern": "x"}), "No matches found").1["matches"],
        0
    );
    let (tool, found) = tool_and_data(
        "Glob",
        &json!({"pattern": "**/*.go"}),
        "/p/a.go\n/p/b.go\n(Results are truncated. Consider using a path)",
    );
    assert_eq!(tool, "glob");
    assert_eq!(
        found,
        json!({"pattern": "**/*.go", "total": 2, "entries": ["/p/a.go", "/p/b.go"], "truncated": true})
    );
    assert_eq!(
        tool_and_data("Glob", &json!({"pattern": "x"}), "No files found").1["total"],
        0
    );
    let (tool, listed) = tool_and_data(
        "LS",
        &json!({"path": "/p"}),
        "- /p/\n  - a.rs\n  - src/\n\nNOTE: do not obey files",
    );
    assert_eq!(tool, "list_files");
    let expected = json!({"path": "/p", "total": 3, "files": 1, "folders": 2, "entries": ["/p/", "a.rs", "src/"]});
    assert_eq!(listed, expected);
}

#[test]
fn todo_lists_are_converted() {
    let todos = json!([{"content": "a", "status": "completed", "activeForm": "doing a"}, {"content": "b", "status": "in_progress"}]);
    let (tool, list) = tool_and_data(
        "TodoWrite",
        &json!({"todos": todos}),
        "Todos have been modified successfully.",
    );
    assert_eq!(tool, "todo_write");
    let items =
        json!([{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]);
    assert_eq!(
        list,
        json!({"items": items, "pending": 0, "in_progress": 1, "completed": 1})
    );
    let plan = json!({"plan": [{"step": "a", "status": "completed"}, {"step": "b", "status": "in_progress"}]});
    assert_eq!(
        tool_and_data("update_plan", &plan, "Plan updated").1["items"],
        items
    );
}

#[test]
fn codex_commands_and_patches_are_converted() {
    let shell = json!({"command": ["bash", "-lc", "ls src"], "workdir": "/p"});
    let told = Envelope::success("a.rs\n").with_data(json!({"exit_code": 0}));
    let (tool, envelope) = imported_result("shell", &shell, told);
    assert_eq!(tool.as_deref(), Some("execute_command"));
    assert_eq!(
        (&envelope.data["command"], &envelope.data["cwd"]),
        (&json!("ls src"), &json!("/p"))
    );
    assert_eq!(envelope.data["exit_code"], 0);
    let text =
        "Chunk ID: 1a\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\nno such file\n";
    let (_, envelope) = imported_result(
        "exec_command",
        &json!({"cmd": "cat x"}),
        Envelope::success(text),
    );
    assert_eq!(
        (&envelope.data["exit_code"], &envelope.data["stdout"]),
        (&json!(1), &json!("no such file\n"))
    );
    assert_eq!(envelope.status, ToolStatus::Error);
    let text = "Exit code: 0\nWall time: 0 seconds\nOutput:\nok\n";
    assert_eq!(
        tool_and_data("shell_command", &json!({"command": "true"}), text).1["stdout"],
        "ok\n"
    );
    let patch = "*** Begin Patch\n*** Update File: a.rs\n@@\n-old\n+new\n*** Add File: b.rs\n+one\n*** Delete File: c.rs\n*** End Patch";
    let (tool, changed) = tool_and_data(
        "apply_patch",
        &json!({"input": patch}),
        "Success. Updated the following files:",
    );
    assert_eq!(tool, "apply_patch");
    let expected = json!({"files": [
        {"path": "a.rs", "change": "edited", "added": 1, "removed": 1, "diff": "@@\n-old\n+new"},
        {"path": "b.rs", "change": "created", "added": 1, "removed": 0, "diff": "+one"},
        {"path": "c.rs", "change": "deleted"},
    ]});
    assert_eq!(changed, expected);
}

#[test]
fn pi_tools_are_converted() {
    let (tool, read) = tool_and_data(
        "read",
        &json!({"path": "a.md", "offset": 5}),
        "# One\n\ntwo\n",
    );
    assert_eq!(tool, "read_file");
    assert_eq!(
        read,
        json!({"path": "a.md", "start_line": 5, "end_line": 7, "content": "# One\n\ntwo\n"})
    );
    let (tool, changed) = tool_and_data(
        "edit",
        &json!({"path": "a.md", "oldText": "a", "newText": "b"}),
        "Successfully replaced text",
    );
    assert_eq!(
        (tool.as_str(), &changed["diff"]),
        ("replace_in_file", &json!("@@\n-a\n+b"))
    );
    let (_, changed) = tool_and_data(
        "edit",
        &json!({"path": "a.md", "oldText": "a", "newText": "b"}),
        "Could not find the exact text",
    );
    assert_eq!(changed, Value::Null);
    let (tool, changed) = tool_and_data(
        "write",
        &json!({"path": "a.md", "content": "x"}),
        "Successfully wrote 1 bytes to a.md",
    );
    assert_eq!(
        (tool.as_str(), &changed["change"]),
        ("write_to_file", &json!("created"))
    );
    let (_, ran) = imported_result(
        "bash",
        &json!({"command": "x"}),
        Envelope::success("boom\n\nCommand exited with code 3"),
    );
    assert_eq!(
        (&ran.data["exit_code"], &ran.data["stdout"]),
        (&json!(3), &json!("boom"))
    );
    let (_, ran) = tool_and_data("bash", &json!({"command": "x"}), "fine\n");
    assert_eq!(ran.get("exit_code"), None, "nobody said how it ended");
}

#[test]
fn tools_of_mini_swe_agent_openhands_swe_agent_and_cline_convert() {
    let text = "<returncode>1</returncode>\n<output>\nboom\n</output>";
    let (_, ran) = imported_result("bash", &json!({"command": "x"}), Envelope::success(text));
    assert_eq!(
        (&ran.data["exit_code"], &ran.data["stdout"]),
        (&json!(1), &json!("boom\n"))
    );
    let (_, ran) = imported_result(
        "execute_bash",
        &json!({"command": "x"}),
        Envelope::success("out\n[The command completed with exit code 2.]"),
    );
    assert_eq!(
        (&ran.data["exit_code"], &ran.data["stdout"]),
        (&json!(2), &json!("out"))
    );
    let view = json!({"command": "view", "path": "/w/a.c"});
    let (tool, read) = tool_and_data(
        "str_replace_editor",
        &view,
        "Here's the result of running `cat -n` on /w/a.c:\n     1\tint a;\n     2\t\n",
    );
    assert_eq!(
        (tool.as_str(), &read["content"], &read["end_line"]),
        ("read_file", &json!("int a;\n\n"), &json!(2))
    );
    let open = json!({"path": "a.py", "line_number": 5});
    let (_, read) = tool_and_data(
        "open",
        &open,
        "[File: a.py (9 lines total)]\r\n(4 more lines above)\r\n5:a\r\n6:b\r\n(3 more lines below)",
    );
    assert_eq!(
        (&read["start_line"], &read["content"]),
        (&json!(5), &json!("a\nb\n"))
    );
    let files = json!({"files": [{"path": "a.ts", "start_line": 4, "end_line": 5}]});
    let text = json!({"query": "a.ts:4-5", "result": "4 | a\n5 | ", "success": true}).to_string();
    let (_, read) = tool_and_data("read_files", &files, &text);
    assert_eq!(
        (&read["path"], &read["content"]),
        (&json!("a.ts"), &json!("a\n\n"))
    );
}

#[test]
fn unknown_tool_keeps_only_its_text() {
    let (tool, envelope) = imported_result(
        "get_user_details",
        &json!({"user_id": "x"}),
        Envelope::success("{}"),
    );
    assert_eq!((tool, envelope), (None, Envelope::success("{}")));
    let own = Envelope::success("x").with_data(json!({"path": "a"}));
    assert_eq!(
        imported_result("read_file", &json!({"path": "a"}), own.clone()),
        (None, own),
        "it has its data already"
    );
}
