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
