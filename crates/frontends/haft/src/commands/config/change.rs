//! `haft config set`, `unset` and `edit`: change config.toml and keep its comments and layout. An
//! invalid configuration is never written.

use std::io::BufRead;
use std::path::Path;

use haft_agent::HostEnvironment;
use haft_agent::config::{self, ValueOrigin};
use haft_permission::PermissionRules;
use toml_edit::{Document, Item, Key, TableLike, Value};

use super::file::{new_implicit_table, parse_document};
use crate::cli::options::{Common, is_at_terminal};
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::interactive::side_editor;
use crate::{output, wiring};

pub(super) fn set_value(haft: &Haft, key: &str, value: &str) -> anyhow::Result<()> {
    let file = haft.places()?.config_file();
    config::edit_file(&file, |before| {
        text_with_value(haft.environment(), &file, before, key, value)
    })?;
    output::print_text_line(&text!("config-set", key, file = file.display()))?;
    // An environment variable may override the file.
    if let Ok((_, loaded)) = haft.load_with_origins(&Common::default())
        && let ValueOrigin::Variable(name) = loaded.value_origin(key)
    {
        output::print_to_stderr(&format!("haft: {}", text!("config-overridden", key, name)));
    }
    Ok(())
}

pub(super) fn unset_value(haft: &Haft, key: &str) -> anyhow::Result<()> {
    let file = haft.places()?.config_file();
    config::edit_file(&file, |before| {
        text_without_value(haft.environment(), &file, before, key)
    })?;
    output::print_text_line(&text!("config-unset", key, file = file.display()))
}

/// Opens a copy of the file in the editor, and replaces the file once the copy is valid.
pub(super) fn edit_config_file(haft: &Haft) -> anyhow::Result<()> {
    let file = haft.places()?.config_file();
    let before = match std::fs::read_to_string(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.map_err(|error| usage_error(format!("{}: {error}", file.display())))?,
    };
    // The file may be broken, and then it names no folders.
    let environment = haft.load_quietly(&Common::default()).map_or_else(
        |_| haft.environment().clone(),
        |settings| settings.places.environment,
    );
    let mut text = before.clone();
    loop {
        text = side_editor::edit_text(&environment, &text, ".toml").map_err(usage_error)?;
        let Err(problem) = validate_config(haft.environment(), &file, &text) else {
            break;
        };
        if !is_at_terminal() {
            return Err(problem.context(text!("config-edit-refused")));
        }
        output::print_text(&format!(
            "haft: {problem:#}\n{} ",
            text!("config-edit-again")
        ))?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        if answer.trim() != "e" {
            return Err(usage_error(text!("config-edit-refused")));
        }
    }
    if text == before {
        return output::print_text_line(&text!("config-edit-same", file = file.display()));
    }
    config::edit_file(&file, |now| {
        if now == before {
            Ok(text)
        } else {
            Err(usage_error(text!(
                "config-edit-meanwhile",
                file = file.display()
            )))
        }
    })?;
    output::print_text_line(&text!("config-edited", file = file.display()))
}

/// Validates a configuration with its permission rules.
fn validate_config(environment: &HostEnvironment, file: &Path, text: &str) -> anyhow::Result<()> {
    let config = wiring::lower_config(wiring::check_config(file, text)?)?;
    PermissionRules::load(&config.permissions, environment.home().as_deref())
        .map_err(|error| usage_error(format!("{}: {error}", file.display())))?;
    Ok(())
}

/// Returns the text of the file with `key` set to `value`. A value that is not TOML, or is not
/// valid for the key as TOML, is set as a string.
fn text_with_value(
    environment: &HostEnvironment,
    file: &Path,
    before: &str,
    key: &str,
    value: &str,
) -> anyhow::Result<String> {
    let path = parse_key(key)?;
    // No setting is a date, so a value that parses as a date is a string.
    let parsed = value
        .parse::<Value>()
        .ok()
        .filter(|value| !value.is_datetime());
    let text = |value: Value| -> anyhow::Result<String> {
        let mut document = parse_document(file, before)?;
        put_value(document.as_table_mut(), &path, value)
            .ok_or_else(|| usage_error(text!("config-not-a-table", key)))?;
        let after = document.to_string();
        validate_config(environment, file, &after).map(|()| after)
    };
    match parsed {
        Some(parsed) if parsed.is_str() => text(parsed),
        Some(parsed) => text(parsed).or_else(|problem| text(value.into()).map_err(|_| problem)),
        None => text(value.into()),
    }
}

fn put_value(table: &mut dyn TableLike, path: &[Key], value: Value) -> Option<()> {
    let (key, rest) = path.split_first()?;
    if !rest.is_empty() {
        let inner = table.entry_format(key).or_insert_with(new_implicit_table);
        return put_value(inner.as_table_like_mut()?, rest, value);
    }
    match table.get_mut(key.get()).and_then(Item::as_value_mut) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        None => {
            table.insert(key.get(), Item::Value(value));
        }
    }
    Some(())
}

/// Returns the text of the configuration file without `key`. Comments above the key stay.
fn text_without_value(
    environment: &HostEnvironment,
    file: &Path,
    before: &str,
    key: &str,
) -> anyhow::Result<String> {
    let path = parse_key(key)?;
    let mut parsed = parse_document(file, before)?;
    let missing = || usage_error(text!("config-not-set-in", key, file = file.display()));
    let (last, parents) = path.split_last().ok_or_else(missing)?;
    let mut table: &mut dyn TableLike = parsed.as_table_mut();
    for parent in parents {
        table = table
            .get_mut(parent.get())
            .and_then(Item::as_table_like_mut)
            .ok_or_else(missing)?;
    }
    table.remove(last.get()).ok_or_else(missing)?;
    let after = remove_value_lines(before, &path).unwrap_or_else(|| parsed.to_string());
    validate_config(environment, file, &after)?;
    Ok(after)
}

