//! Collections as this machine has them: the user's folders and servers. A project adds none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_agent::config::{Config, ModelRole, Section};
use haft_agent::{Contribution, Extension, ExtensionContext, HostEnvironment, Places};
use haft_engine::Notice;
use haft_rag::{
    Collection, CollectionConfig, CollectionKind, CollectionSource, Local, Remote, use_rag_tool,
};
use haft_tool::Tool;
use haft_types::Api;

use crate::exit::usage_error;

/// The section, and the code of its notices.
const NAME: &str = "rag";

/// Gives a session the tool that asks the collections.
pub(crate) struct RagExtension;

impl Extension for RagExtension {
    fn sections(&self) -> Vec<Section> {
        vec![Section::of::<BTreeMap<String, CollectionConfig>>(NAME)]
    }

    fn contribute(&self, context: &ExtensionContext<'_>) -> Contribution {
        let rag = if context.money_limited {
            Rag::without_vectors(context.places, context.config)
        } else {
            Rag::of(context.places, context.config)
        };
        Contribution {
            tools: rag.tools().into_iter().collect(),
            notices: rag.notices().collect(),
            secrets: rag.keys,
            ..Contribution::default()
        }
    }
}

/// What is configured, by name.
pub(crate) fn sections(config: &Config) -> anyhow::Result<BTreeMap<String, CollectionConfig>> {
    Ok(config.section(NAME)?)
}

/// The collections of a session, and what is wrong with others.
#[derive(Default)]
pub(crate) struct Rag {
    pub(crate) collections: Vec<Collection>,
    pub(crate) problems: Vec<String>,
    /// Keys of servers, which must not be kept anywhere.
    keys: Vec<String>,
    /// Makes vectors for collections over folders.
    embedder: Option<Arc<Remote>>,
    /// What the user should know and is no failure.
    remarks: Vec<String>,
}

impl Rag {
    /// What is configured, in order of the names.
    pub(crate) fn of(places: &Places, config: &Config) -> Self {
        let mut rag = Self::default();
        if let Some(name) = config.model_roles.own(ModelRole::Embedding).first() {
            match rag.embedder(places, config, name) {
                Ok(embedder) => rag.embedder = Some(Arc::new(embedder)),
                Err(error) => rag.problems.push(text!("rag-no-embedding", name, error)),
            }
        }
        rag.with_sections(places, config)
    }

    /// The same asked by words alone, for a run with a limit of money: nobody counts what vectors
    /// cost.
    fn without_vectors(places: &Places, config: &Config) -> Self {
        let mut rag = Self::default();
        if !config.model_roles.own(ModelRole::Embedding).is_empty() {
            rag.remarks
                .push(text!("rag-embedding-not-counted").to_owned());
        }
        rag.with_sections(places, config)
    }

    /// The server that makes vectors: the provider of the model of the role.
    fn embedder(&mut self, places: &Places, config: &Config, name: &str) -> anyhow::Result<Remote> {
        let declared = haft_agent::declared_model(&places.environment, config, name)?;
        match declared.provider.api {
            Api::OpenaiChat | Api::OpenaiResponses => {}
            Api::Anthropic | Api::Gemini => return Err(usage_error(text!("rag-embedding-api"))),
        }
        let key = haft_agent::key_of(
            &places.environment,
            &declared.spec.provider,
            &declared.provider,
        )?;
        let key = key.map(|key| key.expose().to_owned());
        self.keys.extend(key.clone());
        let remote = Remote::new(
            declared.provider.base_url.parse()?,
            declared.spec.name.clone(),
            key,
        )?;
        let remote = remote.priced(declared.spec.full_name(), declared.spec.price);
        Ok(
            match declared
                .provider
                .proxy
                .as_deref()
                .filter(|proxy| !proxy.is_empty())
            {
                Some(proxy) => remote.through(proxy, declared.provider.no_proxy.as_deref())?,
                None => remote,
            },
        )
    }

    fn with_sections(self, places: &Places, config: &Config) -> Self {
        let mut rag = self;
        let sections = sections(config).unwrap_or_else(|error| {
            rag.problems.push(error.to_string());
            BTreeMap::new()
        });
        for (name, section) in sections {
            match rag.collection(places, &name, &section) {
                Ok(collection) => rag.collections.push(collection),
                Err(error) => rag.problems.push(error.to_string()),
            }
        }
        rag
    }

    fn collection(
        &mut self,
        places: &Places,
        name: &str,
        section: &CollectionConfig,
    ) -> anyhow::Result<Collection> {
        let kind = match source(&places.environment, name, section)? {
            CollectionSource::Folders(folders) => {
                let local = local(places, name, folders);
                let embedder = self.embedder.clone();
                CollectionKind::Local(Arc::new(match embedder {
                    Some(embedder) => local.with_embedder(embedder),
                    None => local,
                }))
            }
            CollectionSource::Url(url) => {
                let key = section
                    .api_key_env
                    .as_deref()
                    .map(|variable| key(&places.environment, name, variable))
                    .transpose()?;
                self.keys.extend(key.clone());
                let model = section.model.clone().unwrap_or_else(|| name.to_owned());
                let [http, https, except] = haft_agent::proxies(&places.environment);
                let proxy = if url.scheme() == "https" { https } else { http };
                let remote = Remote::new(url, model, key)?;
                let remote = match proxy {
                    Some(proxy) => remote.through(&proxy, except.as_deref())?,
                    None => remote,
                };
                CollectionKind::Remote(Arc::new(remote))
            }
        };
        Ok(Collection {
            name: name.to_owned(),
            description: section.description.clone(),
            kind,
        })
    }

    /// The tool that asks them; none when there are none.
    fn tools(&self) -> Option<Arc<dyn Tool>> {
        (!self.collections.is_empty())
            .then(|| Arc::new(use_rag_tool(self.collections.clone())) as _)
    }

    /// A line for each section that makes no collection.
    fn notices(&self) -> impl Iterator<Item = Notice> {
        let notice = |failed| {
            move |message: &String| Notice {
                code: NAME,
                message: message.clone(),
                failed,
            }
        };
        self.problems
            .iter()
            .map(notice(true))
            .chain(self.remarks.iter().map(notice(false)))
    }
}

/// Where the answers of a collection come from.
pub(crate) fn source(
    environment: &HostEnvironment,
    name: &str,
    section: &CollectionConfig,
) -> anyhow::Result<CollectionSource> {
    section
        .source(name, environment.home().as_deref())
        .map_err(|error| usage_error(error.to_string()))
}

/// The collection over these folders, with its index where haft keeps them.
pub(crate) fn local(places: &Places, name: &str, folders: Vec<PathBuf>) -> Local {
    Local::new(folders, index_of(&places.rag(), name))
}

fn index_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{}.db", haft_types::file_name(name)))
}

fn key(environment: &HostEnvironment, name: &str, variable: &str) -> anyhow::Result<String> {
    environment
        .word(variable)
        .ok_or_else(|| usage_error(text!("rag-no-key", name, variable)))
}
