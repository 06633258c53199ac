//! The task every case plays: ten replies with reasoning, reads side by side, edits, todos and
//! commands.
//!
//! Invariant: each reply's text occurs once in the task, so that a message lost or doubled shows;
//! each command leaves a trace of its beginning and of its effect.

use haft_testkit::{Reply, Script, ScriptCall};
use serde_json::{Value, json};

/// What the user asks for.
pub(crate) const TASK: &str = "Carry out the ten steps.";

/// How many replies the task takes.
pub(crate) const REPLIES: usize = 10;

/// How many commands it runs, numbered from 1.
pub(crate) const COMMANDS: usize = 5;

/// The least time a command runs after its traces.
pub(crate) const COMMAND_MS: u64 = 150;

/// The least time a reply takes to stream.
pub(crate) const STREAM_MS: u64 = 50;

/// A file that is there from the beginning and is edited.
pub(crate) const EDITED: File = File {
    name: "data.txt",
    before: Some("one\ntwo\nthree\n"),
    after: "one\nTWO, edited\nthree\n",
    tool: "replace_in_file",
};

/// A file the task writes.
pub(crate) const WRITTEN: File = File {
    name: "new.txt",
    before: None,
    after: "a new file\nof two lines\n",
    tool: "write_to_file",
};

/// A file that is only read.
pub(crate) const READ: (&str, &str) = ("other.txt", "nothing to change here\n");

/// A file that one call of the task changes.
pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) before: Option<&'static str>,
    pub(crate) after: &'static str,
    pub(crate) tool: &'static str,
}

/// The file a command makes when it begins.
pub(crate) fn begun(command: usize) -> String {
    format!("begun-{command}")
}

/// The file to which a command adds a line.
pub(crate) fn effects(command: usize) -> String {
    format!("effects-{command}")
}

/// The task; `token` is a number that marks its processes.
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

/// A command that tells of its beginning, has an effect, takes a while, and leaves a process behind
/// in one of three ways.
fn command(number: usize, token: &str) -> Value {
    // The token is a fraction of a second, so that it stands in the command line of the sleeper
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
