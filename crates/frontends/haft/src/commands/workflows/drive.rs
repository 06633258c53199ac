//! Runs the steps: each as soon as what it needs is done, several at a time.
//!
//! Invariant: a step begins only when every step it needs is noted as done. One that fails keeps those that need it from
//! beginning, and no others.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_agent::Places;
use haft_agent::config::Config;
use haft_engine::{RunReport, SharedBudget};
use haft_project::Found;
use haft_project::agents::Agent;
use haft_project::workflows::{Step, Workflow};
use haft_types::{ConversationId, Cost, Outcome, TurnResult, Usage};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::record::{Held, Record, StepRecord};
use super::step::{self, Start};
use super::told::Told;
use crate::commands::workflows::WorkflowRunArgs;
use crate::exit::Exit;

/// So many steps run at the same time.
const AT_ONCE: usize = 8;

/// A workflow that is about to be run.
pub(super) struct Drive {
    pub(super) places: Places,
    pub(super) config: Config,
    pub(super) args: WorkflowRunArgs,
    pub(super) workflow: Workflow,
    pub(super) agents: Found<Agent>,
    /// What all steps have used.
    pub(super) budget: SharedBudget,
    pub(super) told: Arc<Mutex<Told>>,
    pub(super) cancel: CancellationToken,
}

/// What the steps of a run have in common.
pub(super) struct Shared {
    drive: Drive,
    held: RefCell<Held>,
}

impl Deref for Shared {
    type Target = Drive;

    fn deref(&self) -> &Drive {
        &self.drive
    }
}

impl Shared {
    /// Changes what is kept of the run.
    pub(super) fn note(&self, change: impl FnOnce(&mut Record)) -> anyhow::Result<()> {
        self.held.borrow_mut().note(change)
    }

    /// By which events know the run.
    pub(super) fn run_id(&self) -> ConversationId {
        ConversationId::new(&self.held.borrow().record.id)
    }

    fn record(&self) -> Record {
        self.held.borrow().record.clone()
    }
}

impl Drive {
    /// Runs what is not done yet.
    pub(super) async fn run(self, held: Held) -> anyhow::Result<Exit> {
        let began = Instant::now();
        let shared = Rc::new(Shared { drive: self, held: RefCell::new(held) });
        let mut course = Course::new(began);
        let mut running = JoinSet::new();
        loop {
            while running.len() < AT_ONCE
                && let Some(step) = course.next(&shared)
            {
                let begun = shared.begin(&step, &course);
                match begun {
                    Ok(start) => {
                        let (shared, name) = (Rc::clone(&shared), step.name.clone());
                        running.spawn_local(async move { (name, step::run(shared, start).await) });
                    }
                    Err(result) => {
                        course.end(&shared, &step.name, RunReport { result: *result, never_valid: false })?;
                    }
                }
            }
            let Some(ended) = running.join_next().await else { break };
            // A step that panics ends the run; what it did is stored, and `--continue` goes on with it.
            let (name, report) = ended?;
            course.end(&shared, &name, report)?;
        }
        let record = shared.record();
        let result = course.result(&shared, &record);
        let exit = if course.never_valid { Exit::Usage } else { result.outcome.into() };
        shared.told.lock().unwrap_or_else(PoisonError::into_inner).result(result, &shared.workflow, &record);
        Ok(exit)
    }
}

impl Shared {
    /// What a step begins with, or how it ended before it could.
    fn begin(&self, step: &Step, course: &Course) -> Result<Start, Box<TurnResult>> {
        let record = self.record();
        let done = record.steps.iter().filter(|(_, kept)| kept.is_done());
        let outputs: BTreeMap<_, _> =
            done.filter_map(|(name, kept)| Some((name.clone(), kept.result.as_ref()?.text.clone()))).collect();
        let limit = self.args.max_budget_usd.filter(|limit| self.budget.usd() >= *limit);
        let time = self.args.max_wall_time.map(|limit| limit.saturating_sub(course.began.elapsed()));
        let used_up = match (limit, time) {
            (Some(limit), _) => Some(format!("the budget of ${limit} is used up")),
            (None, Some(Duration::ZERO)) => Some("the time is used up".to_owned()),
            (None, _) => None,
        };
        if let Some(why) = used_up {
            return Err(Box::new(TurnResult { outcome: Outcome::Exhausted, ..step::failed("limit", &why) }));
        }
        let prompt = self.workflow.prompt(step, &record.inputs, &outputs);
        let prompt = prompt.map_err(|problem| Box::new(step::failed("template", &problem.to_string())))?;
        let before = record.steps.get(&step.name).cloned().unwrap_or_default();
        Ok(Start { step: step.clone(), prompt, before, time })
    }
}

