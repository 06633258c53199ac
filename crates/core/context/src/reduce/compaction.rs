//! Compaction: when it is due, where the cut is, what the summary must look like, and what is sent
//! afterwards.
//!
//! ```text
//! stored   r1 r2 … r5 | r6 … r15      summaries are appended: Σ1 (archives up to the cut)
//! sent     Σ1 | r6 … r15              only ever at the front, oldest first, verbatim
//! stored   U A T A T … A T | A T …    one long round: its oldest blocks are archived
//! sent     Σ1 U | A T …               and what the user said stays
//! ```
//!
//! Nothing is deleted: a summary names the first message that is still sent, and everything before
//! it is left out. This module makes plans and requests; asking the model is the engine's work.

use std::collections::HashSet;
use std::sync::Arc;

use haft_types::{
    Entry, Message, MessageId, Request, Role, Segment, Timestamp, TokenCounter, ToolSet, Usage,
};
use haft_types::{Layer, ModelSpec, prompt};
use minijinja::context;

use crate::build::blocks::repair;
use crate::build::reminders::message;
use crate::build::rounds::{ArchiveCut, Timeline, TimelineItem, before_block, is_user_speech};
use crate::build::system::{render_text, system_entry};
use crate::build::transcript::{Labels, transcript};
use crate::carried::Cleared;
use crate::error::ContextError;
use crate::memo::{EntryMaker, RecallTool};
use crate::policy::{Compress, Policy, ShareOf};
use crate::reduce::language::user_language;
use crate::scale::Scale;

/// How urgent compaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// It is not.
    No,
    /// It can wait for a moment when the prefix is read anew anyway.
    WhenFree,
    /// It is, unless there was one a short while ago.
    Now,
    /// The window would overflow.
    Overflow,
}

/// Whether compaction is due before `input` is answered. `last` is the usage of the newest request;
/// inside a round the input is empty.
pub fn compaction_due(
    policy: &Policy,
    model: &ModelSpec,
    last: Usage,
    input: &str,
    messages: usize,
) -> Due {
    let expected = (last.total() + input.chars().count() as u64 / 3) as f64;
    let usable = f64::from(policy.usable_window(model));
    let whole = match policy.compact_of {
        ShareOf::Usable => usable,
        ShareOf::Window => f64::from(model.context_window),
    };
    if messages < policy.compact_min_messages as usize {
        Due::No
    } else if expected >= usable {
        Due::Overflow
    } else if expected >= policy.compact_at * whole {
        Due::Now
    } else if policy.reduction(model).compress == Compress::WhenFree
        && expected >= policy.compact_cold_at * usable
    {
        Due::WhenFree
    } else {
        Due::No
    }
}

/// Inputs of the user's from one automatic archive to the next.
const INPUTS_BETWEEN: usize = 5;

/// Whether an archive would follow the one before too closely. Between two there are five inputs of
/// the user's; in a round that goes on by itself, as many blocks as an archive leaves alone.
/// `since` are the messages since the one before; an input that is being answered is not counted,
/// as one that waits is not.
pub fn is_too_early(since: &[Arc<Entry>], policy: &Policy) -> bool {
    let calls = |entry: &&Arc<Entry>| entry.message.tool_calls().next().is_some();
    let inputs = since
        .iter()
        .filter(|entry| entry.message.opens_round())
        .count();
    let is_answered = since
        .last()
        .is_some_and(|last| last.message.role == Role::Assistant && !calls(&last));
    match inputs {
        0 => since.iter().filter(calls).count() < policy.keep_blocks as usize,
        _ => inputs - usize::from(!is_answered) < INPUTS_BETWEEN,
    }
}

/// Whether a round has gone on by itself for half of that since the archive before: an archive may
/// follow where the window would overflow without one.
pub fn has_gone_on(since: &[Arc<Entry>], policy: &Policy) -> bool {
    let round = since
        .iter()
        .rev()
        .take_while(|entry| !entry.message.opens_round());
    2 * round
        .filter(|entry| entry.message.tool_calls().next().is_some())
        .count()
        >= policy.keep_blocks as usize
}

