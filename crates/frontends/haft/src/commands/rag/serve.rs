//! `haft rag serve`: serves collections as models of a local chat server.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_agent::{HostEnvironment, WallClock};
use haft_rag::{
    AnswerModel, Collection, CollectionKind, ConfiguredCollections, RagServer, ServedCollection,
    Token, serve_collections,
};
use uuid::Uuid;

use super::answer_model::ConfiguredAnswerModel;
use crate::commands::rag::RagServeArgs;
use crate::exit::usage_error;
use crate::haft::{Haft, Settings};
use crate::{output, wiring};

pub(super) fn run(haft: &Haft, args: &RagServeArgs) -> anyhow::Result<()> {
    if !args.listen.ip().is_loopback() {
        return Err(usage_error(text!("rag-not-local", address = args.listen)));
    }
    let settings = haft.load(&args.common)?;
    let rag = ConfiguredCollections::load(&settings.places, &settings.config);
    let collections = choose_collections(&rag, &args.names)?;
    let names: Vec<_> = collections.iter().map(|one| one.name.clone()).collect();
    let models = AnswerModels::open(haft, &settings, args.model.as_deref(), &collections)?;
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
        if let Some(models) = models.format_names() {
            output::print_text_line(&text!("rag-answering", models))?;
        }
        let end = async {
            // If signals cannot be awaited, the process runs until the system ends it.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        serve_collections(
            listener,
            RagServer {
                collections: models.assign_to(collections),
                token,
                clock: Arc::new(WallClock),
            },
            end,
        )
        .await;
        Ok(())
    })
}

/// The models that write answers, by the names in the options and the configuration. Collections
/// with one model share its clients.
struct AnswerModels {
    /// The model of all collections, instead of their own.
    chosen: Option<String>,
    opened: BTreeMap<String, Arc<ConfiguredAnswerModel>>,
}

impl AnswerModels {
    fn open(
        haft: &Haft,
        settings: &Settings,
        chosen: Option<&str>,
        collections: &[Collection],
    ) -> anyhow::Result<Self> {
        let mut models = Self {
            chosen: chosen.map(str::to_owned),
            opened: BTreeMap::new(),
        };
        for collection in collections {
            if let Some(name) = models.find_name(collection)
                && !models.opened.contains_key(name)
            {
                let name = name.to_owned();
                let model = ConfiguredAnswerModel::open(haft, settings, &name)?;
                models.opened.insert(name, Arc::new(model));
            }
        }
        Ok(models)
    }

    /// Returns the name of the model that answers for a collection, or `None` if its passages are
    /// the answer.
    fn find_name<'a>(&'a self, collection: &'a Collection) -> Option<&'a str> {
        self.chosen.as_deref().or(collection.model.as_deref())
    }

    /// Returns the full names of the models for the user, or `None` if there is no model.
    fn format_names(&self) -> Option<String> {
        let names: Vec<_> = self.opened.values().map(|model| model.name()).collect();
        (!names.is_empty()).then(|| output::join_names(&names))
    }

    fn assign_to(&self, collections: Vec<Collection>) -> Vec<ServedCollection> {
        let mut served = Vec::new();
        for collection in collections {
            let model = self
                .find_name(&collection)
                .and_then(|name| self.opened.get(name))
                .map(|model| Arc::clone(model) as Arc<dyn AnswerModel>);
            served.push(ServedCollection { collection, model });
        }
        served
    }
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
