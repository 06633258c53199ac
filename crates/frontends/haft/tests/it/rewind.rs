//! Rewinds to a message, with or without the files.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;

/// Two rounds: the first writes `a.txt`, the second changes it and writes `b.txt`.
fn rig_with_two_rounds() -> (Rig, Vec<Value>) {
    let write = |path: &str, content: &str| {
        Reply::call("write_to_file", json!({"path": path, "content": content}))
    };
    let replies = [
        write("a.txt", "one\n"),
        Reply::text("Written."),
        write("a.txt", "two\n"),
        write("b.txt", "new\n"),
        Reply::text("Changed."),
        Reply::text("Another way."),
    ];
    let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap());
    assert_eq!(rig.task(&["write it"]).code(), 0);
    assert_eq!(rig.task(&["-c", "change it"]).code(), 0);
    let messages = rig.export()["messages"].as_array().unwrap().clone();
    (rig, messages)
}

fn short_id(message: &Value) -> &str {
    &message["message_id"].as_str().unwrap()[..8]
}

fn file_content(rig: &Rig, name: &str) -> Option<String> {
    std::fs::read_to_string(rig.project().join(name)).ok()
}

#[test]
fn rewind_to_a_prompt_removes_its_messages_and_files() {
    let (rig, messages) = rig_with_two_rounds();
    let second = messages
        .iter()
        .position(|message| message["content"] == "change it")
        .unwrap();
    let rewound = rig
        .run(&["rewind", short_id(&messages[second]), "--files", "--json"])
        .json();
    assert_eq!(
        (&rewound["words"], &rewound["messages"]),
        (&json!("change it"), &json!(second))
    );
    assert_eq!(
        (
            file_content(&rig, "a.txt").as_deref(),
            file_content(&rig, "b.txt")
        ),
        (Some("one\n"), None)
    );

    assert_eq!(
        rig.task(&["-c", "do it otherwise"]).result()["text"],
        "Another way."
    );
    let requests = rig.server.generation_requests();
    let [.., before, after] = requests.as_slice() else {
        panic!("{}", requests.len())
    };
    let before = before.decode().unwrap();
    let after = after.decode().unwrap();
    // Two messages about the place precede the history.
    let second = second + 2;
    assert_eq!(
        after.messages[..second],
        before.messages[..second],
        "what stays is sent as it was"
    );
    assert_eq!(after.messages.len(), second + 1);
    assert!(after.last_message_contains("do it otherwise"));

    let kept = rig
        .run(&[
            "conversations",
            "export",
            rewound["conversation_id"].as_str().unwrap(),
        ])
        .json();
    assert_eq!(
        kept["messages"].as_array().unwrap(),
        &messages,
        "the conversation as it was is still there"
    );
}

#[test]
fn rewind_to_a_reply_keeps_its_tool_results() {
    let (rig, messages) = rig_with_two_rounds();
    let call = messages
        .iter()
        .position(|message| message["content"][0]["name"] == "write_to_file")
        .unwrap();
    let rewound = rig
        .run(&["rewind", short_id(&messages[call]), "--json"])
        .json();
    assert_eq!(
        (&rewound["messages"], &rewound["words"]),
        (&json!(call + 2), &Value::Null)
    );
    assert_eq!(
        file_content(&rig, "b.txt").as_deref(),
        Some("new\n"),
        "files stay without `--files`"
    );
    assert_eq!(
        rig.task(&["-c"]).result()["text"],
        "Another way.",
        "the turn goes on from there"
    );
}

#[test]
fn rewind_to_the_first_prompt_empties_the_conversation() {
    let (rig, messages) = rig_with_two_rounds();
    let dry = rig
        .run(&[
            "rewind",
            short_id(&messages[0]),
            "--files",
            "--dry-run",
            "--json",
        ])
        .json();
    assert_eq!(
        (&dry["rewound_to"], &dry["messages"]),
        (&Value::Null, &json!(0))
    );
    assert_eq!(
        file_content(&rig, "b.txt").as_deref(),
        Some("new\n"),
        "nothing was done"
    );
    let rewound = rig.run(&["rewind", short_id(&messages[0]), "--files"]);
    assert!(
        rewound.stdout().ends_with("Your message was:\nwrite it\n"),
        "{}",
        rewound.stdout()
    );
    assert_eq!(
        (file_content(&rig, "a.txt"), file_content(&rig, "b.txt")),
        (None, None)
    );
    assert_eq!(rig.task(&["-c", "again"]).result()["text"], "Another way.");
    assert_eq!(
        rig.server
            .generation_requests()
            .last()
            .unwrap()
            .decode()
            .unwrap()
            .messages
            .len(),
        3
    );
}

#[test]
fn rewind_keeps_and_names_files_changed_since() {
    let (rig, messages) = rig_with_two_rounds();
    rig.write("a.txt", "mine\n");
    let rewound = rig.run(&["rewind", short_id(&messages[0]), "--files"]);
    assert_eq!(rewound.code(), 3, "{}", rewound.stderr());
    assert!(rewound.stdout().contains("a.txt:"), "{}", rewound.stdout());
    assert_eq!(
        (
            file_content(&rig, "a.txt").as_deref(),
            file_content(&rig, "b.txt")
        ),
        (Some("mine\n"), None)
    );
}

#[test]
fn rewind_rejects_an_unknown_message() {
    let (rig, _) = rig_with_two_rounds();
    let ran = rig.run(&["rewind", "ffffffff"]);
    assert_eq!(ran.code(), 2);
    assert!(
        ran.stderr().contains("no message `ffffffff`"),
        "{}",
        ran.stderr()
    );
}
