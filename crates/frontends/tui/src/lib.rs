//! The terminal front end: draws what happens in a session, and sends what its user wants.
//!
//! The heart is pure. [`App`] takes an [`AppInput`] (a key, an event of the engine, a question) and
//! gives back [`Effect`]s; what is on the screen is a function of it ([`App::frame`]). Neither
//! knows of a terminal, so a test presses keys without one. Around it lie [`TerminalScreen`], which
//! turns lines into bytes, and [`run()`], which reads keys and keeps the terminal in order.
//!
//! What is finished is printed once and belongs to the terminal's own scrollback; only a few rows
//! at the bottom, the live region, are ever drawn again. Nothing reaches the terminal but through
//! [`StyledSpan`], which cleans what it is given: text of models, tools and files cannot move the
//! cursor.
//!
//! This crate reads no file, no environment and no wall clock. It does not open sessions: the
//! binary holds the other end of the [`link()`].
//!
//! Read first: [`App`] (what happens), [`TerminalScreen`] (how it is drawn), [`link()`] (who is at
//! the other end).

/// A message of `messages/LANGUAGE`, by its key: `text!("app-retry", attempt, reason = error)`.
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
mod proposed;
mod rule_prefix;
mod run;
mod screen;
mod status;
mod terminal;
mod typed_ahead;
mod viewer;
mod wrap;

use std::time::Duration;

use haft_messages::MessageFile;

pub use app::{App, AppInput, Effect, LiveRegion, Setup, worded};
pub use ask::{InputEcho, ask, columns, fitted, hung};
pub use commands::{COMMANDS, SlashCommand, is_command};
pub use config::{Editing, TuiConfig};
pub use image_paste::{ImageSource, PastedImage};
pub use line::{StyledLine, StyledSpan, TextStyle};
pub use link::{
    ContextEditAction, ContextEditRequest, ContextPart, ContextParts, EarlierMessage, Focus,
    ListRequest, Operation, Remember, RewindTarget, SideAction, TerminalSide, UiHandle, UiMessage,
    link,
};
pub use picker::{PickerAction, PickerList, PickerRow};
pub use plain::run_plain;
pub use run::{EditText, Ended, FindImage, HostActions, ReadFile, TuiError, run};
pub use screen::{Palette, TerminalScreen};
pub use terminal::has_more;
pub use typed_ahead::{discard_typed_ahead, forget_typed_ahead};
pub use viewer::MOST_RESULTS;

/// How long a question stands before it can be answered: what was typed sooner was typed before
/// anybody could have read it.
pub const READING: Duration = Duration::from_millis(600);

macro_rules! message_files {
    ($($name:literal)+) => {
        [$(MessageFile::new(
            $name,
            include_str!(concat!("../messages/en/", $name, ".ftl")),
            include_str!(concat!("../messages/zh-CN/", $name, ".ftl")),
        )),+]
    };
}

/// What people read here. Every key begins with the name of its file.
static MESSAGES: [MessageFile; 6] =
    message_files!("app" "approval" "commands" "familiar" "form" "plain");
