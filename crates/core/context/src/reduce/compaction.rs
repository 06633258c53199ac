//! Compaction: decides when it is due, plans the cut, requests the summary, and applies it.
//!
//! ```text
//! stored   r1 r2 … r5 | r6 … r15      summaries are appended: Σ1 (archives up to the cut)
//! sent     Σ1 | r6 … r15              summaries are only sent at the front, oldest first, verbatim
//! stored   U A T A T … A T | A T …    one long round: its oldest blocks are archived
//! sent     Σ1 U | A T …               and the user's messages stay
//! ```
//!
//! Nothing is deleted: a summary names the first message that is still sent, and everything before
//! it is left out. This module makes plans and requests; the engine sends them to the model.

use std::collections::HashSet;
use std::sync::Arc;

use haft_types::{
    Entry, Message, MessageId, Request, Role, Segment, Timestamp, TokenCounter, ToolSet, Usage,
};
use haft_types::{Layer, ModelSpec, prompt};
use minijinja::context;

use crate::build::blocks::repair_blocks;
use crate::build::reminders::reminder_message;
use crate::build::rounds::{ArchiveCut, Timeline, TimelineItem, block_start, is_from_user};
use crate::build::system::{render_template, system_entry};
use crate::build::transcript::{Labels, render_transcript, transcript_within};
use crate::carried::Cleared;
use crate::error::ContextError;
use crate::memo::{EntryMaker, RecallTool};
use crate::policy::{Compress, Policy, ShareOf};
use crate::reduce::language::detect_user_language;
use crate::scale::Scale;

/// The urgency of compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Compaction is not due.
    No,
    /// Compaction is useful but not urgent: it waits until the prefix must be sent uncached for
    /// another reason.
    WhenFree,
    /// Compaction is due, unless the last archive is too recent.
    Now,
    /// The window would overflow without compaction.
    Overflow,
}

/// Returns the urgency of compaction before `input` is answered. `last` is the usage of the newest
/// request; inside a round the input is empty.
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

/// True if another archive would follow the previous one too closely. Between two archives there
/// must be `compact_min_inputs` inputs of the user or, in a round that continues without input,
/// `compact_min_blocks` blocks. `since` holds the messages since the previous archive; the input
/// that is being answered does not count.
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
        0 => since.iter().filter(calls).count() < policy.min_blocks_between_archives(),
        _ => inputs - usize::from(!is_answered) < policy.compact_min_inputs as usize,
    }
}

/// True if the running round has added at least half of `compact_min_blocks` blocks since the
/// previous archive. Another archive is then allowed if clearing tool results is not enough.
pub fn has_round_grown(since: &[Arc<Entry>], policy: &Policy) -> bool {
    let round = since
        .iter()
        .rev()
        .take_while(|entry| !entry.message.opens_round());
    2 * round
        .filter(|entry| entry.message.tool_calls().next().is_some())
        .count()
        >= policy.min_blocks_between_archives()
}

/// The messages that an archive replaces, and the messages around them that are still sent.
#[derive(Clone, Debug)]
pub struct CompactionPlan {
    /// The messages to summarize: user, assistant and tool messages, in whole blocks.
    pub messages: Vec<Arc<Entry>>,
    /// The number of whole rounds among `messages`.
    pub rounds: u32,
    /// The number of steps among `messages`: blocks, and answers of the model without calls.
    pub steps: u32,
    /// The first message that is still sent.
    pub first_kept: MessageId,
    /// The first user message that is sent although it may lie before `first_kept`. All user
    /// messages after it are sent as well.
    pub users_from: Option<MessageId>,
    /// The creation time of the first archived message.
    pub from: Timestamp,
    /// The creation time of the last archived message.
    pub to: Timestamp,
}

impl CompactionPlan {
    /// Formats the number of archived rounds or steps.
    pub fn format_subject(&self) -> String {
        let counted = |count: u32, one: &str| {
            format!("{count} older {one}{}", if count == 1 { "" } else { "s" })
        };
        if self.rounds > 0 {
            counted(self.rounds, "round")
        } else {
            counted(self.steps, "step")
        }
    }

