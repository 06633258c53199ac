//! Parses workflow files.
//!
//! A file is checked completely when it is loaded: names, needs, cycles, and templates. Each error
//! is a [`FileProblem`] with file and line, and a file with errors is not used.
//!
//! Invariant: the steps of a [`Workflow`] have an order in which each step comes after all steps it
//! needs, and no template mentions the output of a step that isn't done by then.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use haft_project::agents::AgentDefinition;
use haft_project::{FileProblem, KnowledgeKind, KnowledgePaths, Level, Named, NamedItems};
use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::{auto_coder, check, template};

/// A workflow without errors, loaded from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workflow {
    /// The name of the file without its extension.
    pub name: String,
    pub description: String,
    /// The inputs, with their default values. An input without a default must be given by the user.
    pub inputs: BTreeMap<String, Option<String>>,
    /// The steps, in the order of the file.
    pub steps: Vec<WorkflowStep>,
    /// The content of the workflow file.
    pub text: String,
    /// The path of the workflow file.
    pub path: PathBuf,
    /// The level of the folder that contains the file, such as the project's or the user's.
    pub level: Level,
    pub origin: WorkflowOrigin,
    /// The parts of the file that have no counterpart in haft and are left out.
    pub notices: Vec<FileProblem>,
}

/// The format of a workflow file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowOrigin {
    Haft,
    /// A file of auto-coder, which was converted.
    AutoCoder,
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

/// A step of a workflow: a task for one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowStep {
    /// The name of the step, which is an identifier, so that templates can contain `steps.NAME`.
    pub name: String,
    /// The agent that runs the step. `None` for the main agent.
    pub agent: Option<String>,
    /// The model of the step. Takes precedence over the agent's model.
    pub model: Option<String>,
    /// The task, as a template that can contain inputs and the outputs of other steps.
    pub prompt: String,
    /// The names of the steps that must be completed before this step starts.
    pub needs: Vec<String>,
    /// True if the step works in a copy of the project. With `None`, the agent's file decides.
    pub worktree: Option<bool>,
    /// The line numbers of the agent's name and of the beginning of the prompt, for error messages.
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

/// Loads the workflows of all levels. A file with errors is skipped, and its errors are added to
/// `problems`, like the notices about converted files.
pub fn load_workflows(
    paths: &KnowledgePaths,
    problems: &mut Vec<FileProblem>,
) -> NamedItems<Workflow> {
    let found = haft_project::load_files(
        paths,
        KnowledgeKind::Workflows,
        &["yaml", "yml"],
        problems,
        parse_workflow,
    );
    let notices = found.items.iter().flat_map(|workflow| &workflow.notices);
    problems.extend(notices.cloned());
    found
}

pub(crate) fn parse_workflow(
    path: &Path,
    level: Level,
    text: String,
) -> Result<Workflow, Vec<FileProblem>> {
    let document: Option<Value> = serde_saphyr::from_str(&text).ok();
    let (written, origin, notices) = match document {
        Some(document) if auto_coder::is_auto_coder_file(&document) => {
            let converted = auto_coder::convert_file(&text, &document).map_err(|problems| {
                let problem = |(what, line): (String, usize)| {
                    FileProblem::new(path, haft_text::sanitize(&what)).at_line(line)
                };
                problems.into_iter().map(problem).collect::<Vec<_>>()
            })?;
            let notices = converted.notices.into_iter();
            let notices = notices
                .map(|what| FileProblem::new(path, haft_text::sanitize(&what)))
                .collect();
            (converted.file, WorkflowOrigin::AutoCoder, notices)
        }
        Some(_) | None => (
            parse_own_file(path, &text)?,
            WorkflowOrigin::Haft,
            Vec::new(),
        ),
    };
    let problems = check::find_problems(path, &text, &written);
    if !problems.is_empty() {
        return Err(problems);
    }
    let WorkflowFile {
        description,
        inputs,
        steps,
    } = written;
    let step = |step: StepEntry| WorkflowStep {
        lines: StepLines {
            agent: line_number(step.agent.as_ref().unwrap_or(&step.name)),
            prompt: first_content_line(&step.prompt, &text),
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
        origin,
        notices,
    })
}

/// Parses a file in haft's own format.
fn parse_own_file(path: &Path, text: &str) -> Result<WorkflowFile, Vec<FileProblem>> {
    serde_saphyr::from_str(text).map_err(|error| {
        let line = error
            .location()
            .map_or(1, |location| location.line() as usize);
        let message = error.without_snippet().to_string();
        let message = message.lines().next().unwrap_or("it is not YAML");
        // The line is removed, because [`FileProblem`] shows it before the message.
        let message = message
            .rsplit_once(" at line ")
            .map_or(message, |(message, _)| message);
        vec![FileProblem::new(path, format!("it cannot be read: {message}")).at_line(line)]
    })
}

pub(crate) fn line_number(at: &Spanned<String>) -> usize {
    at.referenced.line() as usize
}

/// Returns the line number at which the content of `text` begins in `file`. The content of a block
/// (`|` or `>`) begins on the line after the mark.
pub(crate) fn first_content_line(text: &Spanned<String>, file: &str) -> usize {
    let line = line_number(text);
    let written = file.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let column = (text.referenced.column() as usize).saturating_sub(1);
    let is_block = written
        .chars()
        .nth(column)
        .is_some_and(|c| ['|', '>'].contains(&c));
    if is_block { line + 1 } else { line }
}

impl Workflow {
    /// Replaces the names of files with the names of the agents in these files. A workflow of
    /// auto-coder names files.
    pub(crate) fn resolve_agent_files(&mut self, agents: &NamedItems<AgentDefinition>) {
        if self.origin != WorkflowOrigin::AutoCoder {
            return;
        }
        for name in self.steps.iter_mut().filter_map(|step| step.agent.as_mut()) {
            let has_file = |agent: &&AgentDefinition| {
                agent.path.file_stem().is_some_and(|stem| *stem == **name)
            };
            if let Some(agent) = agents.items.iter().find(has_file) {
                name.clone_from(&agent.name);
            }
        }
    }

    /// Returns a problem for each step whose agent does not exist or has no role definition.
    pub fn find_agent_problems(&self, agents: &NamedItems<AgentDefinition>) -> Vec<FileProblem> {
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
            Some(FileProblem::new(&self.path, what).at_line(step.lines.agent))
        };
        self.steps.iter().filter_map(wrong).collect()
    }

    pub fn find_step(&self, name: &str) -> Option<&WorkflowStep> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// Returns the steps that no other step needs. Their answers form the answer of the workflow.
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

    /// Renders the prompt of a step. `outputs` contains the outputs of completed steps, including
    /// all that `step` needs.
    pub fn render_prompt(
        &self,
        step: &WorkflowStep,
        inputs: &BTreeMap<String, String>,
        outputs: &BTreeMap<String, String>,
    ) -> Result<String, FileProblem> {
        template::render_template(&step.prompt, inputs, outputs).map_err(|(what, line)| {
            FileProblem::new(&self.path, what).at_line(step.lines.prompt + line.saturating_sub(1))
        })
    }
}
