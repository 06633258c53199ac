//! The turn as a state machine without I/O.
//!
//! A [`Turn`] holds no handles. It receives events ([`Input`]) and returns the next steps
//! ([`TurnAction`]), which the driver carries out. One implementation therefore runs headless, in a
//! terminal and in tests, and continues after a crash: the newest stored message determines the
//! first input.
//!
//! Invariant: no action follows [`TurnAction::End`], and no action requires two operations in
//! flight at a time.

pub(crate) mod answer;
pub(crate) mod attach_port;
pub(crate) mod change_request;
pub(crate) mod driver;
pub(crate) mod event_log;
pub(crate) mod outcome;
pub(crate) mod reply;
pub(crate) mod resume;
#[cfg(test)]
mod tests;
pub(crate) mod turn_io;

use std::collections::{HashMap, HashSet};

use haft_tool::{ToolNames, remove_unknown_mentions};
use haft_tools::LoopLimits;
use haft_types::{
    ContentHash, ModelProfile, Outcome, Prompt, PromptLanguage, StopReason, ToolCall, prompt,
};
use serde_json::Value;

pub use crate::budget::limits::{Spent, TurnLimits};

/// The state of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnState {
    /// The turn has not begun.
    New,
    /// The next request is being built.
    Building,
    /// The request was sent to the model.
    Requesting,
    /// Tools are running.
    Running,
    /// The model has finished, but the answer schema and the hooks may still object.
    Concluding,
    Ended,
}

impl TurnState {
    /// Returns all states, in the order in which a turn first reaches them.
    pub fn all() -> impl Iterator<Item = Self> {
        // An exhaustive match, so that a new state cannot be forgotten by tests that try each one.
        let next = |state: &Self| match state {
            Self::New => Some(Self::Building),
            Self::Building => Some(Self::Requesting),
            Self::Requesting => Some(Self::Running),
            Self::Running => Some(Self::Concluding),
            Self::Concluding => Some(Self::Ended),
            Self::Ended => None,
        };
        std::iter::successors(Some(Self::New), next)
    }
}

/// An event that a turn reacts to.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The conversation is open, and the turn begins at this position.
    Begin(Position),
    /// The request was built.
    Built,
    /// The model's reply is complete.
    Replied(ReplySummary),
    /// Every call of the reply has a stored result, or waits for the user.
    ToolsDone(ToolsDone),
    /// The check of the proposed end is complete, with this decision.
    Concluded(Conclusion),
    /// An error that cannot be recovered from.
    Failed(Reason),
    /// A hook stopped the turn.
    Stopped(Reason),
    /// A limit leaves no room for the next request.
    Exhausted(Reason),
    /// The user canceled the turn.
    Cancelled,
}

/// The position at which a stored conversation continues.
#[derive(Clone, Debug, PartialEq)]
pub enum Position {
    /// The last message needs an answer from the model.
    WantsReply,
    /// The given calls of the last reply have no result and never began.
    WantsTools(Vec<ToolCall>),
    /// The last message is the given reply, which may have ended the turn.
    HasReply(ReplySummary),
    /// The last reply asked the user, who has not answered yet.
    WantsAnswer(Question),
    /// The last reply reported the task as done, with this report.
    Completed(String),
}

/// The parts of a reply that affect the next step of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplySummary {
    /// The calls, in order.
    pub calls: Vec<ToolCall>,
    pub text: String,
    /// The reason why the model stopped.
    pub stop: StopReason,
    /// The work that is unfinished if the reply contains no calls.
    pub unfinished: Option<Unfinished>,
}

/// The reason why a reply without calls does not end the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// The number of unfinished items of the TODO list.
    OpenTodos(usize),
    /// The reply does not report the task as done. Used for models that write their calls as text:
    /// without the report, the work is not done, or a call could not be parsed.
    NoCompletion,
    /// The task is a goal, and the turn ends only after the model has reported the goal as reached.
    Goal,
}

