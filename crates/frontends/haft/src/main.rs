//! The `haft` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    haft::run()
}
