//! The terminal front end: draws the events of a session and sends it the user's operations.
//!
//! The core is pure. [`App`] takes an [`AppInput`] (a key, an event of the engine, a question) and
//! returns [`Effect`]s; the screen is a function of its state ([`App::draw_frame`]). It is
//! independent of the terminal, so tests press keys without one. Around it are [`TerminalScreen`],
//! which turns lines into bytes, and [`run_screen`], which reads keys and manages the terminal.
//!
//! Finished output is printed once and belongs to the terminal's own scrollback; only a few rows at
//! the bottom, the live region, are redrawn. Everything is written through [`StyledSpan`], which
//! sanitizes text: the output of models, tools and files can't move the cursor.
//!
//! This crate reads no file, no environment and no wall clock. It doesn't open sessions: the binary
//! holds the other end of the [`create_link`] channel.
//!
//! Read first: [`App`] (state and inputs), [`TerminalScreen`] (drawing), [`create_link`] (the
//! connection to the session).

/// Returns a message of `messages/LANGUAGE` by its key: `text!("app-retry", attempt, reason =
/// error)`.
macro_rules! text {
    ($($message:tt)+) => { haft_messages::message!(&crate::MESSAGES, $($message)+) };
}

mod app;
mod approval;
mod ask;
mod call;
mod commands;
mod complete;
mod config;
mod diff;
mod editor;
mod form;
mod highlight;
mod image_paste;
mod line;
mod link;
mod markdown;
mod picker;
mod plain;
mod proposed_files;
mod rule_prefix;
mod run;
mod screen;
mod status;
mod terminal;
mod typed_ahead;
mod viewer;
mod web_address;
mod wrap;

use std::time::Duration;

use haft_messages::MessageFile;

pub use app::{App, AppInput, Effect, LiveRegion, Setup, format_elapsed, translate_message};
pub use ask::{
    Answered, InputEcho, ask_line, terminal_columns, wrap_after_front, wrap_to_terminal,
};
pub use commands::{COMMANDS, SlashCommand, command_names, is_command};
pub use config::{Editing, TuiConfig};
pub use image_paste::{ImageSource, PastedImage};
pub use line::{StyledLine, StyledSpan, TextStyle};
pub use link::{
    CacheView, ContextEditAction, ContextEditRequest, ContextPart, ContextParts,
    ConversationTotals, EarlierMessage, Focus, ListRequest, Operation, Remember, RewindTarget,
    RunningTask, SideAction, TerminalSide, UiHandle, UiMessage, create_link,
};
pub use picker::{PickerAction, PickerList, PickerRow};
pub use plain::run_plain;
pub use run::{EditText, Ended, FindImage, HostActions, ReadFile, TuiError, run_screen};
pub use screen::{Palette, TerminalScreen, format_markdown};
pub use terminal::has_pending_line;
pub use typed_ahead::{discard_typed_ahead_now, wait_and_discard_typed_ahead};
pub use viewer::MAX_RESULTS;

/// The delay before keys can answer a new question: keys that are pressed earlier were typed before
/// the user could read the question.
pub const READING_DELAY: Duration = Duration::from_millis(600);

macro_rules! message_files {
    ($($name:literal)+) => {
        [$(MessageFile::new(
            $name,
            include_str!(concat!("../messages/en/", $name, ".ftl")),
            include_str!(concat!("../messages/zh-CN/", $name, ".ftl")),
        )),+]
    };
}

/// The user-visible messages. Every key starts with the name of its file.
static MESSAGES: [MessageFile; 6] =
    message_files!("app" "approval" "commands" "familiar" "form" "plain");
