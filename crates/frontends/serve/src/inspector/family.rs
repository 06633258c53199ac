//! Conversations that were started from others, as a tree, and background jobs.

use std::collections::HashMap;

use haft_store::{Conversation, ConversationRow, ConversationScope};
use haft_types::ConversationId;
use serde_json::Value;

use super::{Inspector, PageResult, address};
use crate::markup::Markup;

/// A run in the background.
pub struct JobRow {
    /// The first line of its task, or its id.
    pub task: String,
    /// Its conversation, once it has one.
    pub conversation: Option<ConversationId>,
    /// Its state.
    pub state: &'static str,
    /// Its folder.
    pub cwd: String,
}

/// The suffix of the namespace of a project's sub-agents.
const AGENTS_SUFFIX: &str = "#agents";

impl Inspector {
    /// Returns a link to the conversation that this one was started from, and the tree of those
    /// started from it.
    pub(super) async fn family(&self, conversation: &Conversation) -> PageResult<Markup> {
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
            let link = Markup::link(&address(&id, ""), text!("serve-parent"));
            Markup::element("p", &[], [link])
        });
        let tree = branches(&mut children, &conversation.id);
        let heading = tree
            .as_ref()
            .map(|_| Markup::plain("h2", text!("serve-sub-agents")));
        Ok(Markup::all(parent.into_iter().chain(heading).chain(tree)))
    }

    /// Returns the table of background jobs.
    pub(super) fn jobs(&self, jobs: Vec<JobRow>) -> Markup {
        let rows = jobs.into_iter().map(|job| {
            let name = match job.conversation {
                Some(id) => Markup::link(&address(&id, "/live"), self.masker.mask(&job.task)),
                None => Markup::text(self.masker.mask(&job.task)),
            };
            vec![name, Markup::text(job.state), Markup::text(job.cwd)]
        });
        let headings = [
            text!("serve-name"),
            text!("serve-run-status"),
            text!("serve-run-folder"),
        ];
        Markup::all([
            Markup::plain("h2", text!("serve-jobs")),
            Markup::table(&headings, rows),
        ])
    }
}

/// Returns the tree of conversations started from `of`. Each is removed from `children`, so that a
/// cycle ends.
fn branches(
    children: &mut HashMap<ConversationId, Vec<ConversationRow>>,
    of: &ConversationId,
) -> Option<Markup> {
    let mut rows = children.remove(of)?;
    // Oldest first.
    rows.reverse();
    let branch = |row: ConversationRow| {
        let link = Markup::link(&address(&row.id, ""), &row.name);
        let below = branches(children, &row.id);
        Markup::element("li", &[], std::iter::once(link).chain(below))
    };
    let branches: Vec<_> = rows.into_iter().map(branch).collect();
    Some(Markup::element("ul", &[], branches))
}
