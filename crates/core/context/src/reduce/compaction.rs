//! Compaction: when it is due, where the cut is, what the summary must look like, and what is sent afterwards.
//!
//! ```text
//! stored   r1 r2 … r5 | r6 … r15      summaries are appended: Σ1 (archives up to the cut)
//! sent     Σ1 | r6 … r15              only ever at the front, oldest first, verbatim
//! ```
//!
//! Nothing is deleted: a summary names the first message that is still sent, and everything before it is left out. This
//! module makes plans and requests; asking the model is the engine's work.

use std::sync::Arc;

use haft_types::{Entry, Message, MessageId, Request, Role, Segment, Timestamp, TokenCounter, ToolSet, Usage};
use haft_types::{Layer, ModelSpec};
use minijinja::context;

use crate::build::blocks::repair;
use crate::build::reminders::message;
use crate::build::rounds::Timeline;
use crate::build::system::{render_text, system_entry};
use crate::build::transcript::{Labels, transcript};
use crate::error::ContextError;
use crate::memo::EntryMaker;
use crate::policy::{Compress, Policy};

/// How urgent compaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// It is not.
    No,
    /// It can wait for a moment when the prefix is read anew anyway.
    WhenFree,
    /// It cannot wait.
    Now,
}

/// Whether compaction is due before `input` is answered. `last` is the usage of the newest request; inside a round the input
/// is empty.
pub fn compaction_due(policy: &Policy, window: u32, last: Usage, input: &str, messages: usize) -> Due {
    let expected = (last.total() + input.chars().count() as u64 / 3) as f64;
    let reaches = |share: f64| expected >= share * f64::from(window);
    if messages < policy.compact_min_messages as usize {
        Due::No
    } else if reaches(policy.compact_at) {
        Due::Now
    } else if policy.compress == Compress::WhenFree && reaches(policy.compact_cold_at) {
        Due::WhenFree
    } else {
        Due::No
    }
}

/// What to archive.
#[derive(Clone, Debug)]
pub struct CompactionPlan {
    /// The messages to summarise: user, assistant and tool messages, blocks whole.
    pub messages: Vec<Arc<Entry>>,
    /// How many rounds they make.
    pub rounds: u32,
    /// The first message that is still sent.
    pub first_kept: MessageId,
    /// When the first of them was made.
    pub from: Timestamp,
    /// When the last of them was made.
    pub to: Timestamp,
}

/// Plans the archive: everything before the newest `keep_rounds` rounds. `None` when there are no more rounds than that.
pub fn plan_compaction(history: &[Arc<Entry>], policy: &Policy, counter: &dyn TokenCounter) -> Option<CompactionPlan> {
    let mut line = Timeline::new(repair(history, counter));
    drop_archived(&mut line);
    let first_round = line.items.iter().map(|item| item.round).find(|round| *round > 0)?;
    let cut_round = (line.round + 1).checked_sub(policy.keep_rounds.max(1))?;
    if cut_round <= first_round {
        return None;
    }
    let cut = line.items.iter().position(|item| item.round == cut_round)?;
    let first_kept = line.items[cut].id();
    let messages: Vec<_> = line.items.into_iter().take(cut).map(|item| item.entry).collect();
    let times = || messages.iter().map(|entry| entry.message.created_at);
    let (from, to) = (times().min()?, times().max()?);
    Some(CompactionPlan { rounds: cut_round - first_round, messages, first_kept, from, to })
}

/// The request that asks a model for the summary. `focus` is what the user wants kept in particular.
pub fn summary_request(
    plan: &CompactionPlan,
    focus: Option<&str>,
    model: &ModelSpec,
    policy: &Policy,
    counter: &dyn TokenCounter,
) -> Result<Request, ContextError> {
    let values = context! {
        from => plan.from.to_string(),
        to => plan.to.to_string(),
        focus => focus.map(str::trim).filter(|focus| !focus.is_empty()),
        transcript => transcript(&plan.messages, policy.compress_limits, Labels::RolesAndIds),
    };
    let instructions = render_text("summary", include_str!("../../templates/summary.md"), &values)?;
    let archive = render_text("archive", include_str!("../../templates/archive.md"), &values)?;
    Ok(plain_request(&instructions, "archive", &archive, model, counter))
}

/// A request beside the conversation: instructions, and what they are about. No tools, and no cache to keep.
pub(crate) fn plain_request(
    instructions: &str,
    owner: &'static str,
    about: &str,
    model: &ModelSpec,
    counter: &dyn TokenCounter,
) -> Request {
    let segment = |layer, owner, entry| Segment { layer, owner, entry, boundary: false };
    let system = system_entry(instructions.trim(), counter);
    let about = message(EntryMaker { counter, memo: None }, owner, about.trim());
    Request {
        segments: vec![segment(Layer::System, "system", system), segment(Layer::Current, owner, about)],
        tools: ToolSet::new(Vec::new(), counter),
        max_output_tokens: model.max_output_tokens,
        cache_key: None,
    }
}

const FIRST_KEPT: &str = "first_kept";

/// The message that stores a summary. From the next request on it stands for what the plan archives.
pub fn summary_message(id: MessageId, at: Timestamp, text: impl Into<String>, plan: &CompactionPlan) -> Message {
    let mut summary = Message::text(id, Role::Summary, text, at);
    summary.metadata.insert(FIRST_KEPT.into(), plan.first_kept.to_string().into());
    summary
}

/// The first message that is sent beside this summary, if it says so.
pub fn first_kept(summary: &Message) -> Option<MessageId> {
    summary.metadata.get(FIRST_KEPT)?.as_str()?.parse().ok()
}

/// Takes out what summaries stand for.
pub(crate) fn drop_archived(line: &mut Timeline) {
    let kept: Vec<_> = line.summaries.iter().filter_map(|summary| first_kept(&summary.message)).collect();
    if kept.is_empty() {
        return;
    }
    // Without the message a summary names, nothing is known to be archived, and sending more is the safe side.
    if let Some(cut) = line.items.iter().rposition(|item| kept.contains(&item.id())) {
        line.cut_before(cut);
    }
}

#[cfg(test)]
mod tests;
