//! What a server offers, in our own words.

use haft_types::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Everything a server said it offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerListing {
    /// The program's own name and version, where it gives them.
    pub program: String,
    /// The revision of the protocol that was spoken.
    pub protocol: String,
    /// How it wants to be used.
    pub instructions: String,
    /// Its tools, in its order.
    pub tools: Vec<ToolInfo>,
    /// Its resources.
    pub resources: Vec<ResourceInfo>,
    /// Its prompts.
    pub prompts: Vec<PromptInfo>,
}

/// A tool of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolInfo {
    /// Its name within the server.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments.
    pub schema: Map<String, Value>,
}

impl ToolInfo {
    pub(crate) fn spec(&self) -> ToolSpec {
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

/// A resource of a server, or a template of such.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceInfo {
    /// Its address, or the pattern of addresses.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// What it holds.
    pub description: String,
    /// Of what type it is.
    pub media_type: String,
}

/// A prompt of a server: a command for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptInfo {
    /// Its name within the server.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it takes.
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Whether it must be given.
    pub required: bool,
}
