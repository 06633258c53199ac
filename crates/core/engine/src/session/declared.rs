//! What a conversation was first told of a tool that the user declares, it is told from then on.
//!
//! What a server offers is learnt while it is used. Tools and lists are part of a request's prefix, so a conversation that is
//! resumed keeps the first ones, until the user declares something else.

use std::sync::Arc;

use async_trait::async_trait;
use haft_tool::{Access, CaseDocument, Foreseen, Intent, Manual, Registry, Tool, ToolContext, ToolOutput};
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
            Some(known) if known.description == learnt(tool.as_ref()) => {}
            Some(known) => registry.register(Arc::new(RedescribedTool::new(tool, known.description.clone()))),
            None => {
                let description = learnt(tool.as_ref()).to_owned();
                now.0.insert(name.clone(), ToolDescription { declared_by: declared_by.to_owned(), description });
            }
        }
    }
    (now != before).then_some(now)
}

/// What is learnt of a tool while it is used: the list of what it reaches, else its description.
fn learnt(tool: &dyn Tool) -> &str {
    tool.reachable().map_or(&tool.spec().description, |list| &list.text)
}

/// A tool under the description a conversation knows it by.
struct RedescribedTool {
    spec: ToolSpec,
    reachable: Option<CaseDocument>,
    tool: Arc<dyn Tool>,
}

impl RedescribedTool {
    fn new(tool: Arc<dyn Tool>, learnt: String) -> Self {
        let spec = tool.spec().clone();
        match tool.reachable().cloned() {
            Some(list) => Self { spec, reachable: Some(CaseDocument { text: learnt, ..list }), tool },
            None => Self { spec: ToolSpec { description: learnt, ..spec }, reachable: None, tool },
        }
    }
}

#[async_trait]
impl Tool for RedescribedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        self.tool.manual()
    }

    fn reachable(&self) -> Option<&CaseDocument> {
        self.reachable.as_ref()
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

    async fn preview(&self, context: &ToolContext, arguments: &Value) -> Foreseen {
        self.tool.preview(context, arguments).await
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        self.tool.call(context, arguments).await
    }
}
