//! The options of Claude Code's command line that haft has no flags for, and their effect on the
//! configuration of a run.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use haft_agent::config::Config;
use haft_agent::{HostEnvironment, resolve_model};
use haft_permission::{PermissionRule, RuleError};
use haft_project::Level;
use haft_project::agents::{AgentDefinition, AgentTools};
use haft_project::hooks::{HookCommand, HookGroup, HookKind};
use haft_types::{ConversationId, Decision, HookPoint, PermissionMode};
use serde::Deserialize;
use serde_json::Value;

use crate::{ClaudeError, ClaudeNotice, ToolNaming};

/// The options of a Claude Code command line that haft has no flags for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaudeOptions {
    /// The permission rules that allow calls, as given.
    pub allow: Vec<String>,
    /// The permission rules that deny calls, as given.
    pub deny: Vec<String>,
    /// The names of the built-in tools to offer. If `None`, all are offered; if empty, none.
    pub tools: Option<Vec<String>>,
    /// The declarations of MCP servers, each as JSON or as the path of a JSON file.
    pub mcp_config: Vec<String>,
    /// True if the MCP servers of the configuration are ignored.
    pub strict_mcp_config: bool,
    /// The settings objects, each as JSON or as the path of a JSON file.
    pub settings: Vec<String>,
    /// The names of the settings sources whose files are read, such as `project`. If `None`, all
    /// are read.
    pub setting_sources: Option<Vec<String>>,
    /// The declarations of agents, as one JSON object.
    pub agents: Option<String>,
    /// The fallback models, separated by commas.
    pub fallback_model: Option<String>,
    /// The id that the new conversation gets, if one was given.
    pub session_id: Option<String>,
    /// True if calls that need an approval are sent to the client for a decision.
    pub asks_client: bool,
    /// True if no approvals are requested, even if another flag enables them.
    pub never_asks: bool,
    /// True if the run may switch to the mode that skips all approvals.
    pub bypass_allowed: bool,
    /// True if the client knows tools by Claude Code's names.
    pub renames_tools: bool,
    /// The notices about options that haft ignores, to be reported to the user.
    pub notices: Vec<ClaudeNotice>,
}

/// The settings of a run that [`ClaudeOptions::apply_to_run`] reads and changes.
pub struct RunSettings<'a> {
    pub config: &'a mut Config,
    /// The folders that the run may use outside the project.
    pub added_folders: &'a mut Vec<PathBuf>,
    /// The permission mode, if a flag sets it.
    pub mode: &'a mut Option<PermissionMode>,
    /// The model, if a flag names it.
    pub model: &'a mut Option<String>,
    /// True if approvals are requested from the user or the client.
    pub ask: &'a mut bool,
    /// The home folder, which rules abbreviate as `~`.
    pub home: Option<&'a Path>,
    /// A function that reports a notice to the user.
    pub notify: &'a mut dyn FnMut(&ClaudeNotice),
}

