//! The channels between a session and its terminal: messages one way, operations the other.
//!
//! Both ends run on threads of their own, so that a key is echoed while a request is built.

use async_trait::async_trait;
use haft_agent::{Approval, ApprovalReply, Approver, EventSink};
use haft_types::{Event, Form, FormOutcome, Layer, PermissionMode, SandboxLayer};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::picker::PickerList;

/// A message from the session to the interface.
#[derive(Debug)]
pub enum UiMessage {
    /// An event of the engine.
    Event(Box<Event>),
    /// The first queued input has become part of the turn.
    Joined,
    /// The turn is over; the next input starts another.
    Idle,
    /// A list to choose from.
    Pick(PickerList),
    /// Text to put into the input line for editing.
    Typed {
        /// The text.
        text: String,
    },
    /// The model changed.
    Model {
        /// The model, as `provider/model`.
        name: String,
    },
    /// Text to print that isn't an event.
    Told {
        /// The text, from any source.
        text: String,
    },
    /// A command started in the user's shell.
    Running {
        /// The number of the command.
        id: u64,
        /// The command line.
        line: String,
    },
    /// A command in the user's shell ended.
    Ran {
        /// The number of the command.
        id: u64,
        /// The output of the command.
        text: String,
    },
    /// The files that can be mentioned, as paths in the project.
    Files(Vec<String>),
    /// The parts of the next request; `None` if no conversation is open.
    Context(Option<Box<ContextParts>>),
    /// The layer that confines commands.
    Sandbox(SandboxLayer),
    /// The last messages of the conversation that was opened.
    Earlier(Vec<EarlierMessage>),
    /// Another conversation was opened.
    Opened {
        /// The sentence to print.
        text: String,
    },
}

/// A message or question that arrives at the interface.
#[derive(Debug)]
pub(crate) enum Incoming {
    Message(UiMessage),
    /// A tool call that needs approval. If the receiver is dropped, the answer is no longer needed.
    Ask {
        approval: Box<Approval>,
        answer: oneshot::Sender<ApprovalReply>,
    },
    /// A form from an MCP server. If the receiver is dropped, the answer is no longer needed.
    Form {
        form: Box<Form>,
        answer: oneshot::Sender<FormOutcome>,
    },
}

/// The parts of the next request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextParts {
    /// The parts, in the order in which they are sent.
    pub parts: Vec<ContextPart>,
    /// Tokens that are reserved for the reply.
    pub reserve: u64,
    /// The model's window.
    pub window: u64,
    /// Lines that describe the actions at certain fill levels of the window.
    pub notes: Vec<String>,
}

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextPart {
    /// The layer that the part belongs to.
    pub layer: Layer,
    /// The name of the part.
    pub name: String,
    /// A description of the part's size.
    pub about: String,
    /// The number of tokens.
    pub tokens: u64,
}

/// A message of a resumed conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EarlierMessage {
    /// A message of the user.
    User(String),
    /// A message of the model.
    Model(String),
    /// The result of a tool call. It isn't printed, but the user can open it.
    Result {
        /// The tool.
        tool: String,
        /// The arguments of the call.
        arguments: Value,
        /// The result.
        text: String,
    },
}

/// An operation that the user requests from the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Starts a turn with a prompt.
    Submit(String),
    /// Adds a prompt to the running turn, before its next request.
    Join(String),
    /// Interrupts the running turn.
    Interrupt,
    /// Starts a conversation.
    New,
    /// Opens another conversation, by id or name.
    Resume(String),
    /// Copies another conversation, by id or name, and opens the copy.
    Fork(String),
    /// Opens another conversation, by id, as soon as no other process has it open.
    Await(String),
    /// Sends the image at this path with the next prompt.
    Attach(String),
    /// Prints the address of a page that shows this conversation.
    Inspect,
    /// Shows a list to choose from.
    Offer(ListRequest),
    /// Rewinds the conversation to before a message of the user.
    Rewind {
        /// The id of the message.
        message: String,
        /// The scope of the rewind.
        take_back: RewindTarget,
    },
    /// Switches to another model, as `provider/model`.
    Model(String),
    /// Switches to another permission mode.
    Mode(PermissionMode),
    /// Compacts the conversation now. The text lists what the summary must contain.
    Compact(String),
    /// Reverts the last change of files.
    Undo,
    /// Restores the change that was reverted last.
    Redo,
    /// Prints the file changes of this conversation.
    Diff,
    /// Prints the parts of the next request.
    Context,
    /// Changes which messages of this conversation are sent.
    EditContext(ContextEditRequest),
    /// Changes the focus files of the task.
    Focus(Focus),
    /// Carries out an action beside the conversation.
    Side(SideAction),
    /// Ends the session.
    Quit,
}

