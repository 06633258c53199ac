//! `haft doctor`: the checks, their exit codes, and salvage.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;

fn rig() -> Rig {
    let replies = (1..=9).map(|n| Reply::text(format!("Answer {n}. {}", "words ".repeat(2_000))));
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    for n in 1..=3 {
        assert_eq!(rig.task(&["-c", &format!("question {n}")]).code(), 0);
    }
    rig
}

fn health<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    &checks
        .iter()
        .find(|check| check["name"] == name)
        .unwrap_or_else(|| panic!("no `{name}` in {report}"))["health"]
}

#[test]
fn exit_code_is_0_for_a_sound_store_without_network() {
    let rig = rig();
    let ran = rig.run(&["doctor", "--json"]);
    assert_eq!(ran.code(), 0, "{}", ran.stdout());
    let report = ran.json();
    assert_eq!(report["ok"], true);
    for name in [
        "configuration",
        "files",
        "database",
        "messages",
        "references",
        "requests",
        "commands",
    ] {
        assert_eq!(*health(&report, name), "ok", "{report}");
    }
    let text = rig.run(&["doctor"]).stdout();
    assert!(text.contains("6 messages are what was stored"), "{text}");
    // First without a server, then without a valid configuration.
    let unreachable = rig.run(&[
        "doctor",
        "--json",
        "--set",
        "providers.mock.base_url=http://127.0.0.1:9/v1",
    ]);
    assert_eq!(unreachable.code(), 0);
    assert_eq!(*health(&unreachable.json(), "model"), "warning");
    rig.configure("modell = \"x\"");
    let misconfigured = rig.run(&["doctor", "--json"]);
    assert_eq!(misconfigured.code(), 0);
    let report = misconfigured.json();
    assert_eq!(
        (
            health(&report, "configuration"),
            health(&report, "messages")
        ),
        (&json!("warning"), &json!("ok"))
    );
}

/// A server that gives one answer to every request.
fn release_server(answer: &'static str) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/latest", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let _ = std::io::Read::read(&mut connection, &mut [0; 4096]);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                answer.len()
            );
            std::io::Write::write_all(&mut connection, format!("{head}{answer}").as_bytes())
                .unwrap();
        }
    });
    address
}

#[test]
fn installation_is_reported_and_releases_checked_on_request() {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::text("x")]).unwrap(),
    );
    let message = |report: &Value, name: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks
            .iter()
            .find(|check| check["name"] == name)
            .map(|check| check["message"].as_str().unwrap().to_owned())
    };
    let report = rig.run(&["doctor", "--json"]).json();
    let installed = message(&report, "installation").unwrap();
    assert!(
        installed.starts_with(concat!("haft ", env!("CARGO_PKG_VERSION")))
            && installed.ends_with("haft"),
        "{installed}"
    );
    assert_eq!(message(&report, "release"), None);
    for (answer, expected) in [
        (
            "{\"tag_name\": \"v999.0.0\"}",
            "there is a newer release, 999.0.0",
        ),
        ("{\"tag_name\": \"v0.0.1\"}", "the newest release is 0.0.1"),
        ("{}", "no `tag_name`"),
        ("<html>", "expected value"),
    ] {
        let ran = rig.run(&["doctor", "--json", "--newer", &release_server(answer)]);
        let said = message(&ran.json(), "release").unwrap();
        assert!(
            ran.code() == 0 && said.contains(expected),
            "{answer}: {said}"
        );
    }
    assert_eq!(
        *health(
            &rig.run(&["doctor", "--json", "--newer", "http://127.0.0.1:9/"])
                .json(),
            "release"
        ),
        "warning"
    );
}

#[test]
fn new_home_is_sound_and_stays_empty() {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::text("x")]).unwrap(),
    );
    assert_eq!(rig.run(&["doctor"]).code(), 0);
    assert!(!rig.home().join("data").exists());
}

