//! Calls whoever listens at the points of a run, and carries out what they ask for.
//!
//! Invariant: what callbacks add for the model is appended as a message of its own before the next
//! request, never put into what was sent before: the cached prefix stays as it is.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use haft_context::{ContextError, DocumentKind};
use haft_model::Delta;
use haft_tool::{Intent, Registry};
use haft_types::{Filled, Form, HookPoint, Origin, Outcome};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::{EngineError, Notice, Session, SessionConfig};
use crate::approval::{Approval, ApprovalReply, Approver};
use crate::callbacks::{Callbacks, Moment, Occasion, Reaction, ToolName};
use crate::documents::StandingDocuments;
use crate::permit::DecisionState;
use crate::subagents::Rank;
use crate::turn::Reason;
use crate::turn_io::TurnIo;

/// Those who listen, and what they have asked for that is still to be done.
#[derive(Clone)]
pub(super) struct Hooked {
    callbacks: Callbacks,
    conversation_id: String,
    cwd: PathBuf,
    root: PathBuf,
    shared: Arc<DecisionState>,
    open: Arc<Mutex<PendingReactions>>,
}

/// What is still to be done.
#[derive(Default)]
struct PendingReactions {
    /// For the model, with the next request.
    context: Vec<String>,
    /// For the user.
    notices: Vec<Notice>,
    /// Why the turn is to end.
    stop: Option<String>,
    /// Whether the first turn has begun.
    greeted: bool,
    /// How the last turn ended.
    last: Option<Outcome>,
}

impl Hooked {
    pub(super) fn new(config: &SessionConfig) -> Self {
        Self {
            callbacks: Callbacks::new(config.callbacks.clone()),
            conversation_id: String::new(),
            cwd: config.folders.workspace.cwd.clone(),
            root: config.folders.workspace.root.clone(),
            shared: Arc::clone(&config.safety.shared),
            open: Arc::default(),
        }
    }

    /// With nobody who listens.
    pub(super) fn silent(config: &SessionConfig) -> Self {
        Self {
            callbacks: Callbacks::default(),
            ..Self::new(config)
        }
    }

    /// The same in this conversation.
    pub(super) fn within(self, conversation_id: impl Into<String>) -> Self {
        Self {
            conversation_id: conversation_id.into(),
            ..self
        }
    }

    /// Whether anybody may want to be called.
    pub(super) fn listen_to(&self, point: HookPoint) -> bool {
        self.callbacks.listen_to(point)
    }

    /// Calls everybody who wants to be called. What they have to say to the model and the user is
    /// kept until it can be said.
    pub(super) async fn call(&self, moment: Moment, cancel: &CancellationToken) -> Reaction {
        if !self.listen_to(moment.point()) {
            return Reaction::default();
        }
        let occasion = Occasion {
            moment: &moment,
            conversation_id: &self.conversation_id,
            cwd: &self.cwd,
            root: &self.root,
            mode: self.shared.mode(),
            cancel,
        };
        let (mut reaction, problems) = self.callbacks.call(&occasion).await;
        let notice = |code, message, failed| Notice {
            code,
            message,
            failed,
        };
        self.with(|open| {
            let label = |text: String| format!("{}: {text}", moment.point());
            open.context.extend(reaction.context.drain(..).map(label));
            open.notices.extend(
                problems
                    .into_iter()
                    .map(|problem| notice("hook", problem, true)),
            );
            open.notices.append(&mut reaction.notices);
            open.notices.extend(
                reaction
                    .messages
                    .drain(..)
                    .map(|message| notice("hook_message", message, false)),
            );
            if let Some(why) = &reaction.stop {
                open.stop.get_or_insert_with(|| why.clone());
            }
        });
        reaction
    }

