//! Runs the steps: each as soon as what it needs is done, several at a time.
//!
//! Invariant: a step begins only when every step it needs is noted as done. One that fails keeps
//! those that need it from beginning, and no others.

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

use crate::asking::QueuedApprover;
use crate::error::WorkflowError;
use crate::observer::{EventStream, SharedStream, WorkflowObserver};
use crate::record::{HeldRun, RunRecord, StepRecord};
use crate::step::{self, StepStart};
use crate::workflow::{Workflow, WorkflowStep};

/// So many steps run at the same time.
const AT_ONCE: usize = 8;

/// A workflow that is about to be run, with everything its steps are opened with.
pub struct WorkflowRun {
    /// Opens the sessions.
    pub agent: Agent,
    /// Where haft keeps its files.
    pub places: Places,
    /// What the agent was made from.
    pub config: Config,
    /// Where the steps work.
    pub project: Project,
    /// The steps.
    pub workflow: Workflow,
    /// Those that steps may name.
    pub agents: NamedItems<AgentDefinition>,
    /// The model of steps that name none, nor have an agent that does.
    pub model: Option<String>,
    /// How much may happen without asking, where the configuration does not decide.
    pub mode: Option<PermissionMode>,
    /// Replies are limited for each step; money and time for all of them together.
    pub limits: TurnLimits,
    /// Who is asked, one question at a time; without one, asking means no.
    pub approver: Option<Arc<dyn Approver>>,
    /// Ends the run.
    pub cancel: CancellationToken,
}

/// What came of a run.
pub struct WorkflowReport {
    /// Its outcome, answer and cost. The message is left for the front end to write.
    pub result: TurnResult,
    /// How every step stands.
    pub record: RunRecord,
    /// How many of its steps are done.
    pub completed: usize,
    /// Whether no request of any step ever got a valid reply.
    pub never_valid: bool,
    /// The number of the event that ends the stream.
    pub seq: u64,
}

/// What the steps of a run have in common.
pub(crate) struct SharedRun {
    run: WorkflowRun,
    /// What all steps have used.
    pub(crate) budget: SharedBudget,
    pub(crate) stream: SharedStream,
    /// Held while a copy of the project is made or merged.
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
    /// Changes what is kept of the run.
    pub(crate) fn note(&self, change: impl FnOnce(&mut RunRecord)) -> Result<(), WorkflowError> {
        self.held.borrow_mut().note(change)
    }

    /// By which events know the run.
    pub(crate) fn run_id(&self) -> ConversationId {
        ConversationId::new(&self.held.borrow().record.id)
    }

    fn record(&self) -> RunRecord {
        self.held.borrow().record.clone()
    }
}

impl WorkflowRun {
    /// Runs what is not done yet. It must be called in a [`tokio::task::LocalSet`]: steps are not
    /// moved between threads.
    pub async fn run(
        mut self,
        held: HeldRun,
        observer: Box<dyn WorkflowObserver>,
    ) -> Result<WorkflowReport, WorkflowError> {
        let stream = EventStream::shared(observer);
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
            while running.len() < AT_ONCE
                && let Some(step) = progress.next(&shared)
            {
                let begun = shared.begin(&step, &progress);
                match begun {
                    Ok(start) => {
                        let shared = Rc::clone(&shared);
                        let name = step.name.clone();
                        running.spawn_local(async move { (name, step::run(shared, start).await) });
                    }
                    Err(result) => {
                        progress.end(
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
            // A step that panics ends the run; what it did is stored, and `--continue` goes on with
            // it.
            let (name, report) = ended?;
            progress.end(&shared, &name, report)?;
        }
        let record = shared.record();
        let (result, completed) = progress.result(&shared, &record);
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
    /// What a step begins with, or how it ended before it could.
    fn begin(
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
                ..step::failed("limit", &why)
            }));
        }
        let prompt = self.workflow.prompt(step, &record.inputs, &outputs);
        let prompt =
            prompt.map_err(|problem| Box::new(step::failed("template", &problem.to_string())))?;
        let before = record.steps.get(&step.name).cloned().unwrap_or_default();
        Ok(StepStart {
            step: step.clone(),
            prompt,
            before,
            time,
        })
    }
}

/// How far this process has come.
struct RunProgress {
    began: Instant,
    /// The steps it has begun.
    begun: BTreeSet<String>,
    turns: u32,
    usage: Usage,
    cost: CostSum,
    /// Whether no request of any step ever got a valid reply.
    never_valid: bool,
    answered: bool,
}

impl RunProgress {
    fn new(began: Instant) -> Self {
        Self {
            began,
            begun: BTreeSet::new(),
            turns: 0,
            usage: Usage::default(),
            cost: CostSum::zero(),
            never_valid: false,
            answered: false,
        }
    }

    /// The next step that can begin.
    fn next(&mut self, shared: &SharedRun) -> Option<WorkflowStep> {
        if shared.cancel.is_cancelled() {
            return None;
        }
        let record = shared.record();
        let done = |name: &String| record.steps.get(name).is_some_and(StepRecord::is_done);
        let ready = |step: &&WorkflowStep| {
            !done(&step.name) && !self.begun.contains(&step.name) && step.needs.iter().all(done)
        };
        let step = shared.workflow.steps.iter().find(ready)?.clone();
        self.begun.insert(step.name.clone());
        Some(step)
    }

    /// A step is over.
    fn end(
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
        // A step that asked nobody cost nothing.
        if result.turns > 0 || result.cost.is_some() {
            self.cost.add(result.cost);
        }
        self.answered |= result.turns > 0;
        self.never_valid = (self.never_valid || never_valid) && !self.answered;
        shared.note(|record| record.steps.entry(name.to_owned()).or_default().result = Some(result))
    }

    /// What came of all of it, and how many steps are done.
    fn result(&self, shared: &SharedRun, record: &RunRecord) -> (TurnResult, usize) {
        let workflow = &shared.workflow;
        let done = |step: &&WorkflowStep| {
            record
                .steps
                .get(&step.name)
                .is_some_and(StepRecord::is_done)
        };
        let all = workflow.steps.len();
        let completed = workflow.steps.iter().filter(done).count();
        let results = || {
            self.begun
                .iter()
                .filter_map(|name| record.steps.get(name)?.result.as_ref())
        };
        let any = |outcome: Outcome| results().any(|result| result.outcome == outcome);
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
            text: answer(workflow, record),
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

/// The answer of the last step; of several, each under its name.
fn answer(workflow: &Workflow, record: &RunRecord) -> String {
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
