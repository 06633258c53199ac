//! Queued writes, and failures of writes whose results were not awaited.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::error::StoreError;

/// A queued write. Await it to be sure that it is durable. Dropping it does not cancel the write;
/// the next [`flush`](crate::Store::flush) then reports a failure.
#[derive(Debug)]
pub struct PendingWrite<T> {
    told: oneshot::Receiver<Result<T, StoreError>>,
    unseen: Arc<Unseen>,
}

/// The sending end of a [`PendingWrite`].
pub(crate) struct Tell<T> {
    tell: oneshot::Sender<Result<T, StoreError>>,
    unseen: Arc<Unseen>,
}

/// The first failure of a write whose result was not awaited.
#[derive(Debug, Default)]
pub(crate) struct Unseen(Mutex<Option<StoreError>>);

impl Unseen {
    fn keep(&self, error: StoreError) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
    }

    /// Returns the failure and clears it.
    pub(crate) fn take(&self) -> Option<StoreError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> PendingWrite<T> {
    /// Creates a pending write and the sender of its result.
    pub(crate) fn new(unseen: &Arc<Unseen>) -> (Tell<T>, Self) {
        let (tell, told) = oneshot::channel();
        (
            Tell {
                tell,
                unseen: Arc::clone(unseen),
            },
            Self {
                told,
                unseen: Arc::clone(unseen),
            },
        )
    }

    /// Creates a completed write, for stores without a queue.
    pub fn over(result: Result<T, StoreError>) -> Self {
        let (tell, pending) = Self::new(&Arc::default());
        tell.tell(result);
        pending
    }
}

impl<T> Tell<T> {
    /// Sends the result of the write, or records a failure if the receiver was dropped.
    pub(crate) fn tell(self, result: Result<T, StoreError>) {
        if let Err(Err(error)) = self.tell.send(result) {
            self.unseen.keep(error);
        }
    }
}

impl<T> Future for PendingWrite<T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.told)
            .poll(context)
            .map(|told| told.unwrap_or(Err(StoreError::Closed)))
    }
}

impl<T> Drop for PendingWrite<T> {
    fn drop(&mut self) {
        // A failure sent before this moment is still in the channel; a later one finds it closed.
        self.told.close();
        if let Ok(Err(error)) = self.told.try_recv() {
            self.unseen.keep(error);
        }
    }
}
