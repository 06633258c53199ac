//! Builds the result of a turn that has ended.

use std::sync::Arc;

use haft_tool::Registry;
use haft_types::{Entry, Message, Outcome, TurnResult};

use super::turn_io::TurnIo;
use super::{Turn, TurnEnd};
use crate::budget::meter::{Meter, to_millis};
use crate::calls::one_call;
use crate::names;

/// Marks a completed turn as having changed nothing if no call of its round succeeded. Emits a
/// notice only if a change was attempted: after an answer to a question, for example, the user does
/// not expect a change.
pub(crate) fn mark_nothing_changed(
    end: &mut TurnEnd,
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
        .filter(|result| result.name != names::COMPLETE_TOOL);
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
        .offered_tools()
        .any(|tool| one_call::has_effects(tool.access()));
    let tried = end.nothing_changed || errors.contains(&Some("unknown_tool"));
    end.nothing_changed |= end.outcome == Outcome::Completed && could_change && !succeeded;
    if end.nothing_changed && tried {
        io.emit_notice(
            "nothing_changed",
            "No write and no command of this run succeeded: nothing was changed.",
        );
    }
}

/// Returns the result that the turn's last event contains.
pub(crate) fn build_turn_result(end: TurnEnd, turn: &Turn, meter: &Meter) -> TurnResult {
    TurnResult {
        outcome: end.outcome,
        code: end.reason.code,
        message: end.reason.message,
        text: end.text,
        turns: turn.replies(),
        duration_ms: to_millis(meter.elapsed()),
        usage: meter.usage(),
        cost: meter.cost(),
        structured_output: end.output,
        nothing_changed: end.nothing_changed,
    }
}
