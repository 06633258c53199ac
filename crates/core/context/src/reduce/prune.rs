//! Pruning: above the safe zone, old results and large arguments are cleared, oldest first.
//!
//! ```text
//! U  A T  A T  A T … A T  A T        obsolete results, then the oldest, become notices until the request fits,
//!      ▒    ▒    ·     ·    ·        the newest `prune_keep` results stay
//! ```
//!
//! Invariant: a result is never cleared before the model has seen it, that is, before an assistant
//! message follows it. The newest views of files being worked on ([`working`]) stay as well.
//!
//! A cut argument carries no note, because a model could copy the note into a file. The results of
//! the call say that its arguments are shortened.
//!
//! Structure, roles, ids and order never change, and neither do stored messages. Cleared messages
//! stay cleared: the decisions are returned in [`Cleared`] and passed to the next snapshot. Each
//! clearing breaks the cached prefix once, so it clears much, or it waits while it would clear
//! little and the request still fits. Pruning walks over the timeline at most twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use haft_types::{Entry, Envelope, Message, MessageId, Part, Role, ToolCall, ToolResult};
use serde_json::Value;

use crate::build::rounds::{CLEARED_OWNER, MASKED_OWNER, Timeline, TimelineItem};
use crate::carried::Cleared;
use crate::memo::{EntryMaker, MessageForm, RecallTool};
use crate::policy::{Policy, Reduction};
use crate::reduce::compress::status_name;
use crate::reduce::failing_lines::find_failing_lines;
use crate::reduce::superseded::find_superseded;
use crate::reduce::working;

/// The safe zone divided by this is the minimum number of tokens that pruning must save while the
/// request still fits.
pub(crate) const MIN_SAVING_DIVISOR: u64 = 10;
/// The divisor that replaces [`MIN_SAVING_DIVISOR`] if the safe zone is nearly as large as the
/// window. Such a zone soon fills with content that cannot be cleared, and clearing a little again
/// and again would break the prefix every time; an archive is better there.
const MIN_SAVING_DIVISOR_TIGHT: u64 = 4;

/// The safe zone divided by this is the distance below the size at which prices rise that clearing
/// must reach. With a smaller distance, the next requests would be above that size again, and each
/// would break the prefix.
const PRICE_MARGIN_DIVISOR: u64 = 32;

/// The safe zone divided by this is the maximum number of tokens for the newest views of files
/// being worked on.
const WORKING_SHARE: u64 = 4;

/// The result of one run of pruning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pruned {
    /// The messages that this run cleared for the first time.
    pub(crate) newly: Vec<MessageId>,
    /// The number of tokens left out by this run and by earlier decisions.
    pub(crate) tokens: u64,
    /// The number of messages that this run examined.
    pub(crate) steps: usize,
}

/// The limits that pruning must respect.
#[derive(Clone, Copy)]
pub(crate) struct PruneLimits<'a> {
    /// The number of tokens of the request outside the timeline.
    pub(crate) fixed: u64,
    /// The number of tokens above which messages are cleared.
    pub(crate) target: u64,
    /// The number of tokens above which messages are cleared even if that saves little.
    pub(crate) urgent: u64,
    /// The number of tokens above which the model's prices rise, or `u64::MAX`. Clearing that brings
    /// the request below it is done even if it saves few tokens.
    pub(crate) dear: u64,
    /// True if the request exceeded the target before results were compressed. In that case the
    /// prefix is broken already, so whatever would soon have to be cleared is cleared now.
    pub(crate) was_over: bool,
    pub(crate) policy: &'a Policy,
    pub(crate) reduction: Reduction,
    pub(crate) obsolete: Obsolete,
}

/// The time at which obsolete results are cleared. A result is obsolete if a later one supersedes
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obsolete {
    /// Obsolete results are cleared before all others, once clearing is needed.
    First,
    /// Obsolete results are cleared at once, because no part of the prefix is cached and clearing
    /// costs nothing.
    Now,
}

/// Applies the earlier decisions that still hold, then clears further messages until the request is
/// within its limits.
pub(crate) fn prune_timeline(
    line: &mut Timeline,
    cleared: Option<&Cleared>,
    limits: PruneLimits<'_>,
    maker: EntryMaker<'_>,
) -> Pruned {
    let mut pruned = clear(line, cleared, limits, maker);
    let notes = note_shortened(line, limits.policy, maker);
    pruned.tokens = pruned.tokens.saturating_sub(notes);
    pruned
}

