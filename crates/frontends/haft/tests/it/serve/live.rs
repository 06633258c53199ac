//! Runs that the page starts, answers and stops.

use std::sync::Arc;
use std::time::Duration;

use haft_store::{SqliteStore, Store, StoreConfig};
use haft_testkit::support::FakeClock;
use haft_testkit::{Reply, Script};
use haft_types::{Api, ConversationId};
use serde_json::json;

use super::{HOSTILE, ServedPage};
use crate::attach::{StayingRun, allow, attach, question, stored_inputs, wait_for_state};
use crate::rig::Rig;

impl ServedPage {
    /// Starts a run in the project of the rig, and returns the address of its page.
    pub(crate) fn start_run(&self, rig: &Rig, mode: &str, prompt: &str) -> String {
        let folder = rig.project().display().to_string();
        let fields = [
            ("do", "start"),
            ("prompt", prompt),
            ("folder", &folder),
            ("mode", mode),
        ];
        let begun = self.post("/run", "/run", &fields);
        let place = begun
            .split("location: ")
            .nth(1)
            .unwrap_or_else(|| panic!("{begun}"));
        place.split("\r\n").next().unwrap().to_owned()
    }

    /// Waits until a page holds this text, and returns the page.
    pub(crate) fn wait_for_page(&self, path: &str, text: &str) -> String {
        for _ in 0..600 {
            let html = self.get_page(path);
            if html.contains(text) {
                return html;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{path} never shows {text}: {}", self.get_page(path));
    }
}

fn write_file_call() -> Reply {
    Reply::call(
        "write_to_file",
        json!({"path": "a.txt", "content": "one\ntwo\n"}),
    )
}

#[test]
fn run_is_started_approved_and_continued() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([
            write_file_call(),
            Reply::text("Done."),
            Reply::text("Again."),
        ])
        .unwrap(),
    );
    let page = ServedPage::start(&rig);
    let place = page.start_run(&rig, "ask", "Write one");
    let asked = page.wait_for_page(&place, "Waiting for approval: Write");
    assert!(
        asked.contains("+one") && asked.contains("+two") && asked.contains("a.txt"),
        "the whole change: {asked}"
    );
    assert!(!rig.project().join("a.txt").exists());
    let allowed = page.post(&place, &place, &[("do", "allow"), ("approval", "1")]);
    assert!(allowed.starts_with("HTTP/1.1 303 "), "{allowed}");
    let done = page.wait_for_page(&place, ">Completed<");
    assert!(
        done.contains("Done.") && done.contains("Changed files"),
        "{done}"
    );
    assert_eq!(
        std::fs::read_to_string(rig.project().join("a.txt")).unwrap(),
        "one\ntwo\n"
    );
    let again = page.post(&place, &place, &[("do", "allow"), ("approval", "1")]);
    assert!(
        again.contains("This approval is no longer pending"),
        "{again}"
    );
    assert!(
        page.post(
            &place,
            &place,
            &[("do", "send"), ("message", "and\r\nnow?")]
        )
        .starts_with("HTTP/1.1 303 ")
    );
    page.wait_for_page(&place, "Again.");
    let asked = rig.server.generation_requests().pop().unwrap().body;
    assert!(String::from_utf8_lossy(&asked).contains("and\\nnow?"));
    assert!(page.get_page("/run").contains(&place), "it is listed");
}

/// Returns the text of the first `pre` of an approval, as a browser shows it.
fn approval_text(html: &str) -> String {
    let section = html
        .split("<section class=\"approval\">")
        .nth(1)
        .unwrap_or_else(|| panic!("{html}"));
    let (_, pre) = section.split_once("<pre").unwrap();
    let (_, pre) = pre.split_once('>').unwrap();
    let (pre, _) = pre.split_once("</pre>").unwrap();
    // The lines of a diff are elements.
    let pieces = pre.split('<').map(|piece| match piece.split_once('>') {
        Some((_, text)) => text,
        None => piece,
    });
    let text: String = pieces.collect();
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}

