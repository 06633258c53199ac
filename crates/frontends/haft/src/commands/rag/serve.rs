//! `haft rag serve`: serves collections as models of a local chat server.

use std::sync::Arc;

use haft_agent::{HostEnvironment, WallClock};
use haft_rag::{
    Collection, CollectionKind, ConfiguredCollections, RagServer, Token, serve_collections,
};
use uuid::Uuid;

use crate::commands::rag::RagServeArgs;
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::{output, wiring};

pub(super) fn run(haft: &Haft, args: &RagServeArgs) -> anyhow::Result<()> {
    if !args.listen.ip().is_loopback() {
        return Err(usage_error(text!("rag-not-local", address = args.listen)));
    }
    let settings = haft.load(&args.common)?;
    let rag = ConfiguredCollections::load(&settings.places, &settings.config);
    let collections = choose_collections(&rag, &args.names)?;
    let names: Vec<_> = collections.iter().map(|one| one.name.clone()).collect();
    let (token, shown) = read_or_generate_token(haft.environment(), args.token_env.as_deref())?;
    wiring::build_runtime()?.block_on(async {
        let listener = tokio::net::TcpListener::bind(args.listen).await;
        let listener = listener.map_err(|error| {
            usage_error(text!("rag-cannot-listen", address = args.listen, error))
        })?;
        let shown = shown.map_or(String::new(), |word| {
            format!("{}\n", text!("rag-token", token = word))
        });
        output::print_text(&text!(
            "rag-serving",
            address = listener.local_addr()?,
            token = shown,
            names = output::join_names(&names)
        ))?;
        let end = async {
            // If signals cannot be awaited, the process runs until the system ends it.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        serve_collections(
            listener,
            RagServer {
                collections,
                token,
                clock: Arc::new(WallClock),
            },
            end,
        )
        .await;
        Ok(())
    })
}

/// Returns the collections to serve. Only collections made of folders are served, because a
/// collection on a server can be queried directly.
fn choose_collections(
    rag: &ConfiguredCollections,
    names: &[String],
) -> anyhow::Result<Vec<Collection>> {
    let is_local = |collection: &Collection| match collection.kind {
        CollectionKind::Local(_) => true,
        CollectionKind::Remote(_) => false,
    };
    let mut chosen = Vec::new();
    for name in names {
        let collection = super::find_collection(rag, name)?;
        if !is_local(collection) {
            return Err(usage_error(text!("rag-already-served", name)));
        }
        chosen.push(collection.clone());
    }
    if names.is_empty() {
        chosen.extend(rag.collections.iter().filter(|one| is_local(one)).cloned());
    }
    if chosen.is_empty() {
        return Err(usage_error(text!("rag-nothing-to-serve")));
    }
    Ok(chosen)
}

/// Returns the token, and its text if it was generated and must be shown to the user.
fn read_or_generate_token(
    environment: &HostEnvironment,
    variable: Option<&str>,
) -> anyhow::Result<(Token, Option<String>)> {
    let Some(variable) = variable else {
        let word = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        return Ok((Token::new(word.clone()), Some(word)));
    };
    let word = environment.trimmed_variable(variable);
    let missing = || usage_error(text!("rag-no-token", variable));
    Ok((Token::new(word.ok_or_else(missing)?), None))
}
