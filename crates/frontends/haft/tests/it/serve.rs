//! `haft serve`: every page of a conversation whose every field holds a script.

mod family;
mod live;
mod opening;
mod other_agents;
#[cfg(feature = "postgres")]
mod queue;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use haft_testkit::{Reply, Script, ScriptCall};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;

/// A served site that is killed when the test ends.
pub(crate) struct ServedPage {
    child: Child,
    address: String,
    token: String,
}

impl ServedPage {
    pub(crate) fn start(rig: &Rig) -> Self {
        let mut child = rig
            .command(&["serve"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let (address, token) = line
            .trim()
            .strip_prefix("http://")
            .unwrap()
            .split_once("/?token=")
            .unwrap();
        Self {
            address: address.to_owned(),
            token: token.to_owned(),
            child,
        }
    }

    pub(crate) fn get(&self, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let host = &self.address;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: {host}\r\n{headers}connection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub(crate) fn cookie(&self) -> String {
        let port = self.address.rsplit(':').next().unwrap();
        format!("cookie: haft_{port}={}\r\n", self.token)
    }

    /// Gets a page with the cookie.
    pub(crate) fn get_page(&self, path: &str) -> String {
        self.get(path, &self.cookie())
    }

    /// Posts a form with these header lines, and returns the response.
    fn post_with_headers(&self, path: &str, headers: &str, form: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let kind = format!(
            "content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n",
            form.len()
        );
        write!(
            stream,
            "POST {path} HTTP/1.1\r\n{headers}{kind}connection: close\r\n\r\n{form}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Posts fields from a page of the site, with its form token.
    pub(crate) fn post(&self, page: &str, path: &str, fields: &[(&str, &str)]) -> String {
        let headers = format!(
            "host: {0}\r\norigin: http://{0}\r\n{1}",
            self.address,
            self.cookie()
        );
        let mut form = format!("form_token={}", self.form_token(page));
        for (name, value) in fields {
            let value: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
            write!(form, "&{name}={value}").unwrap();
        }
        self.post_with_headers(path, &headers, &form)
    }

    fn form_token(&self, page: &str) -> String {
        let html = self.get_page(page);
        let after = html
            .split("name=\"form_token\" value=\"")
            .nth(1)
            .unwrap_or_else(|| panic!("{html}"));
        after.split('"').next().unwrap().to_owned()
    }
}

impl Drop for ServedPage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// By default each thread that allocates has its own heap, which keeps freed memory.
#[cfg(target_env = "gnu")]
#[test]
fn threads_share_two_heaps() {
    /// Address space that glibc reserves for each heap after the first, at a multiple of this size.
    /// Its unused part has no access rights.
    const RESERVED: u64 = 64 << 20;
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("Unused.")]).unwrap(),
    );
    let page = ServedPage::start(&rig);
    page.get_page("/");
    let is_rest_of_heap = |line: &&str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (begin, end) = fields[0].split_once('-').unwrap();
        let [begin, end] = [begin, end].map(|at| u64::from_str_radix(at, 16).unwrap());
        fields[1] == "---p"
            && fields.len() == 5
            && end.is_multiple_of(RESERVED)
            && end - begin < RESERVED
    };
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", page.child.id())).unwrap();
    assert!(
        std::fs::read_dir(format!("/proc/{}/task", page.child.id()))
            .unwrap()
            .count()
            > 2
    );
    assert!(maps.lines().filter(is_rest_of_heap).count() < 2, "{maps}");
}

const HOSTILE: &str = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>";

#[test]
fn pages_escape_the_text_of_conversations() {
    let call = ScriptCall::new("list_files", json!({"path": HOSTILE}));
    let script = Script::replies([
        Reply::calls([call]),
        Reply::text(format!("Done. {HOSTILE}")),
    ])
    .unwrap();
    let rig = Rig::new(Api::Anthropic, script);
    rig.write("AGENTS.md", format!("Follow this: {HOSTILE}\n"));
    assert_eq!(
        rig.run(&["run", &format!("look around {HOSTILE}")]).code(),
        0
    );
    let listed = rig.run(&["conversations", "list", "--json"]).json();
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        rig.run(&["conversations", "rename", &id, HOSTILE]).code(),
        0
    );

