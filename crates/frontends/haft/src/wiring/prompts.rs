//! What a prompt can call or mention in addition to files and the user's own commands: what
//! extensions of this build offer.

use async_trait::async_trait;
use haft_agent::config::Config;
use haft_agent::{Places, Project};

/// A prompt of an extension, called like a command.
pub(crate) struct OfferedPrompt {
    /// The command's name, without the slash.
    pub(crate) name: String,
    /// The name of the server that offers it.
    pub(crate) server: String,
    /// What it is for.
    pub(crate) description: String,
    /// What to write behind its name.
    pub(crate) argument_hint: String,
    /// Where it comes from and what it takes, in sentences.
    pub(crate) about: String,
}

/// An extension whose prompts can be called and whose resources can be mentioned.
#[async_trait(?Send)]
pub(super) trait PromptSource {
    /// The prompts, as far as they are known; nothing is started.
    fn prompts(&self) -> Vec<OfferedPrompt>;

    /// The resources as they are mentioned, as far as they are known; nothing is started.
    fn resources(&self) -> Vec<String>;

    /// Whether this text calls a prompt of it.
    fn is_call(&self, text: &str) -> bool;

    /// What the prompt says that this text calls.
    async fn expand(&self, called: &str) -> anyhow::Result<String>;

    /// Whether this text mentions resources of it.
    fn is_mentioned(&self, text: &str) -> bool;

    /// The text with the resources behind it that it mentions.
    async fn attach(&self, text: &str) -> anyhow::Result<String>;

    /// Ends what was started.
    async fn close(&self);
}

/// All of them.
pub(crate) struct PromptSources(Vec<Box<dyn PromptSource>>);

impl PromptSources {
    /// Those of this project and the user; nothing is started.
    pub(crate) fn open(
        places: &Places,
        config: &Config,
        project: &Project,
    ) -> anyhow::Result<Self> {
        Ok(Self(super::prompt_sources(places, config, project)?))
    }

    /// The prompts that can be called.
    pub(crate) fn prompts(&self) -> Vec<OfferedPrompt> {
        self.0.iter().flat_map(|source| source.prompts()).collect()
    }

    /// The resources that can be mentioned.
    pub(crate) fn resources(&self) -> Vec<String> {
        self.0
            .iter()
            .flat_map(|source| source.resources())
            .collect()
    }

    /// Whether this text calls a prompt of theirs.
    pub(crate) fn are_called(&self, text: &str) -> bool {
        self.0.iter().any(|source| source.is_call(text))
    }

    /// What the prompt says that this text calls; the text itself when it calls none of theirs.
    pub(crate) async fn expand(&self, text: &str) -> anyhow::Result<String> {
        match self.0.iter().find(|source| source.is_call(text)) {
            Some(source) => source.expand(text).await,
            None => Ok(text.to_owned()),
        }
    }

    /// Whether this text mentions resources of theirs.
    pub(crate) fn are_mentioned(&self, text: &str) -> bool {
        self.0.iter().any(|source| source.is_mentioned(text))
    }

    /// The text with all resources behind it that it mentions.
    pub(crate) async fn attach(&self, mut text: String) -> anyhow::Result<String> {
        for source in &self.0 {
            if source.is_mentioned(&text) {
                text = source.attach(&text).await?;
            }
        }
        Ok(text)
    }

    /// Ends what was started.
    pub(crate) async fn close(&self) {
        for source in &self.0 {
            source.close().await;
        }
    }
}
