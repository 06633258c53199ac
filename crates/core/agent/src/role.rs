//! Runs the main agent with the role, the tools and the model of an agent's file.

use haft_project::agents::{self, AgentTools};

use crate::error::SetupError;
use crate::knowledge::find_knowledge_and_trust;
use crate::places::Places;
use crate::plan::RunPlan;

/// The settings that the caller has chosen explicitly, which take precedence over the agent's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExplicitChoices {
    /// True if the caller has chosen the model.
    pub model: bool,
    /// True if the caller has chosen the tools.
    pub tools: bool,
}

impl RunPlan {
    /// Applies the role of the agent `name`, and the agent's tools and model unless the caller has
    /// chosen these explicitly.
    pub fn apply_agent_role(
        &mut self,
        places: &Places,
        name: &str,
        chosen: ExplicitChoices,
    ) -> Result<(), SetupError> {
        let (paths, _) = find_knowledge_and_trust(places, &self.project)?;
        // Problems of other agents' files are shown by `haft agents list`.
        let found = agents::load_agents(&paths, &mut Vec::new());
        let Some(agent) = found.get(name) else {
            let names: Vec<_> = found
                .items
                .iter()
                .map(|agent| agent.name.as_str())
                .collect();
            let there = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            return Err(SetupError::UnknownAgent {
                name: name.to_owned(),
                there,
            });
        };
        if agent.role.is_empty() {
            return Err(SetupError::NoRole {
                name: name.to_owned(),
                file: paths.display_path(&agent.path),
            });
        }
        self.prompt.roles.main = Some(agent.role.clone());
        let roles = &mut self.prompt.roles;
        if roles.system_prompt.is_none() {
            roles.system_prompt.clone_from(&agent.system_prompt);
        }
        if let (false, Some(model)) = (chosen.model, &agent.model) {
            self.fallback_model = Some(std::mem::replace(&mut self.model, model.clone()));
        }
        if !chosen.tools {
            self.tools.from_agent_file = true;
            self.tools.offered = match &agent.tools {
                AgentTools::All => vec!["*".to_owned()],
                AgentTools::Only(names) if names.is_empty() => vec!["none".to_owned()],
                AgentTools::Only(names) => names.clone(),
            };
        }
        Ok(())
    }
}
