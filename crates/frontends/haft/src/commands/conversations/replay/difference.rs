//! Finds the first difference between two request bodies or two texts, and words it: the field as a
//! path, and a few lines of both sides.

use serde::Serialize;
use serde_json::Value;

/// The maximum number of lines of each side.
const MAX_LINES: usize = 4;
/// The maximum number of characters of a line.
const MAX_CHARS: usize = 160;
/// The number of equal characters that are shown before the first difference in a long line.
const CONTEXT_CHARS: usize = 40;

/// The first difference between two values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct FieldDifference {
    /// The path of the field, such as `messages[2] (user).content`.
    pub(super) field: String,
    /// The first lines that differ, as recorded. Empty if the field is new.
    pub(super) recorded: Vec<String>,
    /// The first lines that differ, as they are today. Empty if the field is missing.
    pub(super) today: Vec<String>,
}

impl FieldDifference {
    /// Compares two texts. Returns `None` if they are equal.
    pub(super) fn between_texts(field: &str, recorded: &str, today: &str) -> Option<Self> {
        (recorded != today).then(|| {
            let (recorded, today) = first_different_lines(recorded, today);
            Self {
                field: field.to_owned(),
                recorded,
                today,
            }
        })
    }

    /// Returns the lines of both sides, marked with `-` and `+`.
    pub(super) fn to_lines(&self) -> Vec<String> {
        let recorded = self.recorded.iter().map(|line| format!("- {line}"));
        let today = self.today.iter().map(|line| format!("+ {line}"));
        recorded.chain(today).collect()
    }
}

/// Compares two request bodies. Returns `None` if all their bytes are equal.
pub(super) fn compare_bodies(recorded: &[u8], today: &[u8]) -> Option<FieldDifference> {
    if recorded == today {
        return None;
    }
    let parse = |body: &[u8]| serde_json::from_slice::<Value>(body).ok();
    let found = match (parse(recorded), parse(today)) {
        (Some(recorded), Some(today)) => find_difference(&recorded, &today, ""),
        _ => None,
    };
    found.or_else(|| {
        // The values are equal: the encoding differs, such as the order of fields.
        let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
        FieldDifference::between_texts("body", &text(recorded), &text(today))
    })
}

/// Finds the first difference in the order of the recorded value. `path` is the path of both
/// values.
fn find_difference(recorded: &Value, today: &Value, path: &str) -> Option<FieldDifference> {
    match (recorded, today) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                let inner = join_path(path, key);
                match new.get(key) {
                    Some(other) => {
                        if let Some(found) = find_difference(value, other, &inner) {
                            return Some(found);
                        }
                    }
                    None => return Some(describe(&inner, Some(value), None)),
                }
            }
            let added = new.iter().find(|(key, _)| !old.contains_key(*key));
            added.map(|(key, value)| describe(&join_path(path, key), None, Some(value)))
        }
        (Value::Array(old), Value::Array(new)) => {
            for index in 0..old.len().max(new.len()) {
                let one = old.get(index);
                let other = new.get(index);
                let inner = format!("{path}[{index}]{}", label(one.or(other)));
                match (one, other) {
                    (Some(one), Some(other)) => {
                        if let Some(found) = find_difference(one, other, &inner) {
                            return Some(found);
                        }
                    }
                    (one, other) => return Some(describe(&inner, one, other)),
                }
            }
            None
        }
        (Value::String(old), Value::String(new)) => FieldDifference::between_texts(path, old, new),
        (old, new) => (old != new).then(|| describe(path, Some(old), Some(new))),
    }
}

