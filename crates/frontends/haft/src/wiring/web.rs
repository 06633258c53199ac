//! The web as the user configured it: the two tools.

use std::sync::Arc;

use haft_agent::config::Section;
use haft_agent::{Contribution, Extension, ExtensionContext, HostEnvironment};
use haft_engine::Notice;
use haft_tool::Tool;
use haft_web::{Fetcher, SearchService, Searcher, WebConfig, WebProxies, web_crawl, web_search};

use crate::exit::usage_error;

/// The section, and the code of its notices.
const NAME: &str = "web";

/// What `[web]` switches on.
pub(super) struct WebExtension;

impl Extension for WebExtension {
    fn sections(&self) -> Vec<Section> {
        vec![Section::of::<WebConfig>(NAME)]
    }

    /// What is wrong with the section costs the tool, not the session.
    fn contribute(&self, context: &ExtensionContext<'_>) -> Contribution {
        let mut given = Contribution::default();
        let config = context.config.section(NAME).map_err(anyhow::Error::from);
        let added = config.and_then(|config| add(&mut given, &config, context));
        if let Err(error) = added {
            given.notices.push(Notice {
                code: NAME,
                message: error.to_string(),
                failed: true,
            });
        }
        given
    }
}

/// The two tools, as a model would read of them.
pub(super) fn described() -> Vec<Arc<dyn Tool>> {
    let crawl = Fetcher::new(&[])
        .ok()
        .map(|fetcher| Arc::new(web_crawl(fetcher)) as Arc<dyn Tool>);
    let searcher = Searcher::new(
        SearchService::Brave,
        None,
        Some(String::from("-")),
        &WebProxies::default(),
    )
    .ok();
    let search = searcher.map(|searcher| Arc::new(web_search(searcher)) as Arc<dyn Tool>);
    crawl.into_iter().chain(search).collect()
}

fn add(
    given: &mut Contribution,
    config: &WebConfig,
    context: &ExtensionContext<'_>,
) -> anyhow::Result<()> {
    let environment = &context.places.environment;
    let supervisor = context.supervisor;
    let [http, https, except] = haft_agent::proxies(environment);
    let proxies = WebProxies {
        http,
        https,
        except,
    };
    if config.crawl {
        let mut fetcher = Fetcher::new(&config.allow_private)?.through(proxies.clone());
        if let Some(documents) = super::readers(supervisor).documents {
            fetcher = fetcher.with_documents(documents);
        }
        given.tools.push(Arc::new(web_crawl(fetcher)));
    }
    if let Some(service) = config.search {
        let variable = config.api_key_env.as_deref();
        let secret = variable
            .map(|variable| key(environment, variable))
            .transpose()?;
        given.secrets.extend(secret.clone());
        let searcher = Searcher::new(service, config.search_url.as_deref(), secret, &proxies)?;
        given.tools.push(Arc::new(web_search(searcher)));
    }
    Ok(())
}

fn key(environment: &HostEnvironment, variable: &str) -> anyhow::Result<String> {
    environment
        .word(variable)
        .ok_or_else(|| usage_error(text!("web-no-key", variable)))
}
