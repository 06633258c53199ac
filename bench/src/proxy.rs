//! Measures what `haft proxy` adds to a request, by comparing requests on a kept connection with
//! and without the proxy. `proxy/recordings.rs` measures the size of recordings and the time to
//! show one.

mod recordings;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use haft_testkit::{Script, ScriptedServer};

use crate::figures;
use crate::subject::Workspace;

const REQUEST_COUNT: usize = 500;

pub(crate) fn run_benchmark(haft: &Path) -> anyhow::Result<()> {
    let upstream = start_upstream()?;
    measure_overhead(haft, upstream)?;
    measure_saving_overhead(haft, upstream)?;
    recordings::measure_storage(haft, upstream)?;
    recordings::measure_page(haft, upstream)
}

/// A proxy with its own home.
struct RunningProxy {
    place: Workspace,
    child: Child,
    address: SocketAddr,
}

impl RunningProxy {
    fn start(haft: &Path, upstream: SocketAddr) -> anyhow::Result<Self> {
        Self::start_with(haft, upstream, &[])
    }

    /// Starts a proxy with further options. The configuration allows codex's requests to be rewritten.
    fn start_with(haft: &Path, upstream: SocketAddr, options: &[&str]) -> anyhow::Result<Self> {
        // The server only provides the configuration; the proxy forwards to the fast `upstream`.
        let place = Workspace::new(
            &ScriptedServer::builder(Script::replies([])?)
                .lean()
                .start_in_thread()?,
        )?;
        let url = format!("http://{upstream}");
        let consent = ["config", "set", "proxy.save.agents", r#"["codex"]"#];
        let set = place.haft_command(haft, &consent).output()?;
        anyhow::ensure!(set.status.success(), "the configuration cannot be changed");
        let arguments = ["proxy", "--port", "0", "--upstream", &url];
        let mut command = place.haft_command(haft, &[&arguments[..], options].concat());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        let address = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split(". ").next())
            .unwrap_or_default();
        let address = address.parse().with_context(|| line.clone())?;
        Ok(Self {
            place,
            child,
            address,
        })
    }

    /// Stops the proxy with SIGINT, as its user would, so that it finishes recording.
    fn stop(mut self) -> anyhow::Result<Workspace> {
        rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.child),
            rustix::process::Signal::INT,
        )?;
        self.child.wait()?;
        Ok(self.place)
    }
}

fn measure_overhead(haft: &Path, upstream: SocketAddr) -> anyhow::Result<()> {
    let proxy = RunningProxy::start(haft, upstream)?;
    for size in [10_000, 200_000] {
        let mut direct = TcpStream::connect(upstream)?;
        let mut through = TcpStream::connect(proxy.address)?;
        direct.set_nodelay(true)?;
        through.set_nodelay(true)?;
        let mut alone = Vec::new();
        let mut added = Vec::new();
        // Alternating, so that other load on the machine affects both equally.
        for number in 0..REQUEST_COUNT {
            let request = build_request(number, size);
            let straight = time_exchange(&mut direct, &request)?;
            let passed = time_exchange(&mut through, &request)?;
            alone.push(straight);
            added.push(passed.saturating_sub(straight));
            // An agent works between two requests, and the recorder uses that time.
            std::thread::sleep(Duration::from_millis(5));
        }
        let kilobytes = size / 1_000;
        let alone = figures::median_ms(&mut alone);
        let added = figures::median_ms(&mut added);
        figures::print_figure(
            &format!("a request of {kilobytes} kB without a proxy, median of {REQUEST_COUNT}"),
            alone,
            "ms",
            None,
        );
        figures::print_figure(
            &format!("added by the proxy at {kilobytes} kB, median"),
            added,
            "ms",
            Some(1.0),
        );
    }
    proxy.stop()?;
    Ok(())
}

/// Measures the time that `--save` adds to a request of 200 kB. The conversation has 100 tool calls,
/// most of whose results are left out after the first requests.
fn measure_saving_overhead(haft: &Path, upstream: SocketAddr) -> anyhow::Result<()> {
    let proxy = RunningProxy::start_with(haft, upstream, &["--save"])?;
    let mut direct = TcpStream::connect(upstream)?;
    let mut through = TcpStream::connect(proxy.address)?;
    direct.set_nodelay(true)?;
    through.set_nodelay(true)?;
    for calls in 0..100 {
        time_exchange(&mut through, &build_tool_request(0, calls))?;
    }
    let mut added = Vec::new();
    for number in 0..REQUEST_COUNT {
        let request = build_tool_request(number, 100);
        let straight = time_exchange(&mut direct, &request)?;
        let passed = time_exchange(&mut through, &request)?;
        added.push(passed.saturating_sub(straight));
        std::thread::sleep(Duration::from_millis(5));
    }
    let added = figures::median_ms(&mut added);
    figures::print_figure(
        "added by the proxy with `--save` at 200 kB, median",
        added,
        "ms",
        Some(2.0),
    );
    proxy.stop()?;
    Ok(())
}

/// Returns a request after `calls` tool calls, of 2 kB each.
fn build_tool_request(number: usize, calls: usize) -> Vec<u8> {
    let text = "word ".repeat(370);
    let steps: String = (0..calls)
        .map(|call| {
            format!(
                r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{call}","type":"function","function":{{"name":"shell","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c{call}","content":"{call} {text}"}}"#
            )
        })
        .collect();
    let body = format!(
        r#"{{"model":"m","tools":[{{"type":"function","function":{{"name":"shell"}}}}],"messages":[{{"role":"user","content":"go"}}{steps}],"user":"{number}"}}"#
    );
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nuser-agent: codex_exec/1\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn build_request(number: usize, size: usize) -> Vec<u8> {
    let text = "word ".repeat(size / 5);
    let body = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}},{{"role":"user","content":"{number}"}}]}}"#
    );
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

const REPLY: &str = r#"{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}"#;

fn time_exchange(stream: &mut TcpStream, request: &[u8]) -> anyhow::Result<Duration> {
    let started = Instant::now();
    stream.write_all(request)?;
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    while !received.ends_with(REPLY.as_bytes()) {
        let count = stream.read(&mut buffer)?;
        anyhow::ensure!(count > 0, "the connection was closed");
        received.extend_from_slice(&buffer[..count]);
    }
    Ok(started.elapsed())
}

/// Starts a server that gives every request one constant reply.
fn start_upstream() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve_connection(stream));
        }
    });
    Ok(address)
}

fn serve_connection(mut stream: TcpStream) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            if line == "\r\n" {
                break;
            }
        }
        reader.read_exact(&mut vec![0; length])?;
        stream.write_all(
            format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{REPLY}",
                REPLY.len()
            )
            .as_bytes(),
        )?;
    }
}