/// Returns the configuration text without the lines of the value at `path`, or `None` if the value
/// has no lines of its own, as in an inline table.
fn remove_value_lines(text: &str, path: &[Key]) -> Option<String> {
    let document = Document::parse(text).ok()?;
    let (last, parents) = path.split_last()?;
    let mut table = document.as_table();
    for parent in parents {
        table = table.get(parent.get())?.as_table()?;
    }
    let (key, item) = table.get_key_value(last.get())?;
    let begin = key.span()?.start;
    let end = item.as_value()?.span()?.end;
    let begin = text.get(..begin)?.rfind('\n').map_or(0, |at| at + 1);
    let end = text
        .get(end..)?
        .find('\n')
        .map_or(text.len(), |at| end + at + 1);
    Some(format!("{}{}", text.get(..begin)?, text.get(end..)?))
}

fn parse_key(key: &str) -> anyhow::Result<Vec<Key>> {
    Key::parse(key).map_err(|_| usage_error(text!("config-no-key", key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# mine\nmodel = \"a/b\" # for now\n\n[retry]\n# twice is enough\nattempts = 2 # really\n\n# [sandbox]\n";

    fn set(before: &str, key: &str, value: &str) -> Result<String, String> {
        text_with_value(
            &HostEnvironment::default(),
            Path::new("config.toml"),
            before,
            key,
            value,
        )
        .map_err(|error| format!("{error:#}"))
    }

    fn unset(before: &str, key: &str) -> Result<String, String> {
        text_without_value(
            &HostEnvironment::default(),
            Path::new("config.toml"),
            before,
            key,
        )
        .map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn set_replaces_a_value_and_keeps_the_rest() {
        assert_eq!(
            set(FILE, "retry.attempts", "3").unwrap(),
            FILE.replace("attempts = 2", "attempts = 3")
        );
        assert_eq!(
            set(FILE, "model", "c/d").unwrap(),
            FILE.replace("a/b", "c/d")
        );
        assert_eq!(
            set(FILE, "model", "\"c/d\"").unwrap(),
            FILE.replace("a/b", "c/d")
        );
        let added = set(
            FILE,
            "providers.own",
            "{ api = \"openai-chat\", base_url = \"http://localhost:1/v1\" }",
        )
        .unwrap();
        assert!(
            added.contains("[providers]\nown = { api = \"openai-chat\""),
            "{added}"
        );
        let deeper = set(&added, "providers.own.base_url", "http://localhost:2/v1").unwrap();
        assert_eq!(deeper, added.replace(":1/", ":2/"));
        assert!(
            added.starts_with(
                "# mine\nmodel = \"a/b\" # for now\n\n[retry]\n# twice is enough\nattempts = 2 # really\n"
            )
        );
        assert_eq!(
            set("", "permissions.allow", "[\"read_file\"]").unwrap(),
            "[permissions]\nallow = [\"read_file\"]\n"
        );
        let dotted = "retry.attempts = 2\nretry.base_delay_ms = 5\n";
        assert_eq!(
            set(dotted, "retry.attempts", "4").unwrap(),
            dotted.replace('2', "4")
        );
        let inline = "retry = { attempts = 2 } # short\n";
        assert_eq!(
            set(inline, "retry.attempts", "4").unwrap(),
            inline.replace('2', "4")
        );
    }

    #[test]
    fn set_quotes_text_that_looks_like_another_type() {
        for value in ["5", "true", "2026-11-16", "[a"] {
            let after = set("", "model", value).unwrap();
            assert_eq!(after, format!("model = \"{value}\"\n"));
        }
    }

    #[test]
    fn set_rejects_invalid_configuration() {
        for (key, value, problem) in [
            ("retry.attempts", "many", "invalid type"),
            ("retry.atempts", "2", "did you mean `attempts`?"),
            ("permissions.mode", "sometimes", "sometimes"),
            (
                "permissions.allow",
                "[\"execute_command(ls; rm)\"]",
                "execute_command",
            ),
            ("model.x", "1", "model.x"),
            ("a..b", "1", "a..b"),
            ("nothing", "1", "unknown key `nothing`"),
        ] {
            let refused = set(FILE, key, value).unwrap_err();
            assert!(refused.contains(problem), "{key}: {refused}");
        }
    }

    #[test]
    fn unset_removes_a_value_and_keeps_comments_above_it() {
        assert_eq!(
            unset(FILE, "retry.attempts").unwrap(),
            FILE.replace("attempts = 2 # really\n", "")
        );
        assert_eq!(
            unset(FILE, "model").unwrap(),
            FILE.replace("model = \"a/b\" # for now\n", "")
        );
        assert_eq!(
            unset(
                "retry = { attempts = 2, base_delay_ms = 5 }\n",
                "retry.attempts"
            )
            .unwrap(),
            "retry = { base_delay_ms = 5 }\n"
        );
        let list = "[permissions]\nallow = [\n  \"read_file\", # a\n]\nmode = \"ask\"\n";
        assert_eq!(
            unset(list, "permissions.allow").unwrap(),
            "[permissions]\nmode = \"ask\"\n"
        );
        assert!(!unset(FILE, "retry").unwrap().contains("attempts"));
        for missing in ["retry.base_delay_ms", "sandbox", "model.x"] {
            assert!(
                unset(FILE, missing).unwrap_err().contains("is not set"),
                "{missing}"
            );
        }
    }
}
