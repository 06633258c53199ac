//! The whole way from a conversation to the next request.
//!
//! [`assemble`] walks pointers: messages that were counted and hashed when they were stored are shared, never looked into
//! again. It holds no state; what one request decides for the next one comes back in the [`Account`].

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use haft_types::{Layer, MessageId, Request, ToolProtocol};

use crate::account::{Account, Assembly, Warning};
use crate::budget::Budget;
use crate::build::blocks::repair;
use crate::build::copies;
use crate::build::hints;
use crate::build::integrity;
use crate::build::layers::Layers;
use crate::build::placement::Place;
use crate::build::rounds::{Item, Line};
use crate::build::view;
use crate::cache::boundaries::{self, Run};
use crate::cache::prefix::{Done, Sent, compare};
use crate::cache::pricing::Priced;
use crate::carried::{Carried, Cleared};
use crate::error::ContextError;
use crate::policy::{Compress, Policy, View};
use crate::reduce::compaction::drop_archived;
use crate::reduce::compress::{compress_finished, show_envelopes};
use crate::reduce::edits::Prepared;
use crate::reduce::ladder::{self, LadderStep, Room};
use crate::reduce::marks::{self, Marks};
use crate::reduce::prune::{Limits, Obsolete, prune};
use crate::reduce::when_free;
use crate::scale::Scale;
use crate::snapshot::Snapshot;

static NO_MARKS: Marks = Marks { deleted: BTreeSet::new(), pinned: BTreeSet::new(), masked: BTreeSet::new() };

