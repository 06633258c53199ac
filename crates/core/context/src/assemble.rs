//! Assembles the next request from a conversation.
//!
//! [`assemble`] works on shared pointers: messages that were counted and hashed when they were
//! stored are not read again. The function holds no state; decisions that the next request depends
//! on are returned in the [`Account`].

use std::mem;
use std::sync::Arc;

use haft_types::{Layer, Request, Segment, ToolProtocol, ToolSet};

use crate::account::{Account, Assembly, Warning};
use crate::budget::Budget;
use crate::build::blocks::repair;
use crate::build::copies;
use crate::build::hints;
use crate::build::integrity;
use crate::build::layers::Layers;
use crate::build::placement::Placement;
use crate::build::rounds::{ArchiveCut, Timeline};
use crate::build::view::{self, Folding};
use crate::cache::boundaries::{self, RunMotion};
use crate::cache::prefix::{DeliberateChanges, Sent, compare};
use crate::cache::pricing::Priced;
use crate::carried::{Carried, Cleared, ReminderCopy};
use crate::error::ContextError;
use crate::policy::{Compress, Policy, Reduction, View};
use crate::reduce::compaction::drop_archived;
use crate::reduce::compress::{compress_finished, show_envelopes};
use crate::reduce::edits::{EditState, Prepared};
use crate::reduce::excerpt::{Excerpts, apply_remembered};
use crate::reduce::ladder::{self, Climbed, InputRoom, LadderStep};
use crate::reduce::prune::{Obsolete, PruneLimits, Pruned, prune};
use crate::reduce::when_free;
use crate::reduce::working;
use crate::scale::Scale;
use crate::snapshot::Snapshot;

/// Assembles the next request.
///
/// Returns an error if there is no input, if a setting is invalid, or if the request does not fit
/// the window even after all reductions.
pub fn assemble(snapshot: &Snapshot<'_>) -> Result<Assembly, ContextError> {
    let policy = snapshot.policy;
    let model = snapshot.model;
    let maker = snapshot.maker();
    policy.check()?;
    let mut blocks = repair(snapshot.history, snapshot.counter);
    let repaired = mem::take(&mut blocks.repairs);
    let mut line = Timeline::new(blocks);
    if line.items.is_empty() {
        return Err(ContextError::NoInput);
    }
    let round = line.round;
    let goal = Goal::of(snapshot)?;

    let edits = Prepared::of(&mut line, snapshot.edits);
    drop_archived(&mut line);
    ladder::drop_remembered(&mut line, goal.decided, snapshot);
    let marked = snapshot.marks.map(EditState::from);
    let deleted = Prepared::of(&mut line, marked.as_ref()).apply(&mut line, maker);
    apply_remembered(
        &mut line,
        goal.decided.map(|cleared| &cleared.excerpts),
        snapshot,
    );
    let edited = edits.apply(&mut line, maker);
    let mut layers = Layers::new(snapshot, line);
    let compressed = compress(&mut layers, &goal, snapshot);
    match model.tool_protocol {
        ToolProtocol::React => show_envelopes(&mut layers.line, maker),
        ToolProtocol::Native | ToolProtocol::Xml => {}
    }

    // The two views lay out the request differently; the accounting below is shared.
    let LaidOut {
        mut request,
        run,
        copies,
        reduced,
    } = match policy.view {
        View::Layered => layered(layers, &goal, compressed, snapshot)?,
        View::Execute => execute(layers, &goal, compressed, snapshot)?,
    };

    let done = DeliberateChanges {
        deleted: deleted.as_ref().is_ok_and(|tokens| *tokens > 0),
        ladder: !reduced.ladder.is_empty(),
    };
    let mut sent = Sent::of(&request, model, policy, snapshot.edits);
    let mut prefix = snapshot.last.map(|last| compare(last, &sent, done));
    let last = snapshot.last.zip(prefix.as_ref().map(|prefix| prefix.kept));
    boundaries::set(&mut request.segments, run, last, &model.cache);
    sent.copy_boundaries(&request);
    let priced = Priced {
        now: &sent,
        model,
        tool_tokens: request.tools.tokens,
    };
    // Nothing can be read from an expired cache, and nothing in it can be lost.
    let last = last.filter(|_| !snapshot.has_expired());
    let expected = priced.expected(request.tokens(), last);
    if let (Some((last, kept)), Some(broken)) = (
        last,
        prefix.as_mut().and_then(|prefix| prefix.broken.as_mut()),
    ) {
        priced.settle(broken, last, kept);
    }

    let budget = Budget::of(&request, model, goal.room.output_reserve);
    if budget.remaining < 0 {
        return Err(ContextError::TooLarge {
            tokens: budget.used(),
            room: budget.room(),
            table: budget.table(),
        });
    }
    let mut warnings = warnings(&request, &budget, policy);
    if deleted.is_err() || edited.is_err() {
        warnings.push(Warning::MarksNotApplied);
    }
    let scale = Scale::of(model);
    let carried = Carried {
        copies,
        compressed_rounds: compressed.rounds,
    };
    let account = Account {
        budget,
        round,
        repaired,
        deleted_tokens: scale.up(deleted.unwrap_or(0)),
        edited_tokens: scale.up(edited.unwrap_or(0)),
        pruned_tokens: scale.up(reduced.pruned.tokens),
        pruning_steps: reduced.pruned.steps,
        excerpts: reduced.excerpts.keys().copied().collect(),
        cleared: remember(&goal, &reduced),
        carried: (carried != snapshot.carried.cloned().unwrap_or_default()).then_some(carried),
        ladder: reduced
            .ladder
            .iter()
            .map(|step| step.scaled(scale))
            .collect(),
        prefix,
        expected,
        expected_cost: model.price.map(|price| price.cost(expected)),
        sent,
        warnings,
    };
    Ok(Assembly { request, account })
}