    fn with<T>(&self, look: impl FnOnce(&mut PendingReactions) -> T) -> T {
        look(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Something more for the model.
    pub(super) fn add_context(&self, text: String) {
        self.with(|open| open.context.push(text));
    }

    /// Why the turn is to end here, if it is.
    pub(super) fn take_stop(&self) -> Option<Reason> {
        let why = self.with(|open| open.stop.take())?;
        Some(Reason {
            code: "hook_stopped".into(),
            message: format!("A hook stopped the turn: {why}"),
        })
    }

    /// The project's documents are about to be read.
    pub(super) async fn before_documents(&self) {
        let cancel = CancellationToken::new();
        self.call(Moment::PreRulesLoaded {}, &cancel).await;
        self.call(Moment::PreLibrariesLoaded {}, &cancel).await;
    }

    /// They were read.
    pub(super) async fn after_documents(&self, read: &StandingDocuments) {
        let cancel = CancellationToken::new();
        let of_library = |kind| kind == DocumentKind::LibraryDocs;
        self.call(
            Moment::PostRulesLoaded {
                documents: read.headings(|kind| !of_library(kind)),
            },
            &cancel,
        )
        .await;
        self.call(
            Moment::PostLibrariesLoaded {
                documents: read.headings(of_library),
            },
            &cancel,
        )
        .await;
    }

    /// Whoever is asked for permission, with a notification while they are.
    pub(super) fn notifying(
        &self,
        approver: Option<Arc<dyn Approver>>,
    ) -> Option<Arc<dyn Approver>> {
        let inner = approver?;
        if !self.listen_to(HookPoint::Notification) {
            return Some(inner);
        }
        Some(Arc::new(NotifyingApprover {
            inner,
            hooked: self.clone(),
        }))
    }

    /// Hears of calls while the model writes them. The listener ends with the teller.
    pub(super) fn generation(&self, registry: &Registry) -> (GenerationTeller, GenerationListener) {
        let points = [HookPoint::ToolGenerationStart, HookPoint::ToolGenerationEnd];
        let wanted = points.into_iter().any(|point| self.listen_to(point));
        let (sender, receiver) = unbounded_channel();
        let teller = GenerationTeller {
            sender: wanted.then_some(sender),
            registry: registry.clone(),
            names: Vec::new(),
        };
        (
            teller,
            GenerationListener {
                receiver,
                hooked: self.clone(),
            },
        )
    }
}

/// A tool by all its names.
pub(super) fn tool_name(registry: &Registry, name: &str) -> ToolName {
    called_name(registry, name, &Value::Null)
}

/// The same of a call. A tool of a server has the name that other agents know it by, however it was
/// called: a hook that guards it must not be passed by another spelling.
pub(super) fn called_name(registry: &Registry, name: &str, arguments: &Value) -> ToolName {
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

/// Tells of calls that are being written.
pub(super) struct GenerationTeller {
    sender: Option<UnboundedSender<Moment>>,
    registry: Registry,
    /// The names of calls that have begun, by their ids.
    names: Vec<(String, String)>,
}

impl GenerationTeller {
    pub(super) fn hear(&mut self, delta: &Delta) {
        let Some(sender) = &self.sender else { return };
        let moment = match delta {
            Delta::CallStarted { id, name } => {
                self.names.push((id.clone(), name.clone()));
                Moment::ToolGenerationStart {
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
                Moment::ToolGenerationEnd {
                    tool: tool_name(&self.registry, name),
                    tool_use_id: id.clone(),
                }
            }
            Delta::Text(_)
            | Delta::Thinking(_)
            | Delta::CallArguments { .. }
            | Delta::Retry { .. } => return,
        };
        // Whoever does not listen any more has been cancelled.
        drop(sender.send(moment));
    }
}

/// Calls back while a reply arrives.
pub(super) struct GenerationListener {
    receiver: UnboundedReceiver<Moment>,
    hooked: Hooked,
}

impl GenerationListener {
    pub(super) async fn listen(mut self, cancel: &CancellationToken) {
        while let Some(moment) = self.receiver.recv().await {
            self.hooked.call(moment, cancel).await;
        }
    }
}

/// Tells that a person is needed while that person is asked.
struct NotifyingApprover {
    inner: Arc<dyn Approver>,
    hooked: Hooked,
}

#[async_trait]
impl Approver for NotifyingApprover {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        let cancel = CancellationToken::new();
        let moment = Moment::Notification {
            notification_type: "permission_prompt",
            message: format!(
                "{} needs your permission: {}",
                approval.tool, approval.reason
            ),
        };
        let mut notified = std::pin::pin!(self.hooked.call(moment, &cancel));
        let mut answered = self.inner.ask(approval);
        // The answer does not wait for the notification, which ends with it.
        tokio::select! {
            answer = &mut answered => answer,
            _ = &mut notified => answered.await,
        }
    }

    async fn fill(&self, form: &Form) -> Filled {
        self.inner.fill(form).await
    }

    async fn remember(&self, rules: &[String]) -> Result<(), String> {
        self.inner.remember(rules).await
    }
}

impl Session {
    /// Calls everybody who wants to be called, and tells the user what they have to say.
    pub(super) async fn call_back(&self, moment: Moment, io: &mut TurnIo<'_>) -> Reaction {
        let reaction = self.hooked.call(moment, io.cancel).await;
        self.tell_hooked(io);
        reaction
    }

    /// Tells the user what callbacks have to say.
    pub(super) fn tell_hooked(&self, io: &mut TurnIo<'_>) {
        for notice in self.hooked.with(|open| std::mem::take(&mut open.notices)) {
            io.tell(notice);
        }
    }

    /// What callbacks have to say before the first event: whether the turn may begin with this
    /// input.
    pub(super) async fn greet(
        &self,
        input: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<(), Reason> {
        // A sub-agent's task is not the user's word, and its conversation not theirs.
        if self.agents.rank == Rank::Sub {
            return Ok(());
        }
        if !self
            .hooked
            .with(|open| std::mem::replace(&mut open.greeted, true))
        {
            let source = if self.resumed { "resume" } else { "startup" };
            let moment = Moment::ConversationStart {
                source,
                model: self.config.model.full_name(),
            };
            self.hooked.call(moment, cancel).await;
        }
        if let Some(prompt) = input {
            let asked = self
                .hooked
                .call(
                    Moment::UserPromptSubmit {
                        prompt: prompt.to_owned(),
                    },
                    cancel,
                )
                .await;
            if let Some(why) = asked.block {
                let message = format!("A hook blocked this prompt: {why}");
                return Err(Reason {
                    code: "hook_blocked".into(),
                    message,
                });
            }
        }
        self.hooked.take_stop().map_or(Ok(()), Err)
    }

    /// Looks at the project's documents, with those who want to know when they are read anew.
    pub(super) async fn refresh_documents(
        &mut self,
        io: &mut TurnIo<'_>,
    ) -> Result<Vec<String>, ContextError> {
        if !self
            .prompt
            .is_stale(&self.config, self.transcript.history())
        {
            return self.refresh_prompt();
        }
        self.hooked.before_documents().await;
        let problems = self.refresh_prompt()?;
        self.hooked
            .after_documents(self.prompt.standing_documents())
            .await;
        self.tell_hooked(io);
        Ok(problems)
    }

    /// Appends what callbacks have for the model.
    pub(super) async fn append_context(&mut self) -> Result<(), EngineError> {
        let context = self.hooked.with(|open| std::mem::take(&mut open.context));
        if context.is_empty() {
            return Ok(());
        }
        let text = format!("<hook_context>\n{}\n</hook_context>", context.join("\n\n"));
        self.transcript.append_user(text, Origin::Engine).await
    }

    /// How the turn ended, for those who listen to the end.
    pub(super) fn note_end(&self, outcome: Outcome) {
        self.hooked.with(|open| open.last = Some(outcome));
    }

    /// Ends the session: whoever wants to know hears it. Gives back what they have to say to the
    /// user.
    pub async fn close(&mut self) -> Vec<String> {
        let reason = self
            .hooked
            .with(|open| open.last)
            .map_or("", Outcome::name)
            .to_owned();
        self.hooked
            .call(
                Moment::ConversationEnd { reason },
                &CancellationToken::new(),
            )
            .await;
        self.hooked
            .with(|open| std::mem::take(&mut open.notices))
            .into_iter()
            .map(|notice| notice.message)
            .collect()
    }
}
