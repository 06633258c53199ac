//! Helpers shared by the rules of all four services: the description of a problem, and accessors
//! that never fail.
//!
//! The accessors return nothing for a value of the wrong type, so that each rule checks exactly one
//! thing.

use serde_json::Value;

/// The result of checking a rule.
pub(super) type Verdict = Result<(), Problem>;

/// The reason why a request is rejected. It is later encoded in the form in which the service
/// reports errors.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) status: u16,
    /// The error message, in the words of the service.
    pub(super) message: String,
    /// The name of the invalid parameter; only for the `OpenAI` APIs.
    pub(super) param: Option<String>,
    /// The machine-readable error code; only for the `OpenAI` APIs.
    pub(super) code: Option<&'static str>,
    /// The fields that don't fit the request type; only for Gemini.
    pub(super) violations: Vec<Violation>,
}

/// A field that doesn't fit the type that the request must have.
#[derive(Debug)]
pub(super) struct Violation {
    /// The path of the field; empty for the whole request.
    pub(super) field: String,
    pub(super) description: String,
}

impl Problem {
    /// Creates a problem with the status 400.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            status: 400,
            message: message.into(),
            param: None,
            code: None,
            violations: Vec::new(),
        }
    }

    /// Sets the name of the invalid parameter.
    pub(super) fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// Sets the machine-readable error code.
    pub(super) fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// Sets a status other than 400.
    pub(super) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }
}

/// Returns the array at `key`. An absent field and a field of another type count as an empty array.
pub(super) fn array_field<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns the string at `key`; `None` if there is none.
pub(super) fn string_field<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// Returns the string at `type`. An absent string counts as empty.
pub(super) fn type_field(value: &Value) -> &str {
    string_field(value, "type").unwrap_or_default()
}

/// Returns the field at `key` unless it is null.
pub(super) fn non_null_field<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|field| !field.is_null())
}

/// Returns the first key of an object that is not in `known`.
pub(super) fn find_unknown_key<'a>(value: &'a Value, known: &[&str]) -> Option<&'a str> {
    value
        .as_object()?
        .keys()
        .map(String::as_str)
        .find(|key| !known.contains(key))
}

/// True if a name has 1 to `max_len` characters, all of them ASCII letters, digits, `_` or `-`.
pub(super) fn is_plain_name(name: &str, max_len: usize) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=max_len).contains(&name.len()) && name.bytes().all(plain)
}

/// True if a text is standard base64 with padding. False for an empty text.
pub(super) fn is_base64(data: &str) -> bool {
    let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
    let body = &data.as_bytes()[..data.len() - padding];
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !body.is_empty() && padding <= 2 && data.len().is_multiple_of(4) && body.iter().all(plain)
}

/// Formats a list of values as the services do: `'a'`, `'a' and 'b'` or `'a', 'b'<before_last> and
/// 'c'`, where `word` replaces `and`.
pub(super) fn format_quoted_list(values: &[&str], word: &str, before_last: &str) -> String {
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
        assert_eq!(format_quoted_list(&["a", "b"], "and", ","), "'a' and 'b'");
        assert_eq!(
            format_quoted_list(&["a", "b", "c"], "and", ","),
            "'a', 'b', and 'c'"
        );
        assert_eq!(
            format_quoted_list(&["a", "b", "c"], "or", ""),
            "'a', 'b' or 'c'"
        );
    }
}
