//! Prompts and resources of extensions. A user's prompt can call the prompts and mention the
//! resources, in addition to the user's own commands and files.

use std::sync::Arc;

use async_trait::async_trait;

use crate::config::Config;
use crate::error::SetupError;
use crate::extension::Extension;
use crate::places::Places;
use crate::project::Project;

/// A prompt that an extension offers, called like a command.
pub struct OfferedPrompt {
    /// The command's name, without the slash.
    pub name: String,
    /// The name of the server that offers the prompt.
    pub server: String,
    /// The purpose of the prompt, as the server describes it.
    pub description: String,
    /// The arguments, in order.
    pub arguments: Vec<OfferedArgument>,
}

/// An argument of an [`OfferedPrompt`].
pub struct OfferedArgument {
    pub name: String,
    /// The meaning of the argument, as the server describes it.
    pub description: String,
    /// True if the prompt cannot be used without the argument.
    pub required: bool,
}

impl OfferedPrompt {
    /// Returns the arguments in the form of a usage line, such as `<file> [language]`.
    pub fn argument_hint(&self) -> String {
        let hint = |argument: &OfferedArgument| {
            let name = &argument.name;
            if argument.required {
                format!("<{name}>")
            } else {
                format!("[{name}]")
            }
        };
        self.arguments
            .iter()
            .map(hint)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// The reason why a prompt or a resource of an extension cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// The called name is not valid for a prompt.
    #[error("{0}")]
    Name(String),
    /// The prompt cannot be expanded.
    #[error("cannot use `/{name}`: {reason}")]
    Prompt {
        /// The command's name, without the slash.
        name: String,
        /// The reason why the prompt cannot be expanded.
        reason: String,
    },
    /// The resource cannot be read.
    #[error("cannot read `@{resource}`: {reason}")]
    Resource {
        /// The resource, as mentioned in the prompt.
        resource: String,
        /// The reason why the resource cannot be read.
        reason: String,
    },
}

/// An extension whose prompts can be called and whose resources can be mentioned.
#[async_trait(?Send)]
pub trait PromptSource {
    /// Returns the known prompts, without starting a server.
    fn prompts(&self) -> Vec<OfferedPrompt>;

    /// Returns the known resources by the names used in prompts, without starting a server.
    fn resources(&self) -> Vec<String>;

    /// True if `text` calls a prompt of this source.
    fn calls_prompt(&self, text: &str) -> bool;

    /// Returns the content of the prompt that `text` calls.
    async fn expand_prompt(&self, text: &str) -> Result<String, PromptError>;

    /// True if `text` mentions resources of this source.
    fn mentions_resource(&self, text: &str) -> bool;

    /// Returns `text`, followed by the resources that it mentions.
    async fn attach_resources(&self, text: &str) -> Result<String, PromptError>;

    /// Stops every server that was started.
    async fn stop_servers(&self);
}

/// The prompt sources of all extensions.
pub struct PromptSources(Vec<Box<dyn PromptSource>>);

impl PromptSources {
    /// Collects the prompt sources of all extensions for this project and its user, without
    /// starting a server.
    pub fn collect_sources(
        extensions: &[Arc<dyn Extension>],
        places: &Places,
        config: &Config,
        project: &Project,
    ) -> Result<Self, SetupError> {
        let mut sources = Vec::new();
        for extension in extensions {
            sources.extend(extension.prompt_source(places, config, project)?);
        }
        Ok(Self(sources))
    }

    /// Returns the prompts that can be called.
    pub fn prompts(&self) -> Vec<OfferedPrompt> {
        self.0.iter().flat_map(|source| source.prompts()).collect()
    }

    /// Returns the resources that can be mentioned.
    pub fn resources(&self) -> Vec<String> {
        self.0
            .iter()
            .flat_map(|source| source.resources())
            .collect()
    }

    /// True if `text` calls a prompt of any source.
    pub fn calls_prompt(&self, text: &str) -> bool {
        self.0.iter().any(|source| source.calls_prompt(text))
    }

    /// Returns the content of the prompt that `text` calls, or `text` itself if it calls none.
    pub async fn expand_prompt(&self, text: &str) -> Result<String, PromptError> {
        match self.0.iter().find(|source| source.calls_prompt(text)) {
            Some(source) => source.expand_prompt(text).await,
            None => Ok(text.to_owned()),
        }
    }

    /// True if `text` mentions resources of any source.
    pub fn mentions_resource(&self, text: &str) -> bool {
        self.0.iter().any(|source| source.mentions_resource(text))
    }

    /// Returns `text`, followed by all resources that it mentions.
    pub async fn attach_resources(&self, mut text: String) -> Result<String, PromptError> {
        for source in &self.0 {
            if source.mentions_resource(&text) {
                text = source.attach_resources(&text).await?;
            }
        }
        Ok(text)
    }

    /// Stops every server that was started.
    pub async fn stop_servers(&self) {
        for source in &self.0 {
            source.stop_servers().await;
        }
    }
}
