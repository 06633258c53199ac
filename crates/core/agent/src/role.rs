//! The main agent takes the role, the tools and the model of an agent's file.

use haft_project::agents::{self, AgentTools};

use crate::error::SetupError;
use crate::knowledge::knowledge;
use crate::places::Places;
use crate::plan::RunPlan;

/// What the caller has chosen itself, which goes before what an agent's file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnChoice {
    /// The model.
    pub model: bool,
    /// The tools.
    pub tools: bool,
}

impl RunPlan {
    /// Puts the role of this agent on.
    pub fn take_role(
        &mut self,
        places: &Places,
        name: &str,
        chosen: OwnChoice,
    ) -> Result<(), SetupError> {
        let (paths, _) = knowledge(places, &self.project)?;
        // What is wrong with another file is shown by `haft agents list`.
        let found = agents::load(&paths, &mut Vec::new());
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
                file: paths.shown(&agent.path),
            });
        }
        self.prompt.roles.main = Some(agent.role.clone());
        let roles = &mut self.prompt.roles;
        if roles.system_prompt.is_none() {
            roles.system_prompt.clone_from(&agent.system_prompt);
        }
        if let (false, Some(model)) = (chosen.model, &agent.model) {
            self.otherwise = Some(std::mem::replace(&mut self.model, model.clone()));
        }
        if !chosen.tools {
            self.tools.of_agent_file = true;
            self.tools.offered = match &agent.tools {
                AgentTools::All => vec!["*".to_owned()],
                AgentTools::Only(names) if names.is_empty() => vec!["none".to_owned()],
                AgentTools::Only(names) => names.clone(),
            };
        }
        Ok(())
    }
}
