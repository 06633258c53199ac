//! Workflows as users see them: order, failure, resumption and output.

use std::fs::File;
use std::time::{Duration, Instant};

use haft_testkit::{Reply, Script, Seen, When};
use haft_types::Api;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};
use crate::{permissions, worktrees};

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap())
}

/// Writes a workflow and trusts the project again.
fn add_workflow(rig: &Rig, name: &str, text: &str) {
    std::fs::create_dir_all(rig.project().join(".haft/workflows")).unwrap();
    rig.write(&format!(".haft/workflows/{name}.yaml"), text);
    assert_eq!(rig.run(&["trust"]).code(), 0);
}

fn add_agent(rig: &Rig, name: &str, role: &str) {
    std::fs::create_dir_all(rig.project().join(".haft/agents")).unwrap();
    rig.write(
        &format!(".haft/agents/{name}.md"),
        format!("---\nname: {name}\ndescription: Looks\n---\n{role}\n"),
    );
    assert_eq!(rig.run(&["trust"]).code(), 0);
}

/// A reply to prompts that contain these words.
fn reply_to(words: &str, reply: Reply) -> Reply {
    reply.when(When {
        last_contains: Some(words.into()),
        ..When::default()
    })
}

fn run_workflow(rig: &Rig, arguments: &[&str]) -> Ran {
    let mut all = vec![
        "workflow",
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "yolo",
    ];
    all.extend(arguments);
    rig.run(&all)
}

