//! `run_named_subagents`: assigns tasks to other agents and returns their answers.
//!
//! Registered only if agents are configured, and never for a sub-agent.

mod plan;
mod report;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use haft_tool::{Assignment, SubAgents, UnknownAgent, WorkOrder};

use crate::prelude::*;

use plan::PlanText;
pub use report::{ended_text, started_in_background};

pub const RUN_SUBAGENTS: &str = "run_named_subagents";

static MANUAL: Manual = Manual::of(Group::Others);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunNamedSubagentsParameters {
    /// The YAML text.
    #[schemars(with = "String")]
    subagents: PlanText,
}

/// Defines the tool that assigns tasks to `agents`.
///
/// Starting agents changes no file, and each call of a sub-agent asks for its own permission. But
/// sub-agents may write, so the call has [`Access::Write`]: it is recorded before it begins and
/// never repeated.
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

/// Parses the tasks that a call of the tool assigns, for use after the call was interrupted.
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
