//! Tests that no tool writes haft's own notices, which stand for omitted text, into files.

use serde_json::{Value, json};

use crate::files::read_file;
use crate::testing::{Bench, builtin};

const NOTICES: [&str; 5] = [
    "[Cleared: result of `read_file` (success); `recall` d5d3bc96 brings it back.]",
    "[The arguments of this call are shortened here; `recall` 1d45e95d shows them whole.]",
    "[This result did not fit the window: 9 of 60 bytes are omitted. Message d5d3bc96 holds it whole.]",
    "[Masked by the user. The text is kept under message id d5d3bc96.]",
    "[12 lines left out]",
];

/// Returns a call of each tool that writes text from its arguments. Each call writes `line`.
fn writing_calls(line: &str) -> [(&'static str, Value); 6] {
    let blocks = format!("<<<<<<< SEARCH\ntwo\n=======\n{line}\n>>>>>>> REPLACE\n");
    let patch = format!(
        "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+{line}\n*** Add File: b.txt\n+new\n*** End Patch\n"
    );
    let edits = json!([
        {"path": "a.txt", "old_string": "one", "new_string": "eins"},
        {"path": "a.txt", "old_string": "two", "new_string": line},
    ]);
    [
        (
            "write_to_file",
            json!({"path": "a.txt", "content": format!("one\n{line}\nthree\n")}),
        ),
        (
            "edit_file",
            json!({"path": "a.txt", "old_text": "two", "new_text": line}),
        ),
        ("multi_edit", json!({"edits": edits})),
        ("replace_in_file", json!({"path": "a.txt", "diff": blocks})),
        ("apply_patch", json!({"patch": patch})),
        ("ac_mod_write", json!({"path": ".", "content": line})),
    ]
}

#[tokio::test]
async fn tools_that_write_reject_every_notice_and_change_nothing() {
    let tools = builtin();
    for notice in NOTICES {
        for (name, arguments) in writing_calls(notice) {
            let bench = Bench::new();
            bench.write("a.txt", "one\ntwo\nthree\n");
            bench
                .ok(&read_file::define_tool(), json!({"path": "a.txt"}))
                .await;
            let tool = tools.iter().find(|tool| tool.spec().name == name).unwrap();
            let (code, message) = bench.err(tool.as_ref(), arguments).await;
            assert_eq!(code, "haft_notice", "{name}: {message}");
            assert!(message.contains(notice), "{name}: {message}");
            assert_eq!(bench.read("a.txt"), b"one\ntwo\nthree\n", "{name}");
            assert_eq!(bench.files(), ["a.txt"], "{name}");
        }
    }
}

#[tokio::test]
async fn tools_that_write_accept_text_about_notices() {
    let tools = builtin();
    for (name, arguments) in writing_calls("let note = \"[Cleared: result of `{name}`]\";") {
        let bench = Bench::new();
        bench.write("a.txt", "one\ntwo\nthree\n");
        bench
            .ok(&read_file::define_tool(), json!({"path": "a.txt"}))
            .await;
        let tool = tools.iter().find(|tool| tool.spec().name == name).unwrap();
        bench.ok(tool.as_ref(), arguments).await;
    }
}
