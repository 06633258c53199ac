//! A thread that owns a database connection and does jobs one after another.
//!
//! Invariant: jobs run in the order they were submitted, each to its end, whether or not anyone
//! waits for it; dropping the worker waits for those already submitted.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::StoreError;
use crate::pending::{PendingWrite, Unseen};

type Job<S> = Box<dyn FnOnce(&mut S) + Send>;

/// Says what a failure of a job is to the caller.
pub type Explain<F> = Arc<dyn Fn(F) -> StoreError + Send + Sync>;

/// A thread with a state of its own, whose jobs fail with `F`.
pub struct WorkerThread<S, F> {
    explain: Explain<F>,
    // Taken on drop, which is what ends the thread.
    jobs: Option<mpsc::Sender<Job<S>>>,
    thread: Option<JoinHandle<()>>,
    unseen: Arc<Unseen>,
}

/// What a thread does when nobody asked it for anything for a while, such as filling a search
/// index.
pub struct IdleWork<S> {
    /// How long a while is.
    pub after: Duration,
    /// A short piece of work.
    pub work: fn(&mut S) -> Idle,
}

/// Whether there is more to do in the meantime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Another piece, unless a job comes first.
    More,
    /// Nothing until the next job is done.
    Done,
}

impl<S: Send + 'static, F: 'static> WorkerThread<S, F> {
    /// Starts the thread.
    pub fn start(name: &str, explain: Explain<F>, mut state: S) -> Result<Self, StoreError> {
        Self::run(name, explain, move |queue| {
            for job in queue {
                job(&mut state);
            }
        })
    }

    /// Starts a thread that knows what to do when nothing is asked.
    pub fn start_with(
        name: &str,
        explain: Explain<F>,
        mut state: S,
        idle_work: IdleWork<S>,
    ) -> Result<Self, StoreError> {
        Self::run(name, explain, move |queue| {
            while let Ok(job) = queue.recv() {
                job(&mut state);
                do_idle_work(&queue, &mut state, &idle_work);
            }
        })
    }

    fn run(
        name: &str,
        explain: Explain<F>,
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
            unseen: Arc::default(),
        })
    }

    /// Queues a job.
    pub fn submit<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut S) -> Result<T, F> + Send + 'static,
    ) -> PendingWrite<T> {
        let (tell, pending) = PendingWrite::new(&self.unseen);
        let explain = Arc::clone(&self.explain);
        self.send(Box::new(move |state| {
            tell.tell(job(state).map_err(|failure| explain(failure)));
        }));
        pending
    }

    /// Says that something happened, after which there may be something to do.
    pub fn poke(&self) {
        self.send(Box::new(|_| ()));
    }

    fn send(&self, job: Job<S>) {
        // When the thread is gone the job is dropped and with it its end of the channel, by which
        // the other side learns it.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }

    /// The first failure nobody waited for, once.
    pub fn take_unseen(&self) -> Option<StoreError> {
        self.unseen.take()
    }
}

/// Does jobs as they come, and the idle work between them, until there is nothing more to do.
fn do_idle_work<S>(queue: &Receiver<Job<S>>, state: &mut S, idle_work: &IdleWork<S>) {
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
            // A job that panicked has been noticed by its caller as a closed store.
            let _ = thread.join();
        }
    }
}