    /// Returns the number of tokens in the archived messages, in haft's count.
    pub fn tokens(&self) -> u64 {
        self.messages
            .iter()
            .map(|entry| u64::from(entry.tokens))
            .sum()
    }
}

/// The reason for an archive, which determines the archived part of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveWish<'a> {
    /// The window is filling: the newest rounds or blocks stay, and the archive must free enough.
    Automatic,
    /// Like [`Self::Automatic`], but with the results that pruning has already cleared, so that
    /// archiving them frees next to nothing.
    AfterClearing(&'a Cleared),
    /// The user requested the archive: everything but the newest block is archived.
    ByHand,
}

/// Plans an archive of the whole rounds before the newest `keep_rounds`. If that frees too little,
/// the archive takes everything before the newest `keep_blocks` blocks except the user's messages
/// of the newest rounds. Returns `None` if neither frees enough.
pub fn plan_compaction(
    history: &[Arc<Entry>],
    wish: ArchiveWish<'_>,
    policy: &Policy,
    model: &ModelSpec,
    counter: &dyn TokenCounter,
) -> Option<CompactionPlan> {
    let mut line = Timeline::new(repair_blocks(history, counter));
    remove_archived(&mut line);
    let first_round = line
        .items
        .iter()
        .map(|item| item.round)
        .find(|round| *round > 0)?;
    let start_of = |round: u32| line.items.iter().position(|item| item.round == round);
    let cleared = match wish {
        ArchiveWish::ByHand => {
            let cut = newest_blocks_start(&line.items, 1)?.min(line.unseen_start());
            let users = start_of(line.items[cut].round)?;
            return plan_archive_before(&line, cut, Some(users));
        }
        ArchiveWish::Automatic => None,
        ArchiveWish::AfterClearing(cleared) => Some(cleared),
    };
    let cut_round = (line.round + 1)
        .saturating_sub(policy.keep_rounds.max(1))
        .max(first_round);
    // An interrupted round may end with results that the model has not seen.
    let kept_rounds = start_of(cut_round)?.min(line.unseen_start());
    let share = |share: f64| {
        Scale::for_model(model)
            .to_counted_tokens((share * f64::from(policy.usable_window(model))) as u64)
    };
    let needed = share(policy.compact_frees);
    let wanted = share(policy.compact_frees * EXTRA_FREED_FACTOR);
    let sent = sent_tokens(&line.items, cleared);
    if kept_rounds > 0 && sent[..kept_rounds].iter().sum::<u64>() >= needed {
        return plan_archive_before(&line, kept_rounds, None);
    }
    let goes = |(item, tokens): (&TimelineItem, &u64)| {
        if is_from_user(&item.entry.message) {
            0
        } else {
            *tokens
        }
    };
    let freed: Vec<_> = line.items.iter().zip(&sent).map(goes).collect();
    let last = newest_blocks_start(&line.items, policy.keep_blocks)?.min(line.unseen_start());
    let cut = find_cut(&line.items, &freed[..last], wanted);
    // The user's messages before the newest rounds are archived, too.
    let words = kept_rounds.min(cut);
    let frees = sent[..words].iter().chain(&freed[words..cut]).sum::<u64>();
    plan_archive_before(&line, cut, Some(kept_rounds)).filter(|_| frees >= needed)
}

/// Returns the number of tokens that each message takes in a request. A cleared message takes only
/// a few. A message that was left out for lack of room counts in full, because the summary is to
/// replace it.
fn sent_tokens(items: &[TimelineItem], cleared: Option<&Cleared>) -> Vec<u64> {
    /// The estimated number of tokens in a notice, or in the beginning of a long argument.
    const NOTICE_TOKENS: u64 = 60;
    let tokens = |item: &TimelineItem| match u64::from(item.entry.tokens) {
        whole if cleared.is_some_and(|cleared| cleared.ids.contains(&item.id())) => {
            whole.min(NOTICE_TOKENS)
        }
        whole => whole,
    };
    items.iter().map(tokens).collect()
}

