//! The pages of the team's queue, on a real PostgreSQL server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use haft_testkit::Reply;
use serde_json::json;

use super::{HOSTILE, ServedPage};
use crate::rig::Rig;
use crate::workers::{Team, reply_after, spawn_silently};
use crate::worktrees::command_call;

/// The versions of a page, as its script receives them.
struct Versions(BufReader<TcpStream>);

impl Versions {
    fn open(page: &ServedPage, path: &str) -> Self {
        let mut stream = TcpStream::connect(&page.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_mins(2)))
            .unwrap();
        let host = &page.address;
        let cookie = page.cookie();
        write!(
            stream,
            "GET /events?path={path} HTTP/1.1\r\nhost: {host}\r\n{cookie}\r\n"
        )
        .unwrap();
        Self(BufReader::new(stream))
    }

    fn next_version(&mut self) -> String {
        let mut line = String::new();
        while !line.starts_with("data: ") {
            line.clear();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the events ended");
        }
        line
    }
}

#[test]
fn postgres_queue_page_follows_changes_and_escapes_text() {
    let replies = |shared: &Path| {
        let wait = format!("while [ ! -e {}/go ]; do sleep 0.1; done", shared.display());
        let write = Reply::call(
            "write_to_file",
            json!({"path": "a.txt", "content": HOSTILE}),
        );
        [
            reply_after(0, write),
            reply_after(1, command_call(&wait)),
            reply_after(2, Reply::text(format!("Said {HOSTILE}"))),
        ]
    };
    let Some(team) = Team::with_shared_folder("page", replies) else {
        return;
    };
    let later = ["--label", HOSTILE, "--not-before", "2100-01-01T00:00:00Z"];
    let run = team.add_task(&format!("do it {HOSTILE}"), &["--label", HOSTILE]);
    let project = team.rig.project().display().to_string();
    let waits = team.rig.run(
        &[
            &["queue", "add", HOSTILE, "--repository", HOSTILE, "--json"],
            &later[..],
        ]
        .concat(),
    );
    let waits = waits.json()[0]["id"].as_i64().unwrap();
    let page = ServedPage::start(&team.rig);
    assert!(page.get_page("/").contains("<a href=\"/queue\">Queue</a>"));
    let running = format!("/queue/{run}");
    let waiting = format!("/queue/{waits}");

    let home = team.new_host();
    let mut worker = spawn_silently(&mut team.worker_command(home.path(), &[]));
    let shown = page.wait_for_page(&running, "while [ ! -e");
    assert!(
        shown.contains("Cancel the task") && shown.contains(&project),
        "{shown}"
    );
    let queue = page.get_page("/queue");
    assert!(
        queue.contains("Last heartbeat")
            && queue.contains(&format!("<a href=\"/queue/label/{}", team.label)),
        "{queue}"
    );
    let mut versions = Versions::open(&page, &running);
    let before = versions.next_version();
    std::fs::write(team.shared.path().join("go"), "").unwrap();
    assert_ne!(versions.next_version(), before);
    let ended = page.wait_for_page(&running, "Queue it again");
    assert!(
        ended.contains("completed") && ended.contains("Said ") && ended.contains("Patch ("),
        "{ended}"
    );
    let conversation = team.show_task(run)["conversation"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        ended.contains(&format!("<a href=\"/c/{conversation}\">")),
        "{ended}"
    );
    worker.kill().unwrap();
    worker.wait().unwrap();

    let label = "/queue/label/%3C%2Fpre%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E%3Cimg%20src%3Dx%20onerror%3Dalert(2)%3E";
    for (path, expected) in [
        ("/queue", HOSTILE),
        (&running, "do it "),
        (&waiting, "queued"),
        ("/queue/state/queued", "Repository"),
        ("/queue?from=9999999999999999999", "Repository"),
        (label, "do it "),
        ("/queue/label/%3Cscript%3E", "Repository"),
    ] {
        let html = page.get_page(path);
        assert!(html.starts_with("HTTP/1.1 200 "), "{path}: {html}");
        let escaped = expected.replace('<', "&lt;").replace('>', "&gt;");
        assert!(html.contains(&escaped), "{path} lacks {expected}: {html}");
        assert_eq!(html.matches("<script").count(), 1, "{path}: {html}");
        assert!(
            !html.contains("<img") && !html.contains("style="),
            "{path}: {html}"
        );
        assert!(
            html.contains("content-security-policy: default-src 'none'"),
            "{path}"
        );
    }
    for missing in ["/queue/0", "/queue/x", "/queue/state/x", "/queue/1/2"] {
        assert!(
            page.get_page(missing).starts_with("HTTP/1.1 404 "),
            "{missing}"
        );
    }

    let headers = format!(
        "host: {0}\r\norigin: http://{0}\r\n{1}",
        page.address,
        page.cookie()
    );
    assert!(
        page.post_with_headers(&waiting, &headers, "do=cancel")
            .starts_with("HTTP/1.1 403 "),
        "not a form of the page"
    );
    assert_eq!(team.show_task(waits)["state"], "queued");
    for (does, state) in [
        ("cancel", "cancelled"),
        ("cancel", "cancelled"),
        ("retry", "queued"),
        ("cancel", "cancelled"),
    ] {
        let answer = page.post(&waiting, &waiting, &[("do", does)]);
        assert!(answer.contains(&format!("location: {waiting}")), "{answer}");
        assert_eq!(team.show_task(waits)["state"], state);
    }
    assert!(
        page.post(&waiting, &waiting, &[("do", "x")])
            .starts_with("HTTP/1.1 404 ")
    );
}

#[test]
fn queue_page_is_absent_without_postgres() {
    let rig = Rig::new(
        haft_types::Api::Anthropic,
        haft_testkit::Script::replies([]).unwrap(),
    );
    let page = ServedPage::start(&rig);
    assert!(!page.get_page("/").contains("/queue"));
    assert!(page.get_page("/queue").starts_with("HTTP/1.1 404 "));
}
