//! The ladder: reductions of a request that is still too large after pruning.
//!
//! The steps, each taken only if the previous one was not enough: leave out older rounds and older
//! steps of the running one, cut the newest step's largest results to head and tail (unless the
//! next step is enough), leave out the inessential parts of the system layer, then everything but
//! the bare minimum. No step takes more
//! than it must: as many of the newest steps stay as fit, the user's messages of the running round
//! stay, and a ledger replaces the messages left out. Blocks stay whole. The decisions are stored,
//! so that messages do not come and go; with a larger window the next request is whole again.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use haft_types::{
    Entry, Hasher, Layer, Message, MessageId, ModelProfile, ModelSpec, Origin, Role, TokenCounter,
    ToolProtocol, ToolSet, ToolSpec,
};
use serde_json::Value;

use crate::build::blocks::repair_blocks;
use crate::build::documents::{Documents, PLACE_OWNER};
use crate::build::layers::Layers;
use crate::build::reminders::{ROLE_OWNER, TODO_OWNER};
use crate::build::rounds::{ArchiveCut, Timeline, TimelineItem, is_from_user};
use crate::build::system::{
    REQUIRED_BARE_SECTIONS, SystemDetail, render_system_detail, system_entry,
};
use crate::carried::Cleared;
use crate::error::ContextError;
use crate::memo::MessageForm;
use crate::policy::Policy;
use crate::reduce::compaction::{CompactionPlan, remove_archived};
use crate::reduce::excerpt::{Excerpts, excerpt_unseen};
use crate::reduce::summary_check::{OpenWork, build_fallback_summary, collect_ledger};
use crate::scale::Scale;
use crate::snapshot::Snapshot;

/// A reduction that was applied because pruning alone did not make the request fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LadderStep {
    /// Older rounds, and older steps of the running one, were left out.
    OlderRounds {
        /// The number of whole rounds left out.
        rounds: u32,
        /// The number of steps of the running round left out.
        steps: u32,
        /// The number of tokens saved, less those of the ledger that was added.
        tokens: u64,
    },
    /// Examples, package context, descriptions, and documents that are not always needed were left
    /// out.
    ShortSystem {
        /// The number of tokens saved.
        tokens: u64,
    },
    /// Results of the newest step were cut to head and tail, because that step alone exceeded the
    /// window.
    Excerpts {
        /// The number of messages whose results were cut.
        messages: u32,
        /// The number of tokens saved.
        tokens: u64,
    },
    /// Only role, tools, rules, the newest block and the current request are sent.
    BareMinimum {
        /// The number of tokens left out by this step.
        tokens: u64,
    },
}

impl LadderStep {
    /// Returns the step with its tokens scaled to the model.
    pub(crate) fn scale_tokens(mut self, scale: Scale) -> Self {
        let (Self::OlderRounds { tokens, .. }
        | Self::ShortSystem { tokens }
        | Self::Excerpts { tokens, .. }
        | Self::BareMinimum { tokens }) = &mut self;
        *tokens = scale.to_model_tokens(*tokens);
        self
    }
}

impl fmt::Display for LadderStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OlderRounds {
                rounds,
                steps,
                tokens,
            } => write!(
                f,
                "the request was too large: {rounds} older rounds and {steps} older steps ({tokens} tokens) were left out"
            ),
            Self::ShortSystem { tokens } => {
                write!(
                    f,
                    "the request was too large: the system layer was shortened by {tokens} tokens"
                )
            }
            Self::Excerpts { messages, tokens } => write!(
                f,
                "the newest step alone exceeds the window: {messages} results are sent as head and tail ({tokens} tokens less)"
            ),
            Self::BareMinimum { tokens } => write!(
                f,
                "the request was too large: only role, tools, rules, the newest step and the request are sent \
                 ({tokens} tokens left out)"
            ),
        }
    }
}

/// The number of input tokens that a request may have. Values are in haft's count unless stated
/// otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputRoom {
    /// The number of tokens kept free for the reply, in the model's own tokens.
    pub(crate) output_reserve: u64,
    /// The window without the reserve: no request may be larger.
    pub(crate) hard: u64,
    /// The number of tokens above which the ladder is applied.
    pub(crate) soft: u64,
    /// The value of `soft` in the model's own tokens.
    pub(crate) nominal_soft: u64,
    /// The number of tokens to which leaving out rounds reduces the request.
    pub(crate) goal: u64,
}

