//! What goes when a request is still too large after pruning.
//!
//! The steps, each taken only if the one before was not enough: older rounds, then the inessential parts of the system layer,
//! then everything but the bare minimum. Blocks stay whole. Which rounds went is remembered, so that they do not come and go;
//! with a larger window the next request is whole again.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use haft_types::{Layer, ModelSpec, Role, TokenCounter, ToolProtocol, ToolSet, ToolSpec};
use serde_json::Value;

use crate::build::documents::Documents;
use crate::build::layers::Layers;
use crate::build::rounds::{Timeline, TimelineItem};
use crate::build::system::{BARE, SystemDetail, render_detail, system_entry};
use crate::carried::Cleared;
use crate::error::ContextError;
use crate::policy::Policy;
use crate::scale::Scale;
use crate::snapshot::Snapshot;

/// A step that was taken to make a request fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LadderStep {
    /// Older rounds were left out.
    OlderRounds {
        /// How many.
        rounds: u32,
        /// Their tokens.
        tokens: u64,
    },
    /// Examples, package context, documents that are not always needed and descriptions were left out.
    ShortSystem {
        /// Their tokens.
        tokens: u64,
    },
    /// Only role, tools, rules, the newest block and the current request are sent.
    BareMinimum {
        /// The tokens of what is left out by this step.
        tokens: u64,
    },
}

impl LadderStep {
    /// The same step, told in the model's own tokens.
    pub(crate) fn scaled(mut self, scale: Scale) -> Self {
        let (Self::OlderRounds { tokens, .. } | Self::ShortSystem { tokens } | Self::BareMinimum { tokens }) =
            &mut self;
        *tokens = scale.up(*tokens);
        self
    }
}

impl fmt::Display for LadderStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OlderRounds { rounds, tokens } => {
                write!(f, "the request was too large: {rounds} older rounds ({tokens} tokens) were left out")
            }
            Self::ShortSystem { tokens } => {
                write!(f, "the request was too large: the system layer was shortened by {tokens} tokens")
            }
            Self::BareMinimum { tokens } => write!(
                f,
                "the request was too large: only role, tools, rules, the newest step and the request are sent \
                 ({tokens} tokens left out)"
            ),
        }
    }
}

/// The room a model leaves for input, in counted tokens where nothing else is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputRoom {
    /// Kept free for the reply, in the model's own tokens.
    pub(crate) output_reserve: u64,
    /// The window without the reserve: no request may be larger.
    pub(crate) hard: u64,
    /// From here on the ladder is climbed.
    pub(crate) soft: u64,
    /// The same in the model's own tokens.
    pub(crate) nominal_soft: u64,
    /// What dropping rounds aims at.
    pub(crate) goal: u64,
}

impl InputRoom {
    pub(crate) fn new(model: &ModelSpec, policy: &Policy) -> Self {
        let window = u64::from(model.context_window);
        let output_reserve = u64::from(model.output_reserve(policy.output_reserve));
        let hard = window.saturating_sub(output_reserve);
        let soft = (policy.ladder_at * hard as f64) as u64;
        // Of the room instead of the window where the reserve is so large that the goal would lie above the start.
        let goal = Some((policy.ladder_to * window as f64) as u64).filter(|goal| *goal < soft);
        let goal = goal.unwrap_or((policy.ladder_to * hard as f64) as u64).min(soft);
        let scale = Scale::of(model);
        Self {
            output_reserve,
            hard: scale.down(hard),
            soft: scale.down(soft),
            nominal_soft: soft,
            goal: scale.down(goal),
        }
    }
}

impl InputRoom {
    /// The same, where no more than so many counted tokens are taken.
    pub(crate) fn at_most(self, most: Option<u64>, policy: &Policy) -> Self {
        let Some(most) = most.filter(|most| *most < self.soft) else { return self };
        let nominal_soft = (self.nominal_soft as f64 * most as f64 / self.soft as f64) as u64;
        let goal = self.goal.min((policy.ladder_to * most as f64) as u64);
        Self { hard: most, soft: most, nominal_soft, goal, ..self }
    }
}

/// Leaves out the rounds that were left out before.
pub(crate) fn drop_remembered(line: &mut Timeline, cleared: Option<&Cleared>) {
    let first = cleared.and_then(|cleared| cleared.first_kept);
    if let Some(cut) = first.and_then(|first| line.items.iter().position(|item| item.id() == first)) {
        line.cut_before(cut);
    }
}

