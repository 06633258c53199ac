//! The changes of permissions that a client sends with its answer to an approval request
//! (`updatedPermissions`).
//!
//! Invariant: a rule that cannot be parsed is reported and never becomes an allow rule. A deny or
//! ask rule is then replaced by a wider rule, if there is one.

use haft_permission::PermissionRule;
use haft_types::{Decision, PermissionMode, UnknownMode};
use serde_json::Value;

/// A change that applies until the end of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PermissionUpdate {
    Rule {
        decision: Decision,
        /// The rule, in the form that [`PermissionRule::parse`] reads.
        rule: String,
    },
    Mode(PermissionMode),
}

/// Parses the list of changes, which may be null. The second list contains messages
/// to the client about changes that are refused or applied differently.
pub(crate) fn parse_updates(updates: &Value) -> (Vec<PermissionUpdate>, Vec<String>) {
    let mut parsed = Vec::new();
    let mut problems = Vec::new();
    for update in updates.as_array().into_iter().flatten() {
        let kind = update["type"].as_str().unwrap_or_default();
        match kind {
            "addRules" => parse_rules(update, &mut parsed, &mut problems),
            "setMode" => match parse_mode(update) {
                Ok(mode) => parsed.push(PermissionUpdate::Mode(mode)),
                Err(error) => problems.push(format!("`setMode`: {error}")),
            },
            _ => {
                problems.push(format!(
                    "`{kind}` is not supported; `addRules` and `setMode` are"
                ));
                continue;
            }
        }
        let destination = update["destination"].as_str().unwrap_or("session");
        if destination != "session" {
            problems.push(format!(
                "the change lasts until the end of the session: nothing is written to `{destination}`"
            ));
        }
    }
    (parsed, problems)
}

fn parse_mode(update: &Value) -> Result<PermissionMode, UnknownMode> {
    update["mode"].as_str().unwrap_or_default().parse()
}

fn parse_rules(update: &Value, parsed: &mut Vec<PermissionUpdate>, problems: &mut Vec<String>) {
    let decision = match update["behavior"].as_str().unwrap_or_default() {
        "allow" => Decision::Allow,
        "ask" => Decision::Ask,
        "deny" => Decision::Deny,
        other => return problems.push(format!("`addRules`: `{other}` is not a behavior")),
    };
    for given in update["rules"].as_array().into_iter().flatten() {
        let tool = given["toolName"].as_str().unwrap_or_default();
        let rule = match given["ruleContent"].as_str() {
            // Claude Code writes paths from the project's root as `./path`.
            Some(content) => format!("{tool}({})", content.strip_prefix("./").unwrap_or(content)),
            None => tool.to_owned(),
        };
        let readable = match PermissionRule::parse(&rule, None) {
            Ok(_) => Some(rule),
            Err(error) => {
                problems.push(format!("`addRules`: {error}"));
                (decision != Decision::Allow)
                    .then(|| PermissionRule::widen_foreign_rule(&rule))
                    .flatten()
            }
        };
        parsed.extend(readable.map(|rule| PermissionUpdate::Rule { decision, rule }));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parse_updates_reads_rules_and_modes() {
        let updates = json!([
            {"type": "addRules", "behavior": "allow", "destination": "session",
             "rules": [{"toolName": "Write"}, {"toolName": "Read", "ruleContent": "./src/**"}]},
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
        ]);
        let allow = |rule: &str| PermissionUpdate::Rule {
            decision: Decision::Allow,
            rule: rule.to_owned(),
        };
        assert_eq!(
            parse_updates(&updates),
            (
                vec![
                    allow("Write"),
                    allow("Read(src/**)"),
                    PermissionUpdate::Mode(PermissionMode::AcceptEdits),
                ],
                Vec::new()
            )
        );
        assert_eq!(parse_updates(&Value::Null), (Vec::new(), Vec::new()));
    }

    #[test]
    fn parse_updates_reports_unsupported_changes() {
        for unsupported in [
            json!({"type": "addDirectories", "directories": ["/"]}),
            json!({"type": "removeRules", "behavior": "deny", "rules": [{"toolName": "Write"}]}),
            json!({"type": "addRules", "behavior": "sometimes", "rules": [{"toolName": "Write"}]}),
            json!({"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Write("}]}),
            json!({"type": "setMode", "mode": "everything"}),
            json!({}),
        ] {
            let (parsed, problems) = parse_updates(&json!([unsupported]));
            assert_eq!((parsed.len(), problems.len()), (0, 1), "{unsupported}");
        }
    }
}
