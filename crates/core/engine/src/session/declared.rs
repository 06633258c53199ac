//! What a conversation was told of a tool that the user declares stays what it was told.
//!
//! What a server offers is learnt while it is used. The tools of a request are part of its prefix, so a conversation that is
//! resumed hears of them what it heard first, until the user declares something else.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use haft_store::{Store, StoreError};
use haft_tool::{Access, Intent, Manual, Registry, Source, Tool, ToolContext, ToolOutput};
use haft_types::{ConversationId, Envelope, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Under which name the store keeps it.
const STEADY: &str = "steady_tools";

/// What was told of each such tool, by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Steady(BTreeMap<String, Heard>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Heard {
    declared_by: String,
    description: String,
}

impl Steady {
    /// Gives the tools of a resumed conversation the words it knows them by. What comes back must be kept before the next
    /// request, if anything.
    pub(super) async fn restore(
        registry: &mut Registry,
        store: &dyn Store,
        resumed: Option<&ConversationId>,
    ) -> Result<Option<Self>, StoreError> {
        let offered: Vec<_> = registry.iter().filter(|tool| tool.declared_by().is_some()).cloned().collect();
        if offered.is_empty() {
            return Ok(None);
        }
        let kept = match resumed {
            Some(id) => store.state(id, STEADY).await?,
            None => None,
        };
        let before: Self = kept.and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default();
        let mut now = before.clone();
        for tool in offered {
            let (name, declared_by) = (&tool.spec().name, tool.declared_by().unwrap_or_default());
            match before.0.get(name).filter(|heard| heard.declared_by == declared_by) {
                Some(heard) if heard.description == tool.spec().description => {}
                Some(heard) => {
                    let spec = ToolSpec { description: heard.description.clone(), ..tool.spec().clone() };
                    let source = registry.source(name).cloned().unwrap_or(Source::BuiltIn);
                    registry.register(Arc::new(AsBefore { spec, tool }), source);
                }
                None => {
                    let heard =
                        Heard { declared_by: declared_by.to_owned(), description: tool.spec().description.clone() };
                    now.0.insert(name.clone(), heard);
                }
            }
        }
        Ok((now != before).then_some(now))
    }

    /// Keeps it with the conversation.
    pub(super) async fn keep(&self, store: &dyn Store, id: &ConversationId) -> Result<(), StoreError> {
        store.set_state(id, STEADY, serde_json::to_value(self).unwrap_or_default()).await
    }
}

/// A tool under the words a conversation knows it by.
struct AsBefore {
    spec: ToolSpec,
    tool: Arc<dyn Tool>,
}

#[async_trait]
impl Tool for AsBefore {
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