/// Takes steps until the request fits.
pub(crate) fn climb(
    layers: &mut Layers,
    room: InputRoom,
    snapshot: &Snapshot<'_>,
) -> Result<Vec<LadderStep>, ContextError> {
    let mut steps = Vec::new();
    // What is said again further down goes before anything that is said once.
    if layers.tokens() > room.soft {
        layers.copies.clear();
    }
    let before = layers.tokens();
    if before <= room.soft {
        return Ok(steps);
    }
    let fixed = layers.fixed();
    let rounds = drop_older_rounds(&mut layers.line, room.goal.saturating_sub(fixed));
    if rounds > 0 {
        steps.push(LadderStep::OlderRounds { rounds, tokens: before - layers.tokens() });
    }
    let before = layers.tokens();
    if before > room.soft {
        shorten(layers, snapshot, SystemDetail::Short)?;
        let tokens = before.saturating_sub(layers.tokens());
        if tokens > 0 {
            steps.push(LadderStep::ShortSystem { tokens });
        }
    }
    let before = layers.tokens();
    if before > room.hard {
        shorten(layers, snapshot, SystemDetail::Bare)?;
        layers.documents.clear();
        layers.run.clear();
        layers.line.summaries.clear();
        keep_newest(&mut layers.line);
        steps.push(LadderStep::BareMinimum { tokens: before.saturating_sub(layers.tokens()) });
    }
    Ok(steps)
}

/// Keeps the newest rounds that fit, the running one in any case. Returns how many went.
fn drop_older_rounds(line: &mut Timeline, room: u64) -> u32 {
    let pinned = line.items.iter().filter(|item| item.pinned).map(|item| u64::from(item.entry.tokens));
    let stays = line.summaries.iter().map(|entry| u64::from(entry.tokens)).chain(pinned).sum();
    let mut left = room.saturating_sub(stays);
    let mut oldest = line.round;
    let mut rounds = line.items.chunk_by(|one, next| one.round == next.round).rev();
    for round in rounds.by_ref() {
        let tokens = round.iter().filter(|item| !item.pinned).map(|item| u64::from(item.entry.tokens)).sum();
        let number = round[0].round;
        match left.checked_sub(tokens) {
            Some(rest) => (left, oldest) = (rest, number),
            // The running round stays even if it alone is too large.
            None if number == line.round => left = 0,
            None => break,
        }
    }
    let goes = |item: &TimelineItem| item.round < oldest && !item.pinned;
    let gone = line.items.iter().filter(|item| goes(item)).map(|item| item.round).collect::<HashSet<_>>();
    line.items.retain(|item| !goes(item));
    gone.len() as u32
}

/// Keeps the current request, the newest assistant message with its block, and what is being answered.
fn keep_newest(line: &mut Timeline) {
    let newest = line.items.iter().rfind(|item| item.role() == Role::Assistant).map(|item| item.block);
    let last = line.items.last().map(|item| item.block);
    line.items.retain(|item| item.layer == Layer::Current || Some(item.block) == newest || Some(item.block) == last);
}

/// Shortens system message, tools and documents.
fn shorten(layers: &mut Layers, snapshot: &Snapshot<'_>, detail: SystemDetail) -> Result<(), ContextError> {
    if let Some(input) = snapshot.system_input {
        layers.system = system_entry(render_detail(input, detail)?, snapshot.counter);
        layers.required = match detail {
            SystemDetail::Full | SystemDetail::Short => layers.required,
            SystemDetail::Bare => BARE,
        };
    }
    layers.tools = match snapshot.model.tool_protocol {
        ToolProtocol::Native => short_tools(snapshot.tools, snapshot.counter),
        // The system text describes them; what is kept beside it is not sent.
        ToolProtocol::Xml | ToolProtocol::React => Arc::clone(snapshot.tools),
    };
    if let Some(documents) = snapshot.documents {
        layers.documents = Documents::always(documents, snapshot.counter).messages;
    }
    Ok(())
}

/// The same tools with the first paragraph of their descriptions, and schemas without any.
fn short_tools(tools: &ToolSet, counter: &dyn TokenCounter) -> Arc<ToolSet> {
    let short = |spec: &ToolSpec| {
        let mut parameters = spec.parameters.clone();
        without_descriptions(&mut parameters);
        let paragraph = spec.description.split("\n\n").next().unwrap_or_default().trim();
        ToolSpec { name: spec.name.clone(), description: paragraph.to_owned(), parameters }
    };
    ToolSet::new(tools.specs.iter().map(short).collect(), counter)
}

fn without_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            // A property may be called `description`; its value is then a schema, not a text.
            fields.retain(|key, value| !(key == "description" && value.is_string()));
            fields.values_mut().for_each(without_descriptions);
        }
        Value::Array(values) => values.iter_mut().for_each(without_descriptions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
