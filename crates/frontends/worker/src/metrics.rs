//! Serves the state of the queue as Prometheus metrics.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use haft_postgres::{QueueStatistics, TaskQueue, WorkerRow};

/// The maximum size of a request, in bytes.
const MAX_REQUEST_BYTES: usize = 8_192;

/// Answers HTTP requests with the metrics of the queue until the process exits. The listener should
/// be on the loopback interface, because the metrics reveal labels and costs, and there is no token.
///
/// Requests of web pages are refused. On the loopback interface, so are requests for the name of
/// another host, with which a page could read the answer (DNS rebinding).
pub fn serve_metrics(listener: &TcpListener, queue: &TaskQueue) {
    let names = match listener.local_addr() {
        Ok(address) if !address.ip().is_loopback() => ServedNames::Any,
        Ok(_) | Err(_) => ServedNames::Loopback,
    };
    for stream in listener.incoming().flatten() {
        let result = answer_request(stream, queue, names);
        if let Err(error) = result {
            tracing::debug!(%error, "metrics were not read to the end");
        }
    }
}

/// The host names under which the metrics can be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServedNames {
    /// The names of this machine's loopback interface.
    Loopback,
    /// Any name, because the user chose an address that other machines can reach.
    Any,
}

fn answer_request(
    mut stream: std::net::TcpStream,
    queue: &TaskQueue,
    names: ServedNames,
) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.set_write_timeout(Some(Duration::from_secs(2)))?;
    let head = read_head(&mut stream)?;
    let (status, text) = match check_head(&head, names) {
        Err(refusal) => refusal,
        // There is only one page, so the path is ignored.
        Ok(()) => match queue
            .statistics()
            .and_then(|stand| Ok(format_metrics(&stand, &queue.workers()?)))
        {
            Ok(text) => ("200 OK", text),
            Err(error) => ("503 Service Unavailable", format!("{error}\n")),
        },
    };
    let length = text.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )
}

/// Reads a request up to the empty line after its headers.
fn read_head(stream: &mut impl Read) -> io::Result<String> {
    let mut head = Vec::new();
    let mut piece = [0; 1_024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_REQUEST_BYTES {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            break;
        }
        head.extend_from_slice(&piece[..count]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Checks whether a request may be answered. The error is the status and the text of the answer.
fn check_head(head: &str, names: ServedNames) -> Result<(), (&'static str, String)> {
    let mut lines = head.split("\r\n");
    let method = lines.next().unwrap_or_default().split(' ').next();
    let headers: Vec<_> = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim()))
        .collect();
    let values = |wanted: &str| {
        let matching = headers.iter().filter(|(name, _)| name == wanted);
        matching.map(|(_, value)| *value).collect::<Vec<_>>()
    };
    let is_own_host = match (names, values("host").as_slice()) {
        (ServedNames::Any, _) => true,
        (ServedNames::Loopback, [host]) => is_loopback_host(host),
        (ServedNames::Loopback, _) => false,
    };
    if !is_own_host {
        let text = "this host name is not served\n".to_owned();
        return Err(("421 Misdirected Request", text));
    }
    let is_own_site = |site: &&str| ["none", "same-origin"].contains(site);
    if !values("origin").is_empty() || !values("sec-fetch-site").iter().all(is_own_site) {
        let text = "web pages may not read the metrics\n".to_owned();
        return Err(("403 Forbidden", text));
    }
    if !matches!(method, Some("GET" | "HEAD")) {
        return Err(("405 Method Not Allowed", String::new()));
    }
    Ok(())
}

/// True if a host, with or without a port, is a name or an address of this machine's loopback.
fn is_loopback_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        Some(_) | None => host,
    };
    ["127.0.0.1", "localhost", "[::1]"]
        .iter()
        .any(|own| name.eq_ignore_ascii_case(own))
}

