//! A gate that holds a reply back until a test opens it.

use std::sync::Arc;

use tokio::sync::watch;

/// A gate that holds replies back until it is opened. Once open, it stays open. Clones share one
/// gate.
#[derive(Clone, Debug)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Returns a future that completes when the gate is open.
    pub(crate) fn wait_until_open(&self) -> impl Future<Output = ()> + Send + use<> {
        let sender = Arc::clone(&self.0);
        async move {
            // The future owns the sender, so the channel can't close.
            let _ = sender.subscribe().wait_for(|is_open| *is_open).await;
        }
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl PartialEq for Gate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The position in the body of a reply at which a [`Gate`] holds the body back.
#[derive(Clone, Debug, PartialEq)]
pub enum Hold {
    /// The gate holds back the whole body.
    Start(Gate),
    /// The gate holds back the second half of the body's pieces.
    Middle(Gate),
}
