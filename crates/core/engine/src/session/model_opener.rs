//! Opens models by name, only when they are needed.

use std::collections::VecDeque;
use std::sync::Arc;

use haft_model::Client;

type Opener = dyn Fn(&str) -> Result<Client, String> + Send + Sync;

/// Opens models by name, for sub-agents, images and plan mode.
#[derive(Clone)]
pub struct ModelOpener {
    open: Arc<Opener>,
    /// The model of sub-agents whose file names no model; `None` for the model of the session that
    /// starts them.
    pub(crate) subagent_model: Option<String>,
    /// The models that answer in plan mode, in order; the main model if empty.
    planning_models: Vec<String>,
    /// The models that describe images for models that don't accept images, in order.
    pub(crate) vision_models: Vec<String>,
}

impl ModelOpener {
    /// Creates an opener that calls `open`. An error that `open` returns is shown to the user.
    pub fn new(open: impl Fn(&str) -> Result<Client, String> + Send + Sync + 'static) -> Self {
        Self {
            open: Arc::new(open),
            subagent_model: None,
            planning_models: Vec::new(),
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

    /// Sets the models that answer in plan mode. A model is used if all models before it are
    /// overloaded.
    #[must_use]
    pub fn with_planning_models(self, names: Vec<String>) -> Self {
        Self {
            planning_models: names,
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

    /// Returns the models that answer in plan mode, in order.
    pub(crate) fn planning_models(&self) -> VecDeque<Standby> {
        self.planning_models
            .iter()
            .map(|name| {
                let opener = self.clone();
                let wanted = name.clone();
                Standby::new(name, move || opener.open(&wanted))
            })
            .collect()
    }
}

/// The models for one kind of side request, in order. A model is opened when it is first needed.
#[derive(Default)]
pub struct SideModels {
    current: Option<Box<Client>>,
    next: VecDeque<Standby>,
}

impl SideModels {
    /// True if no model is configured for these requests.
    pub(crate) fn is_unset(&self) -> bool {
        self.current.is_none() && self.next.is_empty()
    }

    /// Returns the model to ask, or `None` if every model was skipped. `skipped` receives the name
    /// of each model that cannot be opened, and the reason.
    pub(crate) fn open(&mut self, mut skipped: impl FnMut(&str, &str)) -> Option<&mut Client> {
        while self.current.is_none() {
            let (name, opened) = self.next.pop_front()?.open();
            match opened {
                Ok(client) => self.current = Some(Box::new(client)),
                Err(problem) => skipped(&name, &problem),
            }
        }
        self.current.as_deref_mut()
    }

    /// Drops the current model, which is overloaded. Returns `false` if there was none.
    pub(crate) fn drop_current(&mut self) -> bool {
        self.current.take().is_some()
    }

    /// Returns the name of the model to ask after the current one.
    pub(crate) fn next_name(&self) -> Option<&str> {
        self.next.front().map(Standby::name)
    }
}

impl From<VecDeque<Standby>> for SideModels {
    fn from(next: VecDeque<Standby>) -> Self {
        Self {
            current: None,
            next,
        }
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

    fn name(&self) -> &str {
        &self.name
    }

    /// Opens the model. Returns the name of the model, and the client or an error for the user.
    pub(crate) fn open(self) -> (String, Result<Client, String>) {
        (self.name, (self.open)())
    }
}
