//! The listings of servers, cached on disk in one private file for each server declaration.
//!
//! Invariant: a listing is returned only for the declaration it was stored with. A missing or
//! broken file counts as no listing, and a failed write is only logged.

use std::io;
use std::path::PathBuf;

use haft_files::Durability;
use serde::{Deserialize, Serialize};

use crate::listing::ServerListing;
use crate::server::{ServerDefinition, ServerEndpoint};

/// The version of the cache file format. It must be increased with every change to the format.
const FORMAT_VERSION: u32 = 1;
/// The maximum size of a cache file in bytes. Larger listings are not stored.
const MAX_LISTING_BYTES: u64 = 8 << 20;

/// A cache of server listings: a folder with one file for each server, so that a listing is known
/// without starting its server.
#[derive(Clone, Debug)]
pub struct ListingCache {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct CachedListing {
    form: u32,
    listing: ServerListing,
}

impl ListingCache {
    /// Creates a cache in `folder`. The folder is created when the first listing is stored.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Returns the listing that was most recently stored for `server`, or `None` if there is none.
    pub fn load(&self, server: &ServerDefinition) -> Option<ServerListing> {
        if is_linked(server) {
            return None;
        }
        let kept = haft_files::read_limited(&self.file_path(server), MAX_LISTING_BYTES).ok()?;
        let kept: CachedListing = serde_json::from_slice(&kept).ok()?;
        (kept.form == FORMAT_VERSION).then_some(kept.listing)
    }

    /// Stores the listing of `server`. Does nothing for linked servers.
    pub fn store(&self, server: &ServerDefinition, listing: &ServerListing) {
        if is_linked(server) {
            return;
        }
        if let Err(error) = self.write_file(server, listing) {
            tracing::warn!(server = server.name, %error, "the list of an MCP server could not be kept");
        }
    }

    fn write_file(&self, server: &ServerDefinition, listing: &ServerListing) -> io::Result<()> {
        let kept = serde_json::to_vec(&CachedListing {
            form: FORMAT_VERSION,
            listing: listing.clone(),
        })?;
        if kept.len() as u64 > MAX_LISTING_BYTES {
            return Err(io::Error::other("it is too large"));
        }
        haft_files::replace_file(&self.file_path(server), &kept, Durability::Process)
    }

    fn file_path(&self, server: &ServerDefinition) -> PathBuf {
        self.folder.join(format!(
            "{}-{}.json",
            haft_types::encode_file_name(&server.name),
            &hash_declaration(server)[..32]
        ))
    }
}

/// True for a server behind a `ServerLink`. Linked servers are not cached, because they are
/// identified by name alone, and another session may use the name for a different server.
fn is_linked(server: &ServerDefinition) -> bool {
    matches!(server.endpoint, ServerEndpoint::Linked(_))
}

/// Hashes all settings of a server that affect which tools, resources, and prompts it offers. The
/// server's origin, permission, timeouts, and tool filter are not included.
fn hash_declaration(server: &ServerDefinition) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut hash_field = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    hash_field(&server.name);
    match &server.endpoint {
        ServerEndpoint::Command {
            program,
            args,
            env,
            cwd,
            starts_apart: _,
        } => {
            hash_field("command");
            hash_field(program);
            hash_field(&cwd.to_string_lossy());
            hash_field(&args.len().to_string());
            for arg in args {
                hash_field(arg);
            }
            env.iter()
                .flat_map(|(name, value)| [name, value])
                .for_each(|text| hash_field(text));
        }
        ServerEndpoint::Linked(_) => hash_field("linked"),
        ServerEndpoint::Http {
            url,
            headers,
            // A new token doesn't change what the server offers.
            bearer: _,
        } => {
            hash_field("http");
            hash_field(url);
            headers
                .iter()
                .flat_map(|(name, value)| [name, value])
                .for_each(|text| hash_field(text));
        }
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;
    use crate::config::{Protocol, ToolFilter};
    use crate::listing::ToolInfo;
    use crate::server::ServerOrigin;

    fn server(args: &[&str]) -> ServerDefinition {
        ServerDefinition {
            name: "s".into(),
            origin: ServerOrigin::User,
            endpoint: ServerEndpoint::Command {
                program: "run".into(),
                args: args.iter().map(|arg| (*arg).to_owned()).collect(),
                env: vec![("KEY".into(), "s3cret".into())],
                cwd: "/".into(),
                starts_apart: false,
            },
            confinement: crate::server::ServerConfinement::Default,
            requested_reach: crate::config::ServerReach::default(),
            timeout: Duration::from_secs(1),
            startup_timeout: Duration::from_secs(1),
            protocol: Protocol::Auto,
            filter: ToolFilter::default(),
            permission: None,
            oauth: crate::server::Oauth::default(),
        }
    }

    #[test]
    fn load_finds_a_listing_only_for_an_equal_declaration() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ListingCache::new(folder.path().join("lists"));
        let listing = ServerListing {
            tools: vec![ToolInfo {
                name: "t".into(),
                ..ToolInfo::default()
            }],
            ..ServerListing::default()
        };
        assert_eq!(cache.load(&server(&["a"])), None);
        cache.store(&server(&["a"]), &listing);
        assert_eq!(cache.load(&server(&["a"])), Some(listing.clone()));
        assert_eq!(cache.load(&server(&["a", "b"])), None);
        assert_eq!(cache.load(&server(&["ab"])), None);
        let slower = ServerDefinition {
            timeout: Duration::from_secs(9),
            ..server(&["a"])
        };
        assert_eq!(
            cache.load(&slower),
            Some(listing),
            "its times do not matter"
        );
    }

    #[test]
    fn cache_files_are_private_without_keys_and_ignored_if_broken() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ListingCache::new(folder.path().join("lists"));
        cache.store(&server(&[]), &ServerListing::default());
        let file = cache.file_path(&server(&[]));
        let mode =
            |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(&cache.folder)), (0o600, 0o700));
        assert!(!fs::read_to_string(&file).unwrap().contains("s3cret"));
        fs::write(&file, "{").unwrap();
        assert_eq!(cache.load(&server(&[])), None);
    }
}
