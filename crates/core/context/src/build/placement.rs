//! The position of the run of reminders.
//!
//! A position is an index into the conversation without system, documents and summaries; the run is
//! inserted before the message with that index, never inside a block.
//!
//! ```text
//! after-tool-result:3    U A T A T A T  →  U A T * A T A T
//! before-assistant:1     U A T A T      →  U A T * A T
//! from-end:5             U A T A T A T  →  U * A T A T A T     (the fifth from the end lies inside a block)
//! front, tail            U A T          →  * U A T,  U A T *
//! cache-aware            U A T *        →  U A T * A T,  and U A T * A T * once it has changed (see `copies`)
//! ```

use std::fmt;
use std::str::FromStr;

use haft_types::Role;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::build::rounds::{TimelineItem, block_start};

/// A rule for the position of the reminders in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The reminders are sent directly after the n-th last tool result, or after the newest user
    /// message if there are fewer results.
    AfterToolResult(u32),
    /// The reminders are sent directly before the n-th last assistant message.
    BeforeAssistant(u32),
    /// The reminders are sent before the n-th last message.
    FromEnd(u32),
    /// The reminders are sent before the conversation.
    Front,
    /// The reminders are sent after the conversation.
    Tail,
    /// A reminder is appended if it is new, has changed, or is far from the end; every copy that
    /// was sent before stays at its position.
    #[default]
    CacheAware,
}

/// The error for a text that is not the name of a placement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a place for reminders; use after-tool-result:N, before-assistant:N, from-end:N (N from 1), front, tail \
     or cache-aware"
)]
pub struct UnknownPlace(String);

impl FromStr for Placement {
    type Err = UnknownPlace;

    fn from_str(text: &str) -> Result<Self, UnknownPlace> {
        let unknown = || UnknownPlace(text.to_owned());
        let Some((name, number)) = text.split_once(':') else {
            return match text {
                "front" => Ok(Self::Front),
                "tail" => Ok(Self::Tail),
                "cache-aware" => Ok(Self::CacheAware),
                _ => Err(unknown()),
            };
        };
        let number = number
            .parse()
            .ok()
            .filter(|number| *number > 0)
            .ok_or_else(unknown)?;
        match name {
            "after-tool-result" => Ok(Self::AfterToolResult(number)),
            "before-assistant" => Ok(Self::BeforeAssistant(number)),
            "from-end" => Ok(Self::FromEnd(number)),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AfterToolResult(number) => write!(f, "after-tool-result:{number}"),
            Self::BeforeAssistant(number) => write!(f, "before-assistant:{number}"),
            Self::FromEnd(number) => write!(f, "from-end:{number}"),
            Self::Front => f.write_str("front"),
            Self::Tail => f.write_str("tail"),
            Self::CacheAware => f.write_str("cache-aware"),
        }
    }
}

impl Serialize for Placement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Placement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

/// Returns the index at which the run of reminders is inserted. Under `after-tool-result`, this
/// index lies before the newest user message if that message is newer than the tool result and the
/// result is more than `max_distance` messages from the end.
pub(crate) fn find_run_index(place: Placement, items: &[TimelineItem], max_distance: u32) -> usize {
    match place {
        Placement::Front => 0,
        // The position of a new copy; `copies` lays out the others.
        Placement::Tail | Placement::CacheAware => items.len(),
        Placement::FromEnd(number) => match items.len().checked_sub(number as usize) {
            Some(index) => block_start(items, index),
            None => items.len(),
        },
        Placement::BeforeAssistant(number) => {
            let assistants = || find_role_positions(items, Role::Assistant);
            assistants()
                .nth(number as usize - 1)
                .or_else(|| assistants().last())
                .unwrap_or(items.len())
        }
        Placement::AfterToolResult(number) => {
            let newest_user = find_role_positions(items, Role::User).next();
            let Some(result) = find_role_positions(items, Role::Tool).nth(number as usize - 1)
            else {
                return newest_user.map_or(items.len(), |user| user + 1);
            };
            let index = block_start(items, result + 1);
            match newest_user {
                Some(user) if user >= index && items.len() - index > max_distance as usize => user,
                _ => index,
            }
        }
    }
}

/// True if the run of reminders will be inserted at an unchanged position after one more step of
/// the tool loop.
pub(crate) fn is_run_stable(place: Placement, items: &[TimelineItem]) -> bool {
    let fewer = |role, number: u32| {
        find_role_positions(items, role)
            .take(number as usize)
            .count()
            < number as usize
    };
    match place {
        Placement::Front | Placement::CacheAware => true,
        Placement::Tail | Placement::FromEnd(_) => false,
        Placement::BeforeAssistant(number) => {
            fewer(Role::Assistant, number) && !fewer(Role::Assistant, 1)
        }
        // There must be too few results even after the next one.
        Placement::AfterToolResult(number) => number > 1 && fewer(Role::Tool, number - 1),
    }
}

/// Returns the indices of the messages with this role, newest first.
fn find_role_positions(items: &[TimelineItem], role: Role) -> impl Iterator<Item = usize> {
    items
        .iter()
        .enumerate()
        .rev()
        .filter(move |(_, item)| item.role() == role)
        .map(|(index, _)| index)
}

#[cfg(test)]
mod tests;
