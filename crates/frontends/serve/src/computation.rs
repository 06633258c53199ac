//! Results that take long to compute: each is computed once in a thread of its own, kept for later
//! pages, and computed again when its input has changed. A computation stops when no browser waits
//! for it any more.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::PageError;

/// The time that a page waits for a result before it shows the progress instead.
const PAGE_PATIENCE_INTERVAL: Duration = Duration::from_millis(1_500);

/// The time after which a computation stops if no page asks for its result or its progress. Pages
/// without scripts ask every second.
const ABANDONED_TIMEOUT: Duration = Duration::from_secs(4);

/// The progress of a computation, and whether it is still wanted. The computation calls
/// [`Self::advance`] and [`Self::is_wanted`]; pages read the progress.
#[derive(Debug)]
pub struct ComputationWatch {
    done: AtomicU64,
    total: AtomicU64,
    /// The number of pages that wait for the result.
    waiting: AtomicUsize,
    last_asked: Mutex<Instant>,
    is_closed: AtomicBool,
}

/// The steps that a computation has done, and all its steps; 0 of 0 if they are not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ComputationProgress {
    pub(crate) done: u64,
    pub(crate) total: u64,
}

impl ComputationWatch {
    fn new() -> Self {
        Self {
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            last_asked: Mutex::new(Instant::now()),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Sets the number of steps.
    pub fn set_total(&self, steps: u64) {
        self.total.store(steps, Ordering::Relaxed);
    }

    /// Records that steps are done.
    pub fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }

    /// Returns false if no browser waits for the result, or if the server ends. The computation
    /// must then stop.
    pub fn is_wanted(&self) -> bool {
        if self.is_closed.load(Ordering::Relaxed) {
            return false;
        }
        let last_asked = self
            .last_asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.waiting.load(Ordering::Relaxed) > 0 || last_asked.elapsed() < ABANDONED_TIMEOUT
    }

    fn ask(&self) {
        let mut last_asked = self
            .last_asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *last_asked = Instant::now();
    }

    fn progress(&self) -> ComputationProgress {
        ComputationProgress {
            done: self.done.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
        }
    }
}

/// Counts a page that waits for a result, until it is dropped: when the page is answered, or when
/// the browser has closed the connection.
pub(crate) struct WaitingPage(Arc<ComputationWatch>);

impl WaitingPage {
    fn new(watch: &Arc<ComputationWatch>) -> Self {
        watch.waiting.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(watch))
    }
}