/// The results of a reply's calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolsDone {
    /// The report, if the model completed the task.
    pub completed: Option<String>,
    /// The question that the model asked the user, if it asked one.
    pub question: Option<Question>,
    /// The reason why a call was denied, if a call was denied.
    pub denied: Option<String>,
    /// One fingerprint per call, computed from the call and its result.
    pub seen: Vec<ContentHash>,
    /// True if a call failed.
    pub any_failed: bool,
    /// The fingerprints of the failed calls, except calls that succeeded before.
    pub failed: Vec<ContentHash>,
    /// The outcomes of the attempts to change files.
    pub effects: EffectCount,
    /// The amounts used up by the run so far.
    pub spent: Spent,
}

/// Counts the outcomes of attempts to change files. An attempt is a call of a write or edit tool. A
/// command is never an attempt: a failing command, such as a test run, is often the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EffectCount {
    /// The number of attempts that succeeded, of other calls that changed files, and of successful
    /// calls whose changes are unknown.
    pub took_effect: u32,
    /// The number of attempts that failed or were malformed.
    pub failed: u32,
    /// The number of calls that were refused by the user or by the user's rules and hooks. They are
    /// not failed attempts.
    pub refused: u32,
}

impl EffectCount {
    /// Returns true if there were attempts and all of them failed.
    fn all_failed(self) -> bool {
        self.took_effect == 0 && self.failed > 0
    }
}

/// The decision on whether a turn may end.
#[derive(Clone, Debug, PartialEq)]
pub enum Conclusion {
    /// The turn may end.
    Accepted {
        /// The answer as data, if an answer schema was given.
        output: Option<Value>,
    },
    /// The model must continue.
    Rejected(Objection),
    /// The turn may end, but messages have arrived that the model has not read. Another request
    /// follows, if the limits allow it.
    Unread {
        /// The answer as data, if an answer schema was given.
        output: Option<Value>,
    },
}

/// The reason why a turn may not end yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Objection {
    /// The text for the model.
    pub text: String,
    /// The failure to report if the model never fixes the problem. If `None`, the turn then ends
    /// normally.
    pub failure: Option<Reason>,
}

/// The kind of a question to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// The model needs information.
    Question,
    /// The model proposes a plan and asks for agreement.
    Plan,
}

/// A question to the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub question: String,
    /// The answers to choose from.
    pub options: Vec<String>,
    pub about: QuestionKind,
}

/// The reason for the end of a turn: a code for programs and a sentence for the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// A stable name for programs.
    pub code: String,
    /// A sentence for the user that explains the reason.
    pub message: String,
}

impl Reason {
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }
}

/// A step for the driver to carry out.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnAction {
    /// Build the next request.
    BuildRequest,
    /// Send the request.
    SendRequest,
    /// Run these calls, in order.
    RunTools(Vec<ToolCall>),
    /// Append a note that makes the model continue, as a user message.
    Nudge(Nudge),
    /// Append the text of an objection, as a user message.
    Correct(String),
    /// Check whether the turn may end with this outcome.
    Conclude(TurnEnd),
    /// End the turn and report its outcome.
    End(TurnEnd),
}

/// A note from the engine that makes the model continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nudge {
    /// The reply contained no call, but the given number of TODO items are not completed.
    OpenTodos(usize),
    /// The reply had no call, and the task was not reported as done.
    NoCompletion,
    /// The reply had no call, but the goal was not reported as reached.
    Goal,
    /// The reply was cut off by the output limit.
    Cut,
    Empty,
    /// The model is done, but every write and edit of the turn failed.
    NothingChanged,
    /// A call, or a short cycle of calls, repeatedly had equal results.
    Repeated,
    /// Like [`Self::Repeated`], but the calls of a small model succeeded, so the task may be done.
    RepeatedSuccess,
}

