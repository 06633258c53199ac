//! Loads every kind of project knowledge as items of one type.

use std::path::PathBuf;

use haft_agent::find_designer;
use haft_project::agents::{self, AgentTools};
use haft_project::external::Help;
use haft_project::rules::{self, RuleScope};
use haft_project::{
    FileProblem, KnowledgeKind, KnowledgePaths, Level, Named, NamedItems, Shadowed, commands,
    external, skills,
};
use serde_json::{Value, json};

use super::CatalogueContext;

/// The items of one kind, with the problems of their files.
pub(super) struct CatalogueListing {
    pub(super) list: Vec<CatalogueItem>,
    pub(super) shadowed: Vec<Shadowed>,
    pub(super) problems: Vec<FileProblem>,
}

/// A rule, agent, skill, command, tool or workflow.
pub(super) struct CatalogueItem {
    pub(super) name: String,
    /// The description; for a rule, the text about when it is sent.
    pub(super) about: String,
    pub(super) level: Level,
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// The JSON fields that only items of this kind have.
    more: Value,
}

impl CatalogueItem {
    /// Returns the name of the model that runs an agent. If the model in the agent's file cannot be
    /// used, that model is added in parentheses.
    pub(super) fn describe_model(&self) -> String {
        let word = |key: &str| self.more.get(key).and_then(Value::as_str);
        match (word("uses"), word("model")) {
            (None, _) => "-".to_owned(),
            (Some(uses), Some(named)) if uses != named && !uses.ends_with(&format!("/{named}")) => {
                format!("{uses} (file: {named})")
            }
            (Some(uses), _) => uses.to_owned(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut value = json!({"name": self.name, "path": self.path, "from": self.level.name()});
        if let (Some(all), Some(more)) = (value.as_object_mut(), self.more.as_object()) {
            all.extend(more.clone());
        }
        value
    }
}

pub(super) fn load_items(
    kind: KnowledgeKind,
    paths: &KnowledgePaths,
    place: &CatalogueContext,
) -> CatalogueListing {
    let mut problems = Vec::new();
    let (items, shadowed) = match kind {
        KnowledgeKind::Rules => (load_rules(paths, &mut problems), Vec::new()),
        KnowledgeKind::Agents => {
            let mut found = agents::load_agents(paths, &mut problems);
            found
                .items
                .extend(find_designer(&place.settings.config, paths));
            found.items.sort_by(|one, other| one.name.cmp(&other.name));
            to_catalogue_items(found, |agent| {
                let tools = match &agent.tools {
                    AgentTools::All => json!("*"),
                    AgentTools::Only(names) => json!(names),
                };
                let more = json!({
                    "description": agent.description,
                    "tools": tools,
                    "model": agent.model,
                    "uses": place.agent_model(agent.model.as_deref()).0,
                    "worktree": agent.worktree,
                    "fork": agent.fork,
                });
                (agent.description.clone(), agent.role.clone(), more)
            })
        }
        KnowledgeKind::Skills => {
            to_catalogue_items(skills::load_skills(paths, &mut problems), |skill| {
                (
                    skill.description.clone(),
                    skill.text.clone(),
                    json!({"description": skill.description}),
                )
            })
        }
        KnowledgeKind::Commands => {
            to_catalogue_items(commands::load_commands(paths, &mut problems), |command| {
                let more = json!({"description": command.description, "argument_hint": command.argument_hint});
                (command.description.clone(), command.text.clone(), more)
            })
        }
        // In this build no command lists workflows.
        #[cfg(not(feature = "workflows"))]
        KnowledgeKind::Workflows => (Vec::new(), Vec::new()),
        #[cfg(feature = "workflows")]
        KnowledgeKind::Workflows => to_catalogue_items(
            haft_workflows::load_workflows(paths, &mut problems),
            |workflow| {
                let step = |step: &haft_workflows::WorkflowStep| json!({"name": step.name, "agent": step.agent, "model": step.model, "needs": step.needs});
                let steps: Vec<_> = workflow.steps.iter().map(step).collect();
                let more = json!({"description": workflow.description, "inputs": workflow.inputs, "steps": steps});
                (
                    workflow.description.clone(),
                    workflow.text.trim_end().to_owned(),
                    more,
                )
            },
        ),
        KnowledgeKind::Tools => to_catalogue_items(
            external::load_tools(paths, &|name| place.is_built_in(name), &mut problems),
            |tool| {
                let help = place.help.cached_help(tool);
                let text = help.text().unwrap_or_default().to_owned();
                let by = match help {
                    Help::Output(_) => json!("the tool"),
                    Help::Header(_) => json!("its header"),
                    Help::Missing => Value::Null,
                };
                let more = json!({"executable": tool.executable, "help_by": by});
                (
                    text.lines().next().unwrap_or_default().to_owned(),
                    text,
                    more,
                )
            },
        ),
    };
    CatalogueListing {
        list: items,
        shadowed,
        problems,
    }
}

fn to_catalogue_items<T: Named>(
    found: NamedItems<T>,
    describe: impl Fn(&T) -> (String, String, Value),
) -> (Vec<CatalogueItem>, Vec<Shadowed>) {
    let item = |one: &T| {
        let (about, text, more) = describe(one);
        CatalogueItem {
            name: one.name().to_owned(),
            about,
            level: one.level(),
            path: one.path().to_owned(),
            text,
            more,
        }
    };
    (found.items.iter().map(item).collect(), found.shadowed)
}

fn load_rules(paths: &KnowledgePaths, problems: &mut Vec<FileProblem>) -> Vec<CatalogueItem> {
    let item = |rule: rules::RuleFile| {
        let (sent, globs) = match &rule.scope {
            RuleScope::Always => ("in every request".to_owned(), Vec::new()),
            RuleScope::Index => ("in every request, as the index".to_owned(), Vec::new()),
            RuleScope::Matching(globs) => (
                format!("once {} is touched", globs.patterns().join(", ")),
                globs.patterns().to_vec(),
            ),
            RuleScope::OnDemand => ("when the model reads it".to_owned(), Vec::new()),
        };
        let about = describe_rule_scope(&rule.scope);
        let more = json!({"description": rule.description, "sent": sent, "globs": globs});
        CatalogueItem {
            name: rule.name,
            about,
            level: rule.level,
            path: rule.path,
            text: rule.text,
            more,
        }
    };
    rules::load_rules(paths, problems)
        .into_iter()
        .map(item)
        .collect()
}

/// Describes when a rule is sent, in the language of the output. JSON has fixed English texts
/// instead.
fn describe_rule_scope(applies: &RuleScope) -> String {
    match applies {
        RuleScope::Always => text!("catalogue-sent-always").to_owned(),
        RuleScope::Index => text!("catalogue-sent-index").to_owned(),
        RuleScope::Matching(globs) => text!(
            "catalogue-sent-touched",
            patterns = globs.patterns().join(", ")
        ),
        RuleScope::OnDemand => text!("catalogue-sent-read").to_owned(),
    }
}
