//! Decides calls that reach hosts.

use haft_types::{Decision, PermissionMode};

use super::decide::Permissions;
use super::rule::PermissionRule;
use super::verdict::{Ruling, Verdict};

impl Permissions {
    /// Decides a call that reaches hosts without changing anything there. A request discloses
    /// information to the host, so it needs an approval unless a rule allows it.
    pub(super) fn decide_hosts(&self, tool: &str, hosts: &[String]) -> Verdict {
        Verdict::of_parts(
            hosts
                .iter()
                .map(|host| self.decide_host(tool, host).part(host))
                .collect(),
        )
    }

    fn decide_host(&self, tool: &str, host: &str) -> Ruling {
        let speaks =
            |rule: &&PermissionRule| rule.domain_of(tool).is_some_and(|domain| domain.hits(host));
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
            rule.is_all_of(tool)
                || rule
                    .domain_of(tool)
                    .is_some_and(|domain| domain.names(host))
        };
        match self.rules.of(Decision::Allow).iter().find(allows) {
            Some(rule) => Ruling::by(rule, Decision::Allow, "it"),
            None => Ruling::new(
                Decision::Ask,
                format!("`{tool}` reaches `{host}`, and no rule allows it"),
            ),
        }
    }
}