/// The supported keys of `--settings`, except hooks.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ClaudeSettings {
    permissions: SettingsPermissions,
    model: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SettingsPermissions {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
    default_mode: Option<String>,
    additional_directories: Vec<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GivenAgent {
    description: String,
    prompt: String,
    tools: Option<Vec<String>>,
    disallowed_tools: Option<Vec<String>>,
    model: Option<String>,
}

/// Translates a model name of Claude Code to a name that haft knows. A configured model keeps its
/// name; any other name that begins with `claude` gets the prefix `anthropic/`.
pub fn translate_model_name(environment: &HostEnvironment, config: &Config, name: &str) -> String {
    let is_vendors = name.starts_with("claude")
        && !name.contains('/')
        && resolve_model(environment, config, name).is_err();
    if is_vendors {
        format!("anthropic/{name}")
    } else {
        name.to_owned()
    }
}

/// The default timeout of a hook in settings, in seconds.
const DEFAULT_HOOK_TIMEOUT_SECONDS: u64 = 60;
/// The supported keys of `--settings`.
const SUPPORTED_SETTINGS: [&str; 3] = ["permissions", "model", "hooks"];

impl ClaudeOptions {
    /// Applies the options to the settings of a run, and reports the notices about ignored options.
    pub fn apply_to_run(&self, mut run: RunSettings<'_>) -> Result<(), ClaudeError> {
        for notice in &self.notices {
            (run.notify)(notice);
        }
        run.add_rules(Decision::Allow, &self.allow)?;
        run.add_rules(Decision::Deny, &self.deny)?;
        for given in &self.settings {
            run.apply_settings(given)?;
        }
        if let Some(fallback) = &self.fallback_model {
            let roles = &mut run.config.model_roles.main;
            roles.extend(
                fallback
                    .split(',')
                    .map(|name| name.trim().to_owned())
                    .filter(|name| !name.is_empty()),
            );
        }
        *run.ask |= self.asks_client;
        *run.ask &= !self.never_asks;
        Ok(())
    }

    /// Returns the names under which the client knows tools.
    pub fn naming(&self) -> ToolNaming {
        if self.renames_tools {
            ToolNaming::Claude
        } else {
            ToolNaming::Haft
        }
    }

    /// Returns the MCP servers that the command line declares, each declaration as JSON. Reads
    /// files where paths were given.
    pub fn read_servers(&self) -> Result<Vec<String>, ClaudeError> {
        let texts = self
            .mcp_config
            .iter()
            .map(|given| read_json_or_file("--mcp-config", given));
        texts.collect()
    }

    /// Returns the names of the MCP servers that the command line declares, each with a flag. The
    /// flag is true if the server runs inside the client and is therefore connected already.
    pub fn server_names(&self) -> Vec<(String, bool)> {
        let texts = self.read_servers().unwrap_or_default();
        let values = texts
            .iter()
            .filter_map(|text| serde_json::from_str::<Value>(text).ok());
        let named = |value: Value| {
            let servers = value["mcpServers"].as_object().cloned().unwrap_or_default();
            servers
                .into_iter()
                .map(|(name, server)| (name, server["type"] == "sdk"))
                .collect::<Vec<_>>()
        };
        values.flat_map(named).collect()
    }

    /// Returns the tools to offer, as patterns of haft's tool names. The tools of the command
    /// line's MCP servers are always included, because `--tools` selects only built-in tools.
    /// Returns `None` if all tools are offered.
    pub fn offered_tools(&self) -> Option<Vec<String>> {
        let of_servers = || (!self.mcp_config.is_empty()).then(|| "mcp__*".to_owned());
        match self.tools.as_deref()? {
            [one] if one == "default" => None,
            [] => Some(vec![of_servers().unwrap_or_else(|| "none".to_owned())]),
            names => Some(names.iter().cloned().chain(of_servers()).collect()),
        }
    }

    /// Parses the agents that `--agents` declares.
    pub fn parse_agents(&self) -> Result<Vec<AgentDefinition>, ClaudeError> {
        let Some(text) = &self.agents else {
            return Ok(Vec::new());
        };
        let wrong = |why: &dyn Display| ClaudeError::Agents(why.to_string());
        let given: BTreeMap<String, GivenAgent> =
            serde_json::from_str(text).map_err(|error| wrong(&error))?;
        let agent = |(name, agent): (String, GivenAgent)| {
            if name.is_empty()
                || name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/')
            {
                return Err(wrong(&format!(
                    "`{name}` is not a name: use letters, digits, `-` and `_`"
                )));
            }
            let denied = agent.disallowed_tools.unwrap_or_default();
            if !denied.is_empty() && agent.tools.is_none() {
                return Err(wrong(&format!(
                    "`{name}`: `disallowedTools` needs `tools` that it is taken from"
                )));
            }
            Ok(AgentDefinition {
                description: agent.description,
                tools: match agent.tools {
                    None => AgentTools::All,
                    Some(names) => AgentTools::Only(
                        names
                            .into_iter()
                            .filter(|name| !denied.contains(name))
                            .collect(),
                    ),
                },
                model: agent.model.filter(|model| model != "inherit"),
                include_rules: false,
                worktree: false,
                fork: false,
                system_prompt: None,
                role: agent.prompt,
                path: format!("--agents/{name}").into(),
                level: Level::User,
                name,
            })
        };
        given.into_iter().map(agent).collect()
    }

    /// Returns the id of the new conversation, if the command line sets one.
    pub fn conversation_id(&self) -> Result<Option<ConversationId>, ClaudeError> {
        let Some(id) = &self.session_id else {
            return Ok(None);
        };
        let id = uuid::Uuid::parse_str(id).map_err(ClaudeError::SessionId)?;
        Ok(Some(ConversationId::from(id)))
    }

    /// True if the project's settings files are ignored, because `--setting-sources` does not
    /// include `project`.
    pub fn ignores_project(&self) -> bool {
        self.setting_sources
            .as_ref()
            .is_some_and(|sources| !sources.iter().any(|source| source == "project"))
    }
}

impl RunSettings<'_> {
    /// Adds permission rules to the run. Fails if an ask or deny rule can neither be parsed nor
    /// replaced by a more general rule, because such rules must not be dropped.
    fn add_rules(&mut self, decision: Decision, rules: &[String]) -> Result<(), ClaudeError> {
        let permissions = &mut self.config.permissions;
        for rule in rules {
            // Claude Code writes paths from the project's root as `./path`.
            let rule = rule.replace("(./", "(");
            match (PermissionRule::parse(&rule, self.home), decision) {
                (Ok(_), Decision::Allow) => permissions.allow.push(rule),
                (Ok(_), Decision::Ask) => permissions.ask.push(rule),
                (Ok(_), Decision::Deny) => permissions.deny.push(rule),
                (Err(RuleError::NoPattern { .. }), _) if !is_for_known_tool(&rule) => {
                    (self.notify)(&ClaudeNotice::ForeignRule(rule));
                }
                (Err(error), Decision::Allow) => (self.notify)(&ClaudeNotice::InvalidRule(error)),
                (Err(error), Decision::Ask | Decision::Deny) => {
                    // A restrictive rule may cover more than was written, but never less.
                    let wider = PermissionRule::widen_foreign_rule(&rule)
                        .ok_or(ClaudeError::Rule(error))?;
                    (self.notify)(&ClaudeNotice::WiderRule {
                        rule,
                        wider: wider.clone(),
                    });
                    if decision == Decision::Ask {
                        permissions.ask.push(wider);
                    } else {
                        permissions.deny.push(wider);
                    }
                }
            }
        }
        Ok(())
    }

    /// Applies one settings object to the run. It is given as JSON or as the path of a JSON file.
    fn apply_settings(&mut self, given: &str) -> Result<(), ClaudeError> {
        let wrong = |why: &dyn Display| ClaudeError::Settings(why.to_string());
        let text = read_json_or_file("--settings", given)?;
        let value: Value = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        let keys = value.as_object().into_iter().flatten().map(|(key, _)| key);
        for key in keys.filter(|key| !SUPPORTED_SETTINGS.contains(&key.as_str())) {
            (self.notify)(&ClaudeNotice::IgnoredSetting(key.clone()));
        }
        let ClaudeSettings { permissions, model } =
            serde_json::from_value(value.clone()).map_err(|error| wrong(&error))?;
        self.add_rules(Decision::Allow, &permissions.allow)?;
        self.add_rules(Decision::Ask, &permissions.ask)?;
        self.add_rules(Decision::Deny, &permissions.deny)?;
        self.added_folders
            .extend(permissions.additional_directories);
        if self.mode.is_none()
            && let Some(mode) = permissions.default_mode
        {
            let mode: PermissionMode = mode.parse().map_err(|error| wrong(&error))?;
            *self.mode = Some(mode);
        }
        if self.model.is_none() {
            *self.model = model;
        }
        self.add_hooks(&value["hooks"]);
        Ok(())
    }

    /// Adds the hooks of a settings file as the user's own hooks, because the user passed the
    /// settings on the command line.
    fn add_hooks(&mut self, hooks: &Value) {
        for (name, groups) in hooks.as_object().into_iter().flatten() {
            let Some(point) = HookPoint::from_name(name) else {
                (self.notify)(&ClaudeNotice::IgnoredHook(name.clone()));
                continue;
            };
            for group in groups.as_array().into_iter().flatten() {
                let mut hooks = Vec::new();
                for hook in group["hooks"].as_array().into_iter().flatten() {
                    match parse_hook_command(hook) {
                        Ok(command) => hooks.push(command),
                        Err(kind) => {
                            (self.notify)(&ClaudeNotice::IgnoredHook(format!("{name}, {kind}")));
                        }
                    }
                }
                let matcher = group["matcher"].as_str().unwrap_or_default().to_owned();
                self.config
                    .hooks
                    .entry(point)
                    .or_default()
                    .push(HookGroup { matcher, hooks });
            }
        }
    }
}

