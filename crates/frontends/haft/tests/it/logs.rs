//! The log: what it contains, what it omits, who can read it, and `haft logs`.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use haft_testkit::{Reply, Script, When};
use haft_types::Api;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::jobs::wait_until;
use crate::rig::Rig;

const KEY: &str = "ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2";

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap())
}

fn run_command(line: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({"command": line, "requires_approval": false}),
    )
}

/// Runs a task without approvals, and returns its output even if the task fails.
fn run_at_level(rig: &Rig, level: &str, arguments: &[&str]) -> Output {
    let mut all = vec!["run", "--permission-mode", "yolo"];
    all.extend(arguments);
    rig.command(&all)
        .env("HAFT_LOG_LEVEL", level)
        .output()
        .unwrap()
}

/// Returns the log lines of the last run, parsed from JSON.
fn log_lines(rig: &Rig) -> Vec<Value> {
    let shown = rig.run(&["logs", "--json"]).stdout();
    shown
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// True if the last run has a line with this message at this level.
fn has_line(rig: &Rig, level: &str, message: &str) -> bool {
    log_lines(rig)
        .iter()
        .any(|line| line["message"] == message && line["level"] == level)
}

/// Returns the text of all log files.
fn log_text(home: &Path) -> String {
    let entries = std::fs::read_dir(home.join("state/log")).unwrap();
    entries
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect()
}

/// Returns the readable log, with everything replaced that differs between runs.
fn readable_log(rig: &Rig, arguments: &[&str]) -> String {
    let shown = rig.run(&[&["logs"], arguments].concat()).stdout();
    let shown = shown.replace(&rig.project().display().to_string(), "PROJECT");
    let shown = shown.replace(&rig.home().display().to_string(), "HOME");
    // A value with a space is quoted, which a folder of the test may have.
    let shown = shown.replace("\"PROJECT\"", "PROJECT");
    let shown = shown.replace("\"HOME/config.toml\"", "HOME/config.toml");
    let word = |word: &str| match word.split_once('=') {
        Some((name @ ("ms" | "delay_ms" | "conversation" | "input" | "output" | "cost"), _)) => {
            format!("{name}=…")
        }
        _ => word.to_owned(),
    };
    let line = |line: &str| {
        let (_time, rest) = line.split_once(' ').unwrap();
        rest.split(' ').map(word).collect::<Vec<_>>().join(" ")
    };
    shown.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn log_of_a_run_records_calls_retries_and_a_refused_key() {
    let rig = rig([
        Reply::call("write_to_file", json!({"path": "a.txt", "content": "text"})),
        run_command("cat missing.txt | grep x"),
        Reply::error(503, "Overloaded."),
        Reply::call("read_file", json!({"path": "nowhere.txt"})),
        Reply::error(401, "Wrong key."),
    ]);
    rig.write("AGENTS.md", "Be kind.\n");
    assert!(rig.command(&["trust"]).status().unwrap().success());
    let ran = run_at_level(&rig, "info", &["go"]);
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
    insta::assert_snapshot!(readable_log(&rig, &[]), @r#"
    INFO  configuration loaded file=HOME/config.toml exists=true variables=HAFT_LOG_LEVEL
    INFO  session opened project=PROJECT trusted=true ignored=false mode=yolo model=mock/gemini-3-scripted
    INFO  instructions loaded kind=rules name=AGENTS.md bytes=9
    INFO  turn started conversation=… agent=main model=mock/gemini-3-scripted cwd=PROJECT resumed=false
    INFO  sandbox chosen layer=none reasons="there is none in permission mode `yolo`"
    INFO  request answered model=mock/gemini-3-scripted ms=… retries=0 input=… cached_input=0 cache_write=0 output=…
    INFO  tool call agent=main tool=write_to_file call=call_4_1_1 ms=… outcome=success
    INFO  file changed agent=main path=a.txt change=added
    INFO  request answered model=mock/gemini-3-scripted ms=… retries=0 input=… cached_input=0 cache_write=0 output=…
    WARN  tool call agent=main tool=execute_command call=call_6_2_1 ms=… programs="cat, grep" outcome=error code=exit_status
    WARN  request failed and is retried model=mock/gemini-3-scripted attempt=1 code=provider_error status=503 delay_ms=…
    INFO  request answered model=mock/gemini-3-scripted ms=… retries=1 input=… cached_input=0 cache_write=0 output=…
    WARN  tool call agent=main tool=read_file call=call_8_4_1 ms=… outcome=error code=not_found
    ERROR request failed model=mock/gemini-3-scripted ms=… retries=0 code=unauthorized status=401
    ERROR error shown agent=main code=unauthorized
    ERROR turn ended conversation=… agent=main outcome=failed code=unauthorized turns=3 ms=… input=… output=… cost=…
    "#);
    insta::assert_snapshot!(readable_log(&rig, &["--level", "error"]), @r"
    ERROR request failed model=mock/gemini-3-scripted ms=… retries=0 code=unauthorized status=401
    ERROR error shown agent=main code=unauthorized
    ERROR turn ended conversation=… agent=main outcome=failed code=unauthorized turns=3 ms=… input=… output=… cost=…
    ");
}

#[test]
fn log_level_defaults_to_info_and_holds_decisions_at_debug() {
    let rig = rig([
        run_command("true"),
        Reply::text("One."),
        run_command("true"),
        Reply::text("Two."),
    ]);
    assert_eq!(rig.task(&["go"]).code(), 0);
    assert!(has_line(&rig, "info", "tool call") && has_line(&rig, "info", "request answered"));
    assert!(!log_lines(&rig).iter().any(|line| line["level"] == "debug"));
    run_at_level(&rig, "debug", &["go"]);
    for message in ["permission decided", "cache predicted", "request measured"] {
        assert!(
            has_line(&rig, "debug", message),
            "{message}: {:?}",
            log_lines(&rig)
        );
    }
}

#[test]
fn log_names_the_rule_and_the_program_of_a_verdict() {
    let rig = rig([run_command("echo planted-argument"), Reply::text("One.")]);
    let mut run = rig.command(&[
        "run",
        "--set",
        "permissions.allow=['execute_command(echo:*)']",
        "go",
    ]);
    assert!(
        run.env("HAFT_LOG_LEVEL", "debug")
            .status()
            .unwrap()
            .success()
    );
    let all = log_lines(&rig);
    let verdict = all
        .iter()
        .find(|line| line["message"] == "permission decided")
        .unwrap();
    let fields = &verdict["fields"];
    assert_eq!(
        (&fields["decision"], &fields["programs"]),
        (&json!("allow"), &json!("echo"))
    );
    assert_eq!(fields["rule"], "execute_command(echo:*)");
    assert!(!log_text(rig.home()).contains("planted-argument"));
}

#[test]
fn log_omits_prompts_arguments_file_texts_and_keys() {
    let planted = [
        "planted-prompt",
        "planted-file-text",
        "planted-argument",
        "planted-content",
        "planted-output",
        "planted-reply",
        "planted-thinking",
        "planted-instruction",
        "planted-agent-text",
        "planted-task",
        "planted-server-words",
        "planted-hook-words",
        "planted-front-matter",
        "planted-note",
        "planted-question",
        KEY,
    ];
    let agent_call = json!({"subagents": "mode: parallel\nsubagents:\n  - name: helper\n    task: planted-task\n"});
    let answer = |results, reply: Reply| {
        reply.when(When {
            tool_results: Some(results),
            ..When::default()
        })
    };
    let rig = rig([
        Reply::error(503, "planted-server-words"),
        answer(
            0,
            Reply::call("read_file", json!({"path": "file.txt"})).with_text("planted-reply"),
        ),
        answer(
            1,
            run_command("TOKEN=planted-argument echo planted-output planted-argument"),
        ),
        answer(
            2,
            Reply::call(
                "write_to_file",
                json!({"path": "b.txt", "content": "planted-content"}),
            ),
        ),
        answer(3, run_command("false planted-argument")),
        answer(
            4,
            Reply::call(
                "replace_in_file",
                json!({"path": "file.txt", "diff": "planted-argument"}),
            ),
        ),
        answer(
            5,
            Reply::call(
                "planted argument that is no tool",
                json!({"a": "planted-argument"}),
            ),
        ),
        answer(6, Reply::call("run_named_subagents", agent_call)),
        answer(7, Reply::error(400, "planted-server-words planted-prompt")),
        Reply::text("planted-reply")
            .with_thinking("planted-thinking")
            .times(9),
    ]);
    rig.write("file.txt", format!("planted-file-text {KEY}\n"));
    rig.write("AGENTS.md", "planted-instruction\n");
    rig.write(
        ".haft/agents/helper.md",
        "---\nname: helper\ndescription: planted-agent-text\n---\nplanted-agent-text\n",
    );
    rig.write(
        ".haft/agents/broken.md",
        "---\nname: [\"planted-front-matter\"]\ntools: \"planted-front-matter\n---\nx\n",
    );
    let configured = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    let hook = "[[hooks.post_tool_call]]\nmatcher = \"*\"\nhooks = [{ command = 'echo planted-hook-words >&2; exit 1' }]\n";
    rig.configure(&format!("{configured}{hook}"));
    assert!(rig.command(&["trust"]).status().unwrap().success());
    run_at_level(&rig, "trace", &["planted-prompt"]);
    let log = log_text(rig.home());
    for text in planted {
        assert!(
            !log.contains(text),
            "{text}: {}",
            log.lines().find(|line| line.contains(text)).unwrap()
        );
    }
    for message in [
        "hook failed",
        "request failed and is retried",
        "sub-agent started",
        "tool call",
        "turn ended",
    ] {
        assert!(log.contains(message), "{message}: {log}");
    }
}

#[test]
fn log_has_a_warning_or_an_error_for_every_failure() {
    let ended = |rig: &Rig, outcome: &str| {
        let all = log_lines(rig);
        let end = all
            .iter()
            .rfind(|line| line["message"] == "turn ended")
            .unwrap_or_else(|| panic!("{all:?}"));
        assert_eq!(end["fields"]["outcome"], outcome, "{all:?}");
        end["level"].as_str().unwrap().to_owned()
    };
    let failing = rig([Reply::error(400, "Bad.")]);
    assert_eq!(failing.task(&["go"]).code(), 2);
    assert_eq!(ended(&failing, "failed"), "error");
    assert!(has_line(&failing, "error", "request failed"));

    let waiting = rig([run_command("curl example.com"), Reply::text("No.")]);
    assert_eq!(
        waiting
            .run(&["run", "--set", "permissions.ask=['execute_command']", "go"])
            .code(),
        3
    );
    assert_eq!(ended(&waiting, "waiting"), "warn");

    let exhausted = rig([run_command("true").times(9)]);
    assert_eq!(exhausted.task(&["--max-turns", "1", "go"]).code(), 4);
    assert_eq!(ended(&exhausted, "exhausted"), "warn");

    let unreachable = rig([]);
    unreachable.run(&[
        "run",
        "--set",
        "providers.mock.base_url='http://127.0.0.1:9/v1'",
        "go",
    ]);
    assert_eq!(ended(&unreachable, "failed"), "error");

    let server = rig([
        Reply::call(
            "use_mcp_tool",
            json!({"server_name": "no", "tool_name": "x"}),
        ),
        Reply::text("No."),
    ]);
    server.task(&["--set", "mcp_servers.no.command='/nowhere'", "go"]);
    assert!(
        has_line(&server, "warn", "MCP server not started"),
        "{:?}",
        log_lines(&server)
    );
}

#[test]
fn log_has_the_reason_of_a_wrong_configuration() {
    let rig = rig([]);
    rig.configure("model = \"none/none\"\n");
    assert_eq!(rig.run(&["run", "planted-prompt"]).code(), 2);
    assert_eq!(
        rig.run(&["run", "--set", "model=planted-value", "planted-prompt"])
            .code(),
        2
    );
    assert_eq!(
        rig.run(&[
            "run",
            "--set",
            "retry.attempts='planted-value'",
            "planted-prompt"
        ])
        .code(),
        2
    );
    rig.configure("log_level = \"planted-value\"\n");
    assert_eq!(rig.run(&["run", "planted-prompt"]).code(), 2);
    rig.configure("nothing = 1\n");
    assert_eq!(rig.run(&["run", "planted-prompt"]).code(), 2);
    let log = log_text(rig.home());
    assert_eq!(log.matches("command failed").count(), 5, "{log}");
    assert!(
        log.contains("config.toml:1:1: unknown key `nothing`"),
        "{log}"
    );
    assert!(
        !log.contains("planted-prompt") && !log.contains("planted-value"),
        "{log}"
    );
}

#[test]
fn log_has_an_aborted_turn() {
    let rig = rig([run_command("touch begun; sleep 600"), Reply::text("No.")]);
    let mut run = rig
        .command(&["run", "--permission-mode", "yolo", "go"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the command runs", || rig.project().join("begun").exists());
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    run.wait().unwrap();
    let all = log_lines(&rig);
    assert_eq!(
        all.last().unwrap()["fields"]["outcome"],
        "aborted",
        "{all:?}"
    );
}

#[test]
fn log_of_a_killed_process_is_on_disk() {
    let rig = rig([run_command("touch begun; sleep 600")]);
    let mut run = rig
        .command(&["run", "--permission-mode", "yolo", "go"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the command runs", || rig.project().join("begun").exists());
    wait_until("the request is logged", || {
        has_line(&rig, "info", "request answered")
    });
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(has_line(&rig, "info", "turn started") && !has_line(&rig, "info", "turn ended"));
    let runs = rig.run(&["logs", "--runs", "--json"]).json();
    assert_eq!(
        (runs.as_array().unwrap().len(), &runs[0]["outcome"]),
        (1, &Value::Null)
    );
}

#[test]
fn log_has_jobs_and_sub_agents() {
    let call =
        json!({"subagents": "mode: parallel\nsubagents:\n  - name: helper\n    task: Look.\n"});
    let rig = rig([
        Reply::call("run_named_subagents", call),
        Reply::text("Seen."),
        Reply::text("Done."),
    ]);
    rig.write(
        ".haft/agents/helper.md",
        "---\nname: helper\ndescription: Looks\n---\nYou look.\n",
    );
    assert!(rig.command(&["trust"]).status().unwrap().success());
    let job = rig
        .run(&["run", "--bg", "--permission-mode", "yolo", "go"])
        .stdout();
    assert_eq!(rig.run(&["jobs", "attach", job.trim()]).code(), 0);
    let agents: Vec<_> = log_lines(&rig)
        .iter()
        .filter(|line| line["message"] == "turn ended")
        .map(|line| line["fields"]["agent"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(agents, ["helper", "main"], "{:?}", log_lines(&rig));
}

#[test]
fn log_files_are_private_and_masked() {
    let rig = rig([Reply::text("One.")]);
    let folder = rig.home().join("state/log");
    let empty = rig.run(&["logs"]);
    assert_eq!((empty.code(), empty.stdout().as_str()), (0, ""));
    assert!(
        empty.stderr().contains("nothing is logged") && !folder.exists(),
        "{}",
        empty.stderr()
    );
    rig.write(&format!("{KEY}.txt"), "");
    rig.task(&["--cwd", ".", &format!("read {KEY}")]);
    let files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let [file] = files.as_slice() else {
        panic!("{files:?}")
    };
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(file)), (0o700, 0o600));
    assert!(
        file.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("haft-2"),
        "{file:?}"
    );
    assert!(!log_text(rig.home()).contains(KEY));
}

#[test]
fn logs_lists_runs_and_shows_one() {
    let rig = rig([
        Reply::text("One."),
        run_command("true"),
        Reply::text("Two."),
    ]);
    rig.task(&["first"]);
    rig.task(&["second"]);
    let runs = rig.run(&["logs", "--runs", "--json"]).json();
    let [second, first] = runs.as_array().unwrap().as_slice() else {
        panic!("{runs}")
    };
    assert_eq!(
        (&first["outcome"], &first["problems"]),
        (&json!("completed"), &json!(0))
    );
    assert!(first["started_at"].as_str() < second["started_at"].as_str());
    let id = |run: &Value| run["run"].as_str().unwrap().to_owned();
    let shown = |arguments: &[&str]| rig.run(&[&["logs"], arguments].concat()).stdout();
    assert_eq!(shown(&[&id(second)]), shown(&[]));
    assert!(!shown(&[&id(first)[..6]]).contains("tool call") && shown(&[]).contains("tool call"));
    assert_eq!(
        shown(&["--all"]),
        shown(&[&id(first)]) + &shown(&[&id(second)])
    );
    assert!(
        shown(&["-n", "1"]).contains(" INFO  turn ended "),
        "{}",
        shown(&["-n", "1"])
    );
    assert!(
        shown(&["--runs"]).starts_with("RUN "),
        "{}",
        shown(&["--runs"])
    );
    let unknown = rig.run(&["logs", "zzzz"]);
    assert_eq!(unknown.code(), 2);
    assert!(
        unknown.stderr().contains("haft logs --runs"),
        "{}",
        unknown.stderr()
    );
}

#[test]
fn log_level_that_does_not_exist_is_refused() {
    let rig = rig([]);
    for level in ["loud", "INFO", "", "1", "true"] {
        let output = rig
            .command(&["run", "go"])
            .env("HAFT_LOG_LEVEL", level)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{level:?}: {said}");
        let explained = said.contains("expected one of `off`, `error`, `warn`")
            || said.contains("expected a name");
        assert!(said.contains("HAFT_LOG_LEVEL") && explained, "{said}");
    }
}

#[test]
fn log_that_cannot_be_written_stops_nothing() {
    let rig = rig([Reply::text("One.")]);
    std::fs::create_dir_all(rig.home().join("state")).unwrap();
    std::fs::write(rig.home().join("state/log"), "not a folder").unwrap();
    assert!(run_at_level(&rig, "debug", &["go"]).status.success());
}

#[test]
fn log_level_off_writes_nothing() {
    let rig = rig([Reply::error(400, "Bad.")]);
    run_at_level(&rig, "off", &["go"]);
    assert!(!rig.home().join("state/log").exists());
}

#[test]
fn logs_follow_shows_new_lines() {
    let rig = rig([Reply::text("One."), Reply::text("Two.")]);
    let mut follow = rig
        .command(&["logs", "-f", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(follow.stdout.take().unwrap());
    // Two runs: the first may be over before the follower has opened the log.
    run_at_level(&rig, "info", &["go"]);
    run_at_level(&rig, "info", &["go"]);
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    follow.kill().unwrap();
    follow.wait().unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["level"], "info", "{line}");
}
