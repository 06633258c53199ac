//! Converts auto-coder's workflow files (`kind: SubagentWorkflow`) to haft's format.
//!
//! Everything without a counterpart is named in a notice. A file whose meaning would change is
//! rejected, such as a file with a step that has a condition.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::workflow::{StepEntry, WorkflowFile, line_number};

/// The kind of the files that are converted.
const KIND: &str = "SubagentWorkflow";
/// The maximum number of copies of a step that run in parallel.
const MAX_REPLICAS: u32 = 8;
/// The maximum number of names in one notice.
const MAX_NAMES: usize = 20;
/// The output that contains the answer of a step.
const ANSWER: &str = "${attempt_result}";

#[derive(Deserialize)]
struct SourceWorkflow {
    kind: Option<String>,
    metadata: Option<SourceMetadata>,
    spec: Spec,
}

#[derive(Deserialize)]
struct SourceMetadata {
    description: Option<String>,
}

#[derive(Deserialize)]
struct Spec {
    globals: Option<Globals>,
    vars: Option<BTreeMap<String, Value>>,
    conversation: Option<SharedConversation>,
    agents: Option<Vec<SourceAgent>>,
    steps: Vec<SourceStep>,
}

#[derive(Deserialize)]
struct Globals {
    model: Option<String>,
}

#[derive(Deserialize)]
struct SharedConversation {
    default_action: Option<String>,
}

#[derive(Deserialize)]
struct SourceAgent {
    id: String,
    path: String,
    model: Option<String>,
}

#[derive(Deserialize)]
struct SourceStep {
    id: Spanned<String>,
    agent: Spanned<String>,
    needs: Option<Vec<Spanned<String>>>,
    replicas: Option<u32>,
    conversation: Option<StepConversation>,
    with: StepInput,
    outputs: Option<BTreeMap<String, Value>>,
    when: Option<Value>,
}

#[derive(Deserialize)]
struct StepConversation {
    action: Option<String>,
}

#[derive(Deserialize)]
struct StepInput {
    user_input: Spanned<String>,
}

/// A converted file, and the parts of it that have no counterpart in haft.
pub(crate) struct ConvertedFile {
    pub(crate) file: WorkflowFile,
    pub(crate) notices: Vec<String>,
}

/// A reason why a file cannot be converted, with its line.
pub(crate) type ConversionProblem = (String, usize);

/// True if the text is a workflow file of auto-coder. haft's own files have none of these keys.
pub(crate) fn is_auto_coder_file(document: &Value) -> bool {
    ["apiVersion", "kind", "spec"]
        .iter()
        .any(|key| document.get(key).is_some())
}

/// Converts a file of auto-coder. `document` is the file as JSON, from which keys without a
/// counterpart are collected.
pub(crate) fn convert_file(
    text: &str,
    document: &Value,
) -> Result<ConvertedFile, Vec<ConversionProblem>> {
    let source: SourceWorkflow = serde_saphyr::from_str(text).map_err(|error| {
        let line = error
            .location()
            .map_or(1, |location| location.line() as usize);
        let message = error.without_snippet().to_string();
        let message = message.lines().next().unwrap_or_default().to_owned();
        let message = message
            .rsplit_once(" at line ")
            .map_or(message.as_str(), |(message, _)| message);
        vec![(format!("it cannot be read: {message}"), line)]
    })?;
    match source.kind.as_deref() {
        Some(KIND) => {}
        kind => {
            let kind = kind.unwrap_or("none");
            return Err(vec![(
                format!("its kind is `{kind}`; haft reads workflows of the kind `{KIND}`"),
                1,
            )]);
        }
    }
    let mut conversion = Conversion::new(&source);
    conversion.notices.extend(describe_unknown_keys(document));
    let steps: Vec<_> = source
        .spec
        .steps
        .iter()
        .flat_map(|step| conversion.convert_step(step))
        .collect();
    if !conversion.problems.is_empty() {
        return Err(conversion.problems);
    }
    conversion.notice_conversations();
    Ok(ConvertedFile {
        file: WorkflowFile {
            description: source
                .metadata
                .as_ref()
                .and_then(|metadata| metadata.description.clone())
                .unwrap_or_default(),
            inputs: conversion.inputs,
            steps,
        },
        notices: conversion.notices,
    })
}

