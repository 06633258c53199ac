//! The turn as a state machine without I/O.
//!
//! A [`Turn`] holds no handles. It is given what happened ([`Input`]) and answers with what to do
//! next ([`Action`]); the driver does it and comes back. So the same turn runs headless, in a
//! terminal, in tests, and goes on after a crash: whatever was stored last is turned into the first
//! input again.
//!
//! Invariant: after [`Action::End`] no further action is ever given, and no action asks for two
//! things at once to be in flight.

pub(crate) mod answer;
pub(crate) mod driver;
pub(crate) mod event_log;
pub(crate) mod outcome;
pub(crate) mod reply;
pub(crate) mod resume;
#[cfg(test)]
mod tests;
pub(crate) mod turn_io;

use std::collections::HashMap;

use haft_tool::{ToolNames, without_unknown_tools};
use haft_types::{ContentHash, Outcome, PromptLanguage, StopReason, ToolCall, prompt};
use serde_json::Value;

pub use crate::budget::limits::{Spent, TurnLimits};

/// Where a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnState {
    /// Nothing has happened yet.
    New,
    /// A request is being put together.
    Building,
    /// The model is being asked.
    Requesting,
    /// Tools are running.
    Running,
    /// The model is done, unless somebody objects.
    Concluding,
    /// It is over.
    Ended,
}

impl TurnState {
    /// All of them, in the order a turn can first come to them.
    pub fn all() -> impl Iterator<Item = Self> {
        // Exhaustive, so that a new state cannot be forgotten by those who must try each.
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

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The conversation is open and this is the next thing to do.
    Begin(Position),
    /// The request is put together.
    Built,
    /// The model's reply is whole.
    Replied(Replied),
    /// Every call of the reply has a stored result, or waits for the user.
    ToolsDone(ToolsDone),
    /// Whether the turn may end as it would.
    Concluded(Conclusion),
    /// Something failed for good.
    Failed(Reason),
    /// Somebody who may has ended it.
    Stopped(Reason),
    /// A limit leaves no room for the next request.
    Exhausted(Reason),
    /// The user cancelled.
    Cancelled,
}

/// Where a stored conversation left off.
#[derive(Clone, Debug, PartialEq)]
pub enum Position {
    /// The last message wants an answer.
    WantsReply,
    /// These calls of the last reply have no result and were never begun.
    WantsTools(Vec<ToolCall>),
    /// The last message is this reply; it may have ended the turn.
    HasReply(Replied),
    /// The last reply asked the user and has no answer yet.
    WantsAnswer(Question),
    /// The task was reported as done.
    Completed(String),
}

/// What a turn needs to know of a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Replied {
    /// Its calls, in order.
    pub calls: Vec<ToolCall>,
    /// Its text.
    pub text: String,
    /// Why the model stopped.
    pub stop: StopReason,
    /// What is still to be done, should it hold no call.
    pub unfinished: Option<Unfinished>,
}

/// Why a reply without calls does not end the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// So many items of the TODO list are not done.
    OpenTodos(usize),
    /// The model writes its calls as text and says by a call of its own when it is done: without
    /// one it is not, or its call could not be read.
    NoCompletion,
    /// It is a goal, and only the model's report that it is reached ends it.
    Goal,
}

/// What came of running the tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolsDone {
    /// The report, if the model completed the task.
    pub completed: Option<String>,
    /// The question, if the model asked one.
    pub question: Option<Question>,
    /// Why a call was denied, if one was.
    pub denied: Option<String>,
    /// What tells each call with its result from others.
    pub seen: Vec<ContentHash>,
    /// Whether a call failed.
    pub any_failed: bool,
    /// What came of the calls that write or run something.
    pub effects: EffectCount,
    /// What the run has used up so far.
    pub spent: Spent,
}

/// How many calls that write or run something took effect, and how many failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EffectCount {
    /// Those that succeeded, or changed a file and then failed.
    pub took_effect: u32,
    /// Those that were tried and failed.
    pub failed: u32,
    /// Those that did not run: malformed, or not permitted.
    pub not_run: u32,
}

impl EffectCount {
    /// Whether something was tried, and all of it failed.
    fn all_failed(self) -> bool {
        self.took_effect == 0 && self.failed + self.not_run > 0
    }
}