fn clear(
    line: &mut Timeline,
    cleared: Option<&Cleared>,
    limits: PruneLimits<'_>,
    maker: EntryMaker<'_>,
) -> Pruned {
    let none = BTreeSet::new();
    let remembered = cleared.map_or(&none, |cleared| &cleared.ids);
    let mut pruned = Pruned::default();
    let quiet = remembered.is_empty() && limits.obsolete == Obsolete::First;
    if quiet && !limits.was_over && limits.fixed + line.tokens() <= limits.target {
        pruned.steps = line.items.len();
        return pruned;
    }
    let mut cleanable = Vec::new();
    let mut total = limits.fixed
        + line
            .summaries
            .iter()
            .map(|entry| u64::from(entry.tokens))
            .sum::<u64>();
    for (index, item) in line.items.iter_mut().enumerate() {
        pruned.steps += 1;
        if is_cleanable(item, limits.policy) {
            cleanable.push(index);
            if !item.pinned && remembered.contains(&item.id()) {
                let cleared = cleared_entry(item, limits.policy, maker);
                pruned.tokens +=
                    u64::from(item.entry.tokens).saturating_sub(u64::from(cleared.tokens));
                total += note_tokens(&item.entry, limits.policy);
                (item.entry, item.owner) = (cleared, CLEARED_OWNER);
            }
        }
        total += u64::from(item.entry.tokens);
    }

    let over = limits.was_over || total > limits.target;
    if !over && limits.obsolete == Obsolete::First {
        return pruned;
    }
    let goal = if over {
        (limits.target as f64 * limits.reduction.prune_to) as u64
    } else {
        limits.target
    };
    let newest = newest_results(line, &limits);
    cleanable.retain(|index| *index < newest);
    let working = working::find_working_views(&line.items, limits.target / WORKING_SHARE);
    cleanable.retain(|index| !working.contains(index));
    let obsolete = find_superseded(&line.items);
    let (first, others): (Vec<_>, Vec<_>) = cleanable
        .into_iter()
        .partition(|index| obsolete.contains(index));
    let mut chosen = Vec::new();
    let mut left = total;
    let mut free_tokens = 0;
    for index in first.into_iter().chain(others) {
        let free = limits.obsolete == Obsolete::Now && obsolete.contains(&index);
        if left <= goal && !free {
            break;
        }
        pruned.steps += 1;
        let item = &line.items[index];
        if item.owner == CLEARED_OWNER || item.pinned {
            continue;
        }
        let cleared = cleared_entry(item, limits.policy, maker);
        // If nothing is saved, the notice would be longer than the result.
        let saved = u64::from(item.entry.tokens)
            .saturating_sub(u64::from(cleared.tokens) + note_tokens(&item.entry, limits.policy));
        if saved > 0 {
            left -= saved;
            free_tokens += if free { saved } else { 0 };
            chosen.push((index, cleared, free));
        }
    }
    let is_tight = limits.urgent * 4 < limits.target * 5;
    let enough = limits.target
        / if is_tight {
            MIN_SAVING_DIVISOR_TIGHT
        } else {
            MIN_SAVING_DIVISOR
        };
    let gets_cheaper =
        total > limits.dear && left + limits.target / PRICE_MARGIN_DIVISOR <= limits.dear;
    let worth = total - left - free_tokens >= enough || total > limits.urgent || gets_cheaper;
    for (index, cleared, free) in chosen {
        if worth || free {
            let item = &mut line.items[index];
            pruned.tokens += u64::from(item.entry.tokens) - u64::from(cleared.tokens);
            pruned.newly.push(item.id());
            (item.entry, item.owner) = (cleared, CLEARED_OWNER);
        }
    }
    pruned
}

