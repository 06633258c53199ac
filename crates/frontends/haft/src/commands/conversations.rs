//! `haft conversations`.

mod backup;
mod change;
mod cost;
mod import;
mod list;
mod search;
mod show;
mod stats;
pub(super) mod transfer;

use std::sync::Arc;

use haft_store::{Conversation, Found, Scope, Store, StoreError};

use crate::cli::{Common, ConversationsCommand, NamespaceArgs};
use crate::exit::{Exit, mistake};
use crate::wiring;

pub(super) use change::message;
pub(super) use show::part_as_text;

pub(super) fn run(command: ConversationsCommand) -> anyhow::Result<Exit> {
    let done = wiring::runtime()?.block_on(async {
        match command {
            ConversationsCommand::Import(args) => return import::run(&args).await,
            ConversationsCommand::New(args) => change::new(args).await,
            ConversationsCommand::List(args) => list::list(&args).await,
            ConversationsCommand::Show(args) if args.cost => cost::show(args).await,
            ConversationsCommand::Show(args) => show::show(args).await,
            ConversationsCommand::Use(args) => change::use_it(&args).await,
            ConversationsCommand::Current(args) => list::current(&args).await,
            ConversationsCommand::Search(args) => search::run(&args).await,
            ConversationsCommand::Rename(args) => change::rename(&args).await,
            ConversationsCommand::Delete(args) => change::delete(&args).await,
            ConversationsCommand::Restore(args) => change::restore(&args).await,
            ConversationsCommand::Fork(args) => change::fork(args).await,
            ConversationsCommand::Export(args) => transfer::export(&args).await,
            ConversationsCommand::Stats(args) => stats::run(&args).await,
            ConversationsCommand::Namespaces(args) => list::namespaces(&args).await,
            ConversationsCommand::Backup(args) => backup::run(&args),
        }
        .map(|()| Exit::Completed)
    });
    done.map_err(usage_errors)
}

/// What a person can mend in what was asked for is told as such.
fn usage_errors(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<StoreError>() {
        Some(
            StoreError::IdTaken { .. }
            | StoreError::InvalidId { .. }
            | StoreError::InvalidName { .. }
            | StoreError::UnknownConversation { .. }
            | StoreError::UnknownMessage { .. }
            | StoreError::EmptySearch { .. },
        ) => mistake(error.to_string()),
        Some(_) | None => error,
    }
}

fn open(common: &Common) -> anyhow::Result<Arc<dyn Store>> {
    let (places, loaded) = super::configuration(common)?;
    Ok(wiring::open_store(&places, &loaded.config)?)
}

/// The namespace that is meant: the one given, or this project's.
fn namespace(place: &NamespaceArgs) -> anyhow::Result<String> {
    match &place.namespace {
        Some(namespace) => Ok(namespace.clone()),
        None => Ok(wiring::project(None)?.namespace()),
    }
}

async fn named_or_current(store: &dyn Store, id: Option<&str>) -> anyhow::Result<Conversation> {
    match id {
        Some(id) => find(store, id).await,
        None => current(store).await,
    }
}

pub(super) async fn find(store: &dyn Store, text: &str) -> anyhow::Result<Conversation> {
    find_in(store, text, Scope::Everywhere).await
}

async fn find_in(store: &dyn Store, text: &str, scope: Scope<'_>) -> anyhow::Result<Conversation> {
    let (place, list) = match scope {
        Scope::Namespace(_) | Scope::Everywhere => ("", "list --all"),
        Scope::Trash => (" in the trash", "list --trash"),
    };
    match store.find(text, scope).await? {
        Found::One(conversation) => Ok(*conversation),
        Found::Nothing => {
            Err(mistake(format!("there is no conversation `{text}`{place}; `haft conversations {list}` shows them")))
        }
        Found::Several(several) => {
            let ids: Vec<_> = several.iter().map(|one| one.id.to_string()).collect();
            Err(mistake(format!("`{text}` could be any of {}; give more of the id", ids.join(", "))))
        }
    }
}

pub(super) async fn current(store: &dyn Store) -> anyhow::Result<Conversation> {
    current_of(store, &wiring::project(None)?.namespace()).await
}

async fn current_of(store: &dyn Store, namespace: &str) -> anyhow::Result<Conversation> {
    let none = || mistake("there is no current conversation in this project; give an id");
    let id = store.current(namespace).await?.ok_or_else(none)?;
    store.get(&id).await?.ok_or_else(none)
}
