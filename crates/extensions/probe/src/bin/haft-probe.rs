//! A program that only makes the attempts to leave the sandbox. Tests start it in place of `haft`.

use std::process::ExitCode;

fn main() -> ExitCode {
    haft_probe::probe_entry(std::env::args_os()).unwrap_or(ExitCode::FAILURE)
}
