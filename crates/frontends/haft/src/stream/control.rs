//! Where lines of the input are sorted, and where answers are waited for.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use haft_engine::hub::{AgentMessage, Hub, USER};
use haft_engine::{Approval, ApprovalReply, Approver};
use haft_types::{Decision, Filled, Form};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::dialect::{Dialect, StreamInput};
use crate::commands::permissions;
use crate::output;

/// What the reading thread and the turn share.
pub(crate) struct StreamControl {
    dialect: Dialect,
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
    /// Whether nothing more will be said.
    over: bool,
}

impl StreamControl {
    /// Reads lines in a thread of their own. The user's prompts come out of the receiver, which ends with the input.
    pub(crate) fn open(
        dialect: Dialect,
        input: impl BufRead + Send + 'static,
    ) -> (Arc<Self>, UnboundedReceiver<String>) {
        let control = Self { dialect, state: Mutex::default(), hub: OnceLock::new(), carrier: Handle::current() };
        let control = Arc::new(control);
        let (prompts, heard) = unbounded_channel();
        let reader = Arc::clone(&control);
        std::thread::spawn(move || {
            for line in input.lines() {
                match line {
                    Ok(line) if line.trim().is_empty() => {}
                    Ok(line) => reader.take(&line, &prompts),
                    Err(error) if error.kind() == std::io::ErrorKind::InvalidData => reader.complain("it is not UTF-8"),
                    Err(_) => break,
                }
            }
            let mut state = reader.state();
            state.over = true;
            // The end of its channel answers no to a call that waits.
            state.waiting.clear();
            state.forms.clear();
        });
        (control, heard)
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
            let message = AgentMessage { from: USER.to_owned(), to, group: None, text };
            if let Err(why) = hub.send(message).await {
                control.complain(&why.to_string());
            }
        });
    }

    fn take(self: &Arc<Self>, line: &str, prompts: &UnboundedSender<String>) {
        match self.dialect.read(line) {
            // An empty prompt starts no turn.
            Ok(StreamInput::Prompt(text)) if text.trim().is_empty() => self.complain("the message is empty"),
            Ok(StreamInput::Prompt(text)) => drop(prompts.send(text)),
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
            Ok(StreamInput::Reply(reply)) => output::print_line(&reply),
            Ok(StreamInput::Nothing) => {}
            Err(why) => self.complain(&why),
        }
    }

    fn complain(&self, why: &str) {
        output::print_line(&self.dialect.unreadable(format!("a line of the input was left out: {why}")));
    }

    fn state(&self) -> MutexGuard<'_, ControlState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks, and waits for the answer.
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        let no = ApprovalReply::No { reason: String::new() };
        let id = uuid::Uuid::new_v4().to_string();
        let (sender, answered) = oneshot::channel();
        {
            let mut state = self.state();
            if state.over {
                return no;
            }
            state.waiting.insert(id.clone(), sender);
        }
        let mut asked = OpenQuestion { control: self, id, open: true };
        output::print_line(&self.dialect.ask(&asked.id, approval));
        let answer = answered.await;
        asked.open = false;
        match answer {
            // Those who always send the arguments back have not changed them.
            Ok(ApprovalReply::Changed { arguments }) if arguments == approval.arguments => ApprovalReply::Once,
            Ok(answer) => answer,
            Err(_) => no,
        }
    }
}

impl StreamControl {
    /// Sends a form, and waits until it comes back.
    async fn fill(&self, form: &Form) -> Filled {
        let id = uuid::Uuid::new_v4().to_string();
        let Some(line) = self.dialect.form(&id, form) else { return Filled::Declined };
        let (sender, answered) = oneshot::channel();
        {
            let mut state = self.state();
            if state.over {
                return Filled::Declined;
            }
            state.forms.insert(id.clone(), sender);
        }
        let mut asked = OpenQuestion { control: self, id, open: true };
        output::print_line(&line);
        let filled = answered.await;
        asked.open = false;
        filled.unwrap_or(Filled::Declined)
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
        }
        if self.open {
            self.control.dialect.take_back(&self.id).iter().for_each(output::print_line);
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
        Self { control, config_file }
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
        permissions::add(&self.config_file, Decision::Allow, rules).map(drop).map_err(|error| error.to_string())
    }
}