fn find_step(result: &Value, name: &str) -> Value {
    result["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["name"] == name)
        .unwrap()
        .clone()
}

fn seen_requests(rig: &Rig) -> Vec<Seen> {
    rig.server
        .generation_requests()
        .iter()
        .map(|request| request.decode().unwrap())
        .collect()
}

const THREE_STEPS: &str = "\
description: Look twice, then mend
inputs: {area: src}
steps:
  - name: look
    agent: reviewer
    prompt: LOOK at {{ inputs.area }}.
  - name: count
    prompt: COUNT what is there.
  - name: mend
    needs: [look, count]
    prompt: |
      MEND it: {{ steps.look.output }} / {{ steps.count.output }}
";

#[test]
fn steps_run_after_their_needs_and_get_the_outputs() {
    let rig = rig([
        reply_to("LOOK at lib.", Reply::text("Two mistakes.")),
        reply_to("COUNT", Reply::text("Seven.")),
        reply_to("MEND it: Two mistakes. / Seven.", Reply::text("Mended.")),
    ]);
    add_agent(&rig, "reviewer", "You look very closely.");
    add_workflow(&rig, "mend", THREE_STEPS);
    let ran = run_workflow(&rig, &["mend", "--input", "area=lib"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    let result = ran.result();
    assert_eq!(
        (&result["text"], &result["outcome"]),
        (&json!("Mended."), &json!("completed"))
    );
    assert_eq!(result["message"], "All 3 steps are done.");
    let names: Vec<_> = result["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["name"].clone())
        .collect();
    assert_eq!(names, ["look", "count", "mend"]);

    let requests = seen_requests(&rig);
    assert_eq!(requests.len(), 3);
    let of = |words: &str| {
        requests
            .iter()
            .find(|seen| format!("{seen}").contains(words))
            .unwrap()
    };
    assert!(
        of("LOOK").system.starts_with("You look very closely."),
        "the agent's role"
    );
    assert!(
        !of("COUNT").system.contains("very closely"),
        "the main agent's own"
    );

    // One stream: numbers without gaps, the name, start and end of each step, and one result.
    let events = ran.events();
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], json!(index + 1));
    }
    let marks: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "subagent")
        .collect();
    assert_eq!(marks.len(), 6);
    let place = |name: &str, phase: &str| {
        marks
            .iter()
            .position(|event| event["agent"] == name && event["phase"] == phase)
            .unwrap()
    };
    assert!(place("mend", "started") > place("look", "finished").max(place("count", "finished")));
    assert_eq!(
        events
            .iter()
            .filter(|event| event["type"] == "result")
            .count(),
        1
    );

    // The costs of the steps are added up, and their conversations are kept apart from those of the
    // project.
    let cost = |value: &Value| value["cost"]["total"].as_f64().unwrap();
    let all: f64 = result["steps"].as_array().unwrap().iter().map(cost).sum();
    assert!((cost(&result) - all).abs() < 1e-9 && all > 0.0, "{result}");
    assert_eq!(
        rig.run(&["conversations", "list", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        0
    );
    let listed = rig
        .run(&["conversations", "list", "--all", "--json"])
        .json();
    let mut names: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["mend: count", "mend: look", "mend: mend"]);
}

#[test]
fn independent_steps_run_in_parallel() {
    // Each waits for a file that the other one makes.
    let meet = |words: &str, own: &str, other: &str| {
        let wait = format!("touch {own}; while [ ! -e {other} ]; do sleep 0.1; done");
        let when = When {
            last_contains: Some(words.into()),
            tool_results: Some(0),
            ..When::default()
        };
        Reply::call(
            "execute_command",
            json!({"command": wait, "requires_approval": false, "timeout": 600}),
        )
        .when(when)
    };
    let met = When {
        tool_results: Some(1),
        ..When::default()
    };
    let rig = rig([
        meet("LEFT", "left", "right"),
        meet("RIGHT", "right", "left"),
        Reply::text("Met.").when(met).times(2),
    ]);
    add_workflow(
        &rig,
        "meet",
        "steps:\n  - {name: one, prompt: LEFT}\n  - {name: two, prompt: RIGHT}\n",
    );
    let ran = run_workflow(&rig, &["meet"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    let results: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "tool_result")
        .collect();
    assert!(
        results.len() == 2 && results.iter().all(|result| result["status"] == "success"),
        "{results:?}"
    );
}

#[test]
fn workflow_run_prints_answers_or_one_json_object() {
    let replies = || {
        [
            reply_to("ONE", Reply::text("First.")),
            reply_to("TWO", Reply::text("Second.")),
        ]
    };
    let text = "steps:\n  - {name: one, prompt: ONE}\n  - {name: two, prompt: TWO}\n";
    let rig = rig(replies());
    add_workflow(&rig, "both", text);
    let ran = rig.run(&["workflow", "run", "both"]);
    assert_eq!(
        (ran.code(), ran.stdout().as_str()),
        (0, "## one\n\nFirst.\n\n## two\n\nSecond.\n")
    );
    assert!(
        ran.stderr().contains("[one] started") && ran.stderr().contains("[two] ended"),
        "{}",
        ran.stderr()
    );
    let rig = rig.with_script(Script::replies(replies()).unwrap(), Api::OpenaiChat);
    let ran = rig.run(&["workflow", "run", "both", "--output-format", "json"]);
    assert_eq!(
        (ran.stdout().lines().count(), &ran.json()["workflow"]),
        (1, &json!("both"))
    );
}

#[test]
fn failed_step_blocks_dependents_and_continue_runs_the_rest() {
    let text = "\
steps:
  - {name: good, prompt: GOOD}
  - {name: bad, prompt: BAD}
  - {name: after, prompt: AFTER, needs: [bad]}
  - {name: beside, prompt: 'BESIDE {{ steps.good.output }}', needs: [good]}
";
    let rig = rig([
        reply_to("GOOD", Reply::text("Fine.")),
        reply_to("BESIDE Fine.", Reply::text("Done beside.")),
        reply_to("BAD", Reply::error(400, "no such thing")),
    ]);
    add_workflow(&rig, "four", text);
    let ran = run_workflow(&rig, &["four"]);
    assert_eq!(ran.code(), 1, "{}", ran.stdout());
    let result = ran.result();
    assert_eq!(
        (&result["outcome"], &result["code"]),
        (&json!("failed"), &json!("step_failed"))
    );
    assert_eq!(
        (
            &find_step(&result, "beside")["outcome"],
            &find_step(&result, "after")["outcome"]
        ),
        (&json!("completed"), &Value::Null)
    );
    let message = result["message"].as_str().unwrap();
    assert!(
        message.starts_with("2 of 4 steps are done. `bad` failed: "),
        "{message}"
    );
    assert!(
        message.contains("`after` did not begin, because it needs `bad`"),
        "{message}"
    );
    assert!(
        message.ends_with("`haft workflows run four --continue` goes on."),
        "{message}"
    );
    assert!(
        seen_requests(&rig)
            .iter()
            .all(|seen| !format!("{seen}").contains("AFTER"))
    );

    let rig = rig.with_script(
        Script::replies([
            reply_to("BAD", Reply::text("Better.")),
            reply_to("AFTER", Reply::text("At last.")),
        ])
        .unwrap(),
        Api::OpenaiChat,
    );
    let ran = run_workflow(&rig, &["four", "--continue"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    let result = ran.result();
    assert_eq!(
        seen_requests(&rig).len(),
        2,
        "what was done is not done again"
    );
    assert_eq!(find_step(&result, "good")["text"], "Fine.");
    assert_eq!(
        result["text"],
        "## after\n\nAt last.\n\n## beside\n\nDone beside."
    );
    assert_eq!(result["turns"], 2, "of this process");

    // A finished run has nothing left to do, and a changed file starts a new run.
    let ran = run_workflow(&rig, &["four", "--continue"]);
    assert_eq!((ran.code(), seen_requests(&rig).len()), (0, 2));
    add_workflow(&rig, "four", &text.replace("AFTER", "LATER"));
    let ran = run_workflow(&rig, &["four", "--continue"]);
    assert_eq!(ran.code(), 2);
    assert!(
        ran.stderr().contains("was changed since the run"),
        "{}",
        ran.stderr()
    );
}

#[test]
fn invalid_workflow_is_rejected_with_file_and_line() {
    let rig = rig([Reply::text("Hello.")]);
    let told = |name: &str, text: &str, says: &str| {
        add_workflow(&rig, name, text);
        let ran = rig.run(&["workflow", "run", name]);
        assert_eq!(ran.code(), 2, "{}", ran.stderr());
        assert!(ran.stderr().contains(says), "{}", ran.stderr());
        assert!(
            ran.stderr().contains("nothing was started"),
            "{}",
            ran.stderr()
        );
    };
    told(
        "round",
        "steps:\n  - {name: a, prompt: x, needs: [b]}\n  - {name: b, prompt: x, needs: [a]}\n",
        ".haft/workflows/round.yaml, line 2: steps wait for each other: `a` needs `b` needs `a`",
    );
    told(
        "who",
        "steps:\n  - name: a\n    prompt: x\n    agent: nobody\n",
        ".haft/workflows/who.yaml, line 4: there is no agent `nobody`; there are: none",
    );
    told(
        "bad",
        "steps:\n  - name: a\n    prompt: |\n      x\n      {{ oops\n",
        ".haft/workflows/bad.yaml, line 5: the template",
    );
    told(
        "model",
        "steps:\n  - {name: a, prompt: x}\n  - {name: b, prompt: x, model: nowhere/none}\n",
        "the step `b` cannot be run: ",
    );
    assert!(seen_requests(&rig).is_empty());

    add_workflow(
        &rig,
        "asks",
        "inputs: {what: }\nsteps:\n  - {name: a, prompt: '{{ inputs.what }}'}\n",
    );
    let ran = rig.run(&["workflow", "run", "asks"]);
    assert!(
        ran.code() == 2 && ran.stderr().contains("needs `--input what=VALUE`"),
        "{}",
        ran.stderr()
    );
    let ran = rig.run(&["workflow", "run", "asks", "-i", "wat=1"]);
    assert!(
        ran.code() == 2 && ran.stderr().contains("there are: what"),
        "{}",
        ran.stderr()
    );
    let ran = rig.run(&["workflow", "run", "nowhere"]);
    assert!(
        ran.code() == 2 && ran.stderr().contains("there are: asks, model, who"),
        "{}",
        ran.stderr()
    );
    let ran = rig.run(&["workflow", "run", "asks", "--continue"]);
    assert!(
        ran.code() == 2 && ran.stderr().contains("no interrupted run of `asks`"),
        "{}",
        ran.stderr()
    );

    let listed = rig.run(&["workflow", "list", "--json"]).json();
    assert_eq!(listed["workflows"][0]["steps"][0]["name"], "a", "{listed}");
    assert_eq!(
        listed["problems"].as_array().unwrap().len(),
        2,
        "of two files: {listed}"
    );
    assert!(
        rig.run(&["workflows", "show", "asks"])
            .stdout()
            .contains("prompt: '{{ inputs.what }}'")
    );
}

#[test]
fn workflow_run_rejects_an_untrusted_project() {
    let rig = Rig::untrusted(
        Api::OpenaiChat,
        Script::replies([Reply::text("Hello.")]).unwrap(),
    );
    std::fs::create_dir_all(rig.project().join(".haft/workflows")).unwrap();
    rig.write(
        ".haft/workflows/w.yaml",
        "steps:\n  - {name: a, prompt: x}\n",
    );
    let ran = rig.run(&["workflow", "run", "w"]);
    assert!(
        ran.code() == 2 && ran.stderr().contains("is not trusted"),
        "{}",
        ran.stderr()
    );
    assert!(seen_requests(&rig).is_empty());
}

#[test]
fn max_budget_covers_all_steps() {
    let dear = || haft_types::Usage {
        output: 1_000_000,
        ..haft_types::Usage::default()
    };
    let rig = rig([
        reply_to("FIRST", Reply::text("One.").with_usage(dear())),
        reply_to("SECOND", Reply::text("Two.")),
    ]);
    add_workflow(
        &rig,
        "dear",
        "steps:\n  - {name: first, prompt: FIRST}\n  - {name: second, prompt: SECOND, needs: [first]}\n",
    );
    let ran = run_workflow(&rig, &["dear", "--max-budget-usd", "1"]);
    assert_eq!(ran.code(), 4, "{}", ran.stdout());
    assert_eq!(find_step(&ran.result(), "first")["outcome"], "completed");
    assert_eq!(
        find_step(&ran.result(), "second")["message"],
        "the budget of $1 is used up"
    );
    assert_eq!(seen_requests(&rig).len(), 1);
    let ran = run_workflow(&rig, &["dear", "--continue"]);
    assert_eq!(
        (ran.code(), seen_requests(&rig).len()),
        (0, 2),
        "{}",
        ran.stdout()
    );
}

#[test]
fn continue_after_interrupt_or_kill_skips_finished_steps() {
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let slow = Reply {
            delay_ms: 600_000,
            ..Reply::text("Too late.")
        };
        let rig = rig([
            reply_to("FIRST", Reply::text("One.")),
            reply_to("SECOND", Reply::call("list_files", json!({"path": "."}))),
            reply_to("workflows", slow),
        ]);
        let steps = "steps:\n  - {name: first, prompt: FIRST}\n  - {name: second, prompt: 'SECOND {{ steps.first.output }}', needs: [first]}\n";
        add_workflow(&rig, "two", steps);
        rig.write("seen.txt", "x");
        let printed = rig.home().join("printed");
        let mut command = rig.command(&[
            "workflow",
            "run",
            "--output-format",
            "stream-json",
            "--permission-mode",
            "yolo",
            "two",
        ]);
        let mut child = command
            .stdout(File::create(&printed).unwrap())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while rig.server.generation_requests().len() < 3 {
            assert!(begun.elapsed() < Duration::from_mins(1), "never asked");
            std::thread::sleep(Duration::from_millis(20));
        }
        kill_process(Pid::from_raw(child.id().cast_signed()).unwrap(), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), code);
        let told = std::fs::read_to_string(&printed).unwrap();
        if code.is_some() {
            let result: Value = serde_json::from_str(told.lines().last().unwrap()).unwrap();
            assert_eq!(
                (&result["type"], &result["outcome"]),
                (&json!("result"), &json!("aborted"))
            );
            assert_eq!(find_step(&result, "second")["outcome"], "aborted");
        }

        let rig = rig.with_script(
            Script::replies([Reply::text("Two.")]).unwrap(),
            Api::OpenaiChat,
        );
        let ran = run_workflow(&rig, &["two", "--continue"]);
        assert_eq!(
            (ran.code(), &ran.result()["text"]),
            (0, &json!("Two.")),
            "{}{}",
            ran.stdout(),
            ran.stderr()
        );
        let requests = seen_requests(&rig);
        assert_eq!(
            (requests.len(), requests[0].count_tool_results()),
            (1, 1),
            "it goes on where it was"
        );
        let words = format!("{}", requests[0]);
        assert_eq!(words.matches("SECOND One.").count(), 1, "{words}");
        let listed = rig
            .run(&["conversations", "list", "--all", "--json"])
            .json();
        assert_eq!(
            listed.as_array().unwrap().len(),
            2,
            "no conversation was begun anew"
        );
    }
}

#[test]
fn step_question_is_answered_in_its_conversation() {
    let ask = Reply::call(
        "ask_followup_question",
        json!({"question": "Left or right?"}),
    );
    let rig = rig([
        reply_to("FIRST", ask),
        reply_to("SECOND Left it is.", Reply::text("Done.")),
    ]);
    add_workflow(
        &rig,
        "ask",
        "steps:\n  - {name: first, prompt: FIRST}\n  - {name: second, prompt: 'SECOND {{ steps.first.output }}', needs: [first]}\n",
    );
    let ran = run_workflow(&rig, &["ask"]);
    assert_eq!(ran.code(), 3, "{}", ran.stdout());
    let id = find_step(&ran.result(), "first")["conversation_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let message = ran.result()["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains(&format!("(answer with `haft run -r {} \"…\"`)", &id[..8])),
        "{message}"
    );
    let ran = run_workflow(&rig, &["ask", "--continue"]);
    assert_eq!(
        (ran.code(), seen_requests(&rig).len()),
        (3, 1),
        "nobody has answered yet"
    );
    let rig = rig.with_script(
        Script::replies([
            reply_to("answered: Left", Reply::text("Left it is.")),
            reply_to("SECOND Left it is.", Reply::text("Done.")),
        ])
        .unwrap(),
        Api::OpenaiChat,
    );
    assert_eq!(rig.task(&["-r", &id[..8], "Left"]).code(), 0);
    let ran = run_workflow(&rig, &["ask", "--continue"]);
    assert_eq!(
        (ran.code(), &ran.result()["text"]),
        (0, &json!("Done.")),
        "{}",
        ran.stdout()
    );
    assert_eq!(
        seen_requests(&rig).len(),
        2,
        "the answer is not asked for again"
    );
}

#[test]
fn workflows_show_reports_errors_of_a_broken_file() {
    let rig = rig([]);
    std::fs::create_dir_all(rig.project().join(".haft/workflows")).unwrap();
    rig.write(
        ".haft/workflows/broken.yaml",
        "steps:\n  - {name: a, prompt: A, needs: [nobody]}\n",
    );
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let shown = rig.run(&["workflows", "show", "broken"]);
    assert_eq!(shown.code(), 2, "{}", shown.stdout());
    assert!(
        shown.stderr().contains("`broken` cannot be used") && shown.stderr().contains("nobody"),
        "{}",
        shown.stderr()
    );
    assert!(
        rig.run(&["workflows", "show", "absent"])
            .stderr()
            .contains("no `absent`")
    );
}

/// Two steps that work in copies of the project in parallel, and one that reads their outputs.
fn rig_with_copying_steps(first: &str, second: &str) -> Rig {
    let rig = worktrees::rig([
        reply_to("DO-A", worktrees::command_call(first)),
        reply_to("DID-A", Reply::text("A is done.")),
        reply_to("DO-B", worktrees::command_call(second)),
        reply_to("DID-B", Reply::text("B is done.")),
        reply_to("BOTH", Reply::text("Both are there.")),
    ]);
    let step =
        |name: &str, task: &str| format!("  - {{name: {name}, worktree: true, prompt: {task}}}\n");
    let last = "  - name: both\n    needs: [a, b]\n    prompt: \"BOTH: {{ steps.a.output }} {{ steps.b.output }}\"\n";
    add_workflow(
        &rig,
        "copies",
        &format!("steps:\n{}{}{last}", step("a", "DO-A"), step("b", "DO-B")),
    );
    rig
}

#[test]
fn steps_with_worktrees_merge_their_changes() {
    let rig = rig_with_copying_steps(
        "test ! -e b.txt; echo a > a.txt; echo DID-A",
        "test ! -e a.txt && echo b > b.txt; echo DID-B",
    );
    let ran = run_workflow(&rig, &["copies"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    assert_eq!(worktrees::file_text(&rig, "a.txt").as_deref(), Some("a\n"));
    assert_eq!(worktrees::file_text(&rig, "b.txt").as_deref(), Some("b\n"));
    assert!(worktrees::worktree_folders(&rig).is_empty());
    let last = seen_requests(&rig).pop().unwrap();
    for said in [
        "A is done.\n\nMerged into the project: `a.txt`.",
        "Merged into the project: `b.txt`.",
    ] {
        assert!(last.last_message_contains(said), "{said}: {last}");
    }
    let changed: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "file_changed")
        .collect();
    assert!(
        changed.iter().any(
            |event| event["path"].as_str().unwrap().ends_with("a.txt") && event["agent"] == "a"
        )
    );
    let id = find_step(&ran.result(), "a")["conversation_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(rig.run(&["undo", &id]).code(), 0);
    assert_eq!(
        (
            worktrees::file_text(&rig, "a.txt"),
            worktrees::file_text(&rig, "b.txt").is_some()
        ),
        (None, true)
    );
}

#[test]
fn step_with_a_merge_conflict_fails_and_keeps_its_work() {
    let change = |word: &str, did: &str| format!("sed -i s/one/{word}/ lines.txt; echo {did}");
    let rig = rig_with_copying_steps(&change("A", "DID-A"), &change("B", "DID-B"));
    let before = worktrees::file_text(&rig, "lines.txt").unwrap();
    let ran = run_workflow(&rig, &["copies"]);
    assert_eq!(ran.code(), 1, "{}{}", ran.stdout(), ran.stderr());
    let result = ran.result();
    let steps = ["a", "b"].map(|name| find_step(&result, name));
    let failed = steps
        .iter()
        .find(|step| step["code"] == "not_merged")
        .unwrap();
    assert!(
        failed["message"]
            .as_str()
            .unwrap()
            .contains("`lines.txt` changed in the project too"),
        "{failed}"
    );
    assert_eq!(
        steps
            .iter()
            .filter(|step| step["outcome"] == "completed")
            .count(),
        1
    );
    assert_eq!(find_step(&result, "both")["outcome"], Value::Null);
    assert_eq!(worktrees::worktree_folders(&rig).len(), 1);
    // Once the conflict is resolved, the merge is done without asking the model again.
    let requests = seen_requests(&rig).len();
    rig.write("lines.txt", before);
    let ran = run_workflow(&rig, &["copies", "--continue"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    assert_eq!(
        seen_requests(&rig).len(),
        requests + 1,
        "only the last step asks"
    );
    assert!(worktrees::worktree_folders(&rig).is_empty());
}

#[test]
fn step_with_worktree_needs_a_git_repository() {
    let rig = rig([]);
    add_workflow(
        &rig,
        "copy",
        "steps: [{name: a, worktree: true, prompt: X}]\n",
    );
    let ran = run_workflow(&rig, &["copy"]);
    let failed = find_step(&ran.result(), "a");
    assert_eq!(
        (ran.code(), &failed["code"]),
        (1, &json!("not_begun")),
        "{}",
        ran.stdout()
    );
    assert!(
        failed["message"]
            .as_str()
            .unwrap()
            .contains("is not in a git repository"),
        "{failed}"
    );
}

/// Runs a workflow with `--ask` at a terminal, with these answers.
fn run_at_terminal(rig: &Rig, name: &str, answers: &[&str]) -> Option<(Ran, String)> {
    permissions::run_at_terminal(
        rig,
        &["workflow", "run", "--ask", "--output-format", "json", name],
        "",
        answers,
    )
}

#[test]
fn step_approvals_are_asked_in_turn_and_denied_headless() {
    let make = || {
        let rig = rig([
            reply_to("DO-A", worktrees::command_call("touch a && echo DID-A")),
            reply_to("DO-B", worktrees::command_call("touch b && echo DID-B")),
            reply_to("DID-A", Reply::text("A.")),
            reply_to("DID-B", Reply::text("B.")),
            reply_to("", Reply::text("I may not.")),
        ]);
        add_workflow(
            &rig,
            "two",
            "steps: [{name: first, prompt: DO-A}, {name: second, prompt: DO-B}]\n",
        );
        rig
    };
    let rig = make();
    let Some((ran, shown)) = run_at_terminal(&rig, "two", &["y", "y"]) else {
        return;
    };
    assert_eq!(ran.code(), 0, "{}{shown}", ran.stderr());
    assert!(rig.project().join("a").exists() && rig.project().join("b").exists());
    for name in ["first", "second"] {
        assert!(
            shown.contains(&format!("(sub-agent {name})? Not covered by any rule.")),
            "{shown}"
        );
    }
    // A question is answered before the next one is shown.
    let second = shown.rfind("Not covered by any rule").unwrap();
    let first_choice = shown.find("y = ").unwrap();
    assert!(first_choice < second, "{shown}");
    let rig = make();
    let ran = rig.run(&["workflow", "run", "two", "--output-format", "json"]);
    assert_eq!(ran.code(), 3, "{}", ran.stderr());
    assert!(!rig.project().join("a").exists() && !rig.project().join("b").exists());
}

#[test]
fn step_question_is_answered_at_the_terminal() {
    let rig = rig([
        reply_to(
            "DO-A",
            Reply::call(
                "ask_followup_question",
                json!({"question": "Left or right?"}),
            ),
        ),
        reply_to("The user answered: left", Reply::text("Left it is.")),
    ]);
    add_workflow(&rig, "one", "steps: [{name: way, prompt: DO-A}]\n");
    let Some((ran, shown)) = run_at_terminal(&rig, "one", &["left"]) else {
        return;
    };
    assert_eq!(ran.code(), 0, "{}{shown}", ran.stderr());
    assert!(
        shown.contains("the step `way`") && shown.contains("Left or right?"),
        "{shown}"
    );
    let result: Value = serde_json::from_str(ran.stdout().trim()).unwrap();
    assert_eq!(
        (&result["text"], &result["turns"]),
        (&json!("Left it is."), &json!(2))
    );
}
