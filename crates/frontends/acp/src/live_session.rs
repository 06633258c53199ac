//! One session of an editor: a conversation that is opened by its first prompt, and its turns.
//!
//! Invariant: one turn runs at a time, and a turn that was canceled or failed leaves the session
//! usable.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ConfigOptionUpdate,
    ContentBlock, CurrentModeUpdate, NoticeSeverity, PromptResponse, SessionConfigOption,
    SessionInfoUpdate, SessionModeState, SessionUpdate, StopReason, UnstructuredCommandInput,
};
use haft_agent::{Approver, Contribution, ConversationChoice, ModeSwitch, Readers, Session};
use haft_messages::translate_error;
use haft_types::{ConversationId, CostSum, Message, Outcome, PermissionMode, TurnResult};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::approval::EditorApprover;
use crate::attached_session::{EditorAttachment, NewAttachment};
use crate::editor_files::EditorFiles;
use crate::host::{Host, HostError, OpenRequest, WrittenPrompt};
use crate::options;
use crate::prompt::EditorPrompt;
use crate::replay;
use crate::updates::{SharedCalls, TurnUpdates, UpdateSender};

/// The slash command that resumes an interrupted turn.
const CONTINUE: &str = "continue";

/// The parts of a session that are fixed when the session is created.
pub(crate) struct SessionSetup {
    pub(crate) cwd: PathBuf,
    pub(crate) added_folders: Vec<PathBuf>,
    /// The MCP servers that the editor declares, each as JSON in the format of `.mcp.json`.
    pub(crate) servers: Vec<String>,
    pub(crate) files: Option<EditorFiles>,
    pub(crate) calls: SharedCalls,
    pub(crate) sender: UpdateSender,
    pub(crate) host: Arc<Host>,
}

pub(crate) struct LiveSession {
    setup: SessionSetup,
    id: ConversationId,
    /// A lock that the running turn holds. Waiting prompts acquire the lock in the order of
    /// arrival.
    turn_lock: Mutex<()>,
    state: RefCell<LiveState>,
}

struct LiveState {
    /// The open session, or `None` before the first prompt and while a turn runs.
    session: Option<Box<Session>>,
    /// The token that cancels the running turn and the prompts that wait for its end.
    turns_cancel: CancellationToken,
    mode: PermissionMode,
    switch: Option<ModeSwitch>,
    model: String,
    /// True if the next turn uses a different model than the last turn.
    switches_model: bool,
    cost: CostSum,
    /// The session of another process that has the conversation open.
    attachment: Option<Rc<EditorAttachment>>,
    /// An attachment whose lines the editor does not get yet.
    new_attachment: Option<PreparedAttachment>,
}

/// An attachment for which the answer to the editor's request must be sent first.
struct PreparedAttachment {
    attachment: NewAttachment,
    /// The messages before the turn that the attachment repeats.
    history: Vec<Message>,
    /// True if the editor gets the history and the whole turn.
    repeats_turn: bool,
}

impl LiveSession {
    /// Creates a session for a new conversation. The conversation is stored when the first prompt
    /// arrives.
    pub(crate) fn new(setup: SessionSetup, id: ConversationId) -> Result<Self, HostError> {
        let state = LiveState {
            session: None,
            turns_cancel: CancellationToken::new(),
            mode: setup.host.default_mode(),
            switch: None,
            model: setup.host.default_model()?,
            switches_model: false,
            cost: CostSum::zero(),
            attachment: None,
            new_attachment: None,
        };
        Ok(Self {
            setup,
            id,
            turn_lock: Mutex::default(),
            state: RefCell::new(state),
        })
    }

    /// Opens the stored conversation of this session. If a session of another process has it open,
    /// attaches to that session.
    pub(crate) async fn open_stored(&self) -> Result<(), HostError> {
        let host = &self.setup.host;
        let sockets = host.loaded().places.attach_folder();
        let Some(attachment) = NewAttachment::find(&sockets, &self.id).await else {
            return self.open_here().await;
        };
        let (_, messages) = host.read_conversation(&self.id).await?;
        let prepared = PreparedAttachment {
            history: attachment.select_history(messages),
            attachment,
            repeats_turn: false,
        };
        let mut state = self.state.borrow_mut();
        state.mode = prepared.attachment.info().mode;
        state.model.clone_from(&prepared.attachment.info().model);
        state.new_attachment = Some(prepared);
        Ok(())
    }

