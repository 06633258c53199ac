//! Parses the forms in which small models write calls: in a code fence, in elements, several in a
//! row, with doubled braces and with Python's triple quotes.
//!
//! Each deviation from JSON is undone only if the text then has exactly one meaning.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::Value;

/// The labels of code fences that may contain calls, including no label.
const FENCE_LABELS: [&str; 7] = ["", "json", "tool_call", "tool_code", "tool", "tools", "xml"];
/// The elements that may contain calls. The template of Qwen2.5 lists the tools in `<tools>`, and
/// small models write their calls in it, too.
const ELEMENTS: [(&str, &str); 2] = [("<tool_call>", "</tool_call>"), ("<tools>", "</tools>")];
/// The quotes around texts of several lines in Python.
const TRIPLE_QUOTES: [&str; 2] = ["\"\"\"", "'''"];

/// Returns the texts of the calls of which a reply consists. Returns `None` if the reply contains
/// anything else; a text that is returned may still be something else than a call.
pub(super) fn split_reply(text: &str) -> Option<Vec<&str>> {
    let text = strip_fence(text.trim())?;
    let mut bodies = Vec::new();
    if !ELEMENTS.iter().any(|(open, _)| text.starts_with(open)) {
        return Some(split_objects(text));
    }
    let mut rest = text;
    while !rest.is_empty() {
        let (body, after) = ELEMENTS.iter().find_map(|(open, close)| {
            let (body, after) = rest.strip_prefix(open)?.split_once(close)?;
            Some((body.trim(), after))
        })?;
        bodies.extend(split_objects(strip_fence(body)?));
        rest = after.trim_start();
    }
    Some(bodies)
}

/// Returns the content of the code fence that surrounds the text. Text without a fence is returned
/// unchanged.
fn strip_fence(text: &str) -> Option<&str> {
    let Some(rest) = text.strip_prefix("```") else {
        return Some(text);
    };
    let (label, body) = rest.strip_suffix("```")?.split_once('\n')?;
    (FENCE_LABELS.contains(&label.trim()) && body.ends_with('\n')).then(|| body.trim())
}

/// Splits objects in a row, which only white space or a comma separates. Any other text is returned
/// as one piece.
fn split_objects(text: &str) -> Vec<&str> {
    let mut objects = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let Some(end) = find_object_end(rest) else {
            return vec![text];
        };
        let (object, after) = rest.split_at(end);
        objects.push(object);
        let after = after.trim_start();
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
        if rest.is_empty() && !after.is_empty() {
            // A comma at the end.
            return vec![text];
        }
    }
    if objects.is_empty() {
        vec![text]
    } else {
        objects
    }
}

/// Returns the offset after the object with which the text begins, or `None` if it begins with
/// something else or the object does not end.
fn find_object_end(text: &str) -> Option<usize> {
    if !text.starts_with('{') {
        return None;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(c) = text.get(at..)?.chars().next() {
        match c {
            '"' | '\'' => {
                at = find_text_end(text, at)?;
                continue;
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        at += c.len_utf8();
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Returns the offset after the quoted text that begins at `at`. A single `'` is not a quote.
fn find_text_end(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    for quotes in TRIPLE_QUOTES {
        if let Some(inside) = rest.strip_prefix(quotes) {
            return Some(at + quotes.len() + inside.find(quotes)? + quotes.len());
        }
    }
    if rest.starts_with('\'') {
        return Some(at + 1);
    }
    let mut escaped = false;
    let end = rest.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    })?;
    Some(at + end.0 + 1)
}

/// Returns the JSON text of an object. Doubled braces and triple quotes are converted to JSON.
/// Returns `None` if the result is not JSON, or could be read in several ways.
pub(super) fn convert_to_json(source: &str) -> Option<Cow<'_, str>> {
    if is_json(source) {
        return Some(Cow::Borrowed(source));
    }
    let quoted = convert_triple_quotes(source)?;
    if is_json(&quoted) {
        return Some(Cow::Owned(quoted));
    }
    convert_doubled_braces(&quoted).map(Cow::Owned)
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Writes texts in triple quotes as JSON strings, without a line break directly after the opening
/// quotes. Returns `None` for a text with a backslash, which could be part of an escape sequence or
/// of the text.
fn convert_triple_quotes(source: &str) -> Option<String> {
    let mut json = String::with_capacity(source.len());
    let mut at = 0;
    while let Some(c) = source.get(at..)?.chars().next() {
        if c != '"' && c != '\'' {
            json.push(c);
            at += c.len_utf8();
            continue;
        }
        let end = find_text_end(source, at)?;
        let whole = source.get(at..end)?;
        let inside = TRIPLE_QUOTES
            .iter()
            .find_map(|quotes| whole.strip_prefix(quotes)?.strip_suffix(quotes));
        match inside {
            Some(inside) if inside.contains('\\') => return None,
            Some(inside) => {
                let inside = inside.strip_prefix('\n').unwrap_or(inside);
                json.push_str(&Value::from(inside).to_string());
            }
            None => json.push_str(whole),
        }
        at = end;
    }
    Some(json)
}

/// Undoes the doubling of braces, as in templates of Python and Jinja: of all braces, of the outer
/// ones, or of the first one.
fn convert_doubled_braces(source: &str) -> Option<String> {
    let inside = source.strip_prefix('{')?;
    if !inside.starts_with('{') {
        return None;
    }
    let readings = [
        Some(undouble_all_braces(source)?),
        inside.strip_suffix('}').map(str::to_owned),
        Some(inside.to_owned()),
    ];
    let mut found: Option<(Value, String)> = None;
    for reading in readings.into_iter().flatten() {
        let Ok(value) = serde_json::from_str::<Value>(&reading) else {
            continue;
        };
        match &found {
            Some((earlier, _)) if *earlier != value => return None,
            Some(_) => {}
            None => found = Some((value, reading)),
        }
    }
    found.map(|(_, reading)| reading)
}

/// Replaces `{{` by `{` and `}}` by `}` outside of strings.
fn undouble_all_braces(source: &str) -> Option<String> {
    let mut json = String::with_capacity(source.len());
    let mut at = 0;
    while let Some(c) = source.get(at..)?.chars().next() {
        let end = match c {
            '"' => find_text_end(source, at)?,
            _ => at + c.len_utf8(),
        };
        json.push_str(source.get(at..end)?);
        at = end;
        if (c == '{' || c == '}') && source.get(at..)?.starts_with(c) {
            at += 1;
        }
    }
    Some(json)
}
