//! Handles the messages that a server sends on its own: progress, changed lists, and questions.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use haft_tool::CallProgress;
use haft_types::{Form, FormOutcome};
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, FormElicitationCapability, Implementation, ProgressNotificationParam,
    ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use crate::form::build_form;

/// Shows forms to the user on behalf of servers.
#[async_trait]
pub trait Elicitor: Send + Sync {
    /// Shows a form to the user and waits for the user's answers.
    async fn fill_form(&self, form: Form) -> FormOutcome;
}

/// The state of a connection that the server's notifications and questions update.
#[derive(Default)]
pub(crate) struct ServerNotifications {
    /// True if the server has announced a change to one of its lists since the lists were last
    /// fetched.
    stale: AtomicBool,
    /// A counter of the server's activity. Every change of the counter restarts the timeout of
    /// pending calls.
    activity: watch::Sender<u64>,
    /// The number of questions that wait for the user.
    asking: AtomicU64,
    /// Notified when the calls that caused the open questions are canceled.
    questions_canceled: Notify,
    listeners: Mutex<Vec<(u64, CallProgress)>>,
    next_number: AtomicU64,
}

impl ServerNotifications {
    pub(crate) fn mark_stale(&self) {
        self.stale.store(true, Ordering::Release);
    }

    /// Returns true if one of the server's lists has changed since the last call of this method.
    pub(crate) fn take_stale_flag(&self) -> bool {
        self.stale.swap(false, Ordering::AcqRel)
    }

    /// Returns a receiver that is notified whenever the server shows activity.
    pub(crate) fn subscribe_to_activity(&self) -> watch::Receiver<u64> {
        self.activity.subscribe()
    }

    /// Forwards the server's progress notifications to `progress` until the guard is dropped.
    pub(crate) fn forward_progress_to(self: &Arc<Self>, progress: CallProgress) -> ProgressGuard {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((number, progress));
        ProgressGuard {
            notifications: Arc::clone(self),
            number,
        }
    }

    /// True while a question of the server waits for the user. The server's timeout doesn't apply
    /// to that time.
    pub(crate) fn is_asking_user(&self) -> bool {
        self.asking.load(Ordering::Acquire) > 0
    }

    /// Cancels the questions that wait for the user.
    pub(crate) fn cancel_questions(&self) {
        self.questions_canceled.notify_waiters();
    }

    fn begin_question(self: &Arc<Self>) -> AskingGuard {
        self.asking.fetch_add(1, Ordering::AcqRel);
        AskingGuard(Arc::clone(self))
    }

    fn report_progress(&self, text: &str) {
        self.activity.send_modify(|count| *count += 1);
        let listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for (_, listener) in listeners {
            listener(text.to_owned());
        }
    }
}

/// A guard that ends the forwarding of progress when it is dropped.
pub(crate) struct ProgressGuard {
    notifications: Arc<ServerNotifications>,
    number: u64,
}

impl Drop for ProgressGuard {
    fn drop(&mut self) {
        let mut listeners = self
            .notifications
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|(number, _)| *number != self.number);
    }
}

/// A guard that keeps a question of the server counted as open until the guard is dropped.
struct AskingGuard(Arc<ServerNotifications>);

impl Drop for AskingGuard {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::AcqRel);
        // The server's timeout starts again.
        self.0.activity.send_modify(|count| *count += 1);
    }
}

/// Answers the requests and handles the notifications that a server sends to haft.
pub(super) struct Handler {
    server: String,
    notifications: Arc<ServerNotifications>,
    elicitor: Option<Arc<dyn Elicitor>>,
}

impl Handler {
    pub(super) fn new(
        server: &str,
        notifications: Arc<ServerNotifications>,
        elicitor: Option<Arc<dyn Elicitor>>,
    ) -> Self {
        Self {
            server: server.to_owned(),
            notifications,
            elicitor,
        }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        // Declared even if no user can be asked, because a server can handle a declined form but
        // not a missing capability.
        let mut elicitation = ElicitationCapability::default();
        elicitation.form = Some(FormElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(
            capabilities,
            Implementation::new("haft", env!("CARGO_PKG_VERSION")),
        )
        .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, rmcp::ErrorData> {
        let form = match request {
            ElicitRequestParams::FormElicitationParams {
                message,
                requested_schema,
                ..
            } => {
                let schema = serde_json::to_value(requested_schema).unwrap_or_default();
                build_form(&self.server, &message, &schema)
            }
            // haft doesn't declare the capability for questions by URL.
            _ => return Ok(ElicitResult::new(ElicitationAction::Decline)),
        };
        let filled = match &self.elicitor {
            Some(elicitor) => {
                let _asking = self.notifications.begin_question();
                tokio::select! {
                    filled = elicitor.fill_form(form) => filled,
                    () = self.notifications.questions_canceled.notified() => FormOutcome::Canceled,
                    () = context.ct.cancelled() => FormOutcome::Canceled,
                }
            }
            None => FormOutcome::Declined,
        };
        Ok(match filled {
            FormOutcome::Accepted(values) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(values))
            }
            FormOutcome::Declined => ElicitResult::new(ElicitationAction::Decline),
            FormOutcome::Canceled => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let share = match params.total {
            Some(total) if total > 0.0 => format!("{} of {total}", params.progress),
            Some(_) | None => params.progress.to_string(),
        };
        let text = match params.message {
            Some(message) => format!(
                "{}: {} ({share})",
                self.server,
                haft_text::sanitize(&message)
            ),
            None => format!("{}: {share}", self.server),
        };
        self.notifications.report_progress(&text);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.notifications.mark_stale();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.notifications.mark_stale();
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.notifications.mark_stale();
    }
}