#[test]
fn damage_exits_with_1_and_salvage_can_be_imported() {
    let rig = rig();
    let exported = rig.export();
    let database = rig.home().join("data/conversations.db");
    let mut bytes = std::fs::read(&database).unwrap();
    // Header and schema are gone: SQLite cannot open the file.
    bytes[..4_096].fill(0xa5);
    std::fs::write(&database, &bytes).unwrap();
    let ran = rig.run(&["doctor", "--json"]);
    assert_eq!((ran.code(), &ran.json()["ok"]), (1, &json!(false)));
    assert_eq!(*health(&ran.json(), "database"), "damaged");
    let shown = rig.run(&["doctor"]);
    assert!(
        shown.stdout().contains("haft doctor --salvage"),
        "{}",
        shown.stdout()
    );
    let refused = rig.run(&["conversations", "list"]);
    assert_eq!(refused.code(), 1);
    assert!(
        refused.stderr().contains("conversations.db"),
        "{}",
        refused.stderr()
    );

    let folder = rig.project().join("salvaged");
    let salvaged = rig.run(&["doctor", "--salvage", folder.to_str().unwrap(), "--json"]);
    assert_eq!(
        salvaged.code(),
        0,
        "{}{}",
        salvaged.stdout(),
        salvaged.stderr()
    );
    let report = salvaged.json();
    assert_eq!(
        (
            &report["conversations"],
            &report["messages"],
            &report["lost"]
        ),
        (&json!(1), &json!(6), &json!(0))
    );
    assert_eq!(
        std::fs::read(&database).unwrap(),
        bytes,
        "the damaged one is left as it is"
    );

    std::fs::rename(&database, rig.home().join("damaged.db")).unwrap();
    assert_eq!(
        rig.run(&["conversations", "import", folder.to_str().unwrap()])
            .code(),
        0
    );
    assert_eq!(rig.export(), exported, "also its namespace");
    assert_eq!(
        rig.task(&["-r", exported["id"].as_str().unwrap(), "question 4"])
            .code(),
        0
    );
}

#[test]
fn salvage_reports_unreadable_messages() {
    let rig = rig();
    let database = rig.home().join("data/conversations.db");
    let mut bytes = std::fs::read(&database).unwrap();
    let needle = b"Answer 2. words";
    let at = bytes
        .windows(needle.len())
        .position(|window| window == needle)
        .unwrap();
    bytes[at + 7] = b'3';
    std::fs::write(&database, bytes).unwrap();
    let doctor = rig.run(&["doctor"]);
    assert_eq!(doctor.code(), 1);
    assert!(
        doctor.stdout().contains("DAMAGED") && doctor.stdout().contains("message 4 of"),
        "{}",
        doctor.stdout()
    );
    let salvaged = rig.run(&["doctor", "--salvage"]);
    assert_eq!(salvaged.code(), 1);
    assert!(
        salvaged.stdout().contains("; 1 message could not be read."),
        "{}",
        salvaged.stdout()
    );
    assert!(
        salvaged
            .stdout()
            .contains(&rig.home().join("data/salvaged-").display().to_string())
    );
}

#[test]
fn salvage_includes_copies_with_a_damaged_log() {
    let rig = rig();
    let data = rig.home().join("data");
    // Named like the copies that haft sets aside.
    std::fs::copy(
        data.join("conversations.db"),
        data.join("conversations.db.damaged-1"),
    )
    .unwrap();
    let doctor = rig.run(&["doctor", "--json"]);
    assert_eq!(
        (doctor.code(), health(&doctor.json(), "log")),
        (1, &json!("damaged"))
    );
    let folder = rig.project().join("salvaged");
    let salvaged = rig.run(&["doctor", "--salvage", folder.to_str().unwrap()]);
    assert_eq!(salvaged.code(), 0, "{}", salvaged.stderr());
    let of_copy = folder.join("conversations.db.damaged-1");
    assert!(
        salvaged.stdout().contains(&of_copy.display().to_string()),
        "{}",
        salvaged.stdout()
    );
    let name = format!("{}.json", rig.export()["id"].as_str().unwrap());
    assert_eq!(
        std::fs::read(of_copy.join(&name)).unwrap(),
        std::fs::read(folder.join(&name)).unwrap()
    );
    std::fs::remove_file(data.join("conversations.db.damaged-1")).unwrap();
    assert_eq!(rig.run(&["doctor"]).code(), 0, "nothing else is wrong");
}
