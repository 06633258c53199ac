//! Any SEARCH/REPLACE blocks for any file. A NUL separates the file's text and the blocks.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let data = String::from_utf8_lossy(data);
    let (text, diff) = data.split_once('\0').unwrap_or(("", &data));
    haft_tools::check_search_replace(text, diff);
});
