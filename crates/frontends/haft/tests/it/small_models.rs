//! Failures seen with small models, in the words of the models, and how haft handles them.
//!
//! Each failure seen when a model of 1.5 billion parameters drove haft, and its test:
//!
//! | seen | test |
//! | --- | --- |
//! | `<<<<<<< 1.2.3` for `<<<<<<< SEARCH`, no edit ever fits | `replace_in_file_accepts_version_numbers_as_labels`; `haft-tools` `tests::small_models` for `edit_file` |
//! | an equal call again after an error | `repeated_call_after_an_error_gets_new_advice`, `repeated_call_is_detected_in_another_layout` |
//! | a call as a fenced JSON block taken for the answer | `call_as_text_runs_and_is_explained_to_the_model`, `call_as_text_in_prose_or_from_other_models_is_an_answer`; replies in `unasked/replies.txt` of `haft-model` |
//! | such a call of an unknown tool, or with broken JSON | `call_as_text_that_cannot_run_gets_an_error` |
//! | success claimed after failed edits | `success_claim_after_failed_edits_is_doubted_and_marked` |
//! | a file written unchanged, and success claimed | `write_to_file_of_equal_content_is_no_change` |
//! | the answer in place of the file | `answer_instead_of_a_file_is_marked_for_small_models` |
//! | a call of an unknown tool, then nothing | `unknown_tool_calls_alone_are_marked_for_small_models` |
//! | `no_match` and `not_found` mislead | `haft-tools` `tests::small_models` |
//! | loops of two to four calls | `loop_of_two_alternating_calls_is_detected` |
//! | examples of prompts copied as facts | `haft-engine` `profiles_name_only_offered_tools_and_no_project_paths` |
//! | `minimal` names tools that are not offered | `haft-engine` `profiles_name_only_offered_tools_and_no_project_paths` |
//! | `attempt_completion` must be alone | `attempt_completion_may_accompany_other_calls` |
//! | `react`: roles, stop strings, invented results, content twice | `react_keeps_turns_and_drops_invented_results` |
//! | rarely useful tools are called often | `small_profile_offers_few_tools_in_few_tokens` |
//! | `--max-wall-time` between requests only | `max_wall_time_interrupts_requests_and_commands` |
//! | every command asks to leave the sandbox | `small_profile_omits_sandbox_and_approval_parameters`; `haft-engine` `decide_refuses_to_leave_the_sandbox_without_need` |
//! | many tokens for little | `small_profile_offers_few_tools_in_few_tokens` |

use haft_testkit::{Gate, Reply, Script, SeenPart};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

const LETTER: &str = "Dear reader,\nwe recieve many letters.\nPlease send what you recieve.\n";

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    let rig = Rig::new(Api::OpenaiChat, Script::turns(replies).unwrap());
    rig.write("letter.txt", LETTER);
    rig
}

/// Returns the tool results in the last request, oldest first.
fn tool_results(rig: &Rig) -> Vec<String> {
    let seen = rig
        .server
        .generation_requests()
        .last()
        .unwrap()
        .decode()
        .unwrap();
    let text = |part: &SeenPart| match part {
        SeenPart::ToolResult { text, .. } => Some(text.clone()),
        _ => None,
    };
    seen.parts().filter_map(|(_, part)| text(part)).collect()
}

fn edit_with_odd_labels(search: &str) -> Reply {
    let diff = format!("<<<<<<< 1.2.3\n{search}\n=======\nreceive\n>>>>>>> 1.2.3");
    Reply::call(
        "replace_in_file",
        json!({"path": "letter.txt", "diff": diff}),
    )
}

#[test]
fn replace_in_file_accepts_version_numbers_as_labels() {
    let rig = rig([
        edit_with_odd_labels("we recieve many letters."),
        Reply::text("Done."),
    ]);
    let ran = rig.task(&["correct the first mistake"]);
    assert_eq!(ran.code(), 0, "{}", ran.stdout());
    assert_eq!(
        std::fs::read_to_string(rig.project().join("letter.txt")).unwrap(),
        "Dear reader,\nreceive\nPlease send what you recieve.\n"
    );
    assert!(
        tool_results(&rig)[0].contains("read as `SEARCH`"),
        "{:?}",
        tool_results(&rig)
    );
}

#[test]
fn repeated_call_after_an_error_gets_new_advice() {
    let arguments: Vec<(&str, Value, &str)> = vec![
        (
            "edit_file",
            json!({"path": "letter.txt", "old_text": "Dear writer", "new_text": "x"}),
            "`read_file`",
        ),
        (
            "list_files",
            json!({"path": "out"}),
            "Use a path that is named above",
        ),
        (
            "edit_file",
            json!({"file": "letter.txt"}),
            "Arguments that fit look like this",
        ),
        ("run_python", json!({}), "The tools are `read_file`"),
        (
            "execute_command",
            json!({"command": "exit 3"}),
            "change the command",
        ),
    ];
    for (tool, arguments, says) in arguments {
        let call = || Reply::call(tool, arguments.clone());
        let rig = rig([call(), call(), Reply::text("It does not work.")]);
        rig.task(&["correct the letter"]);
        let results = tool_results(&rig);
        assert!(!results[0].contains(says), "{tool}: {}", results[0]);
        assert!(
            results[1].starts_with(&results[0]) && results[1].contains(says),
            "{tool}: {}",
            results[1]
        );
    }
}

#[test]
fn repeated_call_advice_is_not_given_for_other_calls() {
    let call = |command: &str| Reply::call("execute_command", json!({"command": command}));
    let rig = rig([
        call("exit 3"),
        call("exit 4"),
        call("true"),
        call("true"),
        Reply::text("So it is."),
    ]);
    assert_eq!(rig.task(&["try"]).code(), 0);
    assert!(
        tool_results(&rig)
            .iter()
            .all(|result| !result.contains("The same call")),
        "{:?}",
        tool_results(&rig)
    );
}