/// The factor by which the tokens that an archive of blocks aims to free exceed the required
/// number.
const EXTRA_FREED_FACTOR: f64 = 1.5;

/// Returns the first index at the start of a block before which at least `wanted` tokens are freed.
/// If there is none, returns the length of `freed`.
fn find_cut(items: &[TimelineItem], freed: &[u64], wanted: u64) -> usize {
    let mut tokens = 0;
    for (index, more) in freed.iter().enumerate() {
        if tokens >= wanted && block_start(items, index) == index {
            return index;
        }
        tokens += more;
    }
    freed.len()
}

/// Returns the index at which the last `newest` blocks start. An answer without calls counts as a
/// block.
fn newest_blocks_start(items: &[TimelineItem], newest: u32) -> Option<usize> {
    let steps = items
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, item)| item.role() == Role::Assistant);
    steps
        .map(|(index, _)| block_start(items, index))
        .nth(newest.max(1) as usize - 1)
}

/// Plans an archive of everything before `cut`, except the user's messages from index `users` on.
fn plan_archive_before(
    line: &Timeline,
    cut: usize,
    users: Option<usize>,
) -> Option<CompactionPlan> {
    let users = users.filter(|users| *users < cut);
    let before = line.items[..cut].iter().enumerate();
    let items: Vec<_> = before
        .filter(|(index, item)| {
            !(users.is_some_and(|users| *index >= users) && is_from_user(&item.entry.message))
        })
        .map(|(_, item)| item)
        .collect();
    let times = || items.iter().map(|item| item.entry.message.created_at);
    let from = times().min()?;
    let to = times().max()?;
    let rounds: HashSet<_> = items
        .iter()
        .map(|item| item.round)
        .filter(|round| {
            *round > 0
                && line.items[users.unwrap_or(cut)..]
                    .iter()
                    .all(|item| item.round != *round)
        })
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

/// The reason why a summary is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SummaryRefusal {
    /// The summary has no text.
    #[error("the summary is empty")]
    Empty,
    /// The summary is not smaller than the messages that it replaces.
    #[error("the summary takes {tokens} tokens, and must take less than {limit}")]
    TooLarge {
        /// The number of tokens in the summary, including the facts that haft added to it.
        tokens: u64,
        /// The number of tokens below which the summary must stay.
        limit: u64,
    },
    /// The summary has a heading that is not one of those it was asked to use.
    #[error("the summary has the heading `{0}`; only the five headings of the form may occur")]
    OtherHeading(String),
    /// Too few sections of the summary have text.
    #[error("only {found} of the five sections of the form have text, and at least {needed} must")]
    TooFewSections {
        /// The number of sections with text.
        found: usize,
        /// The number of sections that must have text.
        needed: usize,
    },
    /// The summary contains text that no summary needs: calls, other speakers, instructions to
    /// forget, or haft's own tags.
    #[error("the summary holds `{0}`, which a summary never does")]
    Hostile(&'static str),
    /// The summary ends before it is complete.
    #[error("the summary was cut")]
    Cut,
    /// The model declined to write a summary.
    #[error("the model declined to write a summary")]
    Declined,
    /// The summary is written in a non-Latin script that the user has not used.
    #[error("the summary is written in another language than the session")]
    OtherLanguage,
}

/// The parts of a summary request that do not come from the archived messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct SummaryWish<'a> {
    /// The topics that the user wants the summary to keep in particular.
    pub focus: Option<&'a str>,
    /// The reason why the previous summary was refused.
    pub refused: Option<&'a SummaryRefusal>,
    /// The whole conversation, from which the user's language is determined even if the user's
    /// messages are not archived.
    pub session: &'a [Arc<Entry>],
}

/// The maximum number of attempts to fit the request for a summary into the window. Bytes per token
/// differ between texts, so the first estimate may be too large.
const FIT_ATTEMPTS: usize = 6;

