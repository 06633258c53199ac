//! Stage two of pruning: above the safe zone old results and large arguments are cleared, oldest
//! first.
//!
//! ```text
//! U  A T  A T  A T … A T  A T        obsolete results, then the oldest, become notices until the request fits,
//!      ▒    ▒    ·     ·    ·        the newest `prune_keep` cleanable messages stay
//! ```
//!
//! Invariant: a result is never cleared before the model has seen it, that is, before an assistant
//! message follows it.
//!
//! Structure, roles, ids and order never change, and what is stored never does. What was cleared
//! stays cleared: the decisions come back in [`Cleared`] and go into the next snapshot. Each
//! clearing breaks the cached prefix once, so it clears much, or waits while it would clear little
//! and the request still fits. Two walks over the line, no more.

use std::collections::BTreeSet;
use std::sync::Arc;

use haft_types::{Entry, Envelope, Message, MessageId, Part, Role, ToolCall, ToolResult};
use serde_json::Value;

use crate::build::rounds::{CLEARED, MASKED, Timeline, TimelineItem};
use crate::carried::Cleared;
use crate::memo::{EntryMaker, MessageForm, RecallTool};
use crate::policy::{Policy, Reduction};
use crate::reduce::compress::status_name;
use crate::reduce::failing_lines::failing_lines;
use crate::reduce::superseded::superseded;

/// The share of the safe zone that clearing must save while the request still fits: one in so many.
pub(crate) const WORTH: u64 = 10;
/// The same where the zone lies close to the window: what cannot be cleared fills it soon, and
/// clearing little again and again would break the prefix every time. There is an archive for that.
const TIGHT_WORTH: u64 = 4;

/// What one run of pruning did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pruned {
    /// Messages cleared now that were not before.
    pub(crate) newly: Vec<MessageId>,
    /// Tokens left out, by old decisions and new ones.
    pub(crate) tokens: u64,
    /// Messages looked at.
    pub(crate) steps: usize,
}

/// What pruning must respect.
#[derive(Clone, Copy)]
pub(crate) struct PruneLimits<'a> {
    /// Tokens of the request besides the line.
    pub(crate) fixed: u64,
    /// Tokens above which something is cleared.
    pub(crate) target: u64,
    /// Tokens above which it is cleared however little that is.
    pub(crate) urgent: u64,
    /// Whether the request was above the target before results were compressed: the prefix is
    /// broken already, so what clearing would take soon it takes now.
    pub(crate) was_over: bool,
    pub(crate) policy: &'a Policy,
    pub(crate) reduction: Reduction,
    pub(crate) obsolete: Obsolete,
}

/// When results go that later ones have made obsolete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obsolete {
    /// First, once something has to go.
    First,
    /// Now: nothing of the prefix is in the cache, so it costs nothing.
    Now,
}

/// Applies what was decided before (and still holds), then clears as much more as is needed.
pub(crate) fn prune(
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
                (item.entry, item.owner) = (cleared, CLEARED);
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
    // The unseen results of the newest step count as one of those that stay.
    let has_unseen = line.items.iter().any(|item| item.unseen);
    let keep = (limits.reduction.prune_keep as usize).saturating_sub(usize::from(has_unseen));
    cleanable.truncate(cleanable.len().saturating_sub(keep));
    let obsolete = superseded(&line.items);
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
        if item.owner == CLEARED || item.pinned {
            continue;
        }
        let cleared = cleared_entry(item, limits.policy, maker);
        // Otherwise the notice would be longer than what it stands for.
        let saved = u64::from(item.entry.tokens).saturating_sub(u64::from(cleared.tokens));
        if saved > 0 {
            left -= saved;
            free_tokens += if free { saved } else { 0 };
            chosen.push((index, cleared, free));
        }
    }
    let is_tight = limits.urgent * 4 < limits.target * 5;
    let enough = limits.target / if is_tight { TIGHT_WORTH } else { WORTH };
    let worth = total - left - free_tokens >= enough || total > limits.urgent;
    for (index, cleared, free) in chosen {
        if worth || free {
            let item = &mut line.items[index];
            pruned.tokens += u64::from(item.entry.tokens) - u64::from(cleared.tokens);
            pruned.newly.push(item.id());
            (item.entry, item.owner) = (cleared, CLEARED);
        }
    }
    pruned
}