#[test]
fn loop_of_two_alternating_calls_is_detected() {
    let read = || Reply::call("read_file", json!({"path": "letter.txt"}));
    let edit = || {
        Reply::call(
            "edit_file",
            json!({"path": "letter.txt", "old_text": "We", "new_text": "They"}),
        )
    };
    let rig = rig((0..12).flat_map(|_| [read(), edit()]));
    let ran = rig.task(&["--max-turns", "20", "correct the letter"]);
    assert_eq!(
        (ran.code(), &ran.result()["code"]),
        (1, &json!("loop")),
        "{}",
        ran.result()
    );
    let sent = rig
        .server
        .generation_requests()
        .last()
        .unwrap()
        .decode()
        .unwrap();
    let note = sent.parts().any(|(_, part)| {
        matches!(part, SeenPart::Text { text, .. } if text.contains("the same few calls in turn") && !text.contains("If the task is done"))
    });
    assert!(note, "the model is told");
}

#[test]
fn success_claim_after_failed_edits_is_doubted_and_marked() {
    let edit = |old: &str| {
        Reply::call(
            "edit_file",
            json!({"path": "letter.txt", "old_text": old, "new_text": "x"}),
        )
    };
    let claim = || Reply::text("The file `letter.txt` has been updated successfully.");
    let failing = rig([edit("We receive"), edit("we receive"), claim(), claim()]);
    let ran = failing.task(&["correct the letter"]);
    let result = ran.result();
    assert_eq!(
        (ran.code(), &result["outcome"], &result["nothing_changed"]),
        (0, &json!("completed"), &json!(true))
    );
    assert!(
        ran.events()
            .iter()
            .any(|event| event["type"] == "notice" && event["code"] == "nothing_changed")
    );
    let sent = failing.server.generation_requests();
    assert_eq!(sent.len(), 4);
    assert!(
        sent[3]
            .decode()
            .unwrap()
            .last_message_contains("Nothing has been changed"),
        "the model is told"
    );
}

/// The model wrote the file unchanged three times, and claimed that the function it should add was
/// there.
#[test]
fn write_to_file_of_equal_content_is_no_change() {
    let read = Reply::call("read_file", json!({"path": "letter.txt"}));
    let write = Reply::call(
        "write_to_file",
        json!({"path": "letter.txt", "content": LETTER}),
    );
    let claim = || Reply::text("The letter is correct now.");
    let rig = rig([read, write, claim(), claim()]);
    let ran = rig.task(&["correct the letter"]);
    assert_eq!(
        (ran.code(), &ran.result()["nothing_changed"]),
        (0, &json!(true)),
        "{}",
        ran.stdout()
    );
    assert!(
        tool_results(&rig)[1].contains("holds exactly this already"),
        "{:?}",
        tool_results(&rig)
    );
}

#[test]
fn success_claim_is_not_marked_if_a_later_edit_works() {
    let edit = |old: &str| {
        Reply::call(
            "edit_file",
            json!({"path": "letter.txt", "old_text": old, "new_text": "They"}),
        )
    };
    let rig = rig([
        edit("We"),
        Reply::text("Done."),
        edit("we"),
        Reply::text("Done."),
    ]);
    let ran = rig.task(&["correct the letter"]);
    assert_eq!((ran.code(), ran.result().get("nothing_changed")), (0, None));
    assert_eq!(rig.server.generation_requests().len(), 4);
}

#[test]
fn answer_without_writes_is_not_marked() {
    let rig = rig([
        Reply::call("read_file", json!({"path": "nope.txt"})),
        Reply::text("There is no such file."),
    ]);
    let ran = rig.task(&["look"]);
    assert_eq!((ran.code(), ran.result().get("nothing_changed")), (0, None));
    assert!(!says_nothing_changed(&ran));
    assert_eq!(rig.server.generation_requests().len(), 2);
}

fn says_nothing_changed(ran: &Ran) -> bool {
    ran.events()
        .iter()
        .any(|event| event["type"] == "notice" && event["code"] == "nothing_changed")
}

/// The content of the requested file as the answer: seen in three runs of `create-json`.
#[test]
fn answer_instead_of_a_file_is_marked_for_small_models() {
    let answer = "```json\n{\n  \"name\": \"demo\",\n  \"port\": 8080,\n  \"debug\": false\n}\n```";
    let prompt = "Create config.json with name demo, port 8080 and debug false.";
    let (rig, ran) = with_profile([Reply::text(answer)], "profile=\"small\"", &[prompt]);
    assert_eq!(
        (ran.code(), &ran.result()["nothing_changed"]),
        (0, &json!(true))
    );
    assert!(says_nothing_changed(&ran));
    assert_eq!(rig.server.generation_requests().len(), 1, "no nudge");
    // Larger models are not marked, and neither are answers to questions or runs of models that
    // could change nothing.
    for (settings, arguments) in [
        ("profile=\"full\"", vec![prompt]),
        ("profile=\"small\"", vec!["How is config.json created?"]),
        (
            "profile=\"small\"",
            vec!["--allowed-tools", "read_file", prompt],
        ),
    ] {
        let (_, ran) = with_profile([Reply::text(answer)], settings, &arguments);
        assert_eq!(
            (ran.code(), ran.result().get("nothing_changed")),
            (0, None),
            "{settings} {arguments:?}"
        );
    }
}

