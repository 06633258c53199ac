//! Checks workflow files and reports all errors, with their lines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use haft_project::FileProblem;
use haft_text::NameRule;
use serde_saphyr::Spanned;

use crate::template::{self, TemplateVariable};
use crate::workflow::{StepEntry, WorkflowFile, first_content_line, line_number};

/// The maximum number of steps in a workflow.
const MAX_STEPS: usize = 100;

/// The name of the main agent in events. No step can have this name.
const MAIN_AGENT: &str = "main";

/// Returns all errors of a workflow file, or an empty list if the workflow can be run.
pub(crate) fn find_problems(path: &Path, text: &str, written: &WorkflowFile) -> Vec<FileProblem> {
    let mut found = ProblemList {
        path,
        problems: Vec::new(),
    };
    let steps = &written.steps;
    if steps.is_empty() {
        found.add(1, "it has no steps");
    }
    if steps.len() > MAX_STEPS {
        found.add(
            1,
            format!("{} steps are more than {MAX_STEPS}", steps.len()),
        );
        return found.problems;
    }
    for name in written.inputs.keys().filter(|name| !NAME_RULE.allows(name)) {
        found.add(
            1,
            format!("`{name}` is not a name for an input: use letters, digits and `_`"),
        );
    }
    check_names(steps, &mut found);
    check_needs(steps, &mut found);
    if found.problems.is_empty() {
        check_cycles(steps, &mut found);
    }
    // The templates are checked last, because the outputs they may use depend on valid needs.
    if found.problems.is_empty() {
        check_templates(text, written, &mut found);
    }
    found.problems
}

/// The rule for the names of steps and inputs: they are identifiers, because templates contain
/// expressions such as `steps.NAME`.
const NAME_RULE: NameRule = NameRule::Identifier;

struct ProblemList<'a> {
    path: &'a Path,
    problems: Vec<FileProblem>,
}

impl ProblemList<'_> {
    fn add(&mut self, line: usize, what: impl Into<String>) {
        self.problems
            .push(FileProblem::new(self.path, what).at_line(line));
    }
}

fn check_names(steps: &[StepEntry], found: &mut ProblemList<'_>) {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for step in steps {
        let name = step.name.value.as_str();
        let line = line_number(&step.name);
        if !NAME_RULE.allows(name) {
            found.add(
                line,
                format!("`{name}` is not a name for a step: use letters, digits and `_`"),
            );
        }
        if name == MAIN_AGENT {
            found.add(
                line,
                format!(
                    "a step cannot be called `{name}`: events know the main agent by that name"
                ),
            );
        }
        if let Some(first) = lines.get(name) {
            found.add(
                line,
                format!("there is a step `{name}` already, in line {first}"),
            );
        } else {
            lines.insert(name, line);
        }
        if step.prompt.value.trim().is_empty() {
            found.add(
                line_number(&step.prompt),
                format!("the prompt of `{name}` is empty"),
            );
        }
    }
}

fn check_needs(steps: &[StepEntry], found: &mut ProblemList<'_>) {
    let names: Vec<&str> = steps.iter().map(|step| step.name.value.as_str()).collect();
    for step in steps {
        for need in &step.needs {
            if need.value == step.name.value {
                found.add(line_number(need), format!("`{}` needs itself", need.value));
            } else if !names.contains(&need.value.as_str()) {
                let there = names.join(", ");
                let name = &step.name.value;
                found.add(
                    line_number(need),
                    format!(
                        "`{name}` needs `{}`, which is no step; there are: {there}",
                        need.value
                    ),
                );
            }
        }
    }
}

/// Reports a problem if steps need each other in a cycle. Steps that need no remaining step are
/// removed repeatedly; each step that is left is part of a cycle or depends on one.
fn check_cycles(steps: &[StepEntry], found: &mut ProblemList<'_>) {
    let mut left: Vec<&StepEntry> = steps.iter().collect();
    loop {
        let waiting: Vec<_> = left
            .iter()
            .copied()
            .filter(|step| {
                step.needs
                    .iter()
                    .any(|need| left.iter().any(|other| is_needed_step(other, need)))
            })
            .collect();
        if waiting.len() == left.len() {
            break;
        }
        left = waiting;
    }
    let Some(mut at) = left.first().copied() else {
        return;
    };
    let mut path: Vec<&StepEntry> = Vec::new();
    let begin = loop {
        if let Some(begin) = path
            .iter()
            .position(|step| step.name.value == at.name.value)
        {
            break begin;
        }
        path.push(at);
        let next = at
            .needs
            .iter()
            .find_map(|need| left.iter().find(|other| is_needed_step(other, need)));
        // Each remaining step needs another remaining step.
        let Some(next) = next else { return };
        at = next;
    };
    let cycle = &path[begin..];
    let names: Vec<_> = cycle
        .iter()
        .chain(cycle.first())
        .map(|step| format!("`{}`", step.name.value))
        .collect();
    let line = cycle
        .first()
        .and_then(|step| step.needs.first())
        .map_or(1, line_number);
    found.add(
        line,
        format!("steps wait for each other: {}", names.join(" needs ")),
    );
}

fn is_needed_step(step: &StepEntry, need: &Spanned<String>) -> bool {
    step.name.value == need.value
}

fn check_templates(text: &str, written: &WorkflowFile, found: &mut ProblemList<'_>) {
    for step in &written.steps {
        let begins = first_content_line(&step.prompt, text);
        match template::find_variables(&step.prompt.value) {
            Err((what, line)) => found.add(begins + line.saturating_sub(1), what),
            Ok(mentions) => {
                let before = collect_transitive_needs(step, &written.steps);
                for mention in mentions {
                    let (what, word) = match mention {
                        TemplateVariable::Step(name) if before.contains(name.as_str()) => continue,
                        TemplateVariable::Input(name) if written.inputs.contains_key(&name) => {
                            continue;
                        }
                        TemplateVariable::Step(name) => (
                            format!(
                                "the prompt mentions `steps.{name}.output`, but `{}` does not need `{name}`",
                                step.name.value
                            ),
                            format!("steps.{name}"),
                        ),
                        TemplateVariable::Input(name) => (
                            format!(
                                "the prompt mentions `inputs.{name}`, which is not among the `inputs`"
                            ),
                            format!("inputs.{name}"),
                        ),
                        TemplateVariable::Other(path) => (
                            format!(
                                "the prompt mentions `{path}`; there are `inputs.NAME` and `steps.NAME.output`"
                            ),
                            path,
                        ),
                    };
                    let line = step
                        .prompt
                        .value
                        .lines()
                        .position(|line| line.contains(&word))
                        .unwrap_or(0);
                    found.add(begins + line, what);
                }
            }
        }
    }
}

/// Returns all steps that `step` needs, directly or indirectly. They are done before `step` starts.
fn collect_transitive_needs<'a>(step: &'a StepEntry, steps: &'a [StepEntry]) -> BTreeSet<&'a str> {
    let mut all = BTreeSet::new();
    let mut open: Vec<&StepEntry> = vec![step];
    while let Some(step) = open.pop() {
        for need in &step.needs {
            if all.insert(need.value.as_str()) {
                open.extend(steps.iter().filter(|other| is_needed_step(other, need)));
            }
        }
    }
    all
}
