//! Rules about the positions of cache marks.

use serde_json::Value;

use super::each_block;
use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict, given, kind, list, text},
};

const MOST: usize = 4;

pub(super) fn at_most_four(body: &Value, _: &RequestInfo) -> Verdict {
    // A cache mark on the request itself counts as one of the four.
    let found = marks(body).count() + usize::from(given(body, "cache_control").is_some());
    if found > MOST {
        let message = format!(
            "A maximum of {MOST} blocks with cache_control may be provided. Found {found}."
        );
        return Err(Problem::new(message));
    }
    Ok(())
}

pub(super) fn not_on_thinking(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, block, value) in each_block(body) {
        let found = kind(value);
        if matches!(found, "thinking" | "redacted_thinking") && value.get("cache_control").is_some()
        {
            let path = format!("messages.{message}.content.{block}.{found}.cache_control");
            return Err(super::fields::not_permitted(&path));
        }
    }
    Ok(())
}

pub(super) fn long_before_short(body: &Value, _: &RequestInfo) -> Verdict {
    let mut short_seen = false;
    for (path, mark) in marks(body) {
        let long = text(mark, "ttl") == Some("1h");
        if long && short_seen {
            return Err(Problem::new(format!(
                "{}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control \
                 block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
                path.text()
            )));
        }
        short_seen |= !long;
    }
    Ok(())
}

/// The position of a cache mark; formatted only for an error.
enum Place {
    Tool(usize),
    System(usize),
    Block(usize, usize),
    Inner(usize, usize, usize),
}

impl Place {
    fn text(&self) -> String {
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
fn marks(body: &Value) -> impl Iterator<Item = (Place, &Value)> {
    let tools = list(body, "tools")
        .iter()
        .enumerate()
        .map(|(at, tool)| (Place::Tool(at), tool));
    let system = list(body, "system")
        .iter()
        .enumerate()
        .map(|(at, block)| (Place::System(at), block));
    let blocks = each_block(body).flat_map(|(message, block, value)| {
        let inner = list(value, "content").iter().enumerate();
        let inner = inner.map(move |(at, part)| (Place::Inner(message, block, at), part));
        inner.chain(std::iter::once((Place::Block(message, block), value)))
    });
    tools
        .chain(system)
        .chain(blocks)
        .filter_map(|(place, holder)| Some((place, given(holder, "cache_control")?)))
}
