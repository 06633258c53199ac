//! A thread that owns a database connection and runs jobs one after another.
//!
//! Invariant: jobs run to completion in the order in which they were submitted, whether or not
//! their results are awaited. Dropping the worker waits for the submitted jobs.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::StoreError;
use crate::pending::{PendingWrite, UnseenFailure};

type Job<S> = Box<dyn FnOnce(&mut S) + Send>;

/// A function that converts the failure of a job to the error that the caller receives.
pub type FailureConverter<F> = Arc<dyn Fn(F) -> StoreError + Send + Sync>;

/// A thread that runs jobs one after another on its own state `S`. A job can fail with `F`.
pub struct WorkerThread<S, F> {
    explain: FailureConverter<F>,
    // Dropping the sender ends the thread.
    jobs: Option<mpsc::Sender<Job<S>>>,
    thread: Option<JoinHandle<()>>,
    unseen_failure: Arc<UnseenFailure>,
}

/// Work that the thread does when it has no jobs, such as filling a search index.
pub struct IdleWork<S> {
    /// The time without a new job after which idle work begins.
    pub after: Duration,
    /// Does one short piece of the idle work.
    pub work: fn(&mut S) -> Idle,
}

/// The result of one piece of idle work: more work or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// There is more idle work. It continues unless a job arrives first.
    More,
    /// There is no more idle work until the next job has run.
    Done,
}

impl<S: Send + 'static, F: 'static> WorkerThread<S, F> {
    /// Starts a thread without idle work.
    pub fn start(
        name: &str,
        explain: FailureConverter<F>,
        mut state: S,
    ) -> Result<Self, StoreError> {
        Self::spawn(name, explain, move |queue| {
            for job in queue {
                job(&mut state);
            }
        })
    }

    /// Starts a thread with idle work.
    pub fn start_with_idle_work(
        name: &str,
        explain: FailureConverter<F>,
        mut state: S,
        idle_work: IdleWork<S>,
    ) -> Result<Self, StoreError> {
        Self::spawn(name, explain, move |queue| {
            while let Ok(job) = queue.recv() {
                job(&mut state);
                run_idle_work(&queue, &mut state, &idle_work);
            }
        })
    }

    fn spawn(
        name: &str,
        explain: FailureConverter<F>,
        body: impl FnOnce(Receiver<Job<S>>) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel::<Job<S>>();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || body(queue));
        let thread = thread.map_err(|source| StoreError::Thread {
            name: name.to_owned(),
            source,
        })?;
        Ok(Self {
            explain,
            jobs: Some(jobs),
            thread: Some(thread),
            unseen_failure: Arc::default(),
        })
    }

    /// Queues a job. If the result is never awaited and the job fails, the failure is kept for
    /// [`Self::take_unseen_failure`].
    pub fn submit<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut S) -> Result<T, F> + Send + 'static,
    ) -> PendingWrite<T> {
        let (tell, pending) = PendingWrite::new(&self.unseen_failure);
        let explain = Arc::clone(&self.explain);
        self.queue_job(Box::new(move |state| {
            tell.send(job(state).map_err(|failure| explain(failure)));
        }));
        pending
    }

    /// Wakes the thread so that it checks for idle work.
    pub fn wake(&self) {
        self.queue_job(Box::new(|_| ()));
    }

    fn queue_job(&self, job: Job<S>) {
        // If the thread has ended, the job is dropped together with its result sender, and the
        // receiver then returns an error.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }

    /// Returns the first failure of a job whose result was never awaited, and clears the failure.
    pub fn take_unseen_failure(&self) -> Option<StoreError> {
        self.unseen_failure.take()
    }
}

/// Runs jobs as they arrive and, between them, idle work. Returns when no idle work is left.
fn run_idle_work<S>(queue: &Receiver<Job<S>>, state: &mut S, idle_work: &IdleWork<S>) {
    let mut wait = idle_work.after;
    loop {
        match queue.recv_timeout(wait) {
            Ok(job) => {
                job(state);
                wait = idle_work.after;
            }
            Err(RecvTimeoutError::Timeout) => match (idle_work.work)(state) {
                Idle::More => wait = Duration::ZERO,
                Idle::Done => return,
            },
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl<S, F> Drop for WorkerThread<S, F> {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // The caller of a job that panicked got the error of a closed store.
            let _ = thread.join();
        }
    }
}
