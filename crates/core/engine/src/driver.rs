//! The one driver of a [`Turn`]: does what the turn says, through a host that knows how.
//!
//! [`BaseLoop`](crate::BaseLoop) is a host that keeps its conversation in memory; a
//! [`Session`](crate::Session) has store, context engine, permissions and hooks. What is common to
//! both is here and in [`calls`](crate::calls); what differs is a method of [`TurnHost`].
//!
//! Invariant: a reply is appended before anything acts on it or tells of its calls.

use std::sync::Arc;

use haft_model::{ModelError, Reply};
use haft_tool::Registry;
use haft_types::{
    Cost, Entry, EventBody, Message, ModelSpec, Outcome, Part, PromptLanguage, ToolCall, TurnResult,
};

use crate::meter::{Meter, millis};
use crate::turn::{
    Action, Conclusion, End, Input, Nudge, Position, Reason, Replied, Turn, Unfinished,
};
use crate::turn_io::{TurnIo, call_finished};
use crate::{calls, names};

/// Calls of one reply that are run. No model that means well writes more at once, and each needs a
/// result in the next request.
const MAX_CALLS: usize = 128;

/// The parts of a turn in which agents differ.
pub(crate) trait TurnHost {
    /// What ends a turn at once, because nothing can be kept any more.
    type Failure;

    fn model(&self) -> &ModelSpec;

    fn meter(&mut self) -> &mut Meter;

    /// Puts the next request together: [`Input::Built`], or why it cannot be sent.
    async fn build_request(&mut self, _io: &mut TurnIo<'_>) -> Result<Input, Self::Failure> {
        Ok(Input::Built)
    }

