//! Where lines of the input are sorted, and where answers are waited for.

use std::collections::HashMap;
use std::io::{self, BufRead, Read as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use haft_engine::hub::{AgentMessage, Hub, USER};
use haft_engine::{Approval, ApprovalReply, Approver, ModeSwitch};
use haft_types::{Decision, Filled, Form, PermissionMode};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::claude;
use super::dialect::{Dialect, StreamInput, UserPrompt};
use crate::commands::claude::ToolNaming;
use crate::commands::permissions;
use crate::output;

/// The longest line that is read.
const LONGEST: u64 = 16 << 20;

/// The name of a model that can be used; the error is for the client.
pub(crate) type FindModel = dyn Fn(&str) -> Result<String, String> + Send + Sync;

/// The model that is asked from the next turn on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModelWish {
    /// The one the run began with.
    First,
    /// This one.
    Named(String),
}

/// What holds for the program that writes the input.
pub(crate) struct ClientTerms {
    /// By which names it knows tools.
    pub(crate) naming: ToolNaming,
    /// Where relative paths of calls begin.
    pub(crate) cwd: PathBuf,
    /// Whether it may go over to the mode in which nothing is asked.
    pub(crate) bypass_allowed: bool,
    /// Finds models by the names it uses.
    pub(crate) find_model: Box<FindModel>,
}

/// What a client has said before its first prompt.
#[derive(Default)]
pub(crate) struct ClientSetup {
    /// Its `initialize` request; null where there was none.
    pub(crate) request: Value,
    /// The permission mode, where it named one.
    pub(crate) mode: Option<PermissionMode>,
}

/// What the reading thread and the turn share.
pub(crate) struct StreamControl {
    dialect: Dialect,
    terms: ClientTerms,
    state: Mutex<ControlState>,
    /// Delivers prompts to sub-agents, and the runtime that does so.
    hub: OnceLock<Arc<Hub>>,
    carrier: Handle,
}

#[derive(Default)]
struct ControlState {
    /// Cancels the turn that runs.
    turn: Option<CancellationToken>,
    /// Who waits for an answer.
    waiting: HashMap<String, oneshot::Sender<ApprovalReply>>,
    /// Who waits for a form.
    forms: HashMap<String, oneshot::Sender<Filled>>,
    /// Who waits for the client to do something.
    calls: HashMap<String, oneshot::Sender<Result<Value, String>>>,
    /// What was said before the session began.
    setup: ClientSetup,
    /// How the mode is changed, once the session has begun.
    switch: Option<ModeSwitch>,
    /// Whether what a client brings is taken already.
    begun: bool,
    /// The model that is asked from the next turn on, where another one is wanted.
    model: Option<ModelWish>,
    /// Whether nothing more will be said.
    over: bool,
}

impl StreamControl {
    /// Reads lines in a thread of their own. The user's prompts come out of the receiver, which
    /// ends with the input.
    pub(crate) fn open(
        dialect: Dialect,
        terms: ClientTerms,
        input: impl BufRead + Send + 'static,
    ) -> (Arc<Self>, UnboundedReceiver<UserPrompt>) {
        let control = Self {
            dialect,
            terms,
            state: Mutex::default(),
            hub: OnceLock::new(),
            carrier: Handle::current(),
        };
        let control = Arc::new(control);
        let (prompts, heard) = unbounded_channel();
        let reader = Arc::clone(&control);
        std::thread::spawn(move || {
            let mut input = input;
            // What cannot be read any more is the end.
            while let Ok(Some(line)) = next_line(&mut input) {
                match line {
                    Ok(line) if line.trim().is_empty() => {}
                    Ok(line) => reader.take(&line, &prompts),
                    Err(why) => reader.complain(&why),
                }
            }
            let mut state = reader.state();
            state.over = true;
            // The end of its channel answers no to a call that waits.
            state.waiting.clear();
            state.forms.clear();
            state.calls.clear();
        });
        (control, heard)
    }

    /// The session is about to begin: gives what the client has said, and takes no more of it.
    pub(crate) fn take_setup(&self) -> ClientSetup {
        let mut state = self.state();
        state.begun = true;
        std::mem::take(&mut state.setup)
    }

    /// From now on the mode is changed in this way.
    pub(crate) fn switch_mode_with(&self, switch: ModeSwitch) {
        let mut state = self.state();
        // It may have come while the session was opened.
        if let Some(mode) = state.setup.mode.take() {
            switch.set(mode);
        }
        state.switch = Some(switch);
    }

    /// The model that the next turn is to ask, where another one is wanted.
    pub(crate) fn take_model(&self) -> Option<ModelWish> {
        self.state().model.take()
    }

