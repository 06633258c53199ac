//! Measures the pages of `haft serve` for long conversations: the time of the first view, when all
//! requests are compared, and of later views, and the peak memory of the server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use haft_testkit::{Script, ScriptedServer};
use serde_json::{Value, json};

use crate::figures;
use crate::subject::Workspace;

/// The numbers of requests, each with the goal for a page in milliseconds.
const SIZES: [(usize, f64); 2] = [(1_000, 300.0), (10_000, 1_000.0)];
const MEMORY_GOAL_MB: f64 = 200.0;
/// The number of later views of each page.
const LATER_VIEWS: usize = 5;

pub(crate) fn run_benchmark(haft: &Path) -> anyhow::Result<()> {
    for (requests, goal) in SIZES {
        measure_pages(haft, requests, goal)?;
    }
    Ok(())
}

fn measure_pages(haft: &Path, requests: usize, goal: f64) -> anyhow::Result<()> {
    let server = ScriptedServer::builder(Script::replies([])?)
        .lean()
        .start_in_thread()?;
    let place = Workspace::new(&server)?;
    let id = import_conversation(haft, &place, requests)?;
    let middle = requests / 2;
    for (name, path) in [
        ("timeline", "/timeline".to_owned()),
        ("request", format!("/r/{middle}")),
        ("editor", "/edit".to_owned()),
        ("dialogue", String::new()),
    ] {
        // Each page is the first of its server, so that nothing has been compared before.
        let site = ServedSite::start(haft, &place)?;
        let path = format!("/c/{id}{path}");
        let first = site.time_page(&path)?.as_secs_f64() * 1e3;
        figures::print_figure(
            &format!("{requests} requests, {name}: first view"),
            first,
            "ms",
            Some(goal),
        );
        let mut later = Vec::new();
        for _ in 0..LATER_VIEWS {
            later.push(site.time_page(&path)?);
        }
        figures::print_figure(
            &format!("{requests} requests, {name}: median of {LATER_VIEWS} later views"),
            figures::median_ms(&mut later),
            "ms",
            Some(goal),
        );
        figures::print_figure(
            &format!("{requests} requests, {name}: peak memory"),
            site.peak_memory_mb()?,
            "MB",
            Some(MEMORY_GOAL_MB),
        );
    }
    Ok(())
}

/// Imports a conversation of short messages with this number of requests, and returns its id.
fn import_conversation(haft: &Path, place: &Workspace, requests: usize) -> anyhow::Result<String> {
    let messages: Vec<Value> = (0..2 * requests)
        .map(|number| {
            let role = ["user", "assistant"][number % 2];
            json!({"role": role, "content": format!("message {number} with a few words")})
        })
        .collect();
    let file = place.project().join("chat.json");
    std::fs::write(&file, json!({ "messages": messages }).to_string())?;
    let file = file.to_string_lossy();
    let imported = place
        .haft_command(haft, &["conversations", "import", &file])
        .output()?;
    ensure!(
        imported.status.success(),
        "{}",
        String::from_utf8_lossy(&imported.stderr)
    );
    let listed = place
        .haft_command(haft, &["conversations", "list", "--all", "--json"])
        .output()?;
    let listed: Value = serde_json::from_slice(&listed.stdout)?;
    let id = listed.pointer("/0/id").and_then(Value::as_str);
    Ok(id.context("nothing was imported")?.to_owned())
}

/// A running `haft serve`, which is killed when the value is dropped.
struct ServedSite {
    child: Child,
    address: String,
    token: String,
}

impl ServedSite {
    fn start(haft: &Path, place: &Workspace) -> anyhow::Result<Self> {
        let mut child = place
            .haft_command(haft, &["serve"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        let (address, token) = line
            .trim()
            .trim_start_matches("http://")
            .split_once("/?token=")
            .context("no address")?;
        Ok(Self {
            child,
            address: address.to_owned(),
            token: token.to_owned(),
        })
    }

    /// Loads a page until it is complete, as a browser does while a page shows its progress.
    fn time_page(&self, path: &str) -> anyhow::Result<Duration> {
        let started = Instant::now();
        loop {
            let page = self.load(path)?;
            if !page.contains("id=\"computing\"") {
                return Ok(started.elapsed());
            }
        }
    }

    fn load(&self, path: &str) -> anyhow::Result<String> {
        let Self { address, token, .. } = self;
        let port = address.rsplit(':').next().unwrap_or_default();
        let mut stream = TcpStream::connect(address)?;
        let head =
            format!("host: {address}\r\ncookie: haft_{port}={token}\r\nconnection: close\r\n");
        stream.write_all(format!("GET {path} HTTP/1.1\r\n{head}\r\n").as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let beginning: String = answer.chars().take(300).collect();
        ensure!(answer.starts_with("HTTP/1.1 200"), "{path}: {beginning}");
        Ok(answer)
    }

    fn peak_memory_mb(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"))
            .context("no peak memory")?;
        Ok(peak.parse::<f64>()? / 1e3)
    }
}

impl Drop for ServedSite {
    fn drop(&mut self) {
        // A server that has ended already needs no end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
