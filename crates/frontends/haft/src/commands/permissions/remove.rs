//! `haft permissions remove`: removes rules from config.toml, and keeps its comments and layout.

use std::ops::Range;
use std::path::Path;

use haft_agent::config;
use haft_types::Decision;
use toml_edit::{Document, DocumentMut, Item, TableLike};

use crate::exit::usage_error;
use crate::{output, wiring};

const DECISIONS: [Decision; 3] = [Decision::Allow, Decision::Ask, Decision::Deny];

/// Removes each rule from the list of `decision`. If `decision` is `None`, removes the rule from
/// the only list that contains it.
pub(super) fn run(file: &Path, decision: Option<Decision>, rules: &[String]) -> anyhow::Result<()> {
    config::edit_file(file, |before| {
        let without = |text: String, rule: &String| remove_rule(file, &text, decision, rule);
        rules.iter().try_fold(before.to_owned(), without)
    })?;
    output::print_text_line(&text!(
        "permissions-removed",
        count = rules.len(),
        file = file.display()
    ))
}

/// Returns the text of the configuration file without the rule.
fn remove_rule(
    file: &Path,
    before: &str,
    decision: Option<Decision>,
    rule: &str,
) -> anyhow::Result<String> {
    wiring::check_config(file, before)?;
    let held: Vec<_> = DECISIONS
        .into_iter()
        .filter(|one| contains_rule(before, *one, rule))
        .collect();
    let wanted: Vec<_> = held
        .iter()
        .copied()
        .filter(|one| decision.is_none_or(|decision| decision == *one))
        .collect();
    let [decision] = wanted[..] else {
        let lists: Vec<_> = held
            .iter()
            .map(|decision| format!("`{decision}`"))
            .collect();
        return Err(usage_error(match (wanted.len(), held.is_empty()) {
            (0, true) => text!("permissions-no-such-rule", rule, file = file.display()),
            (0, false) => text!(
                "permissions-rule-elsewhere",
                rule,
                lists = output::join_names(&lists)
            ),
            _ => text!(
                "permissions-which-rule",
                rule,
                lists = output::join_names(&lists)
            ),
        }));
    };
    let mut text = before.to_owned();
    while let Some(shorter) =
        find_in_list(&text, decision, rule).and_then(|span| remove_item(&text, span))
    {
        text = shorter;
    }
    text = remove_long_form(&text, decision, rule).unwrap_or(text);
    wiring::check_config(file, &text)?;
    Ok(text)
}

fn contains_rule(text: &str, decision: Decision, rule: &str) -> bool {
    find_in_list(text, decision, rule).is_some() || remove_long_form(text, decision, rule).is_some()
}

/// Returns the byte range of the rule in the list of a decision.
fn find_in_list(text: &str, decision: Decision, rule: &str) -> Option<Range<usize>> {
    let document = Document::parse(text).ok()?;
    let section = document.get("permissions")?.as_table_like()?;
    let list = section.get(decision.name())?.as_array()?;
    list.iter().find(|one| one.as_str() == Some(rule))?.span()
}

/// Returns the text without a list item and the item's comma. If the item is alone on its line, the
/// line is removed, too.
fn remove_item(text: &str, item: Range<usize>) -> Option<String> {
    let before = text.get(..item.start)?;
    let after = text.get(item.end..)?;
    let (after, had_comma) = match after.trim_start().strip_prefix(',') {
        Some(rest) => (rest, true),
        None => (after, false),
    };
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let rest_of_line = after.split('\n').next().unwrap_or_default().trim_start();
    if before[line..].trim().is_empty()
        && (rest_of_line.is_empty() || rest_of_line.starts_with('#'))
    {
        let after = after.split_once('\n').map_or("", |(_, after)| after);
        return Some(format!("{}{after}", &before[..line]));
    }
    if had_comma {
        return Some(format!("{before}{}", after.trim_start_matches(' ')));
    }
    let before = before.trim_end_matches(' ');
    Some(format!(
        "{}{after}",
        before.strip_suffix(',').unwrap_or(before)
    ))
}