/// Parses a hook of `--settings`. The error is the kind of the hook, if that kind is not supported.
fn parse_hook_command(hook: &Value) -> Result<HookCommand, &str> {
    let kind = hook["type"].as_str().unwrap_or("command");
    match (kind, hook["command"].as_str()) {
        ("command", Some(command)) => Ok(HookCommand {
            kind: HookKind::ClaudeCommand,
            command: command.to_owned(),
            timeout: hook["timeout"]
                .as_u64()
                .unwrap_or(DEFAULT_HOOK_TIMEOUT_SECONDS),
            sandbox: hook["sandbox"] != false,
        }),
        _ => Err(kind),
    }
}

/// True if a permission rule names a tool that both Claude Code and haft have.
fn is_for_known_tool(rule: &str) -> bool {
    let tool = rule.split('(').next().unwrap_or_default().trim();
    ToolNaming::Claude.is_known(tool)
}

/// Returns `given` unchanged if it is a JSON object, else the content of the file with that path.
fn read_json_or_file(flag: &'static str, given: &str) -> Result<String, ClaudeError> {
    if given.trim_start().starts_with('{') {
        return Ok(given.to_owned());
    }
    let text = std::fs::read_to_string(given).map_err(|error| ClaudeError::File {
        flag,
        file: given.to_owned(),
        error,
    })?;
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}
