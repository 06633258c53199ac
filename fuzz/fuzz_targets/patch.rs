//! Any patch for any file: it parses to what its text says, and its chunks keep the lines around
//! them. A NUL separates the file's text and the patch.
#![no_main]

use haft_tools::PatchAction;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let data = String::from_utf8_lossy(data);
    let (text, patch) = data.split_once('\0').unwrap_or(("", &data));
    for section in haft_changes::check_patch(patch).unwrap_or_default() {
        match section.action {
            PatchAction::Update { chunks, .. } => haft_tools::check_edit_blocks(text, &chunks),
            PatchAction::Add { .. } | PatchAction::Delete => {}
        }
    }
});
