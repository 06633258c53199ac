//! Adds the tools that `[web]` configures to a session.

use std::sync::Arc;

use haft_agent::config::Section;
use haft_agent::{ConfigError, Contribution, Extension, ExtensionContext, HostEnvironment, Notice};
use haft_sandbox::Supervisor;
use haft_tool::{DocumentReader, Tool};

use crate::config::{SearchService, WebConfig};
use crate::fetch::{Fetcher, WebError};
use crate::proxy::WebProxies;
use crate::search::{Searcher, SearcherError};
use crate::web_crawl::web_crawl;
use crate::web_search::web_search;

/// The name of the configuration section, which is also the code of notices about it.
const SECTION_NAME: &str = "web";

/// A function that creates the reader for documents on the web, such as PDF files. It returns
/// `None` if the build has no such reader.
pub type DocumentReaderFactory = fn(&Arc<Supervisor>) -> Option<Arc<dyn DocumentReader>>;

/// Adds the tools that the `[web]` section enables to each session.
pub struct WebExtension {
    document_reader: DocumentReaderFactory,
}

impl WebExtension {
    /// Creates the extension. `document_reader` is called only if the tool that reads pages is
    /// enabled.
    pub fn new(document_reader: DocumentReaderFactory) -> Self {
        Self { document_reader }
    }

    fn add_tools(
        &self,
        contribution: &mut Contribution,
        context: &ExtensionContext<'_>,
    ) -> Result<(), WebSetupError> {
        let config: WebConfig = context.config.read_section(SECTION_NAME)?;
        let environment = &context.places.environment;
        let [http, https, except] = haft_agent::environment_proxies(environment);
        let proxies = WebProxies {
            http,
            https,
            except,
        };
        if config.crawl {
            let mut fetcher = Fetcher::new(&config.allow_private)?.with_proxies(proxies.clone());
            if let Some(documents) = (self.document_reader)(context.supervisor) {
                fetcher = fetcher.with_documents(documents);
            }
            contribution.tools.push(Arc::new(web_crawl(fetcher)));
        }
        if let Some(service) = config.search {
            let key = config
                .api_key_env
                .as_deref()
                .map(|variable| read_search_key(environment, variable))
                .transpose()?;
            contribution.secrets.extend(key.clone());
            let searcher = Searcher::new(service, config.search_url.as_deref(), key, &proxies)?;
            contribution.tools.push(Arc::new(web_search(searcher)));
        }
        Ok(())
    }
}

impl Extension for WebExtension {
    fn sections(&self) -> Vec<Section> {
        vec![Section::for_type::<WebConfig>(SECTION_NAME)]
    }

    /// Adds the enabled tools to a session. An error in the `[web]` section disables the tools, not
    /// the session.
    fn contribute(&self, context: &ExtensionContext<'_>) -> Contribution {
        let mut contribution = Contribution::default();
        if let Err(error) = self.add_tools(&mut contribution, context) {
            contribution.notices.push(Notice {
                code: SECTION_NAME,
                message: error.to_string(),
                failed: true,
            });
        }
        contribution
    }

    fn tools_without_backend(&self, _: &HostEnvironment) -> Vec<Arc<dyn Tool>> {
        let crawl = Fetcher::new(&[])
            .ok()
            .map(|fetcher| Arc::new(web_crawl(fetcher)) as Arc<dyn Tool>);
        let searcher = Searcher::new(
            SearchService::Brave,
            None,
            Some(String::from("-")),
            &WebProxies::default(),
        );
        let search = searcher
            .ok()
            .map(|searcher| Arc::new(web_search(searcher)) as Arc<dyn Tool>);
        crawl.into_iter().chain(search).collect()
    }
}

/// The reason why the tools that `[web]` enables cannot be used.
#[derive(Debug, thiserror::Error)]
enum WebSetupError {
    #[error(
        "no key for the search service: the environment variable `{0}` is not set; export it, or change `web.api_key_env`"
    )]
    NoKey(String),
    #[error(transparent)]
    Section(#[from] ConfigError),
    #[error(transparent)]
    Fetcher(#[from] WebError),
    #[error(transparent)]
    Searcher(#[from] SearcherError),
}

fn read_search_key(environment: &HostEnvironment, variable: &str) -> Result<String, WebSetupError> {
    environment
        .trimmed_variable(variable)
        .ok_or_else(|| WebSetupError::NoKey(variable.to_owned()))
}
