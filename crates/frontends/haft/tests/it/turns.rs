//! The end of turns, and their continuation.

use haft_testkit::{Reply, Script, ScriptCall, SeenRole, Stop};
use haft_types::{Api, Usage};
use serde_json::json;

use crate::rig::{MODEL, Rig};

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::turns(replies).unwrap())
}

#[test]
fn text_output_is_the_answer_alone() {
    let rig = rig([
        Reply::call("list_files", json!({"path": "."})),
        Reply::text("Nothing here."),
    ]);
    let ran = rig.run(&["run", "what is here?"]);
    assert_eq!((ran.code(), ran.stdout().as_str()), (0, "Nothing here.\n"));
    assert_eq!(ran.stderr(), "• List .\n");
}

#[test]
fn json_output_is_the_result_alone() {
    let usage = Usage {
        input: 1_000_000,
        cached_input: 1_000_000,
        output: 100_000,
        ..Usage::default()
    };
    let rig = rig([Reply::text("Hello.").with_usage(usage)]);
    let result = rig.run(&["run", "--output-format", "json", "hi"]).json();
    assert_eq!(result["type"], "result");
    assert_eq!(
        (&result["outcome"], &result["text"], &result["turns"]),
        (&json!("completed"), &json!("Hello."), &json!(1))
    );
    assert_eq!(
        result["usage"],
        json!({"input": 1_000_000, "cached_input": 1_000_000, "cache_write": 0, "output": 100_000, "reasoning": 0})
    );
    assert!(
        (result["cost"]["total"].as_f64().unwrap() - 4.8).abs() < 1e-9,
        "{result}"
    );
}

#[test]
fn events_start_with_the_conversation_and_have_no_gaps() {
    let rig = rig([
        Reply::call("list_files", json!({"path": "."})),
        Reply::text("Done."),
    ]);
    let events = rig.task(&["look"]).events();
    assert_eq!(
        (&events[0]["type"], &events[0]["resumed"]),
        (&json!("conversation"), &json!(false))
    );
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], json!(index + 1));
        assert_eq!(
            (&event["agent"], &event["conversation_id"]),
            (&json!("main"), &events[0]["conversation_id"])
        );
    }
}

#[test]
fn call_without_permission_is_denied_with_exit_code_3() {
    for (tool, arguments, advice) in [
        (
            "write_to_file",
            json!({"path": "a.txt", "content": "x"}),
            "`haft permissions add \"write_to_file(a.txt)\"`, or `--permission-mode accept-edits`",
        ),
        (
            "execute_command",
            json!({"command": "touch a.txt", "requires_approval": false}),
            "`haft permissions add \"execute_command(touch a.txt)\"`, or `--permission-mode auto`",
        ),
    ] {
        let rig = rig([
            Reply::call(tool, arguments),
            Reply::text("I may not do that."),
        ]);
        let ran = rig.run(&["run", "make a.txt"]);
        assert_eq!(ran.code(), 3, "{}", ran.stderr());
        assert!(ran.stderr().contains(advice), "{}", ran.stderr());
        assert!(!rig.project().join("a.txt").exists());
        let told = rig.server.generation_requests()[1].decode().unwrap();
        assert!(
            told.last_message_contains("nobody can be asked"),
            "the model is told"
        );
    }
}

#[test]
fn question_waits_and_the_answer_becomes_its_result() {
    let ask = Reply::call(
        "ask_followup_question",
        json!({"question": "Tabs or spaces?", "options": ["tabs", "spaces"]}),
    );
    let rig = rig([ask, Reply::text("Spaces it is.")]);
    let asked = rig.task(&["format it"]);
    assert_eq!(
        (asked.code(), asked.result()["outcome"].clone()),
        (3, json!("waiting"))
    );
    assert_eq!(
        rig.task(&["-c"]).code(),
        3,
        "without an answer it still waits"
    );
    assert_eq!(
        rig.server.generation_requests().len(),
        1,
        "waiting asks no model"
    );
    let answered = rig.task(&["-c", "spaces"]);
    assert_eq!(
        (answered.code(), answered.result()["text"].clone()),
        (0, json!("Spaces it is."))
    );
    let seen = rig.server.generation_requests()[1].decode().unwrap();
    assert_eq!(seen.count_tool_results(), 1);
    assert!(seen.last_message_contains("spaces"));
    assert_eq!(
        rig.export()["messages"].as_array().unwrap().len(),
        4,
        "the answer is the result, not a message beside it"
    );
}