fn is_cleanable(item: &TimelineItem, policy: &Policy) -> bool {
    match item.role() {
        _ if item.owner == MASKED || item.unseen => false,
        Role::Tool => true,
        Role::Assistant => item
            .entry
            .message
            .tool_calls()
            .any(|call| has_large_argument(call, policy)),
        Role::System | Role::User | Role::Summary => false,
    }
}

/// Whether the arguments hold a string longer than pruning leaves. Looks at the text alone: parsing
/// would cost more.
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

/// The cleared form of a message.
fn cleared_entry(item: &TimelineItem, policy: &Policy, maker: EntryMaker<'_>) -> Arc<Entry> {
    let message = &item.entry.message;
    let chars = policy.prune_argument_chars;
    let recall = maker.recall;
    let form = MessageForm::Cleared {
        argument_chars: chars,
        recall,
    };
    maker.entry(message.message_id, item.entry.hash, form, || Message {
        content: match message.role {
            Role::Tool => message
                .tool_results()
                .map(|result| notice(message.message_id, result, recall))
                .collect(),
            Role::System | Role::User | Role::Assistant | Role::Summary => {
                let cut = |part| cut_arguments(part, chars as usize, message.message_id, recall);
                message.content.iter().map(cut).collect()
            }
        },
        ..message.clone()
    })
}

/// What stands for a cleared result: its name, and of its text the tests that failed.
fn notice(id: MessageId, result: &ToolResult, recall: RecallTool) -> Part {
    let status = status_name(result.envelope.status);
    let where_it_is = match recall {
        RecallTool::Offered => format!("`recall` {} brings it back", id.short()),
        RecallTool::Missing => format!("message {}", id.short()),
    };
    let mut text = format!(
        "[Cleared: result of `{}` ({status}); {where_it_is}.]",
        result.name
    );
    failing_lines(&result.envelope.text).for_each(|line| text.extend(["\n", &line]));
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

/// The part with every long string among a call's arguments cut.
fn cut_arguments(part: &Part, chars: usize, id: MessageId, recall: RecallTool) -> Part {
    let Part::ToolCall(call) = part else {
        return part.clone();
    };
    // Arguments that are no JSON are a failed call: there is no string to cut, and the text must
    // stay what the model wrote.
    let Ok(mut arguments) = serde_json::from_str::<Value>(&call.arguments) else {
        return part.clone();
    };
    let where_they_are = match recall {
        RecallTool::Offered => format!("`recall` {}", id.short()),
        RecallTool::Missing => format!("message {}", id.short()),
    };
    if cut_strings(&mut arguments, chars, &where_they_are) == 0 {
        return part.clone();
    }
    Part::ToolCall(ToolCall {
        arguments: arguments.to_string(),
        ..call.clone()
    })
}

/// Cuts every long string inside; returns how many.
fn cut_strings(value: &mut Value, chars: usize, where_they_are: &str) -> usize {
    match value {
        Value::String(text) => match text.char_indices().nth(chars) {
            Some((end, _)) => {
                let missing = text[end..].chars().count();
                *text = format!(
                    "{}[{missing} more characters are cleared: {where_they_are}]",
                    &text[..end]
                );
                1
            }
            None => 0,
        },
        Value::Array(values) => values
            .iter_mut()
            .map(|value| cut_strings(value, chars, where_they_are))
            .sum(),
        Value::Object(fields) => fields
            .values_mut()
            .map(|value| cut_strings(value, chars, where_they_are))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests;
