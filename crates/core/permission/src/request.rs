//! Describes tool calls for permission decisions.

use haft_tool::{Access, Intent, Tool};
use serde_json::Value;

/// A tool call on which a permission decision is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionRequest<'a> {
    /// The tool's own name.
    pub tool: &'a str,
    /// The kind of access that the tool needs.
    pub access: Access,
    /// The effect that the call has with its arguments.
    pub intent: Intent,
    /// True if the model itself requests the user's approval.
    pub requires_approval: bool,
    /// True if the call requests to run outside the sandbox.
    pub leaves_sandbox: bool,
    pub project_files: ProjectFiles,
}

/// Reports whether other processes can change the project's files before the call runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProjectFiles {
    /// No other process changes files, so the names that match a pattern can be looked up before
    /// the call runs.
    #[default]
    Unchanging,
    /// A background task or a terminal session is running, which can change files at any time.
    Changing,
}

impl<'a> PermissionRequest<'a> {
    /// Creates the request for a call of `tool` with these arguments.
    pub fn for_tool(tool: &'a dyn Tool, arguments: &Value) -> Self {
        // Any value except a plain `false` requires an approval.
        let requires_approval = arguments
            .get("requires_approval")
            .is_some_and(|value| *value != Value::Bool(false));
        let leaves_sandbox = match arguments.get("sandbox") {
            None | Some(Value::Null) => false,
            Some(place) => tool.access() == Access::Execute && place != "inside",
        };
        let access = tool.access();
        let intent = tool.intent(arguments);
        let project_files = ProjectFiles::default();
        Self {
            tool: &tool.spec().name,
            access,
            intent,
            requires_approval,
            leaves_sandbox,
            project_files,
        }
    }

    /// Creates the request for a call of a tool of an MCP server.
    pub fn for_server_tool(server: &str, tool: &str) -> Self {
        Self {
            tool: "use_mcp_tool",
            access: Access::Execute,
            intent: Intent::Server {
                server: server.to_owned(),
                tool: tool.to_owned(),
            },
            requires_approval: false,
            leaves_sandbox: false,
            project_files: ProjectFiles::default(),
        }
    }

    /// Creates the request for a command line of `execute_command`.
    pub fn for_command(line: &str) -> Self {
        let intent = Intent::Command {
            line: line.to_owned(),
            cwd: None,
        };
        Self {
            tool: super::rule::EXECUTE_TOOL,
            access: Access::Execute,
            intent,
            requires_approval: false,
            leaves_sandbox: false,
            project_files: ProjectFiles::default(),
        }
    }
}