#[test]
fn continue_without_a_prompt_repeats_the_last_answer() {
    let rig = rig([Reply::text("Done.")]);
    assert_eq!(rig.task(&["do it"]).code(), 0);
    let again = rig.task(&["-c"]);
    assert_eq!(
        (again.code(), again.result()["text"].clone()),
        (0, json!("Done."))
    );
    assert_eq!(
        rig.server.generation_requests().len(),
        1,
        "and asks no model for it"
    );
}

#[test]
fn continue_and_resume_only_append_messages() {
    let rig = rig([
        Reply::text("One."),
        Reply::text("Two."),
        Reply::text("Three."),
    ]);
    rig.task(&["first"]);
    rig.task(&["-c", "second"]);
    let id = rig.export()["id"].as_str().unwrap().to_owned();
    rig.task(&["-r", &id[..8], "third"]);
    let requests: Vec<_> = rig
        .server
        .generation_requests()
        .iter()
        .map(|request| request.decode().unwrap())
        .collect();
    assert_eq!(
        requests
            .iter()
            .map(|request| request.messages.len())
            .collect::<Vec<_>>(),
        [3, 5, 7]
    );
    assert_eq!(requests[2].messages[..5], requests[1].messages[..]);
    assert_eq!(requests[2].system, requests[0].system);
}

#[test]
fn limits_end_the_run_as_exhausted() {
    let look = || {
        Reply::call("list_files", json!({"path": "."})).with_usage(Usage {
            input: 1_000_000,
            ..Usage::default()
        })
    };
    for (flags, code) in [
        (["--max-turns", "2"], "max_turns"),
        (["--max-budget-usd", "5"], "max_budget"),
    ] {
        let rig = rig([look(), look(), look(), look()]);
        let ran = rig.task(&[flags[0], flags[1], "look"]);
        assert_eq!((ran.code(), ran.result()["code"].clone()), (4, json!(code)));
        assert_eq!(rig.server.generation_requests().len(), 2);
    }
}

#[test]
fn open_todos_are_nudged_without_opening_a_round() {
    let todo = |status: &str| {
        Reply::call(
            "todo_write",
            json!({"todos": [{"content": "a", "status": status}]}),
        )
    };
    let rig = rig([
        todo("pending"),
        Reply::text("I think I am done."),
        todo("completed"),
        Reply::text("Done."),
    ]);
    let ran = rig.task(&["do a"]);
    assert_eq!(
        (ran.code(), ran.result()["text"].clone()),
        (0, json!("Done."))
    );
    let rounds: Vec<_> = ran
        .events()
        .iter()
        .filter(|event| event["type"] == "window")
        .map(|event| event["round"].clone())
        .collect();
    assert_eq!(rounds, [1, 1, 1, 1]);
    assert!(
        rig.server.generation_requests()[2]
            .decode()
            .unwrap()
            .last_message_contains("open items")
    );
}

