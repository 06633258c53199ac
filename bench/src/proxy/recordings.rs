//! Measures the size of long recorded conversations, and the time the page needs to open one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{RunningProxy, time_exchange};
use crate::figures;

/// The number of turns in each conversation of the storage measurement.
const TURNS: usize = 200;
/// The number of requests in the conversation that is opened on the page.
const PAGE_REQUESTS: usize = 1_000;

/// Records 10,000 requests in conversations of 200 turns, and checks that the bytes stored per new
/// byte don't grow.
pub(super) fn measure_storage(haft: &Path, upstream: SocketAddr) -> anyhow::Result<()> {
    let mut per_byte = Vec::new();
    for conversations in [5, 50] {
        let proxy = RunningProxy::start(haft, upstream)?;
        let mut fresh = 0;
        let mut sent = 0;
        for number in 0..conversations {
            let (new, all) = send_conversation(proxy.address, number, TURNS)?;
            fresh += new;
            sent += all;
        }
        let stored = measure_folder_bytes(proxy.stop()?.home())?;
        let ratio = stored as f64 / fresh as f64;
        let requests = conversations * TURNS;
        figures::print_figure(
            &format!("stored for a new byte after {requests} requests"),
            ratio,
            "B",
            None,
        );
        figures::print_figure(
            &format!("sent for a new byte in {requests} requests"),
            sent as f64 / fresh as f64,
            "B",
            None,
        );
        per_byte.push(ratio);
    }
    let [few, many] = per_byte.as_slice() else {
        return Ok(());
    };
    figures::print_figure(
        "after 10,000 requests against after 1,000",
        many / few,
        "x",
        Some(1.1),
    );
    Ok(())
}

/// Opens a conversation of 1,000 requests on the page: its timeline and its last request.
pub(super) fn measure_page(haft: &Path, upstream: SocketAddr) -> anyhow::Result<()> {
    let proxy = RunningProxy::start(haft, upstream)?;
    send_conversation(proxy.address, 0, PAGE_REQUESTS)?;
    let place = proxy.stop()?;
    let listed = place
        .haft_command(
            haft,
            &["conversations", "list", "--namespace", "proxy", "--json"],
        )
        .output()?;
    let listed: Value = serde_json::from_slice(&listed.stdout)?;
    let id = listed
        .pointer("/0/id")
        .and_then(Value::as_str)
        .context("nothing was recorded")?
        .to_owned();
    let mut child = place
        .haft_command(haft, &["serve"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
    let shown = time_page_loads(&line, &id);
    child.kill()?;
    child.wait()?;
    shown
}

fn time_page_loads(line: &str, id: &str) -> anyhow::Result<()> {
    let (address, token) = line
        .trim()
        .trim_start_matches("http://")
        .split_once("/?token=")
        .context("no address")?;
    let port = address.rsplit(':').next().unwrap_or_default();
    for (name, page) in [
        ("timeline", "timeline".to_owned()),
        ("last request", format!("r/{PAGE_REQUESTS}")),
    ] {
        let mut times = Vec::new();
        for _ in 0..5 {
            let started = Instant::now();
            let mut stream = TcpStream::connect(address)?;
            let head =
                format!("host: {address}\r\ncookie: haft_{port}={token}\r\nconnection: close\r\n");
            stream.write_all(format!("GET /c/{id}/{page} HTTP/1.1\r\n{head}\r\n").as_bytes())?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer)?;
            ensure!(
                answer.starts_with(b"HTTP/1.1 200"),
                "{}",
                String::from_utf8_lossy(&answer[..answer.len().min(300)])
            );
            times.push(started.elapsed());
        }
        let median = figures::median_ms(&mut times);
        figures::print_figure(
            &format!("page of {PAGE_REQUESTS} requests: {name}, median of 5"),
            median,
            "ms",
            Some(1_000.0),
        );
    }
    Ok(())
}

/// Sends a conversation in which each request extends the previous one; returns the bytes that were
/// new and the bytes sent.
fn send_conversation(
    address: SocketAddr,
    number: usize,
    turns: usize,
) -> anyhow::Result<(usize, usize)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut messages = format!(r#"{{"role":"system","content":"conversation {number}"}}"#);
    let mut fresh = messages.len();
    let mut sent = 0;
    for turn in 0..turns {
        let words = (0..60)
            .map(|word| ((number * 7_919 + turn * 104_729 + word * 31) % 99_991).to_string());
        let text = words.collect::<Vec<_>>().join(" ");
        let step = format!(
            r#",{{"role":"user","content":"{turn} {text}"}},{{"role":"assistant","content":"ok"}}"#
        );
        fresh += step.len();
        messages.push_str(&step);
        let asked = messages
            .strip_suffix(r#",{"role":"assistant","content":"ok"}"#)
            .unwrap_or(&messages);
        let body = format!(r#"{{"model":"m","messages":[{asked}]}}"#);
        sent += body.len();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        time_exchange(&mut stream, &[head.as_bytes(), body.as_bytes()].concat())?;
    }
    Ok((fresh, sent))
}

/// Returns the total size of all files below a folder.
fn measure_folder_bytes(folder: &Path) -> anyhow::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        sum += if about.is_dir() {
            measure_folder_bytes(&entry.path())?
        } else {
            about.len()
        };
    }
    Ok(sum)
}
