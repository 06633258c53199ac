//! What Claude Code's command line says that haft has no arguments for, and how it enters the
//! configuration of a run.

use std::collections::BTreeMap;
use std::fmt::Display;

use haft_agent::config::Config;
use haft_permission::{PermissionRule, RuleError};
use haft_project::Level;
use haft_project::agents::{AgentDefinition, AgentTools};
use haft_project::hooks::{HookCommand, HookGroup, HookKind};
use haft_types::{ConversationId, Decision, HookPoint, PermissionMode};
use serde::Deserialize;
use serde_json::Value;

use super::ToolNaming;
use crate::cli::options::RunArgs;
use crate::exit::usage_error;
use crate::output;
use crate::wiring;

/// The rest of a command line of Claude Code.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ClaudeOptions {
    /// Rules that allow, as they were written.
    pub(crate) allow: Vec<String>,
    /// Rules that deny, as they were written.
    pub(crate) deny: Vec<String>,
    /// The built-in tools to offer, where that was said; none when empty.
    pub(crate) tools: Option<Vec<String>>,
    /// MCP servers: JSON, or files that hold it.
    pub(crate) mcp_config: Vec<String>,
    /// Whether there are no other MCP servers.
    pub(crate) strict_mcp_config: bool,
    /// Settings: JSON, or files that hold it.
    pub(crate) settings: Vec<String>,
    /// Whose files are read, where that was said.
    pub(crate) setting_sources: Option<Vec<String>>,
    /// Agents, as JSON.
    pub(crate) agents: Option<String>,
    /// The model that is asked when the main one cannot answer.
    pub(crate) fallback_model: Option<String>,
    /// The id of the new conversation.
    pub(crate) session_id: Option<String>,
    /// Whether the program that writes the input is asked for permission.
    pub(crate) asks_client: bool,
    /// Whether nobody is asked, whatever else was said.
    pub(crate) never_asks: bool,
    /// Whether the run may go over to a mode in which nothing is asked.
    pub(crate) bypass_allowed: bool,
    /// Whether tools have the names that Claude Code gives them.
    pub(crate) renames_tools: bool,
    /// What was left out, for people.
    pub(crate) notices: Vec<String>,
}

/// What is read of settings. Other keys are for other programs.
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
    additional_directories: Vec<std::path::PathBuf>,
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

/// The model that is meant by a name of Claude Code's: one that is declared here, else that of its
/// vendor.
pub(crate) fn model_name(config: &Config, name: &str) -> String {
    let is_vendors = name.starts_with("claude")
        && !name.contains('/')
        && wiring::declared(config, name).is_err();
    if is_vendors {
        format!("anthropic/{name}")
    } else {
        name.to_owned()
    }
}

/// Seconds a hook of settings may take that does not say.
const HOOK_TIMEOUT: u64 = 60;
/// The keys of settings that are obeyed.
const OBEYED: [&str; 3] = ["permissions", "model", "hooks"];

impl ClaudeOptions {
    /// Puts everything that was said into the arguments and the configuration of the run.
    pub(crate) fn apply(&self, args: &mut RunArgs, config: &mut Config) -> anyhow::Result<()> {
        for notice in &self.notices {
            output::tell(&format!("haft: {notice}"));
        }
        add_rules(config, Decision::Allow, &self.allow)?;
        add_rules(config, Decision::Deny, &self.deny)?;
        for given in &self.settings {
            take_settings(given, args, config)?;
        }
        if let Some(fallback) = &self.fallback_model {
            let roles = &mut config.model_roles.main;
            roles.extend(
                fallback
                    .split(',')
                    .map(|name| name.trim().to_owned())
                    .filter(|name| !name.is_empty()),
            );
        }
        args.ask |= self.asks_client;
        args.ask &= !self.never_asks;
        Ok(())
    }

    /// By which names tools are known.
    pub(crate) fn naming(&self) -> ToolNaming {
        if self.renames_tools {
            ToolNaming::Claude
        } else {
            ToolNaming::Haft
        }
    }

    /// The MCP servers for this session, as JSON.
    pub(crate) fn servers(&self) -> anyhow::Result<Vec<String>> {
        let texts = self
            .mcp_config
            .iter()
            .map(|given| text_or_file("--mcp-config", given));
        texts.collect()
    }

    /// The names of those servers, and whether somebody speaks with them already.
    pub(crate) fn server_names(&self) -> Vec<(String, bool)> {
        let texts = self.servers().unwrap_or_default();
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

    /// The tools to offer, by the names haft gives sets of them. Those of MCP servers are not among
    /// what was chosen from.
    pub(crate) fn offered_tools(&self) -> Option<Vec<String>> {
        let of_servers = || (!self.mcp_config.is_empty()).then(|| "mcp__*".to_owned());
        match self.tools.as_deref()? {
            [one] if one == "default" => None,
            [] => Some(vec![of_servers().unwrap_or_else(|| "none".to_owned())]),
            names => Some(names.iter().cloned().chain(of_servers()).collect()),
        }
    }

    /// The agents for this run.
    pub(crate) fn agents(&self) -> anyhow::Result<Vec<AgentDefinition>> {
        let Some(text) = &self.agents else {
            return Ok(Vec::new());
        };
        let wrong = |why: &dyn Display| usage_error(format!("`--agents`: {why}"));
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
                system_prompt: None,
                role: agent.prompt,
                path: format!("--agents/{name}").into(),
                level: Level::User,
                name,
            })
        };
        given.into_iter().map(agent).collect()
    }

    /// The id of the new conversation, where one was chosen.
    pub(crate) fn conversation(&self) -> anyhow::Result<Option<ConversationId>> {
        let Some(id) = &self.session_id else {
            return Ok(None);
        };
        let id = uuid::Uuid::parse_str(id)
            .map_err(|error| usage_error(format!("`--session-id`: {error}")))?;
        Ok(Some(ConversationId::from(id)))
    }

    /// Whether files of the project are not to be read.
    pub(crate) fn ignores_project(&self) -> bool {
        self.setting_sources
            .as_ref()
            .is_some_and(|sources| !sources.iter().any(|source| source == "project"))
    }
}

