//! `todo_read`: the TODO list as it is.

use std::fmt::Write as _;

use async_trait::async_trait;
use haft_tool::{Access, Intent, TodoItem, TodoState, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::{Envelope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::{Failure, settle};
use crate::manual::{Alias, Arguments, Group, Manual};
use crate::{spec_of, visible};

const NAME: &str = "todo_read";

static MANUAL: Manual = Manual {
    example_of: "Looking at the list again",
    example: "{}",
    aliases: &[Alias { name: "TodoRead", translate: classic }],
    ..Manual::of(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {}

/// The tool.
pub(crate) struct TodoRead {
    spec: ToolSpec,
}

impl TodoRead {
    pub(crate) fn new() -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("todo_read/prompt.md")) }
    }
}

#[async_trait]
impl Tool for TodoRead {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn access(&self) -> Access {
        Access::Read
    }

    fn intent(&self, _arguments: &Value) -> Intent {
        Intent::Nothing
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        if let Err(error) = parse_arguments::<Parameters>(NAME, arguments) {
            return settle(Err(error.into()));
        }
        match context.todo.read().await {
            Ok(items) => show(&items).into(),
            Err(reason) => settle(Err(Failure::new("store", format!("the TODO list could not be read: {reason}")))),
        }
    }
}

/// The list as both TODO tools show it.
pub(crate) fn show(items: &[TodoItem]) -> Envelope {
    let count = |state| items.iter().filter(|item| item.status == state).count();
    let (pending, in_progress, completed) =
        (count(TodoState::Pending), count(TodoState::InProgress), count(TodoState::Completed));
    let text = if items.is_empty() { "The TODO list is empty.".to_owned() } else { render(items) };
    Envelope::success(text).with_data(json!({
        "items": items, "pending": pending, "in_progress": in_progress, "completed": completed,
    }))
}

fn render(items: &[TodoItem]) -> String {
    let mut text = String::new();
    for item in items {
        let mark = match item.status {
            TodoState::Pending => "[ ]",
            TodoState::InProgress => "[~]",
            TodoState::Completed => "[x]",
        };
        let _ = writeln!(text, "{mark} {}", visible::line(&item.content));
    }
    text.truncate(text.trim_end().len());
    text
}

fn classic(arguments: Arguments) -> Arguments {
    arguments
}
