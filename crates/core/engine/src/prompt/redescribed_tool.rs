//! Tools with a replaced description: the description that the conversation used first, or a
//! translation.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use haft_tool::{
    Access, CaseDocument, DeferralUpdate, Gateway, Intent, Manual, PreviewResult, Registry, Tool,
    ToolContext, ToolOutput, ToolTexts,
};
use haft_types::{Envelope, PromptLanguage, ToolSpec};
use serde_json::Value;

use crate::session::config::SessionConfig;

/// Translates the descriptions of all tools to the configured prompt language.
pub(crate) fn translate_tools(registry: &mut Registry, config: &SessionConfig) {
    let tools: Vec<_> = registry.iter().cloned().collect();
    for tool in tools {
        registry.register(translate_tool(tool, config.policy.prompt_language));
    }
    // Tools that describe other tools now describe the translated ones.
    registry.set_protocol(config.model.tool_protocol);
}

/// Returns the tool with its description in `language`, or the unchanged tool if there is no
/// translation.
pub(crate) fn translate_tool(tool: Arc<dyn Tool>, language: PromptLanguage) -> Arc<dyn Tool> {
    let Some(prompt) = tool
        .prompt()
        .filter(|_| language == PromptLanguage::Chinese)
    else {
        return tool;
    };
    let english = ToolTexts::parse(prompt.english);
    let texts = ToolTexts::parse(prompt.chinese);
    let ToolSpec {
        name,
        description,
        mut parameters,
    } = tool.spec().clone();
    // The description may continue with a part that is generated at run time.
    let rest = description
        .strip_prefix(english.description)
        .unwrap_or_default();
    replace_descriptions(&mut parameters, &texts.others);
    let spec = ToolSpec {
        name,
        description: format!("{}{rest}", texts.description),
        parameters,
    };
    let manual = texts.fill_manual(*tool.manual());
    Arc::new(RedescribedTool {
        spec,
        manual,
        reachable: reachable_list(tool.as_ref()).cloned(),
        tool,
    })
}

fn replace_descriptions(schema: &mut Value, texts: &BTreeMap<&str, &str>) {
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
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| replace_descriptions(field, texts)),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| replace_descriptions(item, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A tool that is offered to the model under another description than its own.
pub(crate) struct RedescribedTool {
    spec: ToolSpec,
    manual: Manual,
    reachable: Option<CaseDocument>,
    tool: Arc<dyn Tool>,
}

impl RedescribedTool {
    pub(crate) fn new(tool: Arc<dyn Tool>, learned: String) -> Self {
        let spec = tool.spec().clone();
        let manual = *tool.manual();
        match reachable_list(tool.as_ref()).cloned() {
            Some(list) => Self {
                spec,
                manual,
                reachable: Some(CaseDocument {
                    text: learned,
                    ..list
                }),
                tool,
            },
            None => Self {
                spec: ToolSpec {
                    description: learned,
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

    async fn preview(&self, context: &ToolContext, arguments: &Value) -> PreviewResult {
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

    fn stand_in_arguments(&self, name: &str, arguments: &Value) -> Option<Value> {
        self.tool.gateway()?.stand_in_arguments(name, arguments)
    }

    fn narrowed(&self, names: &[String]) -> Option<Arc<dyn Tool>> {
        self.tool.gateway()?.narrowed(names)
    }

    fn narrowed_with(&self) -> Option<&str> {
        self.tool.gateway()?.narrowed_with()
    }

    fn adapt_to_deferred(&self, deferred: &[Arc<dyn Tool>]) -> DeferralUpdate {
        let Some(gateway) = self.tool.gateway() else {
            return DeferralUpdate::Same;
        };
        match gateway.adapt_to_deferred(deferred) {
            DeferralUpdate::Replaced(tool) => {
                DeferralUpdate::Replaced(translate_tool(tool, PromptLanguage::Chinese))
            }
            update @ (DeferralUpdate::Same | DeferralUpdate::Useless) => update,
        }
    }

    fn refusal(&self, arguments: &Value) -> Option<Envelope> {
        self.tool.gateway()?.refusal(arguments)
    }
}

fn reachable_list(tool: &dyn Tool) -> Option<&CaseDocument> {
    tool.gateway()?.reachable()
}
