//! A write that is under way, and the failures nobody waited for.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::error::StoreError;

/// A write that is queued. Await it to know that it is durable; dropping it does not cancel the
/// write, and what goes wrong then is reported by the next [`flush`](crate::Store::flush).
#[derive(Debug)]
pub struct PendingWrite<T> {
    told: oneshot::Receiver<Result<T, StoreError>>,
    unseen: Arc<Unseen>,
}

/// The other end of a [`PendingWrite`].
pub(crate) struct Tell<T> {
    tell: oneshot::Sender<Result<T, StoreError>>,
    unseen: Arc<Unseen>,
}

/// The first failure that nobody waited for.
#[derive(Debug, Default)]
pub(crate) struct Unseen(Mutex<Option<StoreError>>);

impl Unseen {
    fn keep(&self, error: StoreError) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
    }

    /// Gives it out, once.
    pub(crate) fn take(&self) -> Option<StoreError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> PendingWrite<T> {
    /// A pending write and the end through which its result is sent.
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

    /// A write that is over already, for stores that have nothing to wait for.
    pub fn over(result: Result<T, StoreError>) -> Self {
        let (tell, pending) = Self::new(&Arc::default());
        tell.tell(result);
        pending
    }
}

impl<T> Tell<T> {
    /// Tells how the write went.
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
        // A failure sent before this moment is still in the channel, a later one finds it closed.
        self.told.close();
        if let Ok(Err(error)) = self.told.try_recv() {
            self.unseen.keep(error);
        }
    }
}