fn join_path(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// Returns the name or the role of an element, in parentheses.
fn label(element: Option<&Value>) -> String {
    let Some(element) = element else {
        return String::new();
    };
    let named = [
        element.get("name"),
        element
            .get("function")
            .and_then(|function| function.get("name")),
        element.get("role"),
        element.get("type"),
    ];
    named
        .into_iter()
        .flatten()
        .find_map(Value::as_str)
        .map_or_else(String::new, |name| format!(" ({name})"))
}

fn describe(path: &str, recorded: Option<&Value>, today: Option<&Value>) -> FieldDifference {
    let text = |value: Option<&Value>| match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    let (recorded, today) = first_different_lines(&text(recorded), &text(today));
    FieldDifference {
        field: path.to_owned(),
        recorded,
        today,
    }
}

/// Returns the lines between the equal lines at the beginning and those at the end, cut to a few.
fn first_different_lines(recorded: &str, today: &str) -> (Vec<String>, Vec<String>) {
    let old: Vec<&str> = recorded.lines().collect();
    let new: Vec<&str> = today.lines().collect();
    let pairs = old.iter().zip(&new);
    let start = pairs.take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - start;
    let pairs = old.iter().rev().zip(new.iter().rev());
    let end = pairs.take(rest).take_while(|(old, new)| old == new).count();
    let old = &old[start..old.len() - end];
    let new = &new[start..new.len() - end];
    if old.is_empty() && new.is_empty() {
        // The texts differ in line ends only.
        let show = |text: &str| vec![cut_line(&format!("{text:?}"), 0)];
        return (show(recorded), show(today));
    }
    let shared = match (old.first(), new.first()) {
        (Some(old), Some(new)) => old
            .chars()
            .zip(new.chars())
            .take_while(|(a, b)| a == b)
            .count(),
        _ => 0,
    };
    (cut_lines(old, shared), cut_lines(new, shared))
}

/// Cuts the first line around character `at`, and the other lines at their end.
fn cut_lines(lines: &[&str], at: usize) -> Vec<String> {
    let mut shown: Vec<String> = lines
        .iter()
        .take(MAX_LINES)
        .enumerate()
        .map(|(index, line)| cut_line(line, if index == 0 { at } else { 0 }))
        .collect();
    if lines.len() > MAX_LINES {
        shown.push("…".to_owned());
    }
    shown
}

fn cut_line(line: &str, at: usize) -> String {
    let count = line.chars().count();
    if count <= MAX_CHARS {
        return line.to_owned();
    }
    let from = at.saturating_sub(CONTEXT_CHARS);
    let shown: String = line.chars().skip(from).take(MAX_CHARS).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if from + MAX_CHARS < count { "…" } else { "" };
    format!("{before}{shown}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(recorded: &str, today: &str) -> Option<(String, Vec<String>)> {
        let found = compare_bodies(recorded.as_bytes(), today.as_bytes())?;
        let lines = found.to_lines();
        Some((found.field, lines))
    }

    #[test]
    fn compare_bodies_names_the_first_field_in_the_order_of_the_record() {
        let recorded = r#"{"model":"m","messages":[{"role":"system","content":"a\nb\nc"}],"tools":[{"name":"x","description":"old"}]}"#;
        let today = r#"{"model":"m","messages":[{"role":"system","content":"a\nB\nc"}],"tools":[{"name":"x","description":"new"}]}"#;
        assert_eq!(
            compare(recorded, today),
            Some((
                "messages[0] (system).content".to_owned(),
                vec!["- b".to_owned(), "+ B".to_owned()]
            ))
        );
        assert_eq!(compare(recorded, recorded), None);
    }

    #[test]
    fn compare_bodies_reports_missing_and_added_elements() {
        let one = r#"{"tools":[{"name":"x"}]}"#;
        let two = r#"{"tools":[{"name":"x"},{"name":"y"}],"stream":true}"#;
        assert_eq!(
            compare(one, two),
            Some((
                "tools[1] (y)".to_owned(),
                vec![r#"+ {"name":"y"}"#.to_owned()]
            ))
        );
        assert_eq!(
            compare(two, one),
            Some((
                "tools[1] (y)".to_owned(),
                vec![r#"- {"name":"y"}"#.to_owned()]
            ))
        );
    }

    #[test]
    fn compare_bodies_detects_another_order_of_fields() {
        let found = compare(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#);
        assert_eq!(found.map(|(field, _)| field), Some("body".to_owned()));
    }

    #[test]
    fn long_lines_are_cut_around_the_difference() {
        let recorded = format!("{}old{}", "x".repeat(500), "y".repeat(500));
        let today = format!("{}new{}", "x".repeat(500), "y".repeat(500));
        let found = FieldDifference::between_texts("text", &recorded, &today);
        let line = found
            .map(|found| found.recorded.concat())
            .unwrap_or_default();
        assert_eq!(line.chars().count(), MAX_CHARS + 2);
        assert!(line.contains("xold"), "{line}");
    }
}
