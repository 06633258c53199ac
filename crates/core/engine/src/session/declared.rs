//! The description of a tool that the user declares stays the one a conversation was first given.
//!
//! What a server offers is learnt while it is used. The tools of a request are part of its prefix, so a conversation that is
//! resumed keeps the first descriptions, until the user declares something else.

use std::sync::Arc;

use async_trait::async_trait;
use haft_tool::{Access, Intent, Manual, Registry, Tool, ToolContext, ToolOutput};
use haft_types::{Envelope, ToolSpec};
use serde_json::Value;

use crate::stored_state::{StoredState, ToolDescription, ToolDescriptions};

/// Gives the tools of a resumed conversation the descriptions it knows them by. What comes back must be kept before the next
/// request, if anything.
pub(super) fn restore_descriptions(registry: &mut Registry, state: &mut StoredState) -> Option<ToolDescriptions> {
    let offered: Vec<_> = registry.iter().filter(|tool| tool.declared_by().is_some()).cloned().collect();
    if offered.is_empty() {
        return None;
    }
    let before: ToolDescriptions = state.take().unwrap_or_default();
    let mut now = before.clone();
    for tool in offered {
        let (name, declared_by) = (&tool.spec().name, tool.declared_by().unwrap_or_default());
        match before.0.get(name).filter(|known| known.declared_by == declared_by) {
            Some(known) if known.description == tool.spec().description => {}
            Some(known) => {
                let spec = ToolSpec { description: known.description.clone(), ..tool.spec().clone() };
                registry.register(Arc::new(RedescribedTool { spec, tool }));
            }
            None => {
                let description = tool.spec().description.clone();
                now.0.insert(name.clone(), ToolDescription { declared_by: declared_by.to_owned(), description });
            }
        }
    }
    (now != before).then_some(now)
}

/// A tool under the description a conversation knows it by.
struct RedescribedTool {
    spec: ToolSpec,
    tool: Arc<dyn Tool>,
}

#[async_trait]
impl Tool for RedescribedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        self.tool.manual()
    }

    fn declared_by(&self) -> Option<&str> {
        self.tool.declared_by()
    }

    fn stand_in(&self, name: &str, arguments: &Value) -> Option<Value> {
        self.tool.stand_in(name, arguments)
    }

    fn narrowed(&self, names: &[String]) -> Option<Arc<dyn Tool>> {
        self.tool.narrowed(names)
    }

    fn narrowed_with(&self) -> Option<&str> {
        self.tool.narrowed_with()
    }

    fn refusal(&self, arguments: &Value) -> Option<Envelope> {
        self.tool.refusal(arguments)
    }

    fn access(&self) -> Access {
        self.tool.access()
    }

    fn intent(&self, arguments: &Value) -> Intent {
        self.tool.intent(arguments)
    }

    async fn preview(&self, context: &ToolContext, arguments: &Value) -> Option<String> {
        self.tool.preview(context, arguments).await
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        self.tool.call(context, arguments).await
    }
}