/// Whether a turn may end as it would.
#[derive(Clone, Debug, PartialEq)]
pub enum Conclusion {
    /// It may.
    Accepted {
        /// The answer as data, where data was asked for.
        output: Option<Value>,
    },
    /// The model is to go on.
    Rejected(Objection),
    /// It may, but something has arrived that the model has not read: it is asked again, within the
    /// limits.
    Unread {
        /// As above.
        output: Option<Value>,
    },
}

/// Why a turn may not end yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Objection {
    /// What the model reads.
    pub text: String,
    /// Why the turn fails when the model never mends it; without one it then ends as it would
    /// have.
    pub otherwise: Option<Reason>,
}

/// What the user is to say something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Something the model needs to know.
    Question,
    /// What the model is going to do, if they agree.
    Plan,
}

/// A question to the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The question.
    pub question: String,
    /// Answers to choose from.
    pub options: Vec<String>,
    /// What it is about.
    pub about: About,
}

/// Why something ended, for programs and for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// A stable name.
    pub code: String,
    /// What happened and what to do.
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

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put the next request together.
    BuildRequest,
    /// Send it.
    SendRequest,
    /// Run these calls, in order.
    RunTools(Vec<ToolCall>),
    /// Append this note to the conversation in the user's place.
    Nudge(Nudge),
    /// Append this text of whoever objected, likewise.
    Correct(String),
    /// Ask whether the turn may end so.
    Conclude(End),
    /// Tell the user and stop.
    End(End),
}

/// A note by which the engine keeps the model going.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nudge {
    /// The reply had no call, but so many TODO items are open.
    OpenTodos(usize),
    /// The reply had no call, and the task was not reported as done.
    NoCompletion,
    /// The reply had no call, but the goal was not reported as reached.
    Goal,
    /// The reply was cut by the output limit.
    Cut,
    /// The reply was empty.
    Empty,
    /// The model is done, but every write and command of the turn failed.
    NothingChanged,
    /// The same call, or the same few calls in turn, had the same results again and again.
    Repeated,
}

impl Nudge {
    /// The text the model reads.
    pub fn text(self, language: PromptLanguage) -> &'static str {
        let prompt = match self {
            Self::OpenTodos(_) => prompt!("../prompts/nudge_open_todos"),
            Self::NoCompletion => prompt!("../prompts/nudge_no_completion"),
            Self::Goal => prompt!("../prompts/nudge_goal"),
            Self::Cut => prompt!("../prompts/nudge_cut"),
            Self::Repeated => prompt!("../prompts/nudge_repeated"),
            Self::Empty => prompt!("../prompts/nudge_empty"),
            Self::NothingChanged => prompt!("../prompts/nudge_nothing_changed"),
        };
        prompt.text(language)
    }

    /// The text the model reads, with how to ask the user where that can help. It names no tool
    /// that is not among `tools`.
    pub(crate) fn told_text(self, language: PromptLanguage, tools: &ToolNames) -> String {
        let text = self.text(language);
        let ask = self.ask_text(language);
        let gap = if ask.is_empty() { "" } else { " " };
        let whole = format!("{text}{gap}{ask}");
        without_unknown_tools(&whole, |tool| tools.contains(tool))
            .trim_end()
            .to_owned()
    }

    /// What people read of it, where it is the so-many-th in a row.
    pub(crate) fn notice(self, count: u32) -> String {
        let what = match self {
            Self::OpenTodos(1) => "1 TODO item open".to_owned(),
            Self::OpenTodos(items) => format!("{items} TODO items open"),
            Self::NoCompletion => "the task was not reported as done".to_owned(),
            Self::Goal => "the goal was not reported as reached".to_owned(),
            Self::Cut => "the reply was cut by the output limit".to_owned(),
            Self::Empty => "the reply was empty".to_owned(),
            Self::Repeated => {
                return "the same calls had the same results again and again".to_owned();
            }
            Self::NothingChanged => {
                return "every write and command failed, asking the model to look again".to_owned();
            }
        };
        format!("{what}, asking the model to continue, {count} of {NUDGES_IN_A_ROW}")
    }

    /// What is added where the model can ask the user; nothing where it has no use for that.
    fn ask_text(self, language: PromptLanguage) -> &'static str {
        match self {
            Self::OpenTodos(_)
            | Self::NoCompletion
            | Self::Goal
            | Self::Repeated
            | Self::NothingChanged => prompt!("../prompts/nudge_ask").text(language),
            Self::Cut | Self::Empty => "",
        }
    }
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// The outcome.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// The answer, the report or the question.
    pub text: String,
    /// The answer as data, where data was asked for.
    pub output: Option<Value>,
    /// Whether the model ended it as done although every write and command failed, or, where a
    /// turn is told of, no call succeeded.
    pub nothing_changed: bool,
}

