//! The options of a recorded run.

use std::path::PathBuf;

use clap::Args;
use haft_types::PermissionMode;
use serde::{Deserialize, Serialize};

use crate::cli::options::parse_positive;

/// The options of the recorded run. A file contains those with which it was saved.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ReplayOptions {
    /// The permission mode of the run: plan, ask, accept-edits, auto or yolo.
    #[arg(long, value_name = "MODE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) permission_mode: Option<PermissionMode>,
    /// Allow what this rule matches; may be repeated.
    #[arg(long, value_name = "RULE")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) allow: Vec<String>,
    /// Deny what this rule matches; may be repeated.
    #[arg(long, value_name = "RULE")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) deny: Vec<String>,
    /// Use the role and tools of this agent.
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// Offer only these tools.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allowed_tools: Option<Vec<String>>,
    /// Treat the task as a goal; needs the limit of the run.
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) goal: bool,
    /// Require an answer in JSON that matches this schema.
    #[arg(long, value_name = "SCHEMA")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) json_schema: Option<String>,
    /// The limit of replies that the run had.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_turns: Option<u32>,
    /// The limit of tokens that the run had.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_total_tokens: Option<u64>,
    /// The limit of money that the run had.
    #[arg(long, value_name = "USD", value_parser = parse_positive)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_budget_usd: Option<f64>,
    /// The system prompt of the run.
    #[arg(long, value_name = "TEXT", conflicts_with = "system_prompt_file")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) system_prompt: Option<String>,
    /// The file with the system prompt of the run.
    #[arg(long, value_name = "PATH")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) system_prompt_file: Option<PathBuf>,
    /// The text at the end of the system prompt.
    #[arg(long, value_name = "TEXT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) append_system_prompt: Option<String>,
    /// Let tools access this folder, too; may be repeated.
    #[arg(long, value_name = "DIR")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// A focus file of the task; may be repeated.
    #[arg(long, value_name = "PATH")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) file: Vec<String>,
    /// The settings of the run that `--set` gave.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) set: Vec<String>,
}

impl ReplayOptions {
    /// Returns these options, with those of `saved` where these are absent.
    pub(super) fn or_saved(self, saved: Self) -> Self {
        let or = |own: Vec<String>, saved: Vec<String>| if own.is_empty() { saved } else { own };
        Self {
            permission_mode: self.permission_mode.or(saved.permission_mode),
            allow: or(self.allow, saved.allow),
            deny: or(self.deny, saved.deny),
            agent: self.agent.or(saved.agent),
            allowed_tools: self.allowed_tools.or(saved.allowed_tools),
            goal: self.goal || saved.goal,
            json_schema: self.json_schema.or(saved.json_schema),
            max_turns: self.max_turns.or(saved.max_turns),
            max_total_tokens: self.max_total_tokens.or(saved.max_total_tokens),
            max_budget_usd: self.max_budget_usd.or(saved.max_budget_usd),
            system_prompt: self.system_prompt.or(saved.system_prompt),
            system_prompt_file: self.system_prompt_file.or(saved.system_prompt_file),
            append_system_prompt: self.append_system_prompt.or(saved.append_system_prompt),
            add_dir: if self.add_dir.is_empty() {
                saved.add_dir
            } else {
                self.add_dir
            },
            file: or(self.file, saved.file),
            // Later settings take precedence.
            set: saved.set.into_iter().chain(self.set).collect(),
        }
    }
}
