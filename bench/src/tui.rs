//! Measures the terminal interface: processor time while an answer streams, the time until a key is
//! shown, and memory with a long conversation.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;
use haft_testkit::{Reply, Script, ScriptedServer};
use serde_json::json;

use crate::figures;
use crate::subject::Workspace;
use crate::terminal::{Recording, Terminal};

/// The streaming rate, in tokens per second.
const TOKENS_PER_SECOND: f64 = 2_000.0;
/// Characters per streamed token.
const TOKEN_CHARS: usize = 4;
/// The duration of a streamed answer.
const STREAM_SECONDS: usize = 14;
const KEY_COUNT: usize = 200;
const TERMINAL_SIZE: (u16, u16) = (120, 40);

pub(crate) fn run_benchmark(haft: &Path) -> anyhow::Result<()> {
    measure_streaming(haft)?;
    for messages in [1_000, 10_000] {
        let goal = (messages == 10_000).then_some(40.0);
        for (when, (all, own)) in ["opened", "after a turn"]
            .iter()
            .zip(measure_memory(haft, messages)?)
        {
            figures::print_figure(
                &format!("memory with {messages} messages, {when}"),
                all,
                "MB",
                goal,
            );
            figures::print_figure("    of it not pages of the binary", own, "MB", None);
        }
    }
    Ok(())
}

fn measure_streaming(haft: &Path) -> anyhow::Result<()> {
    let text = build_markdown(TOKENS_PER_SECOND as usize * TOKEN_CHARS * STREAM_SECONDS);
    // Delays are a little longer than requested, so each piece has more tokens, and the actual rate
    // is reported.
    let stream = || Reply {
        delta_chars: Some(6 * TOKEN_CHARS),
        delta_delay_ms: 1,
        ..Reply::text(text.clone())
    };
    let server = ScriptedServer::builder(Script::replies([stream(), stream()])?)
        .lean()
        .start_in_thread()?;
    let place = Workspace::new(&server)?;
    let mut terminal = Terminal::start(
        &place.haft_command(haft, &[]),
        TERMINAL_SIZE,
        Recording::Off,
    )?;
    terminal.wait_for_text("/help")?;

    terminal.press("talk\r")?;
    terminal.wait_for_text("Section 1")?;
    let began = Instant::now();
    let used = terminal.processor_seconds()?;
    let bytes = terminal.written_bytes();
    terminal.wait_for_text("This was all.")?;
    let seconds = began.elapsed().as_secs_f64();
    let share = (terminal.processor_seconds()? - used) / seconds;
    let rate = text.len() as f64 / TOKEN_CHARS as f64 / seconds;
    figures::print_line(&format!(
        "{rate:.0} tokens a second for {seconds:.1} s, {:.0} kB a second written to the terminal",
        (terminal.written_bytes() - bytes) as f64 / seconds / 1e3
    ));
    figures::print_figure(
        "share of one core while an answer streams",
        share * 100.0,
        "%",
        None,
    );
    figures::print_figure(
        "the same at 2,000 tokens a second",
        share * 100.0 * TOKENS_PER_SECOND / rate,
        "%",
        Some(30.0),
    );
    terminal.wait_for_screen("the end of the turn", |screen| {
        !screen.contents().contains("Esc interrupts")
    })?;

    terminal.press("again\r")?;
    terminal.wait_for_screen("the next answer", |screen| {
        screen.contents().contains("Section 3 ")
    })?;
    let mut echoes = Vec::with_capacity(KEY_COUNT);
    for _ in 0..KEY_COUNT / 2 {
        for (key, row) in [("x", "> x"), ("\u{7f}", ">")] {
            echoes.push(terminal.measure_echo(key, row)?);
            std::thread::sleep(Duration::from_millis(40));
        }
    }
    let streams = terminal.screen().contents().contains("Esc interrupts");
    ensure!(streams, "the answer ended before all keys were pressed");
    figures::print_figure(
        "from a key to its echo while it streams, median",
        figures::median_ms(&mut echoes),
        "ms",
        None,
    );
    let late = figures::quantile_ms(&mut echoes, 0.99);
    figures::print_figure("the same, 99th percentile of 200", late, "ms", Some(30.0));
    Ok(())
}

/// Measures the memory with a conversation of `messages` messages: when opened, and after one more
/// turn.
fn measure_memory(haft: &Path, messages: usize) -> anyhow::Result<[(f64, f64); 2]> {
    let server = ScriptedServer::builder(Script::replies([Reply::text("One more.")])?)
        .lean()
        .start_in_thread()?;
    let place = Workspace::new(&server)?;
    let file = place.home().join("conversation.json");
    std::fs::write(&file, build_conversation_json(messages))?;
    let imported = place
        .haft_command(haft, &["conversations", "import"])
        .arg(&file)
        .output()?;
    ensure!(
        imported.status.success(),
        "{}",
        String::from_utf8_lossy(&imported.stderr)
    );
    let mut terminal = Terminal::start(
        &place.haft_command(haft, &["-r", "long"]),
        TERMINAL_SIZE,
        Recording::Off,
    )?;
    terminal.wait_for_text(&format!(
        "{} messages",
        haft_text::format_thousands(messages as u64)
    ))?;
    terminal.wait_for_text("> ")?;
    let opened = terminal.memory_mb()?;
    terminal.press("go on\r")?;
    terminal.wait_for_text("One more.")?;
    terminal.wait_for_screen("the end of the turn", |screen| {
        !screen.contents().contains("Esc interrupts")
    })?;
    let after = terminal.memory_mb()?;
    terminal.quit()?;
    Ok([opened, after])
}

/// Builds an answer of about `letters` characters with text, lists, tables and code.
fn build_markdown(letters: usize) -> String {
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

fn build_conversation_json(messages: usize) -> String {
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
