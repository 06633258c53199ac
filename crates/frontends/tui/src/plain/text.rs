//! Converts drawn rows to sentences by replacing symbols with words.

use haft_agent::ApprovalReply;
use haft_text::reveal_controls;
use serde_json::Value;

use crate::approval::{ApprovalChoice, ApprovalDialog, Grant};
use crate::line::{StyledLine, StyledSpan, TextStyle};

/// Returns the words that stand for the symbol at the start of a row, and the rest of the row.
/// Returns `None` if the row does not start with a known symbol.
fn spell_symbol(row: &str) -> Option<(&'static str, &str)> {
    let (sign, rest) = row.split_once(' ')?;
    let text = match sign {
        "✓" => text!("plain-done"),
        "~" => text!("plain-partly-done"),
        "✗" => text!("plain-failed"),
        "?" => text!("plain-asked"),
        "▾" => text!("plain-opened"),
        "▸" => text!("plain-chosen"),
        "•" => "-",
        "│" => text!("plain-quote"),
        _ => return None,
    };
    Some((text, rest))
}

/// Converts a row to plain text. Returns an empty text for a row that only separates other rows.
pub(super) fn row_to_text(row: &StyledLine) -> String {
    // Line numbers are useful only in a visual layout.
    let said = row
        .spans()
        .iter()
        .filter(|span| span.style() != TextStyle::LineNumber);
    let text: String = said.map(StyledSpan::text).collect();
    // Rows with the user's input are omitted, because the user's line is already on the screen.
    if row
        .spans()
        .first()
        .is_some_and(|first| first.style() == TextStyle::Accent && first.text() == "> ")
    {
        return String::new();
    }
    let indent = text.len() - text.trim_start().len();
    let (blanks, rest) = text.split_at(indent);
    // No space is needed after a full-width colon.
    let spelled = |(text, rest): (&str, &str)| {
        format!(
            "{text}{}{rest}",
            if text.ends_with('：') { "" } else { " " }
        )
    };
    let said = spell_symbol(rest).map_or_else(|| rest.to_owned(), spelled);
    let drawn = |c: char| matches!(c, '─' | '█' | '▓' | '▒' | '░' | '▪');
    let said = said
        .strip_prefix("· ")
        .map_or(said.clone(), |rest| format!("▪ {rest}"));
    let said = if said.contains(drawn) {
        remove_bars(&said.replace(drawn, ""))
    } else {
        said
    };
    // A row that contains only spaces is an empty line of code.
    if said.is_empty() && text.chars().any(drawn) {
        return String::new();
    }
    format!("{blanks}{said}").replace(text!("plain-open-key"), text!("plain-open-command"))
}

/// Removes the bar at the start of a row, of which only the brackets would remain in plain text.
fn remove_bars(text: &str) -> String {
    match text.split_once(']') {
        Some((bar, rest)) if bar.trim_start_matches('[').trim().is_empty() => {
            rest.trim_start().to_owned()
        }
        _ => text.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// Sanitizes a text and joins its lines into one.
pub(super) fn sanitize_text(text: &str) -> String {
    StyledLine::new(text, TextStyle::Plain)
        .plain()
        .trim_end()
        .to_owned()
}

/// Returns the question of an approval, and the keys that answer it.
pub(super) fn format_question(asking: &ApprovalDialog) -> String {
    let approval = &asking.approval;
    let reason = asking.reason_text();
    let text = match approval.shown_rules().as_slice() {
        [] => text!("plain-approval", reason),
        rules => {
            let rules = rules.join(&format!(" {} ", text!("plain-rules-and")));
            let session = match asking.choice_for_key('s') {
                Some(ApprovalChoice::Confirm(Grant::AllEdits)) => text!("plain-session-edits"),
                _ => text!("plain-session"),
            };
            text!(
                "plain-approval-always",
                reason,
                session,
                rules,
                file = asking.rules_file()
            )
        }
    };
    sanitize_text(&reveal_controls(&text))
}

/// Returns the sentence that confirms an answer.
pub(super) fn format_confirmation(answer: &ApprovalReply, asking: &ApprovalDialog) -> String {
    match answer {
        ApprovalReply::Once => text!("plain-allowed").to_owned(),
        ApprovalReply::Changed { .. } => text!("plain-allowed-changed").to_owned(),
        ApprovalReply::Always => asking.saved_message(&asking.approval.remember),
        ApprovalReply::AlwaysBy { rules } => asking.saved_message(rules),
        ApprovalReply::Session => text!("plain-session-allowed").to_owned(),
        ApprovalReply::No { reason } if reason.is_empty() => text!("plain-not-allowed").to_owned(),
        ApprovalReply::No { reason } => sanitize_text(&text!("app-not-allowed-because", reason)),
    }
}

/// Returns the items of a TODO list, one per line.
pub(super) fn format_todo_lines(arguments: &Value) -> Vec<String> {
    let items = arguments
        .get("todos")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let text = |item: &Value, name: &str| {
        item.get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    items
        .map(|item| {
            sanitize_text(&text!(
                "plain-todo",
                status = text(item, "status"),
                content = text(item, "content")
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_text_spells_symbols() {
        let row = StyledLine::new("✓ ", TextStyle::Good)
            .with_text("Read", TextStyle::Strong)
            .with_text(" a.rs", TextStyle::Plain);
        assert_eq!(row_to_text(&row), "done: Read a.rs");
        assert_eq!(
            row_to_text(&StyledLine::new("  • item", TextStyle::Plain)),
            "  - item"
        );
        assert_eq!(
            row_to_text(&StyledLine::new("────────", TextStyle::Dim)),
            ""
        );
        assert_eq!(
            row_to_text(&StyledLine::new(
                "[██▒▒  ] 38%  7 of 20 tokens",
                TextStyle::Dim
            )),
            "38%  7 of 20 tokens"
        );
        assert_eq!(
            row_to_text(
                &StyledLine::new("> ", TextStyle::Accent)
                    .with_text("what I typed", TextStyle::Strong)
            ),
            ""
        );
        assert_eq!(
            row_to_text(&StyledLine::new("    code ? ✓", TextStyle::Plain)),
            "    code ? ✓"
        );
    }

    #[test]
    fn todo_list_is_one_line_per_item() {
        let list = serde_json::json!({"todos": [{"content": "Test a_b\u{1b}[2J", "status": "in_progress"}]});
        let said = format_todo_lines(&list);
        assert!(
            said[0].starts_with("todo, in progress: Test a_b") && !said[0].contains('\u{1b}'),
            "{said:?}"
        );
    }
}
