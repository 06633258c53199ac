//! The declared effects of a call, known before the call is permitted.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The effects of a call, as far as its arguments show them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// The call reads and writes exactly these files. Reading a folder includes everything below
    /// the folder that the rules allow to be read.
    Files(Vec<FileUse>),
    /// The call runs a command line.
    Command {
        line: String,
        /// The folder to run in, as the model wrote it.
        cwd: Option<String>,
    },
    /// The call reaches these hosts and changes nothing there.
    Hosts(Vec<String>),
    /// The call sends this input to a running program.
    Input(String),
    /// The call runs a tool of an MCP server, which rules name `mcp__server__tool`.
    Server {
        server: String,
        /// The tool's name within the server.
        tool: String,
    },
    /// The call does nothing that needs permission: it inspects or ends something permitted
    /// earlier, affects only haft's own data of the conversation, or lacks an argument, which the
    /// tool itself will report.
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
    /// Returns the intent to read the file in the argument `key`. A missing argument means
    /// [`Self::Nothing`], because the tool itself reports it.
    pub fn for_read(arguments: &Value, key: &str) -> Self {
        string_argument(arguments, key)
            .map_or(Self::Nothing, |path| Self::Files(vec![FileUse::Read(path)]))
    }

    /// Returns the intent to read the file in the argument `key`, or `default` if the argument is
    /// missing.
    pub fn for_read_or(arguments: &Value, key: &str, default: &str) -> Self {
        Self::Files(vec![FileUse::Read(
            string_argument(arguments, key).unwrap_or_else(|| default.to_owned()),
        )])
    }

    /// Returns the intent to write the file in the argument `key`. A missing argument means
    /// [`Self::Nothing`], because the tool itself reports it.
    pub fn for_write(arguments: &Value, key: &str) -> Self {
        string_argument(arguments, key).map_or(Self::Nothing, |path| {
            Self::Files(vec![FileUse::Write(path)])
        })
    }

    /// Parses the arguments and computes their intent. Invalid arguments mean [`Self::Nothing`],
    /// because the tool itself reports them.
    pub fn from_parameters<P: DeserializeOwned>(
        arguments: &Value,
        intent: impl FnOnce(P) -> Self,
    ) -> Self {
        P::deserialize(arguments).map_or(Self::Nothing, intent)
    }

    /// Returns the intent to run the line in `command`, in the folder in `cwd`. A missing line
    /// means [`Self::Nothing`], because the tool itself reports it.
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
