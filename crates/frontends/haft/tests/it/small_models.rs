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
            [call, Reply::text(end)],
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
            told.contains("Do it with one of these: `read_file` (path)"),
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
    assert_eq!(offered("edit_file"), ["path", "old_text", "new_text"]);
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
    let quotes = "{\n  \"name\": \"write_to_file\",\n  \"arguments\": {\n    \"path\": \"hello.py\",\n    \"content\": \"\"\"print('Hello')\n\"\"\"\n  }\n}";
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
