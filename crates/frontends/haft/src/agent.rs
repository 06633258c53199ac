//! `--agent NAME`: the main agent takes the role, the tools and the model of an agent's file.

use haft_project::agents::{self, AgentTools};

use crate::cli::RunArgs;
use crate::exit::mistake;
use crate::places::Places;
use crate::wiring::{self, RunPlan};

/// Puts the role on. What a flag says goes before what the file says.
pub(crate) fn put_on(plan: &mut RunPlan, args: &RunArgs, places: &Places) -> anyhow::Result<()> {
    let Some(name) = &args.agent else { return Ok(()) };
    let (ground, _) = wiring::ground(places, &plan.project)?;
    // What is wrong with another file is told by `haft agents list`.
    let found = agents::load(&ground, &mut Vec::new());
    let Some(agent) = found.get(name) else {
        let names: Vec<_> = found.items.iter().map(|agent| agent.name.as_str()).collect();
        let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(mistake(format!("there is no agent `{name}`; there are: {there} (`haft agents list`)")));
    };
    if agent.role.is_empty() {
        let file = ground.shown(&agent.path);
        return Err(mistake(format!("the agent `{name}` has no role definition; write one in `{file}`")));
    }
    plan.roles.main = Some(agent.role.clone());
    if plan.roles.system_prompt.is_none() {
        plan.roles.system_prompt.clone_from(&agent.system_prompt);
    }
    if let (None, Some(model)) = (&args.model, &agent.model) {
        plan.model.clone_from(model);
    }
    if args.allowed_tools.is_none() {
        plan.offered_tools = match &agent.tools {
            AgentTools::All => vec!["*".to_owned()],
            AgentTools::Only(names) if names.is_empty() => vec!["none".to_owned()],
            AgentTools::Only(names) => names.clone(),
        };
    }
    Ok(())
}
