//! Schedules the steps of a run: each step starts as soon as the steps it needs are done, several
//! in parallel.
//!
//! Invariant: a step starts only when every step it needs is recorded as done. A failed step keeps
//! only the steps that need it from starting.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use haft_agent::config::Config;
use haft_agent::{Agent, Approver, Places, Project};
use haft_engine::turn::TurnLimits;
use haft_engine::{RunReport, SharedBudget};
use haft_project::NamedItems;
use haft_project::agents::AgentDefinition;
use haft_types::{ConversationId, CostSum, Outcome, PermissionMode, TurnResult, Usage};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::error::WorkflowError;
use crate::observer::{EventStream, SharedStream, WorkflowObserver};
use crate::queued_approver::QueuedApprover;
use crate::record::{HeldRun, RunRecord, StepRecord};
use crate::step::{self, StepStart};
use crate::workflow::{Workflow, WorkflowStep};

/// The maximum number of steps that run in parallel.
const MAX_PARALLEL_STEPS: usize = 8;

/// A workflow to run, with everything that is needed to open the sessions of its steps.
pub struct WorkflowRun {
    /// The agent that opens a session for each step.
    pub agent: Agent,
    /// The folders in which haft stores its own files.
    pub places: Places,
    /// The configuration from which the agent was created.
    pub config: Config,
    /// The project in which the steps work.
    pub project: Project,
    /// The workflow whose steps are run.
    pub workflow: Workflow,
    /// The agents that the steps may refer to by name.
    pub agents: NamedItems<AgentDefinition>,
    /// The model of steps for which neither the workflow nor the agent's file names a model.
    pub model: Option<String>,
    /// The permission mode of the steps. `None` uses the configured mode.
    pub mode: Option<PermissionMode>,
    /// The limits of the run. The number of turns is limited for each step; cost and time are
    /// limited for all steps together.
    pub limits: TurnLimits,
    /// Answers the questions of steps, one at a time. If `None`, every question is declined.
    pub approver: Option<Arc<dyn Approver>>,
    /// The token with which the run is canceled.
    pub cancel: CancellationToken,
}

/// The result of a workflow run, with its final record.
pub struct WorkflowReport {
    /// The outcome, the answer, and the cost of the run. The front end fills in the message.
    pub result: TurnResult,
    /// The final record of the run, with the state of every step.
    pub record: RunRecord,
    /// The number of completed steps.
    pub completed: usize,
    /// True if none of the steps' requests was ever answered with a valid reply.
    pub never_valid: bool,
    /// The sequence number that the final event of the stream must have.
    pub seq: u64,
}

/// The state shared by all steps of a run.
pub(crate) struct SharedRun {
    run: WorkflowRun,
    /// The tokens and money that the steps have used so far.
    pub(crate) budget: SharedBudget,
    pub(crate) stream: SharedStream,
    /// A lock that a step holds while it creates or merges its copy of the project, so that only
    /// one step does this at a time.
    pub(crate) merging: tokio::sync::Mutex<()>,
    held: RefCell<HeldRun>,
}

impl Deref for SharedRun {
    type Target = WorkflowRun;

    fn deref(&self) -> &WorkflowRun {
        &self.run
    }
}

impl SharedRun {
    /// Changes the record of the run with `change`, then writes the record to disk.
    pub(crate) fn update_record(
        &self,
        change: impl FnOnce(&mut RunRecord),
    ) -> Result<(), WorkflowError> {
        self.held.borrow_mut().update_record(change)
    }

    /// Returns the id of the run, in the form that events use.
    pub(crate) fn run_id(&self) -> ConversationId {
        ConversationId::new(&self.held.borrow().record.id)
    }

    fn record(&self) -> RunRecord {
        self.held.borrow().record.clone()
    }
}

impl WorkflowRun {
    /// Runs all steps of a workflow that are not done yet. Must be called in a
    /// [`tokio::task::LocalSet`], because steps are not moved between threads.
    pub async fn run(
        mut self,
        held: HeldRun,
        observer: Box<dyn WorkflowObserver>,
    ) -> Result<WorkflowReport, WorkflowError> {
        let stream = EventStream::new_shared(observer);
        let held = RefCell::new(held);
        self.approver = self
            .approver
            .map(|approver| Arc::new(QueuedApprover::new(approver)) as _);
        let budget = SharedBudget::default();
        let merging = tokio::sync::Mutex::default();
        let shared = Rc::new(SharedRun {
            run: self,
            budget,
            stream,
            merging,
            held,
        });
        let mut progress = RunProgress::new(Instant::now());
        let mut running = JoinSet::new();
        loop {
            while running.len() < MAX_PARALLEL_STEPS
                && let Some(step) = progress.next_ready_step(&shared)
            {
                let begun = shared.prepare_step(&step, &progress);
                match begun {
                    Ok(start) => {
                        let shared = Rc::clone(&shared);
                        let name = step.name.clone();
                        running.spawn_local(
                            async move { (name, step::run_step(shared, start).await) },
                        );
                    }
                    Err(result) => {
                        progress.record_result(
                            &shared,
                            &step.name,
                            RunReport {
                                result: *result,
                                never_valid: false,
                            },
                        )?;
                    }
                }
            }
            let Some(ended) = running.join_next().await else {
                break;
            };
            // If a step panicked, the run ends here. The work so far is stored, and `--continue`
            // resumes the run.
            let (name, report) = ended?;
            progress.record_result(&shared, &name, report)?;
        }
        let record = shared.record();
        let (result, completed) = progress.summarize(&shared, &record);
        let seq = shared
            .stream
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next_seq();
        Ok(WorkflowReport {
            result,
            record,
            completed,
            never_valid: progress.never_valid,
            seq,
        })
    }
}