    async fn open_here(&self) -> Result<(), HostError> {
        let session = self
            .open_session(ConversationChoice::Named(self.id.to_string()))
            .await?;
        self.state.borrow_mut().session = Some(Box::new(session));
        Ok(())
    }

    /// Sends the whole history of the conversation to the editor.
    pub(crate) fn send_history(&self) {
        let mut state = self.state.borrow_mut();
        if let Some(prepared) = &mut state.new_attachment {
            prepared.repeats_turn = true;
            for update in replay::convert_messages(&prepared.history, &self.setup.cwd) {
                self.setup.sender.send_update(update);
            }
        }
        let Some(session) = &state.session else {
            return;
        };
        for update in replay::convert_history(session.history(), &self.setup.cwd) {
            self.setup.sender.send_update(update);
        }
    }

    /// Sends the list of available commands to the editor, and a notice if the last turn was
    /// interrupted or the session runs in another process.
    pub(crate) fn send_introduction(&self) {
        let prepared = self.state.borrow_mut().new_attachment.take();
        if let Some(prepared) = prepared {
            self.follow_attachment(prepared);
        }
        let commands = self.setup.host.list_commands(&self.setup.cwd);
        let mut all: Vec<_> = commands
            .into_iter()
            .map(|one| {
                let hint = UnstructuredCommandInput::new("arguments");
                AvailableCommand::new(one.name, one.description)
                    .input(AvailableCommandInput::Unstructured(hint))
            })
            .collect();
        let description = "Go on with a turn that was cut off, without a new prompt.";
        all.push(AvailableCommand::new(CONTINUE, description));
        self.setup
            .sender
            .send_update(SessionUpdate::AvailableCommandsUpdate(
                AvailableCommandsUpdate::new(all),
            ));
        let is_cut_off = self
            .state
            .borrow()
            .session
            .as_ref()
            .is_some_and(|session| haft_agent::is_cut_off(session.history()));
        if is_cut_off {
            let text = format!(
                "The last turn was cut off. Send /{CONTINUE} to go on with it, or say what to do instead."
            );
            self.setup
                .sender
                .send_notice(NoticeSeverity::Warning, &text);
        }
    }

    fn follow_attachment(&self, prepared: PreparedAttachment) {
        let process = prepared.attachment.info().process;
        let text = format!(
            "This session runs in process {process}. You can follow, answer and steer it here; it goes on when you close it."
        );
        self.setup.sender.send_notice(NoticeSeverity::Info, &text);
        let approver = self.editor_approver();
        let attachment =
            EditorAttachment::start(prepared.attachment, approver, prepared.repeats_turn);
        self.state.borrow_mut().attachment = Some(attachment);
    }

    /// Returns the attachment to the session of another process, unless that session has ended.
    fn attachment(&self) -> Option<Rc<EditorAttachment>> {
        let state = self.state.borrow();
        state
            .attachment
            .as_ref()
            .filter(|attachment| !attachment.is_over())
            .map(Rc::clone)
    }

    fn current_mode(&self) -> PermissionMode {
        self.attachment()
            .map_or_else(|| self.state.borrow().mode, |attachment| attachment.mode())
    }

    pub(crate) fn mode_state(&self) -> SessionModeState {
        options::mode_state(self.current_mode(), self.setup.host.default_mode())
    }

    pub(crate) fn config_options(&self) -> Vec<SessionConfigOption> {
        let state = self.state.borrow();
        options::config_options(
            self.current_mode(),
            self.setup.host.default_mode(),
            &state.model,
            &self.setup.host.available_models(),
        )
    }

