//! Parses the plan of tasks that the model writes, as YAML text or as a JSON object.

use haft_tool::{Assignment, WorkOrder, WorkPlace};
use serde::Deserialize;
use serde_json::Value;

/// The maximum number of tasks in one call. A larger number is considered a mistake of the model.
const MAX_TASKS: usize = 32;

/// The unparsed `subagents` argument.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum PlanText {
    Text(String),
    /// A JSON object or list, which some models send instead of YAML text.
    Object(Value),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    mode: Option<String>,
    subagents: Vec<AgentEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentEntry {
    name: String,
    task: String,
    conversation: Option<String>,
    worktree: Option<bool>,
}

impl PlanText {
    /// Parses the plan. The error message is for the model.
    pub(super) fn parse_plan(self) -> Result<(WorkOrder, Vec<Assignment>), String> {
        let plan = match self {
            Self::Text(text) => parse_yaml_plan(&text)?,
            Self::Object(value) if value.is_array() => Plan {
                mode: None,
                subagents: parse_json_plan(value)?,
            },
            Self::Object(value) => parse_json_plan(value)?,
        };
        let order = match plan.mode.as_deref().map(str::trim) {
            None | Some("parallel") => WorkOrder::Parallel,
            Some("serial") => WorkOrder::Serial,
            Some("background") => WorkOrder::Background,
            Some(other) => {
                return Err(format!(
                    "`mode` is `parallel`, `serial` or `background`, not `{other}`"
                ));
            }
        };
        if plan.subagents.is_empty() {
            return Err("`subagents` is empty".to_owned());
        }
        if plan.subagents.len() > MAX_TASKS {
            return Err(format!(
                "{} tasks are more than {MAX_TASKS}; give them out in several calls",
                plan.subagents.len()
            ));
        }
        let work: Result<_, _> = plan
            .subagents
            .into_iter()
            .enumerate()
            .map(check_entry)
            .collect();
        work.map(|work| (order, work))
    }
}

fn check_entry((index, entry): (usize, AgentEntry)) -> Result<Assignment, String> {
    let name = entry.name.trim();
    let task = entry.task.trim();
    if name.is_empty() || task.is_empty() {
        return Err(format!("entry {} needs a `name` and a `task`", index + 1));
    }
    let conversation = entry
        .conversation
        .map(|id| id.trim().to_owned())
        .filter(|id| !id.is_empty());
    let place = entry.worktree.map(|own| {
        if own {
            WorkPlace::Worktree
        } else {
            WorkPlace::Project
        }
    });
    Ok(Assignment {
        name: name.to_owned(),
        task: task.to_owned(),
        conversation,
        place,
    })
}

fn parse_yaml_plan(text: &str) -> Result<Plan, String> {
    let whole = serde_saphyr::from_str::<Plan>(text);
    let error = match whole {
        Ok(plan) => return Ok(plan),
        Err(error) => error,
    };
    if let Ok(subagents) = serde_saphyr::from_str::<Vec<AgentEntry>>(text) {
        return Ok(Plan {
            mode: None,
            subagents,
        });
    }
    let why = error.without_snippet().to_string();
    Err(format!(
        "`subagents` is not the YAML expected: {}",
        why.lines().next().unwrap_or("it cannot be read")
    ))
}

fn parse_json_plan<T: for<'de> Deserialize<'de>>(value: Value) -> Result<T, String> {
    serde_json::from_value(value)
        .map_err(|error| format!("`subagents` is not what is expected: {error}"))
}
