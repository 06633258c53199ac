//! The terminal sessions of a conversation: commands that run in a terminal into which the model
//! types.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft_sandbox::{Capture, SpillFrom, Supervisor, TerminalSession, TerminalSize};
use haft_tool::ToolContext;
use tempfile::TempDir;

use super::phrases::command_title;
use super::shell::{self, CommandLine};
use crate::failure::ToolFailure;
use crate::limits::LimitsConfig;

/// The maximum number of ended sessions whose exits are remembered.
const MAX_ENDED_SESSIONS: usize = 64;

pub(crate) struct PtySession {
    pub(crate) number: u32,
    pub(crate) line: CommandLine,
    pub(crate) terminal: TerminalSession,
    /// The folder of the output file. It is removed with the session, unless the name of the file
    /// was sent to the model.
    folder: Option<Mutex<TempDir>>,
}

impl PtySession {
    pub(crate) fn id(&self) -> String {
        format!("s{}", self.number)
    }

    /// Keeps the output file after the end of the session, because its name was sent to the model.
    pub(crate) fn keep_file(&self) {
        if let Some(folder) = &self.folder {
            folder
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .disable_cleanup(true);
        }
    }
}

#[derive(Default)]
struct SessionTable {
    newest: u32,
    open: BTreeMap<u32, Arc<PtySession>>,
    /// Descriptions of how sessions ended, by number, for sessions whose end was reported to the
    /// model.
    ended: BTreeMap<u32, String>,
}

/// All terminal sessions of a conversation.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<SessionTable>);

impl Sessions {
    pub(crate) fn open_session(
        &self,
        supervisor: &Supervisor,
        limits: &LimitsConfig,
        context: &ToolContext,
        line: CommandLine,
        size: TerminalSize,
    ) -> Result<Arc<PtySession>, ToolFailure> {
        let running = self.running_names();
        let mut state = self.lock_table();
        if running.len() >= limits.sessions {
            let count = running.len();
            let ids = running.join(", ");
            let message = format!(
                "{count} sessions are open, which is the most (`[limits] sessions`): {ids}; end one first"
            );
            return Err(ToolFailure::new("too_many", message));
        }
        let folder = shell::create_output_folder(context, "session-").ok();
        let spill = folder.as_ref().map(|folder| folder.path().join("output"));
        let spill_bytes = limits.spill_bytes;
        let spill_from = SpillFrom::Overflow;
        let capture = Capture {
            limits: context.limits.into(),
            spill,
            max_spill_bytes: spill_bytes,
            spill_from,
        };
        let terminal = supervisor.open_terminal(
            line.to_command_spec(context, Duration::MAX),
            size,
            capture,
        )?;
        state.newest += 1;
        let number = state.newest;
        let session = Arc::new(PtySession {
            number,
            line,
            terminal,
            folder: folder.map(Mutex::new),
        });
        state.open.insert(number, Arc::clone(&session));
        Ok(session)
    }

    /// Returns the ids of the running sessions, each followed by the first line of its command.
    pub(crate) fn running_names(&self) -> Vec<String> {
        let state = self.lock_table();
        let running = state
            .open
            .values()
            .filter(|session| session.terminal.ending().is_none());
        running
            .map(|session| format!("{} ({})", session.id(), command_title(&session.line.text)))
            .collect()
    }

    pub(crate) fn find_session(&self, id: &str) -> Result<Arc<PtySession>, ToolFailure> {
        let state = self.lock_table();
        let number = parse_id(id);
        if let Some(session) = number.and_then(|number| state.open.get(&number)) {
            return Ok(Arc::clone(session));
        }
        if let Some(how) = number.and_then(|number| state.ended.get(&number)) {
            return Err(ToolFailure::new(
                "ended",
                format!("session `{id}` has ended ({how}); start another one"),
            ));
        }
        let open: Vec<_> = state.open.values().map(|session| session.id()).collect();
        let open = if open.is_empty() {
            "none is open".to_owned()
        } else {
            format!("open: {}", open.join(", "))
        };
        let message = format!(
            "there is no session `{id}` ({open}); a session ends with the haft that started it"
        );
        Err(ToolFailure::new("not_found", message))
    }

    /// Drops a session whose end was reported to the model.
    pub(crate) fn close_session(&self, session: &PtySession, how: &str) {
        let mut state = self.lock_table();
        state.open.remove(&session.number);
        state.ended.insert(session.number, how.to_owned());
        while state.ended.len() > MAX_ENDED_SESSIONS {
            state.ended.pop_first();
        }
    }

    pub(crate) async fn end_all(&self) {
        let open: Vec<_> = std::mem::take(&mut self.lock_table().open)
            .into_values()
            .collect();
        for session in &open {
            session.terminal.stop();
        }
        for session in open {
            session.terminal.wait_for_end().await;
        }
    }

    /// Reserves the id of a session that an earlier haft process started, so that the id is not
    /// used again.
    pub(crate) fn reserve_id(&self, id: &str) {
        let mut state = self.lock_table();
        state.newest = state.newest.max(parse_id(id).unwrap_or_default());
    }

    fn lock_table(&self) -> MutexGuard<'_, SessionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parse_id(id: &str) -> Option<u32> {
    id.strip_prefix('s')?.parse().ok()
}