/// The token limits of a request, and the earlier decisions that still hold.
struct Goal<'a> {
    room: InputRoom,
    /// The safe zone in nominal tokens. Decisions are stored for this value, because the model's
    /// correction factor changes with every reply and must not undo them.
    zone: u64,
    /// The safe zone in counted tokens.
    target: u64,
    /// The decisions of earlier requests that still hold.
    decided: Option<&'a Cleared>,
    reduction: Reduction,
}

impl<'a> Goal<'a> {
    fn of(snapshot: &Snapshot<'a>) -> Result<Self, ContextError> {
        let policy = snapshot.policy;
        let model = snapshot.model;
        let room = InputRoom::new(model, policy).at_most(snapshot.most, policy);
        let target = policy.safe_zone_tokens(model)?.min(room.nominal_soft);
        let target = Scale::of(model).down(target);
        let zone = policy.nominal_zone(model)?.min(room.nominal_soft);
        let decided = Cleared::valid(snapshot.cleared, zone);
        Ok(Self {
            room,
            zone,
            target,
            decided,
            reduction: policy.reduction(model),
        })
    }
}

/// The result of compressing finished rounds.
#[derive(Clone, Copy)]
struct Compressed {
    /// Results of rounds before this one are compressed under [`Compress::WhenFree`]; otherwise 0.
    rounds: u32,
    /// The point at which pruning removes obsolete results.
    obsolete: Obsolete,
    /// True if the request exceeded the safe zone before compression.
    was_over: bool,
}

/// Compresses the results of finished rounds, if the policy demands it.
fn compress(layers: &mut Layers, goal: &Goal<'_>, snapshot: &Snapshot<'_>) -> Compressed {
    let round = layers.line.round;
    if goal.reduction.compress != Compress::Never {
        working::mark_long_reads(&mut layers.line, snapshot.policy.compress_limits);
    }
    let whole = Compressed {
        rounds: 0,
        obsolete: Obsolete::First,
        was_over: false,
    };
    match goal.reduction.compress {
        Compress::RoundEnd => {
            compress_finished(
                &mut layers.line,
                round,
                snapshot.compression(),
                snapshot.maker(),
            );
            whole
        }
        Compress::WhenFree => {
            let (rounds, was_over) =
                when_free::compress_when_free(layers, goal.target, goal.decided, snapshot);
            let rewritten = when_free::is_rewritten(&layers.line, 0, snapshot);
            Compressed {
                rounds,
                obsolete: if rewritten {
                    Obsolete::Now
                } else {
                    Obsolete::First
                },
                was_over,
            }
        }
        Compress::Never => whole,
    }
}

/// A request laid out by one of the two views, and the reductions that made it fit.
struct LaidOut {
    request: Request,
    /// The position of the reminders in the next request, relative to this one.
    run: RunMotion,
    copies: Vec<ReminderCopy>,
    reduced: Reduced,
}

/// The parts left out because room was short.
struct Reduced {
    pruned: Pruned,
    ladder: Vec<LadderStep>,
    /// The end of the messages that this request leaves out.
    cut: Option<ArchiveCut>,
    /// The results that this request sends as excerpts for the first time.
    excerpts: Excerpts,
}

/// Lays out the layered view: message by message, with the reminders among them.
fn layered(
    mut layers: Layers,
    goal: &Goal<'_>,
    compressed: Compressed,
    snapshot: &Snapshot<'_>,
) -> Result<LaidOut, ContextError> {
    let policy = snapshot.policy;
    let maker = snapshot.maker();
    let pruned = prune_to(goal, &mut layers, compressed, snapshot);
    hints::add(&mut layers.line, policy.message_ids, maker);
    let reduced = climb(pruned, &mut layers, goal.room, snapshot)?;
    layers.let_the_user_open(maker);
    let tools = Arc::clone(&layers.tools);
    let required = layers.required;
    let run = layers.outlook(policy);
    let (segments, copies) = match policy.reminders {
        Placement::CacheAware => copies::lay_out(layers, snapshot),
        Placement::Front
        | Placement::Tail
        | Placement::FromEnd(_)
        | Placement::BeforeAssistant(_)
        | Placement::AfterToolResult(_) => (layers.into_segments(policy), Vec::new()),
    };
    let request = request(segments, tools, snapshot);
    integrity::check(&request, required)?;
    Ok(LaidOut {
        request,
        run,
        copies,
        reduced,
    })
}

