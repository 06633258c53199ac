//! Environment variables that begin with `HAFT_`: the configuration keys they set, and the ones
//! without effect.

use std::collections::BTreeMap;
use std::fmt;

use toml::Value;

use super::schema::schema;
use super::section::Section;

const PREFIX: &str = "HAFT_";

/// Variables that haft or its deployment files use and that are not configuration keys.
const KNOWN: [&str; 6] = [
    "HAFT_HOME",
    "HAFT_COMPLETE",
    "HAFT_PROJECT_DIR",
    "HAFT_PROXY",
    "HAFT_MCP_TOKEN",
    "HAFT_DB_PASSWORD",
];

/// Prefixes of variables that only haft's tests and benchmarks use.
const DEVELOPMENT: [&str; 2] = ["HAFT_TEST_", "HAFT_BENCH_"];

/// Further variables that only haft's tests and benchmarks use.
const OF_TESTS: [&str; 5] = [
    "HAFT_FIXTURE_BINARY",
    "HAFT_OWN_SESSIONS",
    "HAFT_POSTGRES",
    "HAFT_ROW",
    "HAFT_TRAJECTORIES",
];

/// Top-level keys of front ends that can be set by a variable. They count only if the front end
/// declares them as a section.
const OF_FRONT_ENDS: [&str; 2] = ["LOG_LEVEL", "LANGUAGE"];

/// A variable that begins with `HAFT_` and has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownVariable {
    pub name: String,
    /// The variable that was probably meant.
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

/// Returns the key that a variable sets: `HAFT_MODEL`, `HAFT_LOG_LEVEL`, `HAFT_LANGUAGE` or
/// `HAFT_SECTION__KEY`.
pub(super) fn key_of(name: &str, sections: &[Section]) -> Option<String> {
    let rest = name.strip_prefix(PREFIX)?;
    let key = rest.to_ascii_lowercase();
    let is_front_end =
        OF_FRONT_ENDS.contains(&rest) && sections.iter().any(|section| section.name() == key);
    (rest == "MODEL" || is_front_end || rest.contains("__")).then(|| key.replace("__", "."))
}

/// Lists the variables that begin with `HAFT_` and have no effect. Variables that a value of the
/// configuration mentions, such as `api_key_env` or the command of a hook, are not listed.
pub(super) fn unknown(
    environment: &[(String, String)],
    values: &BTreeMap<String, Value>,
    sections: &[Section],
) -> Vec<UnknownVariable> {
    let is_known = |name: &str| {
        KNOWN.contains(&name)
            || OF_TESTS.contains(&name)
            || DEVELOPMENT.iter().any(|prefix| name.starts_with(prefix))
            || key_of(name, sections).is_some()
            || values.values().any(|value| names(value, name))
    };
    let unknown: Vec<_> = environment
        .iter()
        .map(|(name, _)| name)
        .filter(|name| name.starts_with(PREFIX) && !is_known(name))
        .collect();
    if unknown.is_empty() {
        return Vec::new();
    }
    let candidates = candidates(sections);
    let found = unknown.into_iter().map(|name| UnknownVariable {
        name: name.clone(),
        suggestion: nearest(name, &candidates),
    });
    found.collect()
}

/// True if a string in `value` contains `name` as a whole word.
fn names(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            text.split(|c: char| !is_part(c)).any(|word| word == name)
        }
        Value::Array(values) => values.iter().any(|value| names(value, name)),
        Value::Table(table) => table
            .iter()
            .any(|(key, value)| key == name || names(value, name)),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => false,
    }
}

/// Returns the variables that can be suggested: those of the keys with plain names, and
/// `HAFT_HOME`.
fn candidates(sections: &[Section]) -> Vec<String> {
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
                    || OF_FRONT_ENDS.contains(&path.as_str()))
            {
                all.push(format!("{PREFIX}{path}"));
            }
            add(field, &path, all);
        }
    }
    let mut all = vec![KNOWN[0].to_owned()];
    add(&schema(sections), "", &mut all);
    all
}

/// Returns the candidate that differs from `name` only in its underscores, else the one with the
/// fewest differing letters, else the one whose last part equals the rest of `name`.
fn nearest(name: &str, candidates: &[String]) -> Option<String> {
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

    fn told(environment: &[&str], values: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
        let environment: Vec<_> = environment
            .iter()
            .map(|name| ((*name).to_owned(), "1".to_owned()))
            .collect();
        let values = values
            .iter()
            .map(|(key, value)| ((*key).to_owned(), Value::String((*value).to_owned())))
            .collect();
        let found = unknown(&environment, &values, &[]);
        found
            .into_iter()
            .map(|one| (one.name, one.suggestion))
            .collect()
    }

    #[test]
    fn unknown_variables_get_the_key_that_was_meant() {
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
                told(&[name], &[]),
                [(name.to_owned(), meant.map(str::to_owned))]
            );
        }
    }

    #[test]
    fn known_variables_are_not_reported() {
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
        assert_eq!(told(&known, &[]), []);
    }

    #[test]
    fn variables_that_the_configuration_names_are_not_reported() {
        let values = [
            ("providers.own.api_key_env", "HAFT_KEY"),
            ("hooks.Stop", "notify --token $HAFT_NOTIFY_TOKEN"),
            ("mcp_servers.a.env.TOKEN", "${HAFT_A_TOKEN}"),
        ];
        assert_eq!(
            told(&["HAFT_KEY", "HAFT_NOTIFY_TOKEN", "HAFT_A_TOKEN"], &values),
            []
        );
        assert_eq!(
            told(&["HAFT_KE"], &values).len(),
            1,
            "part of a name is not the name"
        );
    }
}
