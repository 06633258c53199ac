//! The `haft` binary: arguments, environment, headless output, and the extensions of its build.
//!
//! This is the only crate that reads the environment, the home folder and the terminal. [`run`]
//! maps a result to an exit code and nothing else; `cli` parses the command line, `commands`
//! carries out the parsed command, `haft` is the helper that commands receive, `wiring` registers
//! the extensions. The crate is a library only so that the workspace can build the binary with
//! every feature.

/// Returns the message with the given key from `messages/LANGUAGE`, as in `text!("jobs-unknown",
/// text = id)`.
macro_rules! text {
    ($($message:tt)+) => { haft_messages::message!(&crate::output::MESSAGES, $($message)+) };
}

mod cli;
mod commands;
mod exit;
mod haft;
mod interactive;
mod jobs;
mod output;
mod prompts;
mod wiring;

use std::process::ExitCode;

use crate::exit::ProcessExit;
use crate::haft::Haft;

/// Runs the command line of this process and returns its exit code.
pub fn run() -> ExitCode {
    // This check comes first, because the executable is also the supervisor of the commands it
    // runs.
    if let Some(code) = haft_sandbox::helper_entry(std::env::args_os()) {
        return code;
    }
    // The executable is also the program that tries to escape when the sandbox is tested.
    #[cfg(target_os = "linux")]
    if let Some(code) = haft_probe::probe_entry(std::env::args_os()) {
        return code;
    }
    // The executable is also the process that reads PDF files, which may crash.
    #[cfg(feature = "documents")]
    if let Some(code) = haft_documents::read_pdf_entry(std::env::args_os()) {
        return code;
    }
    haft_sandbox::limit_malloc_arenas();
    let haft = Haft::from_process();
    exit::install_panic_hook(haft.environment().clone());
    #[cfg(feature = "otel")]
    haft_traces::set_environment(haft.environment().clone());
    wiring::language::set_process_language(std::env::args_os(), haft.environment());
    if let Some(version) = haft_claude::version_line(&std::env::args_os().collect::<Vec<_>>()) {
        return output::print_exact(&version)
            .map_or(ProcessExit::Failed, |()| ProcessExit::Completed)
            .into();
    }
    // A shell asks for completions with an environment variable instead of a command.
    if let Some(code) = commands::completions::answer_request(&haft, std::env::args_os()) {
        return code;
    }
    match cli::Cli::from_process_args() {
        Ok(cli) => {
            let ended = cli.run(&haft).unwrap_or_else(|failure| {
                exit::log_failure(&failure, haft.environment());
                exit::report_failure(&failure)
            });
            // Lost traces are logged, so the log is flushed last.
            #[cfg(feature = "otel")]
            haft_traces::flush_spans();
            haft_log::flush_log();
            ended.into()
        }
        Err(error) => {
            // clap prints help and version to stdout with success, usage errors to stderr.
            let exit = if error.use_stderr() {
                ProcessExit::Usage
            } else {
                ProcessExit::Completed
            };
            output::usage::print_error(&error);
            // The help alone doesn't explain why no session was started.
            if std::env::args_os().len() == 1 {
                output::print_to_stderr(&format!("\nhaft: {}", text!("interactive-no-terminal")));
            }
            exit.into()
        }
    }
}
