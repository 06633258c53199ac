//! Opens models by name, only when they are needed.

use std::sync::Arc;

use haft_model::Client;

type Opener = dyn Fn(&str) -> Result<Client, String> + Send + Sync;

/// Opens models by name, for sub-agents and images.
#[derive(Clone)]
pub struct ModelOpener {
    open: Arc<Opener>,
    /// The model of sub-agents whose file names no model; `None` for the model of the session that
    /// starts them.
    pub(crate) subagent_model: Option<String>,
    /// The models that describe images for models that don't accept images, in order.
    pub(crate) vision_models: Vec<String>,
}

impl ModelOpener {
    /// Creates an opener that calls `open`. An error that `open` returns is shown to the user.
    pub fn new(open: impl Fn(&str) -> Result<Client, String> + Send + Sync + 'static) -> Self {
        Self {
            open: Arc::new(open),
            subagent_model: None,
            vision_models: Vec::new(),
        }
    }

    /// Sets the model for sub-agents whose file names no model.
    #[must_use]
    pub fn with_subagent_model(self, name: Option<String>) -> Self {
        Self {
            subagent_model: name,
            ..self
        }
    }

    /// Sets the models that describe images. A model is used if all models before it are
    /// overloaded.
    #[must_use]
    pub fn with_vision_models(self, names: Vec<String>) -> Self {
        Self {
            vision_models: names,
            ..self
        }
    }

    pub(crate) fn open(&self, name: &str) -> Result<Client, String> {
        (self.open)(name)
    }
}

/// A model that is opened on demand: until then, neither its key nor its server is accessed.
pub struct Standby {
    name: String,
    open: Box<dyn FnOnce() -> Result<Client, String> + Send + Sync>,
}

impl Standby {
    /// Creates a standby for the model `name`. The function `open` is called at most once.
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

    /// Opens the model. Returns the name of the model, and the client or an error for the user.
    pub(crate) fn open(self) -> (String, Result<Client, String>) {
        (self.name, (self.open)())
    }
}
