//! What a server says on its own: progress, changed lists, questions.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use haft_tool::Progress;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    FormElicitationCapability, Implementation, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::Value;
use tokio::sync::watch;

/// Answers what servers ask of people.
#[async_trait]
pub trait Elicitor: Send + Sync {
    /// Answers a question of this server.
    async fn answer(&self, server: &str, question: Question) -> Reply;
}

/// What a server asks.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// Values that fit a schema.
    Form {
        /// What for.
        message: String,
        /// The JSON schema of the answer.
        schema: Value,
    },
    /// A visit to a page.
    Page {
        /// What for.
        message: String,
        /// Where.
        url: String,
    },
}

/// What a person answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// This.
    Accept(Value),
    /// Nothing, and the server should go on without it.
    Decline,
    /// Nothing, and what was under way should end.
    Cancel,
}

/// What was heard of a server outside its answers.
#[derive(Default)]
pub(crate) struct Heard {
    /// Whether its lists have changed since they were last asked for.
    stale: AtomicBool,
    /// Counts what shows that it is at work.
    signs: watch::Sender<u64>,
    listeners: Mutex<Vec<(u64, Arc<dyn Progress>)>>,
    next: AtomicU64,
}

impl Heard {
    pub(crate) fn list_changed(&self) {
        self.stale.store(true, Ordering::Release);
    }

    /// Whether its lists have changed since this was last asked.
    pub(crate) fn take_stale(&self) -> bool {
        self.stale.swap(false, Ordering::AcqRel)
    }

    /// Changes whenever the server shows that it is at work.
    pub(crate) fn signs(&self) -> watch::Receiver<u64> {
        self.signs.subscribe()
    }

    /// Shows its progress here until the guard is dropped.
    pub(crate) fn show_to(self: &Arc<Self>, progress: Arc<dyn Progress>) -> Shown {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push((number, progress));
        Shown { heard: Arc::clone(self), number }
    }

    fn progress(&self, text: &str) {
        self.signs.send_modify(|count| *count += 1);
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (_, listener) in listeners {
            listener.show(text.to_owned());
        }
    }
}

/// Progress is shown while this lives.
pub(crate) struct Shown {
    heard: Arc<Heard>,
    number: u64,
}

impl Drop for Shown {
    fn drop(&mut self) {
        let mut listeners = self.heard.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|(number, _)| *number != self.number);
    }
}

/// Our side of a connection.
pub(super) struct Handler {
    server: String,
    heard: Arc<Heard>,
    elicitor: Option<Arc<dyn Elicitor>>,
}

impl Handler {
    pub(super) fn new(server: &str, heard: Arc<Heard>, elicitor: Option<Arc<dyn Elicitor>>) -> Self {
        Self { server: server.to_owned(), heard, elicitor }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        // Declared even when nobody can be asked: a refusal is an answer, and a server can say what came of it.
        let mut elicitation = ElicitationCapability::default();
        elicitation.form = Some(FormElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(capabilities, Implementation::new("haft", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, rmcp::ErrorData> {
        let question = match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                Question::Form { message, schema: serde_json::to_value(requested_schema).unwrap_or_default() }
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => Question::Page { message, url },
            _ => return Ok(ElicitResult::new(ElicitationAction::Decline)),
        };
        let reply = match &self.elicitor {
            Some(elicitor) => elicitor.answer(&self.server, question).await,
            None => Reply::Decline,
        };
        Ok(match reply {
            Reply::Accept(value) => ElicitResult::new(ElicitationAction::Accept).with_content(value),
            Reply::Decline => ElicitResult::new(ElicitationAction::Decline),
            Reply::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        let share = match params.total {
            Some(total) if total > 0.0 => format!("{} of {total}", params.progress),
            Some(_) | None => params.progress.to_string(),
        };
        let text = match params.message {
            Some(message) => format!("{}: {} ({share})", self.server, haft_text::sanitise(&message)),
            None => format!("{}: {share}", self.server),
        };
        self.heard.progress(&text);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.heard.list_changed();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.heard.list_changed();
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.heard.list_changed();
    }
}
