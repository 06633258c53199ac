//! Tests the supervisor with real processes, with and without PID namespaces.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start programs of their own"
)]
#![expect(
    clippy::unwrap_used,
    reason = "the functions that tests share are tests too"
)]

mod background;
mod basics;
mod below_tmp;
mod confined;
mod connected;
mod endings;
mod network;
mod output;
mod portable;
mod processes;
mod ready;
mod stand_in;
mod terminal;

use std::path::Path;
use std::time::Duration;

use haft_sandbox::{Capture, CommandSpec, FinishedCommand, PidNamespace, SandboxError, Supervisor};
use tokio_util::sync::CancellationToken;

/// The two ways to keep descendants together. Only root gets a namespace with the first; for other
/// users both are alike.
const WAYS: [PidNamespace; 2] = [PidNamespace::Privileged, PidNamespace::Never];

fn supervisor(way: PidNamespace) -> Supervisor {
    Supervisor::for_tests().unwrap().with_pid_namespace(way)
}

fn path() -> (String, String) {
    ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())
}

/// Returns a shell command with a timeout long enough for a busy machine.
fn shell(line: &str, cwd: &Path) -> CommandSpec {
    CommandSpec::shell(line, cwd)
        .with_env(vec![path()])
        .with_timeout(Duration::from_mins(5))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

fn run(
    way: PidNamespace,
    command: &CommandSpec,
    capture: &Capture,
) -> Result<FinishedCommand, SandboxError> {
    block_on(supervisor(way).run(command, capture, &CancellationToken::new()))
}

#[expect(
    clippy::print_stderr,
    reason = "whoever runs the tests should know what was not tested"
)]
fn print_skipped(why: &SandboxError) {
    eprintln!("skipped: {why}");
}
