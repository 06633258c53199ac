//! The lines that wait to be sent to one client.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The maximum size of the lines that wait for a client. A client that is slower is disconnected,
/// and can attach again.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// The lines that wait to be sent to one client. Adding a line never waits.
#[derive(Default)]
pub(crate) struct Outbox {
    state: Mutex<OutboxState>,
    changed: Notify,
    ended: Notify,
}

#[derive(Default)]
struct OutboxState {
    lines: VecDeque<Arc<str>>,
    bytes: usize,
    closed: bool,
    /// True once the client's connection has ended.
    ended: bool,
}

impl Outbox {
    fn lock_state(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line. Returns false if the client is too slow or gone; the outbox is then closed.
    pub(crate) fn push_line(&self, line: &Arc<str>) -> bool {
        let mut state = self.lock_state();
        if state.closed {
            return false;
        }
        if state.bytes + line.len() > MAX_WAITING_BYTES {
            state.closed = true;
            state.lines.clear();
        } else {
            state.bytes += line.len();
            state.lines.push_back(Arc::clone(line));
        }
        let is_open = !state.closed;
        drop(state);
        self.changed.notify_one();
        is_open
    }

    /// Closes the outbox; lines that were added before are still sent.
    pub(crate) fn close(&self) {
        self.lock_state().closed = true;
        self.changed.notify_one();
    }

    /// Records that the connection has ended: all lines were sent, or the client is gone.
    pub(crate) fn end(&self) {
        let mut state = self.lock_state();
        state.closed = true;
        state.ended = true;
        drop(state);
        self.ended.notify_one();
    }

    /// Waits until the connection has ended.
    pub(crate) async fn wait_until_sent(&self) {
        loop {
            if self.lock_state().ended {
                return;
            }
            self.ended.notified().await;
        }
    }

    /// Waits for the next line. Returns `None` once the outbox is closed and empty.
    pub(crate) async fn next_line(&self) -> Option<Arc<str>> {
        loop {
            {
                let mut state = self.lock_state();
                if let Some(line) = state.lines.pop_front() {
                    state.bytes -= line.len();
                    return Some(line);
                }
                if state.closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn outbox_keeps_lines_in_order_and_drops_a_slow_client() {
        let outbox = Outbox::default();
        assert!(outbox.push_line(&"a".into()));
        assert!(outbox.push_line(&"b".into()));
        assert_eq!(outbox.next_line().await.as_deref(), Some("a"));
        let large: Arc<str> = "x".repeat(MAX_WAITING_BYTES).into();
        assert!(!outbox.push_line(&large), "`b` still waits");
        assert!(!outbox.push_line(&"c".into()));
        assert_eq!(outbox.next_line().await, None);
    }

    #[tokio::test]
    async fn outbox_sends_what_was_added_before_it_closed() {
        let outbox = Outbox::default();
        outbox.push_line(&"a".into());
        outbox.close();
        assert!(!outbox.push_line(&"b".into()));
        assert_eq!(outbox.next_line().await.as_deref(), Some("a"));
        assert_eq!(outbox.next_line().await, None);
    }
}
