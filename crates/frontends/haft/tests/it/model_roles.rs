//! The roles of models: a role that is set does its job with its own model.

use std::time::Duration;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{MODEL, Ran, Rig};
use crate::terminal::Terminal;

const SHIFT_TAB: &str = "\u{1b}[Z";

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::replies(replies).unwrap())
}

/// Sets a role in the configuration file.
fn set_role(rig: &Rig, role: &str) {
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!("{config}\n[model_roles]\n{role}\n"));
}

/// Runs `haft run` with JSON events in a permission mode.
fn run_in_mode(rig: &Rig, mode: &str, arguments: &[&str]) -> Ran {
    let mut all = vec![
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        mode,
    ];
    all.extend(arguments);
    rig.run(&all)
}

/// Returns the model of every request, oldest first.
fn asked_models(rig: &Rig) -> Vec<String> {
    let all = rig.server.generation_requests();
    all.iter()
        .map(|request| request.decode().unwrap().model)
        .collect()
}

/// Returns the messages of the events of one kind with one code.
fn messages(ran: &Ran, kind: &str, code: &str) -> Vec<Value> {
    let events = ran.events().into_iter();
    events
        .filter(|event| event["type"] == kind && event["code"] == code)
        .map(|event| event["message"].clone())
        .collect()
}

#[test]
fn planner_answers_in_plan_mode_only() {
    let rig = rig([Reply::text("Yes.").times(5)]);
    set_role(&rig, "planner = \"mock/planner\"");
    let planned = run_in_mode(&rig, "plan", &["plan it"]);
    assert_eq!(
        messages(&planned, "notice", "planner"),
        ["`mock/planner` answers in plan mode"]
    );
    let continued = run_in_mode(&rig, "plan", &["-c", "plan more"]);
    assert_eq!(messages(&continued, "notice", "quote"), [] as [Value; 0]);
    let done = run_in_mode(&rig, "ask", &["-c", "do it"]);
    assert_eq!(messages(&done, "notice", "planner"), [] as [Value; 0]);
    let quote = &messages(&done, "notice", "quote")[0];
    assert!(
        quote
            .as_str()
            .unwrap()
            .contains("which was with `mock/planner`: ≈"),
        "{quote}"
    );
    // A model that is named for the run takes precedence.
    run_in_mode(&rig, "plan", &["-m", "mock/chosen", "plan it"]);
    run_in_mode(&rig, "plan", &["--set", "model=mock/set", "plan it"]);
    assert_eq!(
        asked_models(&rig),
        ["planner", "planner", MODEL, "chosen", "set"]
    );
}

#[test]
fn resumed_conversation_quotes_the_planner_once() {
    let rig = rig([Reply::text("Yes.").times(2)]);
    set_role(&rig, "planner = \"mock/planner\"");
    rig.task(&["look"]);
    let planned = run_in_mode(&rig, "plan", &["-c", "plan it"]);
    let notices = messages(&planned, "notice", "planner");
    let text = notices[0].as_str().unwrap();
    assert!(
        text.starts_with("`mock/planner` answers in plan mode: ≈") && text.ends_with(" to resend"),
        "{text}"
    );
    assert_eq!(messages(&planned, "notice", "quote"), [] as [Value; 0]);
    assert_eq!(asked_models(&rig), [MODEL, "planner"]);
}

#[test]
fn next_planner_answers_for_an_overloaded_one() {
    let rig = rig([Reply::error(529, "Overloaded."), Reply::text("A plan.")]);
    set_role(&rig, "planner = [\"mock/busy\", \"mock/planner\"]");
    let ran = run_in_mode(&rig, "plan", &["--set", "retry.attempts=0", "plan it"]);
    assert_eq!(ran.result()["text"], "A plan.", "{}", ran.stdout());
    assert_eq!(messages(&ran, "notice", "model_switched").len(), 1);
    assert_eq!(asked_models(&rig), ["busy", "planner"]);
}

