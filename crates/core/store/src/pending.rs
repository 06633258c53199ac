//! Queued writes, and failures of writes whose results were never awaited.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::error::StoreError;

/// A queued write. Awaiting it returns once the write is durable. Dropping a `PendingWrite` does
/// not cancel the write; if the write then fails, the next [`flush`](crate::Store::flush) reports
/// the failure.
#[derive(Debug)]
pub struct PendingWrite<T> {
    result: oneshot::Receiver<Result<T, StoreError>>,
    unseen_failure: Arc<UnseenFailure>,
}

/// The sending end of a [`PendingWrite`], through which the writer reports the result.
pub(crate) struct ResultSender<T> {
    sender: oneshot::Sender<Result<T, StoreError>>,
    unseen_failure: Arc<UnseenFailure>,
}

/// The first failure of a write whose result the caller never awaited.
#[derive(Debug, Default)]
pub(crate) struct UnseenFailure(Mutex<Option<StoreError>>);

impl UnseenFailure {
    fn record(&self, error: StoreError) {
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
    pub(crate) fn new(unseen: &Arc<UnseenFailure>) -> (ResultSender<T>, Self) {
        let (tell, told) = oneshot::channel();
        (
            ResultSender {
                sender: tell,
                unseen_failure: Arc::clone(unseen),
            },
            Self {
                result: told,
                unseen_failure: Arc::clone(unseen),
            },
        )
    }

    /// Creates a write that is already complete, for stores that don't queue writes.
    pub fn ready(result: Result<T, StoreError>) -> Self {
        let (tell, pending) = Self::new(&Arc::default());
        tell.send(result);
        pending
    }
}

impl<T> ResultSender<T> {
    /// Sends the result of the write, or records its failure if the receiver was dropped.
    pub(crate) fn send(self, result: Result<T, StoreError>) {
        if let Err(Err(error)) = self.sender.send(result) {
            self.unseen_failure.record(error);
        }
    }
}

impl<T> Future for PendingWrite<T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.result)
            .poll(context)
            .map(|told| told.unwrap_or(Err(StoreError::Closed)))
    }
}

impl<T> Drop for PendingWrite<T> {
    fn drop(&mut self) {
        // A failure sent before this moment is still in the channel; a later one finds it closed.
        self.result.close();
        if let Ok(Err(error)) = self.result.try_recv() {
            self.unseen_failure.record(error);
        }
    }
}
