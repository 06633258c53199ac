//! Tools that no request describes, called through `use_tool` and by their own names.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;

fn results(events: &[Value]) -> Vec<(&str, &str)> {
    let done = events.iter().filter(|event| event["type"] == "tool_result");
    done.map(|event| {
        (
            event["name"].as_str().unwrap(),
            event["status"].as_str().unwrap(),
        )
    })
    .collect()
}

/// Counts tokens and patches a file with tools that are not described.
fn script() -> Script {
    let patch = "*** Begin Patch\n*** Update File: notes.txt\n@@\n-alpha\n+ALPHA\n*** End Patch";
    Script::replies([
        Reply::call(
            "use_tool",
            json!({"name": "count_tokens", "arguments": {"path": "notes.txt"}}),
        ),
        Reply::call(
            "use_tool",
            json!({"name": "apply_patch", "arguments": {"patch": patch}}),
        ),
        Reply::call(
            "multi_edit",
            json!({"edits": [{"path": "notes.txt", "old_string": "beta", "new_string": "BETA"}]}),
        ),
        Reply::call("use_tool", json!({"name": "no_such_tool", "arguments": {}})),
        Reply::call(
            "use_tool",
            json!({"name": "use_tool", "arguments": {"name": "glob"}}),
        ),
        Reply::text("Done."),
    ])
    .unwrap()
}

#[test]
fn use_tool_calls_deferred_tools_on_every_api() {
    for api in Api::ALL {
        let rig = Rig::new(api, script());
        rig.write("notes.txt", "alpha\nbeta\n");
        let ran = rig.task(&["patch it"]);
        assert_eq!(ran.code(), 0, "{api}: {}", ran.stderr());
        assert!(
            rig.server.refusals().is_empty(),
            "{api}: {:?}",
            rig.server.refusals()
        );
        let events = ran.events();
        assert_eq!(
            results(&events),
            [
                ("count_tokens", "success"),
                ("apply_patch", "success"),
                ("multi_edit", "success"),
                ("no_such_tool", "error"),
                ("use_tool", "error")
            ],
            "{api}"
        );
        assert_eq!(
            std::fs::read_to_string(rig.project().join("notes.txt")).unwrap(),
            "ALPHA\nBETA\n",
            "{api}"
        );
        let first = String::from_utf8_lossy(&rig.server.generation_requests()[0].body).into_owned();
        assert!(
            !first.contains("*** Begin Patch"),
            "{api}: it is not described"
        );
    }
}

#[test]
fn use_tool_applies_rules_and_modes_of_the_called_tool() {
    let denied = "permissions.deny=[\"apply_patch\", \"multi_edit\"]";
    for refusal in [
        &["--permission-mode", "plan"][..],
        &["--permission-mode", "accept-edits", "--set", denied],
    ] {
        let rig = Rig::new(Api::OpenaiChat, script());
        rig.write("notes.txt", "alpha\nbeta\n");
        let mut arguments = vec!["run", "--output-format", "stream-json"];
        arguments.extend(refusal);
        arguments.push("patch it");
        let events = rig.run(&arguments).events();
        let done = results(&events);
        assert!(
            done.contains(&("apply_patch", "error")) && done.contains(&("multi_edit", "error")),
            "{done:?}"
        );
        assert_eq!(
            std::fs::read_to_string(rig.project().join("notes.txt")).unwrap(),
            "alpha\nbeta\n"
        );
    }
}

#[test]
fn undo_reverts_what_a_deferred_tool_wrote() {
    let rig = Rig::new(Api::Anthropic, script());
    rig.write("notes.txt", "alpha\nbeta\n");
    rig.task(&["patch it"]);
    let undone = rig.run(&["undo", "--session"]);
    assert_eq!(undone.code(), 0, "{}{}", undone.stdout(), undone.stderr());
    assert_eq!(
        std::fs::read_to_string(rig.project().join("notes.txt")).unwrap(),
        "alpha\nbeta\n"
    );
}

/// Returns the sentence of the system message about tools that fill reminders.
fn sentence_about_reminders(rig: &Rig, request: usize) -> Option<String> {
    let body: Value = rig.server.generation_requests()[request].json().unwrap();
    let system = body["messages"][0]["content"].as_str().unwrap();
    let start = ["Through `use_tool`", "通过 `use_tool`"]
        .iter()
        .find_map(|words| system.find(words))?;
    let rest = &system[start..];
    let end = ['.', '。'].iter().filter_map(|sign| rest.find(*sign)).min();
    Some(rest[..end.unwrap_or(rest.len())].to_owned())
}

#[test]
fn prompt_names_deferred_tools_that_fill_reminders() {
    let range =
        json!({"path": "pay.rs", "start_line": 1, "end_line": 1, "description": "the rates"});
    let note = json!({"path": "src", "note": "Amounts are in cents."});
    let through = |name: &str, arguments: &Value| {
        Reply::call("use_tool", json!({"name": name, "arguments": arguments}))
    };
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::replies([
            through("useful_info_add", &range),
            through("note_add", &note),
            Reply::call("read_file", json!({"path": "src/a.rs"})),
            Reply::text("Done."),
        ])
        .unwrap(),
    );
    rig.write("pay.rs", "const RATE: u32 = 19;\n");
    rig.write("src/a.rs", "fn a() {}\n");
    let ran = rig.task(&["keep the rates in view"]);
    let done = ran.events();
    assert_eq!(
        results(&done),
        [
            ("useful_info_add", "success"),
            ("note_add", "success"),
            ("read_file", "success")
        ]
    );
    assert_eq!(
        sentence_about_reminders(&rig, 0).as_deref(),
        Some(
            "Through `use_tool`, `useful_info_add` adds to the useful information and `note_add` to the folder notes"
        )
    );
    // What the tools stored is in the reminders of the last request.
    let requests = rig.server.generation_requests();
    let sent = |request: usize| requests[request].decode().unwrap().to_string();
    let shown = ["const RATE: u32 = 19;", "### `src`"];
    assert_eq!(shown.map(|text| sent(0).contains(text)), [false, false]);
    assert_eq!(shown.map(|text| sent(3).contains(text)), [true, true]);
}

#[test]
fn prompt_names_no_tools_that_are_described_or_out_of_reach() {
    for (set, sentence) in [
        (
            "context.prompt_language=zh-CN",
            Some("通过 `use_tool`，`useful_info_add` 可添加有用信息，`note_add` 可添加目录笔记"),
        ),
        ("tools.offer=[\"*\"]", None),
        ("tools.offer=[\"read_file\"]", None),
    ] {
        let rig = Rig::new(
            Api::OpenaiChat,
            Script::replies([Reply::text("Done.")]).unwrap(),
        );
        assert_eq!(rig.task(&["--set", set, "go"]).code(), 0);
        assert_eq!(
            sentence_about_reminders(&rig, 0).as_deref(),
            sentence,
            "{set}"
        );
    }
}
