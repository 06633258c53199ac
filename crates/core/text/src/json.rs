//! Escapes JSON so that a terminal can show it safely.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::{invisible, terminal};

/// Escapes invisible characters and terminal control characters in JSON text. The result parses to
/// a value equal to the original.
///
/// In valid JSON, such characters occur only inside strings. JSON itself escapes the C0 controls,
/// but not the C1 controls, direction marks and invisible characters.
///
/// ```
/// assert_eq!(haft_text::escape_json("{\"a\": \"\u{9b}2K\u{202e}\"}"), r#"{"a": "\u009b2K\u202e"}"#);
/// ```
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let hidden = |one: char| {
        !one.is_ascii_whitespace() && (terminal::is_control(one) || invisible::is_invisible(one))
    };
    if !json.contains(hidden) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for one in json.chars() {
        if hidden(one) {
            for unit in one.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(one);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_json_keeps_the_meaning() {
        let text: String = (0..=0x11_0000)
            .filter_map(char::from_u32)
            .filter(|one| terminal::is_control(*one) || invisible::is_invisible(*one))
            .collect();
        let json = serde_json::to_string(&text).unwrap();
        let escaped = escape_json(&json);
        assert!(escaped.is_ascii(), "{escaped}");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
    }

    #[test]
    fn escape_json_keeps_line_breaks() {
        let json = "{\n\t\"a\": \"漢字 é\"\r\n}";
        assert!(matches!(escape_json(json), Cow::Borrowed(same) if same == json));
    }
}
