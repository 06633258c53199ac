//! Measures the terminal interface: processor time while an answer streams, the time until a key is
//! shown, and memory with a long conversation.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;
use haft_testkit::{Reply, Script, ScriptedServer};
use serde_json::json;

use crate::figures;
use crate::subject::Place;
use crate::terminal::{Recording, Terminal};

/// The streaming rate in tokens per second, and characters per token.
const SPEED: f64 = 2_000.0;
const TOKEN: usize = 4;
/// The duration of a streamed answer.
const SECONDS: usize = 14;
const KEYS: usize = 200;
const SIZE: (u16, u16) = (120, 40);

pub(crate) fn run(haft: &Path) -> anyhow::Result<()> {
    streaming(haft)?;
    for messages in [1_000, 10_000] {
        let goal = (messages == 10_000).then_some(40.0);
        for (when, (all, own)) in ["opened", "after a turn"]
            .iter()
            .zip(memory(haft, messages)?)
        {
            figures::print(
                &format!("memory with {messages} messages, {when}"),
                all,
                "MB",
                goal,
            );
            figures::print("    of it not pages of the binary", own, "MB", None);
        }
    }
    Ok(())
}

fn streaming(haft: &Path) -> anyhow::Result<()> {
    let text = page(SPEED as usize * TOKEN * SECONDS);
    // Delays are a little longer than requested, so each piece has more tokens, and the actual rate
    // is reported.
    let stream = || Reply {
        delta_chars: Some(6 * TOKEN),
        delta_delay_ms: 1,
        ..Reply::text(text.clone())
    };
    let server = ScriptedServer::builder(Script::replies([stream(), stream()])?)
        .lean()
        .start_in_thread()?;
    let place = Place::new(&server)?;
    let mut terminal = Terminal::start(&place.haft(haft, &[]), SIZE, Recording::Off)?;
    terminal.until("/help")?;

    terminal.press("talk\r")?;
    terminal.until("Section 1")?;
    let began = Instant::now();
    let used = terminal.used()?;
    let bytes = terminal.bytes();
    terminal.until("This was all.")?;
    let seconds = began.elapsed().as_secs_f64();
    let share = (terminal.used()? - used) / seconds;
    let rate = text.len() as f64 / TOKEN as f64 / seconds;
    figures::line(&format!(
        "{rate:.0} tokens a second for {seconds:.1} s, {:.0} kB a second written to the terminal",
        (terminal.bytes() - bytes) as f64 / seconds / 1e3
    ));
    figures::print(
        "share of one core while an answer streams",
        share * 100.0,
        "%",
        None,
    );
    figures::print(
        "the same at 2,000 tokens a second",
        share * 100.0 * SPEED / rate,
        "%",
        Some(30.0),
    );
    terminal.until_screen("the end of the turn", |screen| {
        !screen.contents().contains("Esc interrupts")
    })?;

    terminal.press("again\r")?;
    terminal.until_screen("the next answer", |screen| {
        screen.contents().contains("Section 3 ")
    })?;
    let mut echoes = Vec::with_capacity(KEYS);
    for _ in 0..KEYS / 2 {
        for (key, row) in [("x", "> x"), ("\u{7f}", ">")] {
            echoes.push(terminal.echo(key, row)?);
            std::thread::sleep(Duration::from_millis(40));
        }
    }
    let streams = terminal.screen().contents().contains("Esc interrupts");
    ensure!(streams, "the answer ended before all keys were pressed");
    figures::print(
        "from a key to its echo while it streams, median",
        figures::median_ms(&mut echoes),
        "ms",
        None,
    );
    let late = figures::quantile_ms(&mut echoes, 0.99);
    figures::print("the same, 99th percentile of 200", late, "ms", Some(30.0));
    Ok(())
}

/// Measures the memory with a conversation of `messages` messages: when opened, and after one more
/// turn.
fn memory(haft: &Path, messages: usize) -> anyhow::Result<[(f64, f64); 2]> {
    let server = ScriptedServer::builder(Script::replies([Reply::text("One more.")])?)
        .lean()
        .start_in_thread()?;
    let place = Place::new(&server)?;
    let file = place.home().join("conversation.json");
    std::fs::write(&file, conversation(messages))?;
    let imported = place
        .haft(haft, &["conversations", "import"])
        .arg(&file)
        .output()?;
    ensure!(
        imported.status.success(),
        "{}",
        String::from_utf8_lossy(&imported.stderr)
    );
    let mut terminal = Terminal::start(&place.haft(haft, &["-r", "long"]), SIZE, Recording::Off)?;
    terminal.until(&format!("{} messages", haft_text::grouped(messages as u64)))?;
    terminal.until("> ")?;
    let opened = terminal.memory()?;
    terminal.press("go on\r")?;
    terminal.until("One more.")?;
    terminal.until_screen("the end of the turn", |screen| {
        !screen.contents().contains("Esc interrupts")
    })?;
    let after = terminal.memory()?;
    terminal.leave()?;
    Ok([opened, after])
}

/// Builds an answer of about `letters` characters with text, lists, tables and code.
fn page(letters: usize) -> String {
    let mut text = String::new();
    let mut section = 0;
    while text.len() < letters {
        section += 1;
        // Writing to a `String` can't fail.
        let _ = write!(
            text,
            "## Section {section} of many\n\nA paragraph with **strong words**, `code` and [a link](https://example.com/{section}), \
             long enough to be broken into several rows at the edge of every usual terminal there is.\n\n\
             - the first item of a list\n- the second, with *emphasis*\n- the third\n\n\
             ```rust\n/// Adds.\npub fn add_{section}(left: u64, right: u64) -> u64 {{\n    let sum = left + right; // {section}\n    sum\n}}\n```\n\n\
             | name | value |\n| --- | --- |\n| one | {section} |\n| two | two |\n\n"
        );
    }
    text + "This was all."
}

fn conversation(messages: usize) -> String {
    let message = |number: usize| {
        let (role, words) = if number.is_multiple_of(2) {
            ("user", 20)
        } else {
            ("assistant", 80)
        };
        json!({
            "message_id": format!("m{number}"), "role": role, "content": format!("{number} {}", "word ".repeat(words)),
            "created_at": "2026-01-01T00:00:00Z", "metadata": {}, "llm_metadata": null,
        })
    };
    let all: Vec<_> = (0..messages).map(message).collect();
    json!({
        "id": "11111111-1111-4111-8111-111111111111", "name": "long", "description": "", "metadata": {},
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "messages": all,
    })
    .to_string()
}
