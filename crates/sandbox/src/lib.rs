//! From a command to a supervised child process of which nothing is left behind.
//!
//! Each command runs under its own small supervisor, a re-execution of the program itself: whatever ends a command (its
//! own exit, a timeout, a cancellation, the death of haft) also ends every process it started. Output is captured in
//! bounded memory. Confinement is not done here yet.
//!
//! This crate decides nothing: it asks nobody for permission, reads no environment of its own and writes no file but the
//! spill file it is told to. It is the only crate with `unsafe` code, and that is all in `helper::sys` (and, for test
//! programs only, in `test_helper`).
//!
//! Read first: [`Supervisor::run`], [`Command`] (what goes in), [`Finished`] and [`Captured`] (what comes out). The
//! other side of the conversation is [`helper_entry`]. Tests of other crates enable the feature `test-helper` and use
//! `Supervisor::for_tests`, with which any test program is its own helper.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use haft_sandbox::{Capture, Command, Exit, Supervisor, helper_entry};
//! use haft_text::Limits;
//! use tokio_util::sync::CancellationToken;
//!
//! fn main() -> std::process::ExitCode {
//!     // First thing in `main`, before any thread is started.
//!     if let Some(code) = helper_entry(std::env::args_os()) {
//!         return code;
//!     }
//!     # std::process::ExitCode::SUCCESS
//! }
//!
//! async fn list(program: std::path::PathBuf) -> Result<(), haft_sandbox::SandboxError> {
//!     let supervisor = Supervisor::new(program);
//!     let command = Command::shell("ls", "/tmp").timeout(Duration::from_secs(10));
//!     let finished = supervisor.run(&command, &Capture::default(), &CancellationToken::new()).await?;
//!     assert_eq!(finished.exit, Exit::Code(0));
//!     let shown = finished.stdout.text(Limits::default()).text;
//!     # let _ = shown;
//!     Ok(())
//! }
//! ```

mod capture;
mod command;
mod environment;
mod error;
mod helper;
mod supervisor;
#[cfg(feature = "test-helper")]
mod test_helper;
mod wire;

pub use capture::{Capture, Captured, SpillProblem};
pub use command::{Aftermath, Command, Exit, Finished, PidNamespace, Reaper, Stdin};
pub use environment::child_environment;
pub use error::SandboxError;
pub use helper::helper_entry;
pub use supervisor::Supervisor;

/// The first argument with which a program is started as a supervisor helper.
pub const HELPER_ARG: &str = "__haft-supervise";
