//! Runs the callbacks of a session, and stores their requests until the session can carry them out.
//!
//! Invariant: texts that callbacks add for the model become a separate message before the next
//! request. Earlier messages stay unchanged, so that the cached prefix remains valid.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use haft_context::DocumentKind;
use haft_model::Delta;
use haft_text::show_exactly;
use haft_tool::{Intent, Registry, Workspace};
use haft_types::{Form, FormOutcome, HookPoint, Outcome};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::event::{HookEvent, ToolName};
use super::{Callbacks, HookContext, HookOutcome};
use crate::calls::approval::{Approval, ApprovalReply, Approver};
use crate::calls::permit::DecisionState;
use crate::error::Notice;
use crate::prompt::documents::StandingDocuments;
use crate::turn::Reason;

/// The callbacks of a session, and the requests that they made and the session has not carried out
/// yet.
#[derive(Clone)]
pub(crate) struct HookRunner {
    callbacks: Callbacks,
    conversation_id: String,
    cwd: PathBuf,
    root: PathBuf,
    shared: Arc<DecisionState>,
    pending: Arc<Mutex<PendingOutcomes>>,
}

/// The requests that callbacks made and the session has not carried out yet.
#[derive(Default)]
pub(crate) struct PendingOutcomes {
    /// Texts to add to the next request.
    pub(crate) context: Vec<String>,
    /// Messages to show to the user.
    pub(crate) notices: Vec<Notice>,
    /// The reason to end the turn.
    stop: Option<String>,
    /// True after the first turn has begun.
    pub(crate) started: bool,
    /// The outcome of the last turn.
    pub(crate) last_outcome: Option<Outcome>,
}

impl HookRunner {
    pub(crate) fn new(
        callbacks: Callbacks,
        workspace: &Workspace,
        shared: Arc<DecisionState>,
    ) -> Self {
        Self {
            callbacks,
            conversation_id: String::new(),
            cwd: workspace.cwd.clone(),
            root: workspace.root.clone(),
            shared,
            pending: Arc::default(),
        }
    }

    /// Sets the conversation id that events contain.
    pub(crate) fn with_conversation(self, conversation_id: impl Into<String>) -> Self {
        Self {
            conversation_id: conversation_id.into(),
            ..self
        }
    }

    /// Returns true if at least one callback may handle events at `point`.
    pub(crate) fn has_listener(&self, point: HookPoint) -> bool {
        self.callbacks.has_listener(point)
    }

    /// Calls every callback that handles the event. Texts for the model and messages for the user
    /// are kept until the session can send them.
    pub(crate) async fn call(&self, event: HookEvent, cancel: &CancellationToken) -> HookOutcome {
        if !self.has_listener(event.point()) {
            return HookOutcome::default();
        }
        let context = HookContext {
            event: &event,
            conversation_id: &self.conversation_id,
            cwd: &self.cwd,
            root: &self.root,
            mode: self.shared.mode(),
            cancel,
        };
        let (mut outcome, problems) = self.callbacks.call(&context).await;
        let notice = |code, message, failed| Notice {
            code,
            message,
            failed,
        };
        self.with_pending(|pending| {
            let label = |text: String| format!("{}: {text}", event.point());
            pending.context.extend(outcome.context.drain(..).map(label));
            pending.notices.extend(
                problems
                    .into_iter()
                    .map(|problem| notice("hook", problem, true)),
            );
            pending.notices.append(&mut outcome.notices);
            pending.notices.extend(
                outcome
                    .messages
                    .drain(..)
                    .map(|message| notice("hook_message", message, false)),
            );
            if let Some(why) = &outcome.stop {
                pending.stop.get_or_insert_with(|| why.clone());
            }
        });
        outcome
    }

