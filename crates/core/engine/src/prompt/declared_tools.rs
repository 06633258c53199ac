//! Keeps the description of a declared tool constant throughout a conversation.
//!
//! The description of an MCP server is learned while the server is used, so it can change. Tools
//! and lists are part of a request's cached prefix. A resumed conversation therefore keeps the
//! first description until the user changes the declaration.

use std::sync::Arc;

use haft_tool::{Registry, Tool};

use super::redescribed_tool::RedescribedTool;
use crate::stored_state::{StoredState, ToolDescription, ToolDescriptions};

/// Gives each declared tool the description that the conversation sent first, so that the cached
/// prefix stays valid. Returns the descriptions to store before the next request, or `None` if
/// there are no new descriptions.
pub(crate) fn restore_descriptions(
    registry: &mut Registry,
    state: &mut StoredState,
) -> Option<ToolDescriptions> {
    let offered: Vec<_> = registry
        .iter()
        .filter(|tool| tool_declaration(tool.as_ref()).is_some())
        .cloned()
        .collect();
    if offered.is_empty() {
        return None;
    }
    let before: ToolDescriptions = state.take().unwrap_or_default();
    let mut now = before.clone();
    for tool in offered {
        let name = &tool.spec().name;
        let declared_by = tool_declaration(tool.as_ref()).unwrap_or_default();
        match before
            .0
            .get(name)
            .filter(|known| known.declared_by == declared_by)
        {
            Some(known) if known.description == learned_description(tool.as_ref()) => {}
            Some(known) => registry.register(Arc::new(RedescribedTool::new(
                tool,
                known.description.clone(),
            ))),
            None => {
                let description = learned_description(tool.as_ref()).to_owned();
                now.0.insert(
                    name.clone(),
                    ToolDescription {
                        declared_by: declared_by.to_owned(),
                        description,
                    },
                );
            }
        }
    }
    (now != before).then_some(now)
}

/// Returns the user's declaration of a tool whose description is learned while it is used.
fn tool_declaration(tool: &dyn Tool) -> Option<&str> {
    tool.gateway()?.declared_by()
}

/// Returns the description that can change while a tool is used: the list of everything that the
/// tool can access, or else the tool's own description.
fn learned_description(tool: &dyn Tool) -> &str {
    tool.gateway()
        .and_then(|gateway| gateway.reachable())
        .map_or(&tool.spec().description, |list| &list.text)
}
