//! `haft serve --open`: the arguments of the browser, and the files that other users of the machine
//! can read.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use haft_testkit::{Reply, Script};
use haft_types::Api;

use super::ServedPage;
use crate::rig::Rig;
use crate::terminal::WAIT_TIMEOUT;

/// Replaces the program that opens the browser, and records its arguments, its environment and the
/// file it is given.
const OPENER: &str = "#!/bin/sh
printf '%s\\n' \"$#\" \"$@\" > \"$HOME/opened.arguments\"
env > \"$HOME/opened.environment\"
stat -c '%a' \"$1\" \"$(dirname \"$1\")\" > \"$HOME/opened.modes\"
cp \"$1\" \"$HOME/opened.part\" && mv \"$HOME/opened.part\" \"$HOME/opened.html\"
";

#[track_caller]
fn wait_until(what: &str, fits: impl Fn() -> bool) {
    let since = Instant::now();
    while !fits() {
        assert!(since.elapsed() < WAIT_TIMEOUT, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn open_keeps_every_secret_off_command_lines() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("Unused.")]).unwrap(),
    );
    let programs = rig.home().join("programs");
    std::fs::create_dir(&programs).unwrap();
    for name in ["xdg-open", "open"] {
        let program = programs.join(name);
        std::fs::write(&program, OPENER).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    )));
    let mut command = rig.command(&["serve", "--open"]);
    let mut child = command
        .env("PATH", path.unwrap())
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
    let page = ServedPage {
        address: address.to_owned(),
        token: token.to_owned(),
        child,
    };
    let note =
        |name: &str| std::fs::read_to_string(rig.home().join(format!("opened.{name}"))).unwrap();
    wait_until("the browser is started", || {
        rig.home().join("opened.html").exists()
    });

    let html = note("html");
    let ticket = html
        .split("?ticket=")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let arguments = note("arguments");
    let file = arguments
        .strip_prefix("1\n")
        .unwrap_or_else(|| panic!("{arguments}"))
        .trim();
    assert_eq!(note("modes"), "600\n700\n");
    assert!(
        !html.contains(token),
        "the file holds only the ticket: {html}"
    );
    let of_haft =
        |name: &str| std::fs::read(format!("/proc/{}/{name}", page.child.id())).unwrap_or_default();
    for (what, text) in [
        ("arguments of the browser", arguments.clone()),
        ("environment of the browser", note("environment")),
        (
            "arguments of haft",
            String::from_utf8_lossy(&of_haft("cmdline")).into_owned(),
        ),
        (
            "environment of haft",
            String::from_utf8_lossy(&of_haft("environ")).into_owned(),
        ),
    ] {
        assert!(
            !text.contains(token) && !text.contains(ticket),
            "{what}: {text}"
        );
    }

    assert!(std::path::Path::new(file).exists());
    let visit = page.get(&format!("/?ticket={ticket}"), "");
    assert!(
        visit.starts_with("HTTP/1.1 200 ") && visit.contains(&format!("={token}; HttpOnly")),
        "{visit}"
    );
    assert!(
        page.get(&format!("/?ticket={ticket}"), "")
            .starts_with("HTTP/1.1 401 "),
        "it is good for one visit"
    );
    wait_until("the file is removed", || {
        !std::path::Path::new(file).parent().unwrap().exists()
    });
}

#[test]
fn open_continues_without_a_browser() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("Unused.")]).unwrap(),
    );
    let mut command = rig.command(&["serve", "--open"]);
    let mut child = command
        .env("PATH", "/nowhere")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
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
    let mut told = String::new();
    BufReader::new(child.stderr.as_mut().unwrap())
        .read_line(&mut told)
        .unwrap();
    let page = ServedPage {
        address: address.to_owned(),
        token: token.to_owned(),
        child,
    };
    assert!(told.contains("open the URL in a browser"), "{told}");
    assert!(page.get_page("/").starts_with("HTTP/1.1 200 "));
    let left = std::fs::read_dir(rig.home().join("state")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().starts_with("serve-")),
        "{left:?}"
    );
}
