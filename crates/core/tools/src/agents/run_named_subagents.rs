//! `run_named_subagents`: work for other agents, and their answers.
//!
//! Registered only where there are agents, and never for a sub-agent.

mod plan;
mod report;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use haft_tool::{Assignment, SubAgents, UnknownAgent, WorkOrder};

use crate::prelude::*;

use plan::PlanText;
pub use report::{ended_text, started_in_background};

/// The name of the tool.
pub const RUN_SUBAGENTS: &str = "run_named_subagents";

static MANUAL: Manual = Manual::of(Group::Others);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunNamedSubagentsParameters {
    /// The YAML text.
    #[schemars(with = "String")]
    subagents: PlanText,
}

/// The tool that gives work to these agents. Starting them changes nothing, and each of their own
/// calls is permitted for itself; but since it may do whatever they may do, it is noted before it
/// begins, and it never begins twice.
pub fn tool(agents: Arc<dyn SubAgents>) -> impl Tool {
    ToolDefinition::new(
        RUN_SUBAGENTS,
        prompt!("run_named_subagents/prompt"),
        &MANUAL,
        Access::Write,
        |_| Intent::Nothing,
    )
    .runs(move |context, parameters| Box::pin(run(Arc::clone(&agents), context, parameters)))
}

/// The work a call of the tool gives out, for those who have to know after the call was
/// interrupted.
pub fn assignments_of(arguments: &str) -> Option<(WorkOrder, Vec<Assignment>)> {
    let RunNamedSubagentsParameters { subagents } = serde_json::from_str(arguments).ok()?;
    subagents.read().ok()
}

async fn run(
    agents: Arc<dyn SubAgents>,
    context: &ToolContext,
    RunNamedSubagentsParameters { subagents }: RunNamedSubagentsParameters,
) -> CallResult {
    let (order, work) = subagents.read().map_err(|what| BadPlan {
        what,
        names: agents.names(),
    })?;
    if order == WorkOrder::Background {
        return Ok(report::started(&agents.start(context, work).await?, &context.tools).into());
    }
    let reports = agents.run(context, order, work).await?;
    let envelope = report::envelope(order, &reports, context.limits, &context.tools);
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
