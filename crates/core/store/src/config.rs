//! The `[store]` section of the configuration.

use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

/// The `[store]` section of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// The address of a PostgreSQL server that keeps the conversations, such as `postgres://user@host/database`; an embedded
    /// database when absent.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "without_password")]
    pub url: Option<String>,
    /// How long a write waits while another process holds the conversation or the database, in milliseconds.
    pub lock_timeout_ms: u32,
    /// How much room the file versions behind undo may take, in megabytes; the oldest go first.
    pub versions_mb: u32,
    /// How many backups are kept; none are made when 0.
    pub backups: u32,
    /// How many minutes pass between two backups while haft runs.
    pub backup_minutes: u32,
    /// How much room all backups together may take, in megabytes.
    pub backups_mb: u32,
    /// How many conversations are kept in memory; none when 0.
    pub cache_conversations: u32,
    /// For how many seconds they are kept there.
    pub cache_seconds: u32,
}

impl StoreConfig {
    /// [`Self::lock_timeout_ms`] as a duration.
    pub fn lock_timeout(&self) -> Duration {
        Duration::from_millis(self.lock_timeout_ms.into())
    }

    /// [`Self::cache_seconds`] as a duration.
    pub fn cache_life(&self) -> Duration {
        Duration::from_secs(self.cache_seconds.into())
    }
}

/// Configuration is shown to people and programs.
#[expect(clippy::ref_option, reason = "serde gives the field by reference")]
fn without_password<S: Serializer>(url: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    url.as_deref().map(hide_password).serialize(serializer)
}

/// The address of a server as it may be shown.
pub fn hide_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split_once(':').map_or(user, |(user, _)| user);
            format!("{user}@{host}")
        }
        None => authority.to_owned(),
    };
    // What follows a question mark may name a password too.
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    format!("{scheme}://{host}/{path}")
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            url: None,
            lock_timeout_ms: 10_000,
            versions_mb: 1_024,
            backups: 10,
            backup_minutes: 60,
            backups_mb: 2_048,
            cache_conversations: 100,
            cache_seconds: 300,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_never_shown() {
        for (url, shown) in [
            ("postgres://me:secret@host:5432/db", "postgres://me@host:5432/db"),
            ("postgres://me:se@cret@host/db?password=x", "postgres://me@host/db"),
            ("postgres://host", "postgres://host/"),
            ("no address: secret", "…"),
        ] {
            assert_eq!(hide_password(url), shown);
            let config = StoreConfig { url: Some(url.to_owned()), ..StoreConfig::default() };
            assert!(!serde_json::to_string(&config).unwrap().contains("secret"));
        }
    }
}