/// Returns the text without the rule that is written as a table in `permissions.rules`, or `None`
/// if there is no such rule.
fn remove_long_form(text: &str, decision: Decision, rule: &str) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let rules = document
        .get_mut("permissions")?
        .as_table_like_mut()?
        .get_mut("rules")?;
    let matches_rule = |table: &dyn TableLike| {
        let text = |key: &str| table.get(key).and_then(Item::as_str);
        text("rule") == Some(rule)
            && text("decision").unwrap_or(Decision::Allow.name()) == decision.name()
    };
    let count = |rules: &Item| {
        rules.as_array_of_tables().map_or_else(
            || rules.as_array().map_or(0, toml_edit::Array::len),
            toml_edit::ArrayOfTables::len,
        )
    };
    let before = count(rules);
    if let Some(tables) = rules.as_array_of_tables_mut() {
        tables.retain(|table| !matches_rule(table));
    } else {
        rules.as_array_mut()?.retain(|value| {
            !value
                .as_inline_table()
                .is_some_and(|table| matches_rule(table))
        });
    }
    (count(rules) < before).then(|| document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remove(before: &str, decision: Option<Decision>, rule: &str) -> Result<String, String> {
        remove_rule(Path::new("config.toml"), before, decision, rule)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn remove_keeps_comments_and_layout() {
        let before = "# mine\n[permissions]\nallow = [\n    # reading\n    \"execute_command(ls:*)\", # all of it\n    \"read_file\", # too\n    \"Bash(wc:*)\" # last\n]\n\n[retry]\nattempts = 2\n";
        let after = |rule: &str| remove(before, None, rule).unwrap();
        assert_eq!(
            after("read_file"),
            before.replace("    \"read_file\", # too\n", "")
        );
        assert_eq!(
            after("execute_command(ls:*)"),
            before.replace("    \"execute_command(ls:*)\", # all of it\n", "")
        );
        assert_eq!(
            after("Bash(wc:*)"),
            before.replace("    \"Bash(wc:*)\" # last\n", "")
        );
        let line = |items: &str| format!("permissions = {{ deny = [{items}] }} # one line\n");
        let three = line("\"read_file\", \"glob\", \"Bash(wc:*)\"");
        assert_eq!(
            remove(&three, None, "read_file").unwrap(),
            line("\"glob\", \"Bash(wc:*)\"")
        );
        assert_eq!(
            remove(&three, None, "glob").unwrap(),
            line("\"read_file\", \"Bash(wc:*)\"")
        );
        assert_eq!(
            remove(&three, None, "Bash(wc:*)").unwrap(),
            line("\"read_file\", \"glob\"")
        );
        assert_eq!(remove(&line("\"glob\""), None, "glob").unwrap(), line(""));
    }

    #[test]
    fn remove_finds_rules_with_examples() {
        let one = "[[permissions.rules]]\nrule = \"read_file\"\ndecision = \"deny\"\n";
        let both = format!("{one}\n[[permissions.rules]]\nrule = \"glob\"\ndecision = \"ask\"\n");
        assert_eq!(remove(&both, None, "glob").unwrap(), one);
    }

    #[test]
    fn remove_rejects_missing_and_ambiguous_rules() {
        let both = "[permissions]\nallow = [\"glob\"]\ndeny = [\"glob\"]\n";
        assert!(
            remove(both, None, "glob")
                .unwrap_err()
                .contains("`allow`, `deny`")
        );
        assert_eq!(
            remove(both, Some(Decision::Allow), "glob").unwrap(),
            both.replacen("\"glob\"", "", 1)
        );
        assert!(
            remove(both, Some(Decision::Ask), "glob")
                .unwrap_err()
                .contains("`allow`, `deny`")
        );
        assert!(
            remove(both, None, "read_file")
                .unwrap_err()
                .contains("no rule `read_file`")
        );
    }
}
