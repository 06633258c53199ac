//! A thread that owns a database connection and does jobs one after another.
//!
//! Invariant: jobs run in the order they were submitted, each to its end, whether or not anyone waits for it; dropping the
//! worker waits for those already submitted.

use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use super::failure::{Failure, Place};
use crate::error::StoreError;
use crate::pending::{Pending, Unseen};

type Job<S> = Box<dyn FnOnce(&mut S) + Send>;

/// A thread with a state of its own.
pub(super) struct Worker<S> {
    place: Arc<Place>,
    // Taken on drop, which is what ends the thread.
    jobs: Option<mpsc::Sender<Job<S>>>,
    thread: Option<JoinHandle<()>>,
    unseen: Arc<Unseen>,
}

impl<S: Send + 'static> Worker<S> {
    /// Starts the thread.
    pub(super) fn start(name: &str, place: Arc<Place>, mut state: S) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel::<Job<S>>();
        let run = move || queue.into_iter().for_each(|job| job(&mut state));
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run).map_err(|source| StoreError::Io {
            action: "start a thread for",
            path: place.path.clone(),
            source,
        })?;
        Ok(Self { place, jobs: Some(jobs), thread: Some(thread), unseen: Arc::default() })
    }

    /// Queues a job.
    pub(super) fn submit<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut S) -> Result<T, Failure> + Send + 'static,
    ) -> Pending<T> {
        let (tell, pending) = Pending::new(&self.unseen);
        let place = Arc::clone(&self.place);
        let job: Job<S> = Box::new(move |state| tell.tell(job(state).map_err(|failure| place.explain(failure))));
        // When the thread is gone the job is dropped and with it `tell`, by which the pending side learns it.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
        pending
    }

    /// The first failure nobody waited for, once.
    pub(super) fn take_unseen(&self) -> Option<StoreError> {
        self.unseen.take()
    }
}

impl<S> Drop for Worker<S> {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A job that panicked has been noticed by its caller as a closed store.
            let _ = thread.join();
        }
    }
}