/// An action beside the conversation, possible whether a turn runs or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideAction {
    /// Prints the output of `haft` with these arguments.
    Haft(Vec<String>),
    /// Prints the output of a command line in the user's shell.
    Shell(String),
    /// Kills the command with this number and all its children.
    Stop(u64),
    /// Lists the files that can be mentioned.
    Files,
}

/// A list that the session can offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListRequest {
    /// Conversations of this project.
    Conversations,
    /// The user's messages in this conversation.
    Messages,
    /// Models, with the cost of switching to them. The text is the initial filter.
    Models(String),
    /// Files and documents that are sent to the model.
    Files,
    /// A confirmation before the last change of files is reverted.
    Undo,
    /// A confirmation before the change that was reverted last is restored.
    Redo,
    /// The messages of this conversation that are sent.
    Context,
    /// A confirmation of an edit of the context, with its cost.
    ContextEdit(ContextEditRequest),
    /// A confirmation of a change of the focus files, with its cost.
    Focus(Focus),
}

/// A change of the focus files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Focus {
    /// Adds these files.
    Add(Vec<String>),
    /// Removes these files.
    Remove(Vec<String>),
    /// Removes all files.
    Clear,
}

/// A change of the messages that are sent of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextEditRequest {
    /// The kind of edit.
    pub action: ContextEditAction,
    /// The id of the message; empty if the edit concerns none.
    pub message: String,
}

/// A kind of change of the messages that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextEditAction {
    /// Omits the message with its whole block.
    Drop,
    /// Protects the message from pruning, compression and compaction.
    Pin,
    /// Replaces the message by one line that names it.
    Mask,
    /// Sends the message as it was.
    Restore,
    /// Undoes the last edit.
    Undo,
}

/// The scope of a rewind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewindTarget {
    /// Only the conversation.
    Conversation,
    /// The conversation and the files.
    ConversationAndFiles,
}

/// The session's end of the link.
#[derive(Clone, Debug)]
pub struct UiHandle {
    messages: UnboundedSender<Incoming>,
}

/// The terminal's end of the link.
#[derive(Debug)]
pub struct TerminalSide {
    pub(crate) messages: UnboundedReceiver<Incoming>,
    pub(crate) operations: UnboundedSender<Operation>,
}

/// Creates both ends and the receiver of the user's operations.
pub fn create_link() -> (UiHandle, UnboundedReceiver<Operation>, TerminalSide) {
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
    /// Sends a message to the interface. Does nothing if the interface has ended.
    pub fn send_message(&self, message: UiMessage) {
        self.send_incoming(Incoming::Message(message));
    }

    fn send_incoming(&self, incoming: Incoming) {
        drop(self.messages.send(incoming));
    }

    /// Returns an approver that asks at the terminal and saves rules with `remember`.
    pub fn create_approver(&self, remember: Remember) -> impl Approver + use<> {
        UiApprover {
            ui: self.clone(),
            remember,
        }
    }
}

impl EventSink for UiHandle {
    fn event(&mut self, event: &Event) {
        self.send_message(UiMessage::Event(Box::new(event.clone())));
    }

    fn input_joined(&mut self, _words: &str) {
        self.send_message(UiMessage::Joined);
    }
}

/// A function that saves rules where the user can read them.
pub type Remember = Box<dyn Fn(&[String]) -> Result<(), String> + Send + Sync>;

struct UiApprover {
    ui: UiHandle,
    remember: Remember,
}

#[async_trait]
impl Approver for UiApprover {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        let (answer, answered) = oneshot::channel();
        self.ui.send_incoming(Incoming::Ask {
            approval: Box::new(approval.clone()),
            answer,
        });
        // A terminal that has gone away can't approve.
        answered.await.unwrap_or(ApprovalReply::No {
            reason: String::new(),
        })
    }

    async fn fill_form(&self, form: &Form) -> FormOutcome {
        let (answer, answered) = oneshot::channel();
        self.ui.send_incoming(Incoming::Form {
            form: Box::new(form.clone()),
            answer,
        });
        answered.await.unwrap_or(FormOutcome::Canceled)
    }

    async fn save_rules(&self, rules: &[String]) -> Result<(), String> {
        (self.remember)(rules)
    }
}
