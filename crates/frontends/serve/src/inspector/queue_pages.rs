//! Renders the pages of the team's queue: tasks, workers and costs, and single tasks with their
//! logs. Forms cancel and retry tasks.

use std::sync::Arc;

use haft_agent::RandomIds;
use haft_postgres::{
    LabelCost, QueuedTask, TASK_STATUSES, TaskFilter, TaskQueue, TaskState, format_utc,
};
use haft_store::StoreError;
use haft_text::{format_dollars, format_thousands};
use haft_types::{ConversationId, IdSource as _};
use serde_json::{Value, json};

use super::page_frame::{SiteSection, render_open_pager};
use super::{Inspector, PageResult, conversation_path, render_folded};
use crate::markup::{Column, Markup};
use crate::server::{FormAnswer, encode_path_segment};
use crate::{PageError, localize_text};

const TASKS_PER_PAGE: usize = 100;
/// The maximum number of log lines on a page. If there are more, the newest lines are shown.
const MAX_LOG_LINES: usize = 1_000;
/// The maximum size of a patch that is shown on a page, in bytes.
const MAX_PATCH_BYTES: usize = 1 << 18;

impl Inspector {
    /// Runs `job` on the task queue, in a thread for blocking operations. Returns `None` if no
    /// queue is configured.
    async fn query_queue<T: Send + 'static>(
        &self,
        job: impl FnOnce(&TaskQueue) -> Result<T, StoreError> + Send + 'static,
    ) -> PageResult<Option<T>> {
        let Some(open) = self.open_queue.clone() else {
            return Ok(None);
        };
        let connect = || async move {
            let queue = tokio::task::spawn_blocking(move || open()).await??;
            Ok::<_, PageError>(Arc::new(queue))
        };
        let queue = Arc::clone(self.queue.get_or_try_init(connect).await?);
        Ok(Some(
            tokio::task::spawn_blocking(move || job(&queue)).await??,
        ))
    }

    pub(super) async fn render_queue(
        &self,
        rest: &[&str],
        from: usize,
    ) -> PageResult<Option<String>> {
        let (status, label) = match rest {
            [] => (None, None),
            ["state", name] if TASK_STATUSES.contains(name) => (Some((*name).to_owned()), None),
            ["label", label] => (None, Some((*label).to_owned())),
            [id] => return self.render_task(id).await,
            _ => return Ok(None),
        };
        let from = from.min(1_000_000);
        let limit = (from + TASKS_PER_PAGE + 1).cast_signed() as i64;
        let filter = TaskFilter { status, label };
        let found = self
            .query_queue(move |queue| {
                Ok((
                    queue.list_tasks(&filter, limit)?,
                    queue.statistics()?,
                    queue.workers()?,
                ))
            })
            .await?;
        let Some((tasks, statistics, workers)) = found else {
            return Ok(None);
        };
        let to: Vec<_> = std::iter::once("/queue".to_owned())
            .chain(rest.iter().map(|part| encode_path_segment(part)))
            .collect();
        let to = to.join("/");
        let shown = tasks.iter().skip(from).take(TASKS_PER_PAGE);
        let states = statistics.states.iter().map(|(name, count)| {
            Markup::link(
                &format!("/queue/state/{name}"),
                format!(
                    "{} {}",
                    localize_text(name),
                    format_thousands(count.unsigned_abs())
                ),
            )
        });
        let headings = [
            Column::text(text!("serve-worker")),
            Column::figure(text!("serve-slots")),
            Column::figure(text!("serve-tasks")),
            Column::figure(text!("serve-heard")),
            Column::prose(text!("serve-problem")),
        ];
        let costs = [
            Column::text(text!("serve-labels")),
            Column::figure(text!("serve-tasks")),
            Column::figure(text!("serve-tokens")),
            Column::figure(text!("serve-cost")),
            Column::figure(text!("serve-today")),
        ];
        let label = |one: &LabelCost| {
            let mut cells: Vec<_> = one.table_cells().into_iter().map(Markup::text).collect();
            if !one.label.is_empty() {
                cells[0] = Markup::link(
                    &format!("/queue/label/{}", encode_path_segment(&one.label)),
                    &one.label,
                );
            }
            cells
        };
        let paused = statistics.paused.iter().map(|label| {
            let told = if label.is_empty() {
                text!("serve-all-paused").to_owned()
            } else {
                text!("serve-label-paused", label)
            };
            Markup::text_element("p", told)
        });
        let live = [
            Markup::element("p", &[("class", "buttons")], states),
            Markup::element("div", &[], paused),
            self.render_task_table(shown),
            render_open_pager(
                &to,
                from,
                TASKS_PER_PAGE,
                tasks.len() > from + TASKS_PER_PAGE,
            ),
            Markup::text_element("h2", text!("serve-workers")),
            Markup::table(
                &headings,
                workers
                    .iter()
                    .map(|one| one.table_cells().into_iter().map(Markup::text).collect()),
            ),
            Markup::text_element("h2", text!("serve-costs")),
            Markup::table(&costs, statistics.labels.iter().map(label)),
        ];
        let live = Markup::element("section", &[("class", "live")], live);
        Ok(Some(self.build_page(
            SiteSection::Queue,
            text!("serve-queue"),
            [live],
        )))
    }

    async fn render_task(&self, id: &str) -> PageResult<Option<String>> {
        let Ok(id) = id.parse() else { return Ok(None) };
        let found = self
            .query_queue(move |queue| {
                Ok((
                    queue.get_task(id)?,
                    queue.read_patch(id)?,
                    queue.read_log(id, 0)?,
                    queue.read_record(id)?,
                ))
            })
            .await?;
        let Some((Some(task), patch, log, record)) = found else {
            return Ok(None);
        };
        let said = |text: &str| {
            Markup::element(
                "pre",
                &[("class", "said")],
                [Markup::text(self.masker.mask(text))],
            )
        };
        let (action, name) = match task.state {
            TaskState::Queued | TaskState::Running => ("cancel", text!("serve-cancel")),
            TaskState::Ended | TaskState::Failed | TaskState::Cancelled => {
                ("retry", text!("serve-retry"))
            }
        };
        // The id lets the button keep the focus when the page is reloaded.
        let button = [("id", "change"), ("name", "do"), ("value", action)];
        let button = Markup::element("button", &button, [Markup::text(name)]);
        let mut live = vec![
            self.render_task_table([&task]),
            Markup::form(&format!("/queue/{id}"), &self.form_token, [button]),
        ];
        let own = (
            text!("serve-conversation").to_owned(),
            task.conversation.clone(),
        );
        for (name, id) in std::iter::once(own).chain(list_workflow_steps(&task, record.as_deref()))
        {
            let id = ConversationId::new(id);
            if self.store.get(&id).await?.is_some() {
                live.push(Markup::element(
                    "p",
                    &[],
                    [Markup::link(&conversation_path(&id, ""), name)],
                ));
            }
        }
        live.extend([
            Markup::text_element("h2", text!("serve-prompt")),
            said(&task.request.prompt),
        ]);
        if let Some(result) = &task.result {
            live.push(Markup::text_element("h2", text!("serve-result")));
            let keys = ["message", "patch_error", "push_error", "text"];
            live.extend(keys.iter().filter_map(|key| result[key].as_str()).map(said));
        }
        if let Some(patch) = patch {
            let text = String::from_utf8_lossy(&patch[..patch.len().min(MAX_PATCH_BYTES)]);
            let headline = text!("serve-patch", bytes = format_thousands(patch.len() as u64));
            live.push(render_folded(&headline, &self.masker.mask(&text)));
        }
        live.push(Markup::text_element("h2", text!("serve-log")));
        live.extend(
            log[log.len().saturating_sub(MAX_LOG_LINES)..]
                .iter()
                .map(|(_, line)| self.render_log_line(line)),
        );
        let title = text!("serve-task-number", id);
        let live = Markup::element("section", &[("class", "live")], live);
        Ok(Some(self.build_page(SiteSection::Queue, &title, [live])))
    }

    pub(super) async fn change_task(
        &self,
        id: &str,
        action: &str,
    ) -> PageResult<Option<FormAnswer>> {
        let Ok(id) = id.parse() else { return Ok(None) };
        // If the state of the task has changed in the meantime, the action does nothing, and the
        // page shows the new state.
        let done = match action {
            "cancel" => self.query_queue(move |queue| queue.cancel(id)).await?,
            "retry" => {
                self.query_queue(move |queue| queue.retry(id, &RandomIds.new_uuid().to_string()))
                    .await?
            }
            _ => None,
        };
        Ok(done.map(|_| FormAnswer::Redirect(format!("/queue/{id}"))))
    }

    /// Returns a text that changes whenever the content of a queue page changes.
    pub(super) async fn queue_version(&self, rest: &[&str]) -> Option<String> {
        if let [Ok(id)] = rest.iter().map(|id| id.parse()).collect::<Vec<_>>()[..] {
            let task = self
                .query_queue(move |queue| queue.get_task(id))
                .await
                .ok()???;
            return Some(
                json!([task.state, task.epoch, task.spent_tokens, task.last_logged]).to_string(),
            );
        }
        let found = self
            .query_queue(|queue| Ok((queue.statistics()?, queue.workers()?)))
            .await
            .ok()??;
        // Workers send heartbeats every few seconds. The page is reloaded only if a heartbeat is
        // missing.
        let workers = found.1.iter().map(|one| {
            (
                one.id,
                one.tasks,
                one.draining,
                &one.problem,
                one.silent_ms / 10_000,
            )
        });
        let statistics = &found.0;
        Some(
            json!([
                statistics.states,
                statistics.labels,
                statistics.paused,
                workers.collect::<Vec<_>>()
            ])
            .to_string(),
        )
    }
}