    /// Calls `change` with the callbacks' requests that the session has not carried out yet.
    pub(crate) fn with_pending<T>(&self, change: impl FnOnce(&mut PendingOutcomes) -> T) -> T {
        change(&mut self.pending.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a text to the next request.
    pub(crate) fn add_context(&self, text: String) {
        self.with_pending(|pending| pending.context.push(text));
    }

    /// Takes the reason to end the turn; `None` if no callback has requested the end.
    pub(crate) fn take_stop_reason(&self) -> Option<Reason> {
        let why = self.with_pending(|pending| pending.stop.take())?;
        Some(Reason {
            code: "hook_stopped".into(),
            message: format!("A hook stopped the turn: {why}"),
        })
    }

    /// Runs the hooks for the events that precede the reading of the project's documents.
    pub(crate) async fn run_before_documents(&self) {
        let cancel = CancellationToken::new();
        self.call(HookEvent::PreRulesLoaded {}, &cancel).await;
        self.call(HookEvent::PreLibrariesLoaded {}, &cancel).await;
    }

    /// Runs the hooks for the events that follow the reading of the project's documents.
    pub(crate) async fn run_after_documents(&self, read: &StandingDocuments) {
        let cancel = CancellationToken::new();
        let of_library = |kind| kind == DocumentKind::LibraryDocs;
        self.call(
            HookEvent::PostRulesLoaded {
                documents: read.headings(|kind| !of_library(kind)),
            },
            &cancel,
        )
        .await;
        self.call(
            HookEvent::PostLibrariesLoaded {
                documents: read.headings(of_library),
            },
            &cancel,
        )
        .await;
    }

    /// Wraps the approver so that each question also sends a notification.
    pub(crate) fn wrap_approver(
        &self,
        approver: Option<Arc<dyn Approver>>,
    ) -> Option<Arc<dyn Approver>> {
        let inner = approver?;
        if !self.has_listener(HookPoint::Notification) {
            return Some(inner);
        }
        Some(Arc::new(NotifyingApprover {
            inner,
            hooks: self.clone(),
        }))
    }

    /// Creates the channel that reports tool calls while the model writes them. The listener ends
    /// when the reporter is dropped.
    pub(crate) fn generation_channel(
        &self,
        registry: &Registry,
    ) -> (GenerationReporter, GenerationListener) {
        let points = [HookPoint::ToolGenerationStart, HookPoint::ToolGenerationEnd];
        let wanted = points.into_iter().any(|point| self.has_listener(point));
        let (sender, receiver) = unbounded_channel();
        let teller = GenerationReporter {
            sender: wanted.then_some(sender),
            registry: registry.clone(),
            names: Vec::new(),
        };
        (
            teller,
            GenerationListener {
                receiver,
                hooks: self.clone(),
            },
        )
    }
}

/// Returns the name and the aliases of a tool.
pub(crate) fn tool_name(registry: &Registry, name: &str) -> ToolName {
    called_tool_name(registry, name, &Value::Null)
}

/// Returns the name and the aliases of the tool that a call uses. For a tool of an MCP server, the
/// aliases include `mcp__SERVER__TOOL`, the name that other agents use, so that a call can't bypass
/// a hook by using another name for the tool.
pub(crate) fn called_tool_name(registry: &Registry, name: &str, arguments: &Value) -> ToolName {
    let Some(found) = registry.resolve(name) else {
        return ToolName {
            name: name.to_owned(),
            also: Vec::new(),
        };
    };
    let of_server = if let Intent::Server { server, tool } = found.tool.intent(arguments) {
        Some(format!("mcp__{server}__{tool}"))
    } else {
        None
    };
    let aliases = found
        .tool
        .manual()
        .aliases
        .iter()
        .map(|alias| alias.name.to_owned());
    ToolName {
        name: found.tool.spec().name.clone(),
        also: of_server.into_iter().chain(aliases).collect(),
    }
}

/// Reports tool calls while the model writes them.
pub(crate) struct GenerationReporter {
    sender: Option<UnboundedSender<HookEvent>>,
    registry: Registry,
    /// The ids and tool names of the calls that the model has begun to write.
    names: Vec<(String, String)>,
}

impl GenerationReporter {
    pub(crate) fn report_delta(&mut self, delta: &Delta) {
        let Some(sender) = &self.sender else { return };
        let event = match delta {
            Delta::CallStarted { id, name } => {
                self.names.push((id.clone(), name.clone()));
                HookEvent::ToolGenerationStart {
                    tool: tool_name(&self.registry, name),
                    tool_use_id: id.clone(),
                }
            }
            Delta::CallFinished { id } => {
                let name = self
                    .names
                    .iter()
                    .find(|(known, _)| known == id)
                    .map_or("", |(_, name)| name.as_str());
                HookEvent::ToolGenerationEnd {
                    tool: tool_name(&self.registry, name),
                    tool_use_id: id.clone(),
                }
            }
            Delta::Text(_)
            | Delta::Thinking(_)
            | Delta::CallArguments { .. }
            | Delta::Retry { .. }
            | Delta::FieldOmitted { .. } => return,
        };
        // Fails only if the run was canceled.
        drop(sender.send(event));
    }
}

/// Runs the callbacks for tool calls that the model is writing.
pub(crate) struct GenerationListener {
    receiver: UnboundedReceiver<HookEvent>,
    hooks: HookRunner,
}

impl GenerationListener {
    pub(crate) async fn listen(mut self, cancel: &CancellationToken) {
        while let Some(event) = self.receiver.recv().await {
            self.hooks.call(event, cancel).await;
        }
    }
}

/// An approver that sends a notification whenever it requests an approval from the user.
struct NotifyingApprover {
    inner: Arc<dyn Approver>,
    hooks: HookRunner,
}

#[async_trait]
impl Approver for NotifyingApprover {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        let cancel = CancellationToken::new();
        let event = HookEvent::Notification {
            notification_type: "permission_prompt",
            message: format!(
                "{} needs your permission: {}",
                show_exactly(&approval.tool),
                approval.shown_reason()
            ),
        };
        let mut notified = std::pin::pin!(self.hooks.call(event, &cancel));
        let mut answered = self.inner.ask(approval);
        // The answer does not wait for the notification, which is canceled when the answer arrives.
        tokio::select! {
            answer = &mut answered => answer,
            _ = &mut notified => answered.await,
        }
    }

    async fn fill_form(&self, form: &Form) -> FormOutcome {
        self.inner.fill_form(form).await
    }

    async fn save_rules(&self, rules: &[String]) -> Result<(), String> {
        self.inner.save_rules(rules).await
    }
}
