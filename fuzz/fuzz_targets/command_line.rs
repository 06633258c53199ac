//! Any command line: the shell grammar ends, and decisions are never looser than the rules.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    haft_permission::check_command_line(&String::from_utf8_lossy(data));
});