/// Builds the request that asks a model for the summary. The transcript is shortened until the
/// request fits the model's window, because an oversized request would be rejected.
pub fn build_summary_request(
    plan: &CompactionPlan,
    wish: SummaryWish<'_>,
    model: &ModelSpec,
    policy: &Policy,
    counter: &dyn TokenCounter,
) -> Result<Request, ContextError> {
    let whole = render_transcript(&plan.messages, policy.compress_limits, Labels::RolesAndIds);
    let mut bytes = whole.len();
    let request = summary_request_of(plan, wish, whole, model, policy, counter)?;
    let room = Scale::for_model(model).to_counted_tokens(policy.usable_window(model).into());
    let mut fitted = request;
    for _ in 0..FIT_ATTEMPTS {
        let tokens = fitted.estimated_tokens();
        if tokens <= room {
            break;
        }
        bytes = (bytes as u128 * u128::from(room) / u128::from(tokens)) as usize / 100 * 95;
        let cut = transcript_within(
            &plan.messages,
            policy.compress_limits,
            Labels::RolesAndIds,
            bytes,
        );
        fitted = summary_request_of(plan, wish, cut, model, policy, counter)?;
    }
    Ok(fitted)
}

fn summary_request_of(
    plan: &CompactionPlan,
    wish: SummaryWish<'_>,
    transcript: String,
    model: &ModelSpec,
    policy: &Policy,
    counter: &dyn TokenCounter,
) -> Result<Request, ContextError> {
    let values = context! {
        from => plan.from.to_string(),
        to => plan.to.to_string(),
        language => detect_user_language(plan.messages.iter().chain(wish.session)),
        focus => wish.focus.map(str::trim).filter(|focus| !focus.is_empty()),
        refused => wish.refused.map(ToString::to_string),
        transcript => transcript,
    };
    let instructions = render_template(
        "summary",
        prompt!("../../templates/summary").text(policy.prompt_language),
        &values,
    )?;
    let archive = render_template(
        "archive",
        prompt!("../../templates/archive").text(policy.prompt_language),
        &values,
    )?;
    Ok(build_plain_request(
        &instructions,
        "archive",
        &archive,
        model,
        counter,
    ))
}

/// Builds a request that is not part of the conversation from instructions and a subject. The
/// request has no tools and uses no cache.
pub(crate) fn build_plain_request(
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
    let about = reminder_message(
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

const FIRST_KEPT_KEY: &str = "first_kept";
const USERS_FROM_KEY: &str = "users_from";

/// Builds the message that stores a summary. From the next request on, the summary replaces the
/// archived messages of the plan.
pub fn new_summary_message(
    id: MessageId,
    at: Timestamp,
    text: impl Into<String>,
    plan: &CompactionPlan,
) -> Message {
    let mut summary = Message::from_text(id, Role::Summary, text, at);
    summary
        .metadata
        .insert(FIRST_KEPT_KEY.into(), plan.first_kept.to_string().into());
    if let Some(users) = plan.users_from {
        summary
            .metadata
            .insert(USERS_FROM_KEY.into(), users.to_string().into());
    }
    summary
}

/// Returns the first message that is sent in addition to this summary; `None` if the summary names
/// none.
pub fn first_kept_of_summary(summary: &Message) -> Option<MessageId> {
    parse_message_id(summary, FIRST_KEPT_KEY)
}

fn parse_message_id(summary: &Message, key: &str) -> Option<MessageId> {
    summary.metadata.get(key)?.as_str()?.parse().ok()
}

/// Removes the messages that summaries replace.
pub(crate) fn remove_archived(line: &mut Timeline) {
    let cut = |summary: &Arc<Entry>| {
        let first_kept = first_kept_of_summary(&summary.message)?;
        let users_from = parse_message_id(&summary.message, USERS_FROM_KEY);
        // If the conversation lacks the message that a summary names, nothing is treated as
        // archived: sending more is the safe side.
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
        drop(line.apply_cut(cut));
    }
}

#[cfg(test)]
mod tests;
