//! The web as the user configured it: the two tools, where this build has them.

use std::sync::Arc;

use haft_engine::Notice;
use haft_tool::Tool;

use crate::config::Config;

/// The tools of a session that reach the web.
#[derive(Default)]
pub(crate) struct Web {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// What is wrong with the section.
    pub(crate) notice: Option<Notice>,
    /// The key of the search service, which must not be kept anywhere.
    pub(crate) secret: Option<String>,
}

#[cfg(feature = "web")]
impl Web {
    /// What `[web]` switches on. What is wrong with it costs the tool, not the session.
    pub(crate) fn of(config: &Config) -> Self {
        let mut web = Self::default();
        if let Err(error) = web.add(&config.web) {
            web.notice = Some(Notice { code: "web", message: error.to_string() });
        }
        web
    }

    fn add(&mut self, config: &haft_web::WebConfig) -> anyhow::Result<()> {
        if config.crawl {
            let fetcher = haft_web::Fetcher::new(&config.allow_private)?;
            self.tools.push(Arc::new(haft_web::WebCrawl::new(fetcher)));
        }
        if let Some(service) = config.search {
            let variable = config.api_key_env.as_deref();
            self.secret = variable.map(key).transpose()?;
            let searcher = haft_web::Searcher::new(service, config.search_url.as_deref(), self.secret.clone())?;
            self.tools.push(Arc::new(haft_web::WebSearch::new(searcher)));
        }
        Ok(())
    }
}

#[cfg(feature = "web")]
fn key(variable: &str) -> anyhow::Result<String> {
    let key = std::env::var(variable).ok().map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
    key.ok_or_else(|| {
        crate::exit::mistake(format!(
            "no key for the search service: the environment variable `{variable}` is not set; export it, or change `web.api_key_env`"
        ))
    })
}

#[cfg(not(feature = "web"))]
impl Web {
    /// This build cannot; a section that asks for it is told so.
    pub(crate) fn of(config: &Config) -> Self {
        let message = "`[web]` is configured, but this haft was built without it; build it with `--features web`";
        let notice = (!config.web.is_empty()).then(|| Notice { code: "web", message: message.to_owned() });
        Self { notice, ..Self::default() }
    }
}
