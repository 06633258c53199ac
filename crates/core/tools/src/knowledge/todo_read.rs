//! `todo_read`: returns the TODO list.

use std::fmt::Write as _;

use crate::knowledge::get_session_value;
use crate::knowledge::todo::{StoredTodo, TodoItem, TodoState};
use crate::prelude::*;
use crate::visible;

const NAME: &str = "todo_read";

static MANUAL: Manual = Manual {
    aliases: &[Alias {
        name: "TodoRead",
        translate: translate_arguments,
    }],
    availability: Availability::Extension,
    ..Manual::for_group(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TodoReadParameters {}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("todo_read/prompt"),
        &MANUAL,
        Access::Read,
        |_| Intent::Nothing,
    )
    .with_function(|context, parameters| Box::pin(read_todos(context, parameters)))
}

async fn read_todos(context: &ToolContext, _: TodoReadParameters) -> Result<Envelope, ToolFailure> {
    let failed = |reason| {
        ToolFailure::new(
            "store",
            format!("the TODO list could not be read: {reason}"),
        )
    };
    let todo = get_session_value::<StoredTodo>(context).map_err(failed)?;
    let items = todo.read().await.map_err(failed)?;
    Ok(build_todo_envelope(&items))
}

/// Returns the TODO list in the form of a result of `todo_read` and `todo_write`.
pub(crate) fn build_todo_envelope(items: &[TodoItem]) -> Envelope {
    let count = |state| items.iter().filter(|item| item.status == state).count();
    let pending = count(TodoState::Pending);
    let in_progress = count(TodoState::InProgress);
    let completed = count(TodoState::Completed);
    let text = if items.is_empty() {
        "The TODO list is empty.".to_owned()
    } else {
        format_items(items)
    };
    Envelope::success(text).with_data(json!({
        "items": items, "pending": pending, "in_progress": in_progress, "completed": completed,
    }))
}

fn format_items(items: &[TodoItem]) -> String {
    let mut text = String::new();
    for item in items {
        let mark = match item.status {
            TodoState::Pending => "[ ]",
            TodoState::InProgress => "[~]",
            TodoState::Completed => "[x]",
        };
        let _ = writeln!(text, "{mark} {}", visible::reveal_line(&item.content));
    }
    text.truncate(text.trim_end().len());
    text
}

fn translate_arguments(arguments: Arguments) -> Arguments {
    arguments
}