/// Returns the index of the first message that must be kept. The newest `prune_keep` results are
/// kept, with everything after them; so are the arguments of a call whose results are all kept.
///
/// The results of the newest step count as one, unless together they do not fit the window.
fn newest_results(line: &Timeline, limits: &PruneLimits<'_>) -> usize {
    let mut keep = limits.reduction.prune_keep as usize;
    let mut newest = line.unseen_start();
    let results = |item: &TimelineItem| item.entry.message.tool_results().count();
    let last = line.items.iter().rposition(|item| results(item) > 0);
    let Some(last) = last else {
        return newest;
    };
    let is_newest_step = |item: &TimelineItem| item.block == line.items[last].block;
    let step: u64 = line
        .items
        .iter()
        .filter(|item| is_newest_step(item))
        .map(|item| u64::from(item.entry.tokens))
        .sum();
    let is_unit = limits.fixed + step <= limits.urgent;
    let mut counted_unit = false;
    for (index, item) in line.items.iter().enumerate().rev() {
        let takes = match results(item) {
            0 => continue,
            _ if item.owner == MASKED_OWNER => continue,
            _ if item.unseen || (is_unit && is_newest_step(item)) => {
                usize::from(!std::mem::replace(&mut counted_unit, true))
            }
            results => results,
        };
        if keep == 0 && takes > 0 && !item.unseen {
            break;
        }
        keep = keep.saturating_sub(takes);
        newest = newest.min(index);
    }
    // A call whose results all stay keeps its arguments.
    let call = newest.saturating_sub(1);
    match line.items.get(newest) {
        Some(first) if line.items[call].block == first.block => {
            if line.items[call].role() == Role::Assistant {
                call
            } else {
                newest
            }
        }
        _ => newest,
    }
}

fn is_cleanable(item: &TimelineItem, policy: &Policy) -> bool {
    match item.role() {
        _ if item.owner == MASKED_OWNER || item.unseen => false,
        Role::Tool => true,
        Role::Assistant => item
            .entry
            .message
            .tool_calls()
            .any(|call| has_large_argument(call, policy)),
        Role::System | Role::User | Role::Summary => false,
    }
}

/// Returns the estimated tokens of the notes that are added to the results of a message when its
/// arguments are cut.
fn note_tokens(entry: &Entry, policy: &Policy) -> u64 {
    /// An upper estimate of the tokens in a [`shortened_note`].
    const NOTE: u64 = 24;
    let calls = entry.message.tool_calls();
    NOTE * calls
        .filter(|call| has_large_argument(call, policy))
        .count() as u64
}

/// Adds a note to the results of calls whose arguments were cut. Returns the tokens added.
fn note_shortened(line: &mut Timeline, policy: &Policy, maker: EntryMaker<'_>) -> u64 {
    let form = MessageForm::Noted {
        argument_chars: policy.prune_argument_chars,
        recall: maker.recall,
    };
    let mut added = 0;
    let mut cut: Option<(u32, MessageId, Vec<String>)> = None;
    for item in &mut line.items {
        if item.role() == Role::Assistant {
            cut = (item.owner == CLEARED_OWNER).then(|| {
                let calls = item.entry.message.tool_calls();
                let cut = calls.filter(|call| is_cut(call, policy.prune_argument_chars as usize));
                (
                    item.block,
                    item.id(),
                    cut.map(|call| call.id.clone()).collect(),
                )
            });
            continue;
        }
        let of_block = cut
            .as_ref()
            .filter(|(block, _, ids)| *block == item.block && !ids.is_empty());
        let Some((_, call, ids)) = of_block else {
            continue;
        };
        if item.role() != Role::Tool || item.owner == MASKED_OWNER {
            continue;
        }
        let noted = maker.derived_entry(item.id(), item.entry.hash, form, || Message {
            content: item
                .entry
                .message
                .content
                .iter()
                .map(|part| note_part(part, ids, *call, maker.recall))
                .collect(),
            ..item.entry.message.clone()
        });
        added += u64::from(noted.tokens).saturating_sub(u64::from(item.entry.tokens));
        item.entry = noted;
    }
    added
}