    /// Changes the permission mode, starting with the next tool call. The configured mode is the most
    /// permissive one.
    pub(crate) fn set_mode(&self, name: &str) -> Result<(), Error> {
        let mode = options::parse_mode(name)
            .ok_or_else(|| invalid_params(format!("there is no mode `{name}`")))?;
        let limit = self.setup.host.default_mode();
        if mode > limit {
            return Err(invalid_params(format!(
                "the mode `{mode}` allows more than the configured mode `{limit}`; the user can raise it with `[permissions] mode` or `haft acp --permission-mode`"
            )));
        }
        if let Some(attachment) = self.attachment() {
            attachment.set_mode(mode);
        }
        let mut state = self.state.borrow_mut();
        state.mode = mode;
        if let Some(switch) = &state.switch {
            switch.set(mode);
        }
        drop(state);
        self.setup
            .sender
            .send_update(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(
                self.config_options(),
            )));
        Ok(())
    }

    /// Changes the model, starting with the next turn.
    pub(crate) fn set_model(&self, name: &str) -> Result<(), Error> {
        if !self
            .setup
            .host
            .available_models()
            .iter()
            .any(|known| known == name)
            && self.state.borrow().model != name
        {
            return Err(invalid_params(format!(
                "the model `{name}` cannot be used here"
            )));
        }
        if self.attachment().is_some() {
            return Err(invalid_request(
                "the session runs in another process; switch its model there",
            ));
        }
        let mut state = self.state.borrow_mut();
        state.switches_model |= state.model != name;
        name.clone_into(&mut state.model);
        Ok(())
    }

    /// Sets the permission mode or the model, depending on the name of the option.
    pub(crate) fn set_option(&self, option: &str, value: &str) -> Result<(), Error> {
        match option {
            options::MODE_OPTION => {
                self.set_mode(value)?;
                let now = CurrentModeUpdate::new(value.to_owned());
                self.setup
                    .sender
                    .send_update(SessionUpdate::CurrentModeUpdate(now));
                Ok(())
            }
            options::MODEL_OPTION => self.set_model(value),
            other => Err(invalid_params(format!(
                "there is no option `{other}`; there are `mode` and `model`"
            ))),
        }
    }

    /// True once the conversation is stored, which happens with its first prompt.
    pub(crate) fn is_stored(&self) -> bool {
        let state = self.state.borrow();
        state.switch.is_some() || state.attachment.is_some()
    }

    /// Cancels the running turn and the prompts that wait for its end.
    pub(crate) fn cancel(&self) {
        std::mem::take(&mut self.state.borrow_mut().turns_cancel).cancel();
    }

    /// Cancels the running turn and closes the session, so that another process can open the
    /// conversation.
    pub(crate) async fn close(&self) {
        self.cancel();
        let _alone = self.turn_lock.lock().await;
        // The session of another process goes on. Its attachment keeps `is_stored`.
        if let Some(attachment) = &self.state.borrow().attachment {
            attachment.leave();
        }
        let session = self.state.borrow_mut().session.take();
        if let Some(mut session) = session {
            for message in session.close().await {
                self.setup
                    .sender
                    .send_notice(NoticeSeverity::Info, &message);
            }
        }
    }

    /// Returns a token for a prompt that just arrived. The token is canceled by [`Self::cancel`].
    pub(crate) fn prompt_token(&self) -> CancellationToken {
        self.state.borrow().turns_cancel.child_token()
    }

    /// Runs one turn, after waiting for the turns of earlier prompts to end.
    pub(crate) async fn run_prompt(
        &self,
        blocks: Vec<ContentBlock>,
        cancel: &CancellationToken,
    ) -> Result<PromptResponse, Error> {
        let prompt = EditorPrompt::from_blocks(blocks, &self.setup.cwd).map_err(invalid_params)?;
        let Some(_alone) = cancel.run_until_cancelled(self.turn_lock.lock()).await else {
            return Ok(PromptResponse::new(StopReason::Cancelled));
        };
        self.run_turn(prompt, cancel).await
    }

    async fn run_turn(
        &self,
        prompt: EditorPrompt,
        cancel: &CancellationToken,
    ) -> Result<PromptResponse, Error> {
        let resumes = prompt.is_empty() || prompt.text.trim().strip_prefix('/') == Some(CONTINUE);
        if let Some(attachment) = self.attachment() {
            return self.prompt_attached(&attachment, prompt, cancel).await;
        }
        // The session in the other process has ended.
        if self.state.borrow_mut().attachment.take().is_some() {
            self.open_here().await.map_err(host_error)?;
        }
        let is_open = self.state.borrow().session.is_some();
        if resumes && !is_open {
            return Err(invalid_params("the prompt is empty".to_owned()));
        }
        let Some(text) = cancel
            .run_until_cancelled(self.expand_prompt(&prompt, cancel))
            .await
        else {
            return Ok(PromptResponse::new(StopReason::Cancelled));
        };
        let text = text.map_err(host_error)?;
        let opened = self.state.borrow_mut().session.take();
        let mut session = if let Some(session) = opened {
            session
        } else {
            let which = ConversationChoice::NewAs {
                title: text.clone(),
                id: self.id.clone(),
            };
            Box::new(self.open_session(which).await.map_err(host_error)?)
        };
        let response = self
            .run_in_session(&mut session, (!resumes).then_some(text), prompt, cancel)
            .await;
        self.state.borrow_mut().session = Some(session);
        response
    }

    /// Sends a prompt to the session of another process.
    async fn prompt_attached(
        &self,
        attachment: &EditorAttachment,
        prompt: EditorPrompt,
        cancel: &CancellationToken,
    ) -> Result<PromptResponse, Error> {
        if !prompt.images.is_empty() {
            return Err(invalid_request(
                "the session runs in another process, which takes text only; send images there",
            ));
        }
        let Some(text) = cancel
            .run_until_cancelled(self.expand_prompt(&prompt, cancel))
            .await
        else {
            return Ok(PromptResponse::new(StopReason::Cancelled));
        };
        let text = text.map_err(host_error)?;
        attachment.run_prompt(text, cancel).await
    }

    async fn run_in_session(
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
                .switch_model(&model)
                .map_err(|error| invalid_request(&error.to_string()))?;
        }
        session.attach_images(prompt.images);
        let mut updates =
            TurnUpdates::new(self.setup.sender.clone(), self.setup.calls.clone(), cost);
        let report = session.run(text, &mut updates, cancel).await;
        self.state.borrow_mut().cost = updates.finish();
        let title = session.conversation().name.clone();
        self.setup
            .sender
            .send_update(SessionUpdate::SessionInfoUpdate(
                SessionInfoUpdate::new().title(title),
            ));
        if report.result.outcome == Outcome::Exhausted {
            self.setup
                .sender
                .send_notice(NoticeSeverity::Warning, &report.result.message);
        }
        to_prompt_response(&report.result)
    }

    /// Expands the commands and mentions of a prompt. `/continue` becomes an empty text.
    async fn expand_prompt(
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
        self.setup.host.expand_prompt(written).await
    }

    fn approver(&self) -> Arc<dyn Approver> {
        Arc::new(self.editor_approver())
    }

    fn editor_approver(&self) -> EditorApprover {
        let SessionSetup {
            sender,
            calls,
            host,
            ..
        } = &self.setup;
        EditorApprover {
            sender: sender.clone(),
            calls: calls.clone(),
            host: Arc::clone(host),
        }
    }

    async fn open_session(&self, which: ConversationChoice) -> Result<Session, HostError> {
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
        let session = host.open_session(request).await?;
        let mut state = self.state.borrow_mut();
        let switch = session.mode_switch();
        // The user may have changed the mode while the session was being opened.
        switch.set(state.mode);
        state.switch = Some(switch);
        Ok(session)
    }
}