impl Nudge {
    /// Returns the text for the model.
    pub fn text(self, language: PromptLanguage) -> &'static str {
        let prompt = match self {
            Self::OpenTodos(_) => prompt!("../prompts/nudge_open_todos"),
            Self::NoCompletion => prompt!("../prompts/nudge_no_completion"),
            Self::Goal => prompt!("../prompts/nudge_goal"),
            Self::Cut => prompt!("../prompts/nudge_cut"),
            Self::Repeated | Self::RepeatedSuccess => prompt!("../prompts/nudge_repeated"),
            Self::Empty => prompt!("../prompts/nudge_empty"),
            Self::NothingChanged => prompt!("../prompts/nudge_nothing_changed"),
        };
        prompt.text(language)
    }

    /// Returns the text for the model, followed by advice to ask the user if that can help. The
    /// text mentions no tools other than `tools`.
    pub(crate) fn text_with_tools(self, language: PromptLanguage, tools: &ToolNames) -> String {
        let text = self.text(language);
        let ask = self.ask_user_text(language);
        let gap = if ask.is_empty() { "" } else { " " };
        let whole = format!("{text}{gap}{ask}");
        remove_unknown_mentions(&whole, |tool| tools.contains(tool))
            .trim_end()
            .to_owned()
    }

    /// Returns the text for a small model: short, and with the task, which such a model forgets.
    /// The text mentions no tools other than `tools`.
    pub(crate) fn small_text(
        self,
        language: PromptLanguage,
        tools: &ToolNames,
        task: &str,
    ) -> String {
        let prompt = match self {
            Self::OpenTodos(_) => prompt!("../prompts/nudge_open_todos"),
            Self::NoCompletion => prompt!("../prompts/small_no_completion"),
            Self::Goal => prompt!("../prompts/small_goal"),
            Self::Cut => prompt!("../prompts/small_cut"),
            Self::Empty => prompt!("../prompts/small_empty"),
            Self::NothingChanged => prompt!("../prompts/small_nothing_changed"),
            Self::Repeated => prompt!("../prompts/small_repeated"),
            Self::RepeatedSuccess => prompt!("../prompts/small_repeated_success"),
        };
        let text = remove_unknown_mentions(prompt.text(language), |tool| tools.contains(tool));
        let heading = SMALL_TASK.text(language);
        let task = shorten_task(task);
        format!("{}\n{heading} {task}", text.trim_end())
    }

    /// Returns the notice for the user. `count` is the number of consecutive nudges, and `most` the
    /// number after which the turn ends.
    pub(crate) fn notice_text(self, count: u32, most: u32) -> String {
        let what = match self {
            Self::OpenTodos(1) => "1 TODO item open".to_owned(),
            Self::OpenTodos(items) => format!("{items} TODO items open"),
            Self::NoCompletion => "the task was not reported as done".to_owned(),
            Self::Goal => "the goal was not reported as reached".to_owned(),
            Self::Cut => "the reply was cut by the output limit".to_owned(),
            Self::Empty => "the reply was empty".to_owned(),
            Self::Repeated | Self::RepeatedSuccess => {
                return "the same calls had the same results again and again".to_owned();
            }
            Self::NothingChanged => {
                return "every write and edit failed, asking the model to look again".to_owned();
            }
        };
        format!("{what}, asking the model to continue, {count} of {most}")
    }

    /// Returns the advice to ask the user; empty if that would not help.
    fn ask_user_text(self, language: PromptLanguage) -> &'static str {
        match self {
            Self::OpenTodos(_)
            | Self::NoCompletion
            | Self::Goal
            | Self::Repeated
            | Self::RepeatedSuccess
            | Self::NothingChanged => prompt!("../prompts/nudge_ask").text(language),
            Self::Cut | Self::Empty => "",
        }
    }
}

/// Precedes the task in the nudges of small models.
const SMALL_TASK: Prompt = prompt!("../prompts/small_task");
/// The maximum length of the task in a nudge, in characters.
const MAX_TASK_CHARS: usize = 600;

fn shorten_task(task: &str) -> String {
    match task.trim().char_indices().nth(MAX_TASK_CHARS) {
        Some((end, _)) => format!("{}…", &task.trim()[..end]),
        None => task.trim().to_owned(),
    }
}

/// The end of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnEnd {
    pub outcome: Outcome,
    pub reason: Reason,
    /// The text of the model: its answer, its report on the finished task, or its question.
    pub text: String,
    /// The answer as data, if an answer schema was given.
    pub output: Option<Value>,
    /// True if the model ended the turn as done although every write and edit failed. In the
    /// reported end of a small model's turn, also true if the prompt asks for a change of files and
    /// none was changed.
    pub nothing_changed: bool,
}