    /// Has the client do something, and waits for what comes of it.
    pub(crate) async fn call(
        &self,
        request: &Value,
        limit: Option<Duration>,
    ) -> Result<Value, String> {
        let ended = || "standard input has ended".to_owned();
        let id = uuid::Uuid::new_v4().to_string();
        let (sender, answered) = oneshot::channel();
        {
            let mut state = self.state();
            if state.over {
                return Err(ended());
            }
            state.calls.insert(id.clone(), sender);
        }
        let mut asked = OpenQuestion {
            control: self,
            id,
            open: true,
        };
        output::print_line(&claude::request(&asked.id, request));
        let answer = match limit {
            None => answered.await,
            Some(limit) => tokio::time::timeout(limit, answered)
                .await
                .map_err(|_elapsed| {
                    format!("it did not answer within {} s", limit.as_secs_f64())
                })?,
        };
        asked.open = false;
        answer.unwrap_or_else(|_| Err(ended()))
    }

    /// The client says what it brings.
    fn initialize(&self, id: &str, request: Value) -> Value {
        let brings_hooks = request["hooks"]
            .as_object()
            .is_some_and(|hooks| !hooks.is_empty());
        let mut state = self.state();
        if state.begun && brings_hooks {
            return claude::failure(
                id,
                "the session has begun: hooks are taken from the first `initialize` only",
            );
        }
        if !state.begun {
            state.setup.request = request;
        }
        let about = json!({
            "commands": [], "agents": [], "models": [], "account": {},
            "output_style": "default", "available_output_styles": ["default"],
            "hook_on_failure_supported": true,
        });
        claude::success(id, &about)
    }

    fn use_model(&self, id: &str, model: Option<&str>) -> Value {
        match model.map(&self.terms.find_model).transpose() {
            Err(why) => claude::failure(id, &why),
            Ok(found) => {
                self.state().model = Some(found.map_or(ModelWish::First, ModelWish::Named));
                claude::success(id, &json!({}))
            }
        }
    }

    fn use_mode(&self, id: &str, name: &str) -> Value {
        let mode: PermissionMode = match name.parse() {
            Ok(PermissionMode::Yolo) if !self.terms.bypass_allowed => {
                return claude::failure(
                    id,
                    "this run was not started with `--dangerously-skip-permissions`",
                );
            }
            Ok(mode) => mode,
            Err(error) => return claude::failure(id, &format!("{error}")),
        };
        let mut state = self.state();
        match &state.switch {
            Some(switch) => switch.set(mode),
            None => state.setup.mode = Some(mode),
        }
        claude::success(id, &json!({"mode": name}))
    }

    /// A turn begins; an interrupt will cancel this.
    pub(crate) fn begin(&self, turn: CancellationToken) {
        self.state().turn = Some(turn);
    }

    /// The turn is over.
    pub(crate) fn end(&self) {
        self.state().turn = None;
    }

    /// From now on prompts for sub-agents reach them.
    pub(crate) fn reach(&self, hub: Arc<Hub>) {
        // There is one session, and it is opened once.
        drop(self.hub.set(hub));
    }

    /// Delivers a prompt of the user to a sub-agent.
    fn carry(self: &Arc<Self>, to: String, text: String) {
        let Some(hub) = self.hub.get().map(Arc::clone) else {
            return self.complain(&format!("no agent `{to}` is running"));
        };
        let control = Arc::clone(self);
        self.carrier.spawn(async move {
            let message = AgentMessage {
                from: USER.to_owned(),
                to,
                group: None,
                text,
            };
            if let Err(why) = hub.send(message).await {
                control.complain(&why.to_string());
            }
        });
    }

    fn take(self: &Arc<Self>, line: &str, prompts: &UnboundedSender<UserPrompt>) {
        if self.answers_call(line) {
            return;
        }
        match self.dialect.read(line) {
            // An empty prompt starts no turn.
            Ok(StreamInput::Prompt(UserPrompt { text, images }))
                if text.trim().is_empty() && images.is_empty() =>
            {
                self.complain("the message is empty");
            }
            Ok(StreamInput::Prompt(prompt)) => drop(prompts.send(prompt)),
            Ok(StreamInput::ToAgent { agent, text }) => self.carry(agent, text),
            Ok(StreamInput::Interrupt { heard }) => {
                if let Some(turn) = &self.state().turn {
                    turn.cancel();
                }
                heard.iter().for_each(output::print_line);
            }
            Ok(StreamInput::Answer { id, answer }) => match self.state().waiting.remove(&id) {
                Some(waiting) => drop(waiting.send(answer)),
                None => self.complain(&format!("nothing was asked with the id `{id}`")),
            },
            Ok(StreamInput::Filled { id, filled }) => match self.state().forms.remove(&id) {
                Some(waiting) => drop(waiting.send(filled)),
                None => self.complain(&format!("no form was sent with the id `{id}`")),
            },
            Ok(StreamInput::Initialize { id, request }) => {
                output::print_line(&self.initialize(&id, request));
            }
            Ok(StreamInput::UseModel { id, model }) => {
                output::print_line(&self.use_model(&id, model.as_deref()));
            }
            Ok(StreamInput::UseMode { id, mode }) => output::print_line(&self.use_mode(&id, &mode)),
            Ok(StreamInput::Reply(reply)) => output::print_line(&reply),
            Ok(StreamInput::Nothing) => {}
            Err(why) => self.complain(&why),
        }
    }