impl InputRoom {
    pub(crate) fn new(model: &ModelSpec, policy: &Policy) -> Self {
        let window = u64::from(model.context_window);
        let output_reserve = u64::from(model.output_reserve(policy.output_reserve));
        let hard = window.saturating_sub(output_reserve);
        let soft = (policy.ladder_at * hard as f64) as u64;
        let goal = ((policy.ladder_to * hard as f64) as u64).min(soft);
        let scale = Scale::for_model(model);
        Self {
            output_reserve,
            hard: scale.to_counted_tokens(hard),
            soft: scale.to_counted_tokens(soft),
            nominal_soft: soft,
            goal: scale.to_counted_tokens(goal),
        }
    }

    /// Returns the room with its limits lowered to `max_tokens`, which is in haft's count.
    pub(crate) fn limited_to(self, max_tokens: Option<u64>, policy: &Policy) -> Self {
        let Some(most) = max_tokens.filter(|most| *most < self.soft) else {
            return self;
        };
        let nominal_soft = (self.nominal_soft as f64 * most as f64 / self.soft as f64) as u64;
        let goal = self.goal.min((policy.ladder_to * most as f64) as u64);
        Self {
            hard: most,
            soft: most,
            nominal_soft,
            goal,
            ..self
        }
    }
}

/// Leaves out the rounds and steps that earlier requests left out, and adds a ledger of the facts
/// in them.
pub(crate) fn apply_earlier_cut(
    line: &mut Timeline,
    cleared: Option<&Cleared>,
    snapshot: &Snapshot<'_>,
) {
    if let Some(cut) = cleared.and_then(Cleared::archive_cut) {
        let gone = line.apply_cut(cut);
        line.summaries
            .extend(build_ledger_entry(&gone, cut, snapshot));
    }
}

/// The outcome of applying the ladder.
#[derive(Debug, Default)]
pub(crate) struct LadderResult {
    pub(crate) steps: Vec<LadderStep>,
    /// The point before which this request leaves out messages; `None` if it leaves out none.
    pub(crate) cut: Option<ArchiveCut>,
    /// The results that this request sends as excerpts for the first time.
    pub(crate) excerpts: Excerpts,
}

/// Applies the steps of the ladder one by one until the request fits.
pub(crate) fn reduce_to_fit(
    layers: &mut Layers,
    room: InputRoom,
    snapshot: &Snapshot<'_>,
) -> Result<LadderResult, ContextError> {
    let mut climbed = LadderResult::default();
    // Repeated reminders are dropped before anything that is sent only once.
    if layers.tokens() > room.soft {
        layers.copies.clear();
    }
    let before = layers.tokens();
    if before <= room.soft {
        return Ok(climbed);
    }
    if let Some((cut, gone)) = drop_oldest(layers, room.goal, snapshot) {
        climbed.cut = Some(cut);
        let running = layers.line.round;
        let rounds: HashSet<_> = gone
            .iter()
            .map(|item| item.round)
            .filter(|round| *round < running)
            .collect();
        let steps = gone
            .iter()
            .filter(|item| item.round == running && item.role() == Role::Assistant)
            .count();
        let tokens = before.saturating_sub(layers.tokens());
        climbed.steps.push(LadderStep::OlderRounds {
            rounds: rounds.len() as u32,
            steps: steps as u32,
            tokens,
        });
    }
    let before = layers.tokens();
    if before > room.hard && !fits_with_short_system(layers, room, snapshot)? {
        climbed.excerpts = excerpt_unseen(&mut layers.line, before - room.goal, snapshot);
        let messages = climbed.excerpts.len() as u32;
        if messages > 0 {
            let tokens = before.saturating_sub(layers.tokens());
            climbed
                .steps
                .push(LadderStep::Excerpts { messages, tokens });
        }
    }
    let before = layers.tokens();
    if before > room.soft {
        shorten_system(layers, snapshot, SystemDetail::Short)?;
        let tokens = before.saturating_sub(layers.tokens());
        if tokens > 0 {
            climbed.steps.push(LadderStep::ShortSystem { tokens });
        }
    }
    let before = layers.tokens();
    if before > room.hard {
        shorten_system(layers, snapshot, SystemDetail::Bare)?;
        layers.documents.retain(|(owner, _)| *owner == PLACE_OWNER);
        layers
            .run
            .retain(|(owner, _)| matches!(*owner, ROLE_OWNER | TODO_OWNER));
        // The newest summary is the ledger of the messages left out above.
        layers
            .line
            .summaries
            .drain(..layers.line.summaries.len().saturating_sub(1));
        keep_newest(&mut layers.line);
        if layers.tokens() > room.hard {
            layers.line.summaries.clear();
        }
        climbed.steps.push(LadderStep::BareMinimum {
            tokens: before.saturating_sub(layers.tokens()),
        });
    }
    Ok(climbed)
}

