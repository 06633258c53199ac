//! Describes the available agents to the model.

use haft_project::agents::{AgentDefinition, AgentTools};
use haft_text::Masker;
use haft_tool::CaseDocument;
use haft_tools::RUN_SUBAGENTS;

use crate::names::NAMED_AGENTS;

/// Lists the agents with their tools, followed by an example of each run mode.
pub(super) fn describe_agents(agents: &[AgentDefinition], masker: &Masker) -> CaseDocument {
    let line = |agent: &AgentDefinition| {
        format!(
            "- `{}`: {} Tools: {}.",
            agent.name,
            format_sentence(&masker.mask(&agent.description)),
            format_tools(&agent.tools)
        )
    };
    let lines: Vec<_> = agents.iter().map(line).collect();
    let names: Vec<_> = agents
        .iter()
        .take(2)
        .map(|agent| agent.name.as_str())
        .collect();
    let text = format!(
        "`{RUN_SUBAGENTS}` gives tasks to these agents:\n\n{}\n\nTasks that do not depend on each other:\n\n{}\n\n\
         Tasks that must be done one after another:\n\n{}",
        lines.join("\n"),
        example_call("parallel", &names),
        example_call("serial", &names),
    );
    CaseDocument {
        name: NAMED_AGENTS.to_owned(),
        text,
        tools: vec![RUN_SUBAGENTS.to_owned()],
    }
}

fn example_call(mode: &str, names: &[&str]) -> String {
    let entry = |name: &&str| {
        format!("  - name: {name}\n    task: Everything `{name}` must know to do its part.\n")
    };
    let entries: String = names.iter().map(entry).collect();
    format!("```yaml\nmode: {mode}\nsubagents:\n{entries}```")
}

fn format_tools(tools: &AgentTools) -> String {
    match tools {
        AgentTools::All => "all".to_owned(),
        AgentTools::Only(names) if names.is_empty() => "none".to_owned(),
        AgentTools::Only(names) => names.join(", "),
    }
}

/// Joins the lines of a text into one line that ends with punctuation.
fn format_sentence(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.ends_with(['.', '!', '?', '。']) {
        line
    } else {
        format!("{line}.")
    }
}
