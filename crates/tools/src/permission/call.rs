//! A call as far as permission looks at it.

use haft_tool::{Access, Tool};
use serde_json::Value;

/// A call that is to be decided.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// The tool's own name.
    pub tool: &'a str,
    /// What it may do.
    pub access: Access,
    /// The command line it would run.
    pub command: Option<&'a str>,
    /// The folder the command would run in, as the model wrote it.
    pub cwd: Option<&'a str>,
    /// The paths it is about, as the model wrote them; none when its arguments do not tell.
    pub paths: Option<Vec<String>>,
    /// Whether the model itself says that the user must agree.
    pub requires_approval: bool,
}

impl<'a> Call<'a> {
    /// A call of this tool with these arguments.
    pub fn of(tool: &'a dyn Tool, arguments: &'a Value) -> Self {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str);
        Self {
            tool: &tool.spec().name,
            access: tool.access(),
            command: text("command"),
            cwd: text("cwd"),
            paths: tool.paths(arguments),
            // Whatever is not a plain false is a reason to ask.
            requires_approval: arguments.get("requires_approval").is_some_and(|value| *value != Value::Bool(false)),
        }
    }

    /// A command line for `execute_command`.
    pub fn command(line: &'a str) -> Self {
        Self {
            tool: super::rule::EXECUTE,
            access: Access::Execute,
            command: Some(line),
            cwd: None,
            paths: None,
            requires_approval: false,
        }
    }
}