/// What to archive.
#[derive(Clone, Debug)]
pub struct CompactionPlan {
    /// The messages to summarise: user, assistant and tool messages, blocks whole.
    pub messages: Vec<Arc<Entry>>,
    /// How many whole rounds they make.
    pub rounds: u32,
    /// How many blocks and answers of the model's are among them.
    pub steps: u32,
    /// The first message that is still sent.
    pub first_kept: MessageId,
    /// From here on what the user said is sent nevertheless.
    pub users_from: Option<MessageId>,
    /// When the first of them was made.
    pub from: Timestamp,
    /// When the last of them was made.
    pub to: Timestamp,
}

impl CompactionPlan {
    /// What goes, as text.
    pub fn subject(&self) -> String {
        let counted = |count: u32, one: &str| {
            format!("{count} older {one}{}", if count == 1 { "" } else { "s" })
        };
        if self.rounds > 0 {
            counted(self.rounds, "round")
        } else {
            counted(self.steps, "step")
        }
    }

    /// The counted tokens of what goes.
    pub fn tokens(&self) -> u64 {
        self.messages
            .iter()
            .map(|entry| u64::from(entry.tokens))
            .sum()
    }
}

/// Who wants an archive, and so how much of the conversation it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveWish<'a> {
    /// The window fills: the newest rounds or blocks stay, and it must be worth it.
    Automatic,
    /// The same, where these results are cleared: archiving them frees next to nothing.
    AfterClearing(&'a Cleared),
    /// The user: all but the newest block.
    ByHand,
}

/// Plans the archive: whole rounds before the newest `keep_rounds`; where that frees too little,
/// everything before the newest `keep_blocks` blocks but what the user said in these rounds. `None`
/// when neither frees enough.
pub fn plan_compaction(
    history: &[Arc<Entry>],
    wish: ArchiveWish<'_>,
    policy: &Policy,
    model: &ModelSpec,
    counter: &dyn TokenCounter,
) -> Option<CompactionPlan> {
    let mut line = Timeline::new(repair(history, counter));
    drop_archived(&mut line);
    let first_round = line
        .items
        .iter()
        .map(|item| item.round)
        .find(|round| *round > 0)?;
    let start_of = |round: u32| line.items.iter().position(|item| item.round == round);
    let cleared = match wish {
        ArchiveWish::ByHand => {
            let cut = start_of_block(&line.items, 1)?;
            let users = start_of(line.items[cut].round)?;
            return plan_at(&line, cut, Some(users));
        }
        ArchiveWish::Automatic => None,
        ArchiveWish::AfterClearing(cleared) => Some(cleared),
    };
    let cut_round = (line.round + 1)
        .saturating_sub(policy.keep_rounds.max(1))
        .max(first_round);
    // An interrupted round may end with results that no reply followed yet.
    let kept_rounds = start_of(cut_round)?.min(line.unseen_start());
    let share =
        |share: f64| Scale::of(model).down((share * f64::from(policy.usable_window(model))) as u64);
    let needed = share(policy.compact_frees);
    let wanted = share(policy.compact_frees * GENEROUS);
    let sent = sent_tokens(&line.items, cleared);
    if kept_rounds > 0 && sent[..kept_rounds].iter().sum::<u64>() >= needed {
        return plan_at(&line, kept_rounds, None);
    }
    let goes = |(item, tokens): (&TimelineItem, &u64)| {
        if is_user_speech(&item.entry.message) {
            0
        } else {
            *tokens
        }
    };
    let freed: Vec<_> = line.items.iter().zip(&sent).map(goes).collect();
    let last = start_of_block(&line.items, policy.keep_blocks)?;
    let cut = enough_blocks(&line.items, &freed[..last], wanted);
    // What the user said before the newest rounds goes, too.
    let words = kept_rounds.min(cut);
    let frees = sent[..words].iter().chain(&freed[words..cut]).sum::<u64>();
    plan_at(&line, cut, Some(kept_rounds)).filter(|_| frees >= needed)
}

