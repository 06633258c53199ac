//! What goes on beside the answer: the TODO list, background tasks, sub-agents.

use haft_types::TaskPhase;
use serde_json::Value;

use crate::line::{StyledLine, TextStyle};

/// Rows of each list.
const SHOWN: usize = 6;

#[derive(Debug, Default)]
pub(super) struct Panes {
    todo: Vec<(String, String)>,
    pub(super) todo_hidden: bool,
    /// Id and command of what runs.
    tasks: Vec<(String, String)>,
    /// Name and last text or call of the running sub-agents.
    agents: Vec<(String, String)>,
}

impl Panes {
    /// Takes the list of a `todo_write` call.
    pub(super) fn take_todo(&mut self, arguments: &Value) {
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

    pub(super) fn task(&mut self, id: &str, phase: TaskPhase, command: &str) {
        self.tasks.retain(|task| task.0 != id);
        match phase {
            TaskPhase::Started => self.tasks.push((id.to_owned(), command.to_owned())),
            TaskPhase::Finished | TaskPhase::Failed | TaskPhase::Killed | TaskPhase::Lost => {}
        }
    }

    /// A sub-agent does something.
    pub(super) fn agent_does(&mut self, name: &str, what: String) {
        match self.agents.iter_mut().find(|agent| agent.0 == name) {
            Some(agent) => agent.1 = what,
            None => self.agents.push((name.to_owned(), what)),
        }
    }

    pub(super) fn agent_ends(&mut self, name: &str) {
        self.agents.retain(|agent| agent.0 != name);
    }

    /// Nobody works for a turn that is over.
    pub(super) fn end_agents(&mut self) {
        self.agents.clear();
    }

    pub(super) fn rows(&self, columns: usize) -> Vec<StyledLine> {
        let mut rows = Vec::new();
        for (name, what) in self.agents.iter().take(SHOWN) {
            rows.push(
                StyledLine::of("↳ ", TextStyle::Accent)
                    .and(name, TextStyle::Strong)
                    .and(format!(" {what}"), TextStyle::Dim),
            );
        }
        for (id, command) in self.tasks.iter().take(SHOWN) {
            rows.push(
                StyledLine::of("& ", TextStyle::Accent)
                    .and(id, TextStyle::Strong)
                    .and(format!(" {}", haft_text::reveal(command)), TextStyle::Dim),
            );
        }
        let open = self.todo.iter().any(|item| item.0 != "completed");
        if open && !self.todo_hidden {
            rows.extend(self.todo_rows());
        }
        rows.into_iter().map(|row| row.cut(columns)).collect()
    }

    /// What is being done and what comes after it; what is done only as a number.
    fn todo_rows(&self) -> Vec<StyledLine> {
        let done = self
            .todo
            .iter()
            .filter(|item| item.0 == "completed")
            .count();
        let mut rows = vec![StyledLine::of(
            text!("app-todo-done", done, all = self.todo.len()),
            TextStyle::Dim,
        )];
        let open = self.todo.iter().filter(|item| item.0 != "completed");
        rows.extend(
            open.take(SHOWN - 1)
                .map(|(status, content)| match status.as_str() {
                    "in_progress" => {
                        StyledLine::of("▸ ", TextStyle::Accent).and(content, TextStyle::Strong)
                    }
                    _ => StyledLine::of("· ", TextStyle::Dim).and(content, TextStyle::Plain),
                }),
        );
        rows
    }
}
