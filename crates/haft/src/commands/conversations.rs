//! `haft conversations`.

mod cost;

use std::fmt::Write as _;

use haft_store::{Conversation, Found, Listed, Scope, Store};
use haft_types::{Message, Part, ToolStatus};

use crate::cli::{Common, ConversationsCommand};
use crate::exit::{Exit, mistake};
use crate::output::{self, Table};
use crate::project::Project;
use crate::wiring;

pub(super) fn run(command: ConversationsCommand) -> anyhow::Result<Exit> {
    wiring::runtime()?.block_on(async {
        match command {
            ConversationsCommand::List { all, json, common } => list(all, json, &common).await,
            ConversationsCommand::Show { id, cost: true, json, common } => cost::show(id, json, &common).await,
            ConversationsCommand::Show { id, cost: false, json, common } => show(id, json, &common).await,
            ConversationsCommand::Export { id, common } => export(&id, &common).await,
        }
    })?;
    Ok(Exit::Completed)
}

async fn open(common: &Common) -> anyhow::Result<std::sync::Arc<dyn Store>> {
    let (places, loaded) = super::configuration(common)?;
    wiring::open_store(&places, &loaded.config)
}

async fn list(all: bool, json: bool, common: &Common) -> anyhow::Result<()> {
    let store = open(common).await?;
    let namespace = Project::find(None)?.namespace();
    let scope = if all { Scope::Everywhere } else { Scope::Namespace(&namespace) };
    let rows = store.list(scope).await?;
    if json {
        return output::print_json(&serde_json::to_value(&rows)?);
    }
    if rows.is_empty() {
        return output::print("No conversations yet. Start one with `haft run \"…\"`.\n");
    }
    output::print(&as_table(&rows, all))
}

fn as_table(rows: &[Listed], all: bool) -> String {
    let mut headings = vec!["ID", "NAME", "MESSAGES", "UPDATED"];
    if all {
        headings.push("PROJECT");
    }
    let mut table = Table::new(&headings);
    for row in rows {
        let mut cells = vec![
            row.id.short().to_owned(),
            row.name.clone(),
            row.messages.to_string(),
            row.updated_at.strftime("%Y-%m-%d %H:%M").to_string(),
        ];
        if all {
            cells.push(row.namespace.clone());
        }
        table.row(cells);
    }
    table.to_string()
}

async fn show(id: Option<String>, json: bool, common: &Common) -> anyhow::Result<()> {
    let store = open(common).await?;
    let conversation = named_or_current(store.as_ref(), id).await?;
    if json {
        return print_document(store.as_ref(), &conversation).await;
    }
    let messages = store.messages(&conversation.id).await?;
    output::print(&as_text(&conversation, &messages))
}

async fn named_or_current(store: &dyn Store, id: Option<String>) -> anyhow::Result<Conversation> {
    match id {
        Some(id) => find(store, &id).await,
        None => current(store).await,
    }
}

async fn export(id: &str, common: &Common) -> anyhow::Result<()> {
    let store = open(common).await?;
    let conversation = find(store.as_ref(), id).await?;
    print_document(store.as_ref(), &conversation).await
}

async fn print_document(store: &dyn Store, conversation: &Conversation) -> anyhow::Result<()> {
    let unknown = || mistake(format!("there is no conversation `{}`", conversation.id));
    let document = store.export(&conversation.id).await?.ok_or_else(unknown)?;
    output::print(&(serde_json::to_string_pretty(&document)? + "\n"))
}

pub(super) async fn find(store: &dyn Store, text: &str) -> anyhow::Result<Conversation> {
    match store.find(text, Scope::Everywhere).await? {
        Found::One(conversation) => Ok(*conversation),
        Found::Nothing => {
            Err(mistake(format!("there is no conversation `{text}`; `haft conversations list --all` shows them")))
        }
        Found::Several(several) => {
            let ids: Vec<_> = several.iter().map(|one| one.id.to_string()).collect();
            Err(mistake(format!("`{text}` could be any of {}; give more of the id", ids.join(", "))))
        }
    }
}

pub(super) async fn current(store: &dyn Store) -> anyhow::Result<Conversation> {
    let none = || mistake("there is no current conversation in this project; give an id");
    let id = store.current(&Project::find(None)?.namespace()).await?.ok_or_else(none)?;
    store.get(&id).await?.ok_or_else(none)
}

fn as_text(conversation: &Conversation, messages: &[Message]) -> String {
    let mut text = format!("{} ({})\n", conversation.name, conversation.id);
    for message in messages {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "\n{} {} {}",
            message.message_id.short(),
            message.role,
            message.created_at.strftime("%Y-%m-%d %H:%M:%S")
        );
        for part in &message.content {
            text.push_str(&indent(&part_as_text(part)));
        }
    }
    haft_text::sanitise(&text).into_owned()
}

pub(super) fn part_as_text(part: &Part) -> String {
    match part {
        Part::Text { text, .. } => text.clone(),
        Part::Thinking(thinking) => format!("(thinking) {}", thinking.text),
        Part::ToolCall(call) => format!("→ {} {}", call.name, call.arguments),
        Part::ToolResult(result) => {
            let status = match result.envelope.status {
                ToolStatus::Success => "ok",
                ToolStatus::Partial => "partial",
                ToolStatus::Error => "error",
            };
            format!("← {} ({status}) {}", result.name, result.envelope.text)
        }
        Part::Image(image) => format!("[{} picture]", image.media_type),
    }
}

fn indent(text: &str) -> String {
    text.lines().flat_map(|line| ["    ", line, "\n"]).collect()
}
