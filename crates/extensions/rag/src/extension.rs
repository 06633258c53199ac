//! Adds the user's collections to a session. A project cannot add collections.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use haft_agent::config::{Config, ModelRole, Section};
use haft_agent::{
    ConfigError, Contribution, Extension, ExtensionContext, HostEnvironment, KeyError, Notice,
    Places, SetupError,
};
use haft_tool::Tool;
use haft_types::Api;

use crate::collection::{Collection, CollectionKind};
use crate::config::{CollectionConfig, CollectionConfigError, CollectionSource};
use crate::local::Local;
use crate::remote::{Remote, RemoteError};
use crate::tool::create_rag_tool;

/// The name of the configuration section, which is also the code of notices about it.
const SECTION: &str = "rag";

/// The notice that a run does not use the configured embedding model, because it has a cost limit.
const VECTORS_NOT_COUNTED: &str = "collections are asked by words alone, because the run has a limit of money and what vectors cost cannot be told before";

/// Adds to each session a tool that queries the user's collections.
pub struct RagExtension;

impl Extension for RagExtension {
    fn sections(&self) -> Vec<Section> {
        vec![Section::for_type::<BTreeMap<String, CollectionConfig>>(
            SECTION,
        )]
    }

    fn contribute(&self, context: &ExtensionContext<'_>) -> Contribution {
        let configured = if context.money_limited {
            ConfiguredCollections::load_without_vectors(context.places, context.config)
        } else {
            ConfiguredCollections::load(context.places, context.config)
        };
        Contribution {
            tools: configured.create_tool().into_iter().collect(),
            notices: configured.notices().collect(),
            secrets: configured.keys,
            ..Contribution::default()
        }
    }

    fn tools_without_backend(&self, _: &HostEnvironment) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(create_rag_tool(Vec::new()))]
    }
}

