//! Finds every error in a configuration file, not only the first one.
//!
//! The parser continues after a syntax error. A value that does not fit its type is reported and
//! removed from the table, and the rest is parsed again, until everything that is left fits.

use std::path::Path;

use haft_permission::{PermissionRules, PermissionsConfig, RuleConfig};
use serde::Deserialize;
use toml::de::{DeArray, DeTable, DeValue};
use toml::{Deserializer, Spanned, Table};

use super::section::{self, Section};
use super::{Config, layers, problem};
use crate::error::ConfigError;

/// The maximum number of errors of one kind that are reported per file.
const MAX_PROBLEMS: usize = 100;

/// The keys that lead to a value. An item of an array is named by its index.
type KeyPath = Vec<String>;

/// The byte offset of a problem, if known, and its description.
type Problem = (Option<usize>, String);

/// Parses a file as a table, or returns all its errors in the order of the text.
pub(super) fn check_file(
    path: &Path,
    text: &str,
    sections: &[Section],
) -> Result<Table, ConfigError> {
    let (mut table, syntax) = DeTable::parse_recoverable(text);
    let mut syntax: Vec<Problem> = syntax.iter().map(locate_problem).collect();
    // Further syntax errors on a line mostly result from its first one.
    syntax.dedup_by_key(|(offset, _)| line_of_offset(text, *offset));
    let mut found = section::remove_unknown_keys(&mut table, sections);
    for section in sections {
        found.extend(remove_wrong_values(&mut table, |table| {
            section.check_table(table)
        }));
    }
    found.extend(remove_wrong_values(&mut table, check_core_sections));
    found.extend(find_wrong_rules(&table));
    found.extend(find_wrong_shares(&table));
    if !syntax.is_empty() {
        // Lines with syntax errors contain values made up by the parser, and a cut table may lack
        // fields.
        let lines: Vec<_> = syntax
            .iter()
            .map(|(offset, _)| line_of_offset(text, *offset))
            .collect();
        found.retain(|(offset, problem)| {
            !problem.starts_with("missing field") && !lines.contains(&line_of_offset(text, *offset))
        });
    }
    found.extend(syntax);
    found.sort();
    found.dedup();
    found.dedup_by_key(|(offset, _)| offset.map_or((usize::MAX, 0), |offset| (offset, 1)));
    let mut errors: Vec<_> = found
        .into_iter()
        .map(|(offset, what)| problem::error_at(path, text, offset, what))
        .collect();
    match errors.len() {
        0 => Table::deserialize(Deserializer::from(table))
            .map_err(|error| problem::error_in_file(path, text, &error)),
        1 => Err(errors.remove(0)),
        _ => Err(ConfigError::Several(errors)),
    }
}

/// Parses the table repeatedly, each time without the value that failed before. Returns the
/// problems of all removed values.
fn remove_wrong_values<'i>(
    table: &mut Spanned<DeTable<'i>>,
    read: impl Fn(Spanned<DeTable<'i>>) -> Result<(), toml::de::Error>,
) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut removed: Vec<KeyPath> = Vec::new();
    while let Err(error) = read(table.clone()) {
        let problem = locate_problem(&error);
        let path = problem
            .0
            .and_then(|offset| remove_value_at(table.get_mut(), offset));
        // A field whose wrong value was removed is not missing in the file.
        let is_result_of_removal = path.as_ref().is_some_and(|path| {
            let missing = |removed: &KeyPath| {
                let [inside @ .., field] = removed.as_slice() else {
                    return false;
                };
                inside == path && problem.1.starts_with(&format!("missing field `{field}`"))
            };
            removed.iter().any(missing)
        });
        if !is_result_of_removal {
            found.push(problem);
        }
        match path {
            Some(path) if found.len() < MAX_PROBLEMS => {
                // The next item of an array may have this path now.
                removed.retain(|before| !before.starts_with(&path));
                removed.push(path);
            }
            Some(_) | None => break,
        }
    }
    found
}

fn locate_problem(error: &toml::de::Error) -> Problem {
    (
        error.span().map(|span| span.start),
        problem::describe_with_suggestion(error.message()),
    )
}

