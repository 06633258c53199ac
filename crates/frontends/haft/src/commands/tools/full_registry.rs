//! A registry of every tool of this build, including tools that a session has only with agents,
//! skills, servers, collections, or the web. The tools are described here, never called.

use std::sync::Arc;

use async_trait::async_trait;
use haft_agent::HostEnvironment;
use haft_tool::{
    AgentMessenger, AgentReport, Assignment, DeliveryError, GroupDelivery, OpenedSkill, Registry,
    SkillSource, StartedAgent, SubAgents, ToolContext, UnknownAgent, WorkOrder,
};

/// Stands in for agents, messages and skills, for tools that are described but never called.
struct Placeholder;

#[async_trait]
impl SubAgents for Placeholder {
    fn agent_names(&self) -> Vec<String> {
        Vec::new()
    }

    async fn run_assignments(
        &self,
        _: &ToolContext,
        _: WorkOrder,
        _: Vec<Assignment>,
    ) -> Result<Vec<AgentReport>, UnknownAgent> {
        Ok(Vec::new())
    }

    async fn start_assignments(
        &self,
        _: &ToolContext,
        _: Vec<Assignment>,
    ) -> Result<Vec<StartedAgent>, UnknownAgent> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl AgentMessenger for Placeholder {
    async fn send(&self, _: &str, _: &str) -> Result<(), DeliveryError> {
        Ok(())
    }

    async fn send_to_group(&self, _: &str, _: &str) -> Result<GroupDelivery, DeliveryError> {
        Ok(GroupDelivery {
            reached: Vec::new(),
            failed: Vec::new(),
        })
    }
}

impl SkillSource for Placeholder {
    fn skill_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn open_skill(&self, _: &str) -> Option<OpenedSkill> {
        None
    }
}

/// Returns every tool of this build. Tools that every session has come first.
pub(crate) fn build_full_registry(environment: &HostEnvironment) -> Registry {
    let mut registry = super::build_registry(environment);
    let placeholder = Arc::new(Placeholder);
    registry.register(Arc::new(haft_tools::plan_mode_respond()));
    registry.register(Arc::new(haft_tools::use_skill(
        Arc::<Placeholder>::clone(&placeholder) as _,
    )));
    registry.register(Arc::new(haft_tools::run_named_subagents(
        Arc::<Placeholder>::clone(&placeholder) as _,
    )));
    registry.register(Arc::new(haft_tools::talk_to(
        Arc::<Placeholder>::clone(&placeholder) as _,
    )));
    registry.register(Arc::new(haft_tools::talk_to_group(placeholder)));
    for tool in crate::wiring::list_described_tools(environment) {
        registry.register(tool);
    }
    registry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_full_registry_includes_conditional_tools() {
        let registry = build_full_registry(&HostEnvironment::default());
        let mut names = vec![
            "read_file",
            "use_skill",
            "plan_mode_respond",
            "run_named_subagents",
            "talk_to",
            "talk_to_group",
        ];
        if cfg!(feature = "web") {
            names.extend(["web_search", "web_crawl"]);
        }
        if cfg!(feature = "rag") {
            names.push("use_rag_tool");
        }
        if cfg!(feature = "mcp") {
            names.push("use_mcp_tool");
        }
        for name in names {
            assert!(registry.resolve(name).is_some(), "{name}");
        }
    }
}