fn format_metrics(statistics: &QueueStatistics, workers: &[WorkerRow]) -> String {
    let mut text = String::new();
    let mut write_metric = |name: &str, kind: &str, help: &str, rows: Vec<(String, f64)>| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in rows {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    };
    let failed = statistics.states.get("failed").copied().unwrap_or_default();
    write_metric(
        "haft_queue_failed_tasks",
        "gauge",
        "Tasks that failed, including failed runs.",
        vec![(String::new(), failed as f64)],
    );
    let states = statistics
        .states
        .iter()
        .map(|(state, count)| (format_label("state", state), *count as f64))
        .collect();
    write_metric(
        "haft_queue_tasks",
        "gauge",
        "Tasks by state or outcome, as `haft queue list` names it.",
        states,
    );
    write_metric(
        "haft_queue_ready_tasks",
        "gauge",
        "Tasks that a worker would take if it started now, limits aside.",
        vec![(String::new(), statistics.ready as f64)],
    );
    let oldest = vec![(String::new(), statistics.oldest_ms as f64 / 1_000.0)];
    write_metric(
        "haft_queue_oldest_seconds",
        "gauge",
        "How long the oldest task that is due has waited.",
        oldest,
    );
    let usd = statistics
        .labels
        .iter()
        .map(|one| (format_label("label", &one.label), one.usd))
        .collect();
    write_metric(
        "haft_queue_cost_usd",
        "gauge",
        "Cost of the tasks with each label.",
        usd,
    );
    let tokens = statistics
        .labels
        .iter()
        .map(|one| (format_label("label", &one.label), one.tokens as f64))
        .collect();
    write_metric(
        "haft_queue_tokens",
        "gauge",
        "Tokens of the tasks with each label.",
        tokens,
    );
    let slots = workers
        .iter()
        .map(|one| (format_label("worker", &one.name), one.slots as f64))
        .collect();
    write_metric(
        "haft_worker_slots",
        "gauge",
        "Tasks each worker runs at once.",
        slots,
    );
    let busy = workers
        .iter()
        .map(|one| (format_label("worker", &one.name), one.tasks as f64))
        .collect();
    write_metric("haft_worker_tasks", "gauge", "Tasks each worker has.", busy);
    let silent = workers
        .iter()
        .map(|one| {
            (
                format_label("worker", &one.name),
                one.silent_ms as f64 / 1_000.0,
            )
        })
        .collect();
    write_metric(
        "haft_worker_silent_seconds",
        "gauge",
        "How long nothing was heard of each worker.",
        silent,
    );
    let unhealthy = workers
        .iter()
        .map(|one| {
            let unhealthy = one.problem.is_some();
            (
                format_label("worker", &one.name),
                f64::from(u8::from(unhealthy)),
            )
        })
        .collect();
    write_metric(
        "haft_worker_unhealthy",
        "gauge",
        "1 if the worker takes no tasks because of a problem of its host.",
        unhealthy,
    );
    text
}

fn format_label(name: &str, value: &str) -> String {
    let value = value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
        .replace('\r', " ");
    format!("{{{name}=\"{value}\"}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_refuse_web_pages_and_foreign_hosts() {
        let status = |head: &str, names| match check_head(head, names) {
            Ok(()) => "200 OK",
            Err((status, _)) => status,
        };
        for (headers, on_loopback, elsewhere) in [
            ("Host: 127.0.0.1:9090", "200", "200"),
            ("Host: localhost", "200", "200"),
            ("host:[::1]:9090", "200", "200"),
            ("Host: a.example:9090", "421", "200"),
            ("Host: localhost.a.example", "421", "200"),
            ("Host: localhost\r\nHost: a.example", "421", "200"),
            ("Accept: */*", "421", "200"),
            ("Host: localhost\r\nOrigin: https://a.example", "403", "403"),
            ("Host: localhost\r\nOrigin: null", "403", "403"),
            (
                "Host: localhost\r\nSec-Fetch-Site: cross-site",
                "403",
                "403",
            ),
            ("Host: localhost\r\nSec-Fetch-Site: none", "200", "200"),
        ] {
            let head = format!("GET /metrics HTTP/1.1\r\n{headers}\r\n\r\n");
            assert!(
                status(&head, ServedNames::Loopback).starts_with(on_loopback),
                "{headers}"
            );
            assert!(
                status(&head, ServedNames::Any).starts_with(elsewhere),
                "{headers}"
            );
        }
        let post = "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        assert!(status(post, ServedNames::Loopback).starts_with("405"));
        assert!(status("", ServedNames::Loopback).starts_with("421"));
    }

    #[test]
    fn read_head_reads_until_the_empty_line() {
        let text = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned() + &"x".repeat(9_000);
        let head = read_head(&mut text.as_bytes()).unwrap();
        assert!(head.contains("\r\n\r\n") && head.len() < 2_000);
        let endless = "x".repeat(100_000);
        let head = read_head(&mut endless.as_bytes()).unwrap();
        assert!(head.len() <= MAX_REQUEST_BYTES + 1_024);
    }

    #[test]
    fn format_metrics_uses_the_text_format() {
        let stand = QueueStatistics {
            states: [("failed".to_owned(), 2), ("queued".to_owned(), 3)].into(),
            ready: 5,
            oldest_ms: 1_500,
            ..QueueStatistics::default()
        };
        let worker = WorkerRow {
            id: 1,
            name: "a\"b\\\n".to_owned(),
            slots: 4,
            labels: Vec::new(),
            draining: false,
            silent_ms: 10,
            tasks: 2,
            problem: Some("disk full".to_owned()),
        };
        let text = format_metrics(&stand, &[worker]);
        assert!(
            text.contains("haft_queue_tasks{state=\"queued\"} 3\n"),
            "{text}"
        );
        assert!(text.contains("haft_queue_oldest_seconds 1.5\n"), "{text}");
        assert!(
            text.contains("haft_worker_slots{worker=\"a\\\"b\\\\\\n\"} 4\n"),
            "{text}"
        );
        assert!(text.contains("haft_queue_failed_tasks 2\n"), "{text}");
        assert!(text.contains("haft_queue_ready_tasks 5\n"), "{text}");
        assert!(
            text.contains("haft_worker_unhealthy{worker=\"a\\\"b\\\\\\n\"} 1\n"),
            "{text}"
        );
        assert!(
            text.lines()
                .all(|line| line.starts_with('#') || line.split(' ').count() == 2),
            "{text}"
        );
    }
}