    let page = ServedPage::start(&rig);
    let first = page.get(&format!("/?token={}", page.token), "");
    assert!(
        first.starts_with("HTTP/1.1 303 ") && first.contains("SameSite=Strict"),
        "{first}"
    );
    assert!(page.get("/", "").starts_with("HTTP/1.1 401 "));
    let pages = [
        ("/".to_owned(), "From cache"),
        ("/?q=look".to_owned(), "look around"),
        (
            format!("/?q={}", "%3Cscript%3Ealert(1)%3C/script%3E"),
            "Search",
        ),
        (format!("/?from={}", usize::MAX), "Search"),
        (format!("/c/{id}?from={}", usize::MAX), "<h1"),
        (format!("/c/{id}"), "look around"),
        (format!("/c/{id}/timeline"), "<svg"),
        (format!("/c/{id}/timeline?zoom=in"), "Whole conversation"),
        ("/run".to_owned(), "New run"),
        (format!("/c/{id}/live"), "Newest messages"),
        (format!("/c/{id}/edit"), "Select messages"),
        (
            format!("/c/{id}/next?input=%3Cscript%3Ealert(1)%3C/script%3E"),
            "Body as it would be sent",
        ),
        (format!("/c/{id}/what-if"), "cache-aware"),
        (
            format!("/c/{id}/what-if?policies=%3Cscript%3Ealert(1)%3C/script%3E"),
            "Compare",
        ),
        (format!("/c/{id}/r/1"), "Body as sent"),
        (
            format!("/c/{id}/r/2"),
            "Difference from the previous request",
        ),
    ];
    for (path, expected) in pages {
        let html = page.get_page(&path);
        assert!(html.starts_with("HTTP/1.1 200 "), "{path}: {html}");
        assert!(html.contains(expected), "{path} lacks {expected}: {html}");
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
    for missing in [
        "/c/nobody",
        &format!("/c/{id}/r/0"),
        &format!("/c/{id}/r/99"),
        &format!("/c/{id}/r/x"),
        "/x",
    ] {
        assert!(
            page.get_page(missing).starts_with("HTTP/1.1 404 "),
            "{missing}"
        );
    }
    let css = page.get_page("/style.css");
    assert!(
        css.contains("text/css") && css.contains(".reminders"),
        "{css}"
    );
    assert!(page.get_page("/live.js").contains("EventSource"));
}

/// A conversation in which two files were read, with its id and message ids.
fn rig_with_two_reads(more: impl IntoIterator<Item = Reply>) -> (Rig, String, Vec<String>) {
    let read = |path: &str| ScriptCall::new("read_file", json!({"path": path}));
    let replies = [
        Reply::calls([read("alpha.txt"), read("beta.txt")]),
        Reply::text("Both are read."),
    ];
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies(replies.into_iter().chain(more)).unwrap(),
    );
    for name in ["alpha", "beta"] {
        rig.write(&format!("{name}.txt"), format!("{name} line\n").repeat(200));
    }
    assert_eq!(rig.run(&["run", "read alpha and beta"]).code(), 0);
    let export = rig.export();
    let messages = export["messages"].as_array().unwrap();
    let ids = messages
        .iter()
        .map(|message| message["message_id"].as_str().unwrap()[..8].to_owned())
        .collect();
    (rig, export["id"].as_str().unwrap().to_owned(), ids)
}

/// Returns the body that the page predicts for this prompt.
fn predicted_body(page: &ServedPage, id: &str) -> String {
    let html = page.get_page(&format!("/c/{id}/next?input=and+now%3F"));
    let body = html
        .split("<pre id=\"body\">")
        .nth(1)
        .unwrap_or_else(|| panic!("{html}"))
        .split("</pre>")
        .next()
        .unwrap();
    let body = body
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'");
    body.replace("&amp;", "&")
}

