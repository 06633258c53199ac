//! One session of an editor: a conversation that is opened by its first prompt, and its turns.
//!
//! Invariant: one turn runs at a time, and a turn that was canceled or failed leaves the session
//! usable.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ConfigOptionUpdate,
    ContentBlock, CurrentModeUpdate, NoticeSeverity, PromptResponse, SessionConfigOption,
    SessionInfoUpdate, SessionModeState, SessionUpdate, StopReason, UnstructuredCommandInput,
};
use haft_agent::{Approver, Contribution, ModeSwitch, Readers, Session, Which};
use haft_types::{ConversationId, CostSum, Outcome, PermissionMode, TurnResult};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::approval::EditorApprover;
use crate::editor::EditorFiles;
use crate::host::{Host, HostError, OpenRequest, WrittenPrompt};
use crate::options;
use crate::prompt::EditorPrompt;
use crate::replay;
use crate::updates::{SharedCalls, TurnUpdates, UpdateSender};

/// The slash command that resumes an interrupted turn.
const CONTINUE: &str = "continue";

/// The parts of a session that do not change.
pub(crate) struct SessionSetup {
    pub(crate) cwd: PathBuf,
    pub(crate) added_folders: Vec<PathBuf>,
    /// MCP servers of the editor, each as JSON in the shape of `.mcp.json`.
    pub(crate) servers: Vec<String>,
    pub(crate) files: Option<EditorFiles>,
    pub(crate) calls: SharedCalls,
    pub(crate) sender: UpdateSender,
    pub(crate) host: Arc<dyn Host>,
}

pub(crate) struct LiveSession {
    setup: SessionSetup,
    id: ConversationId,
    /// Held by the running turn. Waiting prompts acquire it in the order of arrival.
    turns: Mutex<()>,
    state: RefCell<LiveState>,
}

struct LiveState {
    /// `None` before the first prompt and while a turn runs.
    session: Option<Box<Session>>,
    /// Cancels the running turn and the prompts that wait for its end.
    turns: CancellationToken,
    mode: PermissionMode,
    switch: Option<ModeSwitch>,
    model: String,
    /// True if the next turn uses another model than the session's last one.
    switches_model: bool,
    cost: CostSum,
}

impl LiveSession {
    /// Creates a session for a new conversation, which is stored with the first prompt.
    pub(crate) fn new(setup: SessionSetup, id: ConversationId) -> Result<Self, HostError> {
        let state = LiveState {
            session: None,
            turns: CancellationToken::new(),
            mode: setup.host.mode(),
            switch: None,
            model: setup.host.model()?,
            switches_model: false,
            cost: CostSum::zero(),
        };
        Ok(Self {
            setup,
            id,
            turns: Mutex::default(),
            state: RefCell::new(state),
        })
    }

    /// Opens the stored conversation.
    pub(crate) async fn load(&self) -> Result<(), HostError> {
        let session = self.open(Which::Named(self.id.to_string())).await?;
        self.state.borrow_mut().session = Some(Box::new(session));
        Ok(())
    }

    /// Sends the whole history to the editor.
    pub(crate) fn replay(&self) {
        let state = self.state.borrow();
        let Some(session) = &state.session else {
            return;
        };
        for update in replay::updates(session.history(), &self.setup.cwd) {
            self.setup.sender.send(update);
        }
    }

