//! Draws pictures of the terminal interface and records a session, for the documentation:
//! `haft-bench pictures PATH-TO-HAFT [FOLDER]`.
//!
//! A scripted model works on a small project in a terminal; screens become SVG files, and the
//! complete output becomes an asciicast. A given binary always draws equal pictures.

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

const LIB_SOURCE: &str = "//! Numbers about numbers.\n\n/// The mean of all numbers.\npub fn mean(of: &[f64]) -> f64 {\n    let sum = of.iter().copied().reduce(|a, b| a + b);\n    sum.expect(\"at least one number\") / of.len() as f64\n}\n";

/// The maximum pause in a recording; longer ones are shortened.
const MAX_PAUSE: Duration = Duration::from_millis(1_200);
/// The length of the recorded session.
const SESSION_LENGTH: Duration = Duration::from_mins(10);

pub(crate) fn draw_pictures(haft: &Path, folder: &Path) -> anyhow::Result<()> {
    for (name, size, theme) in [
        ("terminal.svg", (88, 40), Theme::Dark),
        ("terminal-narrow.svg", (40, 44), Theme::Dark),
        ("terminal-light.svg", (88, 40), Theme::Light),
    ] {
        let scene = Scene::new()?;
        let mut terminal = scene.start_terminal(haft, size, Recording::Off)?;
        terminal.press(TASK)?;
        terminal.press("\r")?;
        wait_for_question(&terminal)?;
        std::fs::write(
            folder.join(name),
            svg::draw_screen(&terminal.screen(), theme),
        )?;
        terminal.press("y")?;
        wait_for_turn_end(&terminal)?;
        if theme == Theme::Light {
            std::fs::write(
                folder.join(name),
                svg::draw_screen(&terminal.screen(), theme),
            )?;
        }
        terminal.quit()?;
        figures::print_line(&format!("{name} is drawn"));
    }
    draw_main_screens(haft, &folder.join("images"))?;
    record_session(haft, folder)
}

/// Draws the main screens in three widths, for dark and light backgrounds.
fn draw_main_screens(haft: &Path, folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (columns, rows) in [(40, 44), (80, 40), (200, 40)] {
        let scene = Scene::new()?;
        let mut terminal = scene.start_terminal(haft, (columns, rows), Recording::Off)?;
        let draw = |terminal: &Terminal, screen: &str| {
            for (name, theme) in [("dark", Theme::Dark), ("light", Theme::Light)] {
                let file = folder.join(format!("{screen}-{columns}-{name}.svg"));
                std::fs::write(file, svg::draw_screen(&terminal.screen(), theme))?;
            }
            anyhow::Ok(())
        };
        draw(&terminal, "start")?;
        terminal.press(TASK)?;
        terminal.press("\r")?;
        wait_for_question(&terminal)?;
        draw(&terminal, "question")?;
        terminal.press("y")?;
        wait_for_turn_end(&terminal)?;
        terminal.press("/context\r")?;
        terminal.wait_for_text("No cache breaks")?;
        draw(&terminal, "context")?;
        terminal.press("/rewind\r")?;
        terminal.wait_for_text("Esc to cancel")?;
        draw(&terminal, "list")?;
        terminal.press("\u{1b}")?;
        terminal.wait_for_screen("the input again", |screen| {
            !screen.contents().contains("Esc to cancel")
        })?;
        terminal.quit()?;
        figures::print_line(&format!("the screens of {columns} columns are drawn"));
    }
    Ok(())
}

/// A session of ten minutes. Pauses in which the user reads are added to the recording without
/// waiting.
struct Session {
    terminal: Terminal,
    /// The pauses in which the user reads: for each, the number of pieces of output before the
    /// pause, and its length relative to the others.
    pauses: Vec<(usize, u32)>,
}

impl Session {
    fn add_pause(&mut self, weight: u32) {
        // The output that follows a key arrives within this time.
        std::thread::sleep(Duration::from_millis(300));
        self.pauses
            .push((self.terminal.recorded_output().len(), weight));
    }

