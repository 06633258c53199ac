//! Web requests of a model that an attacker persuaded.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use haft_testkit::Reply;
use serde_json::{Value, json};

use super::{append_config, results, rig};
use crate::rig::{Ran, Rig};

/// A server that answers every path and records its requests.
fn start_site(answer: fn(&str) -> String) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut piece = [0; 8192];
            let Ok(read) = stream.read(&mut piece) else {
                continue;
            };
            let request = String::from_utf8_lossy(&piece[..read]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            seen.lock().unwrap().push(request);
            // The client may be gone.
            let _ = stream.write_all(answer(&path).as_bytes());
        }
    });
    (address.to_string(), asked)
}

fn crawl(url: &str) -> Reply {
    Reply::call("web_crawl", json!({ "url": url }))
}

fn rig_with_web(replies: impl IntoIterator<Item = Reply>, more: &str) -> Rig {
    let rig = rig(replies);
    append_config(&rig, &format!("[web]\ncrawl = true\n{more}"));
    rig
}

const ALLOW_LOCALHOST: &str = "allow_private = [\"127.0.0.1\"]\n";

fn result_texts(ran: &Ran) -> String {
    results(ran)
        .iter()
        .map(|result| result["text"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// In `yolo` mode no call needs approval, and still no address of this machine is reached.
#[test]
fn web_crawl_reaches_no_spelling_of_localhost() {
    let (address, asked) =
        start_site(|_| "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret".to_owned());
    let port = address.rsplit(':').next().unwrap();
    let hosts = [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "017700000001",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.0.0.1.",
        "localhost",
        "LOCALHOST.",
        "[::1]",
        "[::]",
        "[::127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "0",
        "0.0.0.0",
        "１２７.0.0.1",
        "127。0。0。1",
        "①②⑦.0.0.1",
        "localhost%2e",
    ];
    let pages = hosts.map(|host| format!("http://{host}:{port}/"));
    let schemes = [
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "data:text/plain,x",
        "//127.0.0.1/",
        "javascript:1",
        "ws://127.0.0.1/",
    ];
    let pages: Vec<_> = pages.iter().map(String::as_str).chain(schemes).collect();
    let rig = rig_with_web(
        pages
            .iter()
            .map(|page| crawl(page))
            .chain([Reply::text("Done.")]),
        "",
    );
    let ran = rig.task(&["go"]);
    let results = results(&ran);
    assert_eq!(results.len(), pages.len(), "{}", ran.stderr());
    for (page, result) in pages.iter().zip(&results) {
        assert_eq!(result["status"], "error", "{page}: {result}");
    }
    assert!(
        asked.lock().unwrap().is_empty(),
        "{:?}",
        asked.lock().unwrap()
    );
}

/// Redirects lead neither to private addresses nor to other schemes, and proxies of the environment
/// are not used.
#[test]
fn web_crawl_blocks_redirects_and_ignores_proxies() {
    let (inner, reached) =
        start_site(|_| "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret".to_owned());
    let (outer, _) = start_site(|path| match path.trim_start_matches('/') {
        "robots.txt" => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
        to => format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"),
    });
    let port = inner.rsplit(':').next().unwrap();
    for to in [
        format!("http://localhost:{port}/"),
        format!("http://[::1]:{port}/"),
        "file:///etc/passwd".to_owned(),
        format!("http://me:hush@localhost:{port}/"),
        format!("\\\\localhost:{port}/"),
    ] {
        let rig = rig_with_web(
            [crawl(&format!("http://{outer}/{to}")), Reply::text("Done.")],
            ALLOW_LOCALHOST,
        );
        let mut command = rig.command(&[
            "run",
            "--output-format",
            "stream-json",
            "--permission-mode",
            "yolo",
            "go",
        ]);
        for name in ["http_proxy", "all_proxy", "ALL_PROXY"] {
            // The model itself is reached without.
            command
                .env(name, format!("http://{inner}"))
                .env("no_proxy", "127.0.0.1");
        }
        let ran = Ran(command.output().unwrap());
        assert!(
            !result_texts(&ran).contains("secret"),
            "{to}: {}",
            result_texts(&ran)
        );
        assert!(!ran.stdout().contains("root:"), "{to}");
    }
    assert!(
        reached.lock().unwrap().is_empty(),
        "{:?}",
        reached.lock().unwrap()
    );
}

/// A password in a URL is neither sent nor stored.
#[test]
fn web_crawl_refuses_and_masks_passwords_in_urls() {
    let (address, asked) =
        start_site(|_| "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_owned());
    for url in [
        format!("http://me:hush-hush-1@{address}/"),
        format!("http://hush-hush-1@{address}/"),
    ] {
        let rig = rig_with_web([crawl(&url), Reply::text("Done.")], ALLOW_LOCALHOST);
        let ran = rig.task(&["go"]);
        assert_eq!(results(&ran)[0]["status"], "error");
        assert!(
            !result_texts(&ran).contains("me:hush-hush-1@"),
            "{}",
            result_texts(&ran)
        );
        assert!(!rig.export().to_string().contains("me:hush-hush-1@"));
    }
    assert!(asked.lock().unwrap().is_empty());
}

fn page(body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

type Answer = fn(&str) -> String;

/// The content and the headers of a page neither break out of its frame nor crash the run.
#[test]
fn web_crawl_bounds_hostile_responses() {
    let answers: [(&str, Answer); 6] = [
        ("a wall of end tags", |_| page(&"<div></p>".repeat(400_000))),
        ("formatting that multiplies", |_| {
            let formats: String = (0..900)
                .map(|number| format!("<b class=c{number}>"))
                .collect();
            page(&format!("<p>{formats}</p>{}", "<p>x".repeat(200_000)))
        }),
        ("a link for every byte", |_| {
            page(
                &(0..200_000)
                    .map(|number| format!("<a href=/{number}>x</a>"))
                    .collect::<String>(),
            )
        }),
        ("escapes", |_| {
            page("<title>\u{1b}]0;owned\u{7}</title><p>\u{1b}[2J\u{202e}hello")
        }),
        ("a type that is none", |_| {
            "HTTP/1.1 200 OK\r\ncontent-type: \u{202e}/x\r\ncontent-length: 1\r\n\r\nx".to_owned()
        }),
        ("a length that lies", |_| {
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\ncontent-type: text/plain\r\n\r\nx"
                .to_owned()
        }),
    ];
    for (what, answer) in answers {
        let (address, _) = start_site(answer);
        let call = Reply::call(
            "web_crawl",
            json!({"url": format!("http://{address}/"), "max_pages": 2}),
        );
        let rig = rig_with_web([call, Reply::text("Done.")], ALLOW_LOCALHOST);
        let ran = rig.task(&["go"]);
        assert_eq!(ran.code(), 0, "{what}: {}", ran.stderr());
        let result: Value = results(&ran).remove(0);
        assert!(result.to_string().len() < 300_000, "{what}");
        assert!(
            !result_texts(&ran).contains(['\u{1b}', '\u{7}', '\u{202e}']),
            "{what}"
        );
    }
}

/// Rules on hosts hold for every spelling of a host.
#[test]
fn web_crawl_deny_rule_matches_every_spelling_of_a_host() {
    for (rule, url) in [
        ("example.com", "https://EXAMPLE.com/"),
        ("example.com", "https://example.com./"),
        ("example.com", "https://www.example.com/"),
        ("example.com", "https://ｅxample.com/"),
        ("xn--bcher-kva.example", "https://bücher.example/"),
        ("xn--bcher-kva.example", "https://BÜCHER.example/"),
        ("127.0.0.1", "http://2130706433/"),
        ("[::1]", "http://[0:0:0:0:0:0:0:1]/"),
    ] {
        let rig = rig_with_web([crawl(url), Reply::text("Done.")], "");
        append_config(
            &rig,
            &format!("[permissions]\ndeny = [\"web_crawl(domain:{rule})\"]\n"),
        );
        let ran = rig.task(&["go"]);
        assert!(
            result_texts(&ran).contains("not permitted"),
            "{rule} {url}: {}",
            result_texts(&ran)
        );
    }
    let rig = rig_with_web([Reply::text("Done.")], "");
    append_config(
        &rig,
        "[permissions]\ndeny = [\"web_crawl(domain:bücher.example)\"]\n",
    );
    let ran = rig.task(&["go"]);
    assert!(
        ran.code() == 2 && ran.stderr().contains("xn--"),
        "a rule that could never fit is refused: {}",
        ran.stderr()
    );
}
