//! Names and ids that no server rejects.
//!
//! Models choose both, and a conversation may move from one provider to another: one malformed name
//! would make every later request fail. The mapping is fixed, so that a call and its result stay
//! together and the bytes don't change.

use std::borrow::Cow;

use haft_types::ContentHash;

/// The maximum length of a tool name that every API accepts.
const MAX_TOOL_NAME_LEN: usize = 64;

/// Returns a tool name of at most `MAX_TOOL_NAME_LEN` characters, in which every character except
/// letters, digits, `_` and `-` is replaced by `_`.
pub(crate) fn sanitize_tool_name(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        return "unknown_tool".into();
    }
    if name.len() <= MAX_TOOL_NAME_LEN && name.chars().all(is_plain_char) {
        return name.into();
    }
    name.chars()
        .map(|c| if is_plain_char(c) { c } else { '_' })
        .take(MAX_TOOL_NAME_LEN)
        .collect()
}

/// Returns `id` if it has 1 to `max_len` characters, all of them letters, digits, `_` or `-`; else
/// returns a hash of `id`.
pub(crate) fn sanitize_id(id: &str, max_len: usize) -> Cow<'_, str> {
    if !id.is_empty() && id.len() <= max_len && id.chars().all(is_plain_char) {
        id.into()
    } else {
        hash_id(id)
    }
}

/// Returns `id` if it has 1 to `max_len` bytes, or else a hash of `id`. Used for APIs that limit
/// only the length of a call id.
pub(crate) fn limit_id_length(id: &str, max_len: usize) -> Cow<'_, str> {
    if !id.is_empty() && id.len() <= max_len {
        id.into()
    } else {
        hash_id(id)
    }
}

/// Returns a replacement for an id that an API would reject. Different ids get different
/// replacements, because the replacement is a hash of `id`.
fn hash_id(id: &str) -> Cow<'static, str> {
    format!("id_{}", ContentHash::from_content(id.as_bytes())).into()
}

fn is_plain_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_name_and_ids_keep_accepted_values() {
        assert_eq!(sanitize_tool_name("read_file"), "read_file");
        assert_eq!(sanitize_id("toolu_01-A", 64), "toolu_01-A");
        assert_eq!(
            limit_id_length("functions.read_file:0", 40),
            "functions.read_file:0"
        );
    }

    #[test]
    fn tool_name_and_ids_replace_rejected_values() {
        assert_eq!(
            sanitize_tool_name("functions.read file"),
            "functions_read_file"
        );
        assert_eq!(sanitize_tool_name(""), "unknown_tool");
        assert_eq!(sanitize_tool_name(&"世".repeat(99)).len(), 64);
        let one = sanitize_id("a.b", 64);
        let two = sanitize_id("a:b", 64);
        assert_ne!(one, two);
        assert!(one.chars().all(is_plain_char) && one.len() <= 40, "{one}");
        assert_eq!(sanitize_id("a.b", 64), one);
        assert!(limit_id_length(&"x".repeat(41), 40).len() <= 40);
    }
}
