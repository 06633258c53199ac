//! The sandbox in the real binary: commands that run without approval are confined, and a weaker
//! sandbox is reported.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

fn rig(replies: impl IntoIterator<Item = Reply>, section: &str) -> Rig {
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!("{config}\n[sandbox]\n{section}\n"));
    std::fs::create_dir(rig.project().join(".git")).unwrap();
    rig
}

fn command_call(command: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({ "command": command, "requires_approval": false }),
    )
}

fn run_in_auto_mode(rig: &Rig) -> Ran {
    rig.run(&[
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "auto",
        "go",
    ])
}

/// Returns the sandbox status in the first event.
fn reported_sandbox(ran: &Ran) -> Value {
    ran.events()[0]["sandbox"].clone()
}

fn tool_results(ran: &Ran) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let events = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "tool_result");
    events
        .map(|event| (text(&event["status"]), text(&event["text"])))
        .collect()
}

/// True if the namespace sandbox is available here.
#[expect(
    clippy::print_stderr,
    reason = "whoever runs the tests should know what was not tested"
)]
pub(crate) fn has_namespaces(rig: &Rig) -> bool {
    let status = rig.run(&["sandbox", "status", "--json"]).json();
    if status["layer"] != "namespace" {
        eprintln!("skipped: {}", status["reasons"]);
    }
    status["layer"] == "namespace"
}

