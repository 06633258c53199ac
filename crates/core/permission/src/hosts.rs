//! Whether a call may reach the hosts it is about.

use std::net::IpAddr;

use haft_types::{Decision, PermissionMode};

use super::decide::Permissions;
use super::rule::PermissionRule;
use super::verdict::{Ruling, Verdict};

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
        // Names are compared as they are sent: one with other letters, which would never fit, is no name.
        let inside = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        let name = folded(name);
        (!name.is_empty() && name.chars().all(inside)).then_some(Self { name, below })
    }

    /// Whether it names this host, as a rule that allows is read: to the letter.
    fn names(&self, host: &str) -> bool {
        let host = folded(host);
        match self.below {
            Subdomains::No => host == self.name,
            Subdomains::Only => self.is_above(&host),
        }
    }

    /// Whether it speaks of this host, as a rule that asks or denies is read: the hosts below are meant too.
    fn hits(&self, host: &str) -> bool {
        let host = folded(host);
        host == self.name || self.is_above(&host)
    }

    fn is_above(&self, host: &str) -> bool {
        host.strip_suffix(&self.name).is_some_and(|rest| rest.ends_with('.'))
    }
}

/// A host in the one spelling hosts are compared in. Of an address all spellings are one.
fn folded(host: &str) -> String {
    let host = host.trim_end_matches('.').to_lowercase();
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&host);
    match inner.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        Ok(IpAddr::V4(_)) | Err(_) => host,
    }
}

impl Permissions {
    /// A call that reaches hosts and changes nothing there. What is asked of a host tells it something, so it is asked first.
    pub(super) fn decide_hosts(&self, tool: &str, hosts: &[String]) -> Verdict {
        Verdict::of_parts(hosts.iter().map(|host| self.decide_host(tool, host).part(host)).collect())
    }

    fn decide_host(&self, tool: &str, host: &str) -> Ruling {
        let speaks = |rule: &&PermissionRule| rule.domain_of(tool).is_some_and(|domain| domain.hits(host));
        if let Some(rule) = self.rules.of(Decision::Deny).iter().find(speaks) {
            return Ruling::by(rule, Decision::Deny, &format!("`{host}`"));
        }
        if self.mode == PermissionMode::Yolo {
            return Ruling::new(Decision::Allow, "nothing is asked (permission mode `yolo`)");
        }
        if let Some(rule) = self.rules.of(Decision::Ask).iter().find(speaks) {
            return Ruling::by(rule, Decision::Ask, &format!("`{host}`"));
        }
        let allows = |rule: &&PermissionRule| {
            rule.is_all_of(tool) || rule.domain_of(tool).is_some_and(|domain| domain.names(host))
        };
        match self.rules.of(Decision::Allow).iter().find(allows) {
            Some(rule) => Ruling::by(rule, Decision::Allow, "it"),
            None => Ruling::new(Decision::Ask, format!("`{tool}` reaches `{host}`, and no rule allows it")),
        }
    }
}
