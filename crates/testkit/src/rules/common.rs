//! What the rules of all four services share: the finding itself, and ways of looking at a body
//! that never fail.
//!
//! The accessors give "nothing" for a value of the wrong type, so that each rule can speak about
//! one thing only.

use serde_json::Value;

/// What a rule's check gives back.
pub(super) type Verdict = Result<(), Problem>;

/// Why a request is refused, before it takes the shape of the service's error body.
#[derive(Debug)]
pub(super) struct Problem {
    /// The HTTP status.
    pub(super) status: u16,
    /// The message as the service words it.
    pub(super) message: String,
    /// `OpenAI`: the parameter at fault.
    pub(super) param: Option<String>,
    /// `OpenAI`: the machine-readable kind.
    pub(super) code: Option<&'static str>,
    /// Google: the fields at fault, where the body could not be read as the request type.
    pub(super) violations: Vec<Violation>,
}

/// A field that does not fit the request type.
#[derive(Debug)]
pub(super) struct Violation {
    /// The path; empty for the request itself.
    pub(super) field: String,
    /// What is wrong with it.
    pub(super) description: String,
}

impl Problem {
    /// A 400 with this message.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            status: 400,
            message: message.into(),
            param: None,
            code: None,
            violations: Vec::new(),
        }
    }

    /// Names the parameter at fault.
    pub(super) fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// Sets the machine-readable kind.
    pub(super) fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// Sets another status than 400.
    pub(super) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }
}

/// The elements of a list field; empty when the field is missing or no list.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// A text field.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// The field `type`, or nothing as the empty text.
pub(super) fn kind(value: &Value) -> &str {
    text(value, "type").unwrap_or_default()
}

/// A field that is there and not null.
pub(super) fn given<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|field| !field.is_null())
}

/// The first key of an object that is not among the known ones.
pub(super) fn unknown_key<'a>(value: &'a Value, known: &[&str]) -> Option<&'a str> {
    value
        .as_object()?
        .keys()
        .map(String::as_str)
        .find(|key| !known.contains(key))
}

/// Whether a name has `1..=longest` characters, all of them letters, digits, `_` or `-`.
pub(super) fn is_plain_name(name: &str, longest: usize) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=longest).contains(&name.len()) && name.bytes().all(plain)
}

/// Whether a text is standard base64 with its padding.
pub(super) fn is_base64(data: &str) -> bool {
    let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
    let body = &data.as_bytes()[..data.len() - padding];
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !body.is_empty() && padding <= 2 && data.len().is_multiple_of(4) && body.iter().all(plain)
}

/// `'a'`, `'a' and 'b'` (or another word), `'a', 'b'<comma> and 'c'`: the way the services list
/// values.
pub(super) fn quoted_list(values: &[&str], word: &str, before_last: &str) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("'{value}'")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} {word} {two}"),
        [head @ .., last] => format!("{}{before_last} {word} {last}", head.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_needs_its_padding() {
        assert!(is_base64("aGk="));
        assert!(is_base64("aGkh"));
        assert!(!is_base64("aGk"));
        assert!(!is_base64("a Gk"));
        assert!(!is_base64("===="));
        assert!(!is_base64(""));
    }

    #[test]
    fn lists_read_as_the_services_write_them() {
        assert_eq!(quoted_list(&["a", "b"], "and", ","), "'a' and 'b'");
        assert_eq!(
            quoted_list(&["a", "b", "c"], "and", ","),
            "'a', 'b', and 'c'"
        );
        assert_eq!(quoted_list(&["a", "b", "c"], "or", ""), "'a', 'b' or 'c'");
    }
}
