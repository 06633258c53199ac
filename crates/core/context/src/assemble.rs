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
use crate::build::blocks::repair_blocks;
use crate::build::copies;
use crate::build::execute_view::{self, Folding};
use crate::build::hints;
use crate::build::integrity;
use crate::build::layers::Layers;
use crate::build::placement::Placement;
use crate::build::rounds::{ArchiveCut, Timeline};
use crate::cache::boundaries::{self, RunMotion};
use crate::cache::prefix::{DeliberateChanges, Sent, compare_requests};
use crate::cache::pricing::{Priced, find_cached_base};
use crate::carried::{Carried, Cleared, ReminderCopy};
use crate::error::ContextError;
use crate::policy::{Compress, Policy, Reduction, View};
use crate::reduce::compaction::remove_archived;
use crate::reduce::compress::{compress_rounds_before, show_envelopes};
use crate::reduce::edits::{EditState, Prepared};
use crate::reduce::excerpt::{Excerpts, apply_earlier_excerpts};
use crate::reduce::ladder::{self, InputRoom, LadderResult, LadderStep};
use crate::reduce::prune::{Obsolete, PruneLimits, Pruned, prune_timeline};
use crate::reduce::when_free;
use crate::scale::Scale;
use crate::snapshot::Snapshot;

/// Assembles the next request.
///
/// Returns an error if there is no input, if a setting is invalid, or if the request does not fit
/// the window even after all reductions.
pub fn assemble(snapshot: &Snapshot<'_>) -> Result<Assembly, ContextError> {
    let policy = snapshot.policy;
    let model = snapshot.model;
    let maker = snapshot.entry_maker();
    policy.validate()?;
    let mut blocks = repair_blocks(snapshot.history, snapshot.counter);
    let repaired = mem::take(&mut blocks.repairs);
    let mut line = Timeline::new(blocks);
    if line.items.is_empty() {
        return Err(ContextError::NoInput);
    }
    let round = line.round;
    let goal = Goal::for_snapshot(snapshot)?;

    let edits = Prepared::new(&mut line, snapshot.edits);
    remove_archived(&mut line);
    ladder::apply_earlier_cut(&mut line, goal.decided, snapshot);
    let marked = snapshot.marks.map(EditState::from);
    let deleted = Prepared::new(&mut line, marked.as_ref()).apply_to(&mut line, maker);
    apply_earlier_excerpts(
        &mut line,
        goal.decided.map(|cleared| &cleared.excerpts),
        snapshot,
    );
    let edited = edits.apply_to(&mut line, maker);
    let mut layers = Layers::new(snapshot, line);
    let compressed = compress_old_results(&mut layers, &goal, snapshot);
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
        View::Layered => lay_out_layered(layers, &goal, compressed, snapshot)?,
        View::Execute => lay_out_execute(layers, &goal, compressed, snapshot)?,
    };

    let done = DeliberateChanges {
        deleted: deleted.as_ref().is_ok_and(|tokens| *tokens > 0),
        ladder: !reduced.ladder.is_empty(),
    };
    let mut sent = Sent::from_request(&request, model, policy, snapshot.edits);
    let mut prefix = snapshot
        .last
        .map(|last| compare_requests(last, &sent, done));
    let last = snapshot.last.zip(prefix.as_ref().map(|prefix| prefix.kept));
    boundaries::mark_boundaries(&mut request.segments, run, last, &model.cache);
    sent.copy_boundaries(&request);
    let priced = Priced {
        now: &sent,
        model,
        tool_tokens: request.tools.tokens,
    };
    let previous = snapshot.previous_request();
    let base = find_cached_base(&sent, model, previous, snapshot.own);
    let expected = priced.expected_usage(request.estimated_tokens(), base);
    if let (Some(last), Some(broken)) = (
        previous,
        prefix.as_mut().and_then(|prefix| prefix.broken.as_mut()),
    ) {
        broken.price = priced.price_break(last, snapshot.own, None);
    }

    let budget = Budget::for_request(&request, model, goal.room.output_reserve);
    if budget.remaining < 0 {
        return Err(ContextError::TooLarge {
            tokens: budget.used_tokens(),
            room: budget.max_input_tokens(),
            table: budget.format_table(),
        });
    }
    let mut warnings = collect_warnings(&request, &budget, policy);
    if deleted.is_err() || edited.is_err() {
        warnings.push(Warning::MarksNotApplied);
    }
    let scale = Scale::for_model(model);
    let carried = Carried {
        copies,
        compressed_rounds: compressed.rounds,
    };
    let account = Account {
        budget,
        round,
        repaired,
        deleted_tokens: scale.to_model_tokens(deleted.unwrap_or(0)),
        edited_tokens: scale.to_model_tokens(edited.unwrap_or(0)),
        pruned_tokens: scale.to_model_tokens(reduced.pruned.tokens),
        pruning_steps: reduced.pruned.steps,
        excerpts: reduced.excerpts.keys().copied().collect(),
        cleared: collect_decisions(&goal, &reduced),
        carried: (carried != snapshot.carried.cloned().unwrap_or_default()).then_some(carried),
        ladder: reduced
            .ladder
            .iter()
            .map(|step| step.scale_tokens(scale))
            .collect(),
        prefix,
        expected,
        expected_cost: model.price.map(|price| price.request_cost(expected)),
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
    /// The counted tokens above which the model's prices rise, or `u64::MAX`.
    dear: u64,
    /// The decisions of earlier requests that still hold.
    decided: Option<&'a Cleared>,
    reduction: Reduction,
}