#[test]
fn main_model_answers_if_no_planner_can() {
    let rig = rig([Reply::text("A plan.")]);
    set_role(&rig, "planner = \"mistral/mistral-medium-3.5\"");
    let ran = run_in_mode(&rig, "plan", &["plan it"]);
    let problem = &messages(&ran, "error", "planner")[0];
    assert!(
        problem.as_str().unwrap().contains("MISTRAL_API_KEY"),
        "{problem}"
    );
    assert_eq!(asked_models(&rig), [MODEL]);
}

#[test]
fn switch_to_the_planner_is_quoted_before_the_next_request() {
    let rig = rig([
        Reply::text("Hello."),
        Reply::text("First I write a.txt."),
        Reply::text("Done."),
    ]);
    set_role(&rig, "planner = \"mock/planner\"");
    let mut terminal = Terminal::start(&rig, &["--", "hi"], (100, 40));
    terminal.until_text("Hello.");
    terminal.until_idle();
    // From `ask` to `accept-edits`, and to `plan`.
    terminal.press(SHIFT_TAB);
    terminal.press(SHIFT_TAB);
    terminal.until_text("`mock/planner` answers in plan mode: ≈");
    assert_eq!(asked_models(&rig), [MODEL]);
    // Leaving plan mode before a request costs nothing.
    terminal.press(SHIFT_TAB);
    terminal.until_text("answers again");
    terminal.press(SHIFT_TAB);
    terminal.press(SHIFT_TAB);
    terminal.press("plan it\r");
    terminal.until("the price of going back", |screen| {
        screen.contents().contains("carries out the plan: up to ≈")
            && screen.contents().contains('▸')
    });
    terminal.press("\r");
    terminal.until_text("Done.");
    terminal.until_idle();
    assert_eq!(asked_models(&rig), [MODEL, "planner", MODEL]);
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn index_role_describes_folders() {
    let write = Reply::call(
        "write_to_file",
        json!({"path": "src/a.rs", "content": "fn a() {}\n"}),
    );
    for (role, expected) in [
        ("index = \"mock/index\"", "index"),
        ("summary = \"mock/summary\"", "summary"),
        (
            "index = \"mock/index\"\nsummary = \"mock/summary\"",
            "index",
        ),
    ] {
        let rig = rig([
            write.clone(),
            Reply::text("Done."),
            Reply::text("Holds a function."),
        ]);
        set_role(&rig, role);
        let ran = rig.task(&["--set", "context.active=true", "write it"]);
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
        assert_eq!(asked_models(&rig), [MODEL, MODEL, expected]);
        let text = rig.project().join(".haft/active-context/src/active.md");
        assert_eq!(
            std::fs::read_to_string(text).unwrap(),
            "Holds a function.\n"
        );
    }
}

#[test]
fn designer_is_a_sub_agent_with_its_own_model() {
    let start = Reply::call(
        "run_named_subagents",
        json!({"subagents": "subagents:\n  - name: designer\n    task: Align the buttons.\n"}),
    );
    let replies = [start, Reply::text("Aligned."), Reply::text("Done.")];
    let rig = rig(replies);
    let listed = |rig: &Rig| rig.run(&["agents", "list", "--json"]).json()["agents"].clone();
    assert_eq!(listed(&rig), json!([]));
    set_role(&rig, "designer = \"mock/draws\"");
    let ran = rig.task(&["make it nice"]);
    assert_eq!(ran.result()["text"], "Done.", "{}", ran.stdout());
    assert_eq!(asked_models(&rig), [MODEL, "draws", MODEL]);
    let asked = rig.server.generation_requests()[1].decode().unwrap();
    assert!(
        asked.system.contains("You design user interfaces"),
        "{}",
        asked.system
    );
    assert_eq!(listed(&rig)[0]["uses"], "mock/draws");

    // The user's own agent with this name takes precedence.
    std::fs::create_dir_all(rig.home().join("agents")).unwrap();
    std::fs::write(
        rig.home().join("agents/designer.md"),
        "---\nname: designer\ndescription: Draws\n---\nYou draw.\n",
    )
    .unwrap();
    let listed = listed(&rig);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["description"], "Draws");
}

