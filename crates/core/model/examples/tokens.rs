//! What counting costs: `cargo run --release -p haft-model --example tokens -- table|tiktoken
//! [FILE…]`.
//!
//! Prints the time of the first count in this process, the speed over the files (several passes),
//! and how much resident memory grew. Run it once for each of the two: neither may warm the other's
//! pages.
//!
//! `tokens counts FILE` prints the tokens of each paragraph and then of the whole file, one number
//! a line, to be compared with what another tokenizer says.

#![expect(
    clippy::print_stdout,
    reason = "an example that prints its measurements"
)]

use std::error::Error;
use std::fs;
use std::time::Instant;

use haft_model::O200k;
use haft_types::TokenCounter;

const PASSES: u32 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if_eq("counts").is_some() {
        let text = fs::read_to_string(arguments.next().ok_or("`counts` needs a file")?)?;
        let pieces = text.split("\n\n").chain([text.as_str()]);
        pieces.for_each(|piece| println!("{}", O200k.count_text(piece)));
        return Ok(());
    }
    let count: fn(&str) -> u32 = match arguments.next().as_deref() {
        Some("table") => |text| O200k.count_text(text),
        Some("tiktoken") => |text| {
            tiktoken::get_encoding("o200k_base").map_or(0, |encoding| encoding.count(text) as u32)
        },
        other => {
            return Err(format!(
                "expected `table` or `tiktoken` and files, or `counts` and a file, got {other:?}"
            )
            .into());
        }
    };
    let texts = arguments
        .map(fs::read_to_string)
        .collect::<Result<Vec<String>, _>>()?;

    let before = resident_kb()?;
    let start = Instant::now();
    let tokens = count("The first count of a process: how long does it take?");
    println!("first count: {tokens} tokens in {:?}", start.elapsed());
    println!("resident: +{} KB", resident_kb()?.saturating_sub(before));

    for pass in 1..=PASSES {
        let start = Instant::now();
        let tokens: u64 = texts.iter().map(|text| u64::from(count(text))).sum();
        let seconds = start.elapsed().as_secs_f64();
        let megabytes = texts.iter().map(String::len).sum::<usize>() as f64 / 1e6;
        println!(
            "pass {pass}: {tokens} tokens, {megabytes:.1} MB, {:.1} MB/s",
            megabytes / seconds
        );
    }
    println!("resident: +{} KB", resident_kb()?.saturating_sub(before));
    Ok(())
}

/// The peak of resident memory so far; Linux only, 0 elsewhere.
fn resident_kb() -> Result<u64, Box<dyn Error>> {
    let Ok(status) = fs::read_to_string("/proc/self/status") else {
        return Ok(0);
    };
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or("0 kB");
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
