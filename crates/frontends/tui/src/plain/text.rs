//! Rows as sentences: a symbol becomes a word.

use haft_agent::ApprovalReply;
use haft_text::reveal;
use serde_json::Value;

use crate::approval::ApprovalDialog;
use crate::line::{StyledLine, TextStyle};

/// The symbols that start a row, and the text that replaces each.
const SIGNS: &[(&str, &str)] = &[
    ("✓ ", "done: "),
    ("~ ", "partly done: "),
    ("✗ ", "failed: "),
    ("? ", "approval: "),
    ("▾ ", "all of: "),
    ("▸ ", "chosen: "),
    ("• ", "- "),
    ("│ ", "quote: "),
];

/// A row as text; empty where it only separates others.
pub(super) fn of(row: &StyledLine) -> String {
    let text = row.plain();
    // What the user typed stands there already.
    if row.spans().first().is_some_and(|first| first.style() == TextStyle::Accent && first.text() == "> ") {
        return String::new();
    }
    let indent = text.len() - text.trim_start().len();
    let (blanks, rest) = text.split_at(indent);
    let said = SIGNS.iter().find_map(|(sign, word)| Some(format!("{word}{}", rest.strip_prefix(sign)?)));
    let said = said.unwrap_or_else(|| rest.to_owned());
    let drawn = |c: char| matches!(c, '─' | '█' | '▓' | '▒' | '░' | '▪');
    let said = if said.contains(drawn) { without_bars(&said.replace(drawn, "")) } else { said };
    // A row of nothing but blanks is one of code.
    if said.is_empty() && text.chars().any(drawn) {
        return String::new();
    }
    format!("{blanks}{said}").replace("Ctrl-O shows", "/open shows")
}

/// A bar without its drawing is two brackets.
fn without_bars(text: &str) -> String {
    match text.split_once(']') {
        Some((bar, rest)) if bar.trim_start_matches('[').trim().is_empty() => rest.trim_start().to_owned(),
        _ => text.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// One line, whatever it is.
pub(super) fn clean(text: &str) -> String {
    StyledLine::of(text, TextStyle::Plain).plain().trim_end().to_owned()
}

/// The question and the keys that answer it.
pub(super) fn question(asking: &ApprovalDialog) -> String {
    let approval = &asking.approval;
    let always = match approval.remember.as_slice() {
        [] => String::new(),
        rules => format!("a for always, which allows {}, ", rules.join(" and ")),
    };
    clean(&reveal(&format!(
        "approval: {} may run? {}; answer y for this once, {always}n for no, w for no with words, or e to change it first",
        approval.tool, approval.reason
    )))
}

/// What an answer was taken for.
pub(super) fn answered(answer: &ApprovalReply) -> &'static str {
    match answer {
        ApprovalReply::Once => "allowed",
        ApprovalReply::Changed { .. } => "allowed as changed",
        ApprovalReply::Always => "always allowed",
        ApprovalReply::No { .. } => "not allowed",
    }
}

/// The TODO list, a line for each of it.
pub(super) fn todo(arguments: &Value) -> Vec<String> {
    let items = arguments.get("todos").and_then(Value::as_array).into_iter().flatten();
    let text = |item: &Value, name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default().replace('_', " ");
    items.map(|item| clean(&format!("todo, {}: {}", text(item, "status"), text(item, "content")))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_words() {
        let row =
            StyledLine::of("✓ ", TextStyle::Good).and("read_file", TextStyle::Strong).and(" a.rs", TextStyle::Plain);
        assert_eq!(of(&row), "done: read_file a.rs");
        assert_eq!(of(&StyledLine::of("  • item", TextStyle::Plain)), "  - item");
        assert_eq!(of(&StyledLine::of("────────", TextStyle::Dim)), "");
        assert_eq!(of(&StyledLine::of("[██▒▒  ] 38%  7 of 20 tokens", TextStyle::Dim)), "38%  7 of 20 tokens");
        assert_eq!(of(&StyledLine::of("> ", TextStyle::Accent).and("what I typed", TextStyle::Strong)), "");
        assert_eq!(of(&StyledLine::of("    code ? ✓", TextStyle::Plain)), "    code ? ✓");
    }

    #[test]
    fn a_list_is_read_out() {
        let list = serde_json::json!({"todos": [{"content": "Test\u{1b}[2J", "status": "in_progress"}]});
        let said = todo(&list);
        assert!(said[0].starts_with("todo, in progress: Test") && !said[0].contains('\u{1b}'), "{said:?}");
    }
}
