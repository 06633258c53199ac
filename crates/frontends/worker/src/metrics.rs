//! Serves the state of the queue as Prometheus metrics.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use haft_postgres::{QueueStatistics, TaskQueue, WorkerRow};

/// Answers every HTTP request with the metrics of the queue until the process exits. The listener
/// should be on the loopback interface, because the metrics reveal labels and costs.
pub fn serve_metrics(listener: &TcpListener, queue: &TaskQueue) {
    for stream in listener.incoming().flatten() {
        let result = answer_request(stream, queue);
        if let Err(error) = result {
            tracing::debug!(%error, "metrics were not read to the end");
        }
    }
}

fn answer_request(mut stream: std::net::TcpStream, queue: &TaskQueue) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.set_write_timeout(Some(Duration::from_secs(2)))?;
    // The content of the request is ignored, because there is only one page.
    let _ = stream.read(&mut [0; 4_096])?;
    let (status, text) = match queue
        .statistics()
        .and_then(|stand| Ok(format_metrics(&stand, &queue.workers()?)))
    {
        Ok(text) => ("200 OK", text),
        Err(error) => ("503 Service Unavailable", format!("{error}\n")),
    };
    let length = text.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )
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
    fn format_metrics_uses_the_text_format() {
        let stand = QueueStatistics {
            states: [("failed".to_owned(), 2), ("queued".to_owned(), 3)].into(),
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
