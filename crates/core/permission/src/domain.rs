//! Patterns for the hosts that rules name.

use std::net::IpAddr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DomainPattern {
    name: String,
    below: Subdomains,
}

/// Controls whether a pattern covers the host that it names, or only the subdomains of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subdomains {
    No,
    Only,
}

impl DomainPattern {
    /// Parses `domain:example.com` or `domain:*.example.com`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let named = text.strip_prefix("domain:")?.trim();
        let (name, below) = match named.strip_prefix("*.") {
            Some(name) => (name, Subdomains::Only),
            None => (named, Subdomains::No),
        };
        // Host names are compared as they are sent. A name with other characters would never match,
        // so it is rejected.
        let inside = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        let name = canonicalize_host(name);
        (!name.is_empty() && name.chars().all(inside)).then_some(Self { name, below })
    }

    /// Returns true if an allow rule with this pattern covers `host`. The pattern is applied
    /// exactly as written.
    pub(super) fn matches_exactly(&self, host: &str) -> bool {
        let host = canonicalize_host(host);
        match self.below {
            Subdomains::No => host == self.name,
            Subdomains::Only => self.is_parent_of(&host),
        }
    }

    /// Returns true if an ask or deny rule with this pattern covers `host`. Such a rule covers both
    /// the named host and all of its subdomains.
    pub(super) fn matches_widely(&self, host: &str) -> bool {
        let host = canonicalize_host(host);
        host == self.name || self.is_parent_of(&host)
    }

    fn is_parent_of(&self, host: &str) -> bool {
        host.strip_suffix(&self.name)
            .is_some_and(|rest| rest.ends_with('.'))
    }
}

/// Converts a host to its canonical spelling, in which hosts can be compared.
fn canonicalize_host(host: &str) -> String {
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