/// True if the request fits the window once the system layer is shortened, so that the newest step
/// can be sent whole.
fn fits_with_short_system(
    layers: &mut Layers,
    room: InputRoom,
    snapshot: &Snapshot<'_>,
) -> Result<bool, ContextError> {
    let system = Arc::clone(&layers.system);
    let tools = Arc::clone(&layers.tools);
    let documents = layers.documents.clone();
    let required = layers.required;
    shorten_system(layers, snapshot, SystemDetail::Short)?;
    let fits = layers.tokens() <= room.hard;
    (layers.system, layers.tools) = (system, tools);
    (layers.documents, layers.required) = (documents, required);
    Ok(fits)
}

/// Keeps the newest rounds that fit, then the newest steps of the running one, and adds a ledger.
/// Returns the cut and the messages left out.
fn drop_oldest(
    layers: &mut Layers,
    goal: u64,
    snapshot: &Snapshot<'_>,
) -> Option<(ArchiveCut, Vec<TimelineItem>)> {
    let room = goal.saturating_sub(layers.fixed_tokens());
    let cut = find_fitting_cut(&layers.line, room)?;
    let ledger = build_ledger_entry(&stored_messages_before(cut, snapshot), cut, snapshot);
    // The ledger takes room, too. Its size hardly depends on the number of messages left out.
    let cut = match &ledger {
        Some(ledger) => {
            find_fitting_cut(&layers.line, room.saturating_sub(u64::from(ledger.tokens)))?
        }
        None => cut,
    };
    drop(layers.line.apply_cut(cut));
    // The new ledger includes the ledger of an earlier cut.
    layers
        .line
        .summaries
        .retain(|summary| summary.message.origin() != Origin::Engine);
    let gone = stored_messages_before(cut, snapshot);
    layers
        .line
        .summaries
        .extend(build_ledger_entry(&gone, cut, snapshot));
    Some((cut, gone))
}

/// Returns the point before which messages must be left out so that the others fit into `room`;
/// `None` if nothing can be left out.
fn find_fitting_cut(line: &Timeline, room: u64) -> Option<ArchiveCut> {
    let running = line
        .items
        .iter()
        .position(|item| item.round == line.round)?;
    let unseen = line.unseen_start();
    let stays = |item: &TimelineItem| {
        item.pinned || (item.round == line.round && is_from_user(&item.entry.message))
    };
    let tokens = |item: &TimelineItem| u64::from(item.entry.tokens);
    let always = line
        .items
        .iter()
        .filter(|item| stays(item))
        .map(tokens)
        .sum::<u64>();
    let summaries = line
        .summaries
        .iter()
        .map(|entry| u64::from(entry.tokens))
        .sum::<u64>();
    let mut left = room.saturating_sub(always + summaries);
    let mut cut = line.items.len();
    // Whole rounds before the running one and single steps of the running one can go; the newest
    // step and unseen results always stay.
    let steps = running.min(unseen);
    let mut groups: Vec<&[TimelineItem]> = line.items[..steps]
        .chunk_by(|one, next| one.round == next.round)
        .collect();
    groups.extend(line.items[steps..].chunk_by(|one, next| one.block == next.block));
    for group in groups.into_iter().rev() {
        let takes = group
            .iter()
            .filter(|item| !stays(item))
            .map(tokens)
            .sum::<u64>();
        match left.checked_sub(takes) {
            Some(rest) => left = rest,
            None if cut == line.items.len() || cut > unseen => left = 0,
            None => break,
        }
        cut -= group.len();
    }
    let goes = line.items[..cut].iter().any(|item| !stays(item));
    let first_kept = line.items.get(cut).filter(|_| goes)?.id();
    Some(ArchiveCut {
        first_kept,
        users_from: (cut > running).then(|| line.items[running].id()),
    })
}

/// Returns the messages that a cut leaves out, in their stored form: the ledger must not depend on
/// other reductions.
fn stored_messages_before(cut: ArchiveCut, snapshot: &Snapshot<'_>) -> Vec<TimelineItem> {
    let mut line = Timeline::new(repair_blocks(snapshot.history, snapshot.counter));
    remove_archived(&mut line);
    line.apply_cut(cut)
}

