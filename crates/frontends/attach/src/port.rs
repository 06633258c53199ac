//! The session's side: passes events and input between a session and its [`Room`], and owns the
//! socket.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use haft_agent::{Approver, AttachPort, ModeListener, OpenedSession, TaskSettings};
use haft_types::Event;
use tokio_util::sync::CancellationToken;

use crate::approver::AttachApprover;
use crate::lines::{AttachState, PROTOCOL_VERSION, SessionInfo};
use crate::room::Room;
use crate::server::SocketServer;

/// The time limit for sending the last lines when a session is closed.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

/// The port of a session, at which clients attach. Dropping it closes the socket.
pub struct SessionPort {
    room: Arc<Room>,
    settings: PortSettings,
    server: Mutex<Option<SocketServer>>,
}

/// The place of the socket, and the version of this haft.
#[derive(Clone, Debug)]
pub struct PortSettings {
    pub folder: PathBuf,
    pub haft_version: String,
}

impl SessionPort {
    /// Adds a port to the task settings of a session. Its approver, if it has one, then also asks
    /// the clients.
    pub fn add_to(task: &mut TaskSettings, settings: PortSettings) {
        let room = Arc::<Room>::default();
        if let Some(own) = task.approver.take() {
            let approver: Arc<dyn Approver> = Arc::new(AttachApprover::new(own, Arc::clone(&room)));
            task.approver = Some(approver);
        }
        task.attach_port = Some(Arc::new(Self {
            room,
            settings,
            server: Mutex::default(),
        }));
    }
}

impl Drop for SessionPort {
    fn drop(&mut self) {
        drop(self.room.close());
    }
}

#[async_trait]
impl AttachPort for SessionPort {
    fn session_opened(&self, session: OpenedSession<'_>) {
        let conversation = session.conversation;
        let info = SessionInfo {
            version: PROTOCOL_VERSION,
            haft: self.settings.haft_version.clone(),
            conversation_id: conversation.id.to_string(),
            name: conversation.name.clone(),
            model: session.model.full_name(),
            mode: session.mode_switch.mode(),
            cwd: session.working_folder.display().to_string(),
            namespace: conversation.namespace.clone(),
            process: std::process::id(),
            state: AttachState::Closed,
            client: 0,
        };
        self.room.open(info, session.mode_switch);
        let name = conversation.id.short_prefix();
        match SocketServer::start(&self.settings.folder, name, Arc::clone(&self.room)) {
            Ok(server) => {
                *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
            }
            // The session works without; `haft attach` does not list it.
            Err(error) => {
                tracing::warn!(kind = %error.kind(), "no socket for attaching");
            }
        }
    }

    fn begin_turn(&self, cancel: &CancellationToken) {
        self.room.begin_turn(cancel);
    }

    fn event(&self, event: &Event) {
        self.room.send_event(event);
    }

    fn first_input_stored(&self, text: &str) {
        self.room.confirm_first_input(text);
    }

    fn own_input_stored(&self, text: &str) {
        self.room.confirm_own_input(text);
    }

    fn take_input(&self) -> Vec<String> {
        self.room.take_messages()
    }

    fn taken_input_stored(&self) {
        self.room.confirm_taken_message();
    }

    fn end_turn(&self) {
        self.room.end_turn();
    }

    fn accept_prompts(&self) {
        self.room.accept_prompts();
    }

    async fn next_prompt(&self) -> String {
        self.room.next_prompt().await
    }

    fn take_prompt(&self) -> Option<String> {
        self.room.take_prompt()
    }

    fn was_interrupted(&self) -> bool {
        self.room.was_interrupted()
    }

    fn set_mode_listener(&self, listener: ModeListener) {
        self.room.set_mode_listener(listener);
    }

    async fn close(&self) {
        let outboxes = self.room.close();
        self.server
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let all_sent = async {
            for outbox in outboxes {
                outbox.wait_until_sent().await;
            }
        };
        // A client that does not read misses the last lines.
        let _ = tokio::time::timeout(FAREWELL_TIMEOUT, all_sent).await;
    }
}