/// Lays out the execute view: four messages, whose end changes with every request like a moving run
/// of reminders.
fn execute(
    mut layers: Layers,
    goal: &Goal<'_>,
    compressed: Compressed,
    snapshot: &Snapshot<'_>,
) -> Result<LaidOut, ContextError> {
    let all = layers.line.items.clone();
    view::forget_old_steps(&mut layers.line);
    let pruned = prune_to(goal, &mut layers, compressed, snapshot);
    let reduced = climb(pruned, &mut layers, goal.room, snapshot)?;
    // Pruning and the ladder did not count the dialogue of older rounds, so it is shortened until
    // the request fits.
    let laid_out = |folding| {
        request(
            view::execute(snapshot, &layers, &all, folding),
            Arc::clone(&layers.tools),
            snapshot,
        )
    };
    let [digest, utterances, inputs] = [Folding::Digest, Folding::Utterances, Folding::Inputs];
    let fits = |request: &Request| request.tokens() <= goal.room.hard;
    let request = [digest, utterances]
        .into_iter()
        .map(laid_out)
        .find(fits)
        .unwrap_or_else(|| laid_out(inputs));
    view::check(&request)?;
    Ok(LaidOut {
        request,
        run: RunMotion::Moves,
        copies: Vec::new(),
        reduced,
    })
}

fn request(segments: Vec<Segment>, tools: Arc<ToolSet>, snapshot: &Snapshot<'_>) -> Request {
    let cache_key = snapshot.cache_key.map(str::to_owned);
    Request {
        segments,
        tools,
        max_output_tokens: snapshot.model.max_output_tokens,
        cache_key,
    }
}

/// Prunes messages until the request fits into the safe zone.
fn prune_to(
    goal: &Goal<'_>,
    layers: &mut Layers,
    compressed: Compressed,
    snapshot: &Snapshot<'_>,
) -> Pruned {
    let policy = snapshot.policy;
    let fixed = layers.fixed() + hints::tokens(&layers.line, policy.message_ids, snapshot.counter);
    let Compressed {
        obsolete, was_over, ..
    } = compressed;
    let limits = PruneLimits {
        fixed,
        target: goal.target,
        urgent: goal.room.soft,
        was_over,
        policy,
        reduction: goal.reduction,
        obsolete,
    };
    prune(&mut layers.line, goal.decided, limits, snapshot.maker())
}

/// Leaves out whole rounds and more, if pruning was not enough.
fn climb(
    pruned: Pruned,
    layers: &mut Layers,
    room: InputRoom,
    snapshot: &Snapshot<'_>,
) -> Result<Reduced, ContextError> {
    let Climbed {
        steps,
        cut,
        excerpts,
    } = ladder::climb(layers, room, snapshot)?;
    Ok(Reduced {
        pruned,
        ladder: steps,
        cut,
        excerpts,
    })
}

/// Returns the decisions to store, or `None` if this request added none.
fn remember(goal: &Goal<'_>, reduced: &Reduced) -> Option<Cleared> {
    let newly = &reduced.pruned.newly;
    if newly.is_empty() && reduced.cut.is_none() && reduced.excerpts.is_empty() {
        return None;
    }
    let mut cleared = goal.decided.cloned().unwrap_or_default();
    cleared.target = goal.zone;
    cleared.ids.extend(newly);
    cleared.excerpts.extend(&reduced.excerpts);
    if let Some(ArchiveCut {
        first_kept,
        users_from,
    }) = reduced.cut
    {
        (cleared.first_kept, cleared.users_from) = (Some(first_kept), users_from);
    }
    Some(cleared)
}

fn warnings(request: &Request, budget: &Budget, policy: &Policy) -> Vec<Warning> {
    let mut warnings: Vec<_> = request
        .tools
        .specs
        .iter()
        .filter(|spec| spec.description.trim().is_empty())
        .map(|spec| Warning::ToolWithoutDescription {
            name: spec.name.clone(),
        })
        .collect();
    let system = budget
        .layers
        .iter()
        .find(|layer| layer.layer == Layer::System)
        .map_or(0, |layer| layer.tokens);
    if system > u64::from(policy.system_warn) {
        warnings.push(Warning::LargeSystem {
            tokens: system,
            limit: u64::from(policy.system_warn),
        });
    }
    if budget.used() as f64 >= policy.warn_at * budget.room() as f64 {
        warnings.push(Warning::WindowFilling {
            tokens: budget.used(),
            window: budget.window,
        });
    }
    warnings
}

#[cfg(test)]
mod tests;