impl TurnEnd {
    /// Creates the end of a turn without text from the model.
    pub(crate) fn new(outcome: Outcome, reason: Reason) -> Self {
        Self {
            outcome,
            reason,
            text: String::new(),
            output: None,
            nothing_changed: false,
        }
    }
}

/// The number of warnings about repeated successful calls after which a small model's turn ends.
const MAX_SUCCESS_WARNINGS: u32 = 1;
/// The number of nudges after which a small model's reply without a completion is its answer, and
/// after which a turn that changed something may end with an empty reply.
const MAX_SMALL_NUDGES: u32 = 1;

/// The state machine of one turn, from its input to its outcome.
#[derive(Clone, Debug)]
pub struct Turn {
    state: TurnState,
    limits: TurnLimits,
    loop_limits: LoopLimits,
    profile: ModelProfile,
    replies: u32,
    nudges: u32,
    denied: Option<String>,
    /// For each call of the last reply, by fingerprint, the number of consecutive equal results.
    streaks: HashMap<ContentHash, u32>,
    /// The fingerprints of the newest calls, oldest first: enough to detect the longest cycle.
    recent: Vec<ContentHash>,
    /// The fingerprints of the calls that failed.
    failed: HashSet<ContentHash>,
    /// The number of consecutive warnings about repetition.
    repeats: u32,
    /// The number of objections to the end of the turn.
    objections: u32,
    /// The outcomes of the attempts to change files so far.
    pub(crate) effects: EffectCount,
    /// True if the model was informed that all writes and edits failed.
    warned_of_failure: bool,
    /// The proposed end of the turn, while it is being checked.
    concluding: Option<TurnEnd>,
    text: String,
    spent: Spent,
}

impl Turn {
    /// Creates a turn that has not begun.
    pub fn new(limits: TurnLimits) -> Self {
        Self {
            state: TurnState::New,
            limits,
            loop_limits: LoopLimits::default(),
            profile: ModelProfile::Full,
            replies: 0,
            nudges: 0,
            denied: None,
            streaks: HashMap::new(),
            recent: Vec::new(),
            failed: HashSet::new(),
            repeats: 0,
            objections: 0,
            effects: EffectCount::default(),
            warned_of_failure: false,
            concluding: None,
            text: String::new(),
            spent: Spent::default(),
        }
    }

    /// Sets the profile of the model that is driven.
    #[must_use]
    pub fn with_profile(self, profile: ModelProfile) -> Self {
        Self { profile, ..self }
    }

    /// Sets the limits after which the turn ends without progress.
    #[must_use]
    pub fn with_loop_limits(self, loop_limits: LoopLimits) -> Self {
        Self {
            loop_limits,
            ..self
        }
    }

    /// Returns the notice for the user about a nudge of this turn.
    pub(crate) fn nudge_notice(&self, nudge: Nudge) -> String {
        nudge.notice_text(self.nudges, self.loop_limits.nudges)
    }

    pub fn state(&self) -> TurnState {
        self.state
    }

    /// Returns the number of replies so far.
    pub fn replies(&self) -> u32 {
        self.replies
    }

    /// Returns the number of objections to the end of the turn.
    pub fn objections(&self) -> u32 {
        self.objections
    }

    /// Sets the tokens, money and time that the run has used, including those of the reply that is
    /// processed next.
    pub fn set_spent(&mut self, spent: Spent) {
        self.spent = spent;
    }