/// Secrets of every kind that other views mask, and characters that browsers don't show.
#[cfg(feature = "mcp")]
const MASKED_ELSEWHERE: &str = "cargo --version # -----BEGIN PRIVATE KEY-----
touch ran
# -----END PRIVATE KEY-----
API_KEY=abcdefgh12345678 true https://me:hunter22@example.com Bearer abcdefgh12345678abcdefgh
echo rm -rf ~\r\u{1b}[2K\techo\u{202e}\u{200b}\u{9b}\u{ffff}";
#[cfg(feature = "mcp")]
const SHOWN: &str = "cargo --version # -----BEGIN PRIVATE KEY-----
touch ran
# -----END PRIVATE KEY-----
API_KEY=abcdefgh12345678 true https://me:hunter22@example.com Bearer abcdefgh12345678abcdefgh
echo rm -rf ~␍␛[2K␉echo<U+202E><U+200B><U+009B><U+FFFF>";

#[cfg(feature = "mcp")]
#[test]
fn approval_shows_text_that_is_masked_elsewhere() {
    let command = json!({"command": MASKED_ELSEWHERE, "requires_approval": true});
    let write = json!({"path": "a\u{202e}.txt", "content": MASKED_ELSEWHERE});
    let server =
        json!({"server_name": "s", "tool_name": "show", "arguments": {"text": MASKED_ELSEWHERE}});
    let replies = [
        Reply::call("execute_command", command),
        Reply::call("write_to_file", write),
        Reply::call("use_mcp_tool", server),
        Reply::text("Done."),
    ];
    let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap());
    crate::mcp::add_shell_server(&rig);
    let page = ServedPage::start(&rig);
    let place = page.start_run(&rig, "ask", "Go");
    let deny = |number: &str| {
        let fields = [("do", "deny"), ("approval", number)];
        assert!(
            page.post(&place, &place, &fields)
                .starts_with("HTTP/1.1 303 ")
        );
    };
    let html = page.wait_for_page(&place, "Waiting for approval: Run");
    assert_eq!(approval_text(&html), SHOWN);
    let section = html
        .split("<section class=\"approval\">")
        .nth(1)
        .unwrap()
        .split("</section>")
        .next()
        .unwrap();
    assert!(!section.contains("[masked"), "{section}");
    deny("1");
    let html = page.wait_for_page(&place, "Waiting for approval: Write");
    let diff: Vec<_> = SHOWN.lines().map(|line| format!("+{line}\n")).collect();
    let shown = approval_text(&html);
    // A carriage return ends a line of a diff.
    assert!(shown.contains("+++ a<U+202E>.txt\n"), "{shown}");
    assert!(shown.replace("␍+", "␍").contains(&diff.concat()), "{shown}");
    deny("2");
    let html = page.wait_for_page(&place, "Waiting for approval: Call");
    let shown = approval_text(&html);
    assert!(
        shown.contains("touch ran") && shown.contains("hunter22") && !shown.contains("[masked"),
        "{shown}"
    );
    deny("3");
    page.wait_for_page(&place, ">Completed<");
    assert!(!rig.project().join("ran").exists());
}

#[test]
fn run_is_denied_with_a_reason_and_stopped() {
    let slow = Reply {
        delta_chars: Some(1),
        delta_delay_ms: 200,
        ..Reply::text("slow ".repeat(100))
    };
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([write_file_call(), slow]).unwrap(),
    );
    let page = ServedPage::start(&rig);
    let place = page.start_run(&rig, "ask", "Write one");
    page.wait_for_page(&place, "Waiting for approval: Write");
    let fields = [("do", "deny"), ("approval", "1"), ("reason", "Rather not.")];
    assert!(
        page.post(&place, &place, &fields)
            .starts_with("HTTP/1.1 303 ")
    );
    page.wait_for_page(&place, "slow");
    let told = rig.server.generation_requests().pop().unwrap().body;
    assert!(String::from_utf8_lossy(&told).contains("Rather not."));
    assert!(
        page.post(&place, &place, &[("do", "send"), ("message", "x")])
            .contains("The run has not ended yet")
    );
    assert!(
        page.post(&place, &place, &[("do", "stop")])
            .starts_with("HTTP/1.1 303 ")
    );
    page.wait_for_page(&place, ">Stopped<");
    assert!(!rig.project().join("a.txt").exists());
}

#[test]
fn run_of_another_process_is_followed_read_only() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("Done.")]).unwrap(),
    );
    assert_eq!(rig.run(&["run", "say something"]).code(), 0);
    let id = rig.export()["id"].as_str().unwrap().to_owned();
    let page = ServedPage::start(&rig);
    let place = format!("/c/{id}/live");
    assert!(
        page.get_page(&place).contains("<textarea"),
        "nobody has it: a message can be sent"
    );
    let clock = Arc::new(FakeClock::default());
    let store = SqliteStore::open(
        &rig.home().join("data/conversations.db"),
        &StoreConfig::default(),
        clock,
    )
    .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let _lock = runtime
        .block_on(store.lock(&ConversationId::new(&id)))
        .unwrap();
    let html = page.get_page(&place);
    assert!(
        html.contains("Another process is running this conversation") && html.contains("Done."),
        "{html}"
    );
    assert!(
        !html.contains("<form") && !html.contains("<button"),
        "{html}"
    );
}

