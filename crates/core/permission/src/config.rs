//! The `[permissions]` section of the configuration.

use haft_types::{Decision, PermissionMode};
use serde::{Deserialize, Serialize};

/// The `[permissions]` section of the configuration.
///
/// ```
/// let config: haft_permission::PermissionsConfig = serde_json::from_value(serde_json::json!({
///     "allow": ["execute_command(git status:*)", "read_file(src/**)"],
///     "rules": [{
///         "rule": "execute_command(cargo test:*)",
///         "decision": "allow",
///         "match": ["cargo test -p parser"],
///         "no_match": ["cargo test; rm -rf target", "cargo testall"],
///     }],
/// })).unwrap();
/// assert!(haft_permission::PermissionRules::load(&config, None).is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PermissionsConfig {
    /// The permission mode.
    pub mode: PermissionMode,
    /// Rules for calls that are allowed without asking.
    pub allow: Vec<String>,
    /// Rules for calls that need an approval even if another rule allows them.
    pub ask: Vec<String>,
    /// Rules for calls that are always denied.
    pub deny: Vec<String>,
    /// Rules with examples.
    pub rules: Vec<RuleConfig>,
    /// True if commands that only read run without asking inside the sandbox.
    pub reading_commands: bool,
}

impl Default for PermissionsConfig {
    fn default() -> Self {
        let allow = Vec::new();
        let ask = Vec::new();
        let deny = Vec::new();
        let rules = Vec::new();
        Self {
            mode: PermissionMode::default(),
            allow,
            ask,
            deny,
            rules,
            reading_commands: true,
        }
    }
}

/// A rule with examples that are checked whenever the rule is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// The rule's text.
    pub rule: String,
    /// The decision of the rule.
    pub decision: Decision,
    /// Command lines or paths that the rule must match.
    #[serde(default, rename = "match")]
    pub matches: Vec<String>,
    /// Command lines or paths that the rule must not match.
    #[serde(default)]
    pub no_match: Vec<String>,
}
