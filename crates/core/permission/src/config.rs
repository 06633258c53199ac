//! The `[permissions]` section.

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
    /// How much may happen without asking.
    pub mode: PermissionMode,
    /// What may happen without asking.
    pub allow: Vec<String>,
    /// What is asked even where it would be allowed.
    pub ask: Vec<String>,
    /// What never happens.
    pub deny: Vec<String>,
    /// Rules with examples.
    pub rules: Vec<RuleConfig>,
    /// Whether commands that only read run without asking inside the sandbox.
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

/// A rule with examples that are checked whenever it is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// The rule.
    pub rule: String,
    /// What it decides.
    pub decision: Decision,
    /// Command lines or paths it must decide.
    #[serde(default, rename = "match")]
    pub matches: Vec<String>,
    /// Command lines or paths it must not decide.
    #[serde(default)]
    pub no_match: Vec<String>,
}
