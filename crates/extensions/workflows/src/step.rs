//! One step: a session of its own, run to its outcome.

use std::error::Error;
use std::rc::Rc;
use std::sync::PoisonError;
use std::time::Duration;

use haft_agent::{OwnChoice, RunPlan, RunStep, SetupError};
use haft_engine::turn::TurnLimits;
use haft_engine::{OpenError, Roles, RunReport, Session, Which};
use haft_project::NamedItems;
use haft_project::agents::AgentDefinition;
use haft_types::{ConversationId, Cost, Outcome, TurnResult, Usage};

use crate::error::WorkflowError;
use crate::observer::StepEvents;
use crate::record::StepRecord;
use crate::schedule::SharedRun;
use crate::workflow::WorkflowStep;

/// What a step begins with.
pub(crate) struct StepStart {
    pub(crate) step: WorkflowStep,
    pub(crate) prompt: String,
    /// How far it came before.
    pub(crate) before: StepRecord,
    pub(crate) time: Option<Duration>,
}

/// Why a step did not begin.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum StepError {
    Setup(#[from] SetupError),
    Record(#[from] WorkflowError),
}

/// Runs a step. What keeps it from beginning is its failure and nobody else's.
pub(crate) async fn run(shared: Rc<SharedRun>, start: StepStart) -> RunReport {
    match Box::pin(open_and_run(&shared, start)).await {
        Ok(report) => report,
        Err(error) => RunReport { result: failed("not_begun", &with_causes(&error)), never_valid: false },
    }
}

/// The result of a step that did not get as far as a session.
pub(crate) fn failed(code: &str, message: &str) -> TurnResult {
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

fn with_causes(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

async fn open_and_run(shared: &SharedRun, start: StepStart) -> Result<RunReport, StepError> {
    let StepStart { step, prompt, before, time } = start;
    let (mut session, input) = open(shared, &step, &prompt, before.conversation.as_ref(), time).await?;
    let conversation = session.conversation().id.clone();
    shared.note(|record| {
        let kept = record.steps.entry(step.name.clone()).or_default();
        *kept = StepRecord { conversation: Some(conversation), result: None };
    })?;
    let mut events = StepEvents {
        stream: shared.stream.clone(),
        step: step.name.clone(),
        run: shared.run_id(),
        model: String::new(),
        task: prompt,
    };
    let report = session.run(input, &mut events, &shared.cancel.child_token()).await;
    for message in session.close().await {
        shared.stream.lock().unwrap_or_else(PoisonError::into_inner).closing_message(&message);
    }
    Ok(report)
}

/// Opens the conversation the step has, or a new one, and says what its input is.
async fn open(
    shared: &SharedRun,
    step: &WorkflowStep,
    prompt: &str,
    known: Option<&ConversationId>,
    time: Option<Duration>,
) -> Result<(Session, Option<String>), SetupError> {
    if let Some(known) = known {
        let plan = plan(shared, step, Which::Named(known.as_str().to_owned()), time)?;
        match Box::pin(shared.agent.open(plan)).await {
            Ok(session) => return Ok((session, None)),
            // It was killed before its first message was stored.
            Err(SetupError::Open(OpenError::Unknown(_))) => {}
            Err(error) => return Err(error),
        }
    }
    let title = format!("{}: {}", shared.workflow.name, step.name);
    let session = Box::pin(shared.agent.open(plan(shared, step, Which::New { title }, time)?)).await?;
    Ok((session, Some(prompt.to_owned())))
}

impl WorkflowStep {
    /// The model it names, or its agent, or what is given for the others; none where the configuration decides.
    pub fn model(&self, agents: &NamedItems<AgentDefinition>, otherwise: Option<&str>) -> Option<String> {
        let of_agent = || agents.get(self.agent.as_deref()?)?.model.clone();
        self.model.clone().or_else(of_agent).or_else(|| otherwise.map(str::to_owned))
    }
}

/// A step is run as a front end runs a task.
fn plan(shared: &SharedRun, step: &WorkflowStep, which: Which, time: Option<Duration>) -> Result<RunPlan, SetupError> {
    let config = &shared.config;
    let own = step.model(&shared.agents, shared.model.as_deref());
    let chosen = OwnChoice { model: own.is_some(), tools: false };
    let model = own.or_else(|| haft_agent::configured_model(config)).ok_or(SetupError::NoModel)?;
    let roles = &config.roles;
    let roles = Roles { main: roles.read_main()?, system_prompt: roles.read_system_prompt()?, ..Roles::default() };
    let configured = RunPlan::of_config(config, model, shared.project.clone(), which);
    let mut plan = RunPlan {
        roles,
        mode: shared.mode.unwrap_or(configured.mode),
        limits: TurnLimits { wall_time: time, ..shared.limits },
        step: Some(RunStep { name: step.name.clone(), budget: shared.budget.clone() }),
        ..configured
    };
    if let Some(agent) = &step.agent {
        plan.take_role(&shared.places, agent, chosen)?;
    }
    Ok(plan)
}