/// Builds the ledger of messages that are left out without a summary.
fn build_ledger_entry(
    gone: &[TimelineItem],
    cut: ArchiveCut,
    snapshot: &Snapshot<'_>,
) -> Option<Arc<Entry>> {
    let times = || gone.iter().map(|item| item.entry.message.created_at);
    let from = times().min()?;
    let to = times().max()?;
    let mut hasher = Hasher::default();
    for item in gone {
        hasher.update(
            item.entry
                .message
                .message_id
                .short_id()
                .to_string()
                .as_bytes(),
        );
    }
    let hash = hasher.finish();
    let made =
        snapshot
            .entry_maker()
            .derived_entry(cut.first_kept, hash, MessageForm::Ledger, || {
                let messages: Vec<_> = gone.iter().map(|item| Arc::clone(&item.entry)).collect();
                let messages = match snapshot.edits {
                    Some(edits) => edits.visible_entries(&messages, snapshot.counter),
                    None => messages,
                };
                let ArchiveCut {
                    first_kept,
                    users_from,
                } = cut;
                let plan = CompactionPlan {
                    rounds: 0,
                    steps: 0,
                    messages,
                    first_kept,
                    users_from,
                    from,
                    to,
                };
                // The TODO list and running tasks are sent elsewhere, in their current state.
                let text = build_fallback_summary(
                    &plan,
                    &collect_ledger(&plan, OpenWork::default()),
                    snapshot.counter,
                )
                .unwrap_or_default();
                Message::from_text(MessageId::from_hash(hash), Role::Summary, text, to)
                    .with_origin(Origin::Engine)
            });
    Some(made).filter(|entry| !entry.message.joined_text().is_empty())
}

/// Keeps the current request, the newest assistant message with its block, the block with unseen
/// results, and the last block.
fn keep_newest(line: &mut Timeline) {
    let newest = line
        .items
        .iter()
        .rfind(|item| item.role() == Role::Assistant)
        .map(|item| item.block);
    let last = line.items.last().map(|item| item.block);
    let unseen = line.items.get(line.unseen_start()).map(|item| item.block);
    line.items.retain(|item| {
        item.layer == Layer::Current || [newest, last, unseen].contains(&Some(item.block))
    });
}

/// Shortens the system message, tools and documents.
fn shorten_system(
    layers: &mut Layers,
    snapshot: &Snapshot<'_>,
    detail: SystemDetail,
) -> Result<(), ContextError> {
    if let Some(input) = snapshot.system_input {
        let detail = match (detail, snapshot.model.profile) {
            (SystemDetail::Short, ModelProfile::Small) => SystemDetail::Small,
            (detail, _) => detail,
        };
        layers.system = system_entry(render_system_detail(input, detail)?, snapshot.counter);
        layers.required = match detail {
            SystemDetail::Full | SystemDetail::Short | SystemDetail::Small => layers.required,
            SystemDetail::Bare => REQUIRED_BARE_SECTIONS,
        };
    }
    layers.tools = match snapshot.model.tool_protocol {
        ToolProtocol::Native => shorten_tools(snapshot.tools, snapshot.counter),
        // The system text describes the tools; the tool set beside it is not sent.
        ToolProtocol::Xml | ToolProtocol::React => Arc::clone(snapshot.tools),
    };
    if let Some(documents) = snapshot.documents {
        layers.documents = Documents::required_only(documents, snapshot.counter).messages;
    }
    Ok(())
}

/// Shortens the description of each tool to its first paragraph, and removes the descriptions from
/// its schema.
fn shorten_tools(tools: &ToolSet, counter: &dyn TokenCounter) -> Arc<ToolSet> {
    let short = |spec: &ToolSpec| {
        let mut parameters = spec.parameters.clone();
        remove_descriptions(&mut parameters);
        let paragraph = spec
            .description
            .split("\n\n")
            .next()
            .unwrap_or_default()
            .trim();
        ToolSpec {
            name: spec.name.clone(),
            description: paragraph.to_owned(),
            parameters,
        }
    };
    ToolSet::new(tools.specs.iter().map(short).collect(), counter)
        .with_deferred(tools.deferred.clone())
}

fn remove_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            // A property may be called `description`; its value is then a schema, not a text.
            fields.retain(|key, value| !(key == "description" && value.is_string()));
            fields.values_mut().for_each(remove_descriptions);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_descriptions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
