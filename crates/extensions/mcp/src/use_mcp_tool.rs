//! The tool `use_mcp_tool`, which calls a tool of an MCP server.

use std::sync::Arc;

use async_trait::async_trait;
use haft_tool::{
    Access, CaseDocument, Gateway, Group, Intent, Manual, Tool, ToolContext, ToolOutput,
    parameter_schema, parse_arguments,
};
use haft_types::{Envelope, TokenCounter, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::McpError;
use crate::scope::{self, ToolScope};
use crate::server_document::ServerDocument;
use crate::servers::{CalledTool, Servers};

pub(crate) const NAME: &str = "use_mcp_tool";
/// The heading of the prompt section that lists the servers.
const LIST_HEADING: &str = "MCP_SERVER_LIST";

static MANUAL: Manual = Manual::for_group(Group::Others);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UseMcpToolParameters {
    /// The server, by its name in `MCP_SERVER_LIST`.
    server_name: String,
    /// The tool's name within the server.
    tool_name: String,
    /// The tool's own arguments, as its schema has them; `{}` where it takes none.
    #[serde(default)]
    #[schemars(with = "Map<String, Value>")]
    arguments: Value,
}

/// Calls tools of MCP servers for the model.
pub struct UseMcpTool {
    spec: ToolSpec,
    list: CaseDocument,
    declared_by: String,
    servers: Arc<Servers>,
    scope: ToolScope,
    budget: usize,
    counter: Arc<dyn TokenCounter>,
}

impl UseMcpTool {
    /// Creates the tool for `servers`. The description of the servers is shortened to `budget`
    /// tokens as far as possible.
    pub fn new(servers: Arc<Servers>, budget: usize, counter: Arc<dyn TokenCounter>) -> Self {
        Self::new_in_scope(ToolScope::default(), servers, budget, counter)
    }

    fn new_in_scope(
        scope: ToolScope,
        servers: Arc<Servers>,
        budget: usize,
        counter: Arc<dyn TokenCounter>,
    ) -> Self {
        let prompt = include_str!("use_mcp_tool/prompt.md").trim_end();
        let document = ServerDocument::new_in_scope(&scope, &servers, budget, &|text| {
            counter.count_text(text) as usize
        });
        let list = CaseDocument {
            name: LIST_HEADING.into(),
            text: document.text,
            tools: vec![NAME.into()],
        };
        let spec = ToolSpec {
            name: NAME.into(),
            description: prompt.into(),
            parameters: parameter_schema::<UseMcpToolParameters>(),
        };
        // A resumed conversation with another scope has to get the description of that scope.
        let declared_by = match scope.describe() {
            None => servers.declaration_hash(),
            Some(only) => format!("{} {only}", servers.declaration_hash()),
        };
        Self {
            spec,
            list,
            declared_by,
            servers,
            scope,
            budget,
            counter,
        }
    }
}

#[async_trait]
impl Tool for UseMcpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn gateway(&self) -> Option<&dyn Gateway> {
        Some(self)
    }

    fn access(&self) -> Access {
        Access::Execute
    }

    fn intent(&self, arguments: &Value) -> Intent {
        let text = |key: &str| {
            arguments
                .get(key)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        match (text("server_name"), text("tool_name")) {
            (Some(server), Some(tool)) => Intent::Server { server, tool },
            // If an argument is missing, the call itself reports it.
            (Some(_) | None, _) => Intent::Nothing,
        }
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        let parameters: UseMcpToolParameters = match parse_arguments(NAME, arguments) {
            Ok(parameters) => parameters,
            Err(error) => return error.into(),
        };
        let UseMcpToolParameters {
            server_name,
            tool_name,
            arguments,
        } = parameters;
        let Some(arguments) = parse_arguments_object(arguments) else {
            let message =
                format!("invalid arguments for `{NAME}`: `arguments` must be a JSON object");
            return Envelope::failure("invalid_arguments", message).into();
        };
        let progress = Arc::clone(&context.progress);
        let called = CalledTool {
            server: &server_name,
            tool: &tool_name,
        };
        // Checked again, because the user or a hook may have changed the arguments after `refusal`.
        match self
            .servers
            .call_tool_in_scope(&self.scope, called, arguments, progress, &context.cancel)
            .await
        {
            Ok(answer) => answer.to_tool_output(context, &server_name, &tool_name),
            // A dead server doesn't disable the tool: other servers still work, and the limits on
            // starts keep haft from restarting this one too often.
            Err(error) => failure_envelope(&error).into(),
        }
    }
}

impl Gateway for UseMcpTool {
    fn reachable(&self) -> Option<&CaseDocument> {
        Some(&self.list)
    }

    fn declared_by(&self) -> Option<&str> {
        Some(&self.declared_by)
    }

    /// Translates a call of a tool named `mcp__server__tool` to arguments for this tool. Models
    /// trained with other agents use such names.
    fn stand_in_arguments(&self, name: &str, arguments: &Value) -> Option<Value> {
        let (server, tool) = self
            .servers
            .iter()
            .find_map(|server| scope::split_server_tool(name, &server.name))?;
        Some(json!({ "server_name": server, "tool_name": tool, "arguments": arguments }))
    }

    fn narrowed(&self, names: &[String]) -> Option<Arc<dyn Tool>> {
        let scope = self
            .scope
            .restrict_to(names, &self.servers.server_names())?;
        Some(Arc::new(Self::new_in_scope(
            scope,
            Arc::clone(&self.servers),
            self.budget,
            Arc::clone(&self.counter),
        )))
    }

    fn refusal(&self, arguments: &Value) -> Option<Envelope> {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str);
        // If an argument is missing, the call itself reports it.
        let refused = self
            .scope
            .check_tool(text("server_name")?, text("tool_name")?);
        refused.err().map(|error| failure_envelope(&error))
    }
}

fn failure_envelope(error: &McpError) -> Envelope {
    Envelope::failure(
        error.code(),
        haft_text::sanitize(&error.to_string()).into_owned(),
    )
}

/// Returns the arguments as an object. Accepts JSON text and missing arguments, because some models
/// send those.
fn parse_arguments_object(arguments: Value) -> Option<Map<String, Value>> {
    match arguments {
        Value::Object(object) => Some(object),
        Value::Null => Some(Map::new()),
        Value::String(text) if text.trim().is_empty() => Some(Map::new()),
        Value::String(text) => serde_json::from_str(&text).ok(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}
