//! One append is killed at every call to the system that changes something, one after another.

use std::path::Path;
use std::process::Stdio;

use crate::Outcome;
use crate::kill::{Running, store};
use crate::story::Story;
use crate::strace;
use crate::worker::{Orders, Plan};

/// The calls that change a file or its name.
const CALLS: [&str; 9] = [
    "fsync",
    "fdatasync",
    "pwrite64",
    "rename",
    "unlink",
    "ftruncate",
    "fallocate",
    "openat",
    "write",
];

/// Tries every call of every kind, at most `count` of them.
pub(crate) fn run(count: u64, seed: u64) -> Vec<(u64, Outcome)> {
    if !strace::is_there() {
        println!("skipped: strace is not installed or may not be used here");
        return Vec::new();
    }
    match all(count) {
        Ok(outcomes) => outcomes,
        Err(problem) => vec![(seed, Err(problem))],
    }
}

fn all(count: u64) -> Result<Vec<(u64, Outcome)>, String> {
    let (folder, path) = store(&["c0"])?;
    let mut story = Story::of(&["c0"]);
    let mut outcomes = Vec::new();
    for (index, call) in CALLS.into_iter().enumerate() {
        // How often a whole run makes this call; runs differ a little, so the last ones may not
        // come to pass.
        let times = count_calls(call, &path, &mut story, index)?;
        let mut killed = 0;
        for time in 1..=times {
            if outcomes.len() as u64 >= count {
                return Ok(outcomes);
            }
            let number = outcomes.len();
            let outcome = kill_at(call, time, &path, &mut story, number)
                .map(|was_killed| killed += u32::from(was_killed));
            let outcome = outcome.and_then(|()| story.check(&path));
            if outcome.is_err() {
                println!("the store is in {}", path.display());
                outcomes.push((
                    number as u64,
                    outcome.map_err(|problem| format!("{call} {time}: {problem}")),
                ));
                let _ = folder.keep();
                return Ok(outcomes);
            }
            outcomes.push((number as u64, outcome));
        }
        if killed > 0 {
            println!("{killed:>8} kills at {call}");
        }
    }
    Ok(outcomes)
}

fn orders(path: &Path, number: usize) -> Orders {
    Orders {
        path: path.to_path_buf(),
        seed: 1,
        base: 1 + number as u32,
        deeds: 1,
        plan: Plan::OneAppend,
    }
}

fn count_calls(call: &str, path: &Path, story: &mut Story, number: usize) -> Result<u32, String> {
    let log = path.with_file_name("calls");
    let mut command = strace::command(&[
        "-f",
        "-qq",
        "-e",
        &format!("trace={call}"),
        "-o",
        &log.display().to_string(),
    ])?;
    // Numbers far from those of the kills.
    let mut running =
        Running::start_program(command.args(orders(path, 1_000_000 + number).arguments()))?;
    let status = running.finish()?;
    if !status.success() {
        return Err(format!("an append that nobody kills failed: {status}"));
    }
    story.hear(&running.said()?)?;
    let calls = std::fs::read_to_string(&log).map_err(|error| error.to_string())?;
    Ok(calls
        .lines()
        .filter(|line| line.contains(&format!("{call}(")))
        .count() as u32)
}

/// Runs an append that is killed at the nth such call, and says whether it was.
fn kill_at(
    call: &str,
    time: u32,
    path: &Path,
    story: &mut Story,
    number: usize,
) -> Result<bool, String> {
    let inject = format!("inject={call}:signal=SIGKILL:when={time}");
    let mut command = strace::command(&[
        "-f",
        "-qq",
        "-e",
        &format!("trace={call}"),
        "-e",
        &inject,
        "-o",
        "/dev/null",
    ])?;
    let mut running = Running::start_program(
        command
            .args(orders(path, number).arguments())
            .stderr(Stdio::null()),
    )?;
    let status = running.finish()?;
    story.hear(&running.said()?)?;
    Ok(!status.success())
}
