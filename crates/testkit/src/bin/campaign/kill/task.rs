//! The task of every case: ten replies with reasoning, parallel reads, edits, todos and commands.
//!
//! Invariants: each reply's text is unique within the task, so that a lost or duplicated message is
//! detected; each command leaves one file when it starts and another with its effect.

use haft_testkit::{Reply, Script, ScriptCall};
use serde_json::{Value, json};

/// The user's prompt.
pub(crate) const TASK: &str = "Carry out the ten steps.";

/// The number of replies in the task.
pub(crate) const REPLIES: usize = 10;

/// The number of commands in the task. Commands are numbered from 1.
pub(crate) const COMMANDS: usize = 5;

/// Minimum time a command runs after writing its files, in milliseconds.
pub(crate) const COMMAND_MS: u64 = 150;

/// Minimum time a reply takes to stream, in milliseconds.
pub(crate) const STREAM_MS: u64 = 50;

/// An existing file that the task edits.
pub(crate) const EDITED: File = File {
    name: "data.txt",
    before: Some("one\ntwo\nthree\n"),
    after: "one\nTWO, edited\nthree\n",
    tool: "replace_in_file",
};

/// A file that the task creates.
pub(crate) const WRITTEN: File = File {
    name: "new.txt",
    before: None,
    after: "a new file\nof two lines\n",
    tool: "write_to_file",
};

/// The name and the content of a file that the task only reads.
pub(crate) const READ: (&str, &str) = ("other.txt", "nothing to change here\n");

/// A file that one call of the task changes.
pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) before: Option<&'static str>,
    pub(crate) after: &'static str,
    pub(crate) tool: &'static str,
}

/// Returns the name of the file that a command creates when it starts.
pub(crate) fn begun(command: usize) -> String {
    format!("begun-{command}")
}

/// Returns the name of the file to which a command appends a line.
pub(crate) fn effects(command: usize) -> String {
    format!("effects-{command}")
}

/// Builds the script of the task; `token` is a number that marks its processes.
pub(crate) fn script(token: &str) -> Result<Script, String> {
    let command = |number| ScriptCall::new("execute_command", command(number, token));
    let read = |path: &str| ScriptCall::new("read_file", json!({ "path": path }));
    let todos = |first: &str, second: &str| {
        let todos =
            json!([{ "content": "edit", "status": first }, { "content": "run", "status": second }]);
        ScriptCall::new("todo_write", json!({ "todos": todos }))
    };
    let list = ScriptCall::new("list_files", json!({ "path": "." }));
    let write = ScriptCall::new(
        "write_to_file",
        json!({ "path": WRITTEN.name, "content": WRITTEN.after }),
    );
    let diff = "<<<<<<< SEARCH\ntwo\n=======\nTWO, edited\n>>>>>>> REPLACE\n";
    let edit = ScriptCall::new(
        "replace_in_file",
        json!({ "path": EDITED.name, "diff": diff }),
    );
    let done = ScriptCall::new(
        "attempt_completion",
        json!({ "result": "All ten steps are done." }),
    );
    let calls: [Vec<ScriptCall>; REPLIES] = [
        vec![todos("in_progress", "pending")],
        vec![read(EDITED.name), read(READ.0), list],
        vec![command(1)],
        vec![write],
        vec![command(2), command(3)],
        vec![edit],
        vec![read(READ.0), command(4)],
        vec![read(EDITED.name), read(READ.0)],
        vec![todos("completed", "completed"), command(5)],
        vec![done],
    ];
    Script::turns(
        calls
            .into_iter()
            .enumerate()
            .map(|(index, calls)| reply(index, calls)),
    )
    .map_err(|error| error.to_string())
}

fn reply(index: usize, calls: Vec<ScriptCall>) -> Reply {
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

/// Builds the arguments of a command that marks its start, has an effect, takes a while, and leaves
/// a process behind in one of three ways.
fn command(number: usize, token: &str) -> Value {
    // The token is a fraction of a second, so that it appears in the command line of `sleep`
    // itself.
    let sleeper = format!("sleep 30.{token}");
    let left = match number % 3 {
        0 => format!("({sleeper} &)"),
        1 => format!("(setsid {sleeper} >/dev/null 2>&1 &)"),
        _ => format!("(cd / && trap '' TERM HUP && setsid {sleeper} &)"),
    };
    let begun = begun(number);
    let effects = effects(number);
    let line = format!(
        "{left}; echo x >> {effects}; echo begun > {begun}; sleep 0.{COMMAND_MS}; echo done {number}"
    );
    json!({ "command": line, "requires_approval": false })
}
