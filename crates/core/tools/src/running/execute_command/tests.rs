use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::LimitsConfig;
use crate::files::read_file;
use crate::testing::{Bench, running};

fn tool() -> impl Tool {
    define_tool(running(LimitsConfig::default()))
}

fn command_arguments(command: &str) -> Value {
    json!({"command": command, "requires_approval": false})
}

fn spill_files(bench: &Bench) -> Vec<PathBuf> {
    fs::read_dir(&bench.workspace().spill)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

#[tokio::test]
async fn execute_command_returns_output_and_exit_code() {
    let bench = Bench::new();
    let output = bench
        .ok(&tool(), command_arguments("echo out; echo err >&2; pwd"))
        .await;
    let root = bench.path("");
    let root = root.display();
    assert_eq!(
        output.envelope.text,
        format!("Exit code 0.\n--- stdout ---\nout\n{root}\n--- stderr ---\nerr")
    );
    let mut data = output.envelope.data.clone();
    assert!(
        data.as_object_mut()
            .unwrap()
            .remove("duration_ms")
            .unwrap()
            .is_u64()
    );
    assert_eq!(
        data,
        json!({
            "command": "echo out; echo err >&2; pwd", "cwd": ".", "exit_code": 0,
            "stdout": format!("out\n{root}\n"), "stderr": "err\n",
            "stdout_lines": 2, "stdout_bytes": 5 + root.to_string().len(), "stderr_lines": 1, "stderr_bytes": 4,
        })
    );
    assert_eq!(spill_files(&bench), Vec::<PathBuf>::new());
    assert_eq!(
        bench
            .ok(&tool(), command_arguments("true"))
            .await
            .envelope
            .text,
        "Exit code 0. No output."
    );
}

#[tokio::test]
async fn execute_command_error_keeps_the_output() {
    let bench = Bench::new();
    let output = bench
        .run(&tool(), command_arguments("echo broken; exit 3"))
        .await;
    assert_eq!(output.envelope.text, "Exit code 3.\n--- stdout ---\nbroken");
    let error = output.envelope.error.unwrap();
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("exit_status", "exit status 3")
    );
    assert_eq!(output.envelope.data["exit_code"], 3);

    let output = bench.run(&tool(), command_arguments("kill -9 $$")).await;
    assert_eq!(
        output.envelope.text,
        "Ended by signal 9 (SIGKILL). No output."
    );
    assert_eq!(output.envelope.error.unwrap().code, "signal");
}

#[tokio::test]
async fn execute_command_runs_in_its_folder_with_its_environment() {
    let bench = Bench::new();
    bench.write("sub/file", "");
    let arguments = json!({"command": "ls; env | grep -c HOME; true", "requires_approval": false, "cwd": "sub"});
    let text = bench.ok(&tool(), arguments).await.envelope.text;
    assert!(text.contains("file\n0"), "{text}");
    for (cwd, code) in [
        ("nope", "not_a_folder"),
        ("sub/file", "not_a_folder"),
        ("/etc", "outside_workspace"),
    ] {
        let arguments = json!({"command": "ls", "requires_approval": false, "cwd": cwd});
        assert_eq!(bench.err(&tool(), arguments).await.0, code, "{cwd}");
    }
}

