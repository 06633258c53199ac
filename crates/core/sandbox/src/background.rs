//! A command that runs beside everything else, until it ends or nobody holds it any more.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{FinishedCommand, LiveCommand, SandboxError};

/// How a command ended, or why it could not be run.
pub type Ending = Arc<Result<FinishedCommand, SandboxError>>;

/// A command that runs in the background. Dropping it ends the command and everything it started.
#[derive(Debug)]
pub struct Background {
    live: LiveCommand,
    cancel: CancellationToken,
    ending: watch::Receiver<Option<Ending>>,
    task: JoinHandle<()>,
}

impl Background {
    /// Runs `command` as a task of its own; it must end when `cancel` fires.
    pub(crate) fn spawn(
        live: LiveCommand,
        cancel: CancellationToken,
        command: impl Future<Output = Result<FinishedCommand, SandboxError>> + Send + 'static,
    ) -> Self {
        let (told, ending) = watch::channel(None);
        let task = tokio::spawn(async move {
            let ended = command.await;
            told.send_replace(Some(Arc::new(ended)));
        });
        Self {
            live,
            cancel,
            ending,
            task,
        }
    }

    /// Looks at it while it runs.
    pub fn live(&self) -> &LiveCommand {
        &self.live
    }

    /// How it ended, once it has.
    pub fn ending(&self) -> Option<Ending> {
        self.ending.borrow().clone()
    }

    /// Waits for its end; none when whoever ran it was ended first.
    pub async fn ended(&self) -> Option<Ending> {
        let mut ending = self.ending.clone();
        ending.wait_for(Option::is_some).await.ok()?.clone()
    }

    /// Asks it to end, and everything it started with it; [`Background::ended`] tells when that is
    /// done.
    pub fn stop(&self) {
        self.cancel.cancel();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.task.abort();
    }
}
