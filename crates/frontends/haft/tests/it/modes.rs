//! Plan mode, goals and reviews.

use std::process::Command;

use haft_testkit::{Reply, Script};
use haft_types::{Api, Usage};
use serde_json::{Value, json};

use crate::rig::Rig;

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::turns(replies).unwrap())
}

fn offered_tools(body: &[u8]) -> Vec<String> {
    let body: Value = serde_json::from_slice(body).unwrap();
    let names = body["tools"].as_array().unwrap().iter();
    names
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn plan_waits_for_the_user_and_is_then_carried_out() {
    let plan = Reply::call(
        "plan_mode_respond",
        json!({"response": "1. Write a.txt.", "options": ["go", "stop"]}),
    );
    let write = || Reply::call("write_to_file", json!({"path": "a.txt", "content": "x\n"}));
    let rig = rig([write(), plan, write(), Reply::text("Done.")]);
    let planned = rig.run(&[
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "plan",
        "make a.txt",
    ]);
    assert_eq!(planned.code(), 3, "{}", planned.stderr());
    let result = planned.result();
    assert_eq!(
        (&result["code"], &result["text"]),
        (&json!("plan"), &json!("1. Write a.txt."))
    );
    let event = planned
        .events()
        .into_iter()
        .find(|event| event["type"] == "plan")
        .unwrap();
    assert_eq!(
        (&event["response"], &event["options"]),
        (&json!("1. Write a.txt."), &json!(["go", "stop"]))
    );
    assert!(
        !rig.project().join("a.txt").exists(),
        "nothing changes in plan mode"
    );

    let done = rig.run(&["run", "-c", "--permission-mode", "accept-edits", "go"]);
    assert_eq!(
        (done.code(), done.stdout().as_str()),
        (0, "Done.\n"),
        "{}",
        done.stderr()
    );
    assert!(rig.project().join("a.txt").exists());
    let requests = rig.server.generation_requests();
    let told = requests[2].decode().unwrap();
    assert!(
        told.last_message_contains("The user answered: go\n\nPlan mode is over"),
        "{:?}",
        told.messages.last()
    );
    assert!(offered_tools(&requests[0].body).contains(&"plan_mode_respond".to_owned()));
    assert!(
        !offered_tools(&requests[2].body).contains(&"plan_mode_respond".to_owned()),
        "outside plan mode it costs nothing"
    );
}

#[test]
fn plan_is_revised_without_leaving_plan_mode() {
    let plan = |text: &str| Reply::call("plan_mode_respond", json!({ "response": text }));
    let rig = rig([plan("One."), plan("Two.")]);
    assert_eq!(
        rig.run(&["run", "--permission-mode", "plan", "plan it"])
            .code(),
        3
    );
    let again = rig.run(&["run", "-c", "--permission-mode", "plan", "shorter"]);
    assert_eq!((again.code(), again.stdout().as_str()), (3, "Two.\n"));
    let told = rig.server.generation_requests()[1].decode().unwrap();
    assert!(
        told.last_message_contains("shorter") && !told.last_message_contains("Plan mode is over")
    );
}

#[test]
fn goal_ends_only_with_attempt_completion() {
    let look = || Reply::call("list_files", json!({"path": "."}));
    let done = Reply::call("attempt_completion", json!({"result": "All of it holds."}));
    let words = || Reply::text("I think that is enough.");
    // The model calls a tool between two nudges, so the number of nudges is not limited.
    let rig = rig([
        words(),
        look(),
        words(),
        look(),
        words(),
        look(),
        words(),
        look(),
        done,
    ]);
    let ran = rig.task(&[
        "--goal",
        "--max-turns",
        "20",
        "--max-budget-usd",
        "5",
        "make it hold",
    ]);
    assert_eq!(
        (ran.code(), ran.result()["text"].clone()),
        (0, json!("All of it holds.")),
        "{}",
        ran.stderr()
    );
    let first = rig.server.generation_requests()[0].decode().unwrap();
    assert!(first.last_message_contains("make it hold\n\n(This is a goal:"));
    let nudged = rig.server.generation_requests()[1].decode().unwrap();
    assert!(nudged.last_message_contains("not reported as reached"));
    assert!(
        nudged.last_message_contains("Used so far: 1 of 20 replies, $0.0"),
        "{:?}",
        nudged.messages.last()
    );
    let rounds = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "window")
        .map(|event| event["round"].clone());
    assert!(
        rounds.into_iter().all(|round| round == 1),
        "it is all one round"
    );
}

#[test]
fn goal_ends_at_its_budget_or_if_the_model_is_idle() {
    let costly = || {
        Reply::text("Hm.").with_usage(Usage {
            input: 1_000_000,
            ..Usage::default()
        })
    };
    let rig_ = rig([costly(), costly(), costly()]);
    let ran = rig_.task(&["--goal", "--max-budget-usd", "5", "reach it"]);
    assert_eq!(
        (ran.code(), ran.result()["code"].clone()),
        (4, json!("max_budget"))
    );
    assert_eq!(rig_.server.generation_requests().len(), 2);

    let idle = rig([
        Reply::text("One."),
        Reply::text("Two."),
        Reply::text("Three."),
        Reply::text("Four."),
    ]);
    let ran = idle.task(&["--goal", "--max-turns", "50", "reach it"]);
    assert_eq!(
        (ran.code(), ran.result()["code"].clone()),
        (3, json!("goal_not_reached"))
    );
    assert_eq!(idle.server.generation_requests().len(), 4);
}