    /// Processes an input and returns the next actions. An input that does not fit the state is a
    /// bug of the driver and ends the turn.
    pub fn step(&mut self, input: Input) -> Vec<TurnAction> {
        match (self.state, input) {
            (TurnState::Ended, _) => Vec::new(),
            (_, Input::Cancelled) => self.end_turn(
                Outcome::Aborted,
                Reason::new("cancelled", "Cancelled. The turn can be resumed."),
            ),
            (_, Input::Failed(reason)) => self.end_turn(Outcome::Failed, reason),
            (_, Input::Stopped(reason)) => self.end_turn(Outcome::Waiting, reason),
            (_, Input::Exhausted(reason)) => self.end_turn(Outcome::Exhausted, reason),
            (TurnState::New, Input::Begin(position)) => self.begin_at(position),
            (TurnState::Building, Input::Built) => {
                self.state = TurnState::Requesting;
                vec![TurnAction::SendRequest]
            }
            (TurnState::Requesting, Input::Replied(reply)) => {
                self.replies += 1;
                self.handle_reply(reply)
            }
            (TurnState::Running, Input::ToolsDone(done)) => self.handle_tools_done(done),
            (TurnState::Concluding, Input::Concluded(conclusion)) => {
                self.handle_conclusion(conclusion)
            }
            (state, input) => {
                let message = format!(
                    "The turn was {state:?} and cannot take {input:?}. This is a bug in haft; please report it."
                );
                self.end_turn(Outcome::Failed, Reason::new("internal", message))
            }
        }
    }

    fn begin_at(&mut self, position: Position) -> Vec<TurnAction> {
        match position {
            Position::WantsReply => self.build_request(),
            Position::WantsTools(calls) => self.run_calls(calls),
            Position::HasReply(reply) => self.handle_reply(reply),
            Position::WantsAnswer(question) => self.ask_user(question),
            Position::Completed(report) => self.complete_task(report),
        }
    }

    fn handle_reply(&mut self, reply: ReplySummary) -> Vec<TurnAction> {
        let empty = reply.text.trim().is_empty();
        if !empty {
            self.text = reply.text;
        }
        if reply.stop == StopReason::Refusal {
            return self.end_turn(
                Outcome::Failed,
                Reason::new(
                    "refused",
                    "The model declined to answer. Rephrase the task or choose another model.",
                ),
            );
        }
        if !reply.calls.is_empty() {
            self.nudges = 0;
            return self.run_calls(reply.calls);
        }
        if reply.stop == StopReason::Length {
            return self.handle_cut_reply();
        }
        if empty {
            return self.nudge_or_end(Nudge::Empty);
        }
        match reply.unfinished {
            Some(Unfinished::OpenTodos(count)) => self.nudge_or_end(Nudge::OpenTodos(count)),
            Some(Unfinished::NoCompletion) => self.nudge_or_end(Nudge::NoCompletion),
            Some(Unfinished::Goal) if self.denied.is_none() => self.nudge_or_end(Nudge::Goal),
            Some(Unfinished::Goal) | None => self.end_after_answer(),
        }
    }

    fn handle_tools_done(&mut self, done: ToolsDone) -> Vec<TurnAction> {
        self.denied = done.denied;
        self.effects.took_effect += done.effects.took_effect;
        self.effects.failed += done.effects.failed;
        self.effects.refused += done.effects.refused;
        // A small model reports the task as done beside its calls, whose results it does not know.
        let completes = self.profile == ModelProfile::Full || !done.any_failed;
        if let Some(report) = done.completed.filter(|_| completes) {
            return self.complete_task(report);
        }
        if let Some(question) = done.question {
            return self.ask_user(question);
        }
        self.spent = done.spent;
        self.failed.extend(done.failed);
        if let Some(period) = self.detect_repetition(&done.seen) {
            let mut repeated = self.recent.iter().rev().take(period);
            let nudge = match self.profile {
                ModelProfile::Small if !repeated.any(|call| self.failed.contains(call)) => {
                    Nudge::RepeatedSuccess
                }
                ModelProfile::Small | ModelProfile::Full => Nudge::Repeated,
            };
            return self.warn_of_repetition(nudge);
        }
        self.repeats = 0;
        self.end_if_exhausted()
            .unwrap_or_else(|| self.build_request())
    }

