//! Prints the page of all strictness rules, `docs/strict-rules.md`.

use std::io::Write;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(haft_testkit::rules::render_markdown().as_bytes())
}