/// True if the arguments contain a string of exactly `chars` characters, the length to which
/// strings are cut.
fn is_cut(call: &ToolCall, chars: usize) -> bool {
    fn has(value: &Value, chars: usize) -> bool {
        match value {
            Value::String(text) => text.len() >= chars && text.chars().count() == chars,
            Value::Array(values) => values.iter().any(|value| has(value, chars)),
            Value::Object(fields) => fields.values().any(|value| has(value, chars)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    call.arguments.len() >= chars
        && serde_json::from_str(&call.arguments).is_ok_and(|value| has(&value, chars))
}

/// Returns the part, with a note added if it is the result of one of these calls.
fn note_part(part: &Part, calls: &[String], message: MessageId, recall: RecallTool) -> Part {
    match part {
        Part::ToolResult(result) if calls.contains(&result.tool_call_id) => {
            let mut noted = result.clone();
            if !noted.envelope.text.is_empty() {
                noted.envelope.text.push('\n');
            }
            noted
                .envelope
                .text
                .push_str(&shortened_note(message, recall));
            Part::ToolResult(noted)
        }
        part => part.clone(),
    }
}

/// Builds the note on the result of a call whose arguments were cut.
fn shortened_note(message: MessageId, recall: RecallTool) -> String {
    match recall {
        RecallTool::Offered => format!(
            "[The arguments of this call are shortened here; `recall` {} shows them whole.]",
            message.short_id()
        ),
        RecallTool::Missing => format!(
            "[The arguments of this call are shortened here; message {} has them whole.]",
            message.short_id()
        ),
    }
}

/// True if the arguments contain a string that is longer than pruning allows. The function scans
/// the text, because parsing would cost more.
fn has_large_argument(call: &ToolCall, policy: &Policy) -> bool {
    let limit = policy.prune_argument_chars as usize;
    if call.arguments.len() <= limit {
        return false;
    }
    let mut inside = false;
    let mut length = 0;
    let mut chars = call.arguments.chars();
    while let Some(c) = chars.next() {
        match (inside, c) {
            (true, '\\') => {
                // `\u` is followed by four digits.
                if chars.next() == Some('u') {
                    chars.by_ref().take(4).for_each(drop);
                }
                length += 1;
            }
            (_, '"') => (inside, length) = (!inside, 0),
            (true, _) => length += 1,
            (false, _) => {}
        }
        if length > limit {
            return true;
        }
    }
    false
}

/// Returns the cleared form of a message.
fn cleared_entry(item: &TimelineItem, policy: &Policy, maker: EntryMaker<'_>) -> Arc<Entry> {
    let message = &item.entry.message;
    let chars = policy.prune_argument_chars;
    let recall = maker.recall;
    let form = MessageForm::Cleared {
        argument_chars: chars,
        recall,
    };
    maker.derived_entry(message.message_id, item.entry.hash, form, || Message {
        content: match message.role {
            Role::Tool => message
                .tool_results()
                .map(|result| build_notice(message.message_id, result, recall))
                .collect(),
            Role::System | Role::User | Role::Assistant | Role::Summary => {
                let cut = |part| cut_arguments(part, chars as usize);
                message.content.iter().map(cut).collect()
            }
        },
        ..message.clone()
    })
}

/// Builds the notice that replaces a cleared result. The notice names the tool, and the failing
/// tests in the result's text.
fn build_notice(id: MessageId, result: &ToolResult, recall: RecallTool) -> Part {
    let status = status_name(result.envelope.status);
    let where_it_is = match recall {
        RecallTool::Offered => format!("`recall` {} brings it back", id.short_id()),
        RecallTool::Missing => format!("message {}", id.short_id()),
    };
    let mut text = format!(
        "[Cleared: result of `{}` ({status}); {where_it_is}.]",
        result.name
    );
    find_failing_lines(&result.envelope.text).for_each(|line| text.extend(["\n", &line]));
    let envelope = Envelope {
        status: result.envelope.status,
        text,
        ..Envelope::default()
    };
    let tool_call_id = result.tool_call_id.clone();
    let name = result.name.clone();
    Part::ToolResult(Box::new(ToolResult {
        tool_call_id,
        name,
        envelope,
    }))
}

/// Returns the part with every long string in a call's arguments cut to `chars` characters.
fn cut_arguments(part: &Part, chars: usize) -> Part {
    let Part::ToolCall(call) = part else {
        return part.clone();
    };
    // Arguments that are not JSON belong to a failed call: there is no string to cut, and the text
    // must stay as the model wrote it.
    let Ok(mut arguments) = serde_json::from_str::<Value>(&call.arguments) else {
        return part.clone();
    };
    if cut_strings(&mut arguments, chars) == 0 {
        return part.clone();
    }
    Part::ToolCall(ToolCall {
        arguments: arguments.to_string(),
        ..call.clone()
    })
}

/// Cuts every long string in `value` and returns their number.
fn cut_strings(value: &mut Value, chars: usize) -> usize {
    match value {
        Value::String(text) => match text.char_indices().nth(chars) {
            Some((end, _)) => {
                text.truncate(end);
                1
            }
            None => 0,
        },
        Value::Array(values) => values
            .iter_mut()
            .map(|value| cut_strings(value, chars))
            .sum(),
        Value::Object(fields) => fields
            .values_mut()
            .map(|value| cut_strings(value, chars))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests;
