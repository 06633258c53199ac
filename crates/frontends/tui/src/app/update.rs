//! The types that [`App`](super::App) exchanges with its driver: inputs, effects, the live region.

use crossterm::event::KeyEvent;
use haft_agent::{Approval, ApprovalReply};
use haft_types::{Form, FormOutcome, PermissionMode};
use serde_json::Value;

use crate::config::Editing;
use crate::image_paste::{ImageSource, PastedImage};
use crate::line::StyledLine;
use crate::link::{Operation, UiMessage};
use crate::picker::{PickerAction, PickerList};

/// The initial state of the interface.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The permission mode.
    pub mode: PermissionMode,
    /// The model, as `provider/model`.
    pub model: String,
    /// Prompts of earlier sessions, oldest first.
    pub history: Vec<String>,
    /// The key bindings of the input line.
    pub editing: Editing,
    /// The user's own slash commands: name and description.
    pub commands: Vec<(String, String)>,
    /// MCP resources that can be mentioned, as `server:uri`.
    pub resources: Vec<String>,
    /// Input to submit at the start, as if the user had typed it.
    pub first: Option<String>,
    /// Text to print before anything else.
    pub greeting: String,
    /// True if the bell rings when a question opens or a long turn ends.
    pub bell: bool,
    /// True if the terminal supports titles and notifications.
    pub notifies: bool,
    /// The project's folder, or `None` if the terminal doesn't support links to files.
    pub links: Option<String>,
    /// The display path of the file in which approval rules are saved.
    pub rules_file: String,
    /// True if a sign may move while a turn runs.
    pub animates: bool,
    /// True if another process runs the session, so that the session goes on when the user leaves.
    pub is_attached: bool,
}

/// An input of [`App::update`](super::App::update).
#[derive(Debug)]
pub enum AppInput {
    /// The user pressed a key.
    Key(KeyEvent),
    /// The user pressed several keys, which were read at once.
    Keys(Vec<KeyEvent>),
    /// The user pasted text.
    Paste(String),
    /// The user pasted an image.
    Image(PastedImage),
    /// The user pasted text that turned out not to name a readable image.
    NoImage(String),
    /// The terminal has a new size.
    Size {
        /// The number of columns.
        columns: usize,
        /// The number of rows.
        rows: usize,
    },
    /// The session sent a message.
    Message(UiMessage),
    /// A tool call needs the user's approval.
    Ask(Box<Approval>),
    /// The session no longer waits for an answer to the open question.
    Withdrawn,
    /// The open question has been visible long enough to be read, so keys may answer it.
    Armed,
    /// An MCP server sent a form.
    Form(Box<Form>),
    /// The user chose a row of a list that the driver showed.
    Chosen(PickerAction),
    /// The user edited the arguments of the call that needs approval.
    CallEdited(Value),
    /// The user left the editor without a usable edit, for the given reason. The question stays
    /// open.
    CallNotEdited(String),
    /// The call that needs approval writes no file, so its arguments are edited as text.
    NoFile,
}

impl From<UiMessage> for AppInput {
    fn from(message: UiMessage) -> Self {
        Self::Message(message)
    }
}

/// An action that [`App`](super::App) requests from its driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Print finished rows into the terminal's scrollback.
    Print(Vec<StyledLine>),
    /// Send an operation to the session.
    Do(Operation),
    /// Answer the open approval.
    Answer(ApprovalReply),
    /// Answer the open form.
    Fill(FormOutcome),
    /// Send [`AppInput::Armed`] after [`READING_DELAY`](crate::READING_DELAY), counted from now.
    Arm,
    /// Show this list. The driver sends the list back as [`UiMessage::Pick`].
    Offer(PickerList),
    /// Save submitted input in the history, for later sessions.
    Keep(String),
    /// Open the user's editor with this text. The driver sends the edited text as
    /// [`UiMessage::Typed`].
    Edit(String),
    /// Open the user's editor with the content of the file that this call would write. The driver
    /// sends the result as [`AppInput::CallEdited`].
    EditFile(Box<Approval>),
    /// Look for an image. The driver sends the image as [`AppInput::Image`], or the pasted text as
    /// [`AppInput::NoImage`].
    FindImage {
        /// The place in which the image is searched for.
        source: ImageSource,
        /// The text that was pasted.
        text: String,
    },
    /// Redraw the whole live region.
    Redraw,
    /// Suspend the process until the shell resumes it.
    Suspend,
    /// Leave the interface.
    Quit,
}

/// The rows at the bottom of the screen that are redrawn whenever they change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveRegion {
    /// The rows, from top to bottom.
    pub rows: Vec<StyledLine>,
    /// The row and column of the cursor.
    pub cursor: (usize, usize),
    /// True if the cursor is visible.
    pub shows_cursor: bool,
}
