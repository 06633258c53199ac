//! `haft permissions add`: writes rules into config.toml, and keeps its comments and order.

use std::path::Path;

use haft_agent::config;
use haft_agent::{HostEnvironment, Places};
use haft_permission::PermissionRule;
use haft_types::Decision;
use toml_edit::{Array, DocumentMut, Item, Table, Value};

use crate::commands::config::file as config_file;
use crate::commands::tools::build_full_registry;
use crate::exit::usage_error;
use crate::{output, wiring};

pub(super) fn run(places: &Places, decision: Decision, rules: &[String]) -> anyhow::Result<()> {
    let added = add_rules(places, decision, rules)?;
    let file = places.config_file();
    let file = file.display();
    output::print_text_line(&match added {
        0 => text!("permissions-already-there", file),
        count => text!("permissions-added", count, decision, file),
    })
}

/// Adds rules to the user's config.toml, and returns the number of new rules.
pub(crate) fn add_rules(
    places: &Places,
    decision: Decision,
    rules: &[String],
) -> anyhow::Result<usize> {
    let file = places.config_file();
    let mut added = 0;
    config::edit_file(&file, |before| {
        let after;
        (after, added) = insert_rules(&places.environment, &file, before, decision, rules)?;
        anyhow::Ok(after)
    })?;
    Ok(added)
}

/// Returns the text of the file with the rules added, and the number of new rules. Everything else
/// stays unchanged.
fn insert_rules(
    environment: &HostEnvironment,
    file: &Path,
    before: &str,
    decision: Decision,
    rules: &[String],
) -> anyhow::Result<(String, usize)> {
    let mut document = config_file::parse_valid_config(file, before)?;
    rules
        .iter()
        .try_for_each(|rule| check_rule(environment, rule))?;
    let list = get_or_insert_list(&mut document, decision).ok_or_else(|| {
        usage_error(text!(
            "permissions-not-a-list",
            decision,
            file = file.display()
        ))
    })?;
    let mut added = 0;
    for rule in rules {
        if !list.iter().any(|known| known.as_str() == Some(rule)) {
            push_rule(list, rule);
            added += 1;
        }
    }
    let after = document.to_string();
    wiring::check_config(file, &after)?;
    Ok((after, added))
}

/// Returns an error if `rule` is not a valid permission rule or names an unknown tool.
pub(crate) fn check_rule(environment: &HostEnvironment, rule: &str) -> anyhow::Result<()> {
    match PermissionRule::parse(rule, environment.home().as_deref()) {
        Ok(parsed) => check_tool(environment, parsed.tool()),
        Err(error) => {
            // A wrong tool name explains better why the pattern does not fit it.
            check_tool(environment, rule.split('(').next().unwrap_or(rule).trim())?;
            Err(usage_error(error.to_string()))
        }
    }
}

/// Returns an error if the tool does not exist, because a rule for it would never match.
fn check_tool(environment: &HostEnvironment, name: &str) -> anyhow::Result<()> {
    if name == "*" || name.starts_with("mcp__") {
        return Ok(());
    }
    let registry = build_full_registry(environment);
    if registry.resolve(name).is_some() {
        return Ok(());
    }
    let names = registry.iter().map(|tool| tool.spec().name.as_str());
    let near = haft_model::nearest_name(name, names)
        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Err(usage_error(format!(
        "there is no tool `{name}`{near} (`haft tools list` shows them)"
    )))
}

/// Returns the list of rules with this decision. A missing list is created.
fn get_or_insert_list(document: &mut DocumentMut, decision: Decision) -> Option<&mut Array> {
    let section = document
        .entry("permissions")
        .or_insert_with(|| Item::Table(Table::new()));
    let section = section.as_table_like_mut()?;
    let list = section
        .entry(decision.name())
        .or_insert_with(|| Item::Value(Value::Array(Array::new())));
    list.as_array_mut()
}

/// Adds a rule in the layout of the list: each rule on a line of its own, or all rules on one line.
fn push_rule(list: &mut Array, rule: &str) {
    let lead = list
        .iter()
        .last()
        .and_then(|last| last.decor().prefix()?.as_str().map(str::to_owned));
    let Some(lead) = lead.filter(|lead| lead.contains('\n')) else {
        return list.push(rule);
    };
    let indent = lead.rsplit('\n').next().unwrap_or_default();
    // Text after the last rule, such as a comment on that rule, stays behind it.
    let behind = list.trailing().as_str().unwrap_or_default().to_owned();
    let (comment, end) = behind
        .rsplit_once('\n')
        .map_or(("", ""), |(comment, end)| (comment, end));
    list.push_formatted(Value::from(rule).decorated(format!("{comment}\n{indent}"), ""));
    list.set_trailing(format!("\n{end}"));
    list.set_trailing_comma(true);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(before: &str, decision: Decision, rules: &[&str]) -> Result<String, String> {
        let rules: Vec<_> = rules.iter().map(|rule| (*rule).to_owned()).collect();
        let environment = HostEnvironment::default();
        let file = Path::new("config.toml");
        let added = insert_rules(&environment, file, before, decision, &rules);
        added
            .map(|(text, _)| text)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn add_keeps_comments_and_order() {
        let before = "# mine\nmodel = \"a/b\" # for now\n\n[permissions]\nmode = \"ask\"\nallow = [\n    # reading\n    \"execute_command(ls:*)\", # all of it\n]\n\n[retry]\nattempts = 2\n";
        let after = add(before, Decision::Allow, &["execute_command(git status:*)"]).unwrap();
        let expected = before.replace(
            "# all of it\n]",
            "# all of it\n    \"execute_command(git status:*)\",\n]",
        );
        assert_eq!(after, expected);
        let after = add(before, Decision::Deny, &["execute_command(rm:*)"]).unwrap();
        assert!(
            after.contains("]\ndeny = [\"execute_command(rm:*)\"]\n\n[retry]"),
            "{after}"
        );
    }

    #[test]
    fn add_creates_the_section_and_skips_duplicates() {
        let once = add("", Decision::Allow, &["execute_command(ls)", "read_file"]).unwrap();
        assert_eq!(
            once,
            "[permissions]\nallow = [\"execute_command(ls)\", \"read_file\"]\n"
        );
        assert_eq!(add(&once, Decision::Allow, &["read_file"]).unwrap(), once);
    }

    #[test]
    fn add_rejects_invalid_rules() {
        assert!(
            add("", Decision::Allow, &["execute_comand(ls)"])
                .unwrap_err()
                .contains("did you mean `execute_command`?")
        );
        for known in [
            "Bash(ls:*)",
            "mcp__github__list",
            "web_crawl",
            "WebFetch(domain:a.example)",
            "use_skill",
            "run_named_subagents",
            "Edit(src/**)",
        ] {
            assert!(add("", Decision::Allow, &[known]).is_ok(), "{known}");
        }
        for unknown in ["nothing", "frobnicate(x)", "bash2"] {
            assert!(
                add("", Decision::Allow, &[unknown])
                    .unwrap_err()
                    .contains("there is no tool"),
                "{unknown}"
            );
        }
        assert!(
            add("", Decision::Allow, &["execute_command(ls; rm)"])
                .unwrap_err()
                .contains("does not name the words of one command")
        );
        assert!(add("permissions = 3\n", Decision::Allow, &["read_file"]).is_err());
    }
}