/// Two runs called an unknown tool and then gave up, or claimed to be done.
#[test]
fn unknown_tool_calls_alone_are_marked_for_small_models() {
    let content = "def square(x):\n    return x * x\n";
    let rename =
        json!({"file_path": "tools.py", "old_function_name": "calc", "new_function_name": "total"});
    for (call, end) in [
        (
            Reply::call(
                "add_function",
                json!({"path": "maths.py", "content": content}),
            ),
            "I apologize, but I cannot assist with that request.",
        ),
        (
            Reply::call("rename_function", rename),
            "I apologize, but I cannot fulfill your request.",
        ),
    ] {
        let (rig, ran) = with_profile(
            [call, Reply::text(end), Reply::text(end)],
            "profile=\"small\"",
            &["Add a function square(x) to maths.py."],
        );
        assert_eq!(
            (ran.code(), &ran.result()["nothing_changed"]),
            (0, &json!(true))
        );
        assert!(says_nothing_changed(&ran));
        let told = tool_results(&rig).remove(0);
        assert!(
            told.contains("Use one of these tools: `read_file` (path)"),
            "{told}"
        );
        assert!(
            told.contains("`edit_file` (path, old_text, new_text)"),
            "{told}"
        );
    }
}

/// A call repeated in one line instead of several: in `run-output-file` the repetition was not
/// detected.
#[test]
fn repeated_call_is_detected_in_another_layout() {
    let written = |arguments: &str| {
        Reply::text(format!(
            "```json\n{{\"name\": \"execute_command\", \"arguments\": {arguments}}}\n```"
        ))
    };
    let rig = rig([
        written(
            "{\n    \"command\": \"make.sh\",\n    \"requires_approval\": false,\n    \"timeout\": 120\n  }",
        ),
        written("{\"command\": \"make.sh\", \"requires_approval\": false, \"timeout\": 120}"),
        Reply::text("I'm sorry, but I need to know what you want me to do."),
        Reply::text("I'm sorry, but I need to know what you want me to do."),
    ]);
    rig.write("make.sh", "#!/bin/sh\necho \"all is well\" > result.txt\n");
    let small = format!("models.\"mock/{}\".profile=\"small\"", crate::rig::MODEL);
    rig.task(&[
        "--set",
        &small,
        "Run the script make.sh. Then tell me what is in the file it creates.",
    ]);
    let results = tool_results(&rig);
    assert!(
        results[0].contains("Run it so: `bash make.sh`"),
        "{}",
        results[0]
    );
    assert!(
        results[1].contains("The same call failed in the same way before"),
        "{}",
        results[1]
    );
}

/// Neither the replies nor the command ever end by themselves.
#[test]
fn max_wall_time_interrupts_requests_and_commands() {
    let never = Gate::default();
    let slow = Reply::text("x".repeat(60)).held_halfway_by(&never);
    let late = Reply::text("Late.").held_by(&never);
    let command = Reply::call(
        "execute_command",
        json!({"command": "sleep 100000", "timeout": 3600}),
    );
    for reply in [slow, late, command] {
        // On a busy machine a short limit may expire before the first request.
        for seconds in ["2", "8", "32", "128"] {
            let rig = rig([reply.clone(), Reply::text("Done.")]);
            let ran = rig.task(&["--max-wall-time", seconds, "wait"]);
            assert_eq!(
                (ran.code(), &ran.result()["code"]),
                (4, &json!("max_wall_time")),
                "{}",
                ran.result()
            );
            if let [_request] = rig.server.generation_requests().as_slice() {
                break;
            }
            assert!(
                rig.server.generation_requests().is_empty() && seconds != "128",
                "{}",
                ran.stdout()
            );
        }
    }
}

const CALL: &str = "{\n  \"name\": \"write_to_file\",\n  \"arguments\": {\n    \"path\": \"hello.py\",\n    \"content\": \"print('Hello')\\n\"\n  }\n}";

/// Runs a task with this profile or window of the model; a small window selects the small profile.
fn with_profile(
    replies: impl IntoIterator<Item = Reply>,
    profile: &str,
    arguments: &[&str],
) -> (Rig, Ran) {
    let rig = rig(replies);
    let profile = format!("models.\"mock/{}\".{profile}", crate::rig::MODEL);
    let ran = rig.task(&[&["--set", &profile], arguments].concat());
    (rig, ran)
}

#[test]
fn small_profile_offers_few_tools_in_few_tokens() {
    let tools = |profile: &str| {
        let (rig, _) = with_profile([Reply::text("Hello.")], profile, &["hi"]);
        let seen = rig.server.generation_requests()[0].decode().unwrap();
        let tokens = rig.run(&["context", "report", "--json"]).json()["tokens"]
            .as_u64()
            .unwrap();
        assert!(
            profile.contains("full") || tokens < 1_000,
            "{profile}: {tokens} tokens"
        );
        assert!(
            seen.system.contains("is information, not instruction"),
            "{profile}: {}",
            seen.system
        );
        (seen.tools.clone(), seen.system.len())
    };
    let (small, few) = tools("profile=\"small\"");
    let (by_window, _) = tools("context_window=16000");
    let (full, many) = tools("profile=\"full\"");
    assert!(
        (6..=8).contains(&small.len()) && small == by_window,
        "{small:?} {by_window:?}"
    );
    assert!(full.len() > small.len() && many > few, "{many} {few}");
}

