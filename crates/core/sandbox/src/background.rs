//! Commands that run in the background until they end or their handle is dropped.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{FinishedCommand, LiveCommand, SandboxError};

/// The result of a command, or the reason why it could not be run.
pub type Ending = Arc<Result<FinishedCommand, SandboxError>>;

/// A background command. Dropping it ends the command and everything it started.
#[derive(Debug)]
pub struct Background {
    live: LiveCommand,
    cancel: CancellationToken,
    ending: watch::Receiver<Option<Ending>>,
    task: JoinHandle<()>,
}

impl Background {
    /// Spawns a task that runs `command`, a future that must end when `cancel` fires.
    pub(crate) fn spawn(
        live: LiveCommand,
        cancel: CancellationToken,
        command: impl Future<Output = Result<FinishedCommand, SandboxError>> + Send + 'static,
    ) -> Self {
        let (sender, ending) = watch::channel(None);
        let task = tokio::spawn(async move {
            let ended = command.await;
            sender.send_replace(Some(Arc::new(ended)));
        });
        Self {
            live,
            cancel,
            ending,
            task,
        }
    }

    /// Returns a handle that observes the running command.
    pub fn live(&self) -> &LiveCommand {
        &self.live
    }

    /// Returns the result of the command, or `None` while it is running.
    pub fn ending(&self) -> Option<Ending> {
        self.ending.borrow().clone()
    }

    /// Waits for the command to end. Returns `None` if the task that runs the command was aborted
    /// first.
    pub async fn wait_for_end(&self) -> Option<Ending> {
        let mut ending = self.ending.clone();
        ending.wait_for(Option::is_some).await.ok()?.clone()
    }

    /// Asks the command and everything it started to end. Does not wait:
    /// [`Background::wait_for_end`] returns when all of them are gone.
    pub fn stop(&self) {
        self.cancel.cancel();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.task.abort();
    }
}