impl<'a> Goal<'a> {
    fn for_snapshot(snapshot: &Snapshot<'a>) -> Result<Self, ContextError> {
        let policy = snapshot.policy;
        let model = snapshot.model;
        let room = InputRoom::new(model, policy).limited_to(snapshot.most, policy);
        let target = policy.safe_zone_tokens(model)?.min(room.nominal_soft);
        let scale = Scale::for_model(model);
        let target = scale.to_counted_tokens(target);
        let long = model.price.and_then(|price| price.long);
        let dear = long.map_or(u64::MAX, |long| scale.to_counted_tokens(long.above));
        let zone = policy.nominal_zone(model)?.min(room.nominal_soft);
        let decided = Cleared::valid_for_target(snapshot.cleared, zone);
        Ok(Self {
            room,
            zone,
            target,
            dear,
            decided,
            reduction: policy.reduction(model),
        })
    }
}

/// The result of compressing finished rounds.
#[derive(Clone, Copy)]
struct Compressed {
    /// The first round whose results are not compressed under [`Compress::WhenFree`]; 0 for the
    /// other values of [`Compress`].
    rounds: u32,
    /// The time at which pruning clears obsolete results.
    obsolete: Obsolete,
    /// True if the request exceeded the safe zone before compression.
    was_over: bool,
}