    /// Types a line, waits for the text `then` and for the end of the turn, and adds a pause.
    fn type_line(&mut self, line: &str, then: &str, weight: u32) -> anyhow::Result<()> {
        for letter in line.chars() {
            self.terminal.press(&letter.to_string())?;
            std::thread::sleep(Duration::from_millis(25));
        }
        self.add_pause(1);
        self.terminal.press("\r")?;
        self.terminal.wait_for_text(then)?;
        self.terminal
            .wait_for_screen("the end of the turn", |screen| {
                !screen.contents().contains("Esc to interrupt")
            })?;
        self.add_pause(weight);
        Ok(())
    }

    /// Presses a key, waits for the text `then`, and adds a pause.
    fn press_key(&mut self, key: &str, then: &str, weight: u32) -> anyhow::Result<()> {
        self.terminal.press(key)?;
        self.terminal.wait_for_text(then)?;
        self.add_pause(weight);
        Ok(())
    }

    /// Closes the pane or dialog that replaces the input field, and waits until `what` disappears.
    fn close_pane(&mut self, what: &'static str) -> anyhow::Result<()> {
        self.terminal.press("\u{1b}")?;
        self.terminal.wait_for_screen("the input again", |screen| {
            !screen.contents().contains(what)
        })?;
        self.add_pause(1);
        Ok(())
    }
}

fn record_session(haft: &Path, folder: &Path) -> anyhow::Result<()> {
    let columns = 88;
    let rows = 30;
    let scene = Scene::new()?;
    let mut session = Session {
        terminal: scene.start_terminal(haft, (columns, rows), Recording::On)?,
        pauses: Vec::new(),
    };
    session.add_pause(4);
    session.press_key("?", "Shift-Tab", 6)?;
    session.close_pane("Shift-Tab")?;
    session.terminal.press(TASK)?;
    session.add_pause(2);
    session.terminal.press("\r")?;
    wait_for_question(&session.terminal)?;
    session.add_pause(8);
    session.terminal.press("y")?;
    wait_for_turn_end(&session.terminal)?;
    session.add_pause(8);
    session.type_line("/diff", "modified src/lib.rs", 6)?;
    session.press_key("\u{f}", "▾ Update the TODO list", 3)?;
    session.press_key("\u{f}", "result ", 3)?;
    session.press_key("\u{1b}[D", "mean.sh", 4)?;
    session.close_pane("other results")?;
    session.type_line("/context", "No cache breaks", 8)?;
    session.type_line("/cost", "requests:", 4)?;
    session.press_key("/", "1 of ", 5)?;
    session.terminal.press("\u{15}")?;
    session.type_line("!ls src tests", "sent to the model", 4)?;
    session.type_line(
        "Is there another place like it? See @src/lib.rs",
        "only place",
        6,
    )?;
    session.type_line("/undo", "▸ 1 Undo", 5)?;
    session.close_pane("Esc to cancel")?;
    session.type_line("/rewind", "Rewind to before", 5)?;
    session.close_pane("Esc to cancel")?;
    session.type_line("/mode plan", "plan", 3)?;
    session.type_line("How would you add a median?", "a test for each", 8)?;
    session.type_line("/model", "Switch model", 4)?;
    session.close_pane("Esc to cancel")?;
    session.type_line("/help", "/quit", 8)?;
    session.terminal.press("\u{4}")?;
    session
        .terminal
        .wait_for_text("resumes this conversation")?;
    let cast = format_asciicast(
        &session.terminal.recorded_output(),
        &session.pauses,
        (columns, rows),
    );
    ensure!(
        cast.len() < 300_000,
        "the recording has {} bytes",
        cast.len()
    );
    std::fs::write(folder.join("terminal.cast"), cast)?;
    figures::print_line("terminal.cast is recorded");
    Ok(())
}

