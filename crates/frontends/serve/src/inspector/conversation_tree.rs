//! Renders the tree of conversations that a conversation started, and the table of background jobs.

use std::collections::HashMap;

use haft_store::{Conversation, ConversationRow, ConversationScope};
use haft_types::ConversationId;
use serde_json::Value;

use super::{Inspector, PageResult, conversation_path};
use crate::markup::Markup;

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
    /// Renders a link to the conversation that started `conversation`, and the tree of
    /// conversations that `conversation` started.
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
        let tree = render_branches(&mut children, &conversation.id);
        let heading = tree
            .as_ref()
            .map(|_| Markup::text_element("h2", text!("serve-sub-agents")));
        Ok(Markup::concat(
            parent.into_iter().chain(heading).chain(tree),
        ))
    }

    /// Renders the table of background jobs.
    pub(super) fn render_jobs(&self, jobs: Vec<JobRow>) -> Markup {
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
        let headings = [
            text!("serve-name"),
            text!("serve-run-status"),
            text!("serve-run-folder"),
        ];
        Markup::concat([
            Markup::text_element("h2", text!("serve-jobs")),
            Markup::table(&headings, rows),
        ])
    }
}

/// Renders the tree of conversations that `parent` started. Each rendered conversation is removed
/// from `children`, so that the recursion ends even if there is a cycle.
fn render_branches(
    children: &mut HashMap<ConversationId, Vec<ConversationRow>>,
    parent: &ConversationId,
) -> Option<Markup> {
    let mut rows = children.remove(parent)?;
    // The oldest conversation is shown first.
    rows.reverse();
    let branch = |row: ConversationRow| {
        let link = Markup::link(&conversation_path(&row.id, ""), &row.name);
        let below = render_branches(children, &row.id);
        Markup::element("li", &[], std::iter::once(link).chain(below))
    };
    let branches: Vec<_> = rows.into_iter().map(branch).collect();
    Some(Markup::element("ul", &[], branches))
}
