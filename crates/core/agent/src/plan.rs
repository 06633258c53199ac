//! The input of one run: the configuration combined with the settings of the front end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_context::{PromptSections, SystemSection};
pub use haft_engine::turn::TurnLimits;
use haft_engine::{AnswerSchema, Approver, Leftovers, Roles, SharedBudget, Which};
use haft_project::agents::AgentDefinition;
use haft_types::PermissionMode;

use crate::config::{Config, PromptConfig, RolesConfig};
use crate::error::SetupError;
use crate::project::Project;

/// The input of one run, combined from flags and configuration.
#[derive(Clone)]
pub struct RunPlan {
    /// The main model, as `provider/model`.
    pub model: String,
    /// The model to use if `model` cannot be used; set if `model` comes from an agent's file.
    pub otherwise: Option<String>,
    pub project: Project,
    /// Folders beside the project that the tools may use.
    pub added_folders: Vec<PathBuf>,
    /// The role of the model.
    pub roles: Roles,
    /// The permission mode.
    pub mode: PermissionMode,
    /// The approver. Without one, every request for approval is denied.
    pub approver: Option<Arc<dyn Approver>>,
    /// The offered tools: names, aliases, groups, profiles, `*`, `none`. Empty for the default set.
    pub offered_tools: Vec<String>,
    /// The tools that may be offered at all, also to sub-agents; `None` for all tools.
    pub tools_within: Option<Vec<String>>,
    /// True if `offered_tools` comes from an agent's file. Unknown names are then ignored: agent
    /// files may name other agents' tools.
    pub tools_of_agent_file: bool,
    /// The user's tool profiles.
    pub tool_profiles: BTreeMap<String, Vec<String>>,
    /// Paths given as the focus of the task.
    pub focus_files: Vec<String>,
    /// The limits of the run.
    pub limits: TurnLimits,
    /// True if a turn ends only when the model reports that the goal is reached.
    pub goal: bool,
    /// The handling of processes that still run when a turn is over.
    pub leftovers: Leftovers,
    /// The schema of the final answer.
    pub answer: Option<AnswerSchema>,
    /// The conversation to open.
    pub which: Which,
    /// True if the project's own files are ignored even if it is trusted. Their prohibitions still
    /// hold.
    pub ignores_project: bool,
    /// Agents for this run only. They take precedence over files with their names.
    pub agents: Vec<AgentDefinition>,
    /// The step, if the run is part of a workflow.
    pub step: Option<RunStep>,
}

/// A run that is one step of several.
#[derive(Clone)]
pub struct RunStep {
    /// The agent name in the step's events.
    pub name: String,
    /// The budget shared by all steps.
    pub budget: SharedBudget,
}

impl RunPlan {
    /// Creates the plan that follows from the configuration alone: no roles, no approver, and
    /// processes are ended with the turn.
    pub fn of_config(config: &Config, model: String, project: Project, which: Which) -> Self {
        Self {
            model,
            project,
            added_folders: Vec::new(),
            roles: Roles::default(),
            mode: config.permissions.mode,
            approver: None,
            offered_tools: config.tools.offer.clone(),
            tools_within: None,
            tools_of_agent_file: false,
            otherwise: None,
            tool_profiles: config.tools.profiles.clone(),
            focus_files: Vec::new(),
            limits: TurnLimits::default(),
            goal: false,
            leftovers: Leftovers::End,
            answer: None,
            which,
            ignores_project: false,
            agents: Vec::new(),
            step: None,
        }
    }
}

impl RolesConfig {
    /// Returns the role definition of the main agent. Its file takes precedence over the text.
    pub fn read_main(&self) -> Result<Option<String>, SetupError> {
        text_or_file(&self.main, self.main_file.as_deref())
    }

    /// Returns the system prompt. Its file takes precedence over the text.
    pub fn read_system_prompt(&self) -> Result<Option<String>, SetupError> {
        text_or_file(&self.system_prompt, self.system_prompt_file.as_deref())
    }
}

impl PromptConfig {
    /// Reads the files of the replaced sections. Relative paths start at `folder`, and `~/` stands
    /// for `home`.
    pub fn read(&self, folder: &Path, home: Option<&Path>) -> Result<PromptSections, SetupError> {
        let read = |(section, file): (&SystemSection, &String)| {
            let below_home = home
                .zip(file.strip_prefix("~/"))
                .map(|(home, below)| home.join(below));
            let text = prompt_file(&below_home.unwrap_or_else(|| folder.join(file)))?;
            Ok((*section, text))
        };
        Ok(PromptSections {
            replaced: self
                .sections
                .iter()
                .map(read)
                .collect::<Result<_, SetupError>>()?,
            order: self.order.clone(),
        })
    }
}

fn text_or_file(text: &str, file: Option<&str>) -> Result<Option<String>, SetupError> {
    match file {
        Some(path) => prompt_file(Path::new(path)).map(Some),
        None => Ok(Some(text.to_owned()).filter(|text| !text.is_empty())),
    }
}

/// Reads a prompt file.
pub fn prompt_file(file: &Path) -> Result<String, SetupError> {
    std::fs::read_to_string(file).map_err(|error| SetupError::Prompt {
        file: file.to_owned(),
        error,
    })
}