struct Conversion<'a> {
    spec: &'a Spec,
    /// The inputs: variables of the file, and variables that only prompts mention.
    inputs: BTreeMap<String, Option<String>>,
    notices: Vec<String>,
    problems: Vec<ConversionProblem>,
    /// The names of the steps that continue a conversation.
    continuing: Vec<String>,
}

impl<'a> Conversion<'a> {
    fn new(source: &'a SourceWorkflow) -> Self {
        let vars = source.spec.vars.iter().flatten();
        Self {
            spec: &source.spec,
            inputs: vars
                .map(|(name, value)| (name.clone(), render_default(value)))
                .collect(),
            notices: Vec::new(),
            problems: Vec::new(),
            continuing: Vec::new(),
        }
    }

    /// Converts a step to one step for each of its replicas.
    fn convert_step(&mut self, step: &SourceStep) -> Vec<StepEntry> {
        let line = line_number(&step.id);
        if step.when.is_some() {
            self.problems.push((
                format!(
                    "`when` of the step `{}` has no counterpart: the step would always run; remove it, or write the workflow anew in haft's format",
                    step.id.value
                ),
                line,
            ));
        }
        let Some(agent) = self.find_agent(step) else {
            return Vec::new();
        };
        let name = to_step_name(&step.id.value);
        let replicas = self.count_replicas(step);
        let needs: Vec<_> = step.needs.iter().flatten().collect();
        let mut prompt = self.convert_prompt(step);
        if self.continues_conversation(step) {
            self.continuing.push(step.id.value.clone());
            for need in &needs {
                let output = self.render_output(&need.value);
                if !prompt.contains(&output) {
                    let name = to_step_name(&need.value);
                    prompt = format!(
                        "{}\n\n<step_output name=\"{name}\">\n{output}\n</step_output>",
                        prompt.trim_end()
                    );
                }
            }
        }
        let needs: Vec<_> = needs
            .into_iter()
            .flat_map(|need| {
                let names = self.replica_names(&need.value);
                names.map(|name| replace_value(need, name))
            })
            .collect();
        let model = agent.model.clone();
        let model = model.or_else(|| self.spec.globals.as_ref()?.model.clone());
        (1..=replicas)
            .map(|number| StepEntry {
                name: replace_value(&step.id, replica_name(&name, number)),
                agent: Some(replace_value(&step.agent, agent_name(&agent.path))),
                model: model.clone().filter(|model| !model.is_empty()),
                prompt: replace_value(&step.with.user_input, prompt.clone()),
                needs: needs.clone(),
                worktree: None,
            })
            .collect()
    }