impl SharedRun {
    /// Renders the prompt of a step and checks the limits of the run. If the step cannot start, the
    /// `Err` value is the result to record for it.
    fn prepare_step(
        &self,
        step: &WorkflowStep,
        progress: &RunProgress,
    ) -> Result<StepStart, Box<TurnResult>> {
        let record = self.record();
        let done = record.steps.iter().filter(|(_, kept)| kept.is_done());
        let outputs: BTreeMap<_, _> = done
            .filter_map(|(name, kept)| Some((name.clone(), kept.result.as_ref()?.text.clone())))
            .collect();
        let limit = self
            .limits
            .budget_usd
            .filter(|limit| self.budget.usd() >= *limit);
        let time = self
            .limits
            .wall_time
            .map(|limit| limit.saturating_sub(progress.began.elapsed()));
        let used_up = match (limit, time) {
            (Some(limit), _) => Some(format!("the budget of ${limit} is used up")),
            (None, Some(Duration::ZERO)) => Some("the time is used up".to_owned()),
            (None, _) => None,
        };
        if let Some(why) = used_up {
            return Err(Box::new(TurnResult {
                outcome: Outcome::Exhausted,
                ..step::failed_result("limit", &why)
            }));
        }
        let prompt = self.workflow.render_prompt(step, &record.inputs, &outputs);
        let prompt = prompt
            .map_err(|problem| Box::new(step::failed_result("template", &problem.to_string())))?;
        let before = record.steps.get(&step.name).cloned().unwrap_or_default();
        Ok(StepStart {
            step: step.clone(),
            prompt,
            earlier: before,
            time,
        })
    }
}

/// The steps that this process has started in the run, and their total usage and cost.
struct RunProgress {
    began: Instant,
    /// The names of the steps that this process has started.
    started: BTreeSet<String>,
    turns: u32,
    usage: Usage,
    cost: CostSum,
    /// True if none of the steps' requests was ever answered with a valid reply.
    never_valid: bool,
    answered: bool,
}

impl RunProgress {
    fn new(began: Instant) -> Self {
        Self {
            began,
            started: BTreeSet::new(),
            turns: 0,
            usage: Usage::default(),
            cost: CostSum::zero(),
            never_valid: false,
            answered: false,
        }
    }

    /// Returns the next step that can start, and marks it as started.
    fn next_ready_step(&mut self, shared: &SharedRun) -> Option<WorkflowStep> {
        if shared.cancel.is_cancelled() {
            return None;
        }
        let record = shared.record();
        let done = |name: &String| record.steps.get(name).is_some_and(StepRecord::is_done);
        let ready = |step: &&WorkflowStep| {
            !done(&step.name) && !self.started.contains(&step.name) && step.needs.iter().all(done)
        };
        let step = shared.workflow.steps.iter().find(ready)?.clone();
        self.started.insert(step.name.clone());
        Some(step)
    }

    /// Records the result of an ended step.
    fn record_result(
        &mut self,
        shared: &SharedRun,
        name: &str,
        report: RunReport,
    ) -> Result<(), WorkflowError> {
        let RunReport {
            result,
            never_valid,
        } = report;
        self.turns += result.turns;
        self.usage += result.usage;
        // A step that sent no requests has no cost.
        if result.turns > 0 || result.cost.is_some() {
            self.cost.add(result.cost);
        }
        self.answered |= result.turns > 0;
        self.never_valid = (self.never_valid || never_valid) && !self.answered;
        shared.update_record(|record| {
            record.steps.entry(name.to_owned()).or_default().result = Some(result);
        })
    }

    /// Returns the result of the whole run and the number of completed steps.
    fn summarize(&self, shared: &SharedRun, record: &RunRecord) -> (TurnResult, usize) {
        let workflow = &shared.workflow;
        let done = |step: &&WorkflowStep| {
            record
                .steps
                .get(&step.name)
                .is_some_and(StepRecord::is_done)
        };
        let all = workflow.steps.len();
        let completed = workflow.steps.iter().filter(done).count();
        let outcomes: Vec<Outcome> = self
            .started
            .iter()
            .filter_map(|name| Some(record.steps.get(name)?.result.as_ref()?.outcome))
            .collect();
        let any = |outcome: Outcome| outcomes.contains(&outcome);
        let (outcome, code) = if completed == all {
            (Outcome::Completed, "completed")
        } else if shared.cancel.is_cancelled() || any(Outcome::Aborted) {
            (Outcome::Aborted, "cancelled")
        } else if any(Outcome::Failed) {
            (Outcome::Failed, "step_failed")
        } else if any(Outcome::Exhausted) {
            (Outcome::Exhausted, "step_exhausted")
        } else {
            (Outcome::Waiting, "step_waits")
        };
        let result = TurnResult {
            outcome,
            code: code.to_owned(),
            message: String::new(),
            text: combine_answers(workflow, record),
            turns: self.turns,
            duration_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            usage: self.usage,
            cost: self.cost.total(),
            structured_output: None,
            nothing_changed: false,
        };
        (result, completed)
    }
}

/// Returns the answer of the step that no other step needs. If there are several such steps,
/// returns all of their answers, with headings.
fn combine_answers(workflow: &Workflow, record: &RunRecord) -> String {
    let done = |step: &WorkflowStep| {
        let kept = record.steps.get(&step.name).filter(|kept| kept.is_done())?;
        Some((step.name.clone(), kept.result.as_ref()?.text.clone()))
    };
    let answers: Vec<_> = workflow.last_steps().filter_map(done).collect();
    match answers.as_slice() {
        [(_, text)] => text.clone(),
        several => {
            let section = |(name, text): &(String, String)| format!("## {name}\n\n{}", text.trim());
            several.iter().map(section).collect::<Vec<_>>().join("\n\n")
        }
    }
}
