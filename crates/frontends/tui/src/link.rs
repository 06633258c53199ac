//! What lies between a session and its terminal: messages one way, operations the other.
//!
//! The two run on threads of their own, so that a key is echoed while a request is built.

use async_trait::async_trait;
use haft_agent::{Approval, ApprovalReply, Approver, EventSink};
use haft_types::{Event, Filled, Form, Layer, PermissionMode, SandboxLayer};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::picker::PickerList;

/// What the interface is told of a session.
#[derive(Debug)]
pub enum UiMessage {
    /// Something happened.
    Event(Box<Event>),
    /// The first queued input has become part of the turn.
    Joined,
    /// The turn is over; the next input starts another.
    Idle,
    /// Something is to be chosen.
    Pick(PickerList),
    /// This text is put into the input, to be edited and sent.
    Typed {
        /// The text.
        text: String,
    },
    /// Another model is asked from now on.
    Model {
        /// It, as `provider/model`.
        name: String,
    },
    /// Something to print that is no event.
    Told {
        /// The text, of any origin.
        text: String,
    },
    /// A command runs in the user's shell.
    Running {
        /// Its number.
        id: u64,
        /// Its command line.
        line: String,
    },
    /// It has ended.
    Ran {
        /// Its number.
        id: u64,
        /// What it said, to be printed.
        text: String,
    },
    /// The files that can be named, as paths of the project.
    Files(Vec<String>),
    /// What the next request would hold; none where no conversation is open.
    Context(Option<Box<ContextParts>>),
    /// What confines commands.
    Sandbox(SandboxLayer),
    /// What was said last in the conversation that is open now.
    Earlier(Vec<EarlierMessage>),
    /// Another conversation is open now.
    Opened {
        /// What to say of it.
        text: String,
    },
}

/// What arrives at the interface.
#[derive(Debug)]
pub(crate) enum Incoming {
    Message(UiMessage),
    /// A call waits for an answer. When the receiver is gone, nobody waits any more.
    Ask {
        approval: Box<Approval>,
        answer: oneshot::Sender<ApprovalReply>,
    },
    /// A server wants a form filled in. When the receiver is gone, nobody waits any more.
    Form {
        form: Box<Form>,
        answer: oneshot::Sender<Filled>,
    },
}

/// What the next request would hold, part by part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextParts {
    /// The parts, in the order they are sent.
    pub parts: Vec<ContextPart>,
    /// Tokens kept free for the reply.
    pub reserve: u64,
    /// The model's window.
    pub window: u64,
    /// What happens at which fill, in lines.
    pub notes: Vec<String>,
}

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextPart {
    /// The layer it belongs to.
    pub layer: Layer,
    /// What it is.
    pub name: String,
    /// How much of it there is.
    pub about: String,
    /// Its tokens.
    pub tokens: u64,
}

/// A message of a conversation that is resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EarlierMessage {
    /// The user's.
    User(String),
    /// The model's.
    Model(String),
    /// What a call came to: not shown, but there to be opened.
    Result {
        /// The tool.
        tool: String,
        /// What it was called with.
        arguments: Value,
        /// The result.
        text: String,
    },
}

/// What the user wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A prompt that starts a turn.
    Submit(String),
    /// A prompt that becomes part of the running turn, before its next request.
    Join(String),
    /// The turn that runs shall end.
    Interrupt,
    /// A new conversation.
    New,
    /// Another conversation, by id or name.
    Resume(String),
    /// A copy of another conversation, by id or name.
    Fork(String),
    /// Another conversation, by id, as soon as nobody else has it open.
    Await(String),
    /// The picture at this path is sent with the next prompt.
    Attach(String),
    /// The address of a page that shows this conversation.
    Inspect,
    /// A list to choose from.
    Offer(ListRequest),
    /// Back to before this message of the user's.
    Rewind {
        /// Its id.
        message: String,
        /// What goes back.
        take_back: RewindTarget,
    },
    /// Another model, as `provider/model`.
    Model(String),
    /// How much may happen without asking, from now on.
    Mode(PermissionMode),
    /// Older rounds are archived now; the text says what the summary must keep.
    Compact(String),
    /// The last change of files is taken back.
    Undo,
    /// What was taken back last is brought back.
    Redo,
    /// What this conversation changed in files.
    Diff,
    /// What the next request would hold.
    Context,
    /// What is sent of this conversation is changed.
    EditContext(ContextEditRequest),
    /// Other files are the focus of the task.
    Focus(Focus),
    /// Something outside the conversation.
    Side(SideAction),
    /// The end.
    Quit,
}

