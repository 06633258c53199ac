use serde_json::json;

use super::*;
use crate::LimitsConfig;
use crate::running::{session_interactive, session_stop};
use crate::testing::{Bench, running};

/// Longer than any command takes, so that no timing decides a test.
const LONG: u64 = 120;

struct Tools {
    start: Box<dyn Tool>,
    interact: Box<dyn Tool>,
    stop: Box<dyn Tool>,
}

fn tools(limits: LimitsConfig) -> Tools {
    let running = running(limits);
    Tools {
        start: Box::new(define_tool(Arc::clone(&running))),
        interact: Box::new(session_interactive::define_tool(Arc::clone(&running))),
        stop: Box::new(session_stop::define_tool(running)),
    }
}

fn default_tools() -> Tools {
    tools(LimitsConfig::default())
}

#[tokio::test]
async fn session_exchanges_input_and_output_until_the_exit() {
    let bench = Bench::new();
    let tools = default_tools();
    let line = r#"printf 'name? '; read name; echo "hello $name"; read -s; exit 3"#;
    let started = bench
        .ok(
            tools.start.as_ref(),
            json!({"command": line, "timeout": LONG}),
        )
        .await
        .envelope;
    assert_eq!(
        started.text,
        "Session s1 waits for a line of input.\n--- output ---\nname? "
    );
    assert_eq!(
        started.data,
        json!({"session_id": "s1", "state": "running", "awaits": "line", "stdout": "name? ", "stdout_lines": 1, "stdout_bytes": 6})
    );
    let answer = json!({"session_id": "s1", "input": "ann", "timeout": LONG});
    let told = bench.ok(tools.interact.as_ref(), answer).await.envelope;
    assert_eq!(
        told.text,
        "Session s1 waits for input it does not show, such as a password.\n--- output ---\nann\nhello ann"
    );
    let secret = json!({"session_id": "s1", "input": "x", "keys": ["enter"], "timeout": LONG});
    let ended = bench.ok(tools.interact.as_ref(), secret).await.envelope;
    assert_eq!(
        ended.text,
        "Session s1 has ended: exit code 3. No new output."
    );
    assert_eq!(
        (&ended.data["state"], &ended.data["exit_code"]),
        (&json!("ended"), &json!(3))
    );
    // The session is closed, and its files are removed.
    let (code, message) = bench
        .err(tools.interact.as_ref(), json!({"session_id": "s1"}))
        .await;
    assert_eq!(
        (code.as_str(), message.contains("exit code 3")),
        ("ended", true),
        "{message}"
    );
    assert_eq!(
        std::fs::read_dir(&bench.workspace().spill).unwrap().count(),
        0
    );
}