impl End {
    /// An end without text of the model.
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

/// How often in a row the model may be asked to go on before the turn gives up on it.
const NUDGES_IN_A_ROW: u32 = 3;
/// So often in a row a call has the same result before the model is warned.
const SAME_RESULTS: u32 = 3;
/// The most calls that are taken for a cycle when they come again and again in the same order.
const LONGEST_CYCLE: usize = 4;
/// How often the model is corrected before the turn gives up on it.
const CORRECTIONS: u32 = 3;

/// One turn: from an input to its outcome.
#[derive(Clone, Debug)]
pub struct Turn {
    state: TurnState,
    limits: TurnLimits,
    replies: u32,
    nudges: u32,
    denied: Option<String>,
    /// How often in a row each call of the last reply has had the same result.
    streaks: HashMap<ContentHash, u32>,
    /// The newest calls with their results, oldest first: as many as the longest cycle takes to
    /// show.
    recent: Vec<ContentHash>,
    /// How often in a row the model was warned that it repeats itself.
    repeats: u32,
    /// How often somebody objected to the end.
    objections: u32,
    /// What came of the writes and commands so far.
    pub(crate) effects: EffectCount,
    /// Whether the model was told that all of them failed.
    told_of_failure: bool,
    /// How it would end.
    concluding: Option<End>,
    text: String,
    spent: Spent,
}

impl Turn {
    /// A turn that has not begun.
    pub fn new(limits: TurnLimits) -> Self {
        Self {
            state: TurnState::New,
            limits,
            replies: 0,
            nudges: 0,
            denied: None,
            streaks: HashMap::new(),
            recent: Vec::new(),
            repeats: 0,
            objections: 0,
            effects: EffectCount::default(),
            told_of_failure: false,
            concluding: None,
            text: String::new(),
            spent: Spent::default(),
        }
    }

    /// How often in a row the model was asked to go on.
    pub(crate) fn nudges(&self) -> u32 {
        self.nudges
    }

    /// Where it stands.
    pub fn state(&self) -> TurnState {
        self.state
    }

    /// Replies received so far.
    pub fn replies(&self) -> u32 {
        self.replies
    }

    /// How often somebody objected to the end.
    pub fn objections(&self) -> u32 {
        self.objections
    }

    /// Takes note of what the run has used up, before the reply it was used up for is shown.
    pub fn note_spent(&mut self, spent: Spent) {
        self.spent = spent;
    }

    /// Takes what happened and says what to do. Input that does not fit the state is a bug of the
    /// driver and ends the turn.
    pub fn step(&mut self, input: Input) -> Vec<Action> {
        match (self.state, input) {
            (TurnState::Ended, _) => Vec::new(),
            (_, Input::Cancelled) => self.end(
                Outcome::Aborted,
                Reason::new("cancelled", "Cancelled. The turn can be resumed."),
            ),
            (_, Input::Failed(reason)) => self.end(Outcome::Failed, reason),
            (_, Input::Stopped(reason)) => self.end(Outcome::Waiting, reason),
            (_, Input::Exhausted(reason)) => self.end(Outcome::Exhausted, reason),
            (TurnState::New, Input::Begin(position)) => self.begin(position),
            (TurnState::Building, Input::Built) => {
                self.state = TurnState::Requesting;
                vec![Action::SendRequest]
            }
            (TurnState::Requesting, Input::Replied(reply)) => {
                self.replies += 1;
                self.replied(reply)
            }
            (TurnState::Running, Input::ToolsDone(done)) => self.tools_done(done),
            (TurnState::Concluding, Input::Concluded(conclusion)) => self.concluded(conclusion),
            (state, input) => {
                let message = format!(
                    "The turn was {state:?} and cannot take {input:?}. This is a bug in haft; please report it."
                );
                self.end(Outcome::Failed, Reason::new("internal", message))
            }
        }
    }