    /// Records the calls of a reply. If a call or a short cycle of calls has had equal results too
    /// often in a row, returns the number of newest calls that are repeated.
    fn detect_repetition(&mut self, seen: &[ContentHash]) -> Option<usize> {
        let before = std::mem::take(&mut self.streaks);
        let streak = |hash: &ContentHash| (*hash, before.get(hash).copied().unwrap_or(0) + 1);
        self.streaks = seen.iter().map(streak).collect();
        self.recent.extend(seen);
        let rounds = self.loop_limits.equal_results as usize;
        let max_period = self.loop_limits.cycle_calls as usize;
        self.recent
            .drain(..self.recent.len().saturating_sub(rounds * max_period));
        if self
            .streaks
            .values()
            .any(|streak| *streak >= self.loop_limits.equal_results)
        {
            return Some(seen.len());
        }
        (2..=max_period).find(|period| {
            let newest = self
                .recent
                .len()
                .checked_sub(rounds * period)
                .and_then(|start| self.recent.get(start..));
            newest.is_some_and(|newest| {
                newest
                    .iter()
                    .zip(newest.iter().skip(*period))
                    .all(|(one, next)| one == next)
            })
        })
    }

    fn warn_of_repetition(&mut self, nudge: Nudge) -> Vec<TurnAction> {
        if nudge == Nudge::RepeatedSuccess
            && self.repeats >= MAX_SUCCESS_WARNINGS
            && self.effects.took_effect > 0
        {
            return self.propose_end(Reason::new(
                "repeated",
                "The model repeated calls that had succeeded.",
            ));
        }
        if self.repeats >= self.loop_limits.corrections {
            let message = "The model made the same calls with the same results again and again, whatever it was told. Rephrase the task or choose another model.";
            return self.end_turn(Outcome::Failed, Reason::new("loop", message));
        }
        if let Some(end) = self.end_if_exhausted() {
            return end;
        }
        self.repeats += 1;
        let mut actions = vec![TurnAction::Nudge(nudge)];
        actions.extend(self.build_request());
        actions
    }

    /// Handles the decision on the proposed end.
    fn handle_conclusion(&mut self, conclusion: Conclusion) -> Vec<TurnAction> {
        let end = self.concluding.take().unwrap_or_else(|| {
            TurnEnd::new(
                Outcome::Failed,
                Reason::new(
                    "internal",
                    "The turn had nothing to end with. This is a bug in haft.",
                ),
            )
        });
        let objection = match conclusion {
            Conclusion::Accepted { output } => return self.end_with(TurnEnd { output, ..end }),
            Conclusion::Rejected(objection) => objection,
            Conclusion::Unread { output } => {
                if self
                    .limits
                    .exceeded_limit(self.replies, &self.spent)
                    .is_some()
                {
                    return self.end_with(TurnEnd { output, ..end });
                }
                self.text = end.text;
                return self.build_request();
            }
        };
        if self.objections >= self.loop_limits.corrections {
            return match objection.failure {
                Some(reason) => self.end_with(TurnEnd {
                    outcome: Outcome::Failed,
                    reason,
                    ..end
                }),
                None => self.end_with(end),
            };
        }
        self.text = end.text;
        if let Some(end) = self.end_if_exhausted() {
            return end;
        }
        self.objections += 1;
        let mut actions = vec![TurnAction::Correct(objection.text)];
        actions.extend(self.build_request());
        actions
    }

    /// Proposes to end the turn as completed. A task that was completed before this run ends
    /// without a check.
    fn propose_end(&mut self, reason: Reason) -> Vec<TurnAction> {
        let nothing_changed = self.effects.all_failed();
        if nothing_changed
            && !self.warned_of_failure
            && self
                .limits
                .exceeded_limit(self.replies, &self.spent)
                .is_none()
        {
            self.warned_of_failure = true;
            let mut actions = vec![TurnAction::Nudge(Nudge::NothingChanged)];
            actions.extend(self.build_request());
            return actions;
        }
        let text = std::mem::take(&mut self.text);
        let end = TurnEnd {
            text,
            nothing_changed,
            ..TurnEnd::new(Outcome::Completed, reason)
        };
        if self.replies == 0 {
            return self.end_with(end);
        }
        self.state = TurnState::Concluding;
        self.concluding = Some(end.clone());
        vec![TurnAction::Conclude(end)]
    }

