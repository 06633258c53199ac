//! Builds the result of a turn that has ended.

use haft_types::{Outcome, TurnResult};

use super::turn_io::TurnIo;
use super::{Turn, TurnEnd};
use crate::budget::meter::{Meter, to_millis};

/// The result that a turn's prompt asks for, as far as haft can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestedResult {
    /// The prompt asks for a change of files, and no earlier turn of the round made one.
    Change,
    /// The prompt may be answered without a change.
    Any,
}

/// Marks a completed turn in which no file was changed although `requested` demands a change. Emits
/// a notice for every marked turn, unless the user refused a call and therefore knows.
pub(crate) fn mark_nothing_changed(
    end: &mut TurnEnd,
    turn: &Turn,
    requested: RequestedResult,
    io: &mut TurnIo<'_>,
) {
    let effects = turn.effects;
    end.nothing_changed |= end.outcome == Outcome::Completed
        && requested == RequestedResult::Change
        && effects.took_effect == 0;
    if end.nothing_changed && effects.refused == 0 {
        io.emit_notice("nothing_changed", "No file was changed in this turn.");
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