/// Formats a recording as an asciicast (version 2) of the length [`SESSION_LENGTH`], with the
/// pauses added.
fn format_asciicast(
    record: &[(Duration, Vec<u8>)],
    rests: &[(usize, u32)],
    (columns, rows): (u16, u16),
) -> String {
    // Players that support the limit skip the pauses.
    let head = json!({"version": 2, "width": columns, "height": rows, "title": "haft", "idle_time_limit": 3.0});
    let mut text = format!("{head}\n");
    let pauses = record
        .windows(2)
        .map(|pair| pair[1].0.saturating_sub(pair[0].0).min(MAX_PAUSE));
    let weights: u32 = rests.iter().map(|rest| rest.1).sum();
    let unit = SESSION_LENGTH.saturating_sub(pauses.sum()) / weights.max(1);
    let mut last = Duration::ZERO;
    let mut now = Duration::ZERO;
    let mut waiting = Vec::new();
    for (piece, (at, bytes)) in record.iter().enumerate() {
        now += at.saturating_sub(last).min(MAX_PAUSE);
        now += rests
            .iter()
            .filter(|rest| rest.0 == piece)
            .map(|rest| unit * rest.1)
            .sum::<Duration>();
        last = *at;
        waiting.extend(bytes);
        // A character may be split between two pieces.
        let whole = match std::str::from_utf8(&waiting) {
            Ok(whole) => whole.len(),
            Err(error) => error.valid_up_to(),
        };
        let said = String::from_utf8_lossy(&waiting[..whole]).into_owned();
        waiting.drain(..whole);
        // Writing to a `String` can't fail.
        let _ = writeln!(
            text,
            "{}",
            json!([(now.as_secs_f64() * 1e3).round() / 1e3, "o", said])
        );
    }
    text
}

fn wait_for_question(terminal: &Terminal) -> anyhow::Result<()> {
    terminal.wait_for_screen("a question that can be answered", |screen| {
        let (rows, columns) = screen.size();
        let asked = screen
            .rows(0, columns)
            .position(|row| row.starts_with(" y yes"))
            .filter(|row| *row < rows.into());
        let key = asked.and_then(|row| screen.cell(u16::try_from(row).ok()?, 1));
        key.is_some_and(|key| key.fgcolor() == vt100::Color::Idx(5))
    })
}

fn wait_for_turn_end(terminal: &Terminal) -> anyhow::Result<()> {
    terminal.wait_for_text("pass.")?;
    terminal.wait_for_screen("the end of the turn", |screen| {
        !screen.contents().contains("Esc to interrupt")
    })
}

/// A home, a project and a model for one session.
struct Scene {
    _server: ScriptedServer,
    home: TempDir,
}

impl Scene {
    fn new() -> anyhow::Result<Self> {
        let server = ScriptedServer::builder(build_script()?).start_in_thread()?;
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
        std::fs::write(project.join("src/lib.rs"), LIB_SOURCE)?;
        let test = project.join("tests/mean.sh");
        std::fs::write(
            &test,
            "#!/bin/sh\necho 'mean of nothing ... ok'\necho 'mean of three ... ok'\n",
        )?;
        std::fs::set_permissions(&test, std::fs::Permissions::from_mode(0o755))?;
        Ok(Self {
            _server: server,
            home,
        })
    }

    fn start_terminal(
        &self,
        haft: &Path,
        size: (u16, u16),
        recording: Recording,
    ) -> anyhow::Result<Terminal> {
        let mut command = Command::new(haft);
        command
            .args(["--permission-mode", "accept-edits"])
            .current_dir(self.home.path().join("numbers"));
        command
            .env("HOME", self.home.path())
            .env("HAFT_HOME", self.home.path().join("haft"));
        let mut trust = Command::new(haft);
        trust
            .arg("trust")
            .current_dir(self.home.path().join("numbers"))
            .env("HAFT_HOME", self.home.path().join("haft"));
        ensure!(
            trust.output()?.status.success(),
            "the folder cannot be trusted"
        );
        let terminal = Terminal::start(&command, size, recording)?;
        terminal.wait_for_text("/help")?;
        // Narrow terminals don't show the sandbox.
        if size.0 >= 80 {
            terminal.wait_for_text("sandbox")?;
        }
        Ok(terminal)
    }
}

fn build_script() -> anyhow::Result<Script> {
    let usage = Usage {
        input: 640,
        cached_input: 9_800,
        cache_write: 420,
        output: 90,
        ..Usage::default()
    };
    let slow = |reply: Reply| Reply {
        delta_chars: Some(9),
        delta_delay_ms: 12,
        ..reply.with_usage(usage)
    };
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
        slow(Reply::call("search_files", json!({"path": "src", "regex": "expect|unwrap"}))),
        slow(Reply::text("No: `mean` was the only place in `src` that panics on an empty list.")),
        slow(Reply::text(
            "1. Add `median(of: &[f64]) -> f64` beside `mean`.\n2. Sort a copy with `total_cmp`, and take the middle, or the mean of \
             both.\n3. An empty list gives zero, as with `mean`.\n4. Add a test for each.",
        )),
    ])?)
}
