//! The hosts a rule names.

use std::net::IpAddr;

/// The hosts a rule names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DomainPattern {
    name: String,
    below: Subdomains,
}

/// Whether the hosts below a name are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subdomains {
    No,
    Only,
}

impl DomainPattern {
    /// Reads `domain:example.com` or `domain:*.example.com`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let named = text.strip_prefix("domain:")?.trim();
        let (name, below) = match named.strip_prefix("*.") {
            Some(name) => (name, Subdomains::Only),
            None => (named, Subdomains::No),
        };
        // Names are compared as they are sent: one with other letters, which would never fit, is no
        // name.
        let inside = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        let name = folded(name);
        (!name.is_empty() && name.chars().all(inside)).then_some(Self { name, below })
    }

    /// Whether it names this host, as a rule that allows is read: to the letter.
    pub(super) fn names(&self, host: &str) -> bool {
        let host = folded(host);
        match self.below {
            Subdomains::No => host == self.name,
            Subdomains::Only => self.is_above(&host),
        }
    }

    /// Whether it speaks of this host, as a rule that asks or denies is read: the hosts below are
    /// meant too.
    pub(super) fn hits(&self, host: &str) -> bool {
        let host = folded(host);
        host == self.name || self.is_above(&host)
    }

    fn is_above(&self, host: &str) -> bool {
        host.strip_suffix(&self.name)
            .is_some_and(|rest| rest.ends_with('.'))
    }
}

/// A host in the one spelling hosts are compared in. Of an address all spellings are one.
fn folded(host: &str) -> String {
    let host = host.trim_end_matches('.').to_lowercase();
    let inner = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(&host);
    match inner.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        Ok(IpAddr::V4(_)) | Err(_) => host,
    }
}