#[tokio::test]
async fn session_shell_keeps_folder_and_variables_and_can_be_interrupted() {
    let bench = Bench::new();
    let tools = default_tools();
    bench.write("sub/file", "");
    bench
        .ok(
            tools.start.as_ref(),
            json!({"command": "bash --norc", "cwd": "sub", "timeout": LONG}),
        )
        .await;
    let say = |input: &str| json!({"session_id": "s1", "input": input, "timeout": LONG});
    bench.ok(tools.interact.as_ref(), say("x=42; cd ..")).await;
    let text = bench
        .ok(tools.interact.as_ref(), say("ls; echo $((x + 1))"))
        .await
        .envelope
        .text;
    assert!(text.contains("\nsub\n43\n"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    let busy = json!({"session_id": "s1", "input": "sleep 1000", "timeout": 1});
    let text = bench.ok(tools.interact.as_ref(), busy).await.envelope.text;
    assert!(text.starts_with("Session s1 is "), "{text}");
    let text = bench
        .ok(
            tools.interact.as_ref(),
            json!({"session_id": "s1", "keys": ["ctrl-c"], "timeout": LONG}),
        )
        .await
        .envelope
        .text;
    assert!(text.starts_with("Session s1 waits for"), "{text}");
}

#[tokio::test]
async fn session_stop_returns_the_last_output_and_closes() {
    let bench = Bench::new();
    let tools = default_tools();
    bench
        .ok(
            tools.start.as_ref(),
            json!({"command": "trap 'echo bye; exit' TERM; echo up; while :; do sleep 0.01; done", "timeout": LONG}),
        )
        .await;
    let stopped = bench
        .ok(tools.stop.as_ref(), json!({"session_id": "s1"}))
        .await
        .envelope;
    assert!(
        stopped
            .text
            .starts_with("Session s1 has ended: it was ended."),
        "{}",
        stopped.text
    );
    assert!(stopped.text.ends_with("bye"), "{}", stopped.text);
    assert_eq!(
        bench
            .err(tools.stop.as_ref(), json!({"session_id": "s1"}))
            .await
            .0,
        "ended"
    );
    let (code, message) = bench
        .err(tools.stop.as_ref(), json!({"session_id": "s7"}))
        .await;
    assert_eq!(
        (code.as_str(), message.contains("none is open")),
        ("not_found", true),
        "{message}"
    );
}

#[tokio::test]
async fn session_limit_counts_only_running_sessions() {
    let limits = LimitsConfig {
        sessions: 2,
        ..LimitsConfig::default()
    };
    let bench = Bench::new();
    let tools = tools(limits);
    for _ in 0..3 {
        let ended = json!({"command": "true", "timeout": LONG});
        assert!(
            bench
                .ok(tools.start.as_ref(), ended)
                .await
                .envelope
                .text
                .contains("has ended: exit code 0")
        );
    }
    let open = json!({"command": "cat", "timeout": LONG});
    bench.ok(tools.start.as_ref(), open.clone()).await;
    bench.ok(tools.start.as_ref(), open.clone()).await;
    let (code, message) = bench.err(tools.start.as_ref(), open.clone()).await;
    assert_eq!(code, "too_many");
    assert!(
        message.contains("s4 (`cat`), s5 (`cat`); end one first"),
        "{message}"
    );
    bench
        .ok(tools.stop.as_ref(), json!({"session_id": "s4"}))
        .await;
    bench.ok(tools.start.as_ref(), open).await;
}

#[tokio::test]
async fn session_output_is_cut_and_kept_whole_in_a_file() {
    let bench = Bench::new().with_limits(20, 1_000);
    let tools = default_tools();
    let output = bench
        .ok(
            tools.start.as_ref(),
            json!({"command": "seq 1 5000; read x; seq 1 9", "timeout": LONG}),
        )
        .await;
    let text = &output.envelope.text;
    assert!(
        text.lines().count() <= 24 && text.contains("omitted"),
        "{text}"
    );
    let file = output.envelope.data["spill"][0]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(text.contains(&file), "{text}");
    let last = bench
        .ok(
            tools.interact.as_ref(),
            json!({"session_id": "s1", "input": "", "timeout": LONG}),
        )
        .await;
    assert!(
        !last.envelope.text.contains("omitted"),
        "only what is new counts: {}",
        last.envelope.text
    );
    let whole = std::fs::read_to_string(file).unwrap();
    assert!(
        whole.starts_with("1\r\n2\r\n") && whole.ends_with("8\r\n9\r\n"),
        "the file stays and goes on"
    );
}

#[tokio::test]
async fn session_start_rejects_invalid_arguments() {
    let bench = Bench::new();
    let tools = default_tools();
    for wrong in [
        json!({"command": " "}),
        json!({"command": "touch made", "timeout": 601}),
        json!({"command": "touch made", "rows": 0}),
        json!({"command": "touch made", "columns": 5000}),
        json!({"command": "touch made", "shell": "zsh"}),
    ] {
        assert_eq!(
            bench.err(tools.start.as_ref(), wrong).await.0,
            "invalid_arguments"
        );
    }
    assert!(bench.files().is_empty());
}
