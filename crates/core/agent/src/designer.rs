//! The built-in agent `designer`, which works on interfaces with the model of the role `designer`.

use std::path::PathBuf;

use haft_project::KnowledgePaths;
use haft_project::agents::{self, AgentDefinition, AgentTools};
use haft_types::prompt;

use crate::config::{Config, ModelRole};

const NAME: &str = "designer";

/// Returns the built-in agent `designer`. Returns `None` if no model has the role `designer`, or if
/// a file of the user or the project defines an agent with this name.
pub fn find_designer(config: &Config, paths: &KnowledgePaths) -> Option<AgentDefinition> {
    let models = config.model_roles.configured_models(ModelRole::Designer);
    let model = models.first()?.clone();
    // Problems of agent files are shown by `haft agents list`.
    let found = agents::load_agents(paths, &mut Vec::new());
    if found.get(NAME).is_some() {
        return None;
    }
    let role = prompt!("../prompts/designer").text(config.context.prompt_language);
    Some(AgentDefinition {
        name: NAME.to_owned(),
        description: "Designs and changes user interfaces and other visual work.".to_owned(),
        tools: AgentTools::All,
        model: Some(model),
        include_rules: true,
        worktree: false,
        fork: false,
        system_prompt: None,
        role: role.trim().to_owned(),
        path: PathBuf::from("built-in"),
        level: haft_project::Level::User,
    })
}
