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

/// Returns the report without the rows that depend on the machine and the build.
fn screen_of_store(rig: &Rig) -> String {
    let of_machine = ["installation", "sandbox"];
    let mut is_kept = true;
    let mut kept = String::new();
    for line in rig.screen(&["doctor"]).lines() {
        // The details of a row are indented.
        if !line.starts_with(' ') {
            is_kept = !line
                .split_whitespace()
                .nth(1)
                .is_some_and(|name| of_machine.contains(&name));
        }
        if is_kept {
            kept = format!("{kept}{line}\n");
        }
    }
    kept
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
    insta::assert_snapshot!(screen_of_store(&rig), @"
    ok  configuration  HOME/config.toml is valid
    ok  environment  every variable that begins with `HAFT_` has an effect
    ok  files  HOME/data: only its owner can read it
    ok  database  pages and trees are intact (SIZE)
    ok  messages  6 messages match their checksums
    ok  references  no message is missing
    ok  requests  3 logged requests are complete
    -  search index  built at the first search
    ok  backups  2 intact, the newest from TIME UTC
    -  file versions  no file changes recorded yet
    -  outputs  no output was too long yet
    ok  commands  commands run under their supervisor
    ok  model  the server of `mock/gemini-3-scripted` answers and lists 1 model
    ");
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
    insta::assert_snapshot!(screen_of_store(&rig), @"
    ok  configuration  HOME/config.toml is valid
    ok  environment  every variable that begins with `HAFT_` has an effect
    ok  files  HOME/data: only its owner can read it
    DAMAGED  database  HOME/data/conversations.db is not a haft database; move it away or choose another file
                `haft doctor --salvage` exports what can still be read, `haft conversations backup list` shows the backups
    -  search index  built at the first search
    ok  backups  2 intact, the newest from TIME UTC
    -  file versions  no file changes recorded yet
    -  outputs  no output was too long yet
    ok  commands  commands run under their supervisor
    ok  model  the server of `mock/gemini-3-scripted` answers and lists 1 model
    -- exit 1
    ");
    insta::assert_snapshot!(rig.screen(&["conversations", "list"]), @"
    -- errors
    haft: HOME/data/conversations.db is not a haft database; move it away or choose another file
    -- exit 1
    ");

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
    insta::assert_snapshot!(screen_of_store(&rig), @"
    ok  configuration  HOME/config.toml is valid
    ok  environment  every variable that begins with `HAFT_` has an effect
    ok  files  HOME/data: only its owner can read it
    ok  database  pages and trees are intact (SIZE)
    DAMAGED  messages  1 of 6 messages do not match their checksums
                - message 4 of conversation `ID`: its content is not what was stored
    ok  references  no message is missing
    ok  requests  3 logged requests are complete
    -  search index  built at the first search
    ok  backups  2 intact, the newest from TIME UTC
    -  file versions  no file changes recorded yet
    -  outputs  no output was too long yet
    ok  commands  commands run under their supervisor
    ok  model  the server of `mock/gemini-3-scripted` answers and lists 1 model
    -- exit 1
    ");
    insta::assert_snapshot!(rig.screen(&["doctor", "--salvage"]), @"
    1 conversation with 5 messages salvaged to HOME/data/salvaged-TIME; 1 message could not be read.
    To use them, move HOME/data/conversations.db away and run `haft conversations import HOME/data/salvaged-TIME`.
    -- exit 1
    ");
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
    insta::assert_snapshot!(rig.screen(&["doctor", "--salvage", folder.to_str().unwrap()]), @"
    2 conversations with 12 messages salvaged to PROJECT/salvaged; nothing is missing.
    To use them, move HOME/data/conversations.db away and run `haft conversations import PROJECT/salvaged`.
    What was read of a copy with a damaged log is in PROJECT/salvaged/conversations.db.damaged-1.
    ");
    let of_copy = folder.join("conversations.db.damaged-1");
    let name = format!("{}.json", rig.export()["id"].as_str().unwrap());
    assert_eq!(
        std::fs::read(of_copy.join(&name)).unwrap(),
        std::fs::read(folder.join(&name)).unwrap()
    );
    std::fs::remove_file(data.join("conversations.db.damaged-1")).unwrap();
    assert_eq!(rig.run(&["doctor"]).code(), 0, "nothing else is wrong");
}

#[test]
fn doctor_names_own_servers_outside_the_sandbox() {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::text("Unused.")]).unwrap(),
    );
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!(
        "{config}[mcp_servers.a]\ncommand = \"x\"\n\
         [mcp_servers.b]\ncommand = \"x\"\nsandbox = false\n\
         [mcp_servers.c]\nurl = \"https://example.com/mcp\"\n"
    ));
    let report = rig.run(&["doctor", "--json"]).json();
    let checks = report["checks"].as_array().unwrap();
    let servers: Vec<_> = checks
        .iter()
        .filter(|check| check["name"] == "servers")
        .collect();
    assert_eq!(servers.len(), 1, "{report}");
    let text = servers[0].to_string();
    assert!(
        text.contains("1 MCP server of yours runs in the sandbox")
            && text.contains("outside the sandbox (`sandbox = false`): b"),
        "{text}"
    );
}
