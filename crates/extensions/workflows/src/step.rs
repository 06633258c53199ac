//! Runs one step of a workflow as a session.

use std::error::Error;
use std::rc::Rc;
use std::sync::PoisonError;
use std::time::Duration;

use haft_agent::{ExplicitChoices, RunPlan, RunStep, SetupError};
use haft_engine::turn::TurnLimits;
use haft_engine::{ConversationChoice, OpenError, RunReport, Session};
use haft_project::NamedItems;
use haft_project::agents::AgentDefinition;
use haft_tools::MergeReport;
use haft_types::{
    ConversationId, Cost, CostSum, Field, FieldKind, Form, FormOutcome, Outcome, TurnResult, Usage,
};

use crate::error::WorkflowError;
use crate::observer::StepEvents;
use crate::record::StepRecord;
use crate::schedule::SharedRun;
use crate::work_copy::WorkCopy;
use crate::workflow::WorkflowStep;

/// The data that is needed to start a step: its definition, its rendered prompt, and its earlier
/// state.
pub(crate) struct StepStart {
    pub(crate) step: WorkflowStep,
    pub(crate) prompt: String,
    /// The state that an earlier process recorded when it ran the step. Empty if the step runs for
    /// the first time.
    pub(crate) earlier: StepRecord,
    pub(crate) time: Option<Duration>,
}

/// The reason why a step could not be started.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Record(#[from] WorkflowError),
    #[error("{0}")]
    Copy(String),
}

/// Runs a step. If the step cannot start, the error becomes its result, and other steps are not
/// affected.
pub(crate) async fn run_step(shared: Rc<SharedRun>, start: StepStart) -> RunReport {
    match Box::pin(open_and_run(&shared, start)).await {
        Ok(report) => report,
        Err(error) => {
            let of_store = matches!(
                &error,
                StepError::Setup(SetupError::Store(_) | SetupError::Open(OpenError::Store(_)))
            );
            let code = if of_store {
                TurnResult::STORE_FAILURE_CODE
            } else {
                "not_begun"
            };
            RunReport {
                result: failed_result(code, &format_error_chain(&error)),
                never_valid: false,
            }
        }
    }
}

/// Returns the result of a step that failed before its session was opened.
pub(crate) fn failed_result(code: &str, message: &str) -> TurnResult {
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
        nothing_changed: false,
    }
}

fn format_error_chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

async fn open_and_run(shared: &SharedRun, start: StepStart) -> Result<RunReport, StepError> {
    let StepStart {
        step,
        prompt,
        earlier: before,
        time,
    } = start;
    let (mut session, copy, input) =
        open_session(shared, &step, &prompt, before.conversation.as_ref(), time).await?;
    let conversation = session.conversation().id.clone();
    shared.update_record(|record| {
        let kept = record.steps.entry(step.name.clone()).or_default();
        *kept = StepRecord {
            conversation: Some(conversation),
            result: None,
        };
    })?;
    let mut events = StepEvents {
        stream: shared.stream.clone(),
        step: step.name.clone(),
        run: shared.run_id(),
        model: String::new(),
        task: prompt,
    };
    let mut report = run_with_questions(shared, &step, &mut session, input, &mut events).await;
    if let Some(copy) = copy {
        let _alone = shared.merging.lock().await;
        let merged = copy.merge_changes(&session, report.result.outcome).await;
        events.send_merged_changes(&merged, &session.conversation().id);
        add_merge_report(&mut report.result, merged);
    }
    for message in session.close().await {
        shared
            .stream
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .send_closing_message(&message);
    }
    Ok(report)
}

/// Runs the session of a step. Whenever the session ends with a question and the approver answers
/// it, the session is run again with the answer.
async fn run_with_questions(
    shared: &SharedRun,
    step: &WorkflowStep,
    session: &mut Session,
    mut input: Option<String>,
    events: &mut StepEvents,
) -> RunReport {
    let mut earlier: Option<RunReport> = None;
    loop {
        let report = session
            .run(input.take(), events, &shared.cancel.child_token())
            .await;
        let report = match earlier.take() {
            Some(before) => add_usage(&before.result, report),
            None => report,
        };
        let asks = report.result.outcome == Outcome::Waiting && report.result.code == "question";
        let Some(approver) = shared.approver.as_ref().filter(|_| asks) else {
            return report;
        };
        let form = build_question_form(&step.name, &report.result.text);
        let answered = tokio::select! {
            () = shared.cancel.cancelled() => FormOutcome::Canceled,
            answered = approver.fill_form(&form) => answered,
        };
        let FormOutcome::Accepted(mut values) = answered else {
            return report;
        };
        let Some(serde_json::Value::String(answer)) = values.remove(ANSWER_FIELD) else {
            return report;
        };
        input = Some(answer);
        earlier = Some(report);
    }
}

/// The name of the form field that holds the answer to a question.
const ANSWER_FIELD: &str = "answer";

fn build_question_form(step: &str, text: &str) -> Form {
    let field = Field {
        name: ANSWER_FIELD.to_owned(),
        title: String::new(),
        description: String::new(),
        kind: FieldKind::Text,
        required: true,
        default: None,
    };
    Form {
        requester: format!("the step `{step}`"),
        message: text.to_owned(),
        fields: vec![field],
    }
}