    /// Hands a line to the call it answers, if there is one.
    fn answers_call(&self, line: &str) -> bool {
        if self.state().calls.is_empty() {
            return false;
        }
        let Some((id, response)) = self.dialect.response(line) else {
            return false;
        };
        let waiting = self.state().calls.remove(&id);
        waiting
            .map(|waiting| drop(waiting.send(response)))
            .is_some()
    }

    fn complain(&self, why: &str) {
        output::print_line(
            &self
                .dialect
                .unreadable(format!("a line of the input was left out: {why}")),
        );
    }

    fn state(&self) -> MutexGuard<'_, ControlState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks, and waits for the answer.
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        let no = ApprovalReply::No {
            reason: String::new(),
        };
        let id = uuid::Uuid::new_v4().to_string();
        let (sender, answered) = oneshot::channel();
        {
            let mut state = self.state();
            if state.over {
                return no;
            }
            state.waiting.insert(id.clone(), sender);
        }
        let mut asked = OpenQuestion {
            control: self,
            id,
            open: true,
        };
        let ClientTerms { naming, cwd, .. } = &self.terms;
        let call = naming.call(&approval.tool, &approval.arguments, cwd);
        output::print_line(&self.dialect.ask(&asked.id, approval, &call));
        let answer = answered.await;
        asked.open = false;
        let answer = answer.map(|answer| match answer {
            ApprovalReply::Changed { arguments } => {
                let meant =
                    naming.arguments(&approval.tool, &approval.arguments, &call.input, &arguments);
                ApprovalReply::Changed { arguments: meant }
            }
            other => other,
        });
        match answer {
            // Those who always send the arguments back have not changed them.
            Ok(ApprovalReply::Changed { arguments }) if arguments == approval.arguments => {
                ApprovalReply::Once
            }
            Ok(answer) => answer,
            Err(_) => no,
        }
    }
}

impl StreamControl {
    /// Sends a form, and waits until it comes back.
    async fn fill(&self, form: &Form) -> Filled {
        let id = uuid::Uuid::new_v4().to_string();
        let Some(line) = self.dialect.form(&id, form) else {
            return Filled::Declined;
        };
        let (sender, answered) = oneshot::channel();
        {
            let mut state = self.state();
            if state.over {
                return Filled::Declined;
            }
            state.forms.insert(id.clone(), sender);
        }
        let mut asked = OpenQuestion {
            control: self,
            id,
            open: true,
        };
        output::print_line(&line);
        let filled = answered.await;
        asked.open = false;
        filled.unwrap_or(Filled::Declined)
    }
}

/// The next line, or what is wrong with it; none at the end. Of a line that is too long no more is
/// kept than its beginning.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<Result<String, String>>> {
    let mut line = Vec::new();
    if input
        .by_ref()
        .take(LONGEST + 1)
        .read_until(b'\n', &mut line)?
        == 0
    {
        return Ok(None);
    }
    if line.len() as u64 > LONGEST && line.last() != Some(&b'\n') {
        skip_line(input)?;
        return Ok(Some(Err(format!(
            "it is longer than {} MiB",
            LONGEST >> 20
        ))));
    }
    Ok(Some(
        String::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned()),
    ))
}

/// Passes over the rest of a line.
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

/// A question that was asked; it is taken back when its turn is cancelled.
struct OpenQuestion<'a> {
    control: &'a StreamControl,
    id: String,
    open: bool,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        {
            let mut state = self.control.state();
            state.waiting.remove(&self.id);
            state.forms.remove(&self.id);
            state.calls.remove(&self.id);
        }
        if self.open {
            self.control
                .dialect
                .take_back(&self.id)
                .iter()
                .for_each(output::print_line);
        }
    }
}

/// Asks the program that writes the input.
pub(crate) struct StreamApprover {
    control: Arc<StreamControl>,
    config_file: PathBuf,
}

impl StreamApprover {
    pub(crate) fn new(control: Arc<StreamControl>, config_file: PathBuf) -> Self {
        Self {
            control,
            config_file,
        }
    }
}

#[async_trait]
impl Approver for StreamApprover {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        self.control.ask(approval).await
    }

    async fn fill(&self, form: &Form) -> Filled {
        self.control.fill(form).await
    }

    async fn remember(&self, rules: &[String]) -> Result<(), String> {
        permissions::add(&self.config_file, Decision::Allow, rules)
            .map(drop)
            .map_err(|error| error.to_string())
    }
}
