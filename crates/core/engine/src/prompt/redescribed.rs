//! Tools with a replaced description: one that the conversation first used, or a translation.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use haft_tool::{
    Access, CaseDocument, DeferralUpdate, Foreseen, Gateway, Intent, Manual, Registry, Tool,
    ToolContext, ToolOutput, ToolTexts,
};
use haft_types::{Envelope, PromptLanguage, ToolSpec};
use serde_json::Value;

use crate::session::config::SessionConfig;

/// Translates the descriptions of the tools to the configured prompt language.
pub(crate) fn translate(registry: &mut Registry, config: &SessionConfig) {
    let tools: Vec<_> = registry.iter().cloned().collect();
    for tool in tools {
        registry.register(in_language(tool, config.policy.prompt_language));
    }
    // Tools that describe other tools now describe the translated ones.
    registry.set_protocol(config.model.tool_protocol);
}

/// Returns the tool with its description in `language`, if there is a translation.
pub(crate) fn in_language(tool: Arc<dyn Tool>, language: PromptLanguage) -> Arc<dyn Tool> {
    let Some(prompt) = tool
        .prompt()
        .filter(|_| language == PromptLanguage::Chinese)
    else {
        return tool;
    };
    let english = ToolTexts::of(prompt.english);
    let texts = ToolTexts::of(prompt.chinese);
    let ToolSpec {
        name,
        description,
        mut parameters,
    } = tool.spec().clone();
    // The description may continue with a part that is generated at run time.
    let rest = description
        .strip_prefix(english.description)
        .unwrap_or_default();
    describe(&mut parameters, &texts.others);
    let spec = ToolSpec {
        name,
        description: format!("{}{rest}", texts.description),
        parameters,
    };
    let manual = texts.manual(*tool.manual());
    Arc::new(RedescribedTool {
        spec,
        manual,
        reachable: reachable(tool.as_ref()).cloned(),
        tool,
    })
}

fn describe(schema: &mut Value, texts: &BTreeMap<&str, &str>) {
    for (name, property) in schema
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
    {
        if let (Some(text), Some(description)) =
            (texts.get(name.as_str()), property.get_mut("description"))
        {
            *description = Value::from(*text);
        }
    }
    match schema {
        Value::Object(fields) => fields.values_mut().for_each(|field| describe(field, texts)),
        Value::Array(items) => items.iter_mut().for_each(|item| describe(item, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A tool with another description than its own.
pub(crate) struct RedescribedTool {
    spec: ToolSpec,
    manual: Manual,
    reachable: Option<CaseDocument>,
    tool: Arc<dyn Tool>,
}

impl RedescribedTool {
    pub(crate) fn new(tool: Arc<dyn Tool>, learnt: String) -> Self {
        let spec = tool.spec().clone();
        let manual = *tool.manual();
        match reachable(tool.as_ref()).cloned() {
            Some(list) => Self {
                spec,
                manual,
                reachable: Some(CaseDocument {
                    text: learnt,
                    ..list
                }),
                tool,
            },
            None => Self {
                spec: ToolSpec {
                    description: learnt,
                    ..spec
                },
                manual,
                reachable: None,
                tool,
            },
        }
    }
}

#[async_trait]
impl Tool for RedescribedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &self.manual
    }

    fn gateway(&self) -> Option<&dyn Gateway> {
        self.tool.gateway()?;
        Some(self)
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

impl Gateway for RedescribedTool {
    fn reachable(&self) -> Option<&CaseDocument> {
        self.reachable.as_ref()
    }

    fn declared_by(&self) -> Option<&str> {
        self.tool.gateway()?.declared_by()
    }

    fn stand_in(&self, name: &str, arguments: &Value) -> Option<Value> {
        self.tool.gateway()?.stand_in(name, arguments)
    }

    fn narrowed(&self, names: &[String]) -> Option<Arc<dyn Tool>> {
        self.tool.gateway()?.narrowed(names)
    }

    fn narrowed_with(&self) -> Option<&str> {
        self.tool.gateway()?.narrowed_with()
    }

    fn with_deferred(&self, deferred: &[Arc<dyn Tool>]) -> DeferralUpdate {
        let Some(gateway) = self.tool.gateway() else {
            return DeferralUpdate::Same;
        };
        match gateway.with_deferred(deferred) {
            DeferralUpdate::Replaced(tool) => {
                DeferralUpdate::Replaced(in_language(tool, PromptLanguage::Chinese))
            }
            update @ (DeferralUpdate::Same | DeferralUpdate::Useless) => update,
        }
    }

    fn refusal(&self, arguments: &Value) -> Option<Envelope> {
        self.tool.gateway()?.refusal(arguments)
    }
}

fn reachable(tool: &dyn Tool) -> Option<&CaseDocument> {
    tool.gateway()?.reachable()
}
