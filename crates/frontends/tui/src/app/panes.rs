//! The panes below the reply: the TODO list, background tasks, sub-agents.

use haft_types::TaskPhase;
use serde_json::Value;

use crate::line::{StyledLine, TextStyle};

/// The maximum number of rows of each pane.
const PANE_ROWS: usize = 6;

#[derive(Debug, Default)]
pub(super) struct Panes {
    /// The status and content of each TODO item.
    todo: Vec<(String, String)>,
    todo_hidden: bool,
    /// The id and the command of each running background task.
    tasks: Vec<(String, String)>,
    /// The name and last action of each running sub-agent.
    agents: Vec<(String, String)>,
}

impl Panes {
    /// Hides the TODO list, or shows it again.
    pub(super) fn toggle_todo(&mut self) {
        self.todo_hidden = !self.todo_hidden;
    }

    /// Sets the TODO list from the arguments of a `todo_write` call.
    pub(super) fn set_todo(&mut self, arguments: &Value) {
        let items = arguments
            .get("todos")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let text =
            |item: &Value, name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
        self.todo = items
            .filter_map(|item| Some((text(item, "status")?, text(item, "content")?)))
            .collect();
    }

    /// Adds a background task that started, or removes one that ended.
    pub(super) fn update_task(&mut self, id: &str, phase: TaskPhase, command: &str) {
        self.tasks.retain(|task| task.0 != id);
        match phase {
            TaskPhase::Started => self.tasks.push((id.to_owned(), command.to_owned())),
            TaskPhase::Finished | TaskPhase::Failed | TaskPhase::Killed | TaskPhase::Lost => {}
        }
    }

    /// Shows the last action of a sub-agent.
    pub(super) fn update_agent(&mut self, name: &str, action: String) {
        match self.agents.iter_mut().find(|agent| agent.0 == name) {
            Some(agent) => agent.1 = action,
            None => self.agents.push((name.to_owned(), action)),
        }
    }

    pub(super) fn remove_agent(&mut self, name: &str) {
        self.agents.retain(|agent| agent.0 != name);
    }

    pub(super) fn remove_all_agents(&mut self) {
        self.agents.clear();
    }

    pub(super) fn draw_rows(&self, columns: usize) -> Vec<StyledLine> {
        let mut rows = Vec::new();
        for (name, action) in self.agents.iter().take(PANE_ROWS) {
            rows.push(
                StyledLine::new("↳ ", TextStyle::Accent)
                    .with_text(name, TextStyle::Strong)
                    .with_text(format!(" {action}"), TextStyle::Dim),
            );
        }
        for (id, command) in self.tasks.iter().take(PANE_ROWS) {
            rows.push(
                StyledLine::new("& ", TextStyle::Accent)
                    .with_text(id, TextStyle::Strong)
                    .with_text(
                        format!(" {}", haft_text::reveal_controls(command)),
                        TextStyle::Dim,
                    ),
            );
        }
        let open = self.todo.iter().any(|item| item.0 != "completed");
        if open && !self.todo_hidden {
            rows.extend(self.draw_todo());
        }
        rows.into_iter().map(|row| row.cut(columns)).collect()
    }

    /// Draws the number of completed TODO items, and the first items that are not completed.
    fn draw_todo(&self) -> Vec<StyledLine> {
        let done = self
            .todo
            .iter()
            .filter(|item| item.0 == "completed")
            .count();
        let mut rows = vec![StyledLine::new(
            text!("app-todo-done", done, all = self.todo.len()),
            TextStyle::Dim,
        )];
        let open = self.todo.iter().filter(|item| item.0 != "completed");
        rows.extend(
            open.take(PANE_ROWS - 1)
                .map(|(status, content)| match status.as_str() {
                    "in_progress" => StyledLine::new("▸ ", TextStyle::Accent)
                        .with_text(content, TextStyle::Strong),
                    _ => StyledLine::new("· ", TextStyle::Dim).with_text(content, TextStyle::Plain),
                }),
        );
        rows
    }
}
