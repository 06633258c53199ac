//! Decides calls that reach hosts.

use haft_types::{Decision, PermissionMode};

use super::decide::Permissions;
use super::rule::PermissionRule;
use super::verdict::{Ruling, Verdict};

impl Permissions {
    /// Decides a call that reaches hosts without changing anything there. A request discloses
    /// information to the host, so it needs an approval unless a rule allows it.
    pub(super) fn decide_hosts(&self, tool: &str, hosts: &[String]) -> Verdict {
        Verdict::from_parts(
            hosts
                .iter()
                .map(|host| self.decide_host(tool, host).into_part(host))
                .collect(),
        )
    }

    fn decide_host(&self, tool: &str, host: &str) -> Ruling {
        let speaks = |rule: &&PermissionRule| {
            rule.domain_pattern_for(tool)
                .is_some_and(|domain| domain.matches_widely(host))
        };
        if let Some(rule) = self.rules.rules_for(Decision::Deny).iter().find(speaks) {
            return Ruling::by_rule(rule, Decision::Deny, &format!("`{host}`"));
        }
        if self.mode == PermissionMode::Yolo {
            return Ruling::new(Decision::Allow, "nothing is asked (permission mode `yolo`)");
        }
        if let Some(rule) = self.rules.rules_for(Decision::Ask).iter().find(speaks) {
            return Ruling::by_rule(rule, Decision::Ask, &format!("`{host}`"));
        }
        let allows = |rule: &&PermissionRule| {
            rule.covers_all_calls_of(tool)
                || rule
                    .domain_pattern_for(tool)
                    .is_some_and(|domain| domain.matches_exactly(host))
        };
        match self.rules.rules_for(Decision::Allow).iter().find(allows) {
            Some(rule) => Ruling::by_rule(rule, Decision::Allow, "it"),
            None => Ruling::new(
                Decision::Ask,
                format!("`{tool}` reaches `{host}`, and no rule allows it"),
            ),
        }
    }
}