/// The reason why a configured collection or the embedding model cannot be used.
#[derive(Debug, thiserror::Error)]
enum CollectionSetupError {
    #[error(
        "collections are searched by keywords only, because the embedding model `{name}` cannot be used: {reason}"
    )]
    Embedding { name: String, reason: Box<Self> },
    #[error("its provider has no `/embeddings`; use one with `api = \"openai-chat\"`")]
    NoEmbeddings,
    #[error(
        "no key for the collection `{name}`: the environment variable `{variable}` is not set; export it, or change `rag.{name}.api_key_env`"
    )]
    NoKey { name: String, variable: String },
    #[error(transparent)]
    Section(#[from] ConfigError),
    #[error(transparent)]
    Collection(#[from] CollectionConfigError),
    #[error(transparent)]
    Model(#[from] SetupError),
    #[error(transparent)]
    ModelKey(#[from] KeyError),
    #[error(transparent)]
    Url(#[from] url::ParseError),
    #[error(transparent)]
    Server(#[from] RemoteError),
}

/// The usable collections in the configuration, and messages about the unusable ones.
#[derive(Default)]
pub struct ConfiguredCollections {
    /// The collections that can be queried, ordered by name.
    pub collections: Vec<Collection>,
    /// A message for each collection that cannot be queried, and for an unusable embedding model.
    pub problems: Vec<String>,
    /// The API keys for servers, which must not be shown or stored.
    keys: Vec<String>,
    /// The server that computes embeddings for collections over folders.
    embedder: Option<Arc<Remote>>,
    /// Messages for the user that report no failure.
    remarks: Vec<String>,
}

impl ConfiguredCollections {
    /// Loads the configured collections. If an embedding model is configured, collections over
    /// folders are also searched by meaning.
    pub fn load(places: &Places, config: &Config) -> Self {
        let mut loaded = Self::default();
        if let Some(name) = config
            .model_roles
            .configured_models(ModelRole::Embedding)
            .first()
        {
            match loaded.create_embedder(places, config, name) {
                Ok(embedder) => loaded.embedder = Some(Arc::new(embedder)),
                Err(reason) => {
                    let problem = CollectionSetupError::Embedding {
                        name: name.clone(),
                        reason: Box::new(reason),
                    };
                    loaded.problems.push(problem.to_string());
                }
            }
        }
        loaded.with_collections(places, config)
    }

    /// Like [`Self::load`], but without the embedding model. Used for a run with a cost limit,
    /// because the cost of embeddings is not known in advance.
    fn load_without_vectors(places: &Places, config: &Config) -> Self {
        let mut loaded = Self::default();
        if !config
            .model_roles
            .configured_models(ModelRole::Embedding)
            .is_empty()
        {
            loaded.remarks.push(VECTORS_NOT_COUNTED.to_owned());
        }
        loaded.with_collections(places, config)
    }

    /// Creates the client for the embedding model `name`.
    fn create_embedder(
        &mut self,
        places: &Places,
        config: &Config,
        name: &str,
    ) -> Result<Remote, CollectionSetupError> {
        let declared = haft_agent::resolve_model(&places.environment, config, name)?;
        match declared.provider.api {
            Api::OpenaiChat | Api::OpenaiResponses => {}
            Api::Anthropic | Api::Gemini => return Err(CollectionSetupError::NoEmbeddings),
        }
        let key = haft_agent::find_key(
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
        let remote = remote.with_price(declared.spec.full_name(), declared.spec.price);
        let proxy = declared
            .provider
            .proxy
            .as_deref()
            .filter(|proxy| !proxy.is_empty());
        Ok(match proxy {
            Some(proxy) => remote.with_proxy(proxy, declared.provider.no_proxy.as_deref())?,
            None => remote,
        })
    }

    fn with_collections(mut self, places: &Places, config: &Config) -> Self {
        let sections: BTreeMap<String, CollectionConfig> = config
            .read_section(SECTION)
            .unwrap_or_else(|error: ConfigError| {
                self.problems.push(error.to_string());
                BTreeMap::new()
            });
        for (name, section) in sections {
            match self.create_collection(places, &name, &section) {
                Ok(collection) => self.collections.push(collection),
                Err(error) => self.problems.push(error.to_string()),
            }
        }
        self
    }

    fn create_collection(
        &mut self,
        places: &Places,
        name: &str,
        section: &CollectionConfig,
    ) -> Result<Collection, CollectionSetupError> {
        let home = places.environment.home();
        let kind = match section.source(name, home.as_deref())? {
            CollectionSource::Folders(folders) => {
                let local = create_local_collection(places, name, folders);
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
                    .map(|variable| read_key(&places.environment, name, variable))
                    .transpose()?;
                self.keys.extend(key.clone());
                let model = section.model.clone().unwrap_or_else(|| name.to_owned());
                let [http, https, except] = haft_agent::environment_proxies(&places.environment);
                let proxy = if url.scheme() == "https" { https } else { http };
                let remote = Remote::new(url, model, key)?;
                let remote = match proxy {
                    Some(proxy) => remote.with_proxy(&proxy, except.as_deref())?,
                    None => remote,
                };
                CollectionKind::Remote(Arc::new(remote))
            }
        };
        let model = match kind {
            CollectionKind::Local(_) => section.model.clone(),
            // `model` is then the name of the collection on the server, not a model of haft.
            CollectionKind::Remote(_) => None,
        };
        Ok(Collection {
            name: name.to_owned(),
            description: section.description.clone(),
            model,
            kind,
        })
    }

    /// Creates the tool that queries the collections. Returns `None` if there are no collections.
    fn create_tool(&self) -> Option<Arc<dyn Tool>> {
        (!self.collections.is_empty())
            .then(|| Arc::new(create_rag_tool(self.collections.clone())) as _)
    }

    /// Returns one notice for each problem and for each remark.
    fn notices(&self) -> impl Iterator<Item = Notice> {
        let notice = |failed| {
            move |message: &String| Notice {
                code: SECTION,
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

/// Creates a collection over `folders`. Its index is stored in haft's own data folder.
pub fn create_local_collection(places: &Places, name: &str, folders: Vec<PathBuf>) -> Local {
    let index = format!("{}.db", haft_types::encode_file_name(name));
    Local::new(folders, places.rag_folder().join(index))
}

fn read_key(
    environment: &HostEnvironment,
    name: &str,
    variable: &str,
) -> Result<String, CollectionSetupError> {
    environment
        .trimmed_variable(variable)
        .ok_or_else(|| CollectionSetupError::NoKey {
            name: name.to_owned(),
            variable: variable.to_owned(),
        })
}
