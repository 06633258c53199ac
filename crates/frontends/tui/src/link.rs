//! Connects a session and its terminal with two channels: one for messages, one for operations.
//!
//! Both ends run on threads of their own, so that a key is echoed while a request is built.

use std::time::Duration;

use async_trait::async_trait;
use haft_agent::{Approval, ApprovalReply, Approver, EventSink};
use haft_types::{
    BudgetLayer, Cost, Event, Form, FormOutcome, Layer, PermissionMode, SandboxLayer, ToolStatus,
    Usage,
};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::picker::PickerList;

/// A message that the session sends to the interface.
#[derive(Debug)]
pub enum UiMessage {
    /// An event of the running session.
    Event(Box<Event>),
    /// The first queued input has become part of the running turn.
    Joined,
    /// Another front end has begun a turn.
    Begun,
    /// Another front end has added input to the conversation.
    Said {
        /// The text of the input.
        text: String,
    },
    /// An approval was answered in another front end.
    AnsweredElsewhere { reply: ApprovalReply },
    /// Another front end has changed the permission mode.
    Mode(PermissionMode),
    /// The turn has ended. The next input starts another turn.
    Idle,
    /// A list for the user to choose from.
    Pick(PickerList),
    /// Text that is put into the input line for editing.
    Typed {
        /// The text to edit.
        text: String,
    },
    /// The session now uses another model.
    Model {
        /// The name of the model, as `provider/model`.
        name: String,
    },
    /// The note to show with the choices after a plan, if there is one.
    PlanNote(Option<String>),
    /// Text to print that does not come from an event.
    Told {
        /// The text to print, which may be untrusted.
        text: String,
    },
    /// A command was started in the user's shell.
    Running {
        /// The number of the command, with which it can be stopped.
        id: u64,
        /// The command line, as the user typed it.
        line: String,
    },
    /// A command in the user's shell has ended.
    Ran {
        /// The number of the command that has ended.
        id: u64,
        text: String,
    },
    /// A model request outside the conversation was paid.
    Spent {
        usage: Usage,
        /// The cost, if it is known.
        cost: Option<Cost>,
    },
    /// The background tasks that are running now. The list replaces the previous one.
    Tasks(Vec<RunningTask>),
    /// The names that completion offers, because they may have changed during a turn.
    Names {
        /// The user's own slash commands and the prompts of MCP servers: name and description.
        commands: Vec<(String, String)>,
        /// MCP resources that can be mentioned, as `server:uri`.
        resources: Vec<String>,
    },
    /// The project files that can be mentioned in a prompt, as paths relative to the project.
    Files(Vec<String>),
    /// The parts of the next request. `None` if no conversation is open.
    Context(Option<Box<ContextParts>>),
    /// The sandbox layer that confines commands.
    Sandbox(SandboxLayer),
    /// The last messages of a conversation that was opened.
    Earlier(Vec<EarlierMessage>),
    /// The size and the cost of a conversation that was opened.
    Totals(Box<ConversationTotals>),
    /// Another conversation was opened.
    Opened {
        /// The sentence to print about the conversation.
        text: String,
    },
}

/// A background task that is running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningTask {
    pub id: String,
    /// The command line.
    pub command: String,
    /// The time since the task started.
    pub elapsed: Duration,
    /// The last lines of the output.
    pub output: String,
}

/// A message or question that the interface receives from the session.
#[derive(Debug)]
pub(crate) enum Incoming {
    Message(UiMessage),
    /// A tool call that needs approval. The answer is no longer needed once the receiver of
    /// `answer` is dropped.
    Ask {
        approval: Box<Approval>,
        answer: oneshot::Sender<ApprovalReply>,
    },
    /// A form from an MCP server. The answer is no longer needed once the receiver of `answer` is
    /// dropped.
    Form {
        form: Box<Form>,
        answer: oneshot::Sender<FormOutcome>,
    },
}

/// The parts and the size of the next request, for `/context`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextParts {
    /// The parts, in the order in which they are sent.
    pub parts: Vec<ContextPart>,
    /// The number of tokens that are reserved for the reply.
    pub reserve: u64,
    /// The size of the model's context window, in tokens.
    pub window: u64,
    /// Lines that describe what haft does when the window is filled to a certain level.
    pub notes: Vec<String>,
}

/// A part of the next request, with its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextPart {
    /// The context layer to which the part belongs.
    pub layer: Layer,
    pub name: String,
    /// A description of the size, such as a number of messages.
    pub about: String,
    /// The number of tokens in the part.
    pub tokens: u64,
}

/// A message of a conversation that was opened again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EarlierMessage {
    /// A message from the user.
    User(String),
    /// A message from the model.
    Model(String),
    /// The result of a tool call. It is not printed, but the user can open it.
    Result {
        tool: String,
        arguments: Value,
        /// The text of the result.
        text: String,
    },
    /// A tool call with its result, which is printed as it was when the call ended.
    Call {
        tool: String,
        arguments: Value,
        status: ToolStatus,
        /// The text of the result.
        text: String,
    },
}

/// The size and the cost of a conversation that was opened again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConversationTotals {
    /// The layers of the next request.
    pub layers: Vec<BudgetLayer>,
    /// The number of tokens in the next request.
    pub tokens: u64,
    /// The size of the model's context window, in tokens.
    pub window: u64,
    /// The number of requests so far.
    pub requests: u32,
    /// The usage of all requests so far.
    pub total: Usage,
    /// The usage of the last request.
    pub last: Option<Usage>,
    /// The cost of all requests with a price, in USD. `None` if no request had a price.
    pub spent: Option<f64>,
    /// True if a request had no price.
    pub unpriced: bool,
}

