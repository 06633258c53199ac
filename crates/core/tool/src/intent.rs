//! The declared effects of a call, known before the call is permitted.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The effects of a call, as far as its arguments show them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// The call reads and writes exactly these files. Reading a folder includes everything in it
    /// that the rules allow to be read.
    Files(Vec<FileUse>),
    /// The call runs a command line.
    Command {
        line: String,
        /// The folder in which the command runs, as the model wrote it; `None` for the working
        /// folder.
        cwd: Option<String>,
    },
    /// The call sends requests to these hosts that change nothing there.
    Hosts(Vec<String>),
    /// The call sends this input to a running program.
    Input(String),
    /// The call runs a tool of an MCP server. Rules refer to such a tool as `mcp__server__tool`.
    Server {
        server: String,
        /// The tool's name within the server.
        tool: String,
    },
    /// The call writes this file, a program that the model may run later. The call needs an approval
    /// in every mode, and no rule or hook replaces the approval.
    Program(String),
    /// The call needs no permission: it inspects or ends something permitted earlier, affects only
    /// haft's own data of the conversation, or lacks an argument, which the tool itself will
    /// report.
    Nothing,
    /// The effects cannot be derived from the arguments. The call needs approval.
    Unknown,
}

/// A file that a call uses, by its path as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileUse {
    Read(String),
    /// The file is written, created, moved or deleted.
    Write(String),
}

impl Intent {
    /// Returns the intent to read the file that the argument `key` names. If the argument is
    /// missing, the result is [`Self::Nothing`], because the tool itself reports the error.
    pub fn for_read(arguments: &Value, key: &str) -> Self {
        string_argument(arguments, key)
            .map_or(Self::Nothing, |path| Self::Files(vec![FileUse::Read(path)]))
    }

    /// Returns the intent to read the file that the argument `key` names, or the file `default` if
    /// the argument is missing.
    pub fn for_read_or(arguments: &Value, key: &str, default: &str) -> Self {
        Self::Files(vec![FileUse::Read(
            string_argument(arguments, key).unwrap_or_else(|| default.to_owned()),
        )])
    }

    /// Returns the intent to write the file that the argument `key` names. If the argument is
    /// missing, the result is [`Self::Nothing`], because the tool itself reports the error.
    pub fn for_write(arguments: &Value, key: &str) -> Self {
        string_argument(arguments, key).map_or(Self::Nothing, |path| {
            Self::Files(vec![FileUse::Write(path)])
        })
    }

    /// Parses the arguments and calls the given function to compute their intent. If the arguments
    /// are invalid, the result is [`Self::Nothing`], because the tool itself reports the error.
    pub fn from_parameters<P: DeserializeOwned>(
        arguments: &Value,
        intent: impl FnOnce(P) -> Self,
    ) -> Self {
        P::deserialize(arguments).map_or(Self::Nothing, intent)
    }

    /// Returns the intent to run the command line given by the argument `command` in the folder
    /// given by `cwd`. If the line is missing, the result is [`Self::Nothing`], because the tool
    /// itself reports the error.
    pub fn for_command(arguments: &Value) -> Self {
        let cwd = string_argument(arguments, "cwd");
        string_argument(arguments, "command")
            .map_or(Self::Nothing, |line| Self::Command { line, cwd })
    }
}

fn string_argument(arguments: &Value, key: &str) -> Option<String> {
    arguments
        .get(key)
        .and_then(Value::as_str)
        .map(str::to_owned)
}