/// What the user wants beside the conversation, whether a turn runs or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideAction {
    /// The output of `haft` with these arguments.
    Haft(Vec<String>),
    /// The output of a shell with this command line.
    Shell(String),
    /// The command with this number, and everything it started, ends now.
    Stop(u64),
    /// The files that can be named.
    Files,
}

/// What a list is wanted of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListRequest {
    /// Conversations of this project.
    Conversations,
    /// What the user said in this conversation.
    Messages,
    /// Models, with what changing to them costs; the filter is given.
    Models(String),
    /// Files and documents that are sent to the model.
    Files,
    /// Whether the last change of files is taken back.
    Undo,
    /// Whether what was taken back last is brought back.
    Redo,
    /// What is sent of this conversation, message by message.
    Context,
    /// Whether that is changed in this way, with what it costs.
    ContextEdit(ContextEditRequest),
    /// Whether other files become the focus of the task, with what it costs.
    Focus(Focus),
}

/// How the focus files change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Focus {
    /// These are added.
    Add(Vec<String>),
    /// These are taken off.
    Remove(Vec<String>),
    /// All are taken off.
    Clear,
}

/// A change of what is sent of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextEditRequest {
    /// What is done.
    pub action: ContextEditAction,
    /// To which message, by its id; empty where it is to none.
    pub message: String,
}

/// What can be done to what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextEditAction {
    /// The message is left out, its block whole.
    Drop,
    /// It is never pruned, compressed or archived.
    Pin,
    /// Only a line is sent that names it.
    Mask,
    /// It is sent as it was.
    Restore,
    /// The last edit is undone.
    Undo,
}

/// What goes back with a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewindTarget {
    /// What was said alone.
    Conversation,
    /// The files too.
    ConversationAndFiles,
}

/// The end the session holds.
#[derive(Clone, Debug)]
pub struct UiHandle {
    messages: UnboundedSender<Incoming>,
}

/// The end the terminal holds.
#[derive(Debug)]
pub struct TerminalSide {
    pub(crate) messages: UnboundedReceiver<Incoming>,
    pub(crate) operations: UnboundedSender<Operation>,
}

/// Both ends, and what the user wants.
pub fn link() -> (UiHandle, UnboundedReceiver<Operation>, TerminalSide) {
    let (messages, heard) = unbounded_channel();
    let (operations, wanted) = unbounded_channel();
    (
        UiHandle { messages },
        wanted,
        TerminalSide {
            messages: heard,
            operations,
        },
    )
}

impl UiHandle {
    /// Sends a message to the interface; ignored when it is gone.
    pub fn tell(&self, message: UiMessage) {
        self.send(Incoming::Message(message));
    }

    fn send(&self, incoming: Incoming) {
        drop(self.messages.send(incoming));
    }

    /// Asks at the terminal; rules are kept by `remember`.
    pub fn approver(&self, remember: Remember) -> impl Approver + use<> {
        UiApprover {
            ui: self.clone(),
            remember,
        }
    }
}

impl EventSink for UiHandle {
    fn event(&mut self, event: &Event) {
        self.tell(UiMessage::Event(Box::new(event.clone())));
    }

    fn joined(&mut self, _words: &str) {
        self.tell(UiMessage::Joined);
    }
}

/// Writes rules that allow where the user can read them.
pub type Remember = Box<dyn Fn(&[String]) -> Result<(), String> + Send + Sync>;

struct UiApprover {
    ui: UiHandle,
    remember: Remember,
}

#[async_trait]
impl Approver for UiApprover {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        let (answer, answered) = oneshot::channel();
        self.ui.send(Incoming::Ask {
            approval: Box::new(approval.clone()),
            answer,
        });
        // A terminal that went away cannot say yes.
        answered.await.unwrap_or(ApprovalReply::No {
            reason: String::new(),
        })
    }

    async fn fill(&self, form: &Form) -> Filled {
        let (answer, answered) = oneshot::channel();
        self.ui.send(Incoming::Form {
            form: Box::new(form.clone()),
            answer,
        });
        answered.await.unwrap_or(Filled::Cancelled)
    }

    async fn remember(&self, rules: &[String]) -> Result<(), String> {
        (self.remember)(rules)
    }
}
