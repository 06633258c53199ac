//! Reads JSON lines from standard input that drive a session (`--input-format stream-json`).
//!
//! A thread reads lines and dispatches them: prompts wait for their turn, an interrupt cancels the
//! running turn, and an answer goes to the pending request.
//!
//! Invariant: no request waits forever. At the end of the input, or when its turn is canceled, the
//! answer is no.

use std::collections::HashMap;
use std::io::{self, BufRead, Read as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use haft_agent::hub::{AgentMessage, Hub, USER};
use haft_agent::{Approval, ApprovalReply, ModeSwitch};
use haft_permission::PermissionRule;
use haft_types::{Form, FormOutcome, IdSource, PermissionMode};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::ToolNaming;
use crate::claude_lines;
use crate::dialect::{Dialect, ReportKind, StreamInput, UserPrompt};
use crate::permission_updates::{self, PermissionUpdate};

/// The maximum length of an input line, in bytes.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// A function that takes a model name from the client and returns the full name of a usable model.
/// The error is a message for the client.
pub type FindModel = dyn Fn(&str) -> Result<String, String> + Send + Sync;
/// A function that prints a line to standard output.
pub type PrintLine = dyn Fn(&Value) + Send + Sync;

/// The model that the client requested for the following turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedModel {
    /// The model with which the run started.
    First,
    /// The model with this name.
    Named(String),
}

/// The rules for a client: the names and permissions that apply to it, and the functions that serve
/// it.
pub struct ClientTerms {
    /// The names under which the client knows tools.
    pub naming: ToolNaming,
    /// The folder to which relative paths in calls refer.
    pub cwd: PathBuf,
    /// True if the client may switch to the mode that skips all approvals.
    pub bypass_allowed: bool,
    /// The lists that the client can show to its user.
    pub offer: ClientOffer,
    /// The function that finds a model by the name that the client uses.
    pub find_model: Box<FindModel>,
    /// The function that prints a line for the client.
    pub print_line: Box<PrintLine>,
    /// The source of the ids of haft's requests to the client.
    pub ids: Box<dyn IdSource>,
}

/// The commands, agents and models of a run, each as an object of Claude Code's `initialize`
/// response.
#[derive(Default)]
pub struct ClientOffer {
    pub commands: Vec<Value>,
    pub agents: Vec<Value>,
    pub models: Vec<Value>,
}

/// The requests that the client made before its first prompt.
#[derive(Default)]
pub struct ClientSetup {
    /// The `initialize` request, or null if there was none.
    pub request: Value,
    /// The permission mode, if the client set one.
    pub mode: Option<PermissionMode>,
}

/// Controls a run through lines on standard input. The state is shared by the thread that reads the
/// lines and by the turns.
pub struct StreamControl {
    dialect: Dialect,
    terms: ClientTerms,
    state: Mutex<ControlState>,
    /// The hub that delivers prompts to sub-agents, once it is set. Its futures run on `runtime`.
    hub: OnceLock<Arc<Hub>>,
    runtime: Handle,
}

#[derive(Default)]
struct ControlState {
    /// The token that cancels the running turn, if there is one.
    turn: Option<CancellationToken>,
    /// The number of prompts in the input so far.
    prompts: u64,
    /// The value of `prompts` at an interrupt that came while no turn was running. It ends the next
    /// turn if the prompt of that turn came before the interrupt.
    interrupted: Option<u64>,
    /// The pending approval requests, by id.
    waiting: HashMap<String, oneshot::Sender<ApprovalReply>>,
    /// The pending forms, by id.
    forms: HashMap<String, oneshot::Sender<FormOutcome>>,
    /// The pending requests to the client, by id.
    calls: HashMap<String, oneshot::Sender<Result<Value, String>>>,
    /// The requests that the client made before the session started.
    setup: ClientSetup,
    /// The switch that changes the permission mode, once the session has started.
    switch: Option<ModeSwitch>,
    /// True once the session has taken the client's setup.
    session_started: bool,
    /// The model that the client requested for the following turns, if it has not been taken yet.
    model: Option<RequestedModel>,
    /// The answer to `get_context_usage`, once the session has started.
    context_usage: Option<Value>,
    /// True while `context_usage` is out of date, because a turn has just ended.
    usage_is_due: bool,
    /// The ids of the requests for `context_usage` that wait for it.
    usage_requests: Vec<String>,
    /// The answer to `mcp_status`, once the session has started.
    mcp_status: Option<Value>,
    /// True once the end of the input has been reached.
    input_ended: bool,
}

