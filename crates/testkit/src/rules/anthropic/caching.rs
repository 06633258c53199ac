//! Rules about the positions of cache marks.

use serde_json::Value;

use super::iter_blocks;
use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict, array_field, non_null_field, string_field, type_field},
};

const MAX_MARKS: usize = 4;

pub(super) fn check_mark_count(body: &Value, _: &RequestInfo) -> Verdict {
    // A cache mark on the request itself counts as one of the four.
    let found =
        iter_marks(body).count() + usize::from(non_null_field(body, "cache_control").is_some());
    if found > MAX_MARKS {
        let message = format!(
            "A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {found}."
        );
        return Err(Problem::new(message));
    }
    Ok(())
}

pub(super) fn check_no_mark_on_thinking(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, block, value) in iter_blocks(body) {
        let found = type_field(value);
        if matches!(found, "thinking" | "redacted_thinking") && value.get("cache_control").is_some()
        {
            let path = format!("messages.{message}.content.{block}.{found}.cache_control");
            return Err(super::fields::field_not_permitted_problem(&path));
        }
    }
    Ok(())
}

pub(super) fn check_ttl_order(body: &Value, _: &RequestInfo) -> Verdict {
    let mut short_seen = false;
    for (path, mark) in iter_marks(body) {
        let long = string_field(mark, "ttl") == Some("1h");
        if long && short_seen {
            return Err(Problem::new(format!(
                "{}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control \
                 block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
                path.to_path()
            )));
        }
        short_seen |= !long;
    }
    Ok(())
}

/// The position of a cache mark in the request. It is converted to text only for an error.
enum Place {
    Tool(usize),
    System(usize),
    Block(usize, usize),
    Inner(usize, usize, usize),
}

impl Place {
    fn to_path(&self) -> String {
        match self {
            Self::Tool(tool) => format!("tools.{tool}"),
            Self::System(block) => format!("system.{block}"),
            Self::Block(message, block) => format!("messages.{message}.content.{block}"),
            Self::Inner(message, block, inner) => {
                format!("messages.{message}.content.{block}.content.{inner}")
            }
        }
    }
}

/// Iterates over all cache marks in the order in which the service processes them.
fn iter_marks(body: &Value) -> impl Iterator<Item = (Place, &Value)> {
    let tools = array_field(body, "tools")
        .iter()
        .enumerate()
        .map(|(at, tool)| (Place::Tool(at), tool));
    let system = array_field(body, "system")
        .iter()
        .enumerate()
        .map(|(at, block)| (Place::System(at), block));
    let blocks = iter_blocks(body).flat_map(|(message, block, value)| {
        let inner = array_field(value, "content").iter().enumerate();
        let inner = inner.map(move |(at, part)| (Place::Inner(message, block, at), part));
        inner.chain(std::iter::once((Place::Block(message, block), value)))
    });
    tools
        .chain(system)
        .chain(blocks)
        .filter_map(|(place, holder)| Some((place, non_null_field(holder, "cache_control")?)))
}
