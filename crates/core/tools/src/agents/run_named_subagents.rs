//! `run_named_subagents`: assigns tasks to other agents and returns their answers.
//!
//! Registered only if agents are configured, and never for a sub-agent.

mod agent_report;
mod plan;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use haft_tool::{Assignment, SubAgents, UnknownAgent, WorkOrder};

use crate::prelude::*;

pub use agent_report::{format_ended_agents, parse_background_agents};
use plan::PlanText;

pub const RUN_SUBAGENTS: &str = "run_named_subagents";

static MANUAL: Manual = Manual::for_group(Group::Others);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunNamedSubagentsParameters {
    /// The YAML text.
    #[schemars(with = "String")]
    subagents: PlanText,
}

/// Defines the tool that assigns tasks to `agents`.
///
/// Starting agents changes no file, and each call of a sub-agent needs its own permission. But
/// sub-agents may write files, so this tool has [`Access::Write`]: its calls are recorded before
/// they begin and are never repeated.
pub fn define_tool(agents: Arc<dyn SubAgents>) -> impl Tool {
    ToolDefinition::new(
        RUN_SUBAGENTS,
        prompt!("run_named_subagents/prompt"),
        &MANUAL,
        Access::Write,
        |_| Intent::Nothing,
    )
    .with_function(move |context, parameters| {
        Box::pin(run_subagents(Arc::clone(&agents), context, parameters))
    })
}

/// Parses the tasks that a call of this tool assigns, to continue after the call was interrupted.
pub fn parse_assignments(arguments: &str) -> Option<(WorkOrder, Vec<Assignment>)> {
    let RunNamedSubagentsParameters { subagents } = serde_json::from_str(arguments).ok()?;
    subagents.parse_plan().ok()
}

async fn run_subagents(
    agents: Arc<dyn SubAgents>,
    context: &ToolContext,
    RunNamedSubagentsParameters { subagents }: RunNamedSubagentsParameters,
) -> CallResult {
    let (order, work) = subagents.parse_plan().map_err(|what| InvalidPlan {
        what,
        names: agents.agent_names(),
    })?;
    if order == WorkOrder::Background {
        return Ok(agent_report::build_started_envelope(
            &agents.start_assignments(context, work).await?,
            &context.tools,
        )
        .into());
    }
    let reports = agents.run_assignments(context, order, work).await?;
    let envelope =
        agent_report::build_reports_envelope(order, &reports, context.limits, &context.tools);
    let changes = reports
        .into_iter()
        .flat_map(|report| report.changes)
        .collect();
    Ok(ToolOutput {
        changes,
        ..envelope.into()
    })
}

#[derive(Debug, thiserror::Error)]
#[error("nothing was started: {what}. Agents are: {}", .names.join(", "))]
struct InvalidPlan {
    what: String,
    names: Vec<String>,
}

impl Coded for InvalidPlan {
    fn code(&self) -> &'static str {
        "invalid_plan"
    }
}

impl Coded for UnknownAgent {
    fn code(&self) -> &'static str {
        "unknown_agent"
    }
}
