//! Environment variables that begin with `HAFT_`: maps them to configuration keys, and finds
//! variables without effect.

use std::collections::BTreeMap;
use std::fmt;

use toml::Value;

use super::schema::config_schema;
use super::section::Section;

const PREFIX: &str = "HAFT_";

/// Variables that haft or its deployment files use, but that set no configuration key.
const KNOWN_VARIABLES: [&str; 7] = [
    "HAFT_HOME",
    "HAFT_COMPLETE",
    "HAFT_PROJECT_DIR",
    "HAFT_PROXY",
    "HAFT_MCP_TOKEN",
    "HAFT_DB_PASSWORD",
    "HAFT_UNSET",
];

/// Prefixes of variables that only haft's tests and benchmarks use.
const DEVELOPMENT_PREFIXES: [&str; 2] = ["HAFT_TEST_", "HAFT_BENCH_"];

/// Variables outside [`DEVELOPMENT_PREFIXES`] that only haft's tests and benchmarks use.
const DEVELOPMENT_VARIABLES: [&str; 5] = [
    "HAFT_FIXTURE_BINARY",
    "HAFT_OWN_SESSIONS",
    "HAFT_POSTGRES",
    "HAFT_ROW",
    "HAFT_TRAJECTORIES",
];

/// Top-level configuration keys of front ends that an environment variable can set. A key counts
/// only if the front end declares a section with its name.
const FRONT_END_KEYS: [&str; 2] = ["LOG_LEVEL", "LANGUAGE"];

/// A variable that begins with `HAFT_` and has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownVariable {
    pub name: String,
    /// The variable that the user probably meant.
    pub suggestion: Option<String>,
}

impl fmt::Display for UnknownVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.suggestion {
            Some(suggestion) => {
                write!(
                    f,
                    "the environment variable `{name}` has no effect; did you mean `{suggestion}`?"
                )
            }
            None => write!(
                f,
                "the environment variable `{name}` has no effect; a key of the configuration is set by `HAFT_SECTION__KEY`"
            ),
        }
    }
}

/// Returns the configuration key that the variable `name` sets. The possible names are
/// `HAFT_MODEL`, `HAFT_LOG_LEVEL`, `HAFT_LANGUAGE` and `HAFT_SECTION__KEY`.
pub(super) fn key_for_variable(name: &str, sections: &[Section]) -> Option<String> {
    let rest = name.strip_prefix(PREFIX)?;
    let key = rest.to_ascii_lowercase();
    let is_front_end =
        FRONT_END_KEYS.contains(&rest) && sections.iter().any(|section| section.name() == key);
    (rest == "MODEL" || is_front_end || rest.contains("__")).then(|| key.replace("__", "."))
}

/// Lists the variables that begin with `HAFT_` and have no effect. Variables that a value of the
/// configuration mentions, such as `api_key_env` or the command of a hook, are not listed.
pub(super) fn find_unknown_variables(
    environment: &[(String, String)],
    values: &BTreeMap<String, Value>,
    sections: &[Section],
) -> Vec<UnknownVariable> {
    let unknown: Vec<_> = environment
        .iter()
        .map(|(name, _)| name)
        .filter(|name| name.starts_with(PREFIX) && !has_effect(name, sections))
        .filter(|name| !values.values().any(|value| mentions_name(value, name)))
        .collect();
    if unknown.is_empty() {
        return Vec::new();
    }
    let candidates = list_suggestion_candidates(sections);
    let found = unknown.into_iter().map(|name| UnknownVariable {
        name: name.clone(),
        suggestion: find_nearest_candidate(name, &candidates),
    });
    found.collect()
}

/// True if haft reads the variable, in a release or in development.
fn has_effect(name: &str, sections: &[Section]) -> bool {
    KNOWN_VARIABLES.contains(&name)
        || DEVELOPMENT_VARIABLES.contains(&name)
        || DEVELOPMENT_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
        || key_for_variable(name, sections).is_some()
}

/// True if a string in `value` contains `name` as a whole word.
fn mentions_name(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => text
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .any(|word| word == name),
        Value::Array(values) => values.iter().any(|value| mentions_name(value, name)),
        Value::Table(table) => table
            .iter()
            .any(|(key, value)| key == name || mentions_name(value, name)),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => false,
    }
}