#[test]
fn editor_quotes_keeps_and_undoes_an_edit_as_predicted() {
    let (rig, id, messages) = rig_with_two_reads([Reply::text("So it is.")]);
    let page = ServedPage::start(&rig);
    let editor = format!("/c/{id}/edit");
    let original = predicted_body(&page, &id);
    for (does, says) in [
        ("drop", "Drops 3 messages"),
        ("pin", "Pins 3 messages"),
        ("mask", "Masks 1 message"),
        ("summarise", "Summarises 3 messages"),
    ] {
        let quote = page.post(&editor, &editor, &[("do", does), ("id", &messages[2])]);
        assert!(
            quote.starts_with("HTTP/1.1 200 ") && quote.contains(says),
            "{does}: {quote}"
        );
        assert!(
            quote.contains("The next request would have "),
            "{does}: {quote}"
        );
        assert_eq!(
            predicted_body(&page, &id),
            original,
            "{does}: a price changes nothing"
        );

        let text = if does == "summarise" {
            "Both files\r\nhave 200 lines."
        } else {
            ""
        };
        let fields = [
            ("do", "keep"),
            ("edit", does),
            ("id", messages[2].as_str()),
            ("text", text),
        ];
        let kept = page.post(&editor, &editor, &fields);
        assert!(
            kept.contains(&format!("location: {editor}?done=yes")),
            "{does}: {kept}"
        );
        let edited = predicted_body(&page, &id);
        assert_eq!(edited == original, does == "pin", "{does}");
        assert_eq!(
            edited.contains("Both files\\nhave 200 lines."),
            does == "summarise",
            "{edited}"
        );
        let undone = page.post(&editor, &editor, &[("do", "undo")]);
        assert!(undone.contains("Undoes 1 edit"), "{undone}");
        assert!(
            page.post(&editor, &editor, &[("do", "keep"), ("edit", "undo")])
                .contains("done=yes")
        );
        assert_eq!(predicted_body(&page, &id), original, "{does}: undone");
    }
    assert!(
        page.post(
            &editor,
            &editor,
            &[("do", "keep"), ("edit", "drop"), ("id", &messages[2])]
        )
        .contains("done=yes")
    );
    let expected = predicted_body(&page, &id);
    assert!(!expected.contains("alpha line"), "{expected}");
    assert_eq!(rig.run(&["run", "-c", "and now?"]).code(), 0);
    let sent = rig.server.generation_requests().pop().unwrap().body;
    assert_eq!(String::from_utf8_lossy(&sent), expected);
    let restored = page.post(&editor, &editor, &[("do", "restore"), ("id", &messages[2])]);
    assert!(restored.contains("Restores 3 messages"), "{restored}");
}

#[test]
fn editor_rejects_foreign_forms_and_escapes_fields() {
    let (rig, id, messages) = rig_with_two_reads([]);
    let page = ServedPage::start(&rig);
    let editor = format!("/c/{id}/edit");
    let token = page.form_token(&editor);
    let host = &page.address;
    let cookie = page.cookie();
    let form = format!("do=keep&edit=drop&id={}", messages[2]);
    let whole = format!("form_token={token}&{form}");
    let own = format!("host: {host}\r\n");
    let origin = format!("origin: http://{host}\r\n");
    for (who, headers, form, status) in [
        (
            "no token of the form",
            format!("{own}{origin}{cookie}"),
            &form,
            403,
        ),
        ("no origin", format!("{own}{cookie}"), &whole, 403),
        (
            "another page",
            format!("{own}origin: http://evil.example\r\n{cookie}"),
            &whole,
            403,
        ),
        (
            "another port of this machine",
            format!("{own}origin: http://127.0.0.1:1\r\n{cookie}"),
            &whole,
            403,
        ),
        ("no cookie", format!("{own}{origin}"), &whole, 401),
        (
            "another name",
            format!("host: evil.example\r\norigin: http://evil.example\r\n{cookie}"),
            &whole,
            421,
        ),
    ] {
        let answer = page.post_with_headers(&editor, &headers, form);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{who}: {answer}"
        );
    }
    for fields in [
        vec![("do", "drop")],
        vec![("do", "drop"), ("id", HOSTILE)],
        vec![("do", HOSTILE), ("id", &messages[2])],
        vec![("do", "summarise"), ("id", &messages[2]), ("text", HOSTILE)],
        vec![
            ("do", "keep"),
            ("edit", HOSTILE),
            ("id", HOSTILE),
            ("text", HOSTILE),
        ],
        vec![("do", "undo")],
    ] {
        let answer = page.post(&editor, &editor, &fields);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{fields:?}: {answer}");
        assert_eq!(answer.matches("<script").count(), 1, "{fields:?}: {answer}");
        assert!(!answer.contains("<img"), "{fields:?}: {answer}");
    }
    assert!(
        page.post(&editor, "/c/nobody/edit", &[("do", "drop")])
            .starts_with("HTTP/1.1 404 ")
    );
    let listed = rig.run(&["context", "edit", "list", "--json"]).json();
    assert_eq!(listed["edits"], json!([]), "nothing was changed");
}

