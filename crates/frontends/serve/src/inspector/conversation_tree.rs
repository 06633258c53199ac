//! Renders the tree of conversations that a conversation started, and the table of background jobs.

use std::collections::HashMap;

use haft_store::{Conversation, ConversationRow, ConversationScope};
use haft_text::format_dollars;
use haft_types::{ConversationId, Role};
use serde_json::Value;

use super::{Inspector, PageResult, compute_reply_cost, conversation_path};
use crate::markup::{Column, Markup};

/// A row in the table of background jobs.
pub struct JobRow {
    /// The first line of the prompt, or the id of the job if the prompt is unknown.
    pub task: String,
    /// The id of the job's conversation, once it exists.
    pub conversation: Option<ConversationId>,
    pub state: &'static str,
    /// The folder in which the job works.
    pub cwd: String,
}

/// The suffix that the namespace for the conversations of a project's sub-agents has.
const AGENTS_SUFFIX: &str = "#agents";

impl Inspector {
    /// Renders a link to the conversation that started `conversation`, and the table of the
    /// conversations that `conversation` started, directly or through others.
    pub(super) async fn render_conversation_tree(
        &self,
        conversation: &Conversation,
    ) -> PageResult<Markup> {
        let project = conversation
            .namespace
            .strip_suffix(AGENTS_SUFFIX)
            .unwrap_or(&conversation.namespace);
        let listed = self
            .store
            .list(ConversationScope::Namespace(&format!(
                "{project}{AGENTS_SUFFIX}"
            )))
            .await?;
        let mut children: HashMap<ConversationId, Vec<ConversationRow>> = HashMap::new();
        for row in listed {
            let metadata = self
                .store
                .get(&row.id)
                .await?
                .map(|one| one.metadata)
                .unwrap_or_default();
            if let Some(parent) = metadata.get("parent").and_then(Value::as_str) {
                children
                    .entry(ConversationId::new(parent))
                    .or_default()
                    .push(row);
            }
        }
        let parent = conversation
            .metadata
            .get("parent")
            .and_then(Value::as_str)
            .map(ConversationId::new);
        let parent = parent.map(|id| {
            let link = Markup::link(&conversation_path(&id, ""), text!("serve-parent"));
            Markup::element("p", &[], [link])
        });
        let mut rows = Vec::new();
        for (depth, row) in list_descendants(&mut children, &conversation.id) {
            rows.push(self.render_sub_agent(depth, &row).await?);
        }
        if rows.is_empty() {
            return Ok(Markup::concat(parent));
        }
        let columns = [
            Column::prose(text!("serve-name")),
            Column::text(text!("serve-run-status")),
            Column::figure(text!("serve-messages")),
            Column::figure(text!("serve-cost")),
            Column::figure(text!("serve-duration")),
        ];
        let heading = Markup::text_element("h2", text!("serve-sub-agents"));
        let table = Markup::table(&columns, rows);
        Ok(Markup::concat(parent.into_iter().chain([heading, table])))
    }

    /// Renders the row of a sub-agent: its name, state, messages, cost and time.
    async fn render_sub_agent(
        &self,
        depth: usize,
        row: &ConversationRow,
    ) -> PageResult<Vec<Markup>> {
        let messages = self.store.messages(&row.id).await?;
        let is_finished = messages.last().is_some_and(|newest| {
            newest.role == Role::Assistant && newest.tool_calls().next().is_none()
        });
        let (class, state) = if is_finished {
            ("badge done", text!("serve-status-completed"))
        } else if self.find_lock_holder(&row.id).await?.is_some() {
            ("badge running", text!("serve-status-running"))
        } else {
            ("badge bad", text!("serve-status-aborted"))
        };
        let costs: Vec<f64> = messages
            .iter()
            .filter_map(|message| compute_reply_cost(message.llm_metadata.as_deref()?))
            .collect();
        let cost = if costs.is_empty() {
            String::new()
        } else {
            format_dollars(costs.iter().sum())
        };
        let duration = row.updated_at.duration_since(row.created_at);
        let indent = "\u{2003}".repeat(depth);
        let link = Markup::link(&conversation_path(&row.id, ""), &row.name);
        Ok(vec![
            Markup::concat([Markup::text(indent), link]),
            Markup::element("strong", &[("class", class)], [Markup::text(state)]),
            Markup::text(row.messages.to_string()),
            Markup::text(cost),
            Markup::text(format_duration(duration.as_secs())),
        ])
    }

    /// Renders the table of background jobs, or nothing if there are none.
    pub(super) fn render_jobs(&self, jobs: Vec<JobRow>) -> Markup {
        if jobs.is_empty() {
            return Markup::default();
        }
        let rows = jobs.into_iter().map(|job| {
            let name = match job.conversation {
                Some(id) => Markup::link(
                    &conversation_path(&id, "/live"),
                    self.masker.mask(&job.task),
                ),
                None => Markup::text(self.masker.mask(&job.task)),
            };
            vec![name, Markup::text(job.state), Markup::text(job.cwd)]
        });
        let columns = [
            Column::prose(text!("serve-name")),
            Column::text(text!("serve-run-status")),
            Column::text(text!("serve-run-folder")),
        ];
        Markup::concat([
            Markup::text_element("h2", text!("serve-jobs")),
            Markup::table(&columns, rows),
        ])
    }
}

/// Lists the conversations below `parent` with their depth, each before those that it started. Each
/// listed conversation is removed from `children`, so that the list ends even if there is a cycle.
fn list_descendants(
    children: &mut HashMap<ConversationId, Vec<ConversationRow>>,
    parent: &ConversationId,
) -> Vec<(usize, ConversationRow)> {
    let mut listed = Vec::new();
    let mut open: Vec<_> = children.remove(parent).unwrap_or_default();
    // The store lists the newest conversation first, and the stack is read from its end, so the
    // oldest is listed first.
    let mut depths = vec![0; open.len()];
    while let (Some(row), Some(depth)) = (open.pop(), depths.pop()) {
        let below = children.remove(&row.id).unwrap_or_default();
        depths.extend(std::iter::repeat_n(depth + 1, below.len()));
        open.extend(below);
        listed.push((depth, row));
    }
    listed
}

/// Formats a time in seconds, such as `45 s`, `3 min 20 s` or `2 h 5 min`.
fn format_duration(seconds: i64) -> String {
    let seconds = seconds.max(0);
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => text!("serve-seconds", seconds),
        (0, minutes, seconds) => text!("serve-minutes", minutes, seconds),
        (hours, minutes, _) => text!("serve-hours", hours, minutes),
    }
}
