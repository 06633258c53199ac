//! A call as far as permission looks at it.

use haft_tool::{Access, Intent, Tool};
use serde_json::Value;

/// A call that is to be decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionRequest<'a> {
    /// The tool's own name.
    pub tool: &'a str,
    /// What it may do.
    pub access: Access,
    /// What it would do with these arguments.
    pub intent: Intent,
    /// Whether the model itself says that the user must agree.
    pub requires_approval: bool,
    /// Whether it would run outside the sandbox.
    pub leaves_sandbox: bool,
    /// Whether the files of the project can change until the call runs.
    pub project_files: ProjectFiles,
}

/// Whether something besides the call can change the files of the project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProjectFiles {
    /// Nothing does: names that match a pattern can be looked up.
    #[default]
    Still,
    /// A background task or a session runs.
    Changing,
}

impl<'a> PermissionRequest<'a> {
    /// A call of this tool with these arguments.
    pub fn of(tool: &'a dyn Tool, arguments: &Value) -> Self {
        // Whatever is not a plain false is a reason to ask.
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

    /// A call of this tool of this MCP server.
    pub fn of_server(server: &str, tool: &str) -> Self {
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

    /// A command line for `execute_command`.
    pub fn command(line: &str) -> Self {
        let intent = Intent::Command {
            line: line.to_owned(),
            cwd: None,
        };
        Self {
            tool: super::rule::EXECUTE,
            access: Access::Execute,
            intent,
            requires_approval: false,
            leaves_sandbox: false,
            project_files: ProjectFiles::default(),
        }
    }
}
