//! A registry of every tool of this build, including tools that a session has only with agents,
//! skills, servers, collections, or the web. The tools are described here, never called.

use std::sync::Arc;

use async_trait::async_trait;
use haft_agent::HostEnvironment;
use haft_tool::{
    AgentReport, Assignment, GroupDelivery, NotDelivered, OpenedSkill, Post, Registry, SkillShelf,
    StartedAgent, SubAgents, ToolContext, UnknownAgent, WorkOrder,
};

/// Stands in for agents, messages and skills, which the tools described here never use.
struct Nobody;

#[async_trait]
impl SubAgents for Nobody {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    async fn run(
        &self,
        _: &ToolContext,
        _: WorkOrder,
        _: Vec<Assignment>,
    ) -> Result<Vec<AgentReport>, UnknownAgent> {
        Ok(Vec::new())
    }

    async fn start(
        &self,
        _: &ToolContext,
        _: Vec<Assignment>,
    ) -> Result<Vec<StartedAgent>, UnknownAgent> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl Post for Nobody {
    async fn send(&self, _: &str, _: &str) -> Result<(), NotDelivered> {
        Ok(())
    }

    async fn send_to_group(&self, _: &str, _: &str) -> Result<GroupDelivery, NotDelivered> {
        Ok(GroupDelivery {
            reached: Vec::new(),
            failed: Vec::new(),
        })
    }
}

impl SkillShelf for Nobody {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn open(&self, _: &str) -> Option<OpenedSkill> {
        None
    }
}

/// Returns every tool of this build. The tools that every session has come first.
pub(crate) fn every_tool(environment: &HostEnvironment) -> Registry {
    let mut registry = super::registry(environment);
    let nobody = Arc::new(Nobody);
    registry.register(Arc::new(haft_tools::plan_mode_respond()));
    registry.register(Arc::new(haft_tools::use_skill(
        Arc::<Nobody>::clone(&nobody) as _,
    )));
    registry.register(Arc::new(haft_tools::run_named_subagents(
        Arc::<Nobody>::clone(&nobody) as _,
    )));
    registry.register(Arc::new(haft_tools::talk_to(
        Arc::<Nobody>::clone(&nobody) as _
    )));
    registry.register(Arc::new(haft_tools::talk_to_group(nobody)));
    for tool in crate::wiring::described_tools(environment) {
        registry.register(tool);
    }
    registry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_that_need_something_are_known_as_well() {
        let registry = every_tool(&HostEnvironment::default());
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
