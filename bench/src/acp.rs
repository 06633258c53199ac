//! Measures `haft acp` from an editor's point of view: the first response, the time to cancel a
//! turn, and the memory of fifty sessions.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use haft_testkit::{Reply, Script, ScriptedServer, When};
use serde_json::{Value, json};

use crate::figures;
use crate::subject::{Workspace, read_peak_memory_mb};

const STARTS: usize = 20;
const CANCELS: usize = 20;
const SESSIONS: usize = 50;
/// The file that a command creates to show that it has started.
const STARTED_FILE: &str = "started";

pub(crate) fn run_benchmark(haft: &Path) -> anyhow::Result<()> {
    let slow = Reply {
        delta_chars: Some(1),
        delta_delay_ms: 20,
        ..Reply::text("word ".repeat(400))
    };
    let slow = slow.when(When {
        last_contains: Some("slowly".into()),
        ..When::default()
    });
    let runs = Reply::call(
        "execute_command",
        json!({"command": format!("touch {STARTED_FILE}; sleep 60")}),
    );
    let runs = runs.when(When {
        last_contains: Some("Run it".into()),
        ..When::default()
    });
    let quick = Reply::text("Done.").when(When::default());
    let server =
        ScriptedServer::builder(Script::replies([slow, runs, quick])?).start_in_thread()?;
    let place = Workspace::new(&server)?;
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let begun = Instant::now();
        let mut editor = Editor::start(&place, haft)?;
        editor.call_method(
            "initialize",
            &json!({"protocolVersion": 1, "clientCapabilities": {}}),
        )?;
        starts.push(begun.elapsed());
        editor.close()?;
    }
    let median = figures::median_ms(&mut starts);
    figures::print_figure(
        &format!("start to `initialize` answered, median of {STARTS}"),
        median,
        "ms",
        Some(30.0),
    );

    let mut editor = Editor::start(&place, haft)?;
    editor.call_method(
        "initialize",
        &json!({"protocolVersion": 1, "clientCapabilities": {}}),
    )?;
    let session = editor.new_session(place.project())?;
    let mut cancels = Vec::new();
    for _ in 0..CANCELS {
        let prompt = editor.send_request(
            "session/prompt",
            &build_prompt_params(&session, "Speak slowly"),
        )?;
        while editor.read_message()?["params"]["update"]["sessionUpdate"] != "agent_message_chunk" {
        }
        let begun = Instant::now();
        editor.send_notification("session/cancel", &json!({"sessionId": session}))?;
        editor.wait_for_result(prompt)?;
        cancels.push(begun.elapsed());
    }
    print_cancel_times("cancel in mid-stream", &mut cancels);
    match time_command_cancels(&mut editor, &place) {
        Ok(mut cancels) => {
            print_cancel_times("cancel while a command runs in the sandbox", &mut cancels);
        }
        Err(error) => figures::print_line(&format!(
            "cancel while a command runs in the sandbox: not measured: {error:#}"
        )),
    }
    let one = read_peak_memory_mb(editor.child.id())?;
    for _ in 0..SESSIONS {
        let session = editor.new_session(place.project())?;
        editor.call_method("session/prompt", &build_prompt_params(&session, "Hello"))?;
    }
    let all = read_peak_memory_mb(editor.child.id())?;
    figures::print_figure(
        &format!("memory with {SESSIONS} sessions open, a turn in each"),
        all,
        "MB",
        None,
    );
    figures::print_figure(
        "memory a session",
        (all - one) / SESSIONS as f64,
        "MB",
        None,
    );
    editor.close()
}

/// Measures how long it takes to cancel a turn with a command running in the sandbox. Each command
/// has ended before the next starts.
fn time_command_cancels(editor: &mut Editor, place: &Workspace) -> anyhow::Result<Vec<Duration>> {
    let session = editor.new_session(place.project())?;
    editor.call_method(
        "session/set_mode",
        &json!({"sessionId": session, "modeId": "auto"}),
    )?;
    let started = place.project().join(STARTED_FILE);
    let mut cancels = Vec::new();
    for _ in 0..CANCELS {
        let prompt =
            editor.send_request("session/prompt", &build_prompt_params(&session, "Run it"))?;
        let limit = Instant::now() + Duration::from_secs(20);
        while !started.exists() {
            anyhow::ensure!(
                Instant::now() < limit,
                "the command does not start without being asked about"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        let begun = Instant::now();
        editor.send_notification("session/cancel", &json!({"sessionId": session}))?;
        editor.wait_for_result(prompt)?;
        cancels.push(begun.elapsed());
        std::fs::remove_file(&started)?;
    }
    Ok(cancels)
}

fn print_cancel_times(what: &str, cancels: &mut [Duration]) {
    let median = figures::median_ms(cancels);
    let slowest = figures::quantile_ms(cancels, 1.0);
    figures::print_figure(
        &format!("{what}, median of {CANCELS}"),
        median,
        "ms",
        Some(100.0),
    );
    figures::print_figure(&format!("{what}, slowest"), slowest, "ms", Some(100.0));
}

fn build_prompt_params(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

struct Editor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Editor {
    fn start(place: &Workspace, haft: &Path) -> anyhow::Result<Self> {
        let mut command = place.haft_command(haft, &["acp", "--permission-mode", "auto"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().context("no input")?;
        let output = BufReader::new(child.stdout.take().context("no output")?);
        Ok(Self {
            child,
            input,
            output,
            last: 0,
        })
    }

    fn send_request(&mut self, method: &str, params: &Value) -> anyhow::Result<u64> {
        self.last += 1;
        writeln!(
            self.input,
            "{}",
            json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        )?;
        Ok(self.last)
    }

    fn send_notification(&mut self, method: &str, params: &Value) -> anyhow::Result<()> {
        Ok(writeln!(
            self.input,
            "{}",
            json!({"jsonrpc": "2.0", "method": method, "params": params})
        )?)
    }

    fn read_message(&mut self) -> anyhow::Result<Value> {
        let mut line = String::new();
        anyhow::ensure!(self.output.read_line(&mut line)? > 0, "the output ended");
        Ok(serde_json::from_str(&line)?)
    }

    fn wait_for_result(&mut self, id: u64) -> anyhow::Result<Value> {
        loop {
            let message = self.read_message()?;
            if message["id"] == id && message["method"].is_null() {
                anyhow::ensure!(message["error"].is_null(), "{message}");
                return Ok(message["result"].clone());
            }
        }
    }

    fn call_method(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let id = self.send_request(method, params)?;
        self.wait_for_result(id)
    }

    fn new_session(&mut self, project: &Path) -> anyhow::Result<String> {
        let made = self.call_method("session/new", &json!({"cwd": project, "mcpServers": []}))?;
        Ok(made["sessionId"].as_str().context("no session")?.to_owned())
    }

    fn close(self) -> anyhow::Result<()> {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        child.wait()?;
        Ok(())
    }
}