impl StreamControl {
    /// Starts the thread that reads lines. The receiver yields the user's prompts and closes when
    /// the input ends.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    pub fn start(
        dialect: Dialect,
        terms: ClientTerms,
        input: impl BufRead + Send + 'static,
    ) -> (Arc<Self>, UnboundedReceiver<UserPrompt>) {
        let control = Self {
            dialect,
            terms,
            state: Mutex::default(),
            hub: OnceLock::new(),
            runtime: Handle::current(),
        };
        let control = Arc::new(control);
        let (prompts, receiver) = unbounded_channel();
        let reader = Arc::clone(&control);
        std::thread::spawn(move || {
            let mut input = input;
            // A read error counts as the end of the input.
            while let Ok(Some(line)) = read_line(&mut input) {
                match line {
                    Ok(line) if line.trim().is_empty() => {}
                    Ok(line) => reader.dispatch_line(&line, &prompts),
                    Err(why) => reader.report_input_error(&why),
                }
            }
            let mut state = reader.lock_state();
            state.input_ended = true;
            // Dropping a sender answers its request with no.
            state.waiting.clear();
            state.forms.clear();
            state.calls.clear();
        });
        (control, receiver)
    }

    /// Returns the requests that the client made so far, and marks the session as started. Later
    /// requests can no longer change the setup.
    pub fn take_setup(&self) -> ClientSetup {
        let mut state = self.lock_state();
        state.session_started = true;
        std::mem::take(&mut state.setup)
    }

    /// Sets the switch that makes all further changes of the permission mode.
    pub fn set_mode_switch(&self, switch: ModeSwitch) {
        let mut state = self.lock_state();
        // The client may have set a mode while the session was being opened.
        if let Some(mode) = state.setup.mode.take() {
            switch.set(mode);
        }
        state.switch = Some(switch);
    }

    /// Returns the model that the client requested for the following turns, if any, and clears the
    /// request.
    pub fn take_model(&self) -> Option<RequestedModel> {
        self.lock_state().model.take()
    }

    /// Sends a request to the client and waits for the response, but no longer than `limit`.
    pub async fn call_client(
        &self,
        request: &Value,
        limit: Option<Duration>,
    ) -> Result<Value, String> {
        let ended = || "standard input has ended".to_owned();
        let id = self.terms.ids.new_uuid().to_string();
        let (sender, answered) = oneshot::channel();
        {
            let mut state = self.lock_state();
            if state.input_ended {
                return Err(ended());
            }
            state.calls.insert(id.clone(), sender);
        }
        let mut pending = PendingRequest {
            control: self,
            id,
            is_open: true,
        };
        (self.terms.print_line)(&claude_lines::build_request_line(&pending.id, request));
        let answer = match limit {
            None => answered.await,
            Some(limit) => tokio::time::timeout(limit, answered)
                .await
                .map_err(|_elapsed| {
                    format!("it did not answer within {} s", limit.as_secs_f64())
                })?,
        };
        pending.is_open = false;
        answer.unwrap_or_else(|_| Err(ended()))
    }

    /// Sends a request to the client without waiting for the response.
    pub(crate) fn notify_client(&self, request: &Value) {
        let id = self.terms.ids.new_uuid().to_string();
        (self.terms.print_line)(&claude_lines::build_request_line(&id, request));
    }

    /// True once the end of the input has been reached, so that no response can arrive.
    pub(crate) fn has_input_ended(&self) -> bool {
        self.lock_state().input_ended
    }

    /// Handles an `initialize` request of the client, and returns the line that answers it.
    fn initialize(&self, id: &str, request: Value) -> Value {
        let brings_hooks = request["hooks"]
            .as_object()
            .is_some_and(|hooks| !hooks.is_empty());
        let declared_agents: Vec<Value> = request["agents"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, agent)| json!({"name": name, "description": agent["description"]}))
            .collect();
        let mut state = self.lock_state();
        if state.session_started && brings_hooks {
            return claude_lines::failure_line(
                id,
                "the session has begun: hooks are taken from the first `initialize` only",
            );
        }
        if !state.session_started {
            state.setup.request = request;
        }
        let offer = &self.terms.offer;
        let agents: Vec<&Value> = offer.agents.iter().chain(&declared_agents).collect();
        let about = json!({
            "commands": offer.commands, "agents": agents, "models": offer.models, "account": {},
            "output_style": "default", "available_output_styles": ["default"],
            "hook_on_failure_supported": true,
        });
        claude_lines::success_line(id, &about)
    }

    /// Returns the line that answers a request for a report, or `None` if the answer follows when
    /// the turn has ended.
    fn report(&self, id: &str, kind: ReportKind) -> Option<Value> {
        let mut state = self.lock_state();
        if kind == ReportKind::ContextUsage && state.usage_is_due {
            state.usage_requests.push(id.to_owned());
            return None;
        }
        let report = match kind {
            ReportKind::ContextUsage => &state.context_usage,
            ReportKind::McpStatus => &state.mcp_status,
        };
        Some(match report {
            Some(report) => claude_lines::success_line(id, report),
            None => claude_lines::failure_line(
                id,
                "there is no session yet: it begins with the first message",
            ),
        })
    }

    /// Delays the answers to `get_context_usage` until [`Self::set_context_usage`]. Called before a
    /// result is printed, because clients ask as soon as they have read it.
    pub fn delay_context_usage(&self) {
        self.lock_state().usage_is_due = true;
    }

    /// Sets the answer to `get_context_usage`, in its format.
    pub fn set_context_usage(&self, usage: Option<Value>) {
        let delayed = {
            let mut state = self.lock_state();
            state.context_usage = usage;
            state.usage_is_due = false;
            std::mem::take(&mut state.usage_requests)
        };
        for id in delayed {
            self.report(&id, ReportKind::ContextUsage)
                .iter()
                .for_each(&self.terms.print_line);
        }
    }

    /// Sets the servers that `mcp_status` lists, each with a flag that is true if it is connected.
    pub fn set_servers(&self, servers: &[(String, bool)]) {
        let servers: Vec<_> = servers
            .iter()
            .map(|(name, connected)| {
                let status = if *connected { "connected" } else { "pending" };
                json!({"name": name, "status": status})
            })
            .collect();
        self.lock_state().mcp_status = Some(json!({ "mcpServers": servers }));
    }

    fn set_model(&self, id: &str, model: Option<&str>) -> Value {
        match model.map(&self.terms.find_model).transpose() {
            Err(why) => claude_lines::failure_line(id, &why),
            Ok(found) => {
                self.lock_state().model =
                    Some(found.map_or(RequestedModel::First, RequestedModel::Named));
                claude_lines::success_line(id, &json!({}))
            }
        }
    }

    fn set_mode(&self, id: &str, name: &str) -> Value {
        let set = name
            .parse::<PermissionMode>()
            .map_err(|error| format!("{error}"))
            .and_then(|mode| self.switch_mode(mode));
        match set {
            Ok(()) => claude_lines::success_line(id, &json!({"mode": name})),
            Err(why) => claude_lines::failure_line(id, &why),
        }
    }

    /// Switches the permission mode. Fails if the client may not switch to `mode`.
    fn switch_mode(&self, mode: PermissionMode) -> Result<(), String> {
        if mode == PermissionMode::Yolo && !self.terms.bypass_allowed {
            return Err(
                "this run was not started with `--dangerously-skip-permissions`".to_owned(),
            );
        }
        let mut state = self.lock_state();
        match &state.switch {
            Some(switch) => switch.set(mode),
            None => state.setup.mode = Some(mode),
        }
        Ok(())
    }

    /// Applies the changes of permissions that came with an answer. Reports every change that
    /// cannot be applied as it was given.
    fn update_permissions(&self, updates: &Value) {
        let (updates, mut problems) = permission_updates::parse_updates(updates);
        for update in updates {
            match update {
                PermissionUpdate::Mode(mode) => problems.extend(self.switch_mode(mode).err()),
                PermissionUpdate::Rule { decision, rule } => {
                    let state = self.lock_state();
                    if let (Some(switch), Ok(rule)) =
                        (&state.switch, PermissionRule::parse(&rule, None))
                    {
                        switch.add_rule(decision, rule);
                    }
                }
            }
        }
        for problem in problems {
            let message = format!("`updatedPermissions`: {problem}");
            (self.terms.print_line)(&self.dialect.input_error_line(message));
        }
    }

    /// Cancels the running turn. Without one, the next turn is canceled if its prompt has already
    /// arrived.
    fn interrupt(&self) {
        let mut state = self.lock_state();
        match &state.turn {
            Some(turn) => turn.cancel(),
            None => state.interrupted = Some(state.prompts),
        }
    }

    /// Registers the token of the turn that begins with the prompt `number`. An interrupt cancels
    /// `turn`, also one that has come since that prompt.
    pub fn begin_turn(&self, turn: CancellationToken, number: u64) {
        let mut state = self.lock_state();
        if state.interrupted.take().is_some_and(|last| number <= last) {
            turn.cancel();
        }
        state.turn = Some(turn);
    }

    /// Records that no turn is running.
    pub fn end_turn(&self) {
        self.lock_state().turn = None;
    }

    /// Sets the hub that delivers all further prompts to sub-agents.
    pub fn set_hub(&self, hub: Arc<Hub>) {
        // A run has a single session, which is opened once.
        drop(self.hub.set(hub));
    }

    /// Delivers a prompt of the client to the sub-agent `to`.
    fn send_to_agent(self: &Arc<Self>, to: String, text: String) {
        let Some(hub) = self.hub.get().map(Arc::clone) else {
            return self.report_input_error(&format!("no agent `{to}` is running"));
        };
        let control = Arc::clone(self);
        self.runtime.spawn(async move {
            let message = AgentMessage {
                from: USER.to_owned(),
                to,
                group: None,
                text,
            };
            if let Err(why) = hub.send(message).await {
                control.report_input_error(&why.to_string());
            }
        });
    }

    fn dispatch_line(self: &Arc<Self>, line: &str, prompts: &UnboundedSender<UserPrompt>) {
        if self.complete_call(line) {
            return;
        }
        match self.dialect.parse_line(line) {
            // An empty prompt does not start a turn.
            Ok(StreamInput::Prompt(UserPrompt { text, images, .. }))
                if text.trim().is_empty() && images.is_empty() =>
            {
                self.report_input_error("the message is empty");
            }
            Ok(StreamInput::Prompt(prompt)) => {
                let number = {
                    let mut state = self.lock_state();
                    state.prompts += 1;
                    state.prompts
                };
                drop(prompts.send(UserPrompt { number, ..prompt }));
            }
            Ok(StreamInput::ToAgent { agent, text }) => self.send_to_agent(agent, text),
            Ok(StreamInput::Interrupt {
                acknowledgment: heard,
            }) => {
                self.interrupt();
                heard.iter().for_each(&self.terms.print_line);
            }
            Ok(StreamInput::Answer {
                id,
                answer,
                updates,
                ends_turn,
            }) => {
                let waiting = self.lock_state().waiting.remove(&id);
                let Some(waiting) = waiting else {
                    return self
                        .report_input_error(&format!("nothing was asked with the id `{id}`"));
                };
                self.update_permissions(&updates);
                drop(waiting.send(answer));
                if ends_turn {
                    self.interrupt();
                }
            }
            Ok(StreamInput::Filled { id, filled }) => match self.lock_state().forms.remove(&id) {
                Some(waiting) => drop(waiting.send(filled)),
                None => self.report_input_error(&format!("no form was sent with the id `{id}`")),
            },
            Ok(StreamInput::Initialize { id, request }) => {
                (self.terms.print_line)(&self.initialize(&id, request));
            }
            Ok(StreamInput::Report { id, kind }) => {
                self.report(&id, kind)
                    .iter()
                    .for_each(&self.terms.print_line);
            }
            Ok(StreamInput::UseModel { id, model }) => {
                (self.terms.print_line)(&self.set_model(&id, model.as_deref()));
            }
            Ok(StreamInput::UseMode { id, mode }) => {
                (self.terms.print_line)(&self.set_mode(&id, &mode));
            }
            Ok(StreamInput::Reply(reply)) => (self.terms.print_line)(&reply),
            Ok(StreamInput::Ignored) => {}
            Err(why) => self.report_input_error(&why),
        }
    }

    /// Passes a response in the input to the pending request that it answers. Returns false if
    /// `line` is not a response to a pending request.
    fn complete_call(&self, line: &str) -> bool {
        if self.lock_state().calls.is_empty() {
            return false;
        }
        let Some((id, response)) = self.dialect.parse_response(line) else {
            return false;
        };
        let waiting = self.lock_state().calls.remove(&id);
        waiting
            .map(|waiting| drop(waiting.send(response)))
            .is_some()
    }

    fn report_input_error(&self, why: &str) {
        (self.terms.print_line)(
            &self
                .dialect
                .input_error_line(format!("a line of the input was left out: {why}")),
        );
    }

    fn lock_state(&self) -> MutexGuard<'_, ControlState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an approval request to the client, and waits for the answer.
    pub async fn request_approval(&self, approval: &Approval) -> ApprovalReply {
        let no = ApprovalReply::No {
            reason: String::new(),
        };
        let id = self.terms.ids.new_uuid().to_string();
        let (sender, answered) = oneshot::channel();
        {
            let mut state = self.lock_state();
            if state.input_ended {
                return no;
            }
            state.waiting.insert(id.clone(), sender);
        }
        let mut pending = PendingRequest {
            control: self,
            id,
            is_open: true,
        };
        let ClientTerms { naming, cwd, .. } = &self.terms;
        let call = naming.translate_call(&approval.tool, &approval.arguments, cwd);
        (self.terms.print_line)(&self.dialect.approval_line(&pending.id, approval, &call));
        let answer = answered.await;
        pending.is_open = false;
        let answer = answer.map(|answer| match answer {
            ApprovalReply::Changed { arguments } => {
                let meant = naming.restore_arguments(
                    &approval.tool,
                    &approval.arguments,
                    &call.input,
                    &arguments,
                );
                ApprovalReply::Changed { arguments: meant }
            }
            other => other,
        });
        match answer {
            // A client may return the arguments unchanged.
            Ok(ApprovalReply::Changed { arguments }) if arguments == approval.arguments => {
                ApprovalReply::Once
            }
            Ok(answer) => answer,
            Err(_) => no,
        }
    }

    /// Sends a form to the client, and waits for the answer.
    pub async fn request_form(&self, form: &Form) -> FormOutcome {
        let id = self.terms.ids.new_uuid().to_string();
        let Some(line) = self.dialect.form_line(&id, form) else {
            return FormOutcome::Declined;
        };
        let (sender, answered) = oneshot::channel();
        {
            let mut state = self.lock_state();
            if state.input_ended {
                return FormOutcome::Declined;
            }
            state.forms.insert(id.clone(), sender);
        }
        let mut pending = PendingRequest {
            control: self,
            id,
            is_open: true,
        };
        (self.terms.print_line)(&line);
        let filled = answered.await;
        pending.is_open = false;
        filled.unwrap_or(FormOutcome::Declined)
    }
}