/// Adds rules for this run. One that denies and cannot be read stops it.
fn add_rules(config: &mut Config, decision: Decision, rules: &[String]) -> anyhow::Result<()> {
    for rule in rules {
        // Paths from the project's root are written in this way.
        let rule = rule.replace("(./", "(");
        let home = wiring::environment().home();
        match (PermissionRule::parse(&rule, home.as_deref()), decision) {
            (Ok(_), Decision::Allow) => config.permissions.allow.push(rule),
            (Ok(_), Decision::Ask) => config.permissions.ask.push(rule),
            (Ok(_), Decision::Deny) => config.permissions.deny.push(rule),
            // It names a tool haft does not have.
            (Err(RuleError::NoPattern { .. }), _) if !names_own_tool(&rule) => {
                output::tell(&format!("haft: {}", text!("claude-foreign-rule", rule)));
            }
            (Err(error), Decision::Allow) => output::tell(&format!("haft: {error}")),
            (Err(error), Decision::Ask | Decision::Deny) => {
                // What tightens may hold for more than was written, and never for less.
                let wider =
                    wiring::wider_rule(&rule).ok_or_else(|| usage_error(error.to_string()))?;
                output::tell(&format!(
                    "haft: {}",
                    text!("claude-wider-rule", rule, wider = wider.as_str())
                ));
                let rules = &mut config.permissions;
                if decision == Decision::Ask {
                    rules.ask.push(wider);
                } else {
                    rules.deny.push(wider);
                }
            }
        }
    }
    Ok(())
}

/// Whether the tool of a rule is one of those with patterns of their own.
fn names_own_tool(rule: &str) -> bool {
    let tool = rule.split('(').next().unwrap_or_default().trim();
    ToolNaming::Claude.is_known(tool)
}

/// JSON as it was given, or out of the file of that name.
fn text_or_file(flag: &str, given: &str) -> anyhow::Result<String> {
    if given.trim_start().starts_with('{') {
        return Ok(given.to_owned());
    }
    let text = std::fs::read_to_string(given)
        .map_err(|error| usage_error(format!("`{flag}`: cannot read {given}: {error}")))?;
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

/// Settings are JSON, or the path of a file that holds it.
fn take_settings(given: &str, args: &mut RunArgs, config: &mut Config) -> anyhow::Result<()> {
    let wrong = |why: &dyn Display| usage_error(format!("`--settings`: {why}"));
    let text = text_or_file("--settings", given)?;
    let value: Value = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    let left: Vec<_> = value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect();
    for key in left.into_iter().filter(|key| !OBEYED.contains(key)) {
        output::tell(&format!("haft: {}", text!("claude-ignored-setting", key)));
    }
    let ClaudeSettings { permissions, model } =
        serde_json::from_value(value.clone()).map_err(|error| wrong(&error))?;
    add_rules(config, Decision::Allow, &permissions.allow)?;
    add_rules(config, Decision::Ask, &permissions.ask)?;
    add_rules(config, Decision::Deny, &permissions.deny)?;
    args.add_dir.extend(permissions.additional_directories);
    if args.permission_mode.is_none()
        && let Some(mode) = permissions.default_mode
    {
        let mode: PermissionMode = mode.parse().map_err(|error| wrong(&error))?;
        args.permission_mode = Some(mode);
    }
    args.model = args.model.take().or(model);
    take_hooks(&value["hooks"], config);
    Ok(())
}

/// Hooks of settings are the user's: who gives them on the command line wants them run.
fn take_hooks(hooks: &Value, config: &mut Config) {
    let ignored =
        |what: &str| output::tell(&format!("haft: {}", text!("claude-ignored-hook", what)));
    for (name, groups) in hooks.as_object().into_iter().flatten() {
        let Some(point) = HookPoint::by_name(name) else {
            ignored(name);
            continue;
        };
        let command = |hook: &Value| match (
            hook["type"].as_str().unwrap_or("command"),
            hook["command"].as_str(),
        ) {
            ("command", Some(command)) => {
                let timeout = hook["timeout"].as_u64().unwrap_or(HOOK_TIMEOUT);
                let kind = HookKind::ClaudeCommand;
                let command = command.to_owned();
                Some(HookCommand {
                    kind,
                    command,
                    timeout,
                    sandbox: hook["sandbox"] != false,
                })
            }
            (kind, _) => {
                ignored(&format!("{name}, {kind}"));
                None
            }
        };
        for group in groups.as_array().into_iter().flatten() {
            let hooks = group["hooks"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(command)
                .collect();
            let matcher = group["matcher"].as_str().unwrap_or_default().to_owned();
            config
                .hooks
                .entry(point)
                .or_default()
                .push(HookGroup { matcher, hooks });
        }
    }
}
