//! Names and ids that a server cannot refuse.
//!
//! Both come from models, and a conversation may move from one provider to another: one odd name
//! would make every later request a bad one. The mapping is fixed, so a call and its result stay
//! together and bytes stay the same.

use std::borrow::Cow;

use haft_types::ContentHash;

/// The longest name of a tool that every API takes.
const LONGEST_NAME: usize = 64;

/// A called tool's name in letters, digits, `_` and `-`. What a model made up beyond that becomes
/// `_`.
pub(crate) fn tool_name(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        return "unknown_tool".into();
    }
    if name.len() <= LONGEST_NAME && name.chars().all(is_plain) {
        return name.into();
    }
    name.chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .take(LONGEST_NAME)
        .collect()
}

/// A call's id for an API that takes letters, digits, `_` and `-` only.
pub(crate) fn plain_id(id: &str, longest: usize) -> Cow<'_, str> {
    if !id.is_empty() && id.len() <= longest && id.chars().all(is_plain) {
        id.into()
    } else {
        stand_in(id)
    }
}

/// A call's id for an API that only limits its length.
pub(crate) fn short_id(id: &str, longest: usize) -> Cow<'_, str> {
    if !id.is_empty() && id.len() <= longest {
        id.into()
    } else {
        stand_in(id)
    }
}

/// Different ids get different stand-ins.
fn stand_in(id: &str) -> Cow<'static, str> {
    format!("id_{}", ContentHash::of(id.as_bytes())).into()
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_stay() {
        assert_eq!(tool_name("read_file"), "read_file");
        assert_eq!(plain_id("toolu_01-A", 64), "toolu_01-A");
        assert_eq!(
            short_id("functions.read_file:0", 40),
            "functions.read_file:0"
        );
    }

    #[test]
    fn odd_ones_become_ones_that_pass() {
        assert_eq!(tool_name("functions.read file"), "functions_read_file");
        assert_eq!(tool_name(""), "unknown_tool");
        assert_eq!(tool_name(&"世".repeat(99)).len(), 64);
        let one = plain_id("a.b", 64);
        let two = plain_id("a:b", 64);
        assert_ne!(one, two);
        assert!(one.chars().all(is_plain) && one.len() <= 40, "{one}");
        assert_eq!(plain_id("a.b", 64), one);
        assert!(short_id(&"x".repeat(41), 40).len() <= 40);
    }
}