/// Returns the name of the newest conversation, as `haft conversations list` shows it.
fn newest_name(rig: &Rig) -> String {
    let listed = rig.run(&["conversations", "list", "--json"]).json();
    listed[0]["name"].as_str().unwrap().to_owned()
}

/// Waits until the newest conversation has this name.
fn until_named(rig: &Rig, name: &str) {
    for _ in 0..400 {
        if newest_name(rig) == name {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the conversation is named {:?}", newest_name(rig));
}

#[test]
fn title_names_a_conversation_once_after_its_first_turn() {
    let rig = rig([
        Reply::text("Hello."),
        Reply::text("\"Greeting the agent.\"\n"),
        Reply::text("Again."),
    ]);
    set_role(&rig, "title = \"mock/names\"");
    let mut terminal = Terminal::start(&rig, &["--", "say hello"], (100, 30));
    terminal.until_text("Hello.");
    until_named(&rig, "Greeting the agent");
    terminal.until_idle();
    terminal.press("again\r");
    terminal.until_text("Again.");
    terminal.until_idle();
    terminal.press("/cost\r");
    // The cost of the title counts.
    terminal.until_text("3 requests");
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
    assert_eq!(newest_name(&rig), "Greeting the agent");
    assert_eq!(asked_models(&rig), [MODEL, "names", MODEL]);
    let asked = rig.server.generation_requests()[1].decode().unwrap();
    let text = asked.to_string();
    assert!(
        text.contains("<task>\nsay hello\n</task>\n\n<answer>\nHello.\n</answer>"),
        "{text}"
    );
}

#[test]
fn failed_title_is_one_notice_and_keeps_the_name() {
    let rig = rig([
        Reply::text("Hello."),
        Reply::error(400, "No titles here."),
        Reply::text("Again."),
    ]);
    set_role(&rig, "title = \"mock/names\"");
    let mut terminal = Terminal::start(&rig, &["--", "say hello"], (100, 30));
    terminal.until_text("keeps its name");
    terminal.until_idle();
    terminal.press("again\r");
    terminal.until_text("Again.");
    terminal.until_idle();
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
    assert_eq!(newest_name(&rig), "say hello");
    assert_eq!(asked_models(&rig), [MODEL, "names", MODEL]);
}

#[test]
fn title_is_not_asked_for_by_headless_runs() {
    let rig = rig([Reply::text("Hello.")]);
    set_role(&rig, "title = \"mock/names\"");
    let ran = rig.task(&["say hello"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(messages(&ran, "notice", "model_role"), [] as [Value; 0]);
    assert_eq!(newest_name(&rig), "say hello");
    assert_eq!(asked_models(&rig), [MODEL]);
}

#[test]
fn title_is_not_asked_for_without_the_role() {
    let rig = rig([Reply::text("Hello."), Reply::text("Again.")]);
    let mut terminal = Terminal::start(&rig, &["--", "say hello"], (100, 30));
    terminal.until_text("Hello.");
    terminal.until_idle();
    terminal.press("again\r");
    terminal.until_text("Again.");
    terminal.until_idle();
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
    assert_eq!(asked_models(&rig), [MODEL, MODEL]);
}

#[test]
fn removed_role_is_accepted_with_a_notice() {
    let rig = rig([Reply::text("Yes.")]);
    set_role(&rig, "prune = [\"mock/small\"]");
    let ran = rig.task(&["hello"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(
        messages(&ran, "notice", "model_role"),
        ["`model_roles.prune` was removed because it never had an effect: delete the key"]
    );
    assert!(!rig.run(&["config", "show"]).stdout().contains("prune ="));
}