#[test]
fn goal_is_rejected_without_limit_or_in_plan_mode() {
    let rig = rig([]);
    for (flags, said) in [
        (vec![], "--max-budget-usd"),
        (
            vec!["--max-turns", "3", "--permission-mode", "plan"],
            "plan mode",
        ),
    ] {
        let ran = rig.run(&[&["run", "--goal"], flags.as_slice(), &["x"]].concat());
        assert_eq!(ran.code(), 2);
        assert!(ran.stderr().contains(said), "{}", ran.stderr());
    }
}

fn run_git(rig: &Rig, arguments: &[&str]) {
    let identity = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.com",
        "-c",
        "init.defaultBranch=main",
    ];
    let status = Command::new("git")
        .args(identity)
        .args(arguments)
        .current_dir(rig.project())
        .output()
        .unwrap();
    assert!(
        status.status.success(),
        "{}",
        String::from_utf8_lossy(&status.stderr)
    );
}

/// A repository with one commit on `main`, one more on a branch, and uncommitted changes.
fn rig_with_branch(replies: impl IntoIterator<Item = Reply>) -> Rig {
    let rig = Rig::untrusted(Api::Anthropic, Script::turns(replies).unwrap());
    run_git(&rig, &["init", "-q"]);
    rig.write("a.txt", "one\n");
    run_git(&rig, &["add", "."]);
    run_git(&rig, &["commit", "-qm", "first"]);
    run_git(&rig, &["checkout", "-qb", "topic"]);
    rig.write("a.txt", "two\n");
    run_git(&rig, &["commit", "-qam", "second"]);
    rig.write("a.txt", "three\n");
    rig.write("new.txt", "new\n");
    rig
}

#[test]
fn review_reads_the_change_and_cannot_write() {
    let write = Reply::call(
        "write_to_file",
        json!({"path": "a.txt", "content": "worse\n"}),
    );
    let rig = rig_with_branch([write, Reply::text("The change is correct.")]);
    let refused = rig.run(&["review"]);
    assert_eq!(refused.code(), 2, "not before trust");
    assert!(
        refused.stderr().contains("haft trust"),
        "{}",
        refused.stderr()
    );
    assert_eq!(rig.run(&["trust"]).code(), 0);

    let ran = rig.run(&["review", "the numbers"]);
    assert!(
        ran.stdout().ends_with("The change is correct.\n"),
        "{}",
        ran.stderr()
    );
    assert_eq!(
        std::fs::read_to_string(rig.project().join("a.txt")).unwrap(),
        "three\n"
    );
    let requests = rig.server.generation_requests();
    let asked = requests[0].decode().unwrap();
    for part in [
        "-two\n+three",
        "New files that git does not know yet; read them:\nnew.txt",
        "above all: the numbers",
    ] {
        assert!(asked.last_message_contains(part), "{part}");
    }
    assert!(
        !asked.last_message_contains("-one"),
        "only what is not committed"
    );
    assert!(
        offered_tools(&requests[0].body)
            .iter()
            .all(|tool| tool != "execute_command" && tool != "write_to_file")
    );
}

#[test]
fn review_compares_with_a_branch_or_commit() {
    let rig = rig_with_branch([Reply::text("Fine."), Reply::text("Fine.")]);
    assert_eq!(rig.run(&["trust"]).code(), 0);
    assert_eq!(rig.run(&["review", "--base", "main"]).code(), 0);
    assert_eq!(rig.run(&["review", "--commit", "HEAD"]).code(), 0);
    let seen: Vec<_> = rig
        .server
        .generation_requests()
        .iter()
        .map(|request| request.decode().unwrap())
        .collect();
    assert!(seen[0].last_message_contains("-one\n+three"));
    assert!(seen[1].last_message_contains("-one\n+two") && seen[1].last_message_contains("second"));

    for (of, said) in [
        ("--base=nowhere", "nowhere"),
        ("--commit=--output=x", "--output=x"),
    ] {
        let ran = rig.run(&["review", of]);
        assert_eq!(ran.code(), 2, "{}", ran.stderr());
        assert!(ran.stderr().contains(said), "{}", ran.stderr());
    }
    run_git(&rig, &["stash", "-qu"]);
    assert!(rig.run(&["review"]).stderr().contains("nothing to review"));
}

#[test]
fn chat_offers_no_tools_and_uses_its_role() {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::text("Hello.").times(3)]).unwrap(),
    );
    let role = "model_roles.chat=\"mock/talker\"";
    let ran = rig.run(&["chat", "--output-format", "json", "--set", role, "hello"]);
    assert_eq!(
        (ran.code(), ran.json()["text"].clone()),
        (0, json!("Hello.")),
        "{}",
        ran.stderr()
    );
    let asked = rig.server.generation_requests()[0].decode().unwrap();
    assert_eq!((asked.model.as_str(), asked.tools.len()), ("talker", 0));
    // A model flag takes precedence over the role; without both, the main model answers.
    rig.run(&["chat", "-m", "mock/other", "--set", role, "hello"]);
    rig.run(&["chat", "hello"]);
    let models: Vec<_> = rig
        .server
        .generation_requests()
        .iter()
        .map(|request| request.decode().unwrap().model)
        .collect();
    assert_eq!(models[1], "other");
    assert_ne!(models[2], "talker");
}