/// What each message takes of a request: little where it was cleared. What was left out for lack of
/// room counts whole: a summary is to take its place.
fn sent_tokens(items: &[TimelineItem], cleared: Option<&Cleared>) -> Vec<u64> {
    /// A notice, or the beginning of a long argument.
    const NOTICE: u64 = 60;
    let tokens = |item: &TimelineItem| match u64::from(item.entry.tokens) {
        whole if cleared.is_some_and(|cleared| cleared.ids.contains(&item.id())) => {
            whole.min(NOTICE)
        }
        whole => whole,
    };
    items.iter().map(tokens).collect()
}

/// How many times what an archive must free it does free where it takes blocks: as many of them
/// stay as fit.
const GENEROUS: f64 = 1.5;

/// Where to cut so that what stands before it frees so many tokens, at the end of `freed` at the
/// latest.
fn enough_blocks(items: &[TimelineItem], freed: &[u64], wanted: u64) -> usize {
    let mut tokens = 0;
    for (index, more) in freed.iter().enumerate() {
        if tokens >= wanted && before_block(items, index) == index {
            return index;
        }
        tokens += more;
    }
    freed.len()
}

/// Where the newest so many blocks begin; an answer without calls counts as one.
fn start_of_block(items: &[TimelineItem], newest: u32) -> Option<usize> {
    let steps = items
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, item)| item.role() == Role::Assistant);
    steps
        .map(|(index, _)| before_block(items, index))
        .nth(newest.max(1) as usize - 1)
}

/// The plan to archive what stands before this index but for what the user said from `users` on.
fn plan_at(line: &Timeline, cut: usize, users: Option<usize>) -> Option<CompactionPlan> {
    let users = users.filter(|users| *users < cut);
    let stays = |index: usize, item: &TimelineItem| {
        users.is_some_and(|users| index >= users) && is_user_speech(&item.entry.message)
    };
    let before = line.items[..cut].iter().enumerate();
    let items: Vec<_> = before
        .filter(|(index, item)| !stays(*index, item))
        .map(|(_, item)| item)
        .collect();
    let times = || items.iter().map(|item| item.entry.message.created_at);
    let from = times().min()?;
    let to = times().max()?;
    let whole = |round: u32| {
        line.items[users.unwrap_or(cut)..]
            .iter()
            .all(|item| item.round != round)
    };
    let rounds: HashSet<_> = items
        .iter()
        .map(|item| item.round)
        .filter(|round| *round > 0 && whole(*round))
        .collect();
    Some(CompactionPlan {
        rounds: rounds.len() as u32,
        steps: items
            .iter()
            .filter(|item| item.role() == Role::Assistant)
            .count() as u32,
        first_kept: line.items[cut].id(),
        users_from: users.map(|users| line.items[users].id()),
        messages: items
            .into_iter()
            .map(|item| Arc::clone(&item.entry))
            .collect(),
        from,
        to,
    })
}

/// Why a summary is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SummaryRefusal {
    /// It says nothing.
    #[error("the summary is empty")]
    Empty,
    /// It is not smaller than what it stands for.
    #[error("the summary takes {tokens} tokens, and must take less than {limit}")]
    TooLarge {
        /// Its tokens, with what had to be added.
        tokens: u64,
        /// What it must stay below.
        limit: u64,
    },
    /// It has a heading that the form does not have.
    #[error("the summary has the heading `{0}`; only the five headings of the form may occur")]
    OtherHeading(String),
    /// Too few of its sections have text.
    #[error("only {found} of the five sections of the form have text, and at least {needed} must")]
    TooFewSections {
        /// The sections that have text.
        found: usize,
        /// The sections that must have text.
        needed: usize,
    },
    /// It holds what a summary never does: calls, other speakers, orders to forget, tags of the
    /// engine's own.
    #[error("the summary holds `{0}`, which a summary never does")]
    Hostile(&'static str),
    /// It ends in the middle.
    #[error("the summary was cut")]
    Cut,
    /// The model would not write one.
    #[error("the model declined to write a summary")]
    Declined,
    /// It is written in a script that neither the form nor the user uses.
    #[error("the summary is written in another language than the session")]
    OtherLanguage,
}

