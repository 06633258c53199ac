//! The input of one run: the configuration combined with the settings of the front end.

use std::path::{Path, PathBuf};

use haft_context::{PromptSections, SystemSection};
pub use haft_engine::turn::TurnLimits;
use haft_engine::{
    ConversationChoice, PromptSettings, Roles, SharedBudget, TaskSettings, ToolSettings,
};
use haft_project::agents::AgentDefinition;
use haft_types::PermissionMode;

use crate::config::{Config, PromptConfig, RolesConfig};
use crate::error::SetupError;
use crate::project::Project;

/// The input of one run, created from the flags and the configuration.
///
/// Contains the settings of the session. When the session is opened, the settings are completed
/// from the machine, the configuration and the extensions.
#[derive(Clone)]
pub struct RunPlan {
    /// The main model, as `provider/model`.
    pub model: String,
    /// The model to use if `model` cannot be used. Set only if an agent's file names `model`.
    pub fallback_model: Option<String>,
    pub project: Project,
    /// Folders outside the project that the tools may use.
    pub added_folders: Vec<PathBuf>,
    /// The permission mode.
    pub mode: PermissionMode,
    /// The role of the model and the focus of its task. When the session is opened, the sections of
    /// `[prompt]` and the description of the machine are added. If the settings name no focus
    /// files, the project's focus files are added.
    pub prompt: PromptSettings,
    /// The choice of tools. When the session is opened, the tools and plugins of extensions are
    /// added before the tools in these settings, and the environment of child processes is added.
    pub tools: ToolSettings,
    /// The goal of the run, its limits, the form of its answer, and the approver of its tool calls.
    pub task: TaskSettings,
    /// The conversation to open.
    pub which: ConversationChoice,
    /// True if the project's own files are ignored even if the project is trusted. Prohibitions in
    /// these files still hold.
    pub ignores_project: bool,
    /// Agents for this run only. An agent in this list takes precedence over an agent file with its
    /// name.
    pub agents: Vec<AgentDefinition>,
    /// The workflow step that the run carries out; `None` if the run is not part of a workflow.
    pub step: Option<RunStep>,
}

/// The step of a workflow that a run carries out.
#[derive(Clone)]
pub struct RunStep {
    /// The agent name that the step's events contain.
    pub name: String,
    /// The budget shared by all steps.
    pub budget: SharedBudget,
}

impl RunPlan {
    /// Creates the plan that follows from the configuration alone, without roles or an approver.
    /// Processes are ended at the end of each turn.
    pub fn from_config(
        config: &Config,
        model: String,
        project: Project,
        which: ConversationChoice,
    ) -> Self {
        Self {
            model,
            project,
            added_folders: Vec::new(),
            mode: config.permissions.mode,
            prompt: PromptSettings::default(),
            tools: ToolSettings {
                offered: config.tools.offer.clone(),
                profiles: config.tools.profiles.clone(),
                ..ToolSettings::default()
            },
            task: TaskSettings::default(),
            fallback_model: None,
            which,
            ignores_project: false,
            agents: Vec::new(),
            step: None,
        }
    }
}

impl RolesConfig {
    /// Reads the role and the system prompt of the main agent. Each is read from its file if a file
    /// is configured.
    pub fn read(&self) -> Result<Roles, SetupError> {
        Ok(Roles {
            main: self.read_main_role()?,
            system_prompt: self.read_system_prompt()?,
            ..Roles::default()
        })
    }

    /// Returns the role definition of the main agent. If a file is configured, the file takes
    /// precedence over the text.
    pub fn read_main_role(&self) -> Result<Option<String>, SetupError> {
        read_text_or_file(&self.main, self.main_file.as_deref())
    }

    /// Returns the system prompt. If a file is configured, the file takes precedence over the text.
    pub fn read_system_prompt(&self) -> Result<Option<String>, SetupError> {
        read_text_or_file(&self.system_prompt, self.system_prompt_file.as_deref())
    }
}

impl PromptConfig {
    /// Reads the files that replace sections of the prompt. Relative paths are relative to
    /// `folder`, and `~/` stands for `home`.
    pub fn read_sections(
        &self,
        folder: &Path,
        home: Option<&Path>,
    ) -> Result<PromptSections, SetupError> {
        let read = |(section, file): (&SystemSection, &String)| {
            let below_home = home
                .zip(file.strip_prefix("~/"))
                .map(|(home, below)| home.join(below));
            let text = read_prompt_file(&below_home.unwrap_or_else(|| folder.join(file)))?;
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

fn read_text_or_file(text: &str, file: Option<&str>) -> Result<Option<String>, SetupError> {
    match file {
        Some(path) => read_prompt_file(Path::new(path)).map(Some),
        None => Ok(Some(text.to_owned()).filter(|text| !text.is_empty())),
    }
}

/// Reads a prompt file.
pub fn read_prompt_file(file: &Path) -> Result<String, SetupError> {
    std::fs::read_to_string(file).map_err(|error| SetupError::Prompt {
        file: file.to_owned(),
        error,
    })
}
