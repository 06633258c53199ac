//! Starts the command and decodes its exit status.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::process::Stdio;

use rustix::process::{Pid, WaitStatus};

use super::sys;
use crate::program_path::create_command;
use crate::wire::{CommandOutcome, Console, HelperRequest};

/// Starts the command. Its process calls `restrict` on itself before `exec`.
pub(super) fn start_command(
    request: &HelperRequest,
    restrict: impl Fn() -> io::Result<()> + Send + Sync + 'static,
) -> Result<Pid, CommandOutcome> {
    let number = |error: &io::Error| error.raw_os_error().unwrap_or(libc::EINVAL);
    let no_program = |error: io::Error| CommandOutcome::NoProgram(number(&error));
    // Changing into the folder here distinguishes a missing folder from a missing program.
    std::env::set_current_dir(&request.cwd)
        .map_err(|error| CommandOutcome::NoFolder(number(&error)))?;
    let Some((program, arguments)) = request.argv.split_first() else {
        return Err(CommandOutcome::NoProgram(libc::EINVAL));
    };
    let mut command = create_command(program);
    let stdin = match (request.console, &request.input) {
        (Console::None, None) => Stdio::null(),
        (Console::None, Some(text)) => create_memory_file(text).map_err(no_program)?,
        (Console::Terminal | Console::Socket, _) => io::stdout()
            .as_fd()
            .try_clone_to_owned()
            .map_err(no_program)?
            .into(),
    };
    command.args(arguments).env_clear().stdin(stdin);
    command.envs(request.env.iter().map(|(name, value)| (name, value)));
    let child = sys::configure_session(&mut command, request.console, restrict)
        .spawn()
        .map_err(no_program)?;
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(CommandOutcome::Lost)
}

/// Returns an anonymous file that contains `text`, positioned at the beginning, so that no process
/// has to feed the text to the command.
fn create_memory_file(text: &str) -> io::Result<Stdio> {
    #[cfg(target_os = "linux")]
    let mut file = File::from(rustix::fs::memfd_create(
        "haft-input",
        rustix::fs::MemfdFlags::CLOEXEC,
    )?);
    #[cfg(not(target_os = "linux"))]
    let mut file: File = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

/// Converts the wait status of the command to an outcome.
pub(super) fn decode_wait_status(status: WaitStatus) -> CommandOutcome {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => CommandOutcome::Code(code),
        (None, Some(signal)) => CommandOutcome::Signal(signal),
        (None, None) => CommandOutcome::Lost,
    }
}
