//! A file of steps for agents, each beginning when what it needs is done.
//!
//! A file is checked whole before anything of it runs: names, needs, cycles and templates. What is
//! wrong is a [`FileProblem`] with file and line, and the file is not used.
//!
//! Invariant: the steps of a [`Workflow`] can be put in an order in which each comes after all it
//! needs, and no template mentions a step that is not done by then.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use haft_project::agents::AgentDefinition;
use haft_project::{FileProblem, KnowledgeKind, KnowledgePaths, Level, Named, NamedItems};
use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::{check, template};

/// Steps for agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workflow {
    /// Its name: that of its file.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it can be told, each with what it is when nothing is told; without that it must be
    /// told.
    pub inputs: BTreeMap<String, Option<String>>,
    /// In the order they are written.
    pub steps: Vec<WorkflowStep>,
    /// The file as it is.
    pub text: String,
    /// Where it lies.
    pub path: PathBuf,
    /// Whose it is.
    pub level: Level,
}

impl Named for Workflow {
    fn name(&self) -> &str {
        &self.name
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn level(&self) -> Level {
        self.level
    }
}

/// One step: a task for one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowStep {
    /// A word, so that templates can write `steps.NAME`.
    pub name: String,
    /// Who does it; the main agent when absent.
    pub agent: Option<String>,
    /// Its model, in place of the agent's own.
    pub model: Option<String>,
    /// What is to be done: a template over inputs and the outputs of other steps.
    pub prompt: String,
    /// The steps that must be done first.
    pub needs: Vec<String>,
    /// Whether it works in a copy of the project; as its agent's file says when absent.
    pub worktree: Option<bool>,
    /// Where its agent is named, and where its prompt begins.
    lines: StepLines,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StepLines {
    agent: usize,
    prompt: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkflowFile {
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) inputs: BTreeMap<String, Option<String>>,
    pub(crate) steps: Vec<StepEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepEntry {
    pub(crate) name: Spanned<String>,
    pub(crate) agent: Option<Spanned<String>>,
    pub(crate) model: Option<String>,
    pub(crate) prompt: Spanned<String>,
    #[serde(default)]
    pub(crate) needs: Vec<Spanned<String>>,
    pub(crate) worktree: Option<bool>,
}

/// Reads the workflows; a file that cannot be used is named, with everything that is wrong with it,
/// and skipped.
pub fn load(paths: &KnowledgePaths, problems: &mut Vec<FileProblem>) -> NamedItems<Workflow> {
    haft_project::load_files(
        paths,
        KnowledgeKind::Workflows,
        &["yaml", "yml"],
        problems,
        workflow,
    )
}

fn workflow(path: &Path, level: Level, text: String) -> Result<Workflow, Vec<FileProblem>> {
    let written: WorkflowFile = serde_saphyr::from_str(&text).map_err(|error| {
        let line = error
            .location()
            .map_or(1, |location| location.line() as usize);
        let message = error.without_snippet().to_string();
        let message = message.lines().next().unwrap_or("it is not YAML");
        // The line stands in front already.
        let message = message
            .rsplit_once(" at line ")
            .map_or(message, |(message, _)| message);
        vec![FileProblem::new(path, format!("it cannot be read: {message}")).at(line)]
    })?;
    let wrong = check::wrong(path, &text, &written);
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let WorkflowFile {
        description,
        inputs,
        steps,
    } = written;
    let step = |step: StepEntry| WorkflowStep {
        lines: StepLines {
            agent: line_of(step.agent.as_ref().unwrap_or(&step.name)),
            prompt: first_line_of(&step.prompt, &text),
        },
        name: step.name.value,
        agent: step.agent.map(|agent| agent.value),
        model: step.model,
        prompt: step.prompt.value,
        needs: step.needs.into_iter().map(|need| need.value).collect(),
        worktree: step.worktree,
    };
    Ok(Workflow {
        name: path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default(),
        description: description.trim().to_owned(),
        inputs,
        steps: steps.into_iter().map(step).collect(),
        text,
        path: path.to_owned(),
        level,
    })
}

pub(crate) fn line_of(at: &Spanned<String>) -> usize {
    at.referenced.line() as usize
}

/// The line of the file in which a text begins: of a block (`|`, `>`), the one below its mark.
pub(crate) fn first_line_of(text: &Spanned<String>, file: &str) -> usize {
    let line = line_of(text);
    let written = file.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let column = (text.referenced.column() as usize).saturating_sub(1);
    let is_block = written
        .chars()
        .nth(column)
        .is_some_and(|c| ['|', '>'].contains(&c));
    if is_block { line + 1 } else { line }
}

impl Workflow {
    /// What is wrong with the agents it names.
    pub fn wrong_agents(&self, agents: &NamedItems<AgentDefinition>) -> Vec<FileProblem> {
        let wrong = |step: &WorkflowStep| {
            let name = step.agent.as_deref()?;
            let what = match agents.get(name) {
                Some(agent) if agent.role.is_empty() => {
                    format!(
                        "the agent `{name}` has no role definition; write one in `{}`",
                        agent.path.display()
                    )
                }
                Some(_) => return None,
                None => {
                    let names: Vec<_> = agents
                        .items
                        .iter()
                        .map(|agent| agent.name.as_str())
                        .collect();
                    let there = if names.is_empty() {
                        "none".to_owned()
                    } else {
                        names.join(", ")
                    };
                    format!("there is no agent `{name}`; there are: {there}")
                }
            };
            Some(FileProblem::new(&self.path, what).at(step.lines.agent))
        };
        self.steps.iter().filter_map(wrong).collect()
    }

    /// The step of a name.
    pub fn step(&self, name: &str) -> Option<&WorkflowStep> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// The steps whose answers are those of the workflow: no other step needs them.
    pub fn last_steps(&self) -> impl Iterator<Item = &WorkflowStep> {
        let needed: BTreeSet<&str> = self
            .steps
            .iter()
            .flat_map(|step| &step.needs)
            .map(String::as_str)
            .collect();
        self.steps
            .iter()
            .filter(move |step| !needed.contains(step.name.as_str()))
    }

    /// The prompt of a step. `outputs` are those of the steps that are done, among them all it
    /// needs.
    pub fn prompt(
        &self,
        step: &WorkflowStep,
        inputs: &BTreeMap<String, String>,
        outputs: &BTreeMap<String, String>,
    ) -> Result<String, FileProblem> {
        template::render(&step.prompt, inputs, outputs).map_err(|(what, line)| {
            FileProblem::new(&self.path, what).at(step.lines.prompt + line.saturating_sub(1))
        })
    }
}
