//! The panes below the reply: the TODO list, background tasks, sub-agents.
//!
//! Invariant: a running task or sub-agent shows its time at every width.

use std::time::Duration;

use haft_types::{EventBody, TaskPhase};
use serde_json::Value;

use super::activity::format_elapsed;
use crate::call::draw_last_lines;
use crate::line::{StyledLine, TextStyle};
use crate::link::RunningTask;

/// The maximum number of tasks, sub-agents and TODO items that are shown.
const PANE_ROWS: usize = 6;
/// The maximum number of rows of output of each task and sub-agent.
const OUTPUT_ROWS: usize = 2;
/// The number of bytes of a sub-agent's text that are kept.
const TEXT_BYTES: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Panes {
    /// The status and content of each TODO item.
    todo: Vec<(String, String)>,
    todo_hidden: bool,
    tasks: Vec<TaskPane>,
    agents: Vec<AgentPane>,
}

/// A running background task.
#[derive(Debug)]
struct TaskPane {
    id: String,
    command: String,
    since: Duration,
    /// The last lines of the output.
    output: String,
}

/// A running sub-agent.
#[derive(Debug)]
struct AgentPane {
    name: String,
    /// The task, or the last call.
    action: String,
    since: Duration,
    /// The end of the text and of the output that the sub-agent has produced since its last call.
    output: String,
    /// The number of tokens that the sub-agent has written.
    tokens: u64,
    /// The ids and titles of the calls that have not run yet.
    waiting: Vec<(String, String)>,
}

/// The work of a sub-agent that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AgentWork {
    pub(super) elapsed: Duration,
    /// The number of tokens that the sub-agent has written.
    pub(super) tokens: u64,
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
    pub(super) fn update_task(&mut self, id: &str, phase: TaskPhase, command: &str, now: Duration) {
        self.tasks.retain(|task| task.id != id);
        match phase {
            TaskPhase::Started => self.tasks.push(TaskPane {
                id: id.to_owned(),
                command: command.to_owned(),
                since: now,
                output: String::new(),
            }),
            TaskPhase::Finished | TaskPhase::Failed | TaskPhase::Killed | TaskPhase::Lost => {}
        }
    }

    /// Replaces the list of running background tasks.
    pub(super) fn set_tasks(&mut self, tasks: Vec<RunningTask>, now: Duration) {
        self.tasks = tasks
            .into_iter()
            .map(|task| TaskPane {
                id: task.id,
                command: task.command,
                since: now.saturating_sub(task.elapsed),
                output: task.output,
            })
            .collect();
    }

    /// Returns the command lines of the running background tasks.
    pub(super) fn task_commands(&self) -> impl Iterator<Item = &str> {
        self.tasks.iter().map(|task| task.command.as_str())
    }

    /// Returns true if the rows show times.
    pub(super) fn changes_over_time(&self) -> bool {
        !self.tasks.is_empty() || !self.agents.is_empty()
    }

    /// Shows the task of a sub-agent that started, or its last call.
    pub(super) fn update_agent(&mut self, name: &str, action: String, now: Duration) {
        let agent = self.find_or_add_agent(name, now);
        agent.action = action;
        agent.output.clear();
    }

    fn find_or_add_agent(&mut self, name: &str, now: Duration) -> &mut AgentPane {
        let at = self
            .agents
            .iter()
            .position(|agent| agent.name == name)
            .unwrap_or_else(|| {
                self.agents.push(AgentPane {
                    name: name.to_owned(),
                    action: String::new(),
                    since: now,
                    output: String::new(),
                    tokens: 0,
                    waiting: Vec::new(),
                });
                self.agents.len() - 1
            });
        &mut self.agents[at]
    }

    /// Records a call of a sub-agent that waits for earlier calls or for an approval.
    pub(super) fn add_agent_call(&mut self, name: &str, id: &str, title: String, now: Duration) {
        let agent = self.find_or_add_agent(name, now);
        agent.waiting.push((id.to_owned(), title));
    }

    /// Shows a call of a sub-agent that begins to run.
    pub(super) fn start_agent_call(&mut self, name: &str, id: &str, now: Duration) {
        let waiting = &mut self.find_or_add_agent(name, now).waiting;
        if let Some(at) = waiting.iter().position(|call| call.0 == id) {
            let title = waiting.remove(at).1;
            self.update_agent(name, title, now);
        }
    }

    /// Shows the text and the output of a running sub-agent, and counts its tokens.
    pub(super) fn follow_agent(&mut self, name: &str, body: &EventBody) {
        let Some(agent) = self.agents.iter_mut().find(|agent| agent.name == name) else {
            return;
        };
        if let EventBody::Text { text } | EventBody::ToolProgress { text, .. } = body {
            agent.output.push_str(text);
            let start = agent.output.len().saturating_sub(TEXT_BYTES);
            let start = agent.output.ceil_char_boundary(start);
            agent.output.drain(..start);
        } else if let EventBody::Usage { usage, .. } = body {
            agent.tokens += usage.output;
        }
    }

    /// Removes a sub-agent, and returns its work.
    pub(super) fn remove_agent(&mut self, name: &str, now: Duration) -> AgentWork {
        let Some(at) = self.agents.iter().position(|agent| agent.name == name) else {
            return AgentWork::default();
        };
        let agent = self.agents.remove(at);
        AgentWork {
            elapsed: now.saturating_sub(agent.since),
            tokens: agent.tokens,
        }
    }

    pub(super) fn remove_all_agents(&mut self) {
        self.agents.clear();
    }

    pub(super) fn draw_rows(&self, now: Duration, columns: usize) -> Vec<StyledLine> {
        let mut rows = Vec::new();
        for agent in self.agents.iter().take(PANE_ROWS) {
            let title = StyledLine::new("↳ ", TextStyle::Accent)
                .with_text(&agent.name, TextStyle::Strong)
                .with_text(format!(" {}", agent.action), TextStyle::Dim);
            rows.push(title.with_end(&draw_elapsed(now, agent.since), columns));
            rows.extend(draw_last_lines(&agent.output, OUTPUT_ROWS, columns));
        }
        for task in self.tasks.iter().take(PANE_ROWS) {
            let title = StyledLine::new("& ", TextStyle::Accent)
                .with_text(&task.id, TextStyle::Strong)
                .with_text(
                    format!(" {}", haft_text::reveal_controls(&task.command)),
                    TextStyle::Dim,
                );
            rows.push(title.with_end(&draw_elapsed(now, task.since), columns));
            rows.extend(draw_last_lines(&task.output, OUTPUT_ROWS, columns));
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

/// Draws the time since `since`. Empty in the first second.
fn draw_elapsed(now: Duration, since: Duration) -> StyledLine {
    let elapsed = now.saturating_sub(since);
    if elapsed < Duration::from_secs(1) {
        return StyledLine::empty();
    }
    StyledLine::new(format!("  {}", format_elapsed(elapsed)), TextStyle::Dim)
}