    /// Sends the available commands, and a notice if the last turn was interrupted.
    pub(crate) fn introduce(&self) {
        let hint =
            |about: &str| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(about));
        let commands = self.setup.host.commands(&self.setup.cwd);
        let command = |name: String, about: String| {
            AvailableCommand::new(name, about).input(hint("arguments"))
        };
        let mut all: Vec<_> = commands
            .into_iter()
            .map(|one| command(one.name, one.description))
            .collect();
        let goes_on = "Go on with a turn that was cut off, without a new prompt.";
        all.push(AvailableCommand::new(CONTINUE, goes_on));
        self.setup
            .sender
            .send(SessionUpdate::AvailableCommandsUpdate(
                AvailableCommandsUpdate::new(all),
            ));
        let cut = self
            .state
            .borrow()
            .session
            .as_ref()
            .is_some_and(|session| self.setup.host.is_cut_off(session));
        if cut {
            let text = format!(
                "The last turn was cut off. Send /{CONTINUE} to go on with it, or say what to do instead."
            );
            self.setup.sender.tell(NoticeSeverity::Warning, text);
        }
    }

    pub(crate) fn modes(&self) -> SessionModeState {
        options::modes(self.state.borrow().mode)
    }

    pub(crate) fn options(&self) -> Vec<SessionConfigOption> {
        let state = self.state.borrow();
        options::options(state.mode, &state.model, &self.setup.host.models())
    }

    /// Switches to another mode, starting with the next call.
    pub(crate) fn set_mode(&self, name: &str) -> Result<(), Error> {
        let mode =
            options::mode_of(name).ok_or_else(|| invalid(format!("there is no mode `{name}`")))?;
        let mut state = self.state.borrow_mut();
        state.mode = mode;
        if let Some(switch) = &state.switch {
            switch.set(mode);
        }
        drop(state);
        self.setup
            .sender
            .send(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(
                self.options(),
            )));
        Ok(())
    }

    /// Switches to another model, starting with the next turn.
    pub(crate) fn set_model(&self, name: &str) -> Result<(), Error> {
        if !self.setup.host.models().iter().any(|known| known == name)
            && self.state.borrow().model != name
        {
            return Err(invalid(format!("the model `{name}` cannot be used here")));
        }
        let mut state = self.state.borrow_mut();
        state.switches_model |= state.model != name;
        name.clone_into(&mut state.model);
        Ok(())
    }

    /// Sets the mode or the model under the name of its option.
    pub(crate) fn set_option(&self, option: &str, value: &str) -> Result<(), Error> {
        match option {
            options::MODE => {
                self.set_mode(value)?;
                let now = CurrentModeUpdate::new(value.to_owned());
                self.setup
                    .sender
                    .send(SessionUpdate::CurrentModeUpdate(now));
                Ok(())
            }
            options::MODEL => self.set_model(value),
            other => Err(invalid(format!(
                "there is no option `{other}`; there are `mode` and `model`"
            ))),
        }
    }

    /// True if the conversation exists in the store, which it does after the first prompt.
    pub(crate) fn is_stored(&self) -> bool {
        self.state.borrow().switch.is_some()
    }

    /// Cancels the running turn and the prompts that wait for its end.
    pub(crate) fn cancel(&self) {
        std::mem::take(&mut self.state.borrow_mut().turns).cancel();
    }

    /// Cancels the running turn and closes the session, so that another process can open the
    /// conversation.
    pub(crate) async fn close(&self) {
        self.cancel();
        let _alone = self.turns.lock().await;
        let session = self.state.borrow_mut().session.take();
        if let Some(mut session) = session {
            for message in session.close().await {
                self.setup.sender.tell(NoticeSeverity::Info, message);
            }
        }
    }

    /// Returns the token that cancels a prompt that just arrived. [`Self::cancel`] cancels it too.
    pub(crate) fn prompt_token(&self) -> CancellationToken {
        self.state.borrow().turns.child_token()
    }

    /// Runs one turn, after the turns of earlier prompts.
    pub(crate) async fn prompt(
        &self,
        blocks: Vec<ContentBlock>,
        cancel: &CancellationToken,
    ) -> Result<PromptResponse, Error> {
        let prompt = EditorPrompt::of(blocks, &self.setup.cwd).map_err(invalid)?;
        let Some(_alone) = cancel.run_until_cancelled(self.turns.lock()).await else {
            return Ok(PromptResponse::new(StopReason::Cancelled));
        };
        self.turn(prompt, cancel).await
    }

    async fn turn(
        &self,
        prompt: EditorPrompt,
        cancel: &CancellationToken,
    ) -> Result<PromptResponse, Error> {
        let goes_on = prompt.is_empty() || prompt.text.trim().strip_prefix('/') == Some(CONTINUE);
        let known = self.state.borrow().session.is_some();
        if goes_on && !known {
            return Err(invalid("the prompt is empty".to_owned()));
        }
        let Some(text) = cancel
            .run_until_cancelled(self.in_full(&prompt, cancel))
            .await
        else {
            return Ok(PromptResponse::new(StopReason::Cancelled));
        };
        let text = text.map_err(failed)?;
        let opened = self.state.borrow_mut().session.take();
        let mut session = if let Some(session) = opened {
            session
        } else {
            let which = Which::NewAs {
                title: text.clone(),
                id: self.id.clone(),
            };
            Box::new(self.open(which).await.map_err(failed)?)
        };
        let ended = self
            .run(&mut session, (!goes_on).then_some(text), prompt, cancel)
            .await;
        self.state.borrow_mut().session = Some(session);
        ended
    }

    async fn run(
        &self,
        session: &mut Session,
        text: Option<String>,
        prompt: EditorPrompt,
        cancel: &CancellationToken,
    ) -> Result<PromptResponse, Error> {
        let (model, cost) = {
            let mut state = self.state.borrow_mut();
            (
                std::mem::take(&mut state.switches_model).then(|| state.model.clone()),
                state.cost,
            )
        };
        if let Some(model) = model {
            session
                .use_model(&model)
                .map_err(|error| refused(&error.to_string()))?;
        }
        session.attach(prompt.images);
        let mut updates =
            TurnUpdates::new(self.setup.sender.clone(), self.setup.calls.clone(), cost);
        let report = session.run(text, &mut updates, cancel).await;
        self.state.borrow_mut().cost = updates.over();
        let title = session.conversation().name.clone();
        self.setup.sender.send(SessionUpdate::SessionInfoUpdate(
            SessionInfoUpdate::new().title(title),
        ));
        if report.result.outcome == Outcome::Exhausted {
            self.setup
                .sender
                .tell(NoticeSeverity::Warning, report.result.message.clone());
        }
        answer(&report.result)
    }

    /// Expands the commands and mentions of a prompt. `/continue` becomes an empty text.
    async fn in_full(
        &self,
        prompt: &EditorPrompt,
        cancel: &CancellationToken,
    ) -> Result<String, HostError> {
        let written = WrittenPrompt {
            cwd: &self.setup.cwd,
            text: prompt.text.clone(),
            mode: self.state.borrow().mode,
            approver: Some(self.approver()),
            cancel: cancel.clone(),
        };
        if prompt.text.trim().strip_prefix('/') == Some(CONTINUE) {
            return Ok(String::new());
        }
        self.setup.host.in_full(written).await
    }

    fn approver(&self) -> Arc<dyn Approver> {
        let SessionSetup {
            sender,
            calls,
            host,
            ..
        } = &self.setup;
        Arc::new(EditorApprover {
            sender: sender.clone(),
            calls: calls.clone(),
            host: Arc::clone(host),
        })
    }

    async fn open(&self, which: Which) -> Result<Session, HostError> {
        let (mode, model) = {
            let state = self.state.borrow();
            (state.mode, state.model.clone())
        };
        let SessionSetup {
            cwd,
            added_folders,
            servers,
            files,
            host,
            ..
        } = &self.setup;
        let mut request = OpenRequest {
            added_folders: added_folders.clone(),
            model: Some(model),
            mode: Some(mode),
            servers: servers.clone(),
            client: Contribution {
                observers: files
                    .iter()
                    .map(|files| Arc::new(files.clone()) as _)
                    .collect(),
                readers: Readers {
                    buffers: files.clone().map(|files| Arc::new(files) as _),
                    ..Readers::default()
                },
                ..Contribution::default()
            },
            ..OpenRequest::new(cwd.clone(), which)
        };
        request.task.approver = Some(self.approver());
        let session = host.open(request).await?;
        let mut state = self.state.borrow_mut();
        let switch = session.mode_switch();
        // The user may have changed the mode while the session was being opened.
        switch.set(state.mode);
        state.switch = Some(switch);
        Ok(session)
    }
}

