//! Compares two requests and finds their first difference.

use haft_types::ContentHash;
use serde_json::Value;

use super::{Seen, SeenPart, SeenRole};

impl Seen {
    /// Describes the first difference between two requests as the model receives them; `None` if
    /// the requests are equivalent.
    ///
    /// Ignores the API, wire ids, reasoning, signatures and cache marks, and whether a result
    /// failed if either API can't express failure. A system message in the middle of the
    /// conversation counts as a user message, since most APIs have no other place for it.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.system != other.system {
            return Some(format!(
                "system text:\n  {:?}\n  {:?}",
                self.system, other.system
            ));
        }
        if self.tools != other.tools {
            let differs = self
                .tools
                .iter()
                .zip(&other.tools)
                .find(|(one, two)| one != two);
            return Some(match differs {
                Some((one, two)) => format!("tools:\n  {one:?}\n  {two:?}"),
                None => format!("tools: {} against {}", self.tools.len(), other.tools.len()),
            });
        }
        let mut ours = self.comparable_parts();
        let mut theirs = other.comparable_parts();
        let mut index = 0;
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return None,
                (Some(one), Some(two)) if parts_match(one, two) => index += 1,
                (one, two) => {
                    let show = |side: Option<(SeenRole, &SeenPart)>| match side {
                        Some((role, part)) => format!("{role}: {part:?}"),
                        None => "(nothing more)".to_owned(),
                    };
                    return Some(format!("part {index}:\n  {}\n  {}", show(one), show(two)));
                }
            }
        }
    }

    /// True if the model would receive equivalent requests; see [`Seen::difference`].
    pub fn is_equivalent_to(&self, other: &Self) -> bool {
        self.difference(other).is_none()
    }

    fn comparable_parts(&self) -> impl Iterator<Item = (SeenRole, &SeenPart)> {
        let said = self
            .parts()
            .filter(|(_, part)| to_comparable_part(part).is_some());
        said.map(|(role, part)| {
            (
                if role == SeenRole::System {
                    SeenRole::User
                } else {
                    role
                },
                part,
            )
        })
    }
}

/// The content of a part without the details that depend on the API.
#[derive(PartialEq)]
enum ComparablePart<'a> {
    Text(&'a str),
    Call(usize, &'a str, &'a Value),
    Result(Option<usize>, &'a str),
    Image(&'a str, ContentHash),
    Other(&'a str),
}

fn to_comparable_part(part: &SeenPart) -> Option<ComparablePart<'_>> {
    match part {
        SeenPart::Text { text, signed: _ } => Some(ComparablePart::Text(text)),
        SeenPart::Thinking { .. } => None,
        SeenPart::ToolCall {
            number,
            id: _,
            name,
            arguments,
            signed: _,
        } => Some(ComparablePart::Call(*number, name, arguments)),
        SeenPart::ToolResult {
            number,
            id: _,
            text,
            failed: _,
        } => Some(ComparablePart::Result(*number, text)),
        SeenPart::Image { media_type, hash } => Some(ComparablePart::Image(media_type, *hash)),
        SeenPart::Other { kind } => Some(ComparablePart::Other(kind)),
    }
}

fn result_failed(part: &SeenPart) -> Option<bool> {
    match part {
        SeenPart::ToolResult { failed, .. } => *failed,
        SeenPart::Text { .. }
        | SeenPart::Thinking { .. }
        | SeenPart::ToolCall { .. }
        | SeenPart::Image { .. }
        | SeenPart::Other { .. } => None,
    }
}

fn parts_match(
    (role, part): (SeenRole, &SeenPart),
    (other_role, other): (SeenRole, &SeenPart),
) -> bool {
    role == other_role
        && to_comparable_part(part) == to_comparable_part(other)
        && result_failed(part)
            .zip(result_failed(other))
            .is_none_or(|(one, two)| one == two)
}
