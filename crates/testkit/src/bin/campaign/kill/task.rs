//! The task of every case: ten replies with reasoning, parallel reads, edits, todos and commands.
//!
//! Invariants: each reply's text is unique within the task, so that a lost or duplicated message is
//! detected; each command leaves one file when it starts and another with its effect.

use haft_testkit::{Reply, Script, ScriptCall};
use serde_json::{Value, json};

/// The prompt with which the task is given to haft.
pub(crate) const TASK: &str = "Carry out the ten steps.";

/// The number of replies that the model gives in the task.
pub(crate) const REPLY_COUNT: usize = 10;

/// The number of commands that the task runs. They are numbered from 1.
pub(crate) const COMMAND_COUNT: usize = 5;

/// The minimum time that a command keeps running after it has written its files, in milliseconds.
pub(crate) const COMMAND_MS: u64 = 150;

/// The minimum time that it takes to stream a reply, in milliseconds.
pub(crate) const STREAM_MS: u64 = 50;

/// A file that exists before the task and is edited by it.
pub(crate) const EDITED_FILE: File = File {
    name: "data.txt",
    before: Some("one\ntwo\nthree\n"),
    after: "one\nTWO, edited\nthree\n",
    tool: "replace_in_file",
};

/// A file that the task creates.
pub(crate) const WRITTEN_FILE: File = File {
    name: "new.txt",
    before: None,
    after: "a new file\nof two lines\n",
    tool: "write_to_file",
};

/// The name and the content of a file that the task reads but does not change.
pub(crate) const READ_FILE: (&str, &str) = ("other.txt", "nothing to change here\n");

/// A file that one call of the task changes.
pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) before: Option<&'static str>,
    pub(crate) after: &'static str,
    pub(crate) tool: &'static str,
}

/// Returns the name of the file that the command with this number creates when it starts.
pub(crate) fn start_file_name(command: usize) -> String {
    format!("begun-{command}")
}

/// Returns the name of the file to which the command with this number appends a line.
pub(crate) fn effect_file_name(command: usize) -> String {
    format!("effects-{command}")
}

/// Builds the script of the task. `token` is a number by which its processes can be recognized.
pub(crate) fn build_script(token: &str) -> Result<Script, String> {
    let command = |number| ScriptCall::new("execute_command", command_arguments(number, token));
    let read = |path: &str| ScriptCall::new("read_file", json!({ "path": path }));
    let todos = |first: &str, second: &str| {
        let todos =
            json!([{ "content": "edit", "status": first }, { "content": "run", "status": second }]);
        ScriptCall::new("todo_write", json!({ "todos": todos }))
    };
    let list = ScriptCall::new("list_files", json!({ "path": "." }));
    let write = ScriptCall::new(
        "write_to_file",
        json!({ "path": WRITTEN_FILE.name, "content": WRITTEN_FILE.after }),
    );
    let diff = "<<<<<<< SEARCH\ntwo\n=======\nTWO, edited\n>>>>>>> REPLACE\n";
    let edit = ScriptCall::new(
        "replace_in_file",
        json!({ "path": EDITED_FILE.name, "diff": diff }),
    );
    let done = ScriptCall::new(
        "attempt_completion",
        json!({ "result": "All ten steps are done." }),
    );
    let calls: [Vec<ScriptCall>; REPLY_COUNT] = [
        vec![todos("in_progress", "pending")],
        vec![read(EDITED_FILE.name), read(READ_FILE.0), list],
        vec![command(1)],
        vec![write],
        vec![command(2), command(3)],
        vec![edit],
        vec![read(READ_FILE.0), command(4)],
        vec![read(EDITED_FILE.name), read(READ_FILE.0)],
        vec![todos("completed", "completed"), command(5)],
        vec![done],
    ];
    Script::turns(
        calls
            .into_iter()
            .enumerate()
            .map(|(index, calls)| build_reply(index, calls)),
    )
    .map_err(|error| error.to_string())
}

fn build_reply(index: usize, calls: Vec<ScriptCall>) -> Reply {
    let text = format!(
        "Step {index}. This sentence is long enough to be sent in several pieces, so that a kill finds one of them \
         under way; nothing else depends on what it says."
    );
    let reply = Reply {
        delta_chars: Some(12),
        delta_delay_ms: 4,
        ..Reply::calls(calls).with_text(text)
    };
    if index.is_multiple_of(3) {
        reply.with_thinking(format!(
            "Before step {index} there is something to think about, though not much."
        ))
    } else {
        reply
    }
}

/// Returns the arguments of a command that creates its start file, has an effect, takes a while,
/// and leaves a process behind in one of three ways.
fn command_arguments(number: usize, token: &str) -> Value {
    // The token is a fraction of a second, so that it appears in the command line of `sleep`
    // itself.
    let sleeper = format!("sleep 30.{token}");
    let left = match number % 3 {
        0 => format!("({sleeper} &)"),
        1 => format!("(setsid {sleeper} >/dev/null 2>&1 &)"),
        _ => format!("(cd / && trap '' TERM HUP && setsid {sleeper} &)"),
    };
    let begun = start_file_name(number);
    let effects = effect_file_name(number);
    let line = format!(
        "{left}; echo x >> {effects}; echo begun > {begun}; sleep 0.{COMMAND_MS}; echo done {number}"
    );
    json!({ "command": line, "requires_approval": false })
}
