//! `haft serve` from outside: every page of a conversation whose every field holds a script.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use haft_testkit::{Reply, Script, ScriptCall};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;

/// A page that is served, ended with the test.
struct ServedPage {
    child: Child,
    address: String,
    token: String,
}

impl ServedPage {
    fn start(rig: &Rig) -> Self {
        let mut child = rig.command(&["serve"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let (address, token) = line.trim().strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
        Self { address: address.to_owned(), token: token.to_owned(), child }
    }

    fn get(&self, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let host = &self.address;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\n{headers}connection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// A page, by somebody who has the cookie.
    fn page(&self, path: &str) -> String {
        let port = self.address.rsplit(':').next().unwrap();
        self.get(path, &format!("cookie: haft_{port}={}\r\n", self.token))
    }
}

impl Drop for ServedPage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const HOSTILE: &str = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>";

#[test]
fn every_page_shows_what_was_said_and_runs_none_of_it() {
    let call = ScriptCall::new("list_files", json!({"path": HOSTILE}));
    let script = Script::replies([Reply::calls([call]), Reply::text(format!("Done. {HOSTILE}"))]).unwrap();
    let rig = Rig::new(Api::Anthropic, script);
    rig.write("AGENTS.md", format!("Follow this: {HOSTILE}\n"));
    assert_eq!(rig.run(&["run", &format!("look around {HOSTILE}")]).code(), 0);
    let listed = rig.run(&["conversations", "list", "--json"]).json();
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(rig.run(&["conversations", "rename", &id, HOSTILE]).code(), 0);

    let page = ServedPage::start(&rig);
    let first = page.get(&format!("/?token={}", page.token), "");
    assert!(first.starts_with("HTTP/1.1 303 ") && first.contains("SameSite=Strict"), "{first}");
    assert!(page.get("/", "").starts_with("HTTP/1.1 401 "));
    let pages = [
        ("/".to_owned(), "From cache"),
        ("/?q=look".to_owned(), "look around"),
        (format!("/?q={}", "%3Cscript%3Ealert(1)%3C/script%3E"), "Search"),
        (format!("/c/{id}"), "look around"),
        (format!("/c/{id}/timeline"), "<svg"),
        (format!("/c/{id}/r/1"), "Body as it was sent"),
        (format!("/c/{id}/r/2"), "Difference to the request before"),
    ];
    for (path, expected) in pages {
        let html = page.page(&path);
        assert!(html.starts_with("HTTP/1.1 200 "), "{path}: {html}");
        assert!(html.contains(expected), "{path} lacks {expected}: {html}");
        assert_eq!(html.matches("<script").count(), 1, "{path}: {html}");
        assert!(!html.contains("<img") && !html.contains("style="), "{path}: {html}");
        assert!(html.contains("content-security-policy: default-src 'none'"), "{path}");
    }
    for missing in ["/c/nobody", &format!("/c/{id}/r/0"), &format!("/c/{id}/r/99"), &format!("/c/{id}/r/x"), "/x"] {
        assert!(page.page(missing).starts_with("HTTP/1.1 404 "), "{missing}");
    }
    let css = page.page("/style.css");
    assert!(css.contains("text/css") && css.contains(".reminders"), "{css}");
    assert!(page.page("/live.js").contains("EventSource"));
}
