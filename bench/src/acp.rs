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
use crate::subject::{Place, peak_memory};

const STARTS: usize = 20;
const CANCELS: usize = 20;
const SESSIONS: usize = 50;
/// The file that a command creates to show that it has started.
const STARTED: &str = "started";

pub(crate) fn run(haft: &Path) -> anyhow::Result<()> {
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
        json!({"command": format!("touch {STARTED}; sleep 60")}),
    );
    let runs = runs.when(When {
        last_contains: Some("Run it".into()),
        ..When::default()
    });
    let quick = Reply::text("Done.").when(When::default());
    let server =
        ScriptedServer::builder(Script::replies([slow, runs, quick])?).start_in_thread()?;
    let place = Place::new(&server)?;
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let begun = Instant::now();
        let mut editor = Editor::start(&place, haft)?;
        editor.call(
            "initialize",
            &json!({"protocolVersion": 1, "clientCapabilities": {}}),
        )?;
        starts.push(begun.elapsed());
        editor.end()?;
    }
    let median = figures::median_ms(&mut starts);
    figures::print(
        &format!("start to `initialize` answered, median of {STARTS}"),
        median,
        "ms",
        Some(30.0),
    );

    let mut editor = Editor::start(&place, haft)?;
    editor.call(
        "initialize",
        &json!({"protocolVersion": 1, "clientCapabilities": {}}),
    )?;
    let session = editor.new_session(place.project())?;
    let mut cancels = Vec::new();
    for _ in 0..CANCELS {
        let prompt = editor.send("session/prompt", &prompt(&session, "Speak slowly"))?;
        while editor.next()?["params"]["update"]["sessionUpdate"] != "agent_message_chunk" {}
        let begun = Instant::now();
        editor.notify("session/cancel", &json!({"sessionId": session}))?;
        editor.answer(prompt)?;
        cancels.push(begun.elapsed());
    }
    show("cancel in mid-stream", &mut cancels);
    match cancel_commands(&mut editor, &place) {
        Ok(mut cancels) => show("cancel while a command runs in the sandbox", &mut cancels),
        Err(error) => figures::line(&format!(
            "cancel while a command runs in the sandbox: not measured: {error:#}"
        )),
    }
    let one = peak_memory(editor.child.id())?;
    for _ in 0..SESSIONS {
        let session = editor.new_session(place.project())?;
        editor.call("session/prompt", &prompt(&session, "Hello"))?;
    }
    let all = peak_memory(editor.child.id())?;
    figures::print(
        &format!("memory with {SESSIONS} sessions open, a turn in each"),
        all,
        "MB",
        None,
    );
    figures::print(
        "memory a session",
        (all - one) / SESSIONS as f64,
        "MB",
        None,
    );
    editor.end()
}

/// Measures how long it takes to cancel a turn with a command running in the sandbox. Each command
/// has ended before the next starts.
fn cancel_commands(editor: &mut Editor, place: &Place) -> anyhow::Result<Vec<Duration>> {
    let session = editor.new_session(place.project())?;
    editor.call(
        "session/set_mode",
        &json!({"sessionId": session, "modeId": "auto"}),
    )?;
    let started = place.project().join(STARTED);
    let mut cancels = Vec::new();
    for _ in 0..CANCELS {
        let prompt = editor.send("session/prompt", &prompt(&session, "Run it"))?;
        let limit = Instant::now() + Duration::from_secs(20);
        while !started.exists() {
            anyhow::ensure!(
                Instant::now() < limit,
                "the command does not start without being asked about"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        let begun = Instant::now();
        editor.notify("session/cancel", &json!({"sessionId": session}))?;
        editor.answer(prompt)?;
        cancels.push(begun.elapsed());
        std::fs::remove_file(&started)?;
    }
    Ok(cancels)
}

fn show(what: &str, cancels: &mut [Duration]) {
    let median = figures::median_ms(cancels);
    let slowest = figures::quantile_ms(cancels, 1.0);
    figures::print(
        &format!("{what}, median of {CANCELS}"),
        median,
        "ms",
        Some(100.0),
    );
    figures::print(&format!("{what}, slowest"), slowest, "ms", Some(100.0));
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

struct Editor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Editor {
    fn start(place: &Place, haft: &Path) -> anyhow::Result<Self> {
        let mut command = place.haft(haft, &["acp"]);
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

    fn send(&mut self, method: &str, params: &Value) -> anyhow::Result<u64> {
        self.last += 1;
        writeln!(
            self.input,
            "{}",
            json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        )?;
        Ok(self.last)
    }

    fn notify(&mut self, method: &str, params: &Value) -> anyhow::Result<()> {
        Ok(writeln!(
            self.input,
            "{}",
            json!({"jsonrpc": "2.0", "method": method, "params": params})
        )?)
    }

    fn next(&mut self) -> anyhow::Result<Value> {
        let mut line = String::new();
        anyhow::ensure!(self.output.read_line(&mut line)? > 0, "the output ended");
        Ok(serde_json::from_str(&line)?)
    }

    fn answer(&mut self, id: u64) -> anyhow::Result<Value> {
        loop {
            let message = self.next()?;
            if message["id"] == id && message["method"].is_null() {
                anyhow::ensure!(message["error"].is_null(), "{message}");
                return Ok(message["result"].clone());
            }
        }
    }

    fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let id = self.send(method, params)?;
        self.answer(id)
    }

    fn new_session(&mut self, project: &Path) -> anyhow::Result<String> {
        let made = self.call("session/new", &json!({"cwd": project, "mcpServers": []}))?;
        Ok(made["sessionId"].as_str().context("no session")?.to_owned())
    }

    fn end(self) -> anyhow::Result<()> {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        child.wait()?;
        Ok(())
    }
}
