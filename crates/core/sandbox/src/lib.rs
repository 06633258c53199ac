//! From a command to a supervised child process of which nothing is left behind.
//!
//! Each command runs under its own small supervisor, a re-execution of the program itself: whatever
//! ends a command (its own exit, a timeout, a cancellation, the death of haft) also ends every
//! process it started. That holds for a command that is waited for, one in the background and one
//! at a terminal alike. Output is captured in bounded memory. A command that is [`ConfinementSpec`]
//! sees and reaches only what its [`SandboxPolicy`] names.
//!
//! This crate decides nothing: it asks nobody for permission, reads no environment of its own and
//! writes no file but the spill file it is told to. It is the only crate with `unsafe` code, and
//! that is in `helper::sys`, `helper::namespaces`, `confine::linux::sys`, one line in `terminal`
//! and, for test programs only, in `test_helper`.
//!
//! Read first: [`Supervisor::run`], [`CommandSpec`] (what goes in), [`FinishedCommand`] and
//! [`CapturedOutput`] (what comes out); [`Background`] and [`TerminalSession`] for what is not
//! waited for. The other side of the conversation is [`helper_entry`]. Tests of other crates enable
//! the feature `test-helper` and use `Supervisor::for_tests`, with which any test program is its
//! own helper.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use haft_sandbox::{Capture, CommandExit, CommandSpec, OwnProgram, Supervisor, helper_entry};
//! use haft_text::CutLimits;
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
//! async fn list(program: OwnProgram) -> Result<(), haft_sandbox::SandboxError> {
//!     let supervisor = Supervisor::new(program);
//!     let command = CommandSpec::shell("ls", "/tmp").timeout(Duration::from_secs(10));
//!     let finished = supervisor.run(&command, &Capture::default(), &CancellationToken::new()).await?;
//!     assert_eq!(finished.exit, CommandExit::Code(0));
//!     let shown = finished.stdout.text(CutLimits::default()).text;
//!     # let _ = shown;
//!     Ok(())
//! }
//! ```

#![cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, unused_imports, reason = "there is no confinement")
)]

mod background;
mod capture;
mod command;
mod commits;
mod config;
mod confine;
mod environment;
mod error;
mod find_program;
mod git;
mod heaps;
mod helper;
mod live;
mod network;
#[cfg(target_os = "linux")]
mod proc;
mod program;
mod sandbox;
mod session;
mod supervisor;
mod terminal;
#[cfg(feature = "test-helper")]
mod test_helper;
mod visibility;
mod waiting;
mod wire;

pub use background::{Background, Ending};
pub use capture::{Capture, CapturedOutput, SpillFrom, SpillProblem};
pub use command::{Aftermath, CommandExit, CommandSpec, FinishedCommand, PidNamespace, Stdin};
pub use commits::commit_environment;
pub use config::{SandboxConfig, SandboxMode};
pub use confine::{
    ConfinementMethod, ConfinementSpec, ConfinementStep, Network, SandboxPolicy,
    remove_left_covers, secret_places,
};
pub use environment::{child_environment, secret_values};
pub use error::SandboxError;
pub use find_program::{find_program, search_path_outside};
pub use git::{CommitScope, Git, GitError, GitProgram, GitReach};
pub use heaps::{give_back_memory, share_heaps};
pub use helper::helper_entry;
pub use live::LiveCommand;
pub use network::{HostError, Hosts, Proxy, forward};
pub use program::{OF_HELPER, OwnProgram};
pub use sandbox::{Sandbox, configured_path};
pub use session::{LONGEST_LINE, Pause, TerminalSession, TypeError};
pub use supervisor::Supervisor;
pub use terminal::TerminalSize;
#[cfg(feature = "test-helper")]
pub use test_helper::LINGERING_HELPER;
pub use visibility::{CommandPaths, HiddenCause, HiddenPath, PRIVATE_FOLDERS, private_entry};
pub use waiting::AwaitedInput;

/// The first argument with which a program is started as a supervisor helper.
pub const HELPER_ARG: &str = "__haft-supervise";
