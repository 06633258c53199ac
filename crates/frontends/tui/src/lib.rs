//! The terminal front end: draws what happens in a session, and sends what its user wants.
//!
//! The heart is pure. [`App`] takes an [`Input`] (a key, an event of the engine, a question) and gives back [`Effect`]s; what is on
//! the screen is a function of it ([`App::frame`]). Neither knows of a terminal, so a test presses keys without one.
//! Around it lie [`Screen`], which turns lines into bytes, and [`run()`], which reads keys and keeps the terminal in order.
//!
//! What is finished is printed once and belongs to the terminal's own scrollback; only a few rows at the bottom, the live
//! region, are ever drawn again. Nothing reaches the terminal but through [`Span`], which cleans what it is given: text of
//! models, tools and files cannot move the cursor.
//!
//! This crate reads no file, no environment and no wall clock. It does not open sessions: the binary holds the other end of
//! the [`link()`].
//!
//! Read first: [`App`] (what happens), [`Screen`] (how it is drawn), [`link()`] (who is at the other end).

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
mod line;
mod link;
mod markdown;
mod picker;
mod plain;
mod run;
mod screen;
mod status;
mod terminal;
mod wrap;

pub use app::{App, Effect, Frame, Input, Setup};
pub use ask::{Echo, ask};
pub use commands::{COMMANDS, SlashCommand};
pub use config::{Editing, TuiConfig};
pub use line::{Line, Span, Tone};
pub use link::{
    ContextDeed, ContextEdit, Desk, Focus, Message, Offer, Operation, Remember, TakeBack, TerminalSide, link,
};
pub use picker::{List, Row, Then};
pub use plain::run_plain;
pub use run::{EditText, Ended, Hands, TuiError, run};
pub use screen::{Palette, Screen};