/// Reads the next line of the input. Returns a message for a line that is too long, whose rest is
/// skipped, or not UTF-8. Returns `None` at the end of the input.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<Result<String, String>>> {
    let mut line = Vec::new();
    if input
        .by_ref()
        .take(MAX_LINE_BYTES + 1)
        .read_until(b'\n', &mut line)?
        == 0
    {
        return Ok(None);
    }
    if line.len() as u64 > MAX_LINE_BYTES && line.last() != Some(&b'\n') {
        skip_line(input)?;
        return Ok(Some(Err(format!(
            "it is longer than {} MiB",
            MAX_LINE_BYTES >> 20
        ))));
    }
    Ok(Some(
        String::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned()),
    ))
}

/// Skips the rest of the current line, including its line break.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let piece = input.fill_buf()?;
        let (read, ended) = match piece.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (piece.len(), piece.is_empty()),
        };
        input.consume(read);
        if ended {
            return Ok(());
        }
    }
}

/// A pending request. If it is dropped without an answer, for example because its turn is canceled,
/// the request is withdrawn.
struct PendingRequest<'a> {
    control: &'a StreamControl,
    id: String,
    is_open: bool,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        {
            let mut state = self.control.lock_state();
            state.waiting.remove(&self.id);
            state.forms.remove(&self.id);
            state.calls.remove(&self.id);
        }
        if self.is_open {
            self.control
                .dialect
                .withdrawal_line(&self.id)
                .iter()
                .for_each(&self.control.terms.print_line);
        }
    }
}
