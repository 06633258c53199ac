//! Converts text and key names to the bytes that a keyboard sends.

use crate::failure::ToolFailure;

const ENTER: u8 = b'\r';

/// Returns the bytes of a text followed by keys. If `keys` is `None`, Enter is added after the
/// text.
pub(super) fn encode_input(
    input: Option<&str>,
    keys: Option<&[String]>,
) -> Result<Vec<u8>, ToolFailure> {
    let mut bytes = Vec::new();
    if let Some(input) = input {
        // A keyboard sends a carriage return at the end of a line.
        bytes.extend(input.replace("\r\n", "\r").replace('\n', "\r").bytes());
        if keys.is_none() && bytes.last() != Some(&ENTER) {
            bytes.push(ENTER);
        }
    }
    for key in keys.unwrap_or_default() {
        bytes.extend(encode_key(key).ok_or_else(|| unknown_key_failure(key))?);
    }
    Ok(bytes)
}

fn unknown_key_failure(key: &str) -> ToolFailure {
    let message = format!(
        "`{key}` is not a key; use enter, tab, esc, space, backspace, delete, up, down, left, right, home, end, page-up, page-down, f1 to f12, ctrl-a to ctrl-z, or a single character"
    );
    ToolFailure::new("invalid_arguments", message)
}

/// Returns the bytes that a key sends, or `None` if there is no such key.
fn encode_key(key: &str) -> Option<Vec<u8>> {
    let name = key.to_ascii_lowercase().replace(['_', '+', ' '], "-");
    let sequence: &[u8] = match name.as_str() {
        "enter" | "return" => &[ENTER],
        "tab" => b"\t",
        "esc" | "escape" => b"\x1b",
        "space" => b" ",
        "backspace" => b"\x7f",
        "delete" | "del" => b"\x1b[3~",
        "up" => b"\x1b[A",
        "down" => b"\x1b[B",
        "right" => b"\x1b[C",
        "left" => b"\x1b[D",
        "home" => b"\x1b[H",
        "end" => b"\x1b[F",
        "page-up" | "pageup" => b"\x1b[5~",
        "page-down" | "pagedown" => b"\x1b[6~",
        "f1" => b"\x1bOP",
        "f2" => b"\x1bOQ",
        "f3" => b"\x1bOR",
        "f4" => b"\x1bOS",
        "f5" => b"\x1b[15~",
        "f6" => b"\x1b[17~",
        "f7" => b"\x1b[18~",
        "f8" => b"\x1b[19~",
        "f9" => b"\x1b[20~",
        "f10" => b"\x1b[21~",
        "f11" => b"\x1b[23~",
        "f12" => b"\x1b[24~",
        "ctrl-space" => b"\0",
        "ctrl-\\" => b"\x1c",
        _ => return encode_control_key(&name).or_else(|| encode_character(key)),
    };
    Some(sequence.to_vec())
}

/// Encodes `ctrl-c` and similar keys. Returns `None` for other keys.
fn encode_control_key(name: &str) -> Option<Vec<u8>> {
    let key = name
        .strip_prefix("ctrl-")
        .or_else(|| name.strip_prefix("c-"))?;
    match key.as_bytes() {
        [byte @ b'a'..=b'z'] => Some(vec![byte - b'a' + 1]),
        _ => None,
    }
}

/// Encodes a single character. Returns `None` for other texts and control characters.
fn encode_character(key: &str) -> Option<Vec<u8>> {
    let mut characters = key.chars();
    match (characters.next(), characters.next()) {
        (Some(only), None) if !only.is_control() => Some(key.as_bytes().to_vec()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed_bytes(input: Option<&str>, keys: Option<&[&str]>) -> Vec<u8> {
        let keys: Option<Vec<String>> =
            keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect());
        encode_input(input, keys.as_deref()).unwrap()
    }

    #[test]
    fn typed_ends_text_without_keys_with_enter() {
        assert_eq!(typed_bytes(Some("ls"), None), b"ls\r");
        assert_eq!(typed_bytes(Some("ls\n"), None), b"ls\r", "and only once");
        assert_eq!(typed_bytes(Some("a\nb\r\n"), None), b"a\rb\r");
        assert_eq!(typed_bytes(Some(""), None), b"\r", "an empty one is Enter");
        assert_eq!(typed_bytes(None, None), b"", "nothing is nothing");
    }

    #[test]
    fn typed_adds_no_enter_to_text_with_keys() {
        assert_eq!(typed_bytes(Some("y"), Some(&[])), b"y");
        assert_eq!(typed_bytes(Some("fo"), Some(&["tab"])), b"fo\t");
        assert_eq!(
            typed_bytes(None, Some(&["ctrl-c", "Ctrl+D", "UP", "q", ":", "page_up"])),
            b"\x03\x04\x1b[Aq:\x1b[5~"
        );
    }

    #[test]
    fn typed_names_an_unknown_key() {
        for wrong in ["ctrl-", "ctrl-1", "super-x", "", "\u{1b}", "ab"] {
            let error = encode_input(None, Some(&[wrong.to_owned()])).unwrap_err();
            assert!(format!("{error:?}").contains("is not a key"), "{wrong}");
        }
    }
}
