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
//! # A command
//!
//! The program re-executes itself as the supervisor of each command, so `main` begins with
//! [`helper_entry`]:
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use haft_sandbox::{
//!     CancellationToken, Capture, CommandExit, CommandSpec, CutLimits, OwnProgram, Supervisor, helper_entry,
//! };
//!
//! fn main() -> std::process::ExitCode {
//!     // First thing in `main`, before any thread is started.
//!     if let Some(code) = helper_entry(std::env::args_os()) {
//!         return code;
//!     }
//!     # std::process::ExitCode::SUCCESS
//! }
//!
//! async fn list() -> Result<(), Box<dyn std::error::Error>> {
//!     let supervisor = Supervisor::new(OwnProgram::open_running()?);
//!     let command = CommandSpec::shell("ls", "/tmp").with_timeout(Duration::from_secs(10));
//!     let finished = supervisor.run(&command, &Capture::default(), &CancellationToken::new()).await?;
//!     assert_eq!(finished.exit, CommandExit::Code(0));
//!     // Head and tail of the output, sanitized.
//!     println!("{}", finished.stdout.text(CutLimits::default()).text);
//!     Ok(())
//! }
//! ```
//!
//! # Confinement
//!
//! A [`SandboxPolicy`] lists what a command may use. [`Sandbox::set_up`] tries the policy with a
//! command that does nothing, and reports the layer that works on this machine:
//!
//! ```no_run
//! use haft_sandbox::{CommandSpec, Network, Sandbox, SandboxLayer, SandboxMode, SandboxPolicy, Supervisor};
//!
//! # async fn confine(supervisor: Supervisor) -> Option<CommandSpec> {
//! let policy = SandboxPolicy {
//!     projects: vec!["/home/me/project".into()],
//!     writable: Vec::new(),
//!     protected: Vec::new(),
//!     repositories: Vec::new(),
//!     hidden: vec!["/home/me/.ssh".into()],
//!     readable: Vec::new(),
//!     tmp: "/home/me/.cache/example/tmp".into(),
//!     notes: "/home/me/.cache/example/covers".into(),
//!     home: Some("/home/me".into()),
//!     network: Network::None,
//! };
//! let sandbox = Sandbox::set_up(&supervisor, policy, SandboxMode::Auto).await;
//! if sandbox.status().layer == SandboxLayer::None {
//!     eprintln!("no sandbox here: {}", sandbox.status().reasons.join("; "));
//!     return None;
//! }
//! let command = CommandSpec::shell("make check", "/home/me/project");
//! Some(command.with_confinement(sandbox.confinement()))
//! # }
//! ```
//!
//! A command that fails because of a hidden file has the file in
//! [`hidden`](FinishedCommand::hidden). `examples/run-confined` in the repository is a whole
//! program.

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
mod find_git;
mod find_program;
mod git;
mod helper;
mod live;
mod network;
#[cfg(target_os = "linux")]
mod proc;
mod program;
mod program_path;
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
    filter_search_path, find_program, find_writable_word, is_code_variable, is_inheritable,
    names_path_inside,
};
pub use git::{CommitScope, Git, GitError, GitProgram, GitReach};
pub use helper::helper_entry;
pub use live::LiveCommand;
#[cfg(any(test, fuzzing))]
pub use network::check_proxy_request;
pub use network::{HostError, Hosts, Proxy, RefusedHosts, forward_connections};
pub use program::{HELPER_PROGRAM, OwnProgram};
pub use program_path::ProgramPath;
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

/// The argument that, as the first one on the command line, makes this program run as a supervisor
/// helper.
pub const HELPER_ARG: &str = "__haft-supervise";

// The values that commands and results consist of, so that a program can depend on this crate
// alone.
pub use haft_text::CutLimits;
pub use haft_types::{SandboxLayer, SandboxStatus};
pub use tokio_util::sync::CancellationToken;
