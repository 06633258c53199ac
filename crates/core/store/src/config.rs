//! The `[store]` section of the configuration.

use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

/// The `[store]` section of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// The address of the PostgreSQL server that stores the conversations, such as
    /// `postgres://user@host/database`. Without an address, an embedded database is used.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_without_password"
    )]
    pub url: Option<String>,
    /// The maximum time in milliseconds that a write waits while another process has locked the
    /// conversation or the database.
    pub lock_timeout_ms: u32,
    /// The maximum size in megabytes of the file versions stored for undo. The oldest versions are
    /// removed first.
    pub versions_mb: u32,
    /// The number of backups to keep; 0 disables backups.
    pub backups: u32,
    /// The interval between two backups while haft runs, in minutes.
    pub backup_minutes: u32,
    /// The maximum size of all backups together, in megabytes.
    pub backups_mb: u32,
    /// The number of conversations to cache in memory; 0 disables the cache.
    pub cache_conversations: u32,
    /// The lifetime of a cached conversation in seconds.
    pub cache_seconds: u32,
}

impl StoreConfig {
    /// Returns [`Self::lock_timeout_ms`] as a duration.
    pub fn lock_timeout(&self) -> Duration {
        Duration::from_millis(self.lock_timeout_ms.into())
    }

    /// Returns [`Self::cache_seconds`] as a duration.
    pub fn cache_lifetime(&self) -> Duration {
        Duration::from_secs(self.cache_seconds.into())
    }
}

/// Serializes an address without its password, because users and programs can print the
/// configuration.
#[expect(clippy::ref_option, reason = "serde gives the field by reference")]
fn serialize_without_password<S: Serializer>(
    url: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    url.as_deref().map(hide_password).serialize(serializer)
}

/// Returns a server's address for display. In any form of address, everything that could be part of
/// a password is removed.
pub fn hide_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return "…".to_owned();
    };
    let (authority, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user.split(':').next().unwrap_or_default()), host),
        None => (None, authority),
    };
    // An `@` in the path means that the password contains characters that should be
    // percent-encoded. Without a user, text after a colon is a port, or the password of an address
    // whose host is missing.
    let is_port = host
        .rsplit_once(':')
        .is_none_or(|(_, port)| port.chars().all(|c| c.is_ascii_digit() || c == ']'));
    let is_plain_scheme = scheme
        .chars()
        .all(|c| c.is_alphanumeric() || "-._+".contains(c));
    if !is_plain_scheme || after.contains('@') || user.is_none() && !is_port {
        return "…".to_owned();
    }
    // The query may contain a password too.
    let path = after
        .split(['?', '#'])
        .next()
        .unwrap_or_default()
        .trim_start_matches('/');
    let user = user.map(|user| format!("{user}@")).unwrap_or_default();
    format!("{scheme}://{user}{host}/{path}")
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
    fn hide_password_removes_every_password() {
        for (url, shown) in [
            (
                "postgres://me:secret@host:5432/db",
                "postgres://me@host:5432/db",
            ),
            (
                "postgres://me:se@cret@host/db?password=x",
                "postgres://me@host/db",
            ),
            ("postgres://host", "postgres://host/"),
            ("no address: secret", "…"),
            ("postgres://me:sec/secret@host/db", "…"),
            ("postgres://me:sec?secret@host/db", "…"),
            ("postgres://me:sec#secret@host/db", "…"),
            ("postgres://me:secret", "…"),
            ("postgres://me@host/db?password=x@secret", "…"),
            ("me:secret@host/db://x", "…"),
            (
                "postgres://me:secret@[::1]:5432/db",
                "postgres://me@[::1]:5432/db",
            ),
            (
                "postgres://me:a:secret@host?password=secret",
                "postgres://me@host/",
            ),
            (
                "postgres://host/db?sslpassword=secret#secret",
                "postgres://host/db",
            ),
        ] {
            assert_eq!(hide_password(url), shown);
            let config = StoreConfig {
                url: Some(url.to_owned()),
                ..StoreConfig::default()
            };
            assert!(!serde_json::to_string(&config).unwrap().contains("secret"));
        }
    }
}