/// Returns the variables that can be suggested: `HAFT_HOME`, and the variable of each key with a
/// plain name.
fn list_suggestion_candidates(sections: &[Section]) -> Vec<String> {
    fn add(node: &serde_json::Value, path: &str, all: &mut Vec<String>) {
        let Some(fields) = node
            .get("properties")
            .and_then(serde_json::Value::as_object)
        else {
            return;
        };
        for (name, field) in fields {
            let path = if path.is_empty() {
                name.to_uppercase()
            } else {
                format!("{path}__{}", name.to_uppercase())
            };
            let is_table = field.get("properties").is_some();
            if !is_table
                && (path.contains("__")
                    || path == "MODEL"
                    || FRONT_END_KEYS.contains(&path.as_str()))
            {
                all.push(format!("{PREFIX}{path}"));
            }
            add(field, &path, all);
        }
    }
    let mut all = vec![KNOWN_VARIABLES[0].to_owned()];
    add(&config_schema(sections), "", &mut all);
    all
}

/// Returns the candidate that differs from `name` only in its underscores. If there is none,
/// returns the candidate with the fewest differing letters, else the candidate whose last part
/// equals the rest of `name`.
fn find_nearest_candidate(name: &str, candidates: &[String]) -> Option<String> {
    let plain = |name: &str| name.to_ascii_uppercase().replace('_', "");
    let wanted = plain(name);
    let by_letters = candidates
        .iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&wanted, &plain(candidate)),
                candidate,
            )
        })
        .min()
        .filter(|(distance, _)| *distance <= 1 + (wanted.len() - plain(PREFIX).len()) / 4);
    let by_last_part = || {
        let rest = plain(name.strip_prefix(PREFIX)?);
        let is_last = |candidate: &&String| {
            candidate
                .rsplit("__")
                .next()
                .is_some_and(|last| plain(last) == rest)
        };
        candidates.iter().find(is_last)
    };
    by_letters
        .map(|(_, candidate)| candidate)
        .or_else(by_last_part)
        .cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown_with_suggestions(
        environment: &[&str],
        values: &[(&str, &str)],
    ) -> Vec<(String, Option<String>)> {
        let environment: Vec<_> = environment
            .iter()
            .map(|name| ((*name).to_owned(), "1".to_owned()))
            .collect();
        let values = values
            .iter()
            .map(|(key, value)| ((*key).to_owned(), Value::String((*value).to_owned())))
            .collect();
        let found = find_unknown_variables(&environment, &values, &[]);
        found
            .into_iter()
            .map(|one| (one.name, one.suggestion))
            .collect()
    }

    #[test]
    fn unknown_suggests_the_intended_variable() {
        for (name, meant) in [
            ("HAFT_STORE_BACKUPS", Some("HAFT_STORE__BACKUPS")),
            ("HAFT_BACKUPS", Some("HAFT_STORE__BACKUPS")),
            ("HAFT_CONTEXT_SAFE_ZONE", Some("HAFT_CONTEXT__SAFE_ZONE")),
            ("HAFT_PERMISSION_MODE", Some("HAFT_PERMISSIONS__MODE")),
            (
                "HAFT_CONTEXT_COMPRESS_LIMITS_READ",
                Some("HAFT_CONTEXT__COMPRESS_LIMITS__READ"),
            ),
            ("HAFT_MODLE", Some("HAFT_MODEL")),
            ("HAFT_HOEM", Some("HAFT_HOME")),
            ("HAFT_ZEBRA_CROSSING", None),
        ] {
            assert_eq!(
                unknown_with_suggestions(&[name], &[]),
                [(name.to_owned(), meant.map(str::to_owned))]
            );
        }
    }

    #[test]
    fn unknown_omits_known_variables() {
        let known = [
            "HAFT_HOME",
            "HAFT_MODEL",
            "HAFT_COMPLETE",
            "HAFT_PROJECT_DIR",
            "HAFT_PROXY",
            "HAFT_MCP_TOKEN",
            "HAFT_STORE__BACKUPS",
            "HAFT_TEST_BINARY",
            "HAFT_BENCH_FOLDER",
            "PATH",
            "MY_HAFT_KEY",
        ];
        assert_eq!(unknown_with_suggestions(&known, &[]), []);
    }

    #[test]
    fn unknown_omits_variables_named_in_the_configuration() {
        let values = [
            ("providers.own.api_key_env", "HAFT_KEY"),
            ("hooks.Stop", "notify --token $HAFT_NOTIFY_TOKEN"),
            ("mcp_servers.a.env.TOKEN", "${HAFT_A_TOKEN}"),
        ];
        assert_eq!(
            unknown_with_suggestions(&["HAFT_KEY", "HAFT_NOTIFY_TOKEN", "HAFT_A_TOKEN"], &values),
            []
        );
        assert_eq!(
            unknown_with_suggestions(&["HAFT_KE"], &values).len(),
            1,
            "part of a name is not the name"
        );
    }
}
