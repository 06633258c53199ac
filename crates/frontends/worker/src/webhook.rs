//! Announces the ends of tasks to a server that the team chooses.
//!
//! Invariant: an end is announced at least once within an hour while a worker runs. If a worker
//! dies between its call and the note that the call was made, another one calls again.

use std::time::Duration;

use haft_postgres::{QueuedTask, TaskQueue};
use haft_store::StoreError;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::wakeup::Wakeup;

/// The interval at which a worker looks for ends to announce.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(2);

/// Sends a JSON document to the address of the webhook. Blocks, and returns an error unless the
/// server has accepted it.
pub type AnnounceEnd = Box<dyn Fn(&Value) -> Result<(), String> + Send + Sync>;

/// The address that is called at the end of each task.
pub struct Webhook {
    pub send: AnnounceEnd,
}

impl Webhook {
    /// Announces the ends of tasks until `ended` is canceled. The worker's last tasks are announced
    /// before that.
    pub(crate) fn announce_ends(&self, queue: &TaskQueue, ended: &CancellationToken) {
        let pause = Wakeup::default();
        while !ended.is_cancelled() {
            pause.wait(ANNOUNCE_INTERVAL, ended);
            while let Ok(true) = self.announce_next(queue) {}
        }
    }

    /// Announces one end. Returns false if there is none, or if the server did not accept it: it is
    /// tried again after a minute.
    fn announce_next(&self, queue: &TaskQueue) -> Result<bool, StoreError> {
        let Some(id) = queue.claim_announcement()? else {
            return Ok(false);
        };
        let Some(task) = queue.get_task(id)? else {
            return Ok(true);
        };
        if let Err(error) = (self.send)(&describe_end(&task)) {
            tracing::warn!(task = id, %error, "the end of a task could not be announced");
            return Ok(false);
        }
        queue.confirm_announcement(id, task.epoch)?;
        Ok(true)
    }
}

/// Returns the document that is sent at the end of a task. It contains neither the prompt nor the
/// patch.
fn describe_end(task: &QueuedTask) -> Value {
    let result = task.result.as_ref();
    let of_result = |key: &str| result.map_or(Value::Null, |result| result[key].clone());
    json!({
        "task": task.id,
        "epoch": task.epoch,
        "status": task.status,
        "outcome": of_result("outcome"),
        "code": of_result("code"),
        "message": of_result("message"),
        "labels": task.labels,
        "key": task.unique_key,
        "repository": task.request.shown_repository(),
        "branch": task.branch,
        "patch_bytes": task.patch_bytes,
        "conversation_id": task.conversation,
        "cost_usd": task.spent_usd,
        "tokens": task.spent_tokens,
        "attempts": task.attempts,
        "ended_at": task.ended_at,
    })
}
