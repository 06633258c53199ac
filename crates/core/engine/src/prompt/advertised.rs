//! Builds the texts and schemas that describe the offered tools to a model.

use std::sync::Arc;

use haft_context::StatedPlace;
use haft_tool::{
    ALL_TOOL_NAMES, CaseDocument, Registry, Tool, remove_mentions_of, remove_unknown_mentions,
};
use haft_types::{
    ModelProfile, ModelSpec, PromptLanguage, TokenCounter, ToolProtocol, ToolSet, ToolSpec,
};

use serde_json::Value;

use crate::names::{AVAILABLE_AGENTS, AVAILABLE_GROUPS, NAMED_AGENTS, TOOL_SEARCH};

/// The tools offered to a model, and the texts about their use.
#[derive(Clone)]
pub(crate) struct AdvertisedTools {
    pub(crate) tools: Arc<ToolSet>,
    /// The instructions for writing calls, if calls are part of the model's text.
    pub(crate) call_format: Option<String>,
    /// Examples of calls, if calls are part of the model's text. Otherwise empty, because the
    /// schemas are sent and are sufficient.
    pub(crate) examples: Vec<String>,
    /// Rules for the use of individual tools.
    pub(crate) guidelines: Vec<String>,
    /// The lists of the servers, collections, agents and groups that tools can access.
    pub(crate) lists: Vec<String>,
    /// Texts on how to use certain tools well.
    pub(crate) cases: Vec<String>,
}

impl AdvertisedTools {
    pub(crate) fn new(
        model: &ModelSpec,
        language: PromptLanguage,
        registry: &Registry,
        place: StatedPlace,
        counter: &dyn TokenCounter,
    ) -> Self {
        let deferred = registry
            .deferred_tools()
            .map(|tool| tool.spec().clone())
            .collect();
        let small = model.profile == ModelProfile::Small;
        let told = registry.known_names();
        let known =
            |text: &str| remove_unknown_mentions(text, |tool| told.contains(tool)).into_owned();
        // MCP servers describe their tools in these texts, and one of those may share its name with
        // a built-in tool. Only the name of the tool search is certain to mean the built-in one.
        let listed = |case: &CaseDocument| {
            if told.contains(TOOL_SEARCH) {
                case.to_string()
            } else {
                remove_mentions_of(&case.to_string(), &[TOOL_SEARCH]).into_owned()
            }
        };
        let mut specs = if small {
            short_specs(registry)
        } else {
            registry.specs()
        };
        for spec in specs
            .iter_mut()
            .filter(|spec| ALL_TOOL_NAMES.contains(&spec.name.as_str()))
        {
            spec.description = known(&spec.description);
        }
        let tools = ToolSet::new(specs, counter).with_deferred(deferred);
        let call_format =
            haft_model::describe_call_format(model.tool_protocol, language, &tools.specs);
        let guideline = |tool: &Arc<dyn Tool>| {
            Some(known(tool.manual().guideline)).filter(|rule| !rule.is_empty())
        };
        Self {
            tools: if call_format.is_some() {
                tools.with_zero_tokens()
            } else {
                tools
            },
            call_format,
            examples: registry
                .offered_tools()
                .filter(|_| !small)
                .filter_map(|tool| example_call(model.tool_protocol, tool.as_ref()))
                .collect(),
            guidelines: registry
                .offered_tools()
                .filter(|_| !small)
                .filter_map(guideline)
                .collect(),
            lists: LIST_NAMES
                .into_iter()
                .filter(|name| match place {
                    StatedPlace::System => true,
                    StatedPlace::AfterDocuments => !PEER_LISTS.contains(name),
                })
                .filter_map(|name| registry.case_documents().find(|case| case.name == name))
                .map(listed)
                .collect(),
            cases: registry
                .case_documents()
                .filter(|case| !small && !LIST_NAMES.contains(&case.name.as_str()))
                .map(CaseDocument::to_string)
                .collect(),
        }
    }
}

/// Returns the tool schemas for small models. If a tool has a short description or a reduced list
/// of parameters, these replace the full ones. The model may still use the omitted parameters.
fn short_specs(registry: &Registry) -> Vec<ToolSpec> {
    let short = |tool: &Arc<dyn Tool>| {
        let manual = tool.manual();
        let mut spec = tool.spec().clone();
        if !manual.short.is_empty() {
            manual.short.clone_into(&mut spec.description);
        }
        if let Some(Value::Object(known)) = spec.parameters.get_mut("properties")
            && !manual.few_parameters.is_empty()
        {
            known.retain(|name, _| manual.few_parameters.split(", ").any(|few| few == name));
        }
        spec
    };
    registry.offered_tools().map(short).collect()
}

/// The names of the lists that precede examples and guidelines in the prompt, in order.
const LIST_NAMES: [&str; 5] = [
    "MCP_SERVER_LIST",
    "RAG_COLLECTIONS",
    AVAILABLE_AGENTS,
    AVAILABLE_GROUPS,
    NAMED_AGENTS,
];

/// The names of the lists of running agents and their groups. They differ between agents that run
/// at the same time.
pub(crate) const PEER_LISTS: [&str; 2] = [AVAILABLE_AGENTS, AVAILABLE_GROUPS];

fn example_call(protocol: ToolProtocol, tool: &dyn Tool) -> Option<String> {
    let manual = tool.manual();
    let written = haft_model::write_call(protocol, &tool.spec().name, manual.example)?;
    (!manual.example.is_empty()).then(|| format!("{}:\n\n{written}", manual.example_of))
}