/// Converts the result of a turn to a response of the protocol.
fn answer(result: &TurnResult) -> Result<PromptResponse, Error> {
    let reason = match (result.outcome, result.code.as_str()) {
        (Outcome::Aborted, _) => StopReason::Cancelled,
        (Outcome::Exhausted, "max_tokens" | "output_limit") => StopReason::MaxTokens,
        // The protocol has no stop reason for other limits. A notice names the limit.
        (Outcome::Exhausted, _) => StopReason::MaxTurnRequests,
        (_, "refused") => StopReason::Refusal,
        (Outcome::Completed | Outcome::Waiting, _) => StopReason::EndTurn,
        (Outcome::Failed, code) => {
            return Err(Error::new(-32603, result.message.clone())
                .data(serde_json::json!({ "code": code })));
        }
    };
    Ok(PromptResponse::new(reason))
}

/// Returns the error for invalid parameters.
pub(crate) fn invalid(message: String) -> Error {
    Error::new(-32602, message)
}

/// Returns the error for a request that is invalid in the current state.
pub(crate) fn refused(message: &str) -> Error {
    Error::new(-32600, message)
}

/// Converts an error of the host to one of the protocol.
pub(crate) fn failed(error: HostError) -> Error {
    match error {
        HostError::NoModel(message) => Error::new(-32000, message),
        HostError::NotFound(message) => Error::new(-32002, message),
        HostError::Failed(message) => Error::new(-32603, message),
    }
}
