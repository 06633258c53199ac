//! A thread that owns a database connection and does jobs one after another.
//!
//! Invariant: jobs run in the order they were submitted, each to its end, whether or not anyone waits for it; dropping the
//! worker waits for those already submitted.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

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

/// What a thread does when nobody asked it for anything for a while.
pub(super) struct Pastime<S> {
    /// How long a while is.
    pub(super) after: Duration,
    /// A short piece of work.
    pub(super) work: fn(&mut S) -> Idle,
}

/// Whether there is more to do in the meantime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// Another piece, unless a job comes first.
    More,
    /// Nothing until the next job is done.
    Done,
}

impl<S: Send + 'static> Worker<S> {
    /// Starts the thread.
    pub(super) fn start(name: &str, place: Arc<Place>, mut state: S) -> Result<Self, StoreError> {
        Self::run(name, place, move |queue| queue.into_iter().for_each(|job| job(&mut state)))
    }

    /// Starts a thread that knows what to do when nothing is asked.
    pub(super) fn start_with(
        name: &str,
        place: Arc<Place>,
        mut state: S,
        pastime: Pastime<S>,
    ) -> Result<Self, StoreError> {
        Self::run(name, place, move |queue| {
            while let Ok(job) = queue.recv() {
                job(&mut state);
                pass_time(&queue, &mut state, &pastime);
            }
        })
    }

    fn run(
        name: &str,
        place: Arc<Place>,
        body: impl FnOnce(Receiver<Job<S>>) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel::<Job<S>>();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || body(queue));
        let thread = thread.map_err(|source| StoreError::Io {
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
        self.send(Box::new(move |state| tell.tell(job(state).map_err(|failure| place.explain(failure)))));
        pending
    }

    /// Says that something happened, after which there may be something to do.
    pub(super) fn poke(&self) {
        self.send(Box::new(|_| ()));
    }

    fn send(&self, job: Job<S>) {
        // When the thread is gone the job is dropped and with it its end of the channel, by which the other side learns it.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }

    /// The first failure nobody waited for, once.
    pub(super) fn take_unseen(&self) -> Option<StoreError> {
        self.unseen.take()
    }
}

/// Does jobs as they come, and the pastime between them, until there is nothing more to do.
fn pass_time<S>(queue: &Receiver<Job<S>>, state: &mut S, pastime: &Pastime<S>) {
    let mut wait = pastime.after;
    loop {
        match queue.recv_timeout(wait) {
            Ok(job) => {
                job(state);
                wait = pastime.after;
            }
            Err(RecvTimeoutError::Timeout) => match (pastime.work)(state) {
                Idle::More => wait = Duration::ZERO,
                Idle::Done => return,
            },
            Err(RecvTimeoutError::Disconnected) => return,
        }
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
