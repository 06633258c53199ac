//! One step: a session of its own, run to its outcome.

use std::rc::Rc;
use std::time::Duration;

use haft_agent::{RunPlan, RunStep, SetupError};
use haft_engine::{OpenError, RunReport, Session};
use haft_project::Found;
use haft_project::agents::Agent;
use haft_project::workflows::Step;
use haft_types::{ConversationId, Cost, Outcome, TurnResult, Usage};

use super::drive::Shared;
use super::record::StepRecord;
use super::told::StepEvents;
use crate::cli::RunArgs;
use crate::commands::run::{close, lower, take_role};
use crate::commands::workflows::WorkflowRunArgs;
use crate::wiring;

/// What a step begins with.
pub(super) struct Start {
    pub(super) step: Step,
    pub(super) prompt: String,
    /// How far it came before.
    pub(super) before: StepRecord,
    pub(super) time: Option<Duration>,
}

/// Runs a step. What keeps it from beginning is its failure and nobody else's.
pub(super) async fn run(shared: Rc<Shared>, start: Start) -> RunReport {
    match Box::pin(open_and_run(&shared, start)).await {
        Ok(report) => report,
        Err(error) => RunReport { result: failed("not_begun", &format!("{error:#}")), never_valid: false },
    }
}

/// The result of a step that did not get as far as a session.
pub(super) fn failed(code: &str, message: &str) -> TurnResult {
    TurnResult {
        outcome: Outcome::Failed,
        code: code.to_owned(),
        message: message.to_owned(),
        text: String::new(),
        turns: 0,
        duration_ms: 0,
        usage: Usage::default(),
        cost: Some(Cost::default()),
        structured_output: None,
    }
}

async fn open_and_run(shared: &Shared, start: Start) -> anyhow::Result<RunReport> {
    let Start { step, prompt, before, time } = start;
    let (mut session, input) = open(shared, &step, &prompt, before.conversation.as_ref(), time).await?;
    let conversation = session.conversation().id.clone();
    shared.note(|record| {
        let kept = record.steps.entry(step.name.clone()).or_default();
        *kept = StepRecord { conversation: Some(conversation), result: None };
    })?;
    let mut events = StepEvents {
        told: shared.told.clone(),
        step: step.name.clone(),
        run: shared.run_id(),
        model: String::new(),
        task: prompt,
    };
    let report = session.run(input, &mut events, &shared.cancel.child_token()).await;
    close(&mut session).await;
    Ok(report)
}

/// Opens the conversation the step has, or a new one, and says what it is to be told.
async fn open(
    shared: &Shared,
    step: &Step,
    prompt: &str,
    known: Option<&ConversationId>,
    time: Option<Duration>,
) -> anyhow::Result<(Session, Option<String>)> {
    if let Some(known) = known {
        let plan = plan(shared, step, Some(known), time)?;
        match Box::pin(wiring::open_session(&shared.places, shared.config.clone(), plan)).await {
            Ok(session) => return Ok((session, None)),
            // It was killed before its first message was stored.
            Err(SetupError::Open(OpenError::Unknown(_))) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let plan = plan(shared, step, None, time)?;
    let session = Box::pin(wiring::open_session(&shared.places, shared.config.clone(), plan)).await?;
    Ok((session, Some(prompt.to_owned())))
}

/// The model a step names, or its agent, or the command line; none where the configuration decides.
pub(super) fn model(step: &Step, agents: &Found<Agent>, args: &WorkflowRunArgs) -> Option<String> {
    let of_agent = || agents.get(step.agent.as_deref()?)?.model.clone();
    step.model.clone().or_else(of_agent).or_else(|| args.model.clone())
}

/// A step is run as `haft run` would run it.
fn plan(
    shared: &Shared,
    step: &Step,
    known: Option<&ConversationId>,
    time: Option<Duration>,
) -> anyhow::Result<RunPlan> {
    let args = RunArgs {
        agent: step.agent.clone(),
        model: model(step, &shared.agents, &shared.args),
        permission_mode: shared.args.permission_mode,
        max_turns: shared.args.max_turns,
        max_budget_usd: shared.args.max_budget_usd,
        max_wall_time: time,
        cwd: shared.args.cwd.clone(),
        resume: known.map(|id| id.as_str().to_owned()),
        ..RunArgs::default()
    };
    let title = format!("{}: {}", shared.workflow.name, step.name);
    let mut plan = lower(&args, &shared.config, Some(&title))?;
    take_role(&mut plan, &args, &shared.places)?;
    plan.step = Some(RunStep { name: step.name.clone(), budget: shared.budget.clone() });
    Ok(plan)
}
