//! Selects a workflow and its inputs for a run.
//!
//! All errors that can be found before the run are reported before the first step starts.

use std::collections::BTreeMap;

use haft_agent::config::Config;
use haft_agent::{Places, Project, SetupError, find_knowledge_and_trust, resolve_model};
use haft_project::agents::{self, AgentDefinition};
use haft_project::{FileProblem, KnowledgePaths, NamedItems};

use crate::workflow::{Workflow, WorkflowOrigin, load_workflows};

/// The reason why a workflow cannot be run in a project.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    #[error("there is no workflow `{name}`; there are: {known}")]
    Unknown {
        /// The name of the workflow, as the user wrote it.
        name: String,
        /// A text that lists the names of the existing workflows.
        known: String,
    },
    /// No workflow outside the project has this name, and the project is not trusted.
    #[error(
        "there is no workflow `{name}`; there are: {known}; `{project}` is not trusted, so nothing in it is used (`haft trust`)"
    )]
    Untrusted {
        name: String,
        /// A text that lists the names of the existing workflows outside the project.
        known: String,
        /// The path of the project's root folder.
        project: String,
    },
    /// The file of the workflow has errors.
    #[error("the workflow `{name}` cannot be run; nothing was started")]
    Invalid {
        name: String,
        /// The errors in the file, each with its line.
        problems: Vec<String>,
    },
    /// The model of a step is unknown or cannot be used.
    #[error("the step `{step}` cannot be run: {reason}; nothing was started")]
    Step {
        step: String,
        reason: Box<StepModelError>,
    },
    /// The agents or the workflows of the project could not be loaded.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

/// The reason why no model can be used for a step.
#[derive(Debug, thiserror::Error)]
pub enum StepModelError {
    /// No model is chosen by the step, its agent, the command line, or the configuration.
    #[error("no model is chosen; use `-m provider/model`, or set `model` in config.toml")]
    NoModel,
    /// The chosen model does not exist or cannot be used.
    #[error(transparent)]
    Model(#[from] SetupError),
}

/// The reason why the inputs that the user gave cannot be used for a run.
#[derive(Debug, thiserror::Error)]
pub enum WorkflowInputError {
    #[error("`{workflow}` has no input `{name}`; there are: {known}")]
    Unknown {
        workflow: String,
        name: String,
        /// A text that lists the names of the workflow's inputs.
        known: String,
    },
    /// An input without a default was not given.
    #[error("`{workflow}` needs `--input {name}=VALUE`")]
    Missing { workflow: String, name: String },
}

/// Finds the workflow `name` and the agents that its steps may use, and checks the models of all
/// steps. `model` is used for steps for which neither the workflow nor the agent's file names a
/// model.
pub fn select_workflow(
    places: &Places,
    config: &Config,
    project: &Project,
    name: &str,
    model: Option<&str>,
) -> Result<(Workflow, NamedItems<AgentDefinition>), SelectError> {
    let (paths, _) = find_knowledge_and_trust(places, project)?;
    let (mut workflow, agents) = find_workflow(&paths, name)?;
    if workflow.origin == WorkflowOrigin::AutoCoder {
        replace_unknown_models(&mut workflow, &agents, model, places, config);
    }
    check_models(&workflow, &agents, model, places, config)?;
    Ok((workflow, agents))
}

fn find_workflow(
    paths: &KnowledgePaths,
    name: &str,
) -> Result<(Workflow, NamedItems<AgentDefinition>), SelectError> {
    let mut problems = Vec::new();
    let found = load_workflows(paths, &mut problems);
    let Some(workflow) = found.get(name) else {
        problems.retain(|problem| problem.path.file_stem().is_some_and(|stem| stem == name));
        if !problems.is_empty() {
            return Err(invalid_workflow_error(paths, name, &problems));
        }
        let name = name.to_owned();
        let known = join_names(found.items.iter().map(|workflow| workflow.name.as_str()));
        return Err(if paths.trusted {
            SelectError::Unknown { name, known }
        } else {
            let project = paths.root.display().to_string();
            SelectError::Untrusted {
                name,
                known,
                project,
            }
        });
    };
    let agents = agents::load_agents(paths, &mut Vec::new());
    let mut workflow = workflow.clone();
    workflow.resolve_agent_files(&agents);
    let wrong = workflow.find_agent_problems(&agents);
    if !wrong.is_empty() {
        return Err(invalid_workflow_error(paths, name, &wrong));
    }
    Ok((workflow, agents))
}

/// Replaces the models of auto-coder that haft does not know with the model that runs steps without
/// a model, and adds a notice for each of them.
fn replace_unknown_models(
    workflow: &mut Workflow,
    agents: &NamedItems<AgentDefinition>,
    model: Option<&str>,
    places: &Places,
    config: &Config,
) {
    let default = model
        .map(str::to_owned)
        .or_else(|| haft_agent::configured_model(config));
    let mut unknown: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for step in &mut workflow.steps {
        let Some(named) = step.choose_model(agents, None) else {
            continue;
        };
        if resolve_model(&places.environment, config, &named).is_err() {
            let steps = unknown.entry(named).or_default();
            steps.push(format!("`{}`", step.name));
            step.model.clone_from(&default);
        }
    }
    let path = workflow.path.clone();
    let used = default.unwrap_or_else(|| "-".to_owned());
    let notice = |(named, steps): (String, Vec<String>)| {
        let steps = steps.join(", ");
        let what =
            format!("haft does not know the model `{named}`; the steps {steps} use `{used}`");
        FileProblem::new(&path, what)
    };
    workflow.notices.extend(unknown.into_iter().map(notice));
}

fn check_models(
    workflow: &Workflow,
    agents: &NamedItems<AgentDefinition>,
    model: Option<&str>,
    places: &Places,
    config: &Config,
) -> Result<(), SelectError> {
    for step in &workflow.steps {
        let named = step
            .choose_model(agents, model)
            .or_else(|| haft_agent::configured_model(config));
        let known = match named {
            Some(name) => resolve_model(&places.environment, config, &name)
                .map(drop)
                .map_err(StepModelError::from),
            None => Err(StepModelError::NoModel),
        };
        known.map_err(|reason| SelectError::Step {
            step: step.name.clone(),
            reason: Box::new(reason),
        })?;
    }
    Ok(())
}

fn invalid_workflow_error(
    paths: &KnowledgePaths,
    name: &str,
    problems: &[FileProblem],
) -> SelectError {
    let describe_problem = |problem: &FileProblem| {
        let line = problem
            .line
            .map_or_else(String::new, |line| format!(", line {line}"));
        format!(
            "{}{line}: {}",
            paths.display_path(&problem.path),
            problem.what
        )
    };
    SelectError::Invalid {
        name: name.to_owned(),
        problems: problems.iter().map(describe_problem).collect(),
    }
}

fn join_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

impl Workflow {
    /// Returns the values of all inputs: the values in `given`, and the defaults of all other
    /// inputs.
    pub fn fill_inputs(
        &self,
        given: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, WorkflowInputError> {
        if let Some(name) = given.keys().find(|name| !self.inputs.contains_key(*name)) {
            return Err(WorkflowInputError::Unknown {
                workflow: self.name.clone(),
                name: name.clone(),
                known: join_names(self.inputs.keys().map(String::as_str)),
            });
        }
        let value = |(name, default): (&String, &Option<String>)| {
            let value = given.get(name).or(default.as_ref());
            let value = value.ok_or_else(|| WorkflowInputError::Missing {
                workflow: self.name.clone(),
                name: name.clone(),
            })?;
            Ok((name.clone(), value.clone()))
        };
        self.inputs.iter().map(value).collect()
    }
}
