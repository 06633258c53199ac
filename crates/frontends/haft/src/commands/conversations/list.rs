//! `haft conversations list`, `current` and `namespaces`: print conversations and namespaces.

use haft_store::{Conversation, ConversationRow, ConversationScope, Namespace};

use super::{load_current_in_namespace, open_store, resolve_namespace};
use crate::cli::options::JsonArgs;
use crate::commands::conversations::{CurrentArgs, ListConversationsArgs};
use crate::haft::Haft;
use crate::output::{self, TextTable};

pub(super) async fn list_conversations(
    haft: &Haft,
    args: &ListConversationsArgs,
) -> anyhow::Result<()> {
    let store = open_store(haft, &args.output.common)?;
    let namespace = resolve_namespace(haft, &args.place)?;
    let (scope, none) = match (args.trash, args.all) {
        (true, _) => (
            ConversationScope::Trash,
            text!("conversations-none-in-trash"),
        ),
        (false, true) => (ConversationScope::Everywhere, text!("conversations-none")),
        (false, false) => (
            ConversationScope::Namespace(&namespace),
            text!("conversations-none-here"),
        ),
    };
    let rows = store.list(scope).await?;
    if args.output.json {
        return output::print_json(&serde_json::to_value(&rows)?);
    }
    if rows.is_empty() {
        return output::print_text_line(none);
    }
    output::print_text(&rows_to_table(&rows, args.all || args.trash))
}

fn rows_to_table(rows: &[ConversationRow], with_project: bool) -> String {
    let mut headings = vec![
        text!("table-id"),
        text!("table-name"),
        text!("table-messages"),
        text!("table-updated"),
    ];
    if with_project {
        headings.push(text!("table-project"));
    }
    let mut table = TextTable::new(&headings);
    for row in rows {
        let mut cells = vec![
            row.id.short_prefix().to_owned(),
            row.name.clone(),
            row.messages.to_string(),
            row.updated_at.strftime("%Y-%m-%d %H:%M").to_string(),
        ];
        if with_project {
            cells.push(row.namespace.clone());
        }
        table.add_row(cells);
    }
    table.to_string()
}

/// Converts a conversation to a row of a list.
pub(super) fn conversation_to_row(conversation: Conversation) -> ConversationRow {
    let Conversation {
        id,
        name,
        namespace,
        created_at,
        updated_at,
        messages,
        ..
    } = conversation;
    ConversationRow {
        id,
        name,
        namespace,
        created_at,
        updated_at,
        messages,
    }
}

pub(super) async fn show_current(haft: &Haft, args: &CurrentArgs) -> anyhow::Result<()> {
    let store = open_store(haft, &args.output.common)?;
    let current = conversation_to_row(
        load_current_in_namespace(store.as_ref(), &resolve_namespace(haft, &args.place)?).await?,
    );
    if args.output.json {
        return output::print_json(&serde_json::to_value(current)?);
    }
    output::print_text(&format!(
        "{}  {}\n",
        current.id,
        haft_text::sanitize(&current.name)
    ))
}

pub(super) async fn list_namespaces(haft: &Haft, args: &JsonArgs) -> anyhow::Result<()> {
    let namespaces = open_store(haft, &args.common)?.namespaces().await?;
    if args.json {
        return output::print_json(&serde_json::to_value(namespaces)?);
    }
    if namespaces.is_empty() {
        return output::print_text_line(text!("conversations-no-namespaces"));
    }
    let mut table = TextTable::new(&[
        text!("table-namespace"),
        text!("table-conversations"),
        text!("table-current"),
    ]);
    for Namespace {
        namespace,
        conversations,
        current,
    } in namespaces
    {
        let current = current.map_or_else(|| "-".to_owned(), |id| id.short_prefix().to_owned());
        table.add_row(vec![namespace, conversations.to_string(), current]);
    }
    output::print_text(&table.to_string())
}