/// Converts the result of a turn to a response of the protocol.
pub(crate) fn to_prompt_response(result: &TurnResult) -> Result<PromptResponse, Error> {
    let reason = match (result.outcome, result.code.as_str()) {
        (Outcome::Aborted, _) => StopReason::Cancelled,
        (Outcome::Exhausted, "max_tokens" | "output_limit") => StopReason::MaxTokens,
        // The protocol has no stop reason for other limits. A notice names the limit.
        (Outcome::Exhausted, _) => StopReason::MaxTurnRequests,
        (_, "refused") => StopReason::Refusal,
        (Outcome::Completed | Outcome::Waiting, _) => StopReason::EndTurn,
        (Outcome::Failed, code) => {
            return Err(Error::new(-32603, translate_error(&result.message))
                .data(serde_json::json!({ "code": code })));
        }
    };
    Ok(PromptResponse::new(reason))
}

/// Returns the protocol's error for a request with invalid parameters.
pub(crate) fn invalid_params(message: String) -> Error {
    Error::new(-32602, message)
}

/// Returns the protocol's error for a request that is invalid in the current state.
pub(crate) fn invalid_request(message: &str) -> Error {
    Error::new(-32600, message)
}

/// Converts an error of the host to an error of the protocol.
pub(crate) fn host_error(error: HostError) -> Error {
    let (code, message) = match error {
        HostError::NoModel(message) => (-32000, message),
        HostError::NotFound(message) => (-32002, message),
        HostError::Failed(message) => (-32603, message),
    };
    Error::new(code, translate_error(&message))
}
