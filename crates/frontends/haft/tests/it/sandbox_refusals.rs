//! Commands that fail because of the sandbox: the user and the model read so, with the way out.

use haft_testkit::Reply;
use serde_json::json;

use crate::rig::Rig;
use crate::sandbox::has_namespaces;
use crate::terminal::{Terminal, rig};

fn rig_with(line: &str) -> Rig {
    let call = json!({"command": line, "requires_approval": false});
    rig([
        Reply::call("execute_command", call),
        Reply::text("So be it."),
    ])
}

/// Returns the result of the command as the model reads it.
fn told(rig: &Rig) -> String {
    rig.server.generation_requests()[1]
        .json()
        .unwrap()
        .to_string()
}

#[test]
fn failure_because_of_the_sandbox_is_explained_to_user_and_model() {
    for (line, said, shown_text) in [
        (
            "getent ahosts example.com || { echo 'Could not resolve host: example.com' >&2; exit 6; }",
            "The sandbox has no network",
            "The sandbox has no network access. To allow hosts,",
        ),
        (
            "touch /usr/new-file",
            "The sandbox keeps commands from writing there",
            "The sandbox does not allow writing there. To allow it,",
        ),
        (
            "python3 -c 'import socket; socket.create_connection((\"example.com\", 80))'",
            "The sandbox has no network",
            "The sandbox has no network access. To allow hosts,",
        ),
    ] {
        let rig = rig_with(line);
        if !has_namespaces(&rig) {
            return;
        }
        let arguments = ["--permission-mode", "auto", "--", "go"];
        let terminal = Terminal::start(&rig, &arguments, (120, 40));
        terminal.until_text("So be it.");
        let shown = terminal.text();
        assert!(shown.contains(shown_text), "{line}: {shown}");
        assert!(!shown.contains("send the call"), "{line}: {shown}");
        assert!(
            told(&rig).contains(said) && told(&rig).contains("`sandbox` set to `outside`"),
            "{}",
            told(&rig)
        );
    }
}

#[test]
fn failure_for_another_reason_is_not_blamed_on_the_sandbox() {
    for line in [
        "exit 3",
        "ls nowhere",
        "echo 'Could not resolve host'; true",
    ] {
        let rig = rig_with(line);
        if !has_namespaces(&rig) {
            return;
        }
        let ran = rig.run(&["run", "--permission-mode", "auto", "go"]);
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
        if rig.server.generation_requests().len() > 1 {
            assert!(!told(&rig).contains("[The sandbox"), "{}", told(&rig));
        }
    }
    // Outside the sandbox, nothing is blamed on it.
    let rig = rig_with("echo 'Could not resolve host' >&2; exit 6");
    rig.run(&["run", "--permission-mode", "yolo", "go"]);
    assert!(!told(&rig).contains("[The sandbox"), "{}", told(&rig));
}

#[test]
fn proxy_names_the_hosts_that_it_refused() {
    let request =
        "import os, socket, urllib.request\nurllib.request.urlopen(\"http://refused.example/\")";
    let rig = rig_with(&format!("python3 -c '{request}'"));
    if !has_namespaces(&rig) {
        return;
    }
    let arguments = [
        "--permission-mode",
        "auto",
        "--set",
        "sandbox.network=[\"allowed.example\"]",
        "--",
        "go",
    ];
    let terminal = Terminal::start(&rig, &arguments, (160, 40));
    terminal.until_text("So be it.");
    let shown = terminal.text();
    assert!(
        shown.contains("The sandbox refused network access to `refused.example:80`"),
        "{shown}"
    );
    assert!(
        told(&rig).contains("`refused.example:80`"),
        "{}",
        told(&rig)
    );
}

#[test]
fn failure_because_of_the_sandbox_is_explained_in_chinese() {
    let rig = rig_with("touch /usr/new-file");
    if !has_namespaces(&rig) {
        return;
    }
    let arguments = [
        "--permission-mode",
        "auto",
        "--set",
        "language=zh-CN",
        "--",
        "go",
    ];
    let terminal = Terminal::start(&rig, &arguments, (120, 40));
    terminal.until_text("So be it.");
    assert!(
        terminal.text().contains("沙箱不允许写入那里"),
        "{}",
        terminal.text()
    );
    assert!(
        told(&rig).contains("The sandbox keeps commands"),
        "{}",
        told(&rig)
    );
}
