//! The tools, resources, and prompts that a server offers, independent of the SDK's types.

use haft_types::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The tools, resources, and prompts that a server offers, as last fetched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerListing {
    /// The name and version of the server's program. Empty if the server does not report them.
    pub program: String,
    /// The protocol revision that was negotiated with the server.
    pub protocol: String,
    /// The server's instructions for the model.
    pub instructions: String,
    /// The tools, in the server's order.
    pub tools: Vec<ToolInfo>,
    pub resources: Vec<ResourceInfo>,
    pub prompts: Vec<PromptInfo>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolInfo {
    /// The tool's name on the server.
    pub name: String,
    pub description: String,
    /// The JSON schema of the tool's arguments.
    pub schema: Map<String, Value>,
}

impl ToolInfo {
    pub(crate) fn to_tool_spec(&self) -> ToolSpec {
        let Self {
            name,
            description,
            schema,
        } = self.clone();
        ToolSpec {
            name,
            description,
            parameters: schema.into(),
        }
    }
}

/// A resource of a server, or a template for resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceInfo {
    /// The URI of the resource, or the URI template.
    pub uri: String,
    pub name: String,
    pub description: String,
    /// The MIME type of the resource. Empty if the server does not report it.
    pub media_type: String,
}

/// A prompt of a server, which the user can call as a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptInfo {
    /// The prompt's name on the server.
    pub name: String,
    pub description: String,
    pub arguments: Vec<PromptArgument>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptArgument {
    pub name: String,
    pub description: String,
    pub required: bool,
}
