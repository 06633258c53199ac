//! Runs commands as supervised child processes and leaves none of their processes behind.
//!
//! Each command runs under its own small supervisor, a re-execution of this program. Whatever ends
//! a command (its own exit, a timeout, a cancellation, the death of haft) also ends every process
//! it started. This holds for foreground commands, background commands, and commands at a terminal
//! alike. Output is captured in bounded memory. A command with a [`ConfinementSpec`] can access
//! only what its [`SandboxPolicy`] lists.
//!
//! This crate must not ask for approvals, read the environment of its own process, or write any
//! file but the spill file that the caller names. It is the only crate with `unsafe` code, and that
//! is in `helper::sys`, `helper::namespaces`, `confine::linux::sys`, `allocator`, one line of
//! `terminal` and, for test programs only, in `test_helper`.
//!
//! Read first: [`Supervisor::run`], [`CommandSpec`] (the input), [`FinishedCommand`] and
//! [`CapturedOutput`] (the result); [`Background`] and [`TerminalSession`] for commands that the
//! caller does not wait for. [`helper_entry`] runs in the supervising child process. Tests of other
//! crates enable the feature `test-helper` and use `Supervisor::for_tests`, which makes the test
//! program its own helper.
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
//!     let command = CommandSpec::shell("ls", "/tmp").with_timeout(Duration::from_secs(10));
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

mod allocator;
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

pub use allocator::{limit_malloc_arenas, release_free_memory};
pub use background::{Background, Ending};
pub use capture::{Capture, CapturedOutput, SpillFrom, SpillProblem};
pub use command::{Aftermath, CommandExit, CommandSpec, FinishedCommand, PidNamespace, Stdin};
pub use commits::commit_environment;
pub use config::{SandboxConfig, SandboxMode};
pub use confine::{
    ConfinementMethod, ConfinementSpec, ConfinementStep, Network, SandboxPolicy,
    remove_stale_covers, secret_paths,
};
pub use environment::{child_environment, secret_values};
pub use error::SandboxError;
pub use find_program::{
    filter_search_path, find_program, is_code_variable, is_inheritable, names_path_inside,
};
pub use git::{CommitScope, Git, GitError, GitProgram, GitReach};
pub use helper::helper_entry;
pub use live::LiveCommand;
pub use network::{HostError, Hosts, Proxy, forward_connections};
pub use program::{HELPER_PROGRAM, OwnProgram};
pub use sandbox::{Sandbox, resolve_configured_path};
pub use session::{MAX_LINE_BYTES, TerminalSession, TypingError, WaitEnd};
pub use supervisor::Supervisor;
pub use terminal::TerminalSize;
#[cfg(feature = "test-helper")]
pub use test_helper::LINGERING_HELPER;
pub use visibility::{
    CommandPaths, HiddenCause, HiddenPath, PRIVATE_FOLDERS, private_folder_entry,
};
pub use waiting::AwaitedInput;

/// The first command-line argument that makes this program run as a supervisor helper.
pub const HELPER_ARG: &str = "__haft-supervise";