fn line_of_offset(text: &str, offset: Option<usize>) -> usize {
    offset.map_or(0, |offset| {
        text.bytes()
            .take(offset)
            .filter(|byte| *byte == b'\n')
            .count()
    })
}

/// Checks the sections of the core. Providers and models in the table are first completed with
/// their built-in values.
fn check_core_sections(table: Spanned<DeTable<'_>>) -> Result<(), toml::de::Error> {
    let written = Table::deserialize(Deserializer::from(table.clone()))?;
    // The built-in values have no positions. Printing and parsing them makes a table that can be
    // merged with the file's.
    let defaults = toml::to_string(&layers::built_in_values_for(&written)).unwrap_or_default();
    let mut merged = table;
    if let Ok(below) = DeTable::parse(&defaults) {
        add_missing_values(merged.get_mut(), below.into_inner());
    }
    Config::deserialize(Deserializer::from(merged)).map(drop)
}

/// Copies the values that `table` lacks from `below`.
fn add_missing_values<'i>(table: &mut DeTable<'i>, below: DeTable<'i>) {
    for (key, value) in below {
        match (table.get_mut(key.get_ref().as_ref()), value.into_inner()) {
            (Some(own), DeValue::Table(below)) => {
                if let DeValue::Table(own) = own.get_mut() {
                    add_missing_values(own, below);
                }
            }
            (Some(_), _) => {}
            (None, value) => {
                table.insert(
                    Spanned::new(0..0, key.into_inner()),
                    Spanned::new(0..0, value),
                );
            }
        }
    }
}

/// Removes the innermost value whose key or text begins at this offset, and returns its keys.
/// Returns `None` if no value begins there.
fn remove_value_at(table: &mut DeTable<'_>, offset: usize) -> Option<KeyPath> {
    for (key, value) in table.iter_mut() {
        if let Some(path) = remove_nested_value(value.get_mut(), offset) {
            return Some(prepend(key.get_ref().to_string(), path));
        }
    }
    let is_there = |(key, value): &(&Spanned<_>, &Spanned<_>)| {
        spans_offset(key, offset) || spans_offset(value, offset)
    };
    let key = table
        .iter()
        .find(is_there)
        .map(|(key, _)| key.get_ref().to_string())?;
    table.remove(key.as_str()).map(|_| vec![key])
}

fn remove_nested_value(value: &mut DeValue<'_>, offset: usize) -> Option<KeyPath> {
    match value {
        DeValue::Table(inner) => remove_value_at(inner, offset),
        DeValue::Array(items) => remove_item(items, offset),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => None,
    }
}

fn remove_item(items: &mut DeArray<'_>, offset: usize) -> Option<KeyPath> {
    for (index, item) in items.iter_mut().enumerate() {
        if let Some(path) = remove_nested_value(item.get_mut(), offset) {
            return Some(prepend(index.to_string(), path));
        }
    }
    let index = items.iter().position(|item| spans_offset(item, offset))?;
    *items = std::mem::replace(items, DeArray::new())
        .into_iter()
        .filter(|item| !spans_offset(item, offset))
        .collect();
    Some(vec![index.to_string()])
}

fn prepend(key: String, path: KeyPath) -> KeyPath {
    std::iter::once(key).chain(path).collect()
}

fn spans_offset<T>(item: &Spanned<T>, offset: usize) -> bool {
    item.span().contains(&offset)
}

