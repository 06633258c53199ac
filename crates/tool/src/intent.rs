//! What a call would do, as far as its arguments tell.

use haft_types::ToolSpec;
use serde_json::Value;

use crate::Access;

/// What a call would do, as far as its arguments tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// It reads or changes these files, as the model wrote their paths.
    Files(Vec<String>),
    /// It runs a command line.
    Command {
        /// The line.
        line: String,
        /// The folder to run in, as the model wrote it.
        cwd: Option<String>,
    },
    /// It reaches these hosts and changes nothing there.
    Hosts(Vec<String>),
    /// It types this into a program that runs already.
    Input(String),
    /// It calls a tool of an MCP server; rules know it as `mcp__server__tool`.
    Server {
        /// The server's name.
        server: String,
        /// The tool's name within the server.
        tool: String,
    },
    /// Nothing that needs permission: it looks at or ends what was permitted before, or its arguments lack what it needs and
    /// the tool itself will say so.
    Nothing,
    /// The arguments do not tell. A call that changes files or runs something is asked then.
    Unknown,
}

impl Intent {
    /// What arguments of the usual names say: `path` of a tool about files, `command` and `cwd` of one that runs something.
    pub fn read_off(access: Access, spec: &ToolSpec, arguments: &Value) -> Self {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str);
        let lacking = |key: &str| {
            let required = spec.parameters.get("required").and_then(Value::as_array);
            let needed = required.is_some_and(|keys| keys.iter().any(|one| one.as_str() == Some(key)));
            if needed { Self::Nothing } else { Self::Unknown }
        };
        match access {
            Access::State => Self::Nothing,
            Access::Read | Access::Write => match text("path") {
                Some(path) => Self::Files(vec![path.to_owned()]),
                None => lacking("path"),
            },
            Access::Execute => match text("command") {
                Some(line) => Self::Command { line: line.to_owned(), cwd: text("cwd").map(str::to_owned) },
                None => lacking("command"),
            },
        }
    }
}
