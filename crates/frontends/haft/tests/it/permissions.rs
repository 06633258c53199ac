//! Permission rules in the real binary: configuration, `haft permissions`, runs, and answers at a
//! terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use haft_testkit::{Reply, Script};
use haft_types::Api;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::rig::{Ran, Rig, haft};

/// A rig with this `[permissions]` section.
fn rig(replies: impl IntoIterator<Item = Reply>, section: &str) -> Rig {
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!("{config}\n[permissions]\n{section}\n"));
    rig
}

fn command_call(line: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({ "command": line, "requires_approval": false }),
    )
}

fn explain(rig: &Rig, arguments: &[&str]) -> Value {
    let mut all = vec!["permissions", "explain", "--json"];
    all.extend(arguments);
    let ran = rig.run(&all);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    ran.json()
}

#[test]
fn explain_reports_decision_rule_and_parts() {
    let rig = rig(
        [Reply::text("never")],
        "allow = [\"execute_command(git status:*)\", \"write_to_file(src/**)\"]\ndeny = [\"execute_command(rm:*)\"]",
    );
    let told = explain(&rig, &["git status -s"]);
    assert_eq!(
        (&told["decision"], &told["rule"]),
        (&json!("allow"), &json!("execute_command(git status:*)"))
    );
    let told = explain(&rig, &["git status && sudo rm x"]);
    assert_eq!(
        (&told["decision"], &told["rule"]),
        (&json!("deny"), &json!("execute_command(rm:*)"))
    );
    let parts: Vec<_> = told["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| (&part["command"], &part["decision"]))
        .collect();
    assert_eq!(
        parts,
        [
            (&json!("git status"), &json!("allow")),
            (&json!("sudo rm x"), &json!("ask")),
            (&json!("rm x"), &json!("deny"))
        ]
    );
    let told = explain(&rig, &["echo $((x))"]);
    assert_eq!(
        (&told["decision"], &told["rule"]),
        (&json!("ask"), &Value::Null)
    );
    let write = |path: &str| {
        let arguments = json!({ "path": path, "content": "x" }).to_string();
        explain(&rig, &["--tool", "Write", "--args", &arguments])["decision"].clone()
    };
    assert_eq!(
        [write("src/a"), write("b"), write("src/.git/x")],
        [json!("allow"), json!("ask"), json!("ask")]
    );
    let told = explain(&rig, &["--permission-mode", "plan", "git status"]);
    assert_eq!(told["decision"], "deny");
    insta::assert_snapshot!(rig.screen(&["permissions", "explain", "make check"]), @"
    ask: not covered by any rule

    To allow exactly this: haft permissions add 'execute_command(make check)'
    ");
    insta::assert_snapshot!(
        rig.screen(&["permissions", "explain", "git status && sudo rm x"]),
        @"
    deny: the rule `execute_command(rm:*)` denies `rm x`

    DECISION  PART  RULE
    allow  git status  execute_command(git status:*)
    ask  sudo rm x  (none)
    deny  rm x  execute_command(rm:*)
    "
    );
}

#[test]
fn explain_names_the_file_rule_that_decides() {
    let rig = rig(
        [],
        "allow = [\"write_to_file(src/**)\"]\ndeny = [\"read_file(**/.env)\"]",
    );
    let explained = |tool: &str, path: &str| {
        let arguments = json!({ "path": path, "content": "x" }).to_string();
        rig.screen(&[
            "permissions",
            "explain",
            "--tool",
            tool,
            "--args",
            &arguments,
        ])
    };
    insta::assert_snapshot!(explained("write_to_file", "src/a"), @"allow: `write_to_file(src/**)` allows it");
    insta::assert_snapshot!(explained("write_to_file", "/nowhere/a"), @"
    ask: `/nowhere/a` is outside the project `PROJECT`

    To allow exactly this: haft permissions add 'write_to_file(/nowhere/a)'
    ");
    insta::assert_snapshot!(explained("write_to_file", "/nowhere/b/../a"), @"
    ask: `/nowhere/b/../a` is `/nowhere/a`, which is outside the project `PROJECT`

    To allow exactly this: haft permissions add 'write_to_file(/nowhere/a)'
    ");
    insta::assert_snapshot!(rig.screen(&["permissions", "explain", "cat .env"]), @"deny: the rule `read_file(**/.env)` denies `.env`");
}

#[test]
fn explain_says_why_a_line_cannot_be_judged() {
    let rig = rig([], "allow = [\"execute_command(echo:*)\"]");
    insta::assert_snapshot!(rig.screen(&["permissions", "explain", "echo 'open"]), @"ask: the line has a quote without its end");
    insta::assert_snapshot!(rig.screen(&["permissions", "explain", "echo $(make) > log"]), @"
    ask: not covered by any rule; it writes `log`; only a `write_to_file(…)` rule can allow that

    DECISION  PART  RULE
    ask  make  (none)
    ask  > log  (none)
    allow  echo $(make)  execute_command(echo:*)
    ");
}

#[test]
fn explain_in_plan_mode_denies_commands_that_may_write() {
    let rig = rig([], "");
    insta::assert_snapshot!(
        rig.screen(&["permissions", "explain", "--permission-mode", "plan", "make"]),
        @"deny: `execute_command` runs commands, and this run is read-only (permission mode `plan`)"
    );
}

#[test]
fn explain_reports_invalid_arguments() {
    let rig = rig([Reply::text("never")], "mode = \"yolo\"");
    for (tool, arguments) in [
        (
            "execute_command",
            json!({ "command": ["rm", "-rf", "/"], "requires_approval": false }),
        ),
        ("execute_command", json!({ "requires_approval": false })),
        ("Bash", json!({ "command": 1 })),
        ("read_file", json!({ "path": { "a": 1 } })),
        ("write_to_file", json!({ "path": "a" })),
    ] {
        let told = explain(&rig, &["--tool", tool, "--args", &arguments.to_string()]);
        assert_eq!(told["decision"], "invalid", "{tool} {arguments}: {told}");
    }
    insta::assert_snapshot!(
        rig.screen(&["permissions", "explain", "--tool", "read_file", "--args", "{\"path\": 1}"]),
        @r#"invalid: `read_file` would reject these arguments: 1 is not of type "string" at `/path`"#
    );
    let arguments = json!({ "command": "ls", "requires_approval": false }).to_string();
    assert_eq!(
        explain(&rig, &["--tool", "execute_command", "--args", &arguments])["decision"],
        "allow"
    );
    assert_eq!(
        explain(
            &rig,
            &["--tool", "Read", "--args", "{\"file_path\": \"a\"}"]
        )["decision"],
        "allow"
    );
}

#[test]
fn add_writes_the_file_and_list_reads_it() {
    let rig = rig(
        [Reply::text("never")],
        "# mine\nallow = [\"execute_command(ls:*)\"] # reading",
    );
    insta::assert_snapshot!(
        rig.screen(&["permissions", "add", "--deny", "execute_command(rm:*)"]),
        @"Added 1 deny rule to `HOME/config.toml`."
    );
    let mut listed = rig.run(&["permissions", "list", "--json"]).json();
    listed["rules"]
        .as_array_mut()
        .unwrap()
        .retain(|rule| rule["source"] != "built-in");
    assert_eq!(
        listed,
        json!({ "mode": "ask", "rules": [
            { "decision": "deny", "rule": "execute_command(rm:*)", "source": "user" },
            { "decision": "allow", "rule": "execute_command(ls:*)", "source": "user" },
        ] })
    );
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    assert!(
        config.contains("# mine\nallow = [\"execute_command(ls:*)\"] # reading\ndeny = [\"execute_command(rm:*)\"]"),
        "{config}"
    );
    insta::assert_snapshot!(rig.screen(&["permissions", "add", "execute_command(a; b)"]), @"
    -- errors
    haft: `execute_command(a; b)` does not name the words of one command (it has more or less than one plain command); quote what is special to the shell, and write `:*` at the end for any further words
    -- exit 2
    ");
}

#[test]
fn rule_that_fails_its_examples_is_a_configuration_error() {
    let rig = rig(
        [Reply::text("never")],
        "[[permissions.rules]]\nrule = \"execute_command(git log:*)\"\ndecision = \"allow\"\nmatch = [\"git log -p\", \"git log > f\"]",
    );
    insta::assert_snapshot!(rig.screen(&["run", "x"]), @"
    -- errors
    haft: HOME/config.toml:13:1: permissions: the allow rule `execute_command(git log:*)` must match its example `git log > f`, but it does not (it writes `f`, which no rule on a command covers; `write_to_file(…)` would)
    -- exit 2
    ");
}

#[test]
fn rules_decide_in_a_headless_run() {
    let section = "allow = [\"execute_command(touch:*)\", \"write_to_file(*.txt)\"]\ndeny = [\"execute_command(touch forbidden:*)\"]";
    let calls = [
        command_call("touch made"),
        Reply::call(
            "write_to_file",
            json!({ "path": "written.txt", "content": "x" }),
        ),
        command_call("touch forbidden"),
        Reply::text("That one I may not."),
    ];
    let rig = rig(calls, section);
    let ran = rig.run(&["run", "do it"]);
    assert_eq!(ran.code(), 3, "{}", ran.stderr());
    let exists = |name: &str| rig.project().join(name).exists();
    assert_eq!(
        [exists("made"), exists("written.txt"), exists("forbidden")],
        [true, true, false]
    );
    let told = rig.server.generation_requests()[3].decode().unwrap();
    assert!(told.last_message_contains(
        "the rule `execute_command(touch forbidden:*)` denies `touch forbidden`"
    ));
}

#[test]
fn deny_rules_hold_in_yolo_mode() {
    let rig = rig(
        [command_call("env touch forbidden"), Reply::text("No.")],
        "deny = [\"execute_command(touch:*)\"]",
    );
    assert_eq!(rig.task(&["do it"]).code(), 3);
    assert!(!rig.project().join("forbidden").exists());
}

#[test]
fn ask_flag_needs_a_terminal() {
    let rig = rig([Reply::text("never asked")], "");
    let mut command = Command::new("setsid");
    command
        .args(["--wait"])
        .arg(haft())
        .args(["run", "--ask", "x"])
        .stdin(Stdio::null());
    let Some(ran) = run_in_rig(&rig, command) else {
        return;
    };
    insta::assert_snapshot!(rig.mask(&ran), @"
    -- errors
    haft: `--ask` needs a terminal to ask on, and there is none (No such device or address (os error 6)); leave it out, or allow what is needed with `haft permissions add`
    -- exit 2
    ");
}

/// Runs a command in the home and project of the rig. Returns `None`, and prints why, if the
/// program is not installed.
#[expect(clippy::print_stdout, reason = "a test says why it skips")]
fn run_in_rig(rig: &Rig, mut command: Command) -> Option<Ran> {
    let told = rig.command(&[]);
    command.current_dir(rig.project()).env_clear();
    command.envs(
        told.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    match command.output() {
        Ok(output) => Some(Ran(output)),
        Err(error) => {
            println!("skipped: `setsid` cannot be run here ({error})");
            None
        }
    }
}

/// Runs haft at its own terminal: types `ahead` before any question, then each answer once a prompt
/// waits for it. Returns the run and the text on the terminal.
pub(crate) fn run_at_terminal(
    rig: &Rig,
    arguments: &[&str],
    ahead: &str,
    answers: &[&str],
) -> Option<(Ran, String)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let mut master = File::from(master);
    master.write_all(ahead.as_bytes()).unwrap();
    let mut command = Command::new("setsid");
    command
        .args(["--ctty", "--wait"])
        .arg(haft())
        .args(arguments)
        .stdin(terminal);
    let answers: Vec<_> = answers.iter().map(|answer| format!("{answer}\n")).collect();
    let typist = std::thread::spawn(move || {
        let mut shown = String::new();
        let mut answers = answers.into_iter();
        let mut piece = [0; 4096];
        // The slave side is closed when haft has exited.
        while let Ok(length @ 1..) = master.read(&mut piece) {
            shown.push_str(&String::from_utf8_lossy(&piece[..length]));
            if let Some(answer) = shown.ends_with(": ").then(|| answers.next()).flatten() {
                master.write_all(answer.as_bytes()).unwrap();
            }
        }
        shown
    });
    let ran = run_in_rig(rig, command)?;
    Some((ran, typist.join().unwrap()))
}

/// Runs `haft run --ask` and answers its only question.
fn run_with_one_answer(rig: &Rig, ahead: &str, answer: &str) -> Option<(Ran, String)> {
    run_at_terminal(rig, &["run", "--ask", "do it"], ahead, &[answer])
}

/// A yes typed before the question is shown does not count.
#[test]
fn ask_flag_ignores_input_typed_before_the_question() {
    let rig = rig([command_call("touch made"), Reply::text("Done.")], "");
    let Some((ran, shown)) = run_with_one_answer(&rig, "y\nyes\na\n", "n") else {
        return;
    };
    assert!(!rig.project().join("made").exists(), "{shown}");
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
}

#[test]
fn ask_flag_yes_allows_one_call() {
    let rig = rig([command_call("touch made"), Reply::text("Done.")], "");
    let Some((ran, shown)) = run_with_one_answer(&rig, "", "y") else {
        return;
    };
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(rig.project().join("made").exists());
    assert!(
        shown.contains("Run touch made? Not covered by any rule."),
        "{shown}"
    );
}

#[test]
fn ask_flag_always_saves_a_rule() {
    let calls = [
        command_call("touch made"),
        command_call("touch made"),
        Reply::text("Done."),
    ];
    let rig = rig(calls, "mode = \"ask\" # my rules");
    let Some((ran, shown)) = run_with_one_answer(&rig, "", "a") else {
        return;
    };
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(
        shown.matches("Run touch made?").count(),
        1,
        "the second call is not asked: {shown}"
    );
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    assert!(
        config.contains("# my rules\nallow = [\"execute_command(touch made)\"]"),
        "{config}"
    );
}

#[test]
fn ask_flag_text_denies_with_a_reason() {
    let rig = rig([command_call("touch made"), Reply::text("Then not.")], "");
    let Some((ran, _)) = run_with_one_answer(&rig, "", "call it built") else {
        return;
    };
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(!rig.project().join("made").exists());
    assert!(
        rig.server.generation_requests()[1]
            .decode()
            .unwrap()
            .last_message_contains("They said: call it built")
    );
}

#[test]
fn read_file_outside_the_project_needs_approval() {
    let read = || Reply::call("read_file", json!({ "path": "/etc/hostname" }));
    let rig = rig([read(), Reply::text("Read.")], "");
    let refused = rig.run(&["run", "read it"]);
    assert_eq!(refused.code(), 0, "{}", refused.stderr());
    assert!(
        rig.server.generation_requests()[1]
            .decode()
            .unwrap()
            .last_message_contains("outside the project")
    );
    let rig = rig.with_script(
        Script::replies([read(), Reply::text("Read.")]).unwrap(),
        Api::OpenaiChat,
    );
    let Some((ran, shown)) = run_with_one_answer(&rig, "", "y") else {
        return;
    };
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(shown.contains("/etc/hostname"), "{shown}");
    let seen = rig.server.generation_requests();
    assert!(
        !seen[1]
            .decode()
            .unwrap()
            .last_message_contains("outside the project")
    );
}

/// A notebook whose text, as a git configuration, would make git run a program of the repository.
fn notebook_with_git_config() -> String {
    json!({ "cells": [{ "cell_type": "raw", "metadata": {}, "source": ["[core]\n", "fsmonitor = ./evil\n"] }],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5 })
    .to_string()
}

/// Extraction obeys protected files and rules like every tool that edits, and writes ordinary
/// files.
#[test]
fn extract_to_text_obeys_protected_files_and_rules() {
    let extract = |output: &str| {
        Reply::call(
            "extract_to_text",
            json!({ "path": "a.ipynb", "output": output }),
        )
    };
    for mode in ["accept-edits", "auto"] {
        for output in [
            ".git/config",
            ".envrc",
            ".haft/config.toml",
            ".github/workflows/a.yml",
            "open/config",
            "secrets/a",
        ] {
            let rig = Rig::untrusted(
                Api::OpenaiChat,
                Script::replies([extract(output), Reply::text("done")]).unwrap(),
            );
            let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
            rig.configure(&format!(
                "{config}\n[permissions]\ndeny = [\"write_to_file(secrets/**)\"]\n"
            ));
            std::fs::create_dir_all(rig.project().join(".git")).unwrap();
            std::os::unix::fs::symlink(".git", rig.project().join("open")).unwrap();
            rig.write("a.ipynb", notebook_with_git_config());
            let ran = rig.run(&[
                "run",
                "--permission-mode",
                mode,
                "--output-format",
                "stream-json",
                "go",
            ]);
            let results: Vec<_> = ran
                .events()
                .into_iter()
                .filter(|event| event["type"] == "tool_result")
                .collect();
            assert_eq!(
                results[0]["error"]["code"],
                "permission_denied",
                "{mode} {output}: {}",
                ran.stdout()
            );
            assert!(!rig.project().join(output).exists(), "{mode} {output}");
        }
        let rig = rig(
            [extract("notes/a.txt"), Reply::text("done")],
            "deny = [\"write_to_file(secrets/**)\"]",
        );
        rig.write("a.ipynb", notebook_with_git_config());
        let ran = rig.run(&["run", "--permission-mode", mode, "go"]);
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
        assert!(
            std::fs::read_to_string(rig.project().join("notes/a.txt"))
                .unwrap()
                .contains("fsmonitor"),
            "{mode}"
        );
    }
}

/// A file that must not be read cannot be read by another tool either, nor by way of its folder.
#[test]
fn deny_rules_for_reading_hold_for_every_tool() {
    let calls = [
        (
            "extract_to_text",
            json!({ "path": "private/a.ipynb", "output": "out.txt" }),
        ),
        ("search_files", json!({ "path": ".", "regex": "fsmonitor" })),
        (
            "useful_info_add",
            json!({ "path": "private/b.txt", "start_line": 1, "end_line": 2, "description": "it" }),
        ),
        ("list_files", json!({ "path": ".", "recursive": true })),
    ];
    for (tool, arguments) in calls {
        let replies = [Reply::call(tool, arguments), Reply::text("done")];
        let rig = rig(
            replies,
            "mode = \"yolo\"\ndeny = [\"read_file(private/**)\"]",
        );
        std::fs::create_dir(rig.project().join("private")).unwrap();
        rig.write("private/a.ipynb", notebook_with_git_config());
        rig.write("private/b.txt", "fsmonitor = b\n");
        rig.write("open.txt", "nothing\n");
        rig.run(&["run", "--permission-mode", "yolo", "go"]);
        let sent = rig
            .server
            .requests()
            .iter()
            .map(|request| String::from_utf8_lossy(&request.body).into_owned())
            .collect::<String>();
        assert!(
            !sent.contains("fsmonitor = ./evil") && !sent.contains("fsmonitor = b"),
            "{tool}: {sent}"
        );
        assert!(!rig.project().join("out.txt").exists());
    }
}
