//! `todo_write`: replaces the TODO list.

use crate::knowledge::todo::{StoredTodo, TodoItem, TodoState};
use crate::knowledge::{get_session_value, todo_read};
use crate::prelude::*;

const NAME: &str = "todo_write";

static MANUAL: Manual = Manual {
    aliases: &[Alias {
        name: "TodoWrite",
        translate: translate_arguments,
    }],
    ..Manual::for_group(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TodoWriteParameters {
    /// The whole new list, in order: items left out are gone.
    todos: Vec<TodoItem>,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("todo_write/prompt"),
        &MANUAL,
        Access::State,
        |_| Intent::Nothing,
    )
    .with_function(|context, parameters| Box::pin(write_todos(context, parameters)))
}

async fn write_todos(
    context: &ToolContext,
    TodoWriteParameters { todos }: TodoWriteParameters,
) -> CallResult {
    if let Some(at) = todos.iter().position(|item| item.content.trim().is_empty()) {
        return Err(ToolFailure::new(
            "invalid_arguments",
            format!(
                "item {} of `todos` has no content; say what is to be done",
                at + 1
            ),
        ));
    }
    let mut envelope = todo_read::build_todo_envelope(&todos);
    if todos
        .iter()
        .filter(|item| item.status == TodoState::InProgress)
        .count()
        > 1
    {
        envelope.text.push_str(
            "\nMore than one item is in progress; it is clearer to work on one at a time.",
        );
    }
    let failed = |reason| {
        ToolFailure::new(
            "store",
            format!("the TODO list could not be stored and is unchanged: {reason}"),
        )
    };
    let todo = get_session_value::<StoredTodo>(context).map_err(failed)?;
    todo.write(todos).await.map_err(failed)?;
    Ok(envelope.into())
}

/// Removes fields of TODO items in the form of other agents that haft does not store.
fn translate_arguments(mut arguments: Arguments) -> Arguments {
    let items = arguments.get_mut("todos").and_then(Value::as_array_mut);
    for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
        remove_arguments(item, &["id", "priority", "activeForm"]);
    }
    arguments
}

#[cfg(test)]
mod tests;
