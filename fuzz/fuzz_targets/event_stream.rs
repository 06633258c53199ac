//! Any body of a streamed reply: its events do not depend on the pieces in which it arrives. The
//! first byte is the length of the pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((piece, body)) = data.split_first() {
        haft_model::check_event_stream(body, usize::from(*piece % 16) + 1);
    }
});
