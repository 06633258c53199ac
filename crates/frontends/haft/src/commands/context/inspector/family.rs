//! Conversations that were started from others, as a tree, and runs in the background.

use std::collections::HashMap;

use haft_serve::Markup;
use haft_store::{Conversation, ConversationRow, ConversationScope};
use haft_types::ConversationId;
use serde_json::Value;

use super::super::text::masked;
use super::{Inspector, address};
use crate::jobs::JobFolder;

/// What the namespace of a project's sub-agents ends with.
const OF_AGENTS: &str = "#agents";

impl Inspector {
    /// The conversation that this one was started from, and those that were started from it, as a
    /// tree.
    pub(super) async fn family(&self, conversation: &Conversation) -> anyhow::Result<Markup> {
        let project = conversation
            .namespace
            .strip_suffix(OF_AGENTS)
            .unwrap_or(&conversation.namespace);
        let listed = self
            .store
            .list(ConversationScope::Namespace(&format!(
                "{project}{OF_AGENTS}"
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
}

/// What was started from a conversation. Each is taken out, so that a circle ends.
fn branches(
    children: &mut HashMap<ConversationId, Vec<ConversationRow>>,
    of: &ConversationId,
) -> Option<Markup> {
    let mut rows = children.remove(of)?;
    // The first one first.
    rows.reverse();
    let branch = |row: ConversationRow| {
        let link = Markup::link(&address(&row.id, ""), &row.name);
        let below = branches(children, &row.id);
        Markup::element("li", &[], std::iter::once(link).chain(below))
    };
    let branches: Vec<_> = rows.into_iter().map(branch).collect();
    Some(Markup::element("ul", &[], branches))
}

/// Runs in the background, and how they stand.
pub(super) fn jobs(folder: &JobFolder) -> Markup {
    let rows = folder.all().unwrap_or_default().into_iter().map(|job| {
        let task = job.told.task.as_deref().unwrap_or(&job.told.id);
        let name = match job.conversation() {
            Some(id) => Markup::link(&address(&id, "/live"), masked(task)),
            None => Markup::text(masked(task)),
        };
        vec![
            name,
            Markup::text(job.state().word()),
            Markup::text(job.told.cwd.display().to_string()),
        ]
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
