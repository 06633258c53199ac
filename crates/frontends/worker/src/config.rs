//! The `[worker]` section of the configuration: what workers may spend, and whose files they obey.

use std::collections::BTreeMap;

use haft_postgres::SpendingLimit;
use serde::{Deserialize, Serialize};

/// The `[worker]` section of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerConfig {
    /// Money of a task that names no limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_usd: Option<f64>,
    /// Tokens of a task that names no limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_tokens: Option<i64>,
    /// Money of all tasks in a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_usd: Option<f64>,
    /// Tokens of all tasks in a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_tokens: Option<i64>,
    /// Repositories whose instructions, agents and rules are obeyed as in a folder that is
    /// trusted: a source, or with `*` at its end all that begin so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trust: Vec<String>,
    /// The same limits for the tasks with a label.
    pub labels: BTreeMap<String, LabelLimits>,
}

/// What tasks with one label may spend in a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LabelLimits {
    /// Money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_usd: Option<f64>,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_tokens: Option<i64>,
}

impl WorkerConfig {
    /// Whether what this repository holds is obeyed. A source that steps upward or aside is not: it
    /// may lead anywhere.
    pub fn trusts(&self, source: &str) -> bool {
        let fits = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => source.starts_with(beginning),
            None => source == pattern,
        };
        !source.split(['/', '\\']).any(|part| part == "..") && self.trust.iter().any(fits)
    }

    /// What all workers together may spend in a day.
    pub fn limits(&self) -> Vec<SpendingLimit> {
        let all = SpendingLimit {
            label: String::new(),
            usd: self.day_usd,
            tokens: self.day_tokens,
        };
        let of_label = |(label, limits): (&String, &LabelLimits)| SpendingLimit {
            label: label.clone(),
            usd: limits.day_usd,
            tokens: limits.day_tokens,
        };
        let limits = std::iter::once(all).chain(self.labels.iter().map(of_label));
        limits
            .filter(|limit| limit.usd.is_some() || limit.tokens.is_some())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_trusted_whole_or_by_its_beginning() {
        let trust = ["https://host/team/*", "/srv/git/one.git"]
            .map(str::to_owned)
            .to_vec();
        let config = WorkerConfig {
            trust,
            ..WorkerConfig::default()
        };
        for source in [
            "https://host/team/a.git",
            "https://host/team/",
            "/srv/git/one.git",
        ] {
            assert!(config.trusts(source), "{source}");
        }
        for source in [
            "https://host/team/../other/a.git",
            "https://host/teams/a",
            "/srv/git/one.git/",
            "",
            "http://host/team/a",
        ] {
            assert!(!config.trusts(source), "{source}");
        }
    }

    #[test]
    fn only_what_is_limited_is_asked_about() {
        assert!(WorkerConfig::default().limits().is_empty());
        let night = LabelLimits {
            day_usd: Some(2.0),
            day_tokens: None,
        };
        let labels = [
            ("night".to_owned(), night),
            ("free".to_owned(), LabelLimits::default()),
        ]
        .into();
        let limits = WorkerConfig {
            day_tokens: Some(9),
            labels,
            ..WorkerConfig::default()
        }
        .limits();
        let of = |label: &str, usd, tokens| SpendingLimit {
            label: label.to_owned(),
            usd,
            tokens,
        };
        assert_eq!(
            limits,
            [of("", None, Some(9)), of("night", Some(2.0), None)]
        );
    }
}
