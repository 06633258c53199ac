//! `run_named_subagents`: work for other agents, and their answers (SPEC 13.3, 14.6).
//!
//! Registered only where there are agents, and never for a sub-agent.

mod plan;
mod report;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use haft_tool::{
    Access, Assignment, Intent, SubAgents, Tool, ToolContext, ToolOutput, UnknownAgent, WorkOrder, parse_arguments,
};
use haft_types::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::{Coded, Failure, settle};
use crate::manual::{Group, Manual};
use crate::spec_of;

use plan::Written;

/// The name of the tool.
pub const RUN_SUBAGENTS: &str = "run_named_subagents";

static MANUAL: Manual = Manual {
    example_of: "Having two things looked into at the same time",
    example: r#"{"subagents": "mode: parallel\nsubagents:\n  - name: reviewer\n    task: Review src/parser.rs for mistakes in error handling.\n  - name: tester\n    task: Say which public functions of src/parser.rs no test calls."}"#,
    ..Manual::of(Group::Others)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The agents and their tasks, as YAML text.
    #[schemars(with = "String")]
    subagents: Written,
}

/// The tool.
pub struct RunNamedSubagents {
    spec: ToolSpec,
    agents: Arc<dyn SubAgents>,
}

impl RunNamedSubagents {
    /// The tool that gives work to these agents.
    pub fn new(agents: Arc<dyn SubAgents>) -> Self {
        Self { spec: spec_of::<Parameters>(RUN_SUBAGENTS, include_str!("run_named_subagents/prompt.md")), agents }
    }
}

/// The work a call of the tool gives out, for those who have to know after the call was interrupted.
pub fn assignments_of(arguments: &str) -> Option<(WorkOrder, Vec<Assignment>)> {
    let Parameters { subagents } = serde_json::from_str(arguments).ok()?;
    subagents.read().ok()
}

#[async_trait]
impl Tool for RunNamedSubagents {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    /// Whatever the agents may do: it is noted before it begins, and it never begins twice.
    fn access(&self) -> Access {
        Access::Write
    }

    /// Starting them changes nothing. Each of their own calls is permitted for itself.
    fn intent(&self, _arguments: &Value) -> Intent {
        Intent::Nothing
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        settle(self.run(context, arguments).await)
    }
}

impl RunNamedSubagents {
    async fn run(&self, context: &ToolContext, arguments: Value) -> Result<ToolOutput, Failure> {
        let Parameters { subagents } = parse_arguments(RUN_SUBAGENTS, arguments)?;
        let (order, work) = subagents.read().map_err(|what| BadPlan { what, names: self.agents.names() })?;
        let reports = self.agents.run(context, order, work).await?;
        let envelope = report::envelope(order, &reports, context.limits);
        let changes = reports.into_iter().flat_map(|report| report.changes).collect();
        Ok(ToolOutput { changes, ..envelope.into() })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("nothing was started: {what}. Agents are: {}", .names.join(", "))]
struct BadPlan {
    what: String,
    names: Vec<String>,
}

impl Coded for BadPlan {
    fn code(&self) -> &'static str {
        "invalid_plan"
    }
}

impl Coded for UnknownAgent {
    fn code(&self) -> &'static str {
        "unknown_agent"
    }
}
