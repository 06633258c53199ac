//! Values of a session that its tools share.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

/// Values of a session that its tools share, such as the TODO list: at most one of each type. The
/// types belong to the tools that use them, so this crate does not know them.
///
/// ```
/// use std::sync::Arc;
///
/// use haft_tool::SessionState;
///
/// struct Notes(Vec<String>);
///
/// let state = SessionState::default().with(Arc::new(Notes(vec!["tabs".to_owned()])));
/// assert_eq!(state.get::<Notes>().unwrap().0, ["tabs"]);
/// assert!(state.get::<String>().is_none());
/// ```
#[derive(Clone, Default)]
pub struct SessionState {
    by_type: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
}

impl SessionState {
    /// Adds a value. An earlier value of its type is replaced.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, value: Arc<T>) -> Self {
        self.by_type.insert(TypeId::of::<T>(), value);
        self
    }

    /// Returns the value of this type, or `None` if the session has none.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let value = Arc::clone(self.by_type.get(&TypeId::of::<T>())?);
        value.downcast().ok()
    }
}