#[test]
fn run_of_another_process_is_answered_and_steered() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::turns([write_file_call(), question(), Reply::text("Blue it is.")]).unwrap(),
    );
    let run = StayingRun::start(&rig, &["Write one"]);
    let id = wait_for_state(&rig, "asking");
    let page = ServedPage::start(&rig);
    let place = format!("/c/{id}/live");
    let listed = page.get_page("/run");
    assert!(
        listed.contains("Running sessions of other processes") && listed.contains(&place),
        "{listed}"
    );
    let asked = page.wait_for_page(&place, "Waiting for approval: ");
    assert!(
        asked.contains("+one") && asked.contains("You can follow, answer and steer it here"),
        "{asked}"
    );
    let allowed = page.post(&place, &place, &[("do", "allow"), ("approval", "1")]);
    assert!(allowed.starts_with("HTTP/1.1 303 "), "{allowed}");
    page.wait_for_page(&place, "Which color?");
    assert!(rig.project().join("a.txt").exists());
    wait_for_state(&rig, "idle");
    page.post(&place, &place, &[("do", "send"), ("message", "blue")]);
    let ran = run.finish();
    assert_eq!(
        (ran.code(), ran.stdout().as_str()),
        (0, "Which color?\nBlue it is.\n")
    );
    assert_eq!(stored_inputs(&rig), ["Write one"]);
    let told = rig.server.generation_requests().pop().unwrap();
    assert!(told.decode().unwrap().last_message_contains("blue"));
    // The session has ended, so the page can go on with the conversation itself.
    page.wait_for_page(&place, "empty to continue an interrupted turn");
}

#[test]
fn page_sees_the_answer_of_a_terminal_that_came_first() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::turns([write_file_call(), question(), Reply::text("Blue it is.")]).unwrap(),
    );
    let mut run = StayingRun::start(&rig, &["Write one"]);
    let id = wait_for_state(&rig, "asking");
    let page = ServedPage::start(&rig);
    let place = format!("/c/{id}/live");
    page.wait_for_page(&place, "Waiting for approval: ");
    let mut client = attach(&rig);
    let request = client.read_until_type("approval_request");
    client.send_line(&allow(&request));
    page.wait_for_page(&place, "answered elsewhere: allowed");
    let late = page.post(&place, &place, &[("do", "deny"), ("approval", "1")]);
    assert!(
        late.contains("Not accepted: it has been answered, or is no longer asked."),
        "{late}"
    );
    client.read_until_type("idle");
    run.kill();
    page.wait_for_page(&place, "empty to continue an interrupted turn");
}

#[test]
fn run_forms_reject_foreign_requests_and_escape_text() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([write_file_call(), Reply::text(HOSTILE)]).unwrap(),
    );
    let page = ServedPage::start(&rig);
    let host = &page.address;
    let cookie = page.cookie();
    let token = page.form_token("/run");
    let form = "do=start&prompt=x&mode=auto";
    let own = format!("host: {host}\r\norigin: http://{host}\r\n");
    for (who, headers, form, status) in [
        (
            "no token of the form",
            format!("{own}{cookie}"),
            form.to_owned(),
            403,
        ),
        (
            "no cookie",
            own.clone(),
            format!("form_token={token}&{form}"),
            401,
        ),
        (
            "another page",
            format!("host: {host}\r\norigin: http://evil.example\r\n{cookie}"),
            format!("form_token={token}&{form}"),
            403,
        ),
        (
            "another name",
            format!("host: evil.example\r\n{cookie}"),
            format!("form_token={token}&{form}"),
            421,
        ),
    ] {
        let answer = page.post_with_headers("/run", &headers, &form);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{who}: {answer}"
        );
    }
    let safe = |html: &str| {
        assert_eq!(html.matches("<script").count(), 1, "{html}");
        assert!(!html.contains("<img"), "{html}");
    };
    safe(&page.post(
        "/run",
        "/run",
        &[("do", "start"), ("prompt", HOSTILE), ("folder", HOSTILE)],
    ));
    safe(&page.post(
        "/run",
        "/run",
        &[("do", "start"), ("prompt", " "), ("folder", HOSTILE)],
    ));
    let place = page.start_run(&rig, "ask", HOSTILE);
    safe(&page.wait_for_page(&place, "Waiting for approval: Write"));
    safe(&page.post(
        &place,
        &place,
        &[("do", HOSTILE), ("approval", HOSTILE), ("reason", HOSTILE)],
    ));
    page.post(
        &place,
        &place,
        &[("do", "deny"), ("approval", "1"), ("reason", HOSTILE)],
    );
    safe(&page.wait_for_page(&place, ">Completed<"));
    safe(&page.get_page("/run"));
    assert!(
        page.post("/run", "/c/nobody/live", &[("do", "stop")])
            .starts_with("HTTP/1.1 404 ")
    );
    assert_eq!(
        rig.server.generation_requests().len(),
        2,
        "nothing else was begun"
    );
}
