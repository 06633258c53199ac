//! Outputs that were too long for the model can be read in their own conversation only.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;

const NEEDLE: &str = "needle";

/// A conversation with a command whose output was kept in a file. Returns the path of the file.
fn spill_output(mode: &str) -> (Rig, String) {
    let line = "i=0; while [ $i -lt 4000 ]; do echo need''le$i; i=$((i+1)); done";
    let call = Reply::call(
        "execute_command",
        json!({"command": line, "requires_approval": false}),
    );
    let replies = Script::replies([call, Reply::text("Done.")]).unwrap();
    let rig = Rig::new(Api::OpenaiChat, replies);
    let ran = rig.run(&[
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        mode,
        "print much",
    ]);
    let result = ran
        .events()
        .into_iter()
        .find(|event| event["type"] == "tool_result")
        .unwrap_or_else(|| panic!("{}", ran.stderr()));
    let text = result["text"].as_str().unwrap();
    let path = text.split('`').find(|part| part.contains("/spill/"));
    let path = path.unwrap_or_else(|| panic!("{text}")).to_owned();
    (rig, path)
}

/// The calls with which a model tries to read the file at `path`.
fn list_reading_calls(path: &str) -> Vec<(&'static str, Value)> {
    let parent = |path: &str| {
        let (parent, _) = path.rsplit_once('/').unwrap();
        parent.to_owned()
    };
    let output = parent(path);
    let conversation = parent(&output);
    let all = parent(&conversation);
    let command = |line: String| json!({"command": line, "requires_approval": false});
    vec![
        ("read_file", json!({"path": path})),
        ("search_files", json!({"path": output, "regex": "eedle3"})),
        ("search_files", json!({"path": all, "regex": "eedle3"})),
        (
            "list_files",
            json!({"path": conversation, "recursive": true}),
        ),
        ("execute_command", command(format!("cat '{path}'"))),
        (
            "execute_command",
            command(format!("grep -rh eedle3 '{all}'")),
        ),
        (
            "execute_command",
            command(format!("cd '{output}' && cat *")),
        ),
        (
            "execute_command",
            command(format!("p='{path}'; cat \"$p\" || head \"${{p%/*}}\"/*")),
        ),
    ]
}

/// Sends the calls in a new or the earlier conversation, and returns the results as one text.
fn send_calls(rig: Rig, calls: &[(&str, Value)], arguments: &[&str]) -> (Rig, String) {
    let replies = calls
        .iter()
        .map(|(tool, arguments)| Reply::call(*tool, arguments.clone()))
        .chain([Reply::text("Done.")]);
    let rig = rig.with_script(Script::replies(replies).unwrap(), Api::OpenaiChat);
    let ran = rig.run(arguments);
    let results: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "tool_result")
        .map(|event| format!("{} {}", event["text"], event["data"]))
        .collect();
    assert_eq!(results.len(), calls.len(), "{}", ran.stderr());
    (rig, results.join("\n"))
}

#[test]
fn spilled_outputs_are_not_readable_in_other_conversations() {
    let (mut rig, path) = spill_output("auto");
    for mode in ["plan", "ask", "accept-edits", "auto"] {
        let calls = list_reading_calls(&path);
        let arguments = [
            "run",
            "--output-format",
            "stream-json",
            "--permission-mode",
            mode,
            "read it",
        ];
        let (again, results) = send_calls(rig, &calls, &arguments);
        rig = again;
        let has_sandbox = rig.run(&["sandbox", "status", "--json"]).json()["layer"] != "none";
        assert!(
            !results.contains(NEEDLE) || (mode == "auto" && !has_sandbox),
            "{mode}: {results}"
        );
        assert!(!results.contains("output.stdout\\n"), "{mode}: {results}");
    }
}

#[test]
fn spilled_outputs_are_readable_in_their_resumed_conversation() {
    let (mut rig, path) = spill_output("auto");
    for mode in ["plan", "auto"] {
        let calls: Vec<_> = list_reading_calls(&path)
            .into_iter()
            .filter(|(tool, _)| mode == "auto" || *tool != "execute_command")
            .filter(|(_, arguments)| {
                // The folder of all conversations stays closed.
                let text = arguments.to_string();
                text.contains(path.rsplit_once('/').unwrap().0) || text.contains("recursive")
            })
            .collect();
        for call in calls {
            let arguments = [
                "run",
                "-c",
                "--output-format",
                "stream-json",
                "--permission-mode",
                mode,
                "read it",
            ];
            let (again, results) = send_calls(rig, std::slice::from_ref(&call), &arguments);
            rig = again;
            assert!(
                results.contains(NEEDLE) || results.contains("output.stdout"),
                "{mode} {call:?}: {results}"
            );
        }
    }
}

#[test]
fn spilled_outputs_are_readable_for_sub_agents() {
    let command = |line: &str| {
        Reply::call(
            "execute_command",
            json!({"command": line, "requires_approval": false}),
        )
    };
    let first = Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::text("Unused.")]).unwrap(),
    );
    if first.run(&["sandbox", "status", "--json"]).json()["layer"] == "none" {
        eprintln!("skipped: there is no sandbox here");
        return;
    }
    let spill = first.home().join("cache/spill").display().to_string();
    let print = "i=0; while [ $i -lt 4000 ]; do echo need''le$i; i=$((i+1)); done";
    let read = format!("tail -n 1 '{spill}'/*/*/output.stdout");
    let agents = "mode: parallel\nsubagents:\n  - name: reader\n    task: Read the output.\n";
    let start = json!({"subagents": agents});
    let replies = [
        command(print),
        Reply::call("run_named_subagents", start),
        command(&read),
        Reply::text("Read."),
        command(&read),
        Reply::text("Done."),
    ];
    let rig = first.with_script(Script::replies(replies).unwrap(), Api::OpenaiChat);
    rig.write(
        ".haft/agents/reader.md",
        "---\nname: reader\ndescription: Reads outputs\n---\nYou read.\n",
    );
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let ran = rig.run(&[
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "auto",
        "go",
    ]);
    let last = format!("need{}3999", "le");
    let requests = rig.server.generation_requests();
    let seen = requests.iter().filter(|request| {
        let decoded = request.decode().unwrap();
        format!("{:?}", decoded.messages.last()).contains(&format!("stdout ---\\n{last}"))
    });
    assert_eq!(seen.count(), 2, "{} {}", ran.stdout(), ran.stderr());
}
