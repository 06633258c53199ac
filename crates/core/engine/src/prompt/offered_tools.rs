//! Selects the tools that a session offers: the tools chosen by configuration and agent files,
//! except tools that have nothing to work with.

use std::sync::Arc;

use haft_project::{KnowledgePaths, module_documents};
use haft_tool::{CaseDocument, Registry, Tool, ToolSearch, UnknownChoice, UseTool};
use haft_tools::{
    Running, plan_mode_respond, run_named_subagents, talk_to, talk_to_group, use_skill,
};
use haft_types::{ModelProfile, PermissionMode, PromptLanguage};

use crate::agents::hub::{Hub, HubPost};
use crate::agents::roster::SubagentRoster;
use crate::error::Notice;
use crate::names;
use crate::ports::FoundSkills;
use crate::session::config::{Services, SessionConfig};

/// The name of the tool set that every agent starts with.
const DEFAULT_SET: &str = "default";
/// The name of the tool set for small models.
const SMALL_SET: &str = "small";

/// The other agents with which a session can work.
#[derive(Clone, Copy)]
pub(crate) enum Peers<'a> {
    /// The agents that the session can start.
    Startable(Option<&'a Arc<SubagentRoster>>),
    /// The agents that run at the moment, except the agent that waits for the session.
    Concurrent { waiting: Option<&'a str> },
}

/// Returns all built-in tools, with the texts about their use. Processes that tool calls leave
/// running belong to `running`.
pub fn all_tools(running: &Arc<Running>, language: PromptLanguage) -> Registry {
    let mut registry = Registry::default();
    registry.set_breaker_limits(running.limits().breaker_limits());
    for tool in haft_tools::builtin_tools(running) {
        registry.register(tool);
    }
    registry.register(Arc::new(ToolSearch::new(Vec::new())));
    registry.register(Arc::new(UseTool::default()));
    for case in haft_tools::case_documents(language) {
        registry.add_case(case);
    }
    registry
}

/// Returns the names of all built-in tools.
pub(crate) fn all_tool_names(running: &Arc<Running>, language: PromptLanguage) -> Vec<String> {
    all_tools(running, language)
        .iter()
        .map(|tool| tool.spec().name.clone())
        .collect()
}

/// Collects all tools that the session could offer.
fn collect_tools(config: &SessionConfig, services: &Services, peers: Peers<'_>) -> Registry {
    let mut registry = all_tools(&services.running, config.policy.prompt_language);
    registry.set_protocol(config.model.tool_protocol);
    // The questions of a sub-agent are answered by the agent that started it.
    if config.task.approver.is_none() && matches!(peers, Peers::Startable(_)) {
        registry.set_unusable(names::ASK_TOOL);
    }
    if let Some(skills) = FoundSkills::load(&config.knowledge.paths, &config.safety.masker) {
        registry.replace_case(skills.describe_skills());
        registry.register(Arc::new(use_skill(Arc::new(skills))));
    }
    if config.safety.permissions.mode == PermissionMode::Plan {
        registry.register(Arc::new(plan_mode_respond()));
    }
    for tool in &config.tools.further {
        registry.register(Arc::clone(tool));
    }
    add_peer_tools(&mut registry, config, &services.shared.hub, peers);
    for observer in &config.tools.observers {
        registry.add_observer(Arc::clone(observer));
    }
    registry
}

/// Adds the tools for working with other agents, if there are other agents.
fn add_peer_tools(
    registry: &mut Registry,
    config: &SessionConfig,
    hub: &Arc<Hub>,
    peers: Peers<'_>,
) {
    let (roster, waiting) = match peers {
        Peers::Startable(roster) => (roster, None),
        Peers::Concurrent { waiting } => (None, waiting),
    };
    if let Some(roster) = roster {
        registry.add_case(roster.describe_agents());
        let tool = run_named_subagents(Arc::clone(roster) as _);
        registry.register(Arc::new(tool));
    }
    let own = config.agent.as_str();
    let post = Arc::new(HubPost::new(Arc::clone(hub), own));
    let alone = !hub
        .agent_names()
        .iter()
        .any(|name| name != own && Some(name.as_str()) != waiting);
    // Background agents can receive messages.
    if roster.is_some() || !alone {
        registry.register(Arc::new(talk_to(Arc::<HubPost>::clone(&post) as _)));
    }
    if alone {
        return;
    }
    if hub.has_group_for(own) {
        registry.register(Arc::new(talk_to_group(post)));
    }
    hub.describe_peers(own)
        .into_iter()
        .flatten()
        .for_each(|case| registry.add_case(case));
}

/// Selects the tools of the agent that the user talks to.
pub(crate) fn select_tools(
    config: &mut SessionConfig,
    services: &Services,
    peers: Peers<'_>,
) -> Result<Registry, UnknownChoice> {
    let mut registry = collect_tools(config, services, peers);
    let mut wanted = resolve_wanted_tools(&config.tools.offered, &config.knowledge.paths);
    let unchosen = config.tools.offered.is_empty();
    if unchosen && config.model.profile == ModelProfile::Small {
        wanted = vec![SMALL_SET.to_owned()];
    }
    // The model calls this tool to report that the goal is reached.
    if config.task.goal
        && wanted
            .iter()
            .any(|choice| choice == DEFAULT_SET || choice == SMALL_SET)
    {
        wanted.push(names::COMPLETE_TOOL.to_owned());
    }
    if config.tools.from_agent_file {
        wanted = keep_known_tools(&registry, wanted, config);
    }
    registry.select_tools(&wanted, &config.tools.profiles)?;
    restrict_tools(&mut registry, config);
    // Sub-agents choose from the narrowed tools.
    for tool in &mut config.tools.further {
        if let Some(chosen) = registry.get(&tool.spec().name) {
            *tool = Arc::clone(chosen);
        }
    }
    Ok(registry)
}

/// Returns the tool that reads skills and the text that lists the current skills. Returns `None` if
/// there are no skills or if the configured tools do not include this tool.
pub(crate) fn current_skills(
    config: &SessionConfig,
    running: &Arc<Running>,
) -> Option<(Arc<dyn Tool>, CaseDocument)> {
    let skills = FoundSkills::load(&config.knowledge.paths, &config.safety.masker)?;
    let listed = skills.describe_skills();
    let tool: Arc<dyn Tool> = Arc::new(use_skill(Arc::new(skills)));
    let mut registry = all_tools(running, config.policy.prompt_language);
    registry.register(Arc::clone(&tool));
    // Each choice is checked on its own: another one may name a tool that is not in this registry.
    let has_it = |choice: &String| {
        let mut chosen = registry.clone();
        let is_known = chosen
            .select_tools(std::slice::from_ref(choice), &config.tools.profiles)
            .is_ok();
        restrict_tools(&mut chosen, config);
        is_known && chosen.get(names::USE_SKILL).is_some()
    };
    resolve_wanted_tools(&config.tools.offered, &config.knowledge.paths)
        .iter()
        .any(has_it)
        .then_some((tool, listed))
}

/// Resolves the configured choice of tools for a project: if the project has module documents, the
/// default set includes the module tools.
pub fn resolve_wanted_tools(chosen: &[String], paths: &KnowledgePaths) -> Vec<String> {
    let default = DEFAULT_SET.to_owned();
    let mut wanted = if chosen.is_empty() {
        vec![default.clone()]
    } else {
        chosen.to_vec()
    };
    if wanted.contains(&default) && module_documents::has_module_document(paths) {
        wanted.extend(names::MODULE_TOOLS.map(str::to_owned));
    }
    wanted
}

/// Returns the chosen tools that exist. Unknown tools, which agent files written for other programs
/// may name, are left out and reported to the user.
fn keep_known_tools(
    registry: &Registry,
    wanted: Vec<String>,
    config: &mut SessionConfig,
) -> Vec<String> {
    let is_known = |name: &String| {
        registry
            .clone()
            .select_tools(std::slice::from_ref(name), &config.tools.profiles)
            .is_ok()
    };
    let (known, unknown): (Vec<_>, Vec<_>) = wanted.iter().cloned().partition(is_known);
    if known.is_empty() {
        // If no choice is known, the later error reports them.
        return wanted;
    }
    // Tools without anything to work with are expected to be missing.
    let unknown: Vec<_> = unknown
        .into_iter()
        .filter(|name| !names::CONDITIONAL_TOOLS.contains(&name.as_str()))
        .collect();
    if unknown.is_empty() {
        return known;
    }
    let message = format!(
        "the agent `{}` is not given {}: there are no such tools",
        config.agent,
        unknown.join(", ")
    );
    config.notices.push(Notice {
        code: "agent_tools",
        message,
        failed: false,
    });
    known
}

/// Selects the tools of a sub-agent.
pub(crate) fn select_subagent_tools(
    config: &mut SessionConfig,
    services: &Services,
    waiting: Option<&str>,
) -> Result<Registry, UnknownChoice> {
    let mut registry = collect_tools(config, services, Peers::Concurrent { waiting });
    // The TODO list and the plan belong to the main agent.
    for of_main in [names::TODO_WRITE, names::PLAN_TOOL] {
        registry.remove(of_main);
    }
    let known = keep_known_tools(&registry, config.tools.offered.clone(), config);
    registry.select_tools(&known, &config.tools.profiles)?;
    restrict_tools(&mut registry, config);
    Ok(registry)
}

/// Removes the tools that the configuration does not allow.
fn restrict_tools(registry: &mut Registry, config: &SessionConfig) {
    if let Some(within) = &config.tools.within {
        registry.restrict_tools(within, &config.tools.profiles);
    }
}