fn project_entries(rig: &Rig) -> Vec<String> {
    let entries = std::fs::read_dir(rig.project()).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn auto_mode_runs_commands_inside_without_asking() {
    let home = "cat \"$HOME/config.toml\"";
    let rig = rig(
        [
            command_call("echo x > made; echo y > /tmp/kept"),
            command_call("cat /tmp/kept"),
            command_call("echo x > .git/config"),
            command_call(home),
        ]
        .into_iter()
        .chain([command_call("echo x > .mcp.json"), Reply::text("Done.")]),
        "",
    );
    if !has_namespaces(&rig) {
        return;
    }
    let ran = run_in_auto_mode(&rig);
    assert_eq!(
        reported_sandbox(&ran),
        json!({"layer": "namespace", "reasons": []})
    );
    let results = tool_results(&ran);
    assert_eq!(
        results
            .iter()
            .map(|(status, _)| status.as_str())
            .collect::<Vec<_>>(),
        ["success", "success", "error", "error", "error"]
    );
    assert!(
        results[1].1.contains("\ny"),
        "its /tmp is kept from one command to the next: {}",
        results[1].1
    );
    assert!(
        results[2].1.contains("Read-only file system"),
        "{}",
        results[2].1
    );
    assert_eq!(
        project_entries(&rig),
        [".git", "made"],
        "nothing else is created"
    );
    let left = std::fs::read_dir(rig.home().join("cache/tmp"))
        .unwrap()
        .count();
    assert_eq!(left, 0, "nor of the private folder");
}

/// The script gets past the check of single calls, as a program could that changes the path of a
/// call while it is checked.
#[test]
fn auto_mode_names_protected_entries_that_a_command_created() {
    let rig = rig(
        [
            command_call("sh make.sh"),
            command_call("ls -A"),
            Reply::text("Done."),
        ],
        "",
    );
    if !has_namespaces(&rig) {
        return;
    }
    rig.write(
        "make.sh",
        "mkdir src\ncd src\nmkdir /proc/thread-self/cwd/../.vscode\nsleep 1000\n",
    );
    let ran = run_in_auto_mode(&rig);
    let results = tool_results(&ran);
    let vscode = rig.project().join(".vscode");
    assert_eq!(results[0].0, "error");
    assert!(
        results[0].1.contains("SIGKILL")
            && results[0]
                .1
                .contains(&format!("undone: `{}`", vscode.display())),
        "{}",
        results[0].1
    );
    assert_eq!(project_entries(&rig), [".git", "make.sh", "src"]);
    assert!(
        results[1].1.contains("\n.git\nmake.sh\nsrc"),
        "{}",
        results[1].1
    );
}

/// Scripts read and write files that no rule can see. Inside the sandbox, denied files are hidden,
/// and files that affect later runs cannot be changed.
#[test]
fn deny_rules_hide_files_inside() {
    let calls = [
        "sh look.sh",
        "cat .e?v",
        "grep -r hunter .",
        "cat src/a.rs",
        "sh steer.sh",
        "echo x > CLAUDE.md",
    ];
    let rig = rig(
        calls
            .map(command_call)
            .into_iter()
            .chain([Reply::text("Done.")]),
        "\n[permissions]\ndeny = [\"read_file(**/.env)\", \"read_file(secrets/**)\"]",
    );
    if !has_namespaces(&rig) {
        return;
    }
    for folder in ["sub", "secrets/deep", "src"] {
        std::fs::create_dir_all(rig.project().join(folder)).unwrap();
    }
    for (file, text) in [
        (".env", "KEY=hunter2\n"),
        ("sub/.env", "KEY=hunter2\n"),
        ("secrets/deep/key", "hunter2\n"),
        ("src/a.rs", "fn a() {}\n"),
        ("AGENTS.md", "Be kind.\n"),
        (
            "look.sh",
            "cat .env sub/.env secrets/*/key secrets/deep; echo looked\n",
        ),
        ("steer.sh", "echo 'Be rude.' >> AGENTS.md || echo refused\n"),
    ] {
        rig.write(file, text);
    }
    let results = tool_results(&run_in_auto_mode(&rig));
    assert!(
        results[0].1.contains("looked") && !results[0].1.contains("hunter2"),
        "{}",
        results[0].1
    );
    for asked in [1, 2, 5] {
        assert!(
            results[asked].0 == "error" && !results[asked].1.contains("hunter2"),
            "{:?}",
            results[asked]
        );
    }
    assert!(results[3].1.contains("fn a()"), "{:?}", results[3]);
    assert!(results[4].1.contains("refused"), "{:?}", results[4]);
    let kept = std::fs::read_to_string(rig.project().join("AGENTS.md")).unwrap();
    assert_eq!(kept, "Be kind.\n");
    assert!(!rig.project().join("CLAUDE.md").exists());
}

#[test]
fn leaving_the_sandbox_is_denied_headless() {
    let outside =
        json!({ "command": "echo x > made", "requires_approval": false, "sandbox": "outside" });
    let rig = rig(
        [
            Reply::call("execute_command", outside.clone()),
            Reply::text("Done."),
        ],
        "",
    );
    if !has_namespaces(&rig) {
        return;
    }
    let ran = run_in_auto_mode(&rig);
    assert_eq!(project_entries(&rig), [".git"]);
    let (status, text) = &tool_results(&ran)[0];
    assert_eq!(status, "error");
    assert!(text.contains("outside the sandbox"), "{text}");

    let explain = |mode: &str| {
        let arguments = outside.to_string();
        let all = [
            "permissions",
            "explain",
            "--json",
            "--permission-mode",
            mode,
            "--tool",
            "execute_command",
            "--args",
        ];
        rig.run(&[&all[..], &[&arguments]].concat()).json()["decision"].clone()
    };
    assert_eq!(
        [explain("auto"), explain("yolo")],
        [json!("ask"), json!("allow")]
    );
}

#[test]
fn landlock_alone_asks_before_commands_that_write() {
    let rig = rig(
        [
            command_call("ls"),
            command_call("echo x > made"),
            Reply::text("Done."),
        ],
        "mode = \"landlock\"",
    );
    let status = rig.run(&["sandbox", "status", "--json"]).json();
    if status["layer"] != "landlock" {
        return eprintln!("skipped: {}", status["reasons"]);
    }
    let ran = run_in_auto_mode(&rig);
    assert!(
        reported_sandbox(&ran)["reasons"][0]
            .as_str()
            .unwrap()
            .contains("commands that write are asked")
    );
    assert_eq!(
        tool_results(&ran)[0].0,
        "success",
        "{:?}",
        tool_results(&ran)
    );
    assert_eq!(tool_results(&ran)[1].0, "error", "{:?}", tool_results(&ran));
    assert_eq!(project_entries(&rig), [".git"]);
}

/// As on a machine that forbids user namespaces to ordinary users.
#[test]
fn landlock_is_used_and_reported_without_user_namespaces() {
    let rig = rig(
        [
            command_call("ls"),
            command_call("echo x > made"),
            Reply::text("Done."),
        ],
        "",
    );
    let run = |arguments: &[&str]| {
        let (_shared, mut command) = rig.command_without_user_namespaces(arguments);
        Ran(command.output().unwrap())
    };
    let status = run(&["sandbox", "status", "--json"]);
    if status.code() != 0 || status.json()["layer"] == "none" {
        return eprintln!("skipped: {}{}", status.stdout(), status.stderr());
    }
    assert_eq!(status.json()["layer"], "landlock");
    let ran = run(&[
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "auto",
        "go",
    ]);
    let reasons = &reported_sandbox(&ran)["reasons"];
    let reason = |place: usize| reasons[place].as_str().unwrap_or_default();
    assert!(
        reason(0).contains("namespaces cannot be had")
            && reason(1).contains("commands that write are asked"),
        "{reasons}"
    );
    let results = tool_results(&ran);
    let statuses: Vec<_> = results.iter().map(|(status, _)| status.as_str()).collect();
    assert_eq!(statuses, ["success", "error"], "{results:?}");
    assert_eq!(project_entries(&rig), [".git"]);

    // Commands never run in a weaker layer than the one requested.
    let tested = run(&["sandbox", "test", "--json"]);
    let layers = tested.json()["layers"].clone();
    assert_eq!(tested.code(), 1);
    let told = layers[0]["unavailable"].as_str().unwrap_or_default();
    assert!(told.contains("was not run"), "{layers}");
    assert_eq!(
        (
            &layers[1]["layer"],
            &layers[1]["open"],
            &layers[1]["closed"]
        ),
        (&json!("landlock"), &json!([]), &json!([]))
    );
}

#[test]
fn sandbox_off_asks_before_every_command_and_reports_it() {
    let rig = rig([command_call("ls"), Reply::text("Done.")], "mode = \"off\"");
    let ran = run_in_auto_mode(&rig);
    assert_eq!(reported_sandbox(&ran)["layer"], "none");
    assert!(
        reported_sandbox(&ran)["reasons"][0]
            .as_str()
            .unwrap()
            .contains("switched off")
    );
    assert_eq!(tool_results(&ran)[0].0, "error", "{:?}", tool_results(&ran));
    let text = rig.run(&["run", "--permission-mode", "auto", "again"]);
    assert!(
        text.stderr()
            .contains("sandbox: commands run without a sandbox"),
        "{}",
        text.stderr()
    );
}

#[test]
fn yolo_mode_has_no_sandbox_and_reports_it() {
    let rig = rig(
        [command_call("echo x > .git/config"), Reply::text("Done.")],
        "",
    );
    let ran = rig.task(&["go"]);
    assert_eq!(reported_sandbox(&ran)["layer"], "none");
    assert!(rig.project().join(".git/config").exists());
}

#[test]
fn sandbox_test_reports_no_escape() {
    let rig = rig([Reply::text("never")], "");
    if !has_namespaces(&rig) {
        return;
    }
    let elsewhere = if rustix::process::getuid().is_root() {
        "/var/lib"
    } else {
        env!("CARGO_TARGET_TMPDIR")
    };
    let elsewhere = tempfile::Builder::new()
        .prefix("haft-test-")
        .tempdir_in(elsewhere)
        .unwrap();
    // The attempts are made outside `/tmp` wherever haft's own folders are.
    for own in [elsewhere.path(), rig.home()] {
        let mut command = rig.command(&["sandbox", "test", "--json"]);
        let ran = Ran(command
            .env("HAFT_HOME", own)
            .env("HOME", elsewhere.path())
            .output()
            .unwrap());
        assert!(matches!(ran.code(), 0 | 1), "{}", ran.stderr());
        let layers = ran.json()["layers"].clone();
        assert_eq!(
            ran.code(),
            0,
            "{} {} {}",
            layers[0]["open"],
            layers[0]["closed"],
            layers[0]["noticed"]
        );
        assert!(
            layers[0]["refused"].as_u64().unwrap() >= 100,
            "{}",
            layers[0]["refused"]
        );
        assert_eq!(layers[1]["layer"], "landlock");
        // The limits of Landlock are reported separately, and are few.
        if layers[1]["unavailable"].is_null() {
            assert_eq!(
                (&layers[1]["open"], &layers[1]["closed"]),
                (&json!([]), &json!([]))
            );
            let limits = layers[1]["limits"].as_array().unwrap();
            assert!(
                limits
                    .iter()
                    .all(|attempt| attempt["name"] != "read a secret"),
                "{limits:?}"
            );
            assert!(
                limits.iter().any(|attempt| attempt["group"] == "protected"),
                "{limits:?}"
            );
        }
        assert_eq!(layers[0]["limits"], json!([]));
    }
    let left = [elsewhere.path().to_owned(), elsewhere.path().join("cache")]
        .into_iter()
        .flat_map(|folder| {
            std::fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        });
    assert_eq!(
        left.filter(|name| name.contains("sandbox-test")).count(),
        0,
        "nothing is left behind"
    );
}

#[test]
fn credentials_of_other_tools_are_hidden() {
    let places = [
        ".config/git/credentials",
        ".claude.json",
        ".local/share/opencode/auth.json",
        ".m2/settings.xml",
        ".config/BraveSoftware/Default/Cookies",
        ".local/share/fish/fish_history",
        ".mysql_history",
        ".config/pip/pip.conf",
        ".config/goose/config.yaml",
        ".gradle/gradle.properties",
        ".local/share/atuin/history.db",
        ".config/io.datasette.llm/keys.json",
        ".config/helm/registry/config.json",
        ".subversion/auth/svn.simple/x",
        ".ethereum/keystore/k",
        ".mbsyncrc",
        "snap/firefox/common/.mozilla/firefox/p/logins.json",
        ".config/Code - Insiders/User/globalStorage/state.vscdb",
    ];
    let reading = places.map(|place| format!("cat ~/'{place}'")).join("; ");
    let rig = rig(
        [
            command_call(&format!("{reading}; cat ~/.profile-notes")),
            Reply::text("Done."),
        ],
        "",
    );
    if !has_namespaces(&rig) {
        return;
    }
    // Not in haft's own folder, which is unreadable in any case, and not in `/tmp`.
    let home = if rustix::process::getuid().is_root() {
        "/var/lib"
    } else {
        env!("CARGO_TARGET_TMPDIR")
    };
    let home = tempfile::Builder::new()
        .prefix("haft-test-")
        .tempdir_in(home)
        .unwrap();
    for place in places.iter().chain(&[".profile-notes"]) {
        let path = home.path().join(place);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("planted in {place}\n")).unwrap();
    }
    let arguments = [
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "auto",
        "go",
    ];
    let ran = Ran(rig
        .command(&arguments)
        .env("HOME", home.path())
        .output()
        .unwrap());
    let (_, text) = &tool_results(&ran)[0];
    assert!(text.contains("planted in .profile-notes"), "{text}");
    for place in places {
        assert!(
            !text.contains(&format!("planted in {place}")),
            "{place}: {text}"
        );
    }
}

#[test]
fn sandbox_settings_reject_bad_values() {
    for (section, words) in [
        ("mode = \"strong\"", "`namespace`"),
        ("writable = [\"target\"]", "absolute"),
        ("hidden = [\"keys\"]", "absolute"),
        ("writable = [\"/nowhere/at/all\"]", "No such file"),
        ("wrong = 1", "wrong"),
        ("network = [\"https://crates.io/\"]", "crates.io"),
    ] {
        let rig = rig([Reply::text("never")], section);
        let ran = rig.run(&["sandbox", "status"]);
        assert_eq!(ran.code(), 2, "{section}: {}", ran.stderr());
        assert!(ran.stderr().contains(words), "{section}: {}", ran.stderr());
    }
}