/// Makes the next request.
pub fn assemble(snapshot: &Snapshot<'_>) -> Result<Assembly, ContextError> {
    let (policy, model, maker) = (snapshot.policy, snapshot.model, snapshot.maker());
    policy.check()?;
    let mut blocks = repair(snapshot.history, snapshot.counter);
    let repaired = mem::take(&mut blocks.repairs);
    let mut line = Line::new(blocks);
    if line.items.is_empty() {
        return Err(ContextError::NoInput);
    }
    let round = line.round;
    let edits = Prepared::of(&mut line, snapshot.edits);
    drop_archived(&mut line);
    let room = Room::new(model, policy).at_most(snapshot.most, policy);
    // Decisions are kept for the zone as it is written: the factor is corrected from reply to reply, and that must not take
    // them back.
    let scale = Scale::of(model);
    let zone = policy.safe_zone.tokens(model.context_window)?.min(room.nominal_soft);
    let target = scale.down(zone);
    let decided = Cleared::valid(snapshot.cleared, zone);
    ladder::drop_remembered(&mut line, decided);
    let marks = snapshot.marks.unwrap_or(&NO_MARKS);
    let deleted = marks::delete(&mut line, marks);
    let edited = edits.apply(&mut line, maker);
    let mut layers = Layers::new(snapshot, line);
    let (mut compressed_rounds, mut obsolete) = (0, Obsolete::First);
    match policy.compress {
        Compress::RoundEnd => compress_finished(&mut layers.line, round, policy.compress_limits, maker),
        Compress::WhenFree => {
            compressed_rounds = when_free::compress_when_free(&mut layers, target, snapshot);
            if when_free::is_rewritten(&layers.line, 0, snapshot) {
                obsolete = Obsolete::Now;
            }
        }
        Compress::Never => {}
    }
    match model.tool_protocol {
        ToolProtocol::React => show_envelopes(&mut layers.line, maker),
        ToolProtocol::Native | ToolProtocol::Xml => {}
    }
    match policy.view {
        View::Layered => {}
        View::Execute => view::forget_old_steps(&mut layers.line),
    }
    let fixed = layers.fixed() + hints::tokens(&layers.line, policy.message_ids, snapshot.counter);
    let limits = Limits { fixed, target, policy, marks, obsolete };
    let pruned = prune(&mut layers.line, decided, limits, maker);
    match policy.view {
        View::Layered => hints::add(&mut layers.line, policy.message_ids, maker),
        View::Execute => {}
    }
    let ladder = ladder::climb(&mut layers, room, snapshot)?;
    let first_kept = match ladder.first() {
        Some(LadderStep::OlderRounds { .. }) => layers.line.items.iter().find(|item| !item.pinned).map(Item::id),
        Some(LadderStep::ShortSystem { .. } | LadderStep::BareMinimum { .. }) | None => None,
    };
    match policy.view {
        View::Layered => layers.let_the_user_open(maker),
        View::Execute => {}
    }
    let (tools, required) = (Arc::clone(&layers.tools), layers.required);
    let run = layers.outlook(policy);
    let (run, (segments, copies)) = match policy.view {
        View::Layered if policy.reminders == Place::CacheAware => (run, copies::lay_out(layers, snapshot)),
        View::Layered => (run, (layers.into_segments(policy), Vec::new())),
        // The end of this view is new every time, as a moving run is.
        View::Execute => (Run::Moves, (view::execute(snapshot, &layers), Vec::new())),
    };
    let carried = Carried { copies, compressed_rounds };
    let mut request = Request {
        segments,
        tools,
        max_output_tokens: model.max_output_tokens,
        cache_key: snapshot.cache_key.map(str::to_owned),
    };
    match policy.view {
        View::Layered => integrity::check(&request, required)?,
        View::Execute => view::check(&request)?,
    }
    let done = Done { deleted: deleted.as_ref().is_ok_and(|tokens| *tokens > 0), ladder: !ladder.is_empty() };
    let mut sent = Sent::of(&request, model, policy, snapshot.edits);
    let mut prefix = snapshot.last.map(|last| compare(last, &sent, done));
    let last = snapshot.last.zip(prefix.as_ref().map(|prefix| prefix.kept));
    boundaries::set(&mut request.segments, run, last, &model.cache);
    sent.copy_boundaries(&request);
    let priced = Priced { now: &sent, model, tool_tokens: request.tools.tokens };
    // What is not in the cache any more can neither be read nor lost.
    let last = last.filter(|_| !snapshot.has_expired());
    let expected = priced.expected(request.tokens(), last);
    if let (Some((last, kept)), Some(broken)) = (last, prefix.as_mut().and_then(|prefix| prefix.broken.as_mut())) {
        priced.settle(broken, last, kept);
    }
    let budget = Budget::of(&request, model, room.output_reserve);
    if budget.remaining < 0 {
        return Err(ContextError::TooLarge { tokens: budget.used(), room: budget.room(), table: budget.table() });
    }
    let mut warnings = warnings(&request, &budget, policy);
    if deleted.is_err() || edited.is_err() {
        warnings.push(Warning::MarksNotApplied);
    }
    let account = Account {
        budget,
        round,
        repaired,
        deleted_tokens: scale.up(deleted.unwrap_or(0)),
        edited_tokens: scale.up(edited.unwrap_or(0)),
        pruned_tokens: scale.up(pruned.tokens),
        pruning_steps: pruned.steps,
        cleared: remember(decided, zone, pruned.newly, first_kept),
        carried: (carried != snapshot.carried.cloned().unwrap_or_default()).then_some(carried),
        ladder: ladder.into_iter().map(|step| step.scaled(scale)).collect(),
        prefix,
        expected,
        expected_cost: model.price.map(|price| price.cost(expected)),
        sent,
        warnings,
    };
    Ok(Assembly { request, account })
}

/// The decisions to keep, if there are new ones.
fn remember(
    decided: Option<&Cleared>,
    target: u64,
    newly: Vec<MessageId>,
    first_kept: Option<MessageId>,
) -> Option<Cleared> {
    if newly.is_empty() && first_kept.is_none() {
        return None;
    }
    let mut cleared = decided.cloned().unwrap_or_default();
    cleared.target = target;
    cleared.ids.extend(newly);
    cleared.first_kept = first_kept.or(cleared.first_kept);
    Some(cleared)
}

fn warnings(request: &Request, budget: &Budget, policy: &Policy) -> Vec<Warning> {
    let mut warnings: Vec<_> = request
        .tools
        .specs
        .iter()
        .filter(|spec| spec.description.trim().is_empty())
        .map(|spec| Warning::ToolWithoutDescription { name: spec.name.clone() })
        .collect();
    let system = budget.layers.iter().find(|layer| layer.layer == Layer::System).map_or(0, |layer| layer.tokens);
    if system > u64::from(policy.system_warn) {
        warnings.push(Warning::LargeSystem { tokens: system, limit: u64::from(policy.system_warn) });
    }
    if budget.used() as f64 >= policy.warn_at * budget.window as f64 {
        warnings.push(Warning::WindowFilling { tokens: budget.used(), window: budget.window });
    }
    warnings
}

#[cfg(test)]
mod tests;
