//! Makes every program that links it its own supervisor helper, for test programs, whose `main` is not ours.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

use crate::{Supervisor, helper_entry};

#[expect(unsafe_code, reason = "there is no other way to run before the `main` of a test program")]
// SAFETY: the section holds pointers to functions without arguments; this is one, and it is kept by `#[used]`. What it
// runs before `main` needs nothing that Rust sets up there: arguments come from `/proc`, and it never returns as helper.
#[unsafe(link_section = ".init_array")]
#[used]
static HOOK: extern "C" fn() = hook;

extern "C" fn hook() {
    let arguments = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let arguments = arguments.split(|byte| *byte == 0).map(|argument| OsString::from_vec(argument.to_vec()));
    if let Some(code) = helper_entry(arguments) {
        std::process::exit(i32::from(code != ExitCode::SUCCESS));
    }
}

impl Supervisor {
    /// A supervisor whose helper is the running test program.
    pub fn for_tests() -> io::Result<Self> {
        // Naming the hook here makes the linker take it along.
        std::hint::black_box(HOOK as usize);
        std::env::current_exe().map(Self::new)
    }
}
