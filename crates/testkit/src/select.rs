//! Chooses the reply to a request: the first reply that applies and is not used up, or the reply at
//! the request's turn.

use crate::script::{Replies, Reply, Script, When};
use crate::seen::Seen;

/// Chooses replies, and counts how often each was given.
#[derive(Debug, Default)]
pub(crate) struct Selector {
    used: Vec<u32>,
    served: u64,
}

/// The reply chosen for one request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The number of the request, from 1.
    pub(crate) request: u64,
    /// The reply's index in the script; `None` if no reply is left.
    pub(crate) reply: Option<usize>,
}

/// True if choosing a reply requires the decoded request.
pub(crate) fn needs_decoded_request(script: &Script) -> bool {
    match &script.replies {
        Replies::Turns(_) => true,
        Replies::Listed(replies) => replies.iter().any(|reply| reply.when.is_some()),
    }
}

impl Selector {
    /// Chooses a reply and counts it as given. `seen` must be present if [`needs_decoded_request`]
    /// returns true.
    pub(crate) fn choose(&mut self, script: &Script, seen: Option<&Seen>) -> Choice {
        self.served += 1;
        let request = self.served;
        let reply = match &script.replies {
            Replies::Turns(turns) => seen
                .map(Seen::count_assistant_turns)
                .filter(|turn| *turn < turns.len()),
            Replies::Listed(replies) => {
                self.used.resize(replies.len(), 0);
                let is_available = |(index, reply): &(usize, &Reply)| {
                    max_uses(reply).is_none_or(|limit| self.used[*index] < limit)
                        && reply.when.as_ref().is_none_or(|when| {
                            seen.is_some_and(|seen| meets_conditions(when, seen, request))
                        })
                };
                let found = replies
                    .iter()
                    .enumerate()
                    .find(is_available)
                    .map(|(index, _)| index);
                if let Some(index) = found {
                    self.used[index] += 1;
                }
                found
            }
        };
        Choice { request, reply }
    }
}

fn max_uses(reply: &Reply) -> Option<u32> {
    match (reply.times, &reply.when) {
        (Some(times), _) => Some(times),
        (None, None) => Some(1),
        (None, Some(_)) => None,
    }
}

fn meets_conditions(when: &When, seen: &Seen, request: u64) -> bool {
    // All fields are listed, so that a new condition can't be forgotten here.
    let When {
        tool_offered,
        last_role,
        last_contains,
        assistant_messages,
        tool_results,
        request: number,
        api,
        model,
    } = when;
    let last_role_is = |role| {
        seen.messages
            .last()
            .is_some_and(|message| message.role == role)
    };
    tool_offered
        .as_ref()
        .is_none_or(|name| seen.tools.iter().any(|tool| tool.name == *name))
        && last_role.is_none_or(last_role_is)
        && last_contains
            .as_ref()
            .is_none_or(|words| seen.last_message_contains(words))
        && assistant_messages.is_none_or(|count| seen.count_assistant_turns() == count)
        && tool_results.is_none_or(|count| seen.count_tool_results() == count)
        && number.is_none_or(|number| number == request)
        && api.is_none_or(|api| api == seen.api)
        && model.as_ref().is_none_or(|model| *model == seen.model)
}

/// Formats the error message for a request for which the script has no reply left.
pub(crate) fn ran_out_message(script: &Script, request: u64, seen: Option<&Seen>) -> String {
    let turns = seen.map_or(0, Seen::count_assistant_turns);
    match &script.replies {
        Replies::Turns(replies) => format!(
            "the script has run out: request {request} holds {turns} assistant turns, `turns` has {} replies",
            replies.len()
        ),
        Replies::Listed(replies) => {
            let results = seen.map_or(0, Seen::count_tool_results);
            format!(
                "the script has run out: none of its {} replies is left for request {request} \
                 ({turns} assistant turns, {results} tool results)",
                replies.len()
            )
        }
    }
}

#[cfg(test)]
mod tests;
