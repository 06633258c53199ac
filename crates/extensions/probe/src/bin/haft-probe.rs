//! A program that only makes the attempts. Tests start it where `haft` would start itself.

use std::process::ExitCode;

fn main() -> ExitCode {
    haft_probe::probe_entry(std::env::args_os()).unwrap_or(ExitCode::FAILURE)
}