    fn begin(&mut self, position: Position) -> Vec<Action> {
        match position {
            Position::WantsReply => self.build(),
            Position::WantsTools(calls) => self.run(calls),
            Position::HasReply(reply) => self.replied(reply),
            Position::WantsAnswer(question) => self.ask(question),
            Position::Completed(report) => self.complete(report),
        }
    }

    fn replied(&mut self, reply: Replied) -> Vec<Action> {
        let empty = reply.text.trim().is_empty();
        if !empty {
            self.text = reply.text;
        }
        if reply.stop == StopReason::Refusal {
            return self.end(
                Outcome::Failed,
                Reason::new(
                    "refused",
                    "The model declined to answer. Rephrase the task or choose another model.",
                ),
            );
        }
        if !reply.calls.is_empty() {
            self.nudges = 0;
            return self.run(reply.calls);
        }
        if reply.stop == StopReason::Length {
            return self.cut();
        }
        if empty {
            return self.nudge(Nudge::Empty);
        }
        match reply.unfinished {
            Some(Unfinished::OpenTodos(count)) => self.nudge(Nudge::OpenTodos(count)),
            Some(Unfinished::NoCompletion) => self.nudge(Nudge::NoCompletion),
            Some(Unfinished::Goal) if self.denied.is_none() => self.nudge(Nudge::Goal),
            Some(Unfinished::Goal) | None => self.answered(),
        }
    }

    fn tools_done(&mut self, done: ToolsDone) -> Vec<Action> {
        self.denied = done.denied;
        self.effects.took_effect += done.effects.took_effect;
        self.effects.failed += done.effects.failed;
        self.effects.not_run += done.effects.not_run;
        if let Some(report) = done.completed {
            return self.complete(report);
        }
        if let Some(question) = done.question {
            return self.ask(question);
        }
        self.spent = done.spent;
        if self.repeats_itself(&done.seen) {
            return self.repeated();
        }
        self.repeats = 0;
        self.exhausted().unwrap_or_else(|| self.build())
    }

    /// Whether a call of this reply, or a few calls in turn, have had the same results too often in
    /// a row.
    fn repeats_itself(&mut self, seen: &[ContentHash]) -> bool {
        let before = std::mem::take(&mut self.streaks);
        let streak = |hash: &ContentHash| (*hash, before.get(hash).copied().unwrap_or(0) + 1);
        self.streaks = seen.iter().map(streak).collect();
        self.recent.extend(seen);
        let rounds = SAME_RESULTS as usize;
        self.recent
            .drain(..self.recent.len().saturating_sub(rounds * LONGEST_CYCLE));
        let goes_round = |period: usize| {
            let newest = self
                .recent
                .len()
                .checked_sub(rounds * period)
                .and_then(|start| self.recent.get(start..));
            newest.is_some_and(|newest| {
                newest
                    .iter()
                    .zip(newest.iter().skip(period))
                    .all(|(one, next)| one == next)
            })
        };
        self.streaks.values().any(|streak| *streak >= SAME_RESULTS)
            || (2..=LONGEST_CYCLE).any(goes_round)
    }

    fn repeated(&mut self) -> Vec<Action> {
        if self.repeats == CORRECTIONS {
            let message = "The model made the same calls with the same results again and again, whatever it was told. Rephrase the task or choose another model.";
            return self.end(Outcome::Failed, Reason::new("loop", message));
        }
        if let Some(end) = self.exhausted() {
            return end;
        }
        self.repeats += 1;
        let mut actions = vec![Action::Nudge(Nudge::Repeated)];
        actions.extend(self.build());
        actions
    }

    /// Somebody has looked at how the turn would end.
    fn concluded(&mut self, conclusion: Conclusion) -> Vec<Action> {
        let end = self.concluding.take().unwrap_or_else(|| {
            End::new(
                Outcome::Failed,
                Reason::new(
                    "internal",
                    "The turn had nothing to end with. This is a bug in haft.",
                ),
            )
        });
        let objection = match conclusion {
            Conclusion::Accepted { output } => return self.end_as(End { output, ..end }),
            Conclusion::Rejected(objection) => objection,
            Conclusion::Unread { output } => {
                if self.limits.exceeded(self.replies, &self.spent).is_some() {
                    return self.end_as(End { output, ..end });
                }
                self.text = end.text;
                return self.build();
            }
        };
        if self.objections == CORRECTIONS {
            return match objection.otherwise {
                Some(reason) => self.end_as(End {
                    outcome: Outcome::Failed,
                    reason,
                    ..end
                }),
                None => self.end_as(end),
            };
        }
        self.text = end.text;
        if let Some(end) = self.exhausted() {
            return end;
        }
        self.objections += 1;
        let mut actions = vec![Action::Correct(objection.text)];
        actions.extend(self.build());
        actions
    }

