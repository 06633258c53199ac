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
    /// The permission mode, which decides calls that no rule covers.
    pub mode: PermissionMode,
    /// Rules for calls that are allowed without asking.
    pub allow: Vec<String>,
    /// Rules for calls that need an approval even if another rule allows them.
    pub ask: Vec<String>,
    /// Rules for calls that are always denied.
    pub deny: Vec<String>,
    /// Rules that have examples, which are checked when the rules are loaded.
    pub rules: Vec<RuleConfig>,
    /// If true, commands that only read are run inside the sandbox without asking.
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
    /// The text of the rule, such as `execute_command(cargo test:*)`.
    pub rule: String,
    /// The decision on calls that the rule covers.
    pub decision: Decision,
    /// Command lines or paths that the rule must match.
    #[serde(default, rename = "match")]
    pub matches: Vec<String>,
    /// Command lines or paths that the rule must not match.
    #[serde(default)]
    pub no_match: Vec<String>,
}