/// Compresses the results of finished rounds at the time that the policy sets for it.
fn compress_old_results(
    layers: &mut Layers,
    goal: &Goal<'_>,
    snapshot: &Snapshot<'_>,
) -> Compressed {
    let round = layers.line.round;
    let whole = Compressed {
        rounds: 0,
        obsolete: Obsolete::First,
        was_over: false,
    };
    match goal.reduction.compress {
        Compress::RoundEnd => {
            compress_rounds_before(
                &mut layers.line,
                round,
                snapshot.compression_settings(),
                snapshot.entry_maker(),
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
    /// The change in the position of the reminders from this request to the next.
    run: RunMotion,
    copies: Vec<ReminderCopy>,
    reduced: Reduced,
}

/// The parts of a request that were left out because it was too large.
struct Reduced {
    pruned: Pruned,
    ladder: Vec<LadderStep>,
    /// The point before which this request leaves out messages; `None` if it leaves out none.
    cut: Option<ArchiveCut>,
    /// The results that this request sends as excerpts for the first time.
    excerpts: Excerpts,
}

/// Lays out the layered view: message by message, with the reminders among them.
fn lay_out_layered(
    mut layers: Layers,
    goal: &Goal<'_>,
    compressed: Compressed,
    snapshot: &Snapshot<'_>,
) -> Result<LaidOut, ContextError> {
    let policy = snapshot.policy;
    let maker = snapshot.entry_maker();
    let pruned = prune_to_goal(goal, &mut layers, compressed, snapshot);
    hints::add_hints(&mut layers.line, policy.message_ids, maker);
    let reduced = reduce_to_fit(pruned, &mut layers, goal.room, snapshot)?;
    layers.insert_opening_message(maker);
    let tools = Arc::clone(&layers.tools);
    let required = layers.required;
    let run = layers.run_motion(policy);
    let (segments, copies) = match policy.reminders {
        Placement::CacheAware => copies::lay_out_with_copies(layers, snapshot),
        Placement::Front
        | Placement::Tail
        | Placement::FromEnd(_)
        | Placement::BeforeAssistant(_)
        | Placement::AfterToolResult(_) => (layers.into_segments(policy), Vec::new()),
    };
    let request = build_request(segments, tools, snapshot);
    integrity::check_request(&request, required)?;
    Ok(LaidOut {
        request,
        run,
        copies,
        reduced,
    })
}

/// Lays out the execute view in four messages. The last of these messages change with every
/// request, so the cache treats them like a run of reminders that moves.
fn lay_out_execute(
    mut layers: Layers,
    goal: &Goal<'_>,
    compressed: Compressed,
    snapshot: &Snapshot<'_>,
) -> Result<LaidOut, ContextError> {
    let all = layers.line.items.clone();
    execute_view::remove_old_results(&mut layers.line);
    let pruned = prune_to_goal(goal, &mut layers, compressed, snapshot);
    let reduced = reduce_to_fit(pruned, &mut layers, goal.room, snapshot)?;
    // Pruning and the ladder did not count the dialogue of older rounds, so it is shortened until
    // the request fits.
    let laid_out = |folding| {
        build_request(
            execute_view::build_execute_view(snapshot, &layers, &all, folding),
            Arc::clone(&layers.tools),
            snapshot,
        )
    };
    let [digest, utterances, inputs] = [Folding::Digest, Folding::Utterances, Folding::Inputs];
    let fits = |request: &Request| request.estimated_tokens() <= goal.room.hard;
    let request = [digest, utterances]
        .into_iter()
        .map(laid_out)
        .find(fits)
        .unwrap_or_else(|| laid_out(inputs));
    execute_view::check_execute_view(&request)?;
    Ok(LaidOut {
        request,
        run: RunMotion::Moves,
        copies: Vec::new(),
        reduced,
    })
}

fn build_request(segments: Vec<Segment>, tools: Arc<ToolSet>, snapshot: &Snapshot<'_>) -> Request {
    let cache_key = snapshot.cache_key.map(str::to_owned);
    Request {
        segments,
        tools,
        max_output_tokens: snapshot.model.max_output_tokens,
        cache_key,
    }
}

/// Clears results and arguments until the request fits into the safe zone.
fn prune_to_goal(
    goal: &Goal<'_>,
    layers: &mut Layers,
    compressed: Compressed,
    snapshot: &Snapshot<'_>,
) -> Pruned {
    let policy = snapshot.policy;
    let fixed = layers.fixed_tokens()
        + hints::count_hint_tokens(&layers.line, policy.message_ids, snapshot.counter);
    let Compressed {
        obsolete, was_over, ..
    } = compressed;
    let limits = PruneLimits {
        fixed,
        target: goal.target,
        urgent: goal.room.soft,
        dear: goal.dear,
        was_over,
        policy,
        reduction: goal.reduction,
        obsolete,
    };
    prune_timeline(
        &mut layers.line,
        goal.decided,
        limits,
        snapshot.entry_maker(),
    )
}

/// Applies the ladder of further reductions (older rounds, large results, the system layer) if
/// pruning was not enough.
fn reduce_to_fit(
    pruned: Pruned,
    layers: &mut Layers,
    room: InputRoom,
    snapshot: &Snapshot<'_>,
) -> Result<Reduced, ContextError> {
    let LadderResult {
        steps,
        cut,
        excerpts,
    } = ladder::reduce_to_fit(layers, room, snapshot)?;
    Ok(Reduced {
        pruned,
        ladder: steps,
        cut,
        excerpts,
    })
}

/// Returns the decisions to store, or `None` if this request added none.
fn collect_decisions(goal: &Goal<'_>, reduced: &Reduced) -> Option<Cleared> {
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

fn collect_warnings(request: &Request, budget: &Budget, policy: &Policy) -> Vec<Warning> {
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
    if budget.used_tokens() as f64 >= policy.warn_at * budget.max_input_tokens() as f64 {
        warnings.push(Warning::WindowFilling {
            tokens: budget.used_tokens(),
            window: budget.window,
        });
    }
    warnings
}

#[cfg(test)]
mod tests;