impl Drop for WaitingPage {
    fn drop(&mut self) {
        self.0.ask();
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A computation that runs or has ended.
struct ComputationSlot<T> {
    /// The name of the result, such as the id of a conversation.
    key: String,
    /// A text that changes with the input of the computation.
    version: String,
    watch: Arc<ComputationWatch>,
    result: Mutex<Option<Result<Arc<T>, String>>>,
    ended: Notify,
}

impl<T> ComputationSlot<T> {
    fn result(&self) -> Option<Result<Arc<T>, String>> {
        self.result
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// A result, or the progress of its computation.
pub(crate) enum Computed<T> {
    Ready(Arc<T>),
    Running(RunningComputation),
}

/// A computation that takes longer than a page waits for it. It is wanted at least as long as this
/// value exists.
pub(crate) struct RunningComputation {
    pub(crate) progress: ComputationProgress,
    _page: WaitingPage,
}

/// The computations of one kind, the most recently used last. The oldest ones are forgotten.
pub(crate) struct Computations<T> {
    slots: Mutex<Vec<Arc<ComputationSlot<T>>>>,
    /// The maximum number of results that are kept.
    kept: usize,
}

impl<T: Send + Sync + 'static> Computations<T> {
    /// Creates an empty list of at most `kept` results.
    pub(crate) fn new(kept: usize) -> Self {
        Self {
            slots: Mutex::default(),
            kept,
        }
    }

    /// Returns the result of `compute` for this key and version. It is computed unless it is kept
    /// or is being computed. If that takes long, the progress is returned, and the caller asks
    /// again later.
    pub(crate) async fn get<F>(
        &self,
        key: &str,
        version: &str,
        compute: impl FnOnce(Arc<ComputationWatch>) -> F + Send + 'static,
    ) -> Result<Computed<T>, PageError>
    where
        F: Future<Output = Result<T, PageError>>,
    {
        let slot = self.find_or_start(key, version, compute);
        let page = WaitingPage::new(&slot.watch);
        let patience = tokio::time::sleep(PAGE_PATIENCE_INTERVAL);
        tokio::pin!(patience);
        loop {
            // Registered before the result is read, so that no end is missed.
            let ended = slot.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            match slot.result() {
                Some(Ok(result)) => return Ok(Computed::Ready(result)),
                Some(Err(message)) => {
                    // The next page tries again.
                    self.forget(&slot);
                    return Err(PageError::Action(message));
                }
                None => {}
            }
            tokio::select! {
                () = &mut ended => {}
                () = &mut patience => {
                    return Ok(Computed::Running(RunningComputation {
                        progress: slot.watch.progress(),
                        _page: page,
                    }));
                }
            }
        }
    }

    /// Returns the progress of the computations whose key begins with `prefix`, as a text that
    /// changes with it and when one ends. Counts as a question for their results.
    pub(crate) fn progress_text(&self, prefix: &str) -> String {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        for slot in slots.iter().filter(|slot| slot.key.starts_with(prefix)) {
            if slot.result().is_none() {
                slot.watch.ask();
                let ComputationProgress { done, total } = slot.watch.progress();
                text.extend([" ", &done.to_string(), "/", &total.to_string()]);
            }
        }
        text
    }

    fn forget(&self, slot: &Arc<ComputationSlot<T>>) {
        self.slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|one| !Arc::ptr_eq(one, slot));
    }

    fn find_or_start<F>(
        &self,
        key: &str,
        version: &str,
        compute: impl FnOnce(Arc<ComputationWatch>) -> F + Send + 'static,
    ) -> Arc<ComputationSlot<T>>
    where
        F: Future<Output = Result<T, PageError>>,
    {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let found = slots
            .iter()
            .position(|slot| slot.key == key)
            .map(|at| slots.remove(at));
        // A result for another version is outdated, and its computation is not needed any more.
        let usable = found.filter(|slot| {
            let is_alive = match slot.result() {
                Some(result) => result.is_ok(),
                None => slot.watch.is_wanted(),
            };
            let usable = slot.version == version && is_alive;
            if !usable {
                slot.watch.is_closed.store(true, Ordering::Relaxed);
            }
            usable
        });
        let slot = usable.unwrap_or_else(|| start(key, version, compute));
        slots.push(Arc::clone(&slot));
        while slots.len() > self.kept {
            slots
                .remove(0)
                .watch
                .is_closed
                .store(true, Ordering::Relaxed);
        }
        slot
    }
}

/// Starts a computation in a thread for blocking work, because it may not wait for long.
fn start<T, F>(
    key: &str,
    version: &str,
    compute: impl FnOnce(Arc<ComputationWatch>) -> F + Send + 'static,
) -> Arc<ComputationSlot<T>>
where
    T: Send + Sync + 'static,
    F: Future<Output = Result<T, PageError>>,
{
    let slot = Arc::new(ComputationSlot {
        key: key.to_owned(),
        version: version.to_owned(),
        watch: Arc::new(ComputationWatch::new()),
        result: Mutex::default(),
        ended: Notify::new(),
    });
    let runtime = tokio::runtime::Handle::current();
    let started = Arc::clone(&slot);
    tokio::task::spawn_blocking(move || {
        let watch = Arc::clone(&started.watch);
        let result = runtime
            .block_on(compute(watch))
            .map(Arc::new)
            .map_err(|error| error.to_one_line());
        *started
            .result
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(result);
        started.ended.notify_waiters();
    });
    slot
}

/// The server ends: running computations stop, so that the process can end.
impl<T> Drop for Computations<T> {
    fn drop(&mut self) {
        let slots = self.slots.get_mut().unwrap_or_else(PoisonError::into_inner);
        for slot in slots {
            slot.watch.is_closed.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    async fn get(all: &Computations<u32>, version: &str, runs: &Arc<AtomicU32>) -> u32 {
        let runs = Arc::clone(runs);
        let computed = all
            .get("c", version, move |_| async move {
                Ok(runs.fetch_add(1, Ordering::Relaxed) + 1)
            })
            .await
            .unwrap();
        match computed {
            Computed::Ready(value) => *value,
            Computed::Running(running) => panic!("{:?}", running.progress),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn result_is_computed_once_for_each_version() {
        let all = Computations::new(2);
        let runs = Arc::new(AtomicU32::new(0));
        assert_eq!(get(&all, "1", &runs).await, 1);
        assert_eq!(get(&all, "1", &runs).await, 1);
        assert_eq!(get(&all, "2", &runs).await, 2);
        assert_eq!(get(&all, "2", &runs).await, 2);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn oldest_result_is_forgotten() {
        let all = Computations::new(2);
        for key in ["a", "b", "c"] {
            let computed = all.get(key, "1", |_| async { Ok(1) }).await;
            assert!(matches!(computed, Ok(Computed::Ready(_))));
        }
        let slots = all.slots.lock().unwrap();
        let keys: Vec<_> = slots.iter().map(|slot| slot.key.as_str()).collect();
        assert_eq!(keys, ["b", "c"]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn failed_computation_is_tried_again() {
        let all = Computations::<u32>::new(2);
        let failed = all
            .get("a", "1", |_| async {
                Err(PageError::Action("no".to_owned()))
            })
            .await;
        assert!(failed.is_err());
        let again = all.get("a", "1", |_| async { Ok(1) }).await;
        assert!(matches!(again, Ok(Computed::Ready(_))));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn computation_ends_when_it_is_replaced_or_the_server_ends() {
        for replaced in [true, false] {
            let all = Arc::new(Computations::<u32>::new(2));
            let (begun, begins) = tokio::sync::oneshot::channel();
            let (ended, ends) = tokio::sync::oneshot::channel();
            let page = {
                let all = Arc::clone(&all);
                tokio::spawn(async move {
                    drop(
                        all.get("a", "1", move |watch| async move {
                            let _ = begun.send(());
                            while watch.is_wanted() {
                                std::thread::yield_now();
                            }
                            let _ = ended.send(());
                            Ok(1)
                        })
                        .await,
                    );
                })
            };
            begins.await.unwrap();
            if replaced {
                drop(all.get("a", "2", |_| async { Ok(2) }).await);
            } else {
                // The task of the page is dropped with the server.
                page.abort();
                let _ = page.await;
                drop(all);
            }
            ends.await.unwrap();
        }
    }

    #[test]
    fn computation_is_wanted_while_a_page_waits() {
        let watch = Arc::new(ComputationWatch::new());
        let long_ago = Instant::now().checked_sub(2 * ABANDONED_TIMEOUT).unwrap();
        let forget = || *watch.last_asked.lock().unwrap() = long_ago;
        let page = WaitingPage::new(&watch);
        forget();
        assert!(watch.is_wanted());
        drop(page);
        assert!(watch.is_wanted(), "the page may ask again");
        forget();
        assert!(!watch.is_wanted());
        watch.ask();
        assert!(watch.is_wanted());
    }
}