    /// Sends that request, and gives the reply to [`take_reply`].
    async fn send_request(&mut self, io: &mut TurnIo<'_>) -> Result<Input, Self::Failure>;

    /// The message a reply becomes.
    fn draft_reply(&self, reply: Reply, cost: Option<Cost>) -> Message;

    /// What a reply says to the user.
    fn reply_text(&self, message: &Message) -> String {
        message.joined_text()
    }

    /// What a reply without calls would leave to be done.
    async fn unfinished(&self) -> Option<Unfinished>;

    async fn append(&mut self, message: Message) -> Result<(), Self::Failure>;

    /// Appends a message of the engine's own in the user's place.
    async fn append_note(&mut self, text: String) -> Result<(), Self::Failure>;

    /// Runs the calls of a reply and appends their results. The turn has had so many replies.
    async fn run_calls(
        &mut self,
        calls: Vec<ToolCall>,
        replies: u32,
        io: &mut TurnIo<'_>,
    ) -> Result<Input, Self::Failure>;

    fn nudge_text(&self, nudge: Nudge, _replies: u32) -> String {
        nudge.text(PromptLanguage::English).to_owned()
    }

    /// Whether the turn may end so, after so many objections.
    async fn conclude(&mut self, _end: &End, _objections: u32, _io: &mut TurnIo<'_>) -> Conclusion {
        Conclusion::Accepted { output: None }
    }

    /// Why somebody who may has ended the turn, once.
    fn take_stop(&self) -> Option<Reason> {
        None
    }
}

/// Drives a turn from where the conversation stands to its end.
pub(crate) async fn drive<H: TurnHost>(
    host: &mut H,
    turn: &mut Turn,
    position: Position,
    io: &mut TurnIo<'_>,
) -> Result<End, H::Failure> {
    let mut actions = turn.step(Input::Begin(position));
    loop {
        // The turn always asks for something or ends; should it not, this input makes it report its
        // own bug.
        let mut next = Input::Built;
        for action in actions {
            match action {
                Action::BuildRequest => next = host.build_request(io).await?,
                Action::SendRequest => {
                    next = host.send_request(io).await?;
                    turn.note_spent(host.meter().spent());
                }
                Action::RunTools(calls) => next = host.run_calls(calls, turn.replies(), io).await?,
                Action::Nudge(nudge) => {
                    io.notice("nudge", nudge.notice(turn.nudges()));
                    host.append_note(host.nudge_text(nudge, turn.replies()))
                        .await?;
                }
                Action::Correct(text) => host.append_note(text).await?,
                Action::Conclude(end) => {
                    next = Input::Concluded(host.conclude(&end, turn.objections(), io).await);
                }
                Action::End(end) => return Ok(end),
            }
        }
        if io.cancel.is_cancelled() {
            // The time that is over cancels like a person.
            let meter = host.meter();
            let late = meter.limits().out_of_time(meter.elapsed());
            next = late.map_or(Input::Cancelled, Input::Exhausted);
        } else if let Some(reason) = host.take_stop() {
            next = Input::Stopped(reason);
        }
        actions = turn.step(next);
    }
}

/// Appends a reply, then tells of its calls and of what it cost.
pub(crate) async fn take_reply<H: TurnHost>(
    host: &mut H,
    mut reply: Reply,
    io: &mut TurnIo<'_>,
) -> Result<Replied, H::Failure> {
    let left_out = keep_first_calls(&mut reply.parts);
    if left_out > 0 {
        let message = format!(
            "the reply had {} calls: the first {MAX_CALLS} are run",
            MAX_CALLS + left_out
        );
        io.error("too_many_calls", message);
    }
    let model = host.model().full_name();
    let usage = reply.usage;
    let stop = reply.stop.clone();
    let cost = host.meter().take_cost();
    let message = host.draft_reply(reply, cost);
    let calls = message
        .tool_calls()
        .map(|call| call.meant().into_owned())
        .collect();
    let text = host.reply_text(&message);
    let replied = Replied {
        calls,
        text,
        stop,
        unfinished: host.unfinished().await,
    };
    // An empty message would be refused by every API; the turn nudges instead.
    if !message.content.is_empty() {
        host.append(message).await?;
    }
    for call in &replied.calls {
        io.emit(call_finished(call));
    }
    io.emit(EventBody::Usage {
        model,
        usage,
        cost,
        saved_tokens: host.meter().take_saved(),
    });
    Ok(replied)
}

/// Takes the calls that are too many out of a reply, as if they had not been written: a call that
/// stays needs a result.
fn keep_first_calls(parts: &mut Vec<Part>) -> usize {
    let mut calls = 0;
    parts.retain(|part| {
        calls += usize::from(matches!(part, Part::ToolCall(_)));
        calls <= MAX_CALLS
    });
    calls.saturating_sub(MAX_CALLS)
}

/// What a request that failed for good means for the turn.
pub(crate) fn failed(error: &ModelError) -> Input {
    match error {
        ModelError::Cancelled => Input::Cancelled,
        ModelError::OverBudget(message) => Input::Exhausted(Reason {
            code: error.code().into(),
            message: message.clone(),
        }),
        error => Input::Failed(Reason {
            code: error.code().into(),
            message: error.to_string(),
        }),
    }
}

/// Marks a turn that ended as done although no call of its round succeeded, and tells people where
/// something was tried: an answer to a question rests on nothing either, and that is no news to
/// whoever asked it.
pub(crate) fn mark_nothing_changed(
    end: &mut End,
    turn: &Turn,
    history: &[Arc<Entry>],
    registry: &Registry,
    io: &mut TurnIo<'_>,
) {
    let round = history
        .iter()
        .rev()
        .map(|entry| &entry.message)
        .take_while(|message| !message.opens_round());
    let results = round
        .flat_map(Message::tool_results)
        .filter(|result| result.name != names::COMPLETE);
    let errors: Vec<_> = results
        .map(|result| {
            result
                .envelope
                .error
                .as_ref()
                .map(|error| error.code.as_str())
        })
        .collect();
    let succeeded = turn.effects.took_effect > 0 || errors.contains(&None);
    let could_change = registry
        .offered()
        .any(|tool| calls::has_effects(tool.access()));
    let tried = end.nothing_changed || errors.contains(&Some("unknown_tool"));
    end.nothing_changed |= end.outcome == Outcome::Completed && could_change && !succeeded;
    if end.nothing_changed && tried {
        io.notice(
            "nothing_changed",
            "No write and no command of this run succeeded: nothing was changed.",
        );
    }
}

/// The turn as its last event shows it.
pub(crate) fn turn_result(end: End, turn: &Turn, meter: &Meter) -> TurnResult {
    TurnResult {
        outcome: end.outcome,
        code: end.reason.code,
        message: end.reason.message,
        text: end.text,
        turns: turn.replies(),
        duration_ms: millis(meter.elapsed()),
        usage: meter.usage(),
        cost: meter.cost(),
        structured_output: end.output,
        nothing_changed: end.nothing_changed,
    }
}
