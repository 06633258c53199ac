//! The log: what is written to it, who can read it, and `haft logs`.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::Value;

use crate::rig::{Ran, Rig};

const KEY: &str = "ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2";

/// A model that fails once, with words that hold a key, and then answers; again and again.
fn rig() -> Rig {
    let failing = || Reply::error(503, format!("Overloaded, said {KEY}."));
    let replies = [failing(), Reply::text("One."), failing(), Reply::text("Two."), Reply::text("Three.")];
    Rig::new(Api::OpenaiChat, Script::turns(replies).unwrap())
}

fn task_at(rig: &Rig, level: &str) {
    let mut command = rig.command(&["run", "--set", "retry.base_delay_ms=10", "go"]);
    let output = command.env("HAFT_LOG_LEVEL", level).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn lines(ran: &Ran) -> Vec<Value> {
    ran.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn nothing_is_written_until_there_is_something_and_then_masked_and_for_its_owner() {
    let rig = rig();
    let folder = rig.home().join("state/log");
    task_at(&rig, "warn");
    assert!(!folder.exists(), "a retry is no warning");
    let empty = rig.run(&["logs"]);
    assert_eq!((empty.code(), empty.stdout().as_str()), (0, ""));
    assert!(empty.stderr().contains("nothing is logged"), "{}", empty.stderr());

    task_at(&rig, "debug");
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [file] = files.as_slice() else { panic!("{files:?}") };
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(file)), (0o700, 0o600));
    assert!(file.file_name().unwrap().to_str().unwrap().starts_with("haft-2"), "{file:?}");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("[masked: ") && !text.contains(KEY), "{text}");

    let all = lines(&rig.run(&["logs", "--json"]));
    let retry = all.iter().find(|line| line["message"] == "the request is sent again");
    let retry = retry.unwrap_or_else(|| panic!("{all:?}"));
    assert_eq!((&retry["level"], &retry["target"]), (&"debug".into(), &"haft_model::client".into()));
    assert!(retry["time"].is_string() && retry["fields"]["error"].is_string(), "{retry}");
    let shown = rig.run(&["logs", "-n", "1"]).stdout();
    assert!(shown.lines().count() == 1 && shown.contains(" DEBUG haft_"), "{shown}");
    assert_eq!(rig.run(&["logs", "--level", "error"]).stdout(), "");
}

#[test]
fn a_level_that_there_is_not_is_refused() {
    let rig = rig();
    let output = rig.command(&["run", "go"]).env("HAFT_LOG_LEVEL", "loud").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("HAFT_LOG_LEVEL") && said.contains("loud"), "{said}");
}

#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    let rig = rig();
    std::fs::create_dir_all(rig.home().join("state")).unwrap();
    std::fs::write(rig.home().join("state/log"), "not a folder").unwrap();
    task_at(&rig, "debug");
}

#[test]
fn who_follows_sees_what_comes() {
    let rig = rig();
    let mut follow = rig.command(&["logs", "-f", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(follow.stdout.take().unwrap());
    // Two runs: the first may be over before the follower has looked.
    task_at(&rig, "debug");
    task_at(&rig, "debug");
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    follow.kill().unwrap();
    follow.wait().unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["level"], "debug", "{line}");
}