    /// Ends the turn after a reply without calls. After a denial, the turn waits for the user,
    /// because the model could not continue without the denied call.
    fn end_after_answer(&mut self) -> Vec<TurnAction> {
        match self.denied.take() {
            Some(why) => self.end_turn(Outcome::Waiting, Reason::new("denied", why)),
            None => self.propose_end(Reason::new("answered", "The model answered.")),
        }
    }

    fn complete_task(&mut self, report: String) -> Vec<TurnAction> {
        self.text = report;
        self.propose_end(Reason::new(
            "completed",
            "The model reported the task as done.",
        ))
    }

    fn ask_user(&mut self, question: Question) -> Vec<TurnAction> {
        let Question {
            question, about, ..
        } = question;
        self.text = question;
        let reason = match about {
            QuestionKind::Question => Reason::new("question", "The model asks a question."),
            QuestionKind::Plan => Reason::new("plan", "The model proposes a plan."),
        };
        self.end_turn(Outcome::Waiting, reason)
    }

    fn nudge_or_end(&mut self, nudge: Nudge) -> Vec<TurnAction> {
        let most = self.loop_limits.nudges;
        let max_nudges = match (nudge, self.profile) {
            (Nudge::NoCompletion, ModelProfile::Small) => most.min(MAX_SMALL_NUDGES),
            (Nudge::Empty, ModelProfile::Small) if self.effects.took_effect > 0 => {
                most.min(MAX_SMALL_NUDGES)
            }
            (_, ModelProfile::Small | ModelProfile::Full) => most,
        };
        if self.nudges >= max_nudges {
            return match nudge {
                // The model has changed something and has no more to add.
                Nudge::Empty
                    if self.profile == ModelProfile::Small && self.effects.took_effect > 0 =>
                {
                    self.end_after_answer()
                }
                Nudge::Empty => self.end_turn(
                    Outcome::Failed,
                    Reason::new(
                        "empty_reply",
                        "The model sent only empty replies. Try again, or choose another model.",
                    ),
                ),
                Nudge::Goal => self.end_turn(
                    Outcome::Waiting,
                    Reason::new(
                        "goal_not_reached",
                        "The model stopped working without reporting the goal as reached.",
                    ),
                ),
                Nudge::OpenTodos(_)
                | Nudge::NoCompletion
                | Nudge::Cut
                | Nudge::Repeated
                | Nudge::RepeatedSuccess
                | Nudge::NothingChanged => self.end_after_answer(),
            };
        }
        if let Some(end) = self.end_if_exhausted() {
            return end;
        }
        self.nudges += 1;
        let mut actions = vec![TurnAction::Nudge(nudge)];
        actions.extend(self.build_request());
        actions
    }

    /// Handles a reply that was cut off. A stored reply is continued. A new reply has already been
    /// continued as often as allowed, so the turn ends.
    fn handle_cut_reply(&mut self) -> Vec<TurnAction> {
        if self.replies == 0 {
            return self.nudge_or_end(Nudge::Cut);
        }
        self.end_turn(
            Outcome::Exhausted,
            Reason::new(
                "output_limit",
                "The reply was cut by the output limit again and again. Raise `max_output_tokens` of the model.",
            ),
        )
    }

    /// Ends the turn if a limit leaves no room for another request.
    fn end_if_exhausted(&mut self) -> Option<Vec<TurnAction>> {
        let reason = self.limits.exceeded_limit(self.replies, &self.spent)?;
        Some(self.end_turn(Outcome::Exhausted, reason))
    }

    fn build_request(&mut self) -> Vec<TurnAction> {
        self.state = TurnState::Building;
        vec![TurnAction::BuildRequest]
    }

    fn run_calls(&mut self, calls: Vec<ToolCall>) -> Vec<TurnAction> {
        self.state = TurnState::Running;
        vec![TurnAction::RunTools(calls)]
    }

    fn end_turn(&mut self, outcome: Outcome, reason: Reason) -> Vec<TurnAction> {
        let text = std::mem::take(&mut self.text);
        self.end_with(TurnEnd {
            text,
            ..TurnEnd::new(outcome, reason)
        })
    }

    fn end_with(&mut self, end: TurnEnd) -> Vec<TurnAction> {
        self.state = TurnState::Ended;
        vec![TurnAction::End(end)]
    }
}