#[test]
fn policy_what_if_accepts_imported_conversations() {
    let rig = Rig::new(Api::Anthropic, Script::replies([]).unwrap());
    let chat = json!({"messages": [
        {"role": "user", "content": "Look around."},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "README.md"},
        {"role": "assistant", "content": "There is a README."},
    ]});
    rig.write("chat.json", chat.to_string());
    assert_eq!(rig.run(&["conversations", "import", "chat.json"]).code(), 0);
    let id = rig.run(&["conversations", "list", "--json"]).json()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let replayed = rig.run(&["context", "replay", &id, "--policy", "none,tail", "--json"]);
    assert_eq!(replayed.code(), 0, "{}", replayed.stderr());
    let page = ServedPage::start(&rig);
    let html = page.get_page(&format!("/c/{id}/what-if?policies=none,tail%2Bprune:off"));
    assert!(
        html.contains("`none`, `tail+prune:off` send equal requests") && !html.contains("<svg"),
        "{html}"
    );
    let alone = page.get_page(&format!("/c/{id}/what-if?policies=tail"));
    assert!(alone.contains("<svg"), "{alone}");
    let unknown = page.get_page(&format!("/c/{id}/what-if?policies=nonsense"));
    assert!(
        unknown.contains("role=\"alert\"") && unknown.contains("nonsense"),
        "{unknown}"
    );
}

#[test]
fn sessions_page_reads_only_sessions_of_other_agents() {
    let rig = Rig::new(Api::Anthropic, Script::replies([]).unwrap());
    let folder = rig.home().join(".claude/projects/-tmp-<b>x");
    std::fs::create_dir_all(&folder).unwrap();
    let line = |uuid: &str, parent: serde_json::Value, kind: &str, text: &str| {
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s1", "timestamp": "2026-01-02T03:04:05.000Z",
            "cwd": "/tmp/x", "version": "2.0.0", "message": {"role": kind, "content": [{"type": "text", "text": text}]}})
    };
    let lines = [
        line("u1", json!(null), "user", HOSTILE),
        line("a1", json!("u1"), "assistant", "There you are."),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.join("s1.jsonl"), &text).unwrap();
    std::fs::write(folder.join("broken.jsonl"), "{not json\n").unwrap();
    std::fs::write(rig.home().join("secret.jsonl"), &text).unwrap();
    let page = ServedPage::start(&rig);
    assert!(page.get_page("/").contains("href=\"/sessions\""));
    let list = page.get_page("/sessions");
    assert!(
        list.contains("claude-code") && list.contains("s1.jsonl") && !list.contains("<b>"),
        "{list}"
    );
    assert!(!list.contains("secret"), "{list}");
    let place = "/sessions/claude-code/-tmp-%3Cb%3Ex/s1%2Ejsonl";
    assert!(list.contains(place), "{list}");
    let html = page.get_page(place);
    assert!(
        html.contains("There you are.") && html.contains("Nothing was stored"),
        "{html}"
    );
    assert_eq!(html.matches("<script").count(), 1, "{html}");
    assert!(
        page.get_page("/sessions/claude-code/-tmp-%3Cb%3Ex/broken.jsonl")
            .contains("role=\"alert\"")
    );
    for outside in [
        "/sessions/claude-code/../../secret.jsonl",
        "/sessions/claude-code/%2E%2E/%2E%2E/secret.jsonl",
        "/sessions/claude-code/%2E%2E%2F%2E%2E%2Fsecret.jsonl",
        "/sessions/claude-code/nothing.jsonl",
        "/sessions/nobody/s1.jsonl",
    ] {
        assert!(
            page.get_page(outside).starts_with("HTTP/1.1 404 "),
            "{outside}"
        );
    }
    assert_eq!(
        rig.run(&["conversations", "list", "--json"]).json(),
        json!([]),
        "nothing is stored"
    );
    assert_eq!(
        std::fs::read_to_string(folder.join("s1.jsonl")).unwrap(),
        text
    );
}
