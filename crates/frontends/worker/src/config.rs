//! The `[worker]` section of the configuration: spending limits, and the repositories whose files
//! are trusted.

use std::collections::BTreeMap;

use haft_postgres::SpendingLimit;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerConfig {
    /// The maximum cost, in USD, of a task that sets no limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_usd: Option<f64>,
    /// The maximum number of tokens of a task that sets no limit of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_tokens: Option<i64>,
    /// The maximum cost of all tasks per day, in USD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_usd: Option<f64>,
    /// The maximum number of tokens of all tasks per day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_tokens: Option<i64>,
    /// The sources of trusted repositories, whose instructions, agents and rules are followed. An
    /// entry that ends in `*` matches all sources that begin with the text before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trust: Vec<String>,
    /// The maximum number of tasks of one repository that all workers run at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository_tasks: Option<u32>,
    /// The address that receives a JSON document at the end of each task, as an HTTP POST request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// The name of the environment variable with the value of the header `Authorization` of the
    /// webhook's requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_authorization_env: Option<String>,
    /// The age in days after which ended tasks are removed from the queue, with their logs and
    /// patches. 0 keeps them.
    pub keep_days: u32,
    /// The limits for tasks with particular labels, by label.
    pub labels: BTreeMap<String, LabelLimits>,
}

/// The limits of all tasks with one label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LabelLimits {
    /// The maximum cost of the tasks with the label per day, in USD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_usd: Option<f64>,
    /// The maximum number of tokens of the tasks with the label per day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_tokens: Option<i64>,
    /// The maximum number of tasks with the label that all workers run at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u32>,
}

impl WorkerConfig {
    /// Returns the labels whose tasks may not all run at the same time, each with the maximum.
    pub fn concurrency_limits(&self) -> Vec<(String, i64)> {
        let limited = |(label, limits): (&String, &LabelLimits)| {
            Some((label.clone(), i64::from(limits.tasks?)))
        };
        self.labels.iter().filter_map(limited).collect()
    }

    /// True if the instructions, agents and rules in the repository `source` may be followed. A
    /// source that contains `..` is never trusted, because its prefix does not show where it leads.
    pub fn trusts_repository(&self, source: &str) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => source.starts_with(beginning),
            None => source == pattern,
        };
        !source.split(['/', '\\']).any(|part| part == "..") && self.trust.iter().any(matches)
    }

    /// Returns the configured daily limits, which apply to all workers together.
    pub fn spending_limits(&self) -> Vec<SpendingLimit> {
        let all = SpendingLimit {
            label: String::new(),
            usd: self.day_usd,
            tokens: self.day_tokens,
        };
        let label_limit = |(label, limits): (&String, &LabelLimits)| SpendingLimit {
            label: label.clone(),
            usd: limits.day_usd,
            tokens: limits.day_tokens,
        };
        let limits = std::iter::once(all).chain(self.labels.iter().map(label_limit));
        limits
            .filter(|limit| limit.usd.is_some() || limit.tokens.is_some())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trusts_repository_matches_sources_and_prefixes() {
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
            assert!(config.trusts_repository(source), "{source}");
        }
        for source in [
            "https://host/team/../other/a.git",
            "https://host/teams/a",
            "/srv/git/one.git/",
            "",
            "http://host/team/a",
        ] {
            assert!(!config.trusts_repository(source), "{source}");
        }
    }

    #[test]
    fn spending_limits_lists_only_limited_labels() {
        assert!(WorkerConfig::default().spending_limits().is_empty());
        let night = LabelLimits {
            day_usd: Some(2.0),
            day_tokens: None,
            tasks: Some(1),
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
        };
        assert_eq!(limits.concurrency_limits(), [("night".to_owned(), 1)]);
        let limits = limits.spending_limits();
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
