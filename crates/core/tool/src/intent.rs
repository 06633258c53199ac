//! What a call would do, declared before it is permitted.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// What a call would do, as far as its arguments tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// It reads and writes exactly these files. What it reads of a folder is everything below it
    /// but what rules keep from being read.
    Files(Vec<FileUse>),
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
    /// Nothing that needs permission: it looks at or ends what was permitted before, it touches
    /// nothing but what haft keeps of the conversation, or its arguments lack what it needs and
    /// the tool itself will say so.
    Nothing,
    /// The arguments do not tell. Such a call is asked.
    Unknown,
}

/// A file that a call uses, by its path as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileUse {
    /// It is read.
    Read(String),
    /// It is written, created, moved or deleted.
    Write(String),
}

impl Intent {
    /// It reads what this argument names. Without it the tool itself says what is missing.
    pub fn reads(arguments: &Value, key: &str) -> Self {
        text(arguments, key).map_or(Self::Nothing, |path| Self::Files(vec![FileUse::Read(path)]))
    }

    /// It reads what this argument names, and `default` without it.
    pub fn reads_or(arguments: &Value, key: &str, default: &str) -> Self {
        Self::Files(vec![FileUse::Read(
            text(arguments, key).unwrap_or_else(|| default.to_owned()),
        )])
    }

    /// It writes what this argument names. Without it the tool itself says what is missing.
    pub fn writes(arguments: &Value, key: &str) -> Self {
        text(arguments, key).map_or(Self::Nothing, |path| {
            Self::Files(vec![FileUse::Write(path)])
        })
    }

    /// What a call with these parameters would do. Arguments that are none do nothing: the tool
    /// itself says what is wrong with them.
    pub fn parsed<P: DeserializeOwned>(arguments: &Value, intent: impl FnOnce(P) -> Self) -> Self {
        P::deserialize(arguments).map_or(Self::Nothing, intent)
    }

    /// It runs the line in `command`, in the folder in `cwd`. Without a line the tool itself says
    /// what is missing.
    pub fn command(arguments: &Value) -> Self {
        let cwd = text(arguments, "cwd");
        text(arguments, "command").map_or(Self::Nothing, |line| Self::Command { line, cwd })
    }
}

fn text(arguments: &Value, key: &str) -> Option<String> {
    arguments
        .get(key)
        .and_then(Value::as_str)
        .map(str::to_owned)
}