/// Finds permission rules that cannot be parsed or that contradict their examples.
fn find_wrong_rules(table: &Spanned<DeTable<'_>>) -> Vec<Problem> {
    let Some(permissions) = table
        .get_ref()
        .get("permissions")
        .and_then(|value| value.get_ref().as_table())
    else {
        return Vec::new();
    };
    let items = |key: &str| {
        permissions
            .get(key)
            .and_then(|value| value.get_ref().as_array())
            .into_iter()
            .flatten()
    };
    let plain = ["allow", "ask", "deny"]
        .into_iter()
        .flat_map(items)
        .filter_map(|item| {
            let allow = vec![item.get_ref().as_str()?.to_owned()];
            Some((
                item.span().start,
                PermissionsConfig {
                    allow,
                    ..PermissionsConfig::default()
                },
            ))
        });
    let with_examples = items("rules").filter_map(|item| {
        let rule = RuleConfig::deserialize(toml::de::ValueDeserializer::from(item.clone())).ok()?;
        Some((
            item.span().start,
            PermissionsConfig {
                rules: vec![rule],
                ..PermissionsConfig::default()
            },
        ))
    });
    let wrong = |(offset, config): (usize, PermissionsConfig)| {
        Some((
            Some(offset),
            PermissionRules::load(&config, None).err()?.to_string(),
        ))
    };
    plain.chain(with_examples).filter_map(wrong).collect()
}

/// Finds shares in `[context]` that are out of range.
fn find_wrong_shares(table: &Spanned<DeTable<'_>>) -> Vec<Problem> {
    let Some(context) = table.get_ref().get("context") else {
        return Vec::new();
    };
    let policy =
        haft_context::Policy::deserialize(toml::de::ValueDeserializer::from(context.clone()));
    let problems = policy
        .map(|policy| policy.find_problems())
        .unwrap_or_default();
    let table = context.get_ref().as_table();
    problems
        .into_iter()
        .map(|problem| {
            let value = table.and_then(|table| table.get(problem.key));
            (value.map(|value| value.span().start), problem.to_string())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        match check_file(Path::new("c.toml"), text, &[]) {
            Ok(_) => Vec::new(),
            Err(error) => error.to_string().lines().map(str::to_owned).collect(),
        }
    }

    #[test]
    fn check_reports_every_unknown_key_and_wrong_type() {
        let text = "modle = \"a/b\"\n\
                    [retry]\natempts = 2\nbase_delay_ms = \"x\"\n\
                    [providers.openai]\nbase_url = 3\n\
                    [context]\nsafe_zone = \"much\"\nclock = \"yes\"\nwarn_at = 7.0\nladder_at = 0\n\
                    [colour]\nx = 1\n\
                    [permissions]\nallow = [\"read_file\", \"rm -rf\"]\nmode = \"sometimes\"\n";
        let found = problems(text);
        let places: Vec<_> = found
            .iter()
            .map(|line| line.split(": ").next().unwrap())
            .collect();
        assert_eq!(
            places,
            [
                "c.toml:1:1",
                "c.toml:3:1",
                "c.toml:4:17",
                "c.toml:6:12",
                "c.toml:8:13",
                "c.toml:9:9",
                "c.toml:10:11",
                "c.toml:11:13",
                "c.toml:12:2",
                "c.toml:15:23",
                "c.toml:16:8",
            ],
            "{found:#?}"
        );
    }

    #[test]
    fn check_reports_syntax_errors_beside_wrong_values() {
        let found =
            problems("model = \n[retry]\natempts = 2\nbase_delay_ms = = 3\n[sandbox]\nmode = 4\n");
        let lines: Vec<_> = found
            .iter()
            .map(|line| line.split(':').nth(1).unwrap().to_owned())
            .collect();
        assert_eq!(lines, ["1", "3", "4", "6"], "{found:#?}");
    }

    #[test]
    fn check_reports_a_missing_field_after_the_wrong_ones() {
        let found = problems(
            "[providers.mine]\nbase_url = 1\nkey = 2\n[providers.other]\nbase_url = \"http://x\"\n",
        );
        assert_eq!(found.len(), 4, "{found:#?}");
        assert!(
            found[0].starts_with("c.toml:1:1: missing field `api`"),
            "{found:#?}"
        );
    }

    #[test]
    fn check_accepts_a_built_in_provider_with_one_key() {
        assert_eq!(
            problems("[providers.openai]\nbase_url = \"http://127.0.0.1:9/v1\"\n"),
            Vec::<String>::new()
        );
        assert_eq!(
            problems("[providers.openai]\nbase_url = \"http://x/v1\"\n[retry]\nattempts = \"x\"\n")
                .len(),
            1
        );
    }
}