#[tokio::test]
async fn execute_command_cuts_long_output_and_keeps_it_in_a_file() {
    let bench = Bench::new().with_limits(20, 1_000);
    let output = bench.ok(&tool(), command_arguments("seq 1 5000")).await;
    let text = &output.envelope.text;
    assert!(
        text.starts_with("Exit code 0.\n--- stdout ---\n1\n2\n"),
        "{text}"
    );
    assert!(
        text.contains("\n5000\n[The whole stdout has 5000 lines and 23893 bytes. It is in `"),
        "{text}"
    );
    assert!(text.lines().count() <= 24, "{text}");
    let spill = PathBuf::from(output.envelope.data["spill"][0].as_str().unwrap());
    let whole: String = (1..=5000).map(|number| number.to_string() + "\n").collect();
    assert_eq!(fs::read_to_string(&spill).unwrap(), whole);
    assert_eq!(
        fs::metadata(&spill).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // The model can read the file by range.
    let read = bench
        .ok(
            &read_file::define_tool(),
            json!({"path": spill, "start_line": 4999, "end_line": 4999}),
        )
        .await;
    assert_eq!(read.envelope.text, "4999\t4999\n[Lines 4999-4999 of 5000.]");
}

#[tokio::test]
async fn execute_command_shares_the_limit_between_two_long_streams() {
    let bench = Bench::new().with_limits(1_000, 1_000);
    let output = bench
        .ok(
            &tool(),
            command_arguments("seq 1000 1159; seq 1000 1159 >&2"),
        )
        .await;
    let text = &output.envelope.text;
    assert_eq!(text.matches("omitted").count(), 2, "{text}");
    assert_eq!(text.matches("1159").count(), 2, "{text}");
    assert_eq!(output.envelope.data["spill"].as_array().unwrap().len(), 2);

    // Each stream alone is within the limit: nothing is cut, so no file is left.
    let bench = Bench::new().with_limits(1_000, 1_000);
    let output = bench.ok(&tool(), command_arguments("seq 1000 1159")).await;
    assert!(!output.envelope.text.contains("omitted"));
    assert_eq!(output.envelope.data.get("truncated"), None);
    assert_eq!(spill_files(&bench), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn execute_command_removes_terminal_sequences() {
    let bench = Bench::new();
    let output = bench
        .ok(
            &tool(),
            command_arguments(r"printf '\033[31mred\033[0m\033]0;title\007 10%%\r100%%\n'"),
        )
        .await;
    assert!(!output.envelope.text.contains('\u{1b}'));
    assert!(
        !output.envelope.data["stdout"]
            .as_str()
            .unwrap()
            .contains('\u{1b}')
    );
}

#[tokio::test]
async fn execute_command_timeout_is_reported_and_ends_the_command() {
    let bench = Bench::new();
    // On a busy machine a short time may pass before the shell has started.
    for seconds in [1, 8, 64] {
        let arguments = json!({"command": "echo begun; sleep 6000", "timeout": seconds});
        let output = bench.run(&tool(), arguments).await.envelope;
        assert!(
            output
                .text
                .starts_with(&format!("Timed out after {seconds} s;")),
            "{}",
            output.text
        );
        assert_eq!(
            (
                output.error.unwrap().code.as_str(),
                &output.data["timed_out"]
            ),
            ("timed_out", &json!(true))
        );
        if output.text.ends_with("--- stdout ---\nbegun") {
            return;
        }
    }
    panic!("what the command printed before its time was over is not there");
}

#[tokio::test]
async fn execute_command_reports_cancellation() {
    let bench = Bench::new();
    let cancel = bench.context.cancel.clone();
    let marker = bench.path("begun");
    let watch = tokio::spawn(async move {
        while !marker.exists() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    let output = bench
        .run(&tool(), command_arguments("touch begun; sleep 600"))
        .await;
    watch.await.unwrap();
    assert_eq!(output.envelope.error.unwrap().code, "cancelled");
    assert!(
        output.envelope.text.starts_with("Cancelled;"),
        "{}",
        output.envelope.text
    );
}

#[tokio::test]
async fn requires_approval_is_optional() {
    let bench = Bench::new();
    bench.ok(&tool(), json!({"command": "touch made"})).await;
    assert_eq!(bench.files(), ["made"]);
}

#[tokio::test]
async fn execute_command_rejects_wrong_arguments() {
    let bench = Bench::new();
    for arguments in [
        json!({"command": " ", "requires_approval": false}),
        json!({"command": "touch made", "requires_approval": "maybe"}),
        json!({"command": "touch made", "requires_approval": false, "timeout": 0}),
        json!({"command": "touch made", "requires_approval": false, "timeout": 3601}),
        json!({"command": "touch made", "requires_approval": false, "background": true}),
    ] {
        assert_eq!(bench.err(&tool(), arguments).await.0, "invalid_arguments");
    }
    assert_eq!(
        bench
            .err(&tool(), command_arguments("touch made; echo \0"))
            .await
            .0,
        "cannot_run"
    );
    assert!(bench.files().is_empty());
}

#[tokio::test]
async fn execute_command_shows_progress_while_it_runs() {
    let bench = Bench::new();
    // The command continues only after some output was shown.
    let watched = Arc::clone(&bench.progress);
    let marker = bench.path("go");
    let watch = tokio::spawn(async move {
        while !watched
            .0
            .lock()
            .unwrap()
            .iter()
            .any(|text| text.contains("begun"))
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        fs::write(marker, "").unwrap();
    });
    let line = command_arguments(
        r"printf 'begun \033[31mred\033[0m\n'; yes | head -c 100000; while [ ! -e go ]; do sleep 0.01; done",
    );
    bench.ok(&tool(), line).await;
    watch.await.unwrap();
    let shown = bench.progress.0.lock().unwrap();
    assert!(
        shown
            .iter()
            .all(|text| text.len() <= 2_000 && !text.contains('\u{1b}')),
        "{shown:?}"
    );
}

#[tokio::test]
async fn execute_command_suggests_a_session_if_a_terminal_is_needed() {
    let bench = Bench::new();
    for command in [
        "read answer < /dev/tty",
        "sh -c ': > /dev/tty'",
        "echo 'sudo: a terminal is required' >&2; exit 1",
    ] {
        let text = bench
            .run(&tool(), command_arguments(command))
            .await
            .envelope
            .text;
        assert!(
            text.ends_with("give the answers as options.]") && text.contains("session_start"),
            "{text}"
        );
    }
    let text = bench
        .run(&tool(), command_arguments("echo /dev/tty; exit 0"))
        .await
        .envelope
        .text;
    assert!(
        !text.contains("session_start"),
        "only when it failed: {text}"
    );
}

/// Regression test: a small model called `make.sh` three times and read "command not found" three
/// times.
#[tokio::test]
async fn execute_command_suggests_how_to_run_a_script() {
    let bench = Bench::new();
    bench.write("make.sh", "#!/bin/sh\necho \"all is well\" > result.txt\n");
    bench.write("tools/count.py", "print(7)\n");
    bench.write("notes", "no script\n");
    bench.write("inner/x", "");
    for (command, says) in [
        (
            "make.sh",
            Some("`make.sh` is a file here that the shell cannot start. Run it so: `bash make.sh`"),
        ),
        ("./make.sh", Some("Run it so: `bash ./make.sh`")),
        (
            "cd . && tools/count.py",
            Some("Run it so: `python3 tools/count.py`"),
        ),
        ("notes", None),
        ("cd inner && ../make.sh", None),
        ("echo 'sh: ../outside.sh: not found' >&2; exit 127", None),
        ("no-such-program", None),
    ] {
        let text = bench
            .run(&tool(), command_arguments(command))
            .await
            .envelope
            .text;
        assert!(text.starts_with("Exit code 12"), "{command}: {text}");
        assert_eq!(
            text.contains("Run it so"),
            says.is_some(),
            "{command}: {text}"
        );
        assert!(
            says.is_none_or(|says| text.contains(says)),
            "{command}: {text}"
        );
    }
    assert_eq!(
        bench
            .ok(
                &tool(),
                command_arguments("/bin/sh make.sh && cat result.txt")
            )
            .await
            .envelope
            .data["stdout"],
        "all is well\n"
    );
}

#[tokio::test]
async fn execute_command_timeout_reports_waiting_at_the_commands_terminal() {
    let bench = Bench::new();
    if bench
        .run(&tool(), command_arguments("python3 --version"))
        .await
        .envelope
        .error
        .is_some()
    {
        return eprintln!("skipped: there is no python3");
    }
    // The parent holds the other end of the terminal and never writes.
    bench.write(
        "ask.py",
        "import os, pty\npid, fd = pty.fork()\nif pid == 0: input()\nos.waitpid(pid, 0)\n",
    );
    // Long enough for a busy machine to start the program and to notice that it waits.
    let command = "python3 ask.py";
    let output = bench
        .run(
            &tool(),
            json!({"command": command, "requires_approval": false, "timeout": 25}),
        )
        .await;
    assert!(
        output
            .envelope
            .text
            .contains("[It was waiting for input at a terminal"),
        "{}",
        output.envelope.text
    );
    assert!(
        bench
            .progress
            .0
            .lock()
            .unwrap()
            .iter()
            .any(|text| text.contains("waits for input"))
    );
}