#[test]
fn call_cut_by_the_output_limit_never_runs() {
    let cut = Reply {
        stop: Some(Stop::Length),
        ..Reply::call("write_to_file", json!({"path": "a.txt", "content": "half"}))
    };
    // A write that failed is followed by one nudge.
    let rig = rig([cut, Reply::text("Sorry."), Reply::text("Sorry again.")]);
    let ran = rig.task(&["write"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(!rig.project().join("a.txt").exists());
    let error = ran
        .events()
        .into_iter()
        .find(|event| event["type"] == "tool_result")
        .unwrap();
    assert_eq!(error["error"]["code"], "cut");
}

#[test]
fn reply_cut_by_the_output_limit_is_continued_as_one() {
    let usage = |output| Usage {
        input: 100,
        output,
        ..Usage::default()
    };
    let cut = |text: &str| Reply {
        stop: Some(Stop::Length),
        ..Reply::text(text).with_usage(usage(10))
    };
    for prefill in ["false", "true"] {
        let replies = [
            cut("One, two,"),
            cut(" three, fo"),
            Reply::text("ur.").with_usage(usage(5)),
        ];
        let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap());
        let capable = format!("models.\"mock/{MODEL}\".capabilities.prefill={prefill}");
        let ran = rig.task(&["--set", &capable, "count to four"]);
        assert_eq!(
            (ran.code(), ran.result()["text"].clone()),
            (0, json!("One, two, three, four.")),
            "{}",
            ran.stderr()
        );
        assert_eq!(
            ran.result()["usage"]["output"],
            25,
            "the usage of all requests"
        );
        assert!(
            rig.server.refusals().is_empty(),
            "{:?}",
            rig.server.refusals()
        );
        let messages = rig.export()["messages"].as_array().unwrap().clone();
        assert_eq!(messages.len(), 2, "one message");
        assert_eq!(messages[1]["content"], "One, two, three, four.");
        let last = rig.server.generation_requests()[2].decode().unwrap();
        if prefill == "true" {
            assert_eq!(last.messages.last().unwrap().role, SeenRole::Assistant);
        } else {
            assert!(last.last_message_contains("exactly where it stopped"));
        }
    }
}

#[test]
fn reply_cut_repeatedly_exhausts_the_turn() {
    let cut = Reply {
        stop: Some(Stop::Length),
        times: Some(20),
        ..Reply::text("and on ")
    };
    let rig = Rig::new(Api::OpenaiChat, Script::replies([cut]).unwrap());
    let ran = rig.task(&["never end"]);
    assert_eq!(
        (ran.code(), ran.result()["code"].clone()),
        (4, json!("output_limit")),
        "{}",
        ran.stderr()
    );
    assert_eq!(
        rig.server.generation_requests().len(),
        6,
        "the reply and five continuations"
    );
}

#[test]
fn broken_arguments_never_run() {
    for arguments in [
        r#"{"path": "a.txt", "content": "x""#,
        r#"{"path": "a.txt", "path": "b.txt", "content": "x"}"#,
        "[]",
    ] {
        let call = Reply::calls([ScriptCall::new("write_to_file", json!(arguments))]);
        let rig = Rig::new(
            Api::OpenaiChat,
            // A write that failed is followed by one nudge.
            Script::turns([call, Reply::text("Sorry."), Reply::text("Sorry again.")]).unwrap(),
        );
        let ran = rig.task(&["write"]);
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
        let files = std::fs::read_dir(rig.project()).unwrap().count();
        assert_eq!(files, 0, "{arguments}");
        assert!(
            rig.server.refusals().is_empty(),
            "{:?}",
            rig.server.refusals()
        );
    }
}

#[test]
fn dropped_connection_is_retried_and_shown() {
    let dropped = Reply {
        drop_after_bytes: Some(300),
        times: Some(1),
        ..Reply::text("half of this sentence never arrives")
    };
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([dropped, Reply::text("Whole.")]).unwrap(),
    );
    let ran = rig.task(&["say it"]);
    assert_eq!(
        (ran.code(), ran.result()["text"].clone()),
        (0, json!("Whole.")),
        "{}",
        ran.stderr()
    );
    let retry = ran
        .events()
        .into_iter()
        .find(|event| event["type"] == "retry")
        .expect("a retry event");
    assert_eq!((&retry["attempt"], &retry["limit"]), (&json!(1), &json!(5)));
    assert_eq!(rig.export()["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn piped_input_is_the_task_or_an_attachment() {
    use std::io::Write;
    for (arguments, expected) in [
        (vec!["run"], "from the pipe"),
        (
            vec!["run", "explain"],
            "explain\n\n<stdin>\nfrom the pipe\n</stdin>",
        ),
    ] {
        let rig = rig([Reply::text("Yes.")]);
        let mut child = rig
            .command(&arguments)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(b"from the pipe\n")
            .unwrap();
        assert!(child.wait().unwrap().success());
        let seen = rig.server.generation_requests()[0].decode().unwrap();
        assert_eq!(seen.texts(SeenRole::User)[1].trim_end(), expected);
    }
}

#[test]
fn continue_can_edit_a_file_read_in_an_earlier_turn() {
    let rig = rig([
        Reply::call("read_file", json!({"path": "a.txt"})),
        Reply::text("I read it."),
        Reply::call(
            "write_to_file",
            json!({"path": "a.txt", "content": "new\n"}),
        ),
        Reply::text("Written."),
    ]);
    rig.write("a.txt", "old\n");
    rig.task(&["read it"]);
    let ran = rig.task(&["-c", "overwrite it"]);
    assert_eq!(ran.code(), 0);
    assert_eq!(
        std::fs::read_to_string(rig.project().join("a.txt")).unwrap(),
        "new\n",
        "{}",
        ran.stdout()
    );
}

const NUMBER_SCHEMA: &str =
    r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;

#[test]
fn json_schema_mismatch_is_asked_for_again() {
    let rig = rig([
        Reply::text("It is three."),
        Reply::text("{\"n\": \"3\"}"),
        Reply::text("{\"n\": 3}"),
    ]);
    let ran = rig.task(&["--json-schema", NUMBER_SCHEMA, "count"]);
    assert_eq!(
        (ran.code(), ran.result()["structured_output"].clone()),
        (0, json!({"n": 3})),
        "{:?}",
        ran.result()
    );
    let told: Vec<_> = rig
        .server
        .generation_requests()
        .iter()
        .map(|request| request.decode().unwrap())
        .collect();
    assert!(
        told[0].last_message_contains("fit this JSON schema")
            && told[1].last_message_contains("not one JSON value")
    );
    assert!(told[2].last_message_contains("`/n`"));
}

#[test]
fn json_schema_mismatch_finally_fails_the_turn() {
    let rig = rig((0..4).map(|_| Reply::text("Three.")));
    let ran = rig.task(&["--json-schema", NUMBER_SCHEMA, "count"]);
    assert_eq!(
        (ran.code(), ran.result()["code"].clone()),
        (1, json!("schema"))
    );
    assert_eq!(ran.result().get("structured_output"), None);
    assert_eq!(rig.server.generation_requests().len(), 4);
    for bad in ["{\"type\": 3}", "{", "/nonexistent.json"] {
        assert_eq!(
            rig.task(&["--json-schema", bad, "count"]).code(),
            2,
            "{bad}"
        );
    }
}

#[test]
fn reply_with_too_many_calls_runs_only_some() {
    let many = (0..2_000)
        .map(|number| ScriptCall::new("list_files", json!({"path": format!("{number}")})));
    for api in Api::ALL {
        let rig = Rig::new(
            api,
            Script::replies([Reply::calls(many.clone()), Reply::text("Done.")]).unwrap(),
        );
        let ran = rig.task(&["go"]);
        assert_eq!(ran.code(), 0, "{api}: {}", ran.stderr());
        assert!(
            rig.server.refusals().is_empty(),
            "{api}: {:?}",
            rig.server.refusals()
        );
        let events = ran.events();
        assert_eq!(
            events
                .iter()
                .filter(|event| event["type"] == "tool_result")
                .count(),
            128,
            "{api}"
        );
        let notice = events
            .iter()
            .find(|event| event["code"] == "too_many_calls")
            .expect("a notice");
        assert!(
            notice["message"].as_str().unwrap().contains("2000"),
            "{notice}"
        );
    }
}

#[test]
fn tool_call_events_carry_the_name_in_every_phase() {
    let calls = [
        ScriptCall::new("list_files", json!({"path": "."})),
        ScriptCall::new("glob", json!({"pattern": "*"})),
    ];
    for api in Api::ALL {
        let rig = Rig::new(
            api,
            Script::replies([Reply::calls(calls.clone()), Reply::text("Done.")]).unwrap(),
        );
        let ran = rig.task(&["look"]);
        let events = ran.events();
        let told: Vec<_> = events
            .iter()
            .filter(|event| event["type"] == "tool_call")
            .collect();
        assert!(told.len() >= 4, "{api}: {told:?}");
        for event in told {
            let name = event["name"].as_str().unwrap();
            assert!(["list_files", "glob"].contains(&name), "{api}: {event}");
        }
    }
}
