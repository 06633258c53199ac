//! Compares `search_files` with ripgrep on a tree of 100,000 files.

use std::fs;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use haft_testkit::{Reply, Script, ScriptedServer};
use serde_json::json;

use crate::figures;
use crate::subject::{self, Workspace};

const FOLDERS: usize = 1_000;
const FILES: usize = 100;
const LINES: usize = 40;
/// Searches per program, besides one warm-up.
const RUNS: usize = 5;
/// The goal for the time of a search, relative to ripgrep.
const GOAL: f64 = 1.3;
/// The goal for peak memory, independent of the files, in megabytes.
const MEMORY_GOAL: f64 = 80.0;

const QUERIES: [(&str, &str); 4] = [
    ("a rare word", "xylophone_marker"),
    ("a common word", "value"),
    ("an expression", r"(read|write)_[0-9]{3}\(\w+, 99[0-9]\)"),
    ("no match", "nowhere_in_this_tree"),
];

pub(crate) fn run_benchmark(haft: &Path) -> anyhow::Result<()> {
    let has_rg = Command::new("rg")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    figures::print_line(&format!(
        "{} files, {LINES} lines each; medians of {RUNS} searches in a warm cache. haft shows at most 2,000 lines of what it finds.",
        FOLDERS * FILES
    ));
    if !has_rg {
        figures::print_line("ripgrep is not installed: there is nothing to compare with.");
    }
    let tree = tempfile::tempdir()?;
    write_tree(tree.path())?;
    for (name, regex) in QUERIES {
        let mut theirs = Vec::new();
        if has_rg {
            theirs.extend(time_ripgrep(tree.path(), regex, RUNS + 1)?);
        }
        let (mut ours, _) = time_searches(haft, tree.path(), regex)?;
        if has_rg {
            theirs.extend(time_ripgrep(tree.path(), regex, RUNS)?);
        }
        let ours = figures::median_ms(&mut ours);
        figures::print_figure(&format!("search_files, {name}"), ours, "ms", None);
        if has_rg {
            let theirs = figures::median_ms(&mut theirs);
            figures::print_figure(&format!("ripgrep, {name}"), theirs, "ms", None);
            figures::print_figure(&format!("ratio, {name}"), ours / theirs, "x", Some(GOAL));
        }
    }
    let long = tempfile::tempdir()?;
    write_one_line_file(&long.path().join("one-line.txt"))?;
    let (mut times, peak) = time_searches(haft, long.path(), "zebra")?;
    figures::print_figure(
        "search_files, one line of 100 MB",
        figures::median_ms(&mut times),
        "ms",
        None,
    );
    figures::print_figure(
        "peak memory, one line of 100 MB",
        peak,
        "MB",
        Some(MEMORY_GOAL),
    );
    Ok(())
}

/// Returns the times of [`RUNS`] searches by haft, and its peak memory.
fn time_searches(haft: &Path, folder: &Path, regex: &str) -> anyhow::Result<(Vec<Duration>, f64)> {
    // Repeating an equal call would end the run, so each call has another spelling of the path.
    let path = |run: usize| format!(".{}", "/.".repeat(run));
    let replies = (0..=RUNS)
        .map(|run| Reply::call("search_files", json!({"path": path(run), "regex": regex})));
    let script = Script::replies(replies.chain([Reply::text("Done.")]))?;
    let server = ScriptedServer::builder(script).lean().start_in_thread()?;
    let place = Workspace::new(&server)?;
    let mut command = place.task_command(haft, "search");
    command.current_dir(folder);
    let ran = subject::run_measured(command)?;
    let timings = server.timings();
    ensure!(
        timings.len() == RUNS + 2,
        "{} requests arrived, {} were expected",
        timings.len(),
        RUNS + 2
    );
    let gaps = timings
        .windows(2)
        .filter_map(|pair| Some(pair[1].received - pair[0].replied?));
    Ok((gaps.skip(1).collect(), ran.peak_mb))
}

/// Runs one ripgrep search `runs` times and returns the time that each run took. ripgrep prints all
/// matches.
fn time_ripgrep(folder: &Path, regex: &str, runs: usize) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..runs {
        let started = Instant::now();
        let mut child = Command::new("rg")
            .args([
                "--no-config",
                "--no-heading",
                "--line-number",
                "--context",
                "1",
                "--color",
                "never",
                regex,
                ".",
            ])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start rg")?;
        // The output is read and discarded, because ripgrep stops early if its output is the null
        // device.
        let mut output = child.stdout.take().context("rg has no output")?;
        let mut buffer = vec![0; 1 << 16];
        while output.read(&mut buffer)? > 0 {}
        child.wait()?;
        times.push(started.elapsed());
    }
    Ok(times)
}

/// Writes a reproducible tree that resembles source code.
fn write_tree(root: &Path) -> anyhow::Result<()> {
    const WORDS: [&str; 16] = [
        "value", "index", "buffer", "handle", "result", "count", "offset", "length", "name",
        "state", "entry", "total", "first", "last", "next", "source",
    ];
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for folder in 0..FOLDERS {
        let folder_path = root.join(format!("module_{:02}/part_{folder:04}", folder % 40));
        fs::create_dir_all(&folder_path)?;
        for file in 0..FILES {
            let mut out = BufWriter::new(fs::File::create(
                folder_path.join(format!("file_{file:03}.rs")),
            )?);
            for line in 0..LINES {
                let one = WORDS[random(16)];
                let other = WORDS[random(16)];
                let third = WORDS[random(16)];
                let verb = ["read", "write", "find"][random(3)];
                writeln!(
                    out,
                    "    let {one} = {verb}_{:03}({other}, {}); // {third} {line}",
                    random(1_000),
                    random(1_000)
                )?;
            }
            if (folder * FILES + file) % 14_000 == 7 {
                writeln!(out, "// xylophone_marker")?;
            }
            out.flush()?;
        }
    }
    Ok(())
}

fn write_one_line_file(path: &Path) -> anyhow::Result<()> {
    let mut out = BufWriter::new(fs::File::create(path)?);
    for _ in 0..100 * 64 {
        out.write_all(&[b'x'; 16 * 1024])?;
    }
    writeln!(out)?;
    writeln!(out, "zebra")?;
    Ok(out.flush()?)
}
