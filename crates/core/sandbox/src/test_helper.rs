//! Makes every test program that links this module its own supervisor helper. Test programs have a
//! generated `main`, which cannot call [`helper_entry`].

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use crate::{OwnProgram, Supervisor, helper_entry};

#[expect(
    unsafe_code,
    reason = "there is no other way to run before the `main` of a test program"
)]
// SAFETY: the section holds pointers to functions without arguments; this is one, and `#[used]`
// keeps it. The code that runs before `main` needs nothing that Rust sets up there: arguments come
// from `/proc`, and a helper never returns.
#[unsafe(link_section = ".init_array")]
#[used]
static INIT_HOOK: extern "C" fn() = run_helper_before_main;

/// The program name under which a test program acts as a helper that reports at once and then lives
/// until haft closes its side of the socket.
pub const LINGERING_HELPER: &str = "lingering-helper";

extern "C" fn run_helper_before_main() {
    let arguments = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let mut arguments = arguments
        .split(|byte| *byte == 0)
        .map(|argument| OsString::from_vec(argument.to_vec()))
        .peekable();
    let name = arguments
        .peek()
        .and_then(|program| Path::new(program).file_name());
    if name.is_some_and(|name| name == LINGERING_HELPER) {
        run_lingering_helper();
    }
    if let Some(code) = helper_entry(arguments) {
        std::process::exit(i32::from(code != ExitCode::SUCCESS));
    }
}

fn run_lingering_helper() -> ! {
    // Standard input is the socket that connects a helper with haft.
    let mut control = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map(UnixStream::from)
        .ok();
    if let Some(control) = &mut control {
        drop(control.write_all(b"c\0\0\0\0g"));
        drop(io::copy(control, &mut io::sink()));
    }
    std::process::exit(0);
}

impl Supervisor {
    /// Creates a supervisor whose helper is the running test program.
    pub fn for_tests() -> io::Result<Self> {
        // Naming the hook here makes the linker keep it.
        std::hint::black_box(INIT_HOOK as usize);
        OwnProgram::open_running().map(Self::new)
    }
}