    /// Ends the turn as completed unless somebody objects. What was completed before this run is
    /// beyond objection.
    fn conclude(&mut self, reason: Reason) -> Vec<Action> {
        let nothing_changed = self.effects.all_failed();
        // What did not run was said at once; what was denied is no reason to try it in another way.
        let tried = nothing_changed && self.effects.failed > 0;
        if tried
            && !self.told_of_failure
            && self.limits.exceeded(self.replies, &self.spent).is_none()
        {
            self.told_of_failure = true;
            let mut actions = vec![Action::Nudge(Nudge::NothingChanged)];
            actions.extend(self.build());
            return actions;
        }
        let text = std::mem::take(&mut self.text);
        let end = End {
            text,
            nothing_changed,
            ..End::new(Outcome::Completed, reason)
        };
        if self.replies == 0 {
            return self.end_as(end);
        }
        self.state = TurnState::Concluding;
        self.concluding = Some(end.clone());
        vec![Action::Conclude(end)]
    }

    /// The model spoke and wants nothing more. Right after a denial that means it could not go on
    /// without a person.
    fn answered(&mut self) -> Vec<Action> {
        match self.denied.take() {
            Some(why) => self.end(Outcome::Waiting, Reason::new("denied", why)),
            None => self.conclude(Reason::new("answered", "The model answered.")),
        }
    }

    fn complete(&mut self, report: String) -> Vec<Action> {
        self.text = report;
        self.conclude(Reason::new(
            "completed",
            "The model reported the task as done.",
        ))
    }

    fn ask(&mut self, question: Question) -> Vec<Action> {
        let Question {
            question, about, ..
        } = question;
        self.text = question;
        let reason = match about {
            About::Question => Reason::new("question", "The model asks a question."),
            About::Plan => Reason::new("plan", "The model proposes a plan."),
        };
        self.end(Outcome::Waiting, reason)
    }

    fn nudge(&mut self, nudge: Nudge) -> Vec<Action> {
        if self.nudges == NUDGES_IN_A_ROW {
            return match nudge {
                Nudge::Empty => self.end(
                    Outcome::Failed,
                    Reason::new(
                        "empty_reply",
                        "The model sent only empty replies. Try again, or choose another model.",
                    ),
                ),
                Nudge::Goal => self.end(
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
                | Nudge::NothingChanged => self.answered(),
            };
        }
        if let Some(end) = self.exhausted() {
            return end;
        }
        self.nudges += 1;
        let mut actions = vec![Action::Nudge(nudge)];
        actions.extend(self.build());
        actions
    }

    /// A reply that is still cut. A stored one is gone on with; a new one has been continued as
    /// often as it may.
    fn cut(&mut self) -> Vec<Action> {
        if self.replies == 0 {
            return self.nudge(Nudge::Cut);
        }
        self.end(
            Outcome::Exhausted,
            Reason::new(
                "output_limit",
                "The reply was cut by the output limit again and again. Raise `max_output_tokens` of the model.",
            ),
        )
    }

    /// The end, if a limit leaves no room for another request.
    fn exhausted(&mut self) -> Option<Vec<Action>> {
        let reason = self.limits.exceeded(self.replies, &self.spent)?;
        Some(self.end(Outcome::Exhausted, reason))
    }

    fn build(&mut self) -> Vec<Action> {
        self.state = TurnState::Building;
        vec![Action::BuildRequest]
    }

    fn run(&mut self, calls: Vec<ToolCall>) -> Vec<Action> {
        self.state = TurnState::Running;
        vec![Action::RunTools(calls)]
    }

    fn end(&mut self, outcome: Outcome, reason: Reason) -> Vec<Action> {
        let text = std::mem::take(&mut self.text);
        self.end_as(End {
            text,
            ..End::new(outcome, reason)
        })
    }

    fn end_as(&mut self, end: End) -> Vec<Action> {
        self.state = TurnState::Ended;
        vec![Action::End(end)]
    }
}
