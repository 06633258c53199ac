//! Pictures of the terminal interface and a recorded session, for the documentation: `haft-bench pictures PATH-TO-HAFT [FOLDER]`.
//!
//! A scripted model works on a small project in a terminal; screens become SVG, and everything that was written becomes an
//! asciicast. The same binary draws the same pictures.

mod svg;

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::ensure;
use haft_testkit::{Reply, Script, ScriptedServer};
use haft_types::{Api, Usage};
use serde_json::json;
use tempfile::TempDir;

use crate::figures;
use crate::terminal::{Recording, Terminal};
use svg::Theme;

const TASK: &str = "The mean of an empty list must be zero, not a panic.";

const LIB: &str = "//! Numbers about numbers.\n\n/// The mean of all numbers.\npub fn mean(of: &[f64]) -> f64 {\n    let sum = of.iter().copied().reduce(|a, b| a + b);\n    sum.expect(\"at least one number\") / of.len() as f64\n}\n";

/// A pause longer than this is not worth watching.
const LONGEST_PAUSE: Duration = Duration::from_millis(1_200);

pub(crate) fn run(haft: &Path, folder: &Path) -> anyhow::Result<()> {
    for (name, size, theme) in [
        ("terminal.svg", (88, 40), Theme::Dark),
        ("terminal-narrow.svg", (40, 44), Theme::Dark),
        ("terminal-light.svg", (88, 40), Theme::Light),
    ] {
        let scene = Scene::new()?;
        let mut terminal = scene.start(haft, size, Recording::Off)?;
        terminal.press(TASK)?;
        terminal.press("\r")?;
        until_asked(&terminal)?;
        std::fs::write(folder.join(name), svg::draw(&terminal.screen(), theme))?;
        terminal.press("y")?;
        until_done(&terminal)?;
        if theme == Theme::Light {
            std::fs::write(folder.join(name), svg::draw(&terminal.screen(), theme))?;
        }
        terminal.leave()?;
        figures::line(&format!("{name} is drawn"));
    }
    record(haft, folder)
}

fn record(haft: &Path, folder: &Path) -> anyhow::Result<()> {
    let (columns, rows) = (88, 30);
    let scene = Scene::new()?;
    let mut terminal = scene.start(haft, (columns, rows), Recording::On)?;
    for letter in TASK.chars() {
        terminal.press(&letter.to_string())?;
        std::thread::sleep(Duration::from_millis(35));
    }
    terminal.press("\r")?;
    until_asked(&terminal)?;
    std::thread::sleep(LONGEST_PAUSE);
    terminal.press("y")?;
    until_done(&terminal)?;
    std::thread::sleep(LONGEST_PAUSE);
    terminal.press("/context\r")?;
    terminal.until("history")?;
    std::thread::sleep(LONGEST_PAUSE);
    let cast = cast(&terminal.record(), (columns, rows));
    ensure!(cast.len() < 200_000, "the recording has {} bytes", cast.len());
    std::fs::write(folder.join("terminal.cast"), cast)?;
    figures::line("terminal.cast is recorded");
    terminal.leave()
}

/// A recording as an asciicast of the second version.
fn cast(record: &[(Duration, Vec<u8>)], (columns, rows): (u16, u16)) -> String {
    let mut text = json!({"version": 2, "width": columns, "height": rows, "title": "haft"}).to_string();
    text.push('\n');
    let (mut last, mut now) = (Duration::ZERO, Duration::ZERO);
    let mut waiting = Vec::new();
    for (at, bytes) in record {
        now += at.saturating_sub(last).min(LONGEST_PAUSE);
        last = *at;
        waiting.extend(bytes);
        // A letter may have been cut in two.
        let whole = match std::str::from_utf8(&waiting) {
            Ok(whole) => whole.len(),
            Err(error) => error.valid_up_to(),
        };
        let said = String::from_utf8_lossy(&waiting[..whole]).into_owned();
        waiting.drain(..whole);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", json!([(now.as_secs_f64() * 1e3).round() / 1e3, "o", said]));
    }
    text
}

fn until_asked(terminal: &Terminal) -> anyhow::Result<()> {
    terminal.until_screen("a question that can be answered", |screen| {
        let (rows, columns) = screen.size();
        let asked = screen.rows(0, columns).position(|row| row.starts_with(" y yes")).filter(|row| *row < rows.into());
        let key = asked.and_then(|row| screen.cell(u16::try_from(row).ok()?, 1));
        key.is_some_and(|key| key.fgcolor() == vt100::Color::Idx(5))
    })
}

