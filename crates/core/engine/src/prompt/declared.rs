//! What a conversation was first told of a tool that the user declares, it is told from then on.
//!
//! What a server offers is learnt while it is used. Tools and lists are part of a request's prefix,
//! so a conversation that is resumed keeps the first ones, until the user declares something else.

use std::sync::Arc;

use haft_tool::{Registry, Tool};

use super::redescribed::RedescribedTool;
use crate::stored_state::{StoredState, ToolDescription, ToolDescriptions};

/// Gives the tools of a resumed conversation the descriptions it knows them by. What comes back
/// must be kept before the next request, if anything.
pub(crate) fn restore_descriptions(
    registry: &mut Registry,
    state: &mut StoredState,
) -> Option<ToolDescriptions> {
    let offered: Vec<_> = registry
        .iter()
        .filter(|tool| declared_by(tool.as_ref()).is_some())
        .cloned()
        .collect();
    if offered.is_empty() {
        return None;
    }
    let before: ToolDescriptions = state.take().unwrap_or_default();
    let mut now = before.clone();
    for tool in offered {
        let name = &tool.spec().name;
        let declared_by = declared_by(tool.as_ref()).unwrap_or_default();
        match before
            .0
            .get(name)
            .filter(|known| known.declared_by == declared_by)
        {
            Some(known) if known.description == learnt(tool.as_ref()) => {}
            Some(known) => registry.register(Arc::new(RedescribedTool::new(
                tool,
                known.description.clone(),
            ))),
            None => {
                let description = learnt(tool.as_ref()).to_owned();
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
fn declared_by(tool: &dyn Tool) -> Option<&str> {
    tool.gateway()?.declared_by()
}

/// What is learnt of a tool while it is used: the list of what it reaches, else its description.
fn learnt(tool: &dyn Tool) -> &str {
    tool.gateway()
        .and_then(|gateway| gateway.reachable())
        .map_or(&tool.spec().description, |list| &list.text)
}
