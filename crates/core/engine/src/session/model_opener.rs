//! How models are opened by their names, when they are needed and not before.

use std::sync::Arc;

use haft_model::Client;

type Opener = dyn Fn(&str) -> Result<Client, String> + Send + Sync;

/// How models are opened by their names.
#[derive(Clone)]
pub struct ModelOpener {
    open: Arc<Opener>,
    /// The model of sub-agents whose file names none; that of whoever starts them when absent.
    pub(crate) for_sub_agents: Option<String>,
    /// The models that describe pictures for those that take none, in order.
    pub(crate) for_vision: Vec<String>,
}

impl ModelOpener {
    /// Models that are opened in this way; the error is for people.
    pub fn new(open: impl Fn(&str) -> Result<Client, String> + Send + Sync + 'static) -> Self {
        Self {
            open: Arc::new(open),
            for_sub_agents: None,
            for_vision: Vec::new(),
        }
    }

    /// The same with this model for sub-agents whose file names none.
    #[must_use]
    pub fn for_sub_agents(self, name: Option<String>) -> Self {
        Self {
            for_sub_agents: name,
            ..self
        }
    }

    /// The same with these models to describe pictures, asked in order while those before have too
    /// much to do.
    #[must_use]
    pub fn for_vision(self, names: Vec<String>) -> Self {
        Self {
            for_vision: names,
            ..self
        }
    }

    pub(crate) fn open(&self, name: &str) -> Result<Client, String> {
        (self.open)(name)
    }
}

/// A model that waits until it is needed. Neither its key nor its server is asked for before.
pub struct Standby {
    name: String,
    open: Box<dyn FnOnce() -> Result<Client, String> + Send + Sync>,
}

impl Standby {
    /// The model of this name; `open` is called at most once, when it is needed.
    pub fn new(
        name: impl Into<String>,
        open: impl FnOnce() -> Result<Client, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            open: Box::new(open),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its name, and the client, or why there is none.
    pub(crate) fn open(self) -> (String, Result<Client, String>) {
        (self.name, (self.open)())
    }
}