impl Inspector {
    fn render_task_table<'a>(&self, tasks: impl IntoIterator<Item = &'a QueuedTask>) -> Markup {
        let headings = [
            Column::figure(text!("serve-task")),
            Column::text(text!("serve-run-status")),
            Column::text(text!("serve-labels")),
            Column::text(text!("serve-worker")),
            Column::figure(text!("serve-cost")),
            Column::figure(text!("serve-tries")),
            Column::figure(text!("serve-added")),
            Column::text(text!("serve-repository")),
            Column::prose(text!("serve-prompt")),
        ];
        let row = |task: &QueuedTask| {
            let id = format!("task-{}", task.id);
            let to = format!("/queue/{}", task.id);
            let prompt: String = task
                .request
                .prompt
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(80)
                .collect();
            vec![
                Markup::element(
                    "a",
                    &[("id", &id), ("href", &to)],
                    [Markup::text(task.id.to_string())],
                ),
                Markup::text(localize_text(task.state_name())),
                Markup::text(task.labels.join(", ")),
                Markup::text(task.worker.as_deref().unwrap_or_default()),
                Markup::text(format_dollars(task.spent_usd + task.earlier_usd)),
                Markup::text(format!("{} / {}", task.attempts, task.max_attempts)),
                Markup::text(format_utc(task.created_at)),
                Markup::text(
                    self.masker
                        .mask(&task.request.shown_repository().unwrap_or_default()),
                ),
                Markup::text(self.masker.mask(&prompt)),
            ]
        };
        Markup::table(&headings, tasks.into_iter().map(row))
    }

    /// Renders a log line that is collapsed until the user opens it. The values of its most
    /// important fields are always visible.
    fn render_log_line(&self, line: &str) -> Markup {
        let event: Value = serde_json::from_str(line).unwrap_or_default();
        let fields = ["type", "name", "status", "code", "message", "text"]
            .map(|key| event[key].as_str().unwrap_or_default());
        let headline = if event.is_null() {
            line.to_owned()
        } else {
            fields.join(" ")
        };
        render_folded(&self.masker.mask(&headline), &self.masker.mask(line))
    }
}

/// Returns the names and conversations of the workflow steps that were started. The steps are read
/// from the task's result, or from `record` while the task is running.
fn list_workflow_steps(task: &QueuedTask, record: Option<&[u8]>) -> Vec<(String, String)> {
    let record: Value = record
        .and_then(|record| serde_json::from_slice(record).ok())
        .unwrap_or_default();
    let ended = task
        .result
        .iter()
        .filter_map(|result| result["steps"].as_array())
        .flatten();
    let ended = ended.map(|step| {
        (
            step["name"].as_str().unwrap_or_default(),
            &step["conversation_id"],
        )
    });
    let started = record["steps"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, step)| (&**name, &step["conversation"]));
    ended
        .chain(started)
        .filter_map(|(name, id)| Some((name.to_owned(), id.as_str()?.to_owned())))
        .collect()
}