    /// Returns the agent of a step. An unknown agent, and an agent outside the folders of agents,
    /// is a problem.
    fn find_agent(&mut self, step: &SourceStep) -> Option<&'a SourceAgent> {
        let line = line_number(&step.agent);
        let id = &step.agent.value;
        let mut agents = self.spec.agents.iter().flatten();
        let Some(agent) = agents.find(|agent| agent.id == *id) else {
            self.problems.push((
                format!("`spec.agents` has no agent with the id `{id}`"),
                line,
            ));
            return None;
        };
        let path = agent.path.trim_start_matches("./");
        let file = path.strip_prefix(".autocoderagents/").unwrap_or(path);
        if file.contains('/') || agent_name(file).is_empty() {
            self.problems.push((
                format!(
                    "the path `{}` of the agent `{id}` is not a file of a folder for agents",
                    agent.path
                ),
                line,
            ));
            return None;
        }
        Some(agent)
    }

    fn count_replicas(&mut self, step: &SourceStep) -> u32 {
        let replicas = step.replicas.unwrap_or(1);
        if replicas == 0 || replicas > MAX_REPLICAS {
            self.problems.push((
                format!(
                    "`replicas` of the step `{}` is {replicas}, which is not from 1 to {MAX_REPLICAS}",
                    step.id.value
                ),
                line_number(&step.id),
            ));
            return 1;
        }
        replicas
    }

    /// True if auto-coder would run the step in an existing conversation. Each step of haft has a
    /// conversation of its own.
    fn continues_conversation(&self, step: &SourceStep) -> bool {
        let own = step.conversation.as_ref();
        if let Some(action) = own.and_then(|conversation| conversation.action.as_deref()) {
            return action != "new";
        }
        let shared = self.spec.conversation.as_ref();
        let continues = shared
            .and_then(|conversation| conversation.default_action.as_deref())
            .is_some_and(|action| action != "new");
        // Without a needed step, there is nothing in this run that could be continued.
        continues && step.needs.as_ref().is_some_and(|needs| !needs.is_empty())
    }

    fn notice_conversations(&mut self) {
        if !self.continuing.is_empty() {
            self.notices.push(format!(
                "the steps {} continue a conversation in auto-coder; in haft, each step has its own conversation and gets the answers of the steps it needs",
                quote_names(&self.continuing)
            ));
        }
    }

    /// Converts a prompt to a template: `${vars.NAME}` and `${steps.ID.outputs.NAME}` are replaced,
    /// and all other text stays literal.
    fn convert_prompt(&mut self, step: &SourceStep) -> String {
        let mut template = String::new();
        let mut rest = step.with.user_input.value.as_str();
        while let Some(at) = rest.find("${") {
            let (before, from) = rest.split_at(at);
            escape_literal(before, &mut template);
            if let Some((name, after)) = from[2..].split_once('}')
                && let Some(converted) = self.convert_variable(name.trim(), step)
            {
                template.push_str(&converted);
                rest = after;
            } else {
                template.push_str("${");
                rest = &from[2..];
            }
        }
        escape_literal(rest, &mut template);
        template
    }

    /// Returns the template for a variable, or `None` if the text is not a variable of auto-coder.
    fn convert_variable(&mut self, name: &str, step: &SourceStep) -> Option<String> {
        if let Some(input) = name.strip_prefix("vars.") {
            self.inputs.entry(input.to_owned()).or_default();
            return Some(format!("{{{{ inputs.{input} }}}}"));
        }
        let (source, output) = name.strip_prefix("steps.")?.split_once(".outputs.")?;
        let steps = &self.spec.steps;
        let Some(other) = steps.iter().find(|other| other.id.value == source) else {
            self.problems.push((
                format!("the prompt mentions `{name}`, but there is no step `{source}`"),
                line_number(&step.with.user_input),
            ));
            return Some(String::new());
        };
        let declared = other
            .outputs
            .as_ref()
            .and_then(|outputs| outputs.get(output));
        match declared.and_then(Value::as_str) {
            Some(ANSWER) => Some(self.render_output(source)),
            Some("${conversation_id}") => {
                self.notices.push(format!(
                    "`{name}` in the prompt of the step `{}` is left empty: prompts get no ids of conversations",
                    step.id.value
                ));
                Some(String::new())
            }
            Some(_) | None => {
                self.notices.push(format!(
                    "`{name}` in the prompt of the step `{}` is the whole answer of the step `{source}`: haft does not take an answer apart",
                    step.id.value
                ));
                Some(self.render_output(source))
            }
        }
    }

    /// Returns the template for the answers of all replicas of a step.
    fn render_output(&self, id: &str) -> String {
        let outputs: Vec<_> = self
            .replica_names(id)
            .map(|name| format!("{{{{ steps.{name}.output }}}}"))
            .collect();
        outputs.join("\n\n")
    }

    fn replica_names(&self, id: &str) -> impl Iterator<Item = String> + use<> {
        let mut steps = self.spec.steps.iter();
        let replicas = steps
            .find(|step| step.id.value == id)
            .and_then(|step| step.replicas)
            .unwrap_or(1);
        let name = to_step_name(id);
        (1..=replicas.clamp(1, MAX_REPLICAS)).map(move |number| replica_name(&name, number))
    }
}