fn until_done(terminal: &Terminal) -> anyhow::Result<()> {
    terminal.until("pass.")?;
    terminal.until_screen("the end of the turn", |screen| !screen.contents().contains("Esc interrupts"))
}

/// A home, a project and a model for one session.
struct Scene {
    _server: ScriptedServer,
    home: TempDir,
}

impl Scene {
    fn new() -> anyhow::Result<Self> {
        let server = ScriptedServer::builder(script()?).start_in_thread()?;
        let home = tempfile::tempdir()?;
        let config = format!(
            "model = \"demo/model\"\n[providers.demo]\napi = \"anthropic\"\nbase_url = \"{}\"\n[models.\"demo/model\"]\n\
             context_window = 100000\nmax_output_tokens = 8192\nprice = {{ input = 2.0, cached_input = 0.2, cache_write = 2.5, output = 10.0 }}\n",
            server.base_url(Api::Anthropic)
        );
        let haft = home.path().join("haft");
        std::fs::create_dir(&haft)?;
        std::fs::write(haft.join("config.toml"), config)?;
        let project = home.path().join("numbers");
        std::fs::create_dir_all(project.join("src"))?;
        std::fs::create_dir(project.join("tests"))?;
        std::fs::write(project.join("src/lib.rs"), LIB)?;
        let test = project.join("tests/mean.sh");
        std::fs::write(&test, "#!/bin/sh\necho 'mean of nothing ... ok'\necho 'mean of three ... ok'\n")?;
        std::fs::set_permissions(&test, std::fs::Permissions::from_mode(0o755))?;
        Ok(Self { _server: server, home })
    }

    fn start(&self, haft: &Path, size: (u16, u16), recording: Recording) -> anyhow::Result<Terminal> {
        let mut command = Command::new(haft);
        command.args(["--permission-mode", "accept-edits"]).current_dir(self.home.path().join("numbers"));
        command.env("HOME", self.home.path()).env("HAFT_HOME", self.home.path().join("haft"));
        let mut trust = Command::new(haft);
        trust
            .arg("trust")
            .current_dir(self.home.path().join("numbers"))
            .env("HAFT_HOME", self.home.path().join("haft"));
        ensure!(trust.output()?.status.success(), "the folder cannot be trusted");
        let terminal = Terminal::start(&command, size, recording)?;
        terminal.until("/help")?;
        Ok(terminal)
    }
}

fn script() -> anyhow::Result<Script> {
    let usage = Usage { input: 640, cached_input: 9_800, cache_write: 420, output: 90, ..Usage::default() };
    let slow = |reply: Reply| Reply { delta_chars: Some(9), delta_delay_ms: 12, ..reply.with_usage(usage) };
    let todo = |fix: &str, test: &str| {
        json!({"todos": [
            {"content": "Find out where it panics", "status": "completed"},
            {"content": "Give zero for an empty list", "status": fix},
            {"content": "Run the tests", "status": test},
        ]})
    };
    let edit = json!({"edits": [{
        "path": "src/lib.rs",
        "old_string": "    let sum = of.iter().copied().reduce(|a, b| a + b);\n    sum.expect(\"at least one number\") / of.len() as f64\n",
        "new_string": "    if of.is_empty() {\n        return 0.0; // nothing has no mean: zero by agreement\n    }\n    of.iter().sum::<f64>() / of.len() as f64\n",
    }]});
    Ok(Script::replies([
        slow(
            Reply::call("read_file", json!({"path": "src/lib.rs"}))
                .with_thinking("The mean of nothing: reduce gives None, and expect panics.")
                .with_text("I will look at the function first."),
        ),
        slow(Reply::call("todo_write", todo("in_progress", "pending")).with_text(
            "`reduce` gives nothing for an empty list, and `expect` panics on that. It only needs a way out:\n\n```rust\nif of.is_empty() {\n    return 0.0;\n}\n```",
        )),
        slow(Reply::call("multi_edit", edit)),
        slow(Reply::call("execute_command", json!({"command": "./tests/mean.sh", "requires_approval": true}))),
        slow(Reply::call("todo_write", todo("completed", "completed"))),
        slow(Reply::text(
            "## Done\n\n- `mean(&[])` is **0.0** now\n- the sum is taken as `f64`, in one pass\n\nBoth tests of `tests/mean.sh` pass.",
        )),
    ])?)
}