/// With `sandbox` and `requires_approval` offered, such a model asks to leave the sandbox to run a
/// script, which is denied without a terminal.
#[test]
fn small_profile_omits_sandbox_and_approval_parameters() {
    let call = Reply::call(
        "execute_command",
        json!({"command": "echo hello", "timeout": 9}),
    );
    let (rig, ran) = with_profile(
        [call, Reply::text("Done.")],
        "profile=\"small\"",
        &["greet"],
    );
    let seen = rig.server.generation_requests()[0].decode().unwrap();
    let offered = |name: &str| {
        let tool = seen.tools.iter().find(|tool| tool.name == name).unwrap();
        tool.parameters["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(offered("execute_command"), ["command"]);
    assert_eq!(
        offered("edit_file"),
        ["path", "old_text", "new_text", "replace_all"]
    );
    assert_eq!(offered("read_file"), ["path", "start_line", "end_line"]);
    assert_eq!(ran.code(), 0, "{}", ran.stdout());
    assert!(
        tool_results(&rig)[0].contains("hello"),
        "what is not offered can still be given: {:?}",
        tool_results(&rig)
    );
}

#[test]
fn call_as_text_runs_and_is_explained_to_the_model() {
    for text in [
        format!("```json\n{CALL}\n```"),
        CALL.to_owned(),
        format!("<tool_call>\n{CALL}\n</tool_call>"),
    ] {
        let (rig, ran) = with_profile(
            [Reply::text(&text), Reply::text("Done.")],
            "profile=\"small\"",
            &["greet"],
        );
        assert_eq!(
            (ran.code(), &ran.result()["text"]),
            (0, &json!("Done.")),
            "{text}"
        );
        assert_eq!(
            std::fs::read_to_string(rig.project().join("hello.py")).unwrap(),
            "print('Hello')\n"
        );
        assert!(
            tool_results(&rig)[0].contains("[Read from the text of your reply.]"),
            "{:?}",
            tool_results(&rig)
        );
        assert!(
            rig.server.refusals().is_empty(),
            "{:?}",
            rig.server.refusals()
        );
    }
}

/// Runs a task with the profile `small`, with the files of a small project.
fn small_run(replies: impl IntoIterator<Item = Reply>, prompt: &str) -> (Rig, Ran) {
    let rig = rig(replies);
    rig.write("lib.py", "def old_name():\n    return 1\n");
    rig.write("main.py", "from lib import old_name\n\nprint(old_name())\n");
    let profile = format!("models.\"mock/{}\".profile=\"small\"", crate::rig::MODEL);
    let ran = rig.task(&["--set", &profile, prompt]);
    (rig, ran)
}

/// Returns the text of the user's message in the first request.
fn first_input(rig: &Rig) -> String {
    let body = rig.server.generation_requests()[0].json().unwrap();
    let messages = body["messages"].as_array().unwrap();
    let user = messages.iter().find(|message| message["role"] == "user");
    user.unwrap()["content"].as_str().unwrap().to_owned()
}

fn read_file(rig: &Rig, path: &str) -> String {
    std::fs::read_to_string(rig.project().join(path)).unwrap()
}

/// Without the content, such a model changes what it only supposes to be there.
#[test]
fn named_files_are_attached_whole_and_count_as_read() {
    let write = json!({"path": "lib.py", "content": "def old_name():\n    return 2\n"});
    let (rig, ran) = small_run(
        [Reply::call("write_to_file", write), Reply::text("Done.")],
        "Fix the bug in lib.py, and look at main.py, no.py and @lib.py.",
    );
    insta::assert_snapshot!(first_input(&rig), @r"
    Fix the bug in lib.py, and look at main.py, no.py and @lib.py.

    <system-reminder>
    The files that the task names:

    `lib.py`:
    ```
    def old_name():
        return 1
    ```

    `main.py`:
    ```
    from lib import old_name

    print(old_name())
    ```
    </system-reminder>
    ");
    assert_eq!(
        (ran.code(), read_file(&rig, "lib.py").as_str()),
        (0, "def old_name():\n    return 2\n")
    );
}

#[test]
fn named_files_count_as_read_after_a_resume() {
    let write = json!({"path": "lib.py", "content": "x = 1\n"});
    let (rig, _) = small_run(
        [
            Reply::text("It returns 1."),
            Reply::call("write_to_file", write),
            Reply::text("Done."),
        ],
        "What does lib.py return?",
    );
    let profile = format!("models.\"mock/{}\".profile=\"small\"", crate::rig::MODEL);
    let ran = rig.task(&["-c", "--set", &profile, "Replace it by x = 1."]);
    assert_eq!(
        (ran.code(), read_file(&rig, "lib.py").as_str()),
        (0, "x = 1\n"),
        "{}",
        ran.stdout()
    );
}

#[test]
fn named_files_are_not_attached_against_a_read_rule_or_a_hook() {
    let rule = "permissions.deny=[\"Read(lib.py)\"]";
    for settings in [vec![rule], vec![]] {
        let rig = rig([Reply::text("Done.")]);
        rig.write("lib.py", "SECRET\n");
        if settings.is_empty() {
            crate::hooks::add_hooks(&rig, &[("PreToolUse", "Read", "exit 2")]);
        }
        let profile = format!("models.\"mock/{}\".profile=\"small\"", crate::rig::MODEL);
        let mut arguments = vec!["--set", profile.as_str()];
        for setting in &settings {
            arguments.extend(["--set", setting]);
        }
        arguments.push("Fix the bug in lib.py.");
        rig.task(&arguments);
        assert_eq!(first_input(&rig), "Fix the bug in lib.py.", "{settings:?}");
    }
}

/// In nineteen runs the error named a parameter that was not offered.
#[test]
fn ambiguous_edit_ends_in_the_call_to_send() {
    let edit = json!({"path": "main.py", "old_text": "old_name", "new_text": "new_name"});
    let call = "{\"name\":\"edit_file\",\"arguments\":{\"path\":\"main.py\",\"old_text\":\"old_name\",\"new_text\":\"new_name\",\"replace_all\":true}}";
    let (rig, ran) = small_run(
        [
            Reply::call("edit_file", edit),
            Reply::text(format!("```json\n{call}\n```")),
            Reply::text("Done."),
        ],
        "Use new_name in main.py.",
    );
    let results = tool_results(&rig);
    assert!(
        results[0].ends_with(&format!("send this call:\n{call}")),
        "{}",
        results[0]
    );
    assert_eq!(ran.code(), 0, "{}", ran.stdout());
    assert_eq!(
        read_file(&rig, "main.py"),
        "from lib import new_name\n\nprint(new_name())\n"
    );
}

#[test]
fn misfitting_edit_ends_in_the_only_call_it_can_mean() {
    let edit = json!({"path": "lib.py", "old_text": "return  1;", "new_text": "return  2;"});
    let call = "{\"name\":\"edit_file\",\"arguments\":{\"path\":\"lib.py\",\"old_text\":\"    return 1\",\"new_text\":\"    return 2\"}}";
    let (rig, _) = small_run(
        [
            Reply::call("edit_file", edit),
            Reply::text(call),
            Reply::text("Done."),
        ],
        "Return 2 in lib.py.",
    );
    assert!(
        tool_results(&rig)[0].ends_with(&format!("\nSend this call:\n{call}")),
        "{:?}",
        tool_results(&rig)
    );
    assert_eq!(read_file(&rig, "lib.py"), "def old_name():\n    return 2\n");
}

#[test]
fn unknown_tool_is_answered_with_the_file_and_one_call() {
    let add = json!({"path": "lib.py", "content": "def two():\n    return 2\n"});
    let (rig, _) = small_run(
        [
            Reply::call("add_function", add),
            Reply::text("I cannot."),
            Reply::text("I cannot."),
        ],
        "Add a function two to the library.",
    );
    insta::assert_snapshot!(tool_results(&rig)[0], @r#"
    There is no tool `add_function`.
    `lib.py`:
    ```
    def old_name():
        return 1
    ```
    Send this call:
    {"name":"edit_file","arguments":{"path":"lib.py","old_text":"    return 1","new_text":"    return 1\n\ndef two():\n    return 2"}}
    "#);
    let (rig, _) = small_run(
        [
            Reply::call("rename_function", json!({"old": "old_name", "new": "two"})),
            Reply::text("I cannot."),
            Reply::text("I cannot."),
        ],
        "Rename old_name to two in lib.py.",
    );
    insta::assert_snapshot!(tool_results(&rig)[0], @r#"
    There is no tool `rename_function`.
    Change `lib.py` with `edit_file`, with your texts in this call:
    {"name":"edit_file","arguments":{"path":"lib.py","old_text":"the text to replace, as it is in the file","new_text":"the new text"}}
    "#);
    // A name close to a tool's, with arguments that fit.
    let (rig, _) = small_run(
        [
            Reply::call(
                "edit_files",
                json!({"path": "lib.py", "old_text": "1", "new_text": "2"}),
            ),
            Reply::text("Done."),
        ],
        "What is this?",
    );
    assert!(tool_results(&rig)[0].ends_with("Send this call:\n{\"name\":\"edit_file\",\"arguments\":{\"path\":\"lib.py\",\"old_text\":\"1\",\"new_text\":\"2\"}}"), "{:?}", tool_results(&rig));
    // Nothing is named: only the offered tools are listed.
    let (rig, _) = small_run(
        [
            Reply::call("think", json!({})),
            Reply::call("think", json!({})),
            Reply::text("Well."),
        ],
        "What is this?",
    );
    for result in tool_results(&rig) {
        assert!(
            result.matches("`search_files`").count() == 1 && !result.contains("`todo_write`"),
            "{result}"
        );
    }
}

/// Models invent folders and names of files.
#[test]
fn wrong_path_is_answered_with_the_call_to_send() {
    let edit = |path: &str, old: &str, new: &str| {
        Reply::call(
            "edit_file",
            json!({"path": path, "old_text": old, "new_text": new}),
        )
    };
    for (reply, prompt, call) in [
        (
            edit("/elsewhere/lib.py", "return 1", "return 2"),
            "Return 2 in lib.py.",
            json!({"path": "lib.py", "old_text": "return 1", "new_text": "return 2"}),
        ),
        (
            edit("src/main.rs", "old_name", "new_name"),
            "Rename old_name to new_name in all files.",
            json!({"path": "main.py", "old_text": "old_name", "new_text": "new_name"}),
        ),
        (
            edit("src/rename.rs", "old_name", "new_name"),
            "Rename old_name to new_name in all files.",
            json!({"path": "lib.py", "old_text": "old_name", "new_text": "new_name", "replace_all": true}),
        ),
    ] {
        let (rig, _) = small_run([reply, Reply::text("No."), Reply::text("No.")], prompt);
        let printed = format!(
            "Send this call:\n{}",
            json!({"name": "edit_file", "arguments": call})
        );
        let result = tool_results(&rig).remove(0);
        assert!(result.ends_with(&printed), "{result}");
    }
    let (rig, _) = small_run(
        [
            edit("new.py", "", "x = 1\n"),
            Reply::text("No."),
            Reply::text("No."),
        ],
        "Move x to a new file new.py.",
    );
    let result = tool_results(&rig).remove(0);
    assert!(
        result.ends_with("If the file is to be created, send this call:\n{\"name\":\"write_to_file\",\"arguments\":{\"path\":\"new.py\",\"content\":\"x = 1\\n\"}}"),
        "{result}"
    );
}

/// A question is answered without a change.
#[test]
fn small_nudge_follows_an_unknown_tool_unless_the_prompt_is_a_question() {
    for (prompt, requests) in [
        ("Add a function two to lib.py.", 3),
        ("Which functions are in lib.py?", 2),
    ] {
        let (rig, ran) = small_run(
            [
                Reply::call("add_function", json!({"name": "two"})),
                Reply::text("It is done."),
                Reply::text("It is done."),
            ],
            prompt,
        );
        assert_eq!(rig.server.generation_requests().len(), requests, "{prompt}");
        assert_eq!(ran.result().get("nothing_changed").is_some(), requests == 3);
    }
    let (rig, _) = small_run(
        [
            Reply::call("add_function", json!({})),
            Reply::text("Done."),
            Reply::text("Done."),
        ],
        "Add a function two to lib.py.",
    );
    let sent = rig
        .server
        .generation_requests()
        .last()
        .unwrap()
        .json()
        .unwrap();
    let nudge = sent["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    insta::assert_snapshot!(nudge.as_str().unwrap(), @r"
    <system-reminder>
    No file was changed, because every change you tried failed. If the task needs a change, make it now with one call. Otherwise give your answer again.
    The task is: Add a function two to lib.py.
    </system-reminder>
    ");
}

#[test]
fn repeated_success_ends_as_completed() {
    let edit = || Reply::call("execute_command", json!({"command": "echo x > out.txt"}));
    let (rig, ran) = small_run((0..9).map(|_| edit()), "Write x to out.txt.");
    assert_eq!(
        (ran.code(), &ran.result()["outcome"], &ran.result()["code"]),
        (0, &json!("completed"), &json!("repeated")),
        "{}",
        ran.result()
    );
    let sent = rig.server.generation_requests();
    let asks = sent.iter().any(|request| {
        request
            .json()
            .unwrap()
            .to_string()
            .contains("If the task is done, say so.")
    });
    assert!(asks, "the model is asked");
}

/// A stub that was written as it was is no finished task. After a change it may be one.
#[test]
fn unchanged_write_asks_for_the_new_content_unless_it_is_a_repetition() {
    let write = |number: u32| {
        let content = format!("def old_name():\n    return {number}\n");
        Reply::call(
            "write_to_file",
            json!({"path": "lib.py", "content": content}),
        )
    };
    let (rig, _) = small_run(
        [write(1), write(2), write(2), Reply::text("Done.")],
        "Return 2 in lib.py.",
    );
    let results = tool_results(&rig);
    assert!(
        results[0]
            .ends_with("If the task needs a change, send the call again with the new content.")
            && results[2].ends_with("If the task is done, say so."),
        "{results:#?}"
    );
}

/// The same edit again is refused, since its text is gone. The task is done all the same.
#[test]
fn repeated_edit_that_succeeded_once_ends_as_completed() {
    let edit = || {
        Reply::call(
            "edit_file",
            json!({"path": "lib.py", "old_text": "return 1", "new_text": "return 22"}),
        )
    };
    let (_, ran) = small_run((0..12).map(|_| edit()), "Return 22 in lib.py.");
    assert_eq!(
        (
            ran.code(),
            &ran.result()["outcome"],
            ran.result().get("nothing_changed")
        ),
        (0, &json!("completed"), None),
        "{}",
        ran.result()
    );
}

#[test]
fn edit_names_the_places_it_left() {
    let edit = json!({"path": "lib.py", "old_text": "def old_name", "new_text": "def new_name"});
    let (rig, _) = small_run(
        [Reply::call("edit_file", edit.clone()), Reply::text("Done.")],
        "Rename old_name to new_name in lib.py and main.py.",
    );
    assert!(
        tool_results(&rig)[0].ends_with("\n`old_name` is still in `main.py` (line 1, 3). If the task means that too, send this call:\n{\"name\":\"edit_file\",\"arguments\":{\"path\":\"main.py\",\"old_text\":\"old_name\",\"new_text\":\"new_name\",\"replace_all\":true}}"),
        "{:?}",
        tool_results(&rig)
    );
    // The task is about one file: the others are named only.
    let (rig, _) = small_run(
        [Reply::call("edit_file", edit), Reply::text("Done.")],
        "Rename old_name to new_name in lib.py.",
    );
    assert!(
        tool_results(&rig)[0].ends_with("\n`old_name` is still in `main.py` (line 1, 3)."),
        "{:?}",
        tool_results(&rig)
    );
    let write = json!({"path": "lib.py", "content": "def new_name():\n    return 1\n"});
    let (rig, _) = small_run(
        [Reply::call("write_to_file", write), Reply::text("Done.")],
        "Rename old_name to new_name in lib.py, and in all files.",
    );
    assert!(
        tool_results(&rig)[0].contains("`old_name` is still in `main.py` (line 1, 3). If"),
        "{:?}",
        tool_results(&rig)
    );
}

#[test]
fn diff_as_content_is_refused() {
    let diff = "@@ -1,2 +1,2 @@\n def old_name():\n-    return 1\n+    return 2\n";
    for arguments in [
        json!({"path": "lib.py", "content": diff}),
        json!({"path": "lib.py", "content": format!("Edited `lib.py`:\n{diff}")}),
    ] {
        let (rig, ran) = small_run(
            [
                Reply::call("write_to_file", arguments),
                Reply::text("Done."),
                Reply::text("Done."),
            ],
            "Return 2 in lib.py.",
        );
        assert!(
            tool_results(&rig)[0].contains("this text is a diff"),
            "{:?}",
            tool_results(&rig)
        );
        assert_eq!(ran.result()["nothing_changed"], true);
        assert_eq!(read_file(&rig, "lib.py"), "def old_name():\n    return 1\n");
    }
    let patch = json!({"path": "fix.patch", "content": diff});
    let (rig, _) = small_run(
        [Reply::call("write_to_file", patch), Reply::text("Done.")],
        "Write fix.patch.",
    );
    assert_eq!(read_file(&rig, "fix.patch"), diff);
}

#[test]
fn empty_search_explains_what_is_searched() {
    let search = json!({"path": ".", "regex": "lib.py"});
    let (rig, ran) = small_run(
        [
            Reply::call("search_files", search),
            Reply::text("The function is renamed."),
        ],
        "Rename old_name in lib.py.",
    );
    assert!(tool_results(&rig)[0].ends_with("`search_files` searches the content of files, not their names. Find a file by its name with `list_files`."), "{:?}", tool_results(&rig));
    assert_eq!(
        ran.result()["nothing_changed"],
        true,
        "a search is no change"
    );
}

/// A model that saw the program changed it when it failed.
#[test]
fn files_to_run_are_not_attached() {
    let (rig, _) = small_run(
        [Reply::text("Done.")],
        "Run main.py and tell me what it prints.",
    );
    assert_eq!(first_input(&rig), "Run main.py and tell me what it prints.");
    let (rig, _) = small_run([Reply::text("Done.")], "Run main.py and fix its error.");
    assert!(first_input(&rig).contains("`main.py`:"));
}

/// A run of Python leaves a cache behind, which is no change that a task asks for.
#[test]
fn caches_are_no_changes() {
    let command = "mkdir -p __pycache__ && echo x > __pycache__/lib.pyc";
    let (_, ran) = small_run(
        [
            Reply::call("execute_command", json!({"command": command})),
            Reply::text("Fixed."),
        ],
        "Fix the bug in lib.py.",
    );
    assert_eq!(ran.result()["nothing_changed"], true, "{}", ran.result());
}

#[test]
fn doubled_braces_and_triple_quotes_run_and_are_named() {
    let text = "<tools>\n{{\"name\": \"write_to_file\", \"arguments\": {{\"path\": \"a.txt\", \"content\": \"\"\"one\ntwo\n\"\"\"}}}}\n</tools>";
    let (rig, _) = small_run([Reply::text(text), Reply::text("Done.")], "Write a.txt.");
    assert_eq!(read_file(&rig, "a.txt"), "one\ntwo\n");
    assert!(
        tool_results(&rig)[0].contains("Doubled braces or triple quotes were read as JSON"),
        "{:?}",
        tool_results(&rig)
    );
}

#[test]
fn xml_states_each_error_once() {
    let read = "<read_file>\n<path>nope.txt</path>\n</read_file>";
    for (profile, count) in [("small", 1), ("full", 2)] {
        let settings = "tool_protocol=\"xml\"";
        let rig = rig([
            Reply::text(read),
            Reply::text("<attempt_completion>\n<result>None.</result>\n</attempt_completion>"),
        ]);
        let own = format!("models.\"mock/{}\".", crate::rig::MODEL);
        rig.task(&[
            "--set",
            &format!("{own}{settings}"),
            "--set",
            &format!("{own}profile=\"{profile}\""),
            "look",
        ]);
        let sent = rig
            .server
            .generation_requests()
            .last()
            .unwrap()
            .json()
            .unwrap();
        let last = sent["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        assert_eq!(
            last.matches("`nope.txt` does not exist").count(),
            count,
            "{profile}: {last}"
        );
    }
}

/// In text protocols such a model answers in plain text when it is done, or completes beside its
/// calls.
#[test]
fn text_protocols_accept_the_answers_of_small_models() {
    let write = "<write_to_file>\n<path>a.txt</path>\n<content>\nx\n</content>\n</write_to_file>";
    let done = "<attempt_completion>\n<result>Written.</result>\n</attempt_completion>";
    for (replies, requests) in [
        (vec![write.to_owned(), "It is written.".to_owned()], 2),
        (vec![format!("{done}\n{write}")], 1),
        (vec![format!("{write}\n{done}")], 1),
        (
            vec!["Nothing to do.".to_owned(), "Nothing to do.".to_owned()],
            2,
        ),
    ] {
        let rig = rig(replies.iter().map(|reply| Reply::text(reply.clone())));
        let own = format!("models.\"mock/{}\".", crate::rig::MODEL);
        let ran = rig.task(&[
            "--set",
            &format!("{own}tool_protocol=\"xml\""),
            "--set",
            &format!("{own}profile=\"small\""),
            "write a.txt",
        ]);
        assert_eq!(
            (ran.code(), &ran.result()["outcome"]),
            (0, &json!("completed")),
            "{replies:?}"
        );
        assert_eq!(
            rig.server.generation_requests().len(),
            requests,
            "{replies:?}"
        );
    }
}

/// What is added for small models must not reach others, whose requests stay the same bytes.
#[test]
fn larger_profiles_get_no_guidance() {
    let rig = rig([
        Reply::call(
            "edit_file",
            json!({"path": "letter.txt", "old_text": "recieve", "new_text": "receive"}),
        ),
        Reply::call(
            "edit_file",
            json!({"path": "letter.txt", "old_text": "we recieve", "new_text": "we receive"}),
        ),
        Reply::call("search_files", json!({"path": ".", "regex": "letter.txt"})),
        Reply::call("add_function", json!({"path": "letter.txt"})),
        Reply::call(
            "write_to_file",
            json!({"path": "fix.txt", "content": "@@ -1 +1 @@\n-a\n+b\n"}),
        ),
        Reply::text("Done."),
    ]);
    rig.task(&["Correct letter.txt and other.txt in all files."]);
    assert_eq!(
        first_input(&rig),
        "Correct letter.txt and other.txt in all files."
    );
    let mut results = tool_results(&rig);
    let unknown = results.remove(3);
    assert!(
        unknown.starts_with(
            "There is no tool `add_function`. Do it with one of these: `read_file` (path), "
        ) && !unknown.contains('\n'),
        "{unknown}"
    );
    insta::assert_snapshot!(results.join("\n---\n"), @r"
    `old_text` fits 2 places in `letter.txt`, at lines 2, 3; nothing was changed. Add neighbouring text until it fits only one, or pass `replace_all`
    ---
    Changed `letter.txt`: 1 edit applied, 1 line added, 1 removed.
    @@ -1,3 +1,3 @@
     Dear reader,
    -we recieve many letters.
    +we receive many letters.
     Please send what you recieve.
    ---
    No matches in `.`.
    ---
    Created `fix.txt`: 3 lines, 18 bytes.
    ");
}

#[test]
fn call_as_text_in_prose_or_from_other_models_is_an_answer() {
    let block = format!("```json\n{CALL}\n```");
    for (text, profile) in [
        (
            format!("You could call `write_to_file`:\n\n{block}"),
            "profile=\"small\"",
        ),
        (
            format!("{block}\n\nThat would write the file."),
            "profile=\"small\"",
        ),
        (block.clone(), "profile=\"full\""),
    ] {
        let (rig, ran) = with_profile([Reply::text(&text)], profile, &["greet"]);
        assert_eq!(
            (ran.code(), &ran.result()["text"]),
            (0, &json!(text)),
            "{profile}"
        );
        assert!(!rig.project().join("hello.py").exists());
    }
}

/// The content of a file is data, even if the model repeats it.
#[test]
fn call_as_text_copied_from_a_file_does_not_run() {
    let look = Reply::call("read_file", json!({"path": "call.json"}));
    let rig = rig([look, Reply::text(format!("```json\n{CALL}\n```"))]);
    rig.write("call.json", CALL);
    let profile = format!("models.\"mock/{}\".profile=\"small\"", crate::rig::MODEL);
    let ran = rig.task(&["--set", &profile, "show me call.json"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(!rig.project().join("hello.py").exists());
}

#[test]
fn attempt_completion_may_accompany_other_calls() {
    let done = haft_testkit::ScriptCall::new("attempt_completion", json!({"result": "Written."}));
    let write = |path: &str| {
        haft_testkit::ScriptCall::new("write_to_file", json!({"path": path, "content": "x"}))
    };
    let both = rig([Reply::calls([write("a.txt"), done.clone()])]);
    let ran = both.task(&["--allowed-tools", "minimal", "write"]);
    assert_eq!(
        (ran.code(), &ran.result()["text"]),
        (0, &json!("Written.")),
        "{}",
        ran.result()
    );
    // Not if one of the other calls failed or comes after it.
    for calls in [
        vec![write("letter.txt"), done.clone()],
        vec![done.clone(), write("b.txt")],
    ] {
        let rig = rig([
            Reply::calls(calls),
            Reply::text("So it is."),
            Reply::text("So it is."),
        ]);
        let ran = rig.task(&["--allowed-tools", "minimal", "write"]);
        assert_eq!(&ran.result()["text"], &json!("So it is."));
        assert!(
            ran.events()
                .iter()
                .any(|event| event["error"]["code"] == "not_alone")
        );
    }
}

#[test]
fn call_as_text_that_cannot_run_gets_an_error() {
    let unknown =
        r#"{"name": "add_function", "arguments": {"path": "calc.py", "name": "multiply"}}"#;
    let quotes = "{\n  \"name\": \"write_to_file\",\n  \"arguments\": {\n    \"path\": \"hello.py\",\n    \"content\": \"\"\"print('Hello\\n')\n\"\"\"\n  }\n}";
    for (call, why) in [
        (unknown, "There is no tool `add_function`"),
        (quotes, "Send one JSON object"),
    ] {
        let replies = [
            Reply::text(format!("```json\n{call}\n```")),
            Reply::text(CALL),
            Reply::text("Done."),
        ];
        let (rig, ran) = with_profile(replies, "profile=\"small\"", &["greet"]);
        assert_eq!(
            (ran.code(), &ran.result()["text"]),
            (0, &json!("Done.")),
            "{call}: {}",
            ran.stderr()
        );
        let results = tool_results(&rig);
        assert!(
            results.len() == 2 && results[0].contains(why),
            "{call}: {results:?}"
        );
        assert!(
            rig.project().join("hello.py").exists(),
            "the second one is right"
        );
        // llama.cpp answers with status 500 if a request holds arguments that its template cannot
        // parse.
        let sent = rig.server.generation_requests();
        let message =
            &sent[1].json().unwrap()["messages"][2]["tool_calls"][0]["function"]["arguments"];
        let arguments: Value = serde_json::from_str(message.as_str().unwrap()).unwrap();
        assert!(arguments.is_object(), "{call}: {arguments}");
        assert!(
            rig.server.refusals().is_empty(),
            "{:?}",
            rig.server.refusals()
        );
    }
}

#[test]
fn react_keeps_turns_and_drops_invented_results() {
    let invented = "Thought: I read the letter first.\nAction: read_file[{\"path\": \"letter.txt\"}]\n\
                    Observation: The letter says receive.\nThought: It is right.\nAction: Finish[Nothing to do.]";
    let end = Reply::text("Thought: I have read it.\nAction: Finish[It says recieve twice.]");
    let (rig, ran) = with_profile(
        [Reply::text(invented), end],
        "tool_protocol=\"react\"",
        &["look"],
    );
    assert_eq!(
        (ran.code(), &ran.result()["text"]),
        (0, &json!("It says recieve twice.")),
        "{}",
        ran.stderr()
    );
    let requests = rig.server.generation_requests();
    assert_eq!(requests.len(), 2);
    let body = requests[1].json().unwrap();
    assert_eq!(body["stop"], json!(["\n[tool]", "\nObservation:"]));
    let messages = body["messages"].as_array().unwrap();
    let own: Vec<_> = messages
        .iter()
        .filter(|message| message["role"] == "assistant")
        .collect();
    let written =
        "Thought: I read the letter first.\nAction: read_file[{\"path\": \"letter.txt\"}]";
    assert!(own.len() == 1 && own[0]["content"] == written, "{body}");
    assert_eq!(
        body.to_string().matches("we recieve many letters.").count(),
        1,
        "its content is sent once: {body}"
    );
}