/// Returns the name of an agent's file without its extension. The agent itself may have another
/// name ([`crate::Workflow::resolve_agent_files`]).
fn agent_name(path: &str) -> String {
    Path::new(path)
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn replica_name(name: &str, number: u32) -> String {
    if number == 1 {
        name.to_owned()
    } else {
        format!("{name}_{number}")
    }
}

/// Returns the name of a step as an identifier, because templates contain names of steps.
fn to_step_name(id: &str) -> String {
    id.chars()
        .map(|c| if c.is_alphanumeric() { c } else { '_' })
        .collect()
}

fn replace_value(old: &Spanned<String>, value: String) -> Spanned<String> {
    Spanned::new(value, old.referenced, old.defined)
}

/// Returns the default value of a variable as text, or `None` if the variable is empty.
fn render_default(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Some(value.to_string())
        }
    }
}

/// Appends `text` to a template so that the template renders to exactly this text.
fn escape_literal(text: &str, template: &mut String) {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let opens = c == '{'
            && chars
                .peek()
                .is_some_and(|next| ['{', '%', '#'].contains(next));
        if opens {
            template.push_str("{{ '{' }}");
        } else {
            template.push(c);
        }
    }
}

/// The keys with a counterpart in haft, by their place in the file. `*` is an element of a list.
const KNOWN_KEYS: [(&str, &[&str]); 10] = [
    ("", &["apiVersion", "kind", "metadata", "spec"]),
    ("metadata", &["name", "description"]),
    (
        "spec",
        &[
            "globals",
            "vars",
            "conversation",
            "attempt",
            "agents",
            "steps",
        ],
    ),
    ("spec.globals", &["model"]),
    ("spec.conversation", &["default_action"]),
    ("spec.attempt", &[]),
    ("spec.agents.*", &["id", "path", "model"]),
    (
        "spec.steps.*",
        &[
            "id",
            "agent",
            "needs",
            "replicas",
            "conversation",
            "with",
            "outputs",
            "when",
        ],
    ),
    ("spec.steps.*.conversation", &["action"]),
    ("spec.steps.*.with", &["user_input"]),
];

/// Keys whose usual value is also haft's behavior, so that only other values are worth a notice.
const USUAL_VALUES: [(&str, &str); 2] = [
    ("spec.globals.include_rules", "false"),
    ("spec.attempt.format", "\"text\""),
];

/// Names all keys without a counterpart in one notice.
fn describe_unknown_keys(document: &Value) -> Option<String> {
    let mut unknown = BTreeSet::new();
    for (place, known) in KNOWN_KEYS {
        for (name, section) in find_sections(document, place) {
            for (key, value) in section.as_object().into_iter().flatten() {
                let path = format!("{name}{}{key}", if name.is_empty() { "" } else { "." });
                let usual = (path.as_str(), value.to_string());
                let is_usual = USUAL_VALUES
                    .iter()
                    .any(|(path, value)| usual == (*path, (*value).to_owned()));
                if !known.contains(&key.as_str()) && !is_usual {
                    unknown.insert(path);
                }
            }
        }
    }
    let unknown: Vec<_> = unknown.into_iter().collect();
    (!unknown.is_empty()).then(|| {
        format!(
            "{} have no counterpart in haft and are left out",
            quote_names(&unknown)
        )
    })
}

/// Returns the sections at a place, each with its name. The name of an element of a list contains
/// the element's `id`.
fn find_sections<'a>(document: &'a Value, place: &str) -> Vec<(String, &'a Value)> {
    let mut found = vec![(String::new(), document)];
    for part in place.split('.').filter(|part| !part.is_empty()) {
        found = found
            .into_iter()
            .flat_map(|(name, section)| {
                if part == "*" {
                    let elements = section.as_array().into_iter().flatten();
                    return elements
                        .map(|element| {
                            let id = element.get("id").and_then(Value::as_str);
                            (format!("{name}.{}", id.unwrap_or("?")), element)
                        })
                        .collect::<Vec<_>>();
                }
                let separator = if name.is_empty() { "" } else { "." };
                let section = section.get(part);
                section
                    .map(|section| (format!("{name}{separator}{part}"), section))
                    .into_iter()
                    .collect()
            })
            .collect();
    }
    found
}

fn quote_names(names: &[String]) -> String {
    let shown = names.iter().take(MAX_NAMES);
    let mut shown: Vec<_> = shown.map(|name| format!("`{name}`")).collect();
    if names.len() > MAX_NAMES {
        shown.push(format!("{} more", names.len() - MAX_NAMES));
    }
    shown.join(", ")
}