/// What a summary is asked for with besides the messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct SummaryWish<'a> {
    /// What the user wants kept in particular.
    pub focus: Option<&'a str>,
    /// Why the one before was refused.
    pub refused: Option<&'a SummaryRefusal>,
    /// The whole conversation: the language is the one the user writes in, also where what the
    /// user said stays.
    pub session: &'a [Arc<Entry>],
}

/// The request that asks a model for the summary.
pub fn summary_request(
    plan: &CompactionPlan,
    wish: SummaryWish<'_>,
    model: &ModelSpec,
    policy: &Policy,
    counter: &dyn TokenCounter,
) -> Result<Request, ContextError> {
    let values = context! {
        from => plan.from.to_string(),
        to => plan.to.to_string(),
        language => user_language(plan.messages.iter().chain(wish.session)),
        focus => wish.focus.map(str::trim).filter(|focus| !focus.is_empty()),
        refused => wish.refused.map(ToString::to_string),
        transcript => transcript(&plan.messages, policy.compress_limits, Labels::RolesAndIds),
    };
    let instructions = render_text(
        "summary",
        prompt!("../../templates/summary").text(policy.prompt_language),
        &values,
    )?;
    let archive = render_text(
        "archive",
        prompt!("../../templates/archive").text(policy.prompt_language),
        &values,
    )?;
    Ok(plain_request(
        &instructions,
        "archive",
        &archive,
        model,
        counter,
    ))
}

/// A request beside the conversation: instructions, and what they are about. No tools, and no cache
/// to keep.
pub(crate) fn plain_request(
    instructions: &str,
    owner: &'static str,
    about: &str,
    model: &ModelSpec,
    counter: &dyn TokenCounter,
) -> Request {
    let segment = |layer, owner, entry| Segment {
        layer,
        owner,
        entry,
        boundary: false,
    };
    let system = system_entry(instructions.trim(), counter);
    let about = message(
        EntryMaker {
            counter,
            memo: None,
            recall: RecallTool::Missing,
        },
        owner,
        about.trim(),
    );
    Request {
        segments: vec![
            segment(Layer::System, "system", system),
            segment(Layer::Current, owner, about),
        ],
        tools: ToolSet::new(Vec::new(), counter),
        max_output_tokens: model.max_output_tokens,
        cache_key: None,
    }
}

const FIRST_KEPT: &str = "first_kept";
const USERS_FROM: &str = "users_from";

/// The message that stores a summary. From the next request on it stands for what the plan
/// archives.
pub fn summary_message(
    id: MessageId,
    at: Timestamp,
    text: impl Into<String>,
    plan: &CompactionPlan,
) -> Message {
    let mut summary = Message::text(id, Role::Summary, text, at);
    summary
        .metadata
        .insert(FIRST_KEPT.into(), plan.first_kept.to_string().into());
    if let Some(users) = plan.users_from {
        summary
            .metadata
            .insert(USERS_FROM.into(), users.to_string().into());
    }
    summary
}

/// The first message that is sent beside this summary, if it says so.
pub fn first_kept(summary: &Message) -> Option<MessageId> {
    named(summary, FIRST_KEPT)
}

fn named(summary: &Message, key: &str) -> Option<MessageId> {
    summary.metadata.get(key)?.as_str()?.parse().ok()
}

/// Takes out what summaries stand for.
pub(crate) fn drop_archived(line: &mut Timeline) {
    let cut = |summary: &Arc<Entry>| {
        let first_kept = first_kept(&summary.message)?;
        let users_from = named(&summary.message, USERS_FROM);
        // Without the message a summary names, nothing is known to be archived, and sending more is
        // the safe side.
        let index = line.items.iter().position(|item| item.id() == first_kept)?;
        Some((
            index,
            ArchiveCut {
                first_kept,
                users_from,
            },
        ))
    };
    let furthest = line
        .summaries
        .iter()
        .filter_map(cut)
        .max_by_key(|(index, _)| *index);
    if let Some((_, cut)) = furthest {
        drop(line.cut(cut));
    }
}

#[cfg(test)]
mod tests;