/// How far this process has come.
struct Course {
    began: Instant,
    /// The steps it has begun.
    begun: BTreeSet<String>,
    turns: u32,
    usage: Usage,
    /// None once a step had no price.
    cost: Option<Cost>,
    /// Whether no request of any step ever got a valid reply.
    never_valid: bool,
    answered: bool,
}

impl Course {
    fn new(began: Instant) -> Self {
        Self {
            began,
            begun: BTreeSet::new(),
            turns: 0,
            usage: Usage::default(),
            cost: Some(Cost::default()),
            never_valid: false,
            answered: false,
        }
    }

    /// The next step that can begin.
    fn next(&mut self, shared: &Shared) -> Option<Step> {
        if shared.cancel.is_cancelled() {
            return None;
        }
        let record = shared.record();
        let done = |name: &String| record.steps.get(name).is_some_and(StepRecord::is_done);
        let ready = |step: &&Step| !done(&step.name) && !self.begun.contains(&step.name) && step.needs.iter().all(done);
        let step = shared.workflow.steps.iter().find(ready)?.clone();
        self.begun.insert(step.name.clone());
        Some(step)
    }

    /// A step is over.
    fn end(&mut self, shared: &Shared, name: &str, report: RunReport) -> anyhow::Result<()> {
        let RunReport { result, never_valid } = report;
        self.turns += result.turns;
        self.usage += result.usage;
        self.cost = self.cost.zip(result.cost).map(|(mut all, cost)| {
            all += cost;
            all
        });
        self.answered |= result.turns > 0;
        self.never_valid = (self.never_valid || never_valid) && !self.answered;
        shared.note(|record| record.steps.entry(name.to_owned()).or_default().result = Some(result))
    }

    /// What came of all of it.
    fn result(&self, shared: &Shared, record: &Record) -> TurnResult {
        let workflow = &shared.workflow;
        let done = |step: &&Step| record.steps.get(&step.name).is_some_and(StepRecord::is_done);
        let (all, completed) = (workflow.steps.len(), workflow.steps.iter().filter(done).count());
        let results = || self.begun.iter().filter_map(|name| record.steps.get(name)?.result.as_ref());
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
        TurnResult {
            outcome,
            code: code.to_owned(),
            message: message(workflow, record, completed),
            text: answer(workflow, record),
            turns: self.turns,
            duration_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            usage: self.usage,
            cost: self.cost,
            structured_output: None,
        }
    }
}

/// The answer of the last step; of several, each under its name.
fn answer(workflow: &Workflow, record: &Record) -> String {
    let done = |step: &Step| {
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

/// What is done, and of the rest why not.
fn message(workflow: &Workflow, record: &Record, completed: usize) -> String {
    let all = workflow.steps.len();
    if completed == all {
        return format!("All {all} steps are done.");
    }
    let is_done = |name: &String| record.steps.get(name).is_some_and(StepRecord::is_done);
    let why = |step: &Step| {
        let name = &step.name;
        if is_done(name) {
            return None;
        }
        if let Some(missing) = step.needs.iter().find(|need| !is_done(need)) {
            return Some(format!("`{name}` did not begin, because it needs `{missing}`"));
        }
        Some(match record.steps.get(name) {
            Some(StepRecord { result: Some(result), conversation }) => {
                let word = match result.outcome {
                    Outcome::Completed => "is done",
                    Outcome::Failed => "failed",
                    Outcome::Exhausted => "reached a limit",
                    Outcome::Waiting => "waits for a person",
                    Outcome::Aborted => "was cancelled",
                };
                let told = result.message.trim_end_matches('.');
                let answer = conversation
                    .as_ref()
                    .filter(|_| result.code == "question")
                    .map_or_else(String::new, |id| format!(" (answer with `haft run -r {} \"…\"`)", id.short()));
                format!("`{name}` {word}: {told}{answer}")
            }
            Some(StepRecord { result: None, .. }) => format!("`{name}` was interrupted"),
            None => format!("`{name}` did not begin"),
        })
    };
    let rest: Vec<_> = workflow.steps.iter().filter_map(why).collect();
    let go_on = format!("`haft workflows run {} --continue` goes on", workflow.name);
    format!("{completed} of {all} steps are done. {}; {go_on}.", rest.join("; "))
}
