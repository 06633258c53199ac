//! The web tools, from the configuration to their results.

use std::io::{Read, Write};
use std::net::TcpListener;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;

fn rig(replies: impl IntoIterator<Item = Reply>, section: &str) -> Rig {
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    let file = rig.home().join("config.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    std::fs::write(file, format!("{before}{section}")).unwrap();
    rig
}

/// Starts a site of one page that is also a search service, and returns its address.
pub(crate) fn start_site() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut piece = [0; 8192];
            let read = stream.read(&mut piece).unwrap();
            let request = String::from_utf8_lossy(&piece[..read]).into_owned();
            let (head, body) = match request.split(' ').nth(1).unwrap_or_default() {
                "/page" => (
                    "200 OK\r\ncontent-type: text/html",
                    "<title>Stripes</title><p>Forty stripes, all told.",
                ),
                "/search?q=zebra+stripes&format=json" => (
                    "200 OK\r\ncontent-type: application/json",
                    r#"{"results":[{"title":"Stripes","url":"https://zoo.example/stripes","content":"How many."}]}"#,
                ),
                _ => ("404 Not Found", ""),
            };
            let length = body.len();
            // The client may have closed the connection.
            let _ = write!(
                stream,
                "HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
        }
    });
    format!("http://{address}")
}

#[test]
fn web_crawl_permission_covers_one_host_only() {
    let site = start_site();
    let read = || Reply::call("web_crawl", json!({"url": format!("{site}/page")}));
    let section = "[web]\ncrawl = true\nallow_private = [\"127.0.0.1\"]\n";
    let rig = rig(
        [read(), Reply::text("Done."), read(), Reply::text("Done.")],
        section,
    );
    let asking = |task: &str| {
        let ran = rig.run(&[
            "run",
            "--permission-mode",
            "ask",
            "--output-format",
            "stream-json",
            task,
        ]);
        let result = ran
            .events()
            .into_iter()
            .find(|event| event["type"] == "tool_result");
        result.expect("a tool was called")["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let refused = asking("read it");
    assert!(
        refused.contains("haft permissions add \"web_crawl(domain:127.0.0.1)\""),
        "{refused}"
    );
    rig.run(&["permissions", "add", "WebFetch(domain:127.0.0.1)"]);
    let text = asking("read it again");
    assert!(
        text.starts_with("What follows comes from the web"),
        "{text}"
    );
    assert!(
        text.contains(&format!(
            "# Stripes\n{site}/page\n\nForty stripes, all told."
        )),
        "{text}"
    );
}

#[test]
fn web_search_uses_the_configured_service() {
    let section = format!(
        "[web]\nsearch = \"searxng\"\nsearch_url = \"{}\"\n",
        start_site()
    );
    let rig = rig(
        [
            Reply::call("web_search", json!({"query": "zebra stripes"})),
            Reply::text("Done."),
        ],
        &section,
    );
    let ran = rig.task(&["search"]);
    let result = ran
        .events()
        .into_iter()
        .find(|event| event["type"] == "tool_result")
        .expect("a tool was called");
    let text = result["text"].as_str().unwrap();
    assert!(
        text.ends_with("\n1. Stripes\n   https://zoo.example/stripes\n   How many.\n"),
        "{text}"
    );
    let offered = rig.server.generation_requests()[0].decode().unwrap().tools;
    assert!(
        offered.iter().all(|tool| tool.name != "web_crawl"),
        "only what is switched on is offered"
    );
}

#[test]
fn web_search_without_a_key_raises_a_notice() {
    let section = "[web]\nsearch = \"brave\"\napi_key_env = \"HAFT_TEST_NO_SUCH_KEY\"\n";
    let ran = rig([Reply::text("Done.")], section).task(&["hello"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let told = ran
        .events()
        .into_iter()
        .find(|event| event["type"] == "error")
        .expect("a notice");
    assert!(
        told["message"]
            .as_str()
            .unwrap()
            .contains("`HAFT_TEST_NO_SUCH_KEY`"),
        "{told}"
    );
}
