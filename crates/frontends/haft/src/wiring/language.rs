//! Chooses the language of messages for people: the configured language, else the language of the
//! locale.
//!
//! The language is chosen once, before the first message, so that the error for a mistyped command
//! is translated, too. An invalid setting is ignored here and reported when the configuration is
//! loaded. Invariant: a process that prints for programs uses English in all its messages, because
//! the messages are part of its output.

use std::ffi::OsString;

use haft_agent::{HostEnvironment, Places};
use haft_messages::Language;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// The key of the language in the configuration.
pub(crate) const CONFIG_KEY: &str = "language";

/// The configured language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LanguageChoice {
    /// The language of the locale.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    #[serde(rename = "en")]
    English,
    #[serde(rename = "zh-CN")]
    Chinese,
}

/// Sets the language of this process from its arguments, its environment and the user's
/// configuration file.
pub(crate) fn set_process_language(
    arguments: impl Iterator<Item = OsString>,
    environment: &HostEnvironment,
) {
    let ours = arguments.skip(1).take_while(|argument| argument != "--");
    let ours: Vec<_> = ours
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    haft_messages::set_language(choose_language(&ours, environment));
}

fn choose_language(arguments: &[String], environment: &HostEnvironment) -> Language {
    if prints_for_programs(arguments) {
        return Language::English;
    }
    match find_configured_choice(arguments, environment) {
        LanguageChoice::English => Language::English,
        LanguageChoice::Chinese => Language::Chinese,
        LanguageChoice::Auto => {
            let locale = find_locale(environment).map(|(_, locale)| locale);
            Language::from_locale(&locale.unwrap_or_default())
        }
    }
}

/// Returns the variable that sets the locale of messages, and its value. The first variable that is
/// set decides, as in other programs.
pub(crate) fn find_locale(environment: &HostEnvironment) -> Option<(&'static str, String)> {
    ["LC_ALL", "LC_MESSAGES", "LANG"]
        .into_iter()
        .find_map(|name| Some((name, environment.trimmed_variable(name)?)))
}

/// Returns true if the process prints JSON, or is a background job, whose events are read later.
fn prints_for_programs(arguments: &[String]) -> bool {
    let formats = ["--output-format", "--input-format"];
    arguments
        .iter()
        .any(|argument| argument == "--json" || argument.starts_with("--job="))
        || formats.into_iter().any(|format| {
            find_option_values(arguments, format).any(|value| value.ends_with("json"))
        })
}

fn find_configured_choice(arguments: &[String], environment: &HostEnvironment) -> LanguageChoice {
    let assigned = find_option_values(arguments, "--set").filter_map(|set| set.split_once('='));
    let by_flag = assigned
        .filter(|(key, _)| key.trim() == CONFIG_KEY)
        .last()
        .map(|(_, value)| value.to_owned());
    let written = by_flag
        .or_else(|| environment.trimmed_variable("HAFT_LANGUAGE"))
        .or_else(|| read_language_from_file(environment));
    let read = |text: String| {
        LanguageChoice::deserialize(Value::String(
            text.trim().trim_matches(['"', '\'']).to_owned(),
        ))
        .ok()
    };
    written.and_then(read).unwrap_or_default()
}

fn read_language_from_file(environment: &HostEnvironment) -> Option<String> {
    let file = Places::from_environment(environment.clone())
        .ok()?
        .config_file();
    let table: Table = toml::from_str(&std::fs::read_to_string(file).ok()?).ok()?;
    table.get(CONFIG_KEY)?.as_str().map(str::to_owned)
}

/// Returns the values of an option, given as the next argument or after an equals sign.
fn find_option_values<'a>(
    arguments: &'a [String],
    option: &'a str,
) -> impl Iterator<Item = &'a str> {
    arguments
        .iter()
        .enumerate()
        .filter_map(move |(at, argument)| match argument.strip_prefix(option)? {
            "" => arguments.get(at + 1).map(String::as_str),
            rest => rest.strip_prefix('='),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the language that a command line, variables and a file choose.
    fn language_for(line: &str, variables: &[(&str, &str)], file: &str) -> Language {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("config.toml"), file).unwrap();
        let own = variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let environment =
            HostEnvironment::new(own.chain([("HAFT_HOME".into(), home.path().into())]));
        choose_language(
            &line
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
            &environment,
        )
    }

    #[test]
    fn choose_language_prefers_flag_variable_file_locale() {
        const FILE: &str = "language = \"zh-CN\"\n";
        const LOCALE: (&str, &str) = ("LANG", "zh_CN.UTF-8");
        for (line, variables, file, expected) in [
            ("", &[] as &[_], "", Language::English),
            ("", &[LOCALE], "", Language::Chinese),
            ("", &[("LC_ALL", "C"), LOCALE], "", Language::English),
            (
                "",
                &[("LC_ALL", ""), ("LC_MESSAGES", "zh_TW"), ("LANG", "en_US")],
                "",
                Language::Chinese,
            ),
            ("", &[], FILE, Language::Chinese),
            ("", &[LOCALE], "language = \"en\"\n", Language::English),
            ("", &[LOCALE], "language = \"auto\"\n", Language::Chinese),
            (
                "",
                &[("HAFT_LANGUAGE", "en"), LOCALE],
                FILE,
                Language::English,
            ),
            (
                "--set language=zh-CN",
                &[("HAFT_LANGUAGE", "en")],
                "",
                Language::Chinese,
            ),
            (
                "--set=language=\"en\" run x",
                &[LOCALE],
                FILE,
                Language::English,
            ),
            (
                "--set language=en --set language=zh-CN",
                &[],
                "",
                Language::Chinese,
            ),
            // Errors in the file are reported by the code that loads it.
            ("", &[LOCALE], "language = \"fr\"\n", Language::Chinese),
            ("", &[LOCALE], "language = [\n", Language::Chinese),
        ] {
            assert_eq!(
                language_for(line, variables, file),
                expected,
                "{line} {variables:?} {file}"
            );
        }
    }

    #[test]
    fn choose_language_is_english_for_output_read_by_programs() {
        for line in [
            "models list --json",
            "run --output-format json hi",
            "-p --output-format=stream-json hi",
            "run --input-format stream-json",
            "run --job=1234 hi",
        ] {
            assert_eq!(
                language_for(line, &[("HAFT_LANGUAGE", "zh-CN")], ""),
                Language::English,
                "{line}"
            );
        }
        let for_people = language_for(
            "run --output-format text --json-schema x hi",
            &[("HAFT_LANGUAGE", "zh-CN")],
            "",
        );
        assert_eq!(for_people, Language::Chinese);
    }
}