/// An operation that the user requests from the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Start a turn with this prompt.
    Submit(String),
    /// Add this prompt to the running turn, before its next request.
    Join(String),
    /// Interrupt the running turn.
    Interrupt,
    /// Start a new conversation.
    New,
    /// Open the conversation with this id or name.
    Resume(String),
    /// Copy the conversation with this id or name, and open the copy.
    Fork(String),
    /// Open the conversation with this id as soon as no other process has it open. Until then,
    /// wait.
    Await(String),
    /// Send the image at this path with the next prompt.
    Attach(String),
    /// Print the address of the page that shows this conversation.
    Inspect,
    /// Show a list from which the user can choose.
    Offer(ListRequest),
    /// Rewind the conversation to the state before a message of the user.
    Rewind {
        /// The id of the user's message.
        message: String,
        /// Selects whether later file changes are undone.
        take_back: RewindTarget,
    },
    /// Switch to this model, given as `provider/model`.
    Model(String),
    /// Lay out the next requests in the view with this name.
    View(String),
    /// Continue with the agent with this name.
    Agent(String),
    /// List or change the file ranges that requests contain. The text holds the arguments.
    Useful(String),
    /// List or change the notes on files and folders. The text holds the arguments.
    Notes(String),
    /// Switch to this permission mode.
    Mode(PermissionMode),
    /// Compact the conversation now. The text names facts that the summary must contain; it may be
    /// empty.
    Compact(String),
    /// Revert the last change of files.
    Undo,
    /// Restore the change of files that was reverted last.
    Redo,
    /// Print the file changes of this conversation.
    Diff,
    /// Print the parts of the next request.
    Context,
    /// Change which messages of this conversation are sent to the model.
    EditContext(ContextEditRequest),
    /// Change the focus files of the task.
    Focus(Focus),
    /// Trust the project as it was shown.
    Trust,
    /// Carry out an action that does not affect the conversation.
    Side(SideAction),
    /// End the session.
    Quit,
}

/// An action that does not affect the conversation. It is possible even while a turn runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideAction {
    /// Run `haft` with these arguments and print the output.
    Haft(Vec<String>),
    /// Run a command line in the user's shell and print the output.
    Shell(String),
    /// Kill the command with this number and all its children.
    Stop(u64),
    /// Send the list of project files that can be mentioned in a prompt.
    Files,
}

/// A list that the user can request from the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListRequest {
    /// The conversations of this project.
    Conversations,
    /// The user's messages in this conversation.
    Messages,
    /// The models, with the cost of switching to each of them. The text is the initial filter of
    /// the list.
    Models(String),
    /// The files and documents that are sent to the model.
    Files,
    /// A confirmation before the last change of files is reverted.
    Undo,
    /// A confirmation before the change that was reverted last is restored.
    Redo,
    /// The messages of this conversation that are sent to the model.
    Context,
    /// A confirmation of an edit of the context, with the cost of the edit.
    ContextEdit(ContextEditRequest),
    /// A confirmation of a change of the focus files, with the cost of the change.
    Focus(Focus),
    /// The views of a conversation. With a name, a confirmation of the switch to the view with
    /// this name, with the cost of the switch.
    View(String),
    /// The agents that can continue the conversation. With a name, a confirmation of the switch to
    /// the agent with this name, with the cost of the switch.
    Agent(String),
    /// The question whether to trust the project.
    Trust,
}

/// A change of the list of focus files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Focus {
    /// Add these files to the list.
    Add(Vec<String>),
    /// Remove these files from the list.
    Remove(Vec<String>),
    /// Remove all files from the list.
    Clear,
}

/// A request to change which messages of a conversation are sent to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextEditRequest {
    pub action: ContextEditAction,
    /// The id of the message to change. Empty if the change concerns no single message.
    pub message: String,
}

/// A kind of change to the messages that are sent to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextEditAction {
    /// Stop sending the message and the whole block to which it belongs.
    Drop,
    /// Protect the message from pruning, compression and compaction.
    Pin,
    /// Replace the message with a one-line placeholder.
    Mask,
    /// Send the original message again instead of its replacement.
    Restore,
    /// Undo the last change to the messages that are sent.
    Undo,
}

/// Selects what a rewind reverts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewindTarget {
    /// Only the conversation is rewound.
    Conversation,
    /// The conversation is rewound, and later file changes are undone.
    ConversationAndFiles,
}

/// The session's end of the channels.
#[derive(Clone, Debug)]
pub struct UiHandle {
    messages: UnboundedSender<Incoming>,
}

/// The terminal's end of the channels.
#[derive(Debug)]
pub struct TerminalSide {
    pub(crate) messages: UnboundedReceiver<Incoming>,
    pub(crate) operations: UnboundedSender<Operation>,
}

/// Creates the session's end, the receiver for the user's operations, and the terminal's end.
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

    /// Returns an approver that asks the user at the terminal, and saves rules with `remember`.
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

    fn attached_input_joined(&mut self, words: &str) {
        self.send_message(UiMessage::Said {
            text: words.to_owned(),
        });
    }
}

/// A function that saves rules in a file that the user can read.
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
        // If the terminal is closed, the call is not approved.
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

    fn answered_elsewhere(&self, _approval: &Approval, reply: &ApprovalReply) {
        self.ui.send_message(UiMessage::AnsweredElsewhere {
            reply: reply.clone(),
        });
    }

    async fn save_rules(&self, rules: &[String]) -> Result<(), String> {
        (self.remember)(rules)
    }
}