/// Adds the usage, cost, and duration of an earlier run of the step to `report`.
fn add_usage(earlier: &TurnResult, mut report: RunReport) -> RunReport {
    let result = &mut report.result;
    result.turns += earlier.turns;
    result.duration_ms += earlier.duration_ms;
    result.usage += earlier.usage;
    let mut cost = CostSum::zero();
    cost.add(earlier.cost);
    cost.add(result.cost);
    result.cost = cost.total();
    report
}

/// Adds the outcome of merging the step's copy to the result of the step. A conflict turns the
/// result into a failure.
fn add_merge_report(result: &mut TurnResult, merged: MergeReport) {
    if merged.conflict {
        (result.outcome, result.code) = (Outcome::Failed, "not_merged".to_owned());
        result.message = merged.text;
    } else if result.outcome == Outcome::Completed {
        result.text = format!("{}\n\n{}", result.text.trim_end(), merged.text);
    } else {
        result.message = format!("{} {}", result.message.trim_end(), merged.text);
    }
}

/// Opens a session with the existing conversation of the step, or with a new one. For a new
/// conversation, the prompt is returned as the session's input; for an existing one, the input is
/// `None`.
async fn open_session(
    shared: &SharedRun,
    step: &WorkflowStep,
    prompt: &str,
    known: Option<&ConversationId>,
    time: Option<Duration>,
) -> Result<(Session, Option<WorkCopy>, Option<String>), StepError> {
    if let Some(known) = known {
        let plan = build_plan(
            shared,
            step,
            ConversationChoice::Named(known.as_str().to_owned()),
            time,
        )?;
        match open_planned_session(shared, step, plan).await {
            Ok((session, copy)) => return Ok((session, copy, None)),
            // The earlier process was killed before the first message of the conversation was
            // stored.
            Err(StepError::Setup(SetupError::Open(OpenError::Unknown(_)))) => {}
            Err(error) => return Err(error),
        }
    }
    let title = format!("{}: {}", shared.workflow.name, step.name);
    let (session, copy) = open_planned_session(
        shared,
        step,
        build_plan(shared, step, ConversationChoice::New { title }, time)?,
    )
    .await?;
    Ok((session, copy, Some(prompt.to_owned())))
}

/// Opens the session of a step in the project, or in a copy of the project if the step uses one.
async fn open_planned_session(
    shared: &SharedRun,
    step: &WorkflowStep,
    plan: RunPlan,
) -> Result<(Session, Option<WorkCopy>), StepError> {
    if !step.uses_copy(&shared.agents) {
        return Ok((Box::pin(shared.agent.open(plan)).await?, None));
    }
    let copy = ConversationId::new(format!("{}-{}", shared.run_id(), step.name));
    // The lock is needed because git fails if another process has locked the repository.
    let _alone = shared.merging.lock().await;
    let (mut config, mut services, which) = Box::pin(shared.agent.prepare_session(plan)).await?;
    let copy = WorkCopy::open(&copy, &mut config, &mut services)
        .await
        .map_err(StepError::Copy)?;
    let session = Box::pin(Session::open(config, services, which))
        .await
        .map_err(SetupError::from)?;
    Ok((session, Some(copy)))
}

impl WorkflowStep {
    /// True if the step works in a copy of the project.
    pub fn uses_copy(&self, agents: &NamedItems<AgentDefinition>) -> bool {
        let of_agent = || {
            agents
                .get(self.agent.as_deref()?)
                .map(|agent| agent.worktree)
        };
        self.worktree.or_else(of_agent).unwrap_or(false)
    }

    /// Returns the model that the step or its agent chooses, else `default`. If the result is
    /// `None`, the configuration chooses the model.
    pub fn choose_model(
        &self,
        agents: &NamedItems<AgentDefinition>,
        default: Option<&str>,
    ) -> Option<String> {
        let of_agent = || agents.get(self.agent.as_deref()?)?.model.clone();
        self.model
            .clone()
            .or_else(of_agent)
            .or_else(|| default.map(str::to_owned))
    }
}

/// Builds the plan from which the session of a step is opened, as a front end does for its own
/// sessions.
fn build_plan(
    shared: &SharedRun,
    step: &WorkflowStep,
    which: ConversationChoice,
    time: Option<Duration>,
) -> Result<RunPlan, SetupError> {
    let config = &shared.config;
    let own = step.choose_model(&shared.agents, shared.model.as_deref());
    let chosen = ExplicitChoices {
        model: own.is_some(),
        tools: false,
    };
    let model = own
        .or_else(|| haft_agent::configured_model(config))
        .ok_or(SetupError::NoModel)?;
    let roles = config.roles.read()?;
    let mut plan = RunPlan::from_config(config, model, shared.project.clone(), which);
    plan.prompt.roles = roles;
    plan.mode = shared.mode.unwrap_or(plan.mode);
    plan.task.approver.clone_from(&shared.approver);
    plan.task.limits = TurnLimits {
        wall_time: time,
        ..shared.limits
    };
    plan.step = Some(RunStep {
        name: step.name.clone(),
        budget: shared.budget.clone(),
    });
    if let Some(agent) = &step.agent {
        plan.apply_agent_role(&shared.places, agent, chosen)?;
    }
    Ok(plan)
}
