//! What small models really do, in their own words, and what becomes of it.

use haft_testkit::{Reply, Script, SeenPart};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    let rig = Rig::new(Api::OpenaiChat, Script::turns(replies).unwrap());
    rig.write("letter.txt", "Dear reader,\nwe recieve many letters.\nPlease send what you recieve.\n");
    rig
}

/// The results the model has read in its last request, oldest first.
fn results(rig: &Rig) -> Vec<String> {
    let seen = rig.server.generations().last().unwrap().seen().unwrap();
    let text = |part: &SeenPart| match part {
        SeenPart::ToolResult { text, .. } => Some(text.clone()),
        _ => None,
    };
    seen.parts().filter_map(|(_, part)| text(part)).collect()
}

fn fix(search: &str) -> Reply {
    let diff = format!("<<<<<<< 1.2.3\n{search}\n=======\nreceive\n>>>>>>> 1.2.3");
    Reply::call("replace_in_file", json!({"path": "letter.txt", "diff": diff}))
}

#[test]
fn a_version_number_for_a_label_does_not_keep_an_edit_from_working() {
    let rig = rig([fix("we recieve many letters."), Reply::text("Done.")]);
    let ran = rig.task(&["correct the first mistake"]);
    assert_eq!(ran.code(), 0, "{}", ran.stdout());
    assert_eq!(
        std::fs::read_to_string(rig.project().join("letter.txt")).unwrap(),
        "Dear reader,\nreceive\nPlease send what you recieve.\n"
    );
    assert!(results(&rig)[0].contains("read as `SEARCH`"), "{:?}", results(&rig));
}

#[test]
fn the_same_call_after_an_error_is_told_something_new() {
    let arguments: Vec<(&str, Value, &str)> = vec![
        ("edit_file", json!({"path": "letter.txt", "old_text": "Dear writer", "new_text": "x"}), "`read_file`"),
        ("list_files", json!({"path": "out"}), "Use a path that is named above"),
        ("edit_file", json!({"file": "letter.txt"}), "Arguments that fit look like this"),
        ("run_python", json!({}), "The tools are `read_file`"),
        ("execute_command", json!({"command": "exit 3"}), "change the command"),
    ];
    for (tool, arguments, says) in arguments {
        let call = || Reply::call(tool, arguments.clone());
        let rig = rig([call(), call(), Reply::text("It does not work.")]);
        rig.task(&["correct the letter"]);
        let results = results(&rig);
        assert!(!results[0].contains(says), "{tool}: {}", results[0]);
        assert!(results[1].starts_with(&results[0]) && results[1].contains(says), "{tool}: {}", results[1]);
    }
}

#[test]
fn what_failed_once_and_then_otherwise_is_not_called_the_same() {
    let call = |command: &str| Reply::call("execute_command", json!({"command": command}));
    let rig = rig([call("exit 3"), call("exit 4"), call("true"), call("true"), Reply::text("So it is.")]);
    assert_eq!(rig.task(&["try"]).code(), 0);
    assert!(results(&rig).iter().all(|result| !result.contains("The same call")), "{:?}", results(&rig));
}

#[test]
fn two_calls_in_turn_are_a_loop() {
    let read = || Reply::call("read_file", json!({"path": "letter.txt"}));
    let edit = || Reply::call("edit_file", json!({"path": "letter.txt", "old_text": "We", "new_text": "They"}));
    let rig = rig((0..12).flat_map(|_| [read(), edit()]));
    let ran = rig.task(&["--max-turns", "20", "correct the letter"]);
    assert_eq!((ran.code(), &ran.result()["code"]), (1, &json!("loop")), "{}", ran.result());
    let sent = rig.server.generations().last().unwrap().seen().unwrap();
    let note = sent.parts().any(|(_, part)| {
        matches!(part, SeenPart::Text { text, .. } if text.contains("the same few calls in turn") && !text.contains("If the task is done"))
    });
    assert!(note, "the model is told");
}

#[test]
fn success_claimed_after_refused_edits_is_doubted_once_and_marked() {
    let edit = |old: &str| Reply::call("edit_file", json!({"path": "letter.txt", "old_text": old, "new_text": "x"}));
    let claim = || Reply::text("The file `letter.txt` has been updated successfully.");
    let failing = rig([edit("We receive"), edit("we receive"), claim(), claim()]);
    let ran = failing.task(&["correct the letter"]);
    let result = ran.result();
    assert_eq!((ran.code(), &result["outcome"], &result["nothing_changed"]), (0, &json!("completed"), &json!(true)));
    assert!(ran.events().iter().any(|event| event["type"] == "notice" && event["code"] == "nothing_changed"));
    let sent = failing.server.generations();
    assert_eq!(sent.len(), 4);
    assert!(sent[3].seen().unwrap().last_contains("Nothing has been changed"), "the model is told");
    // A command that fails is no success either, and people read of it.
    let run = || Reply::call("execute_command", json!({"command": "exit 1"}));
    let rig = rig([run(), claim(), claim()]);
    let ran = rig.run(&["run", "--permission-mode", "yolo", "correct the letter"]);
    assert!(ran.code() == 0 && ran.stderr().contains("nothing was changed"), "{}", ran.stderr());
}

#[test]
fn a_doubted_model_that_then_succeeds_is_not_marked() {
    let edit = |old: &str| Reply::call("edit_file", json!({"path": "letter.txt", "old_text": old, "new_text": "They"}));
    let rig = rig([edit("We"), Reply::text("Done."), edit("we"), Reply::text("Done.")]);
    let ran = rig.task(&["correct the letter"]);
    assert_eq!((ran.code(), ran.result().get("nothing_changed")), (0, None));
    assert_eq!(rig.server.generations().len(), 4);
}

#[test]
fn an_answer_without_writes_is_what_it_is() {
    let rig = rig([Reply::call("read_file", json!({"path": "nope.txt"})), Reply::text("There is no such file.")]);
    let ran = rig.task(&["look"]);
    assert_eq!((ran.code(), ran.result().get("nothing_changed")), (0, None));
    assert_eq!(rig.server.generations().len(), 2);
}

/// The server would need a minute for this reply, and the command would, too.
#[test]
fn the_wall_time_ends_a_request_and_a_command_in_the_middle() {
    let slow = Reply { delta_chars: Some(1), delta_delay_ms: 1_000, ..Reply::text("x".repeat(60)) };
    let late = Reply { delay_ms: 60_000, ..Reply::text("Late.") };
    let command = Reply::call("execute_command", json!({"command": "sleep 60"}));
    for reply in [slow, late, command] {
        let rig = rig([reply, Reply::text("Done.")]);
        let begun = std::time::Instant::now();
        let ran = rig.task(&["--max-wall-time", "2", "wait"]);
        assert_eq!((ran.code(), &ran.result()["code"]), (4, &json!("max_wall_time")), "{}", ran.result());
        // Not a measurement: anything but the end of the minute will do.
        assert!(begun.elapsed().as_secs() < 45, "it waited for the end");
        assert_eq!(rig.server.generations().len(), 1);
    }
}
