//! Sessions that other agents wrote in their own folders: on the page and in `haft context`.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

/// Agents, and the prompt of their session.
const AGENTS: [(&str, &str); 9] = [
    ("claude-code", ""),
    ("codex", "fix the bug"),
    ("pi", ""),
    ("gemini-cli", "Fix the off-by-one"),
    ("opencode", "Fix the off-by-one"),
    ("goose", "Fix the off-by-one"),
    ("kimi-cli", "Fix the off-by-one"),
    ("openhands", "Look at a.py."),
    ("auto-coder", "Fix the off-by-one"),
];

fn fixture_path(name: &str) -> PathBuf {
    Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../extensions/imports/fixtures"
    ))
    .join(name)
}

fn copy_fixture(from: &str, to: PathBuf) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(fixture_path(from), to).unwrap();
}

/// Copies a folder of fixtures with everything below it.
fn copy_fixture_folder(from: &str, to: &Path) {
    for entry in fs::read_dir(fixture_path(from)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let from = format!("{from}/{name}");
        let to = to.join(name);
        if fixture_path(&from).is_dir() {
            copy_fixture_folder(&from, &to);
        } else {
            copy_fixture(&from, to);
        }
    }
}

fn make_database(from: &str, to: PathBuf) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let statements = fs::read_to_string(fixture_path(from)).unwrap();
    rusqlite::Connection::open(to)
        .unwrap()
        .execute_batch(&statements)
        .unwrap();
}

/// A home with sessions of all agents.
fn rig_with_all_agents() -> Rig {
    let rig = Rig::new(Api::Anthropic, Script::replies([]).unwrap());
    let home = rig.home();
    copy_fixture(
        "claude-code/input.jsonl",
        home.join(".claude/projects/-p/s.jsonl"),
    );
    copy_fixture(
        "codex/input.jsonl",
        home.join(".codex/sessions/2026/01/02/rollout-1.jsonl"),
    );
    copy_fixture(
        "pi-0.73/input.jsonl",
        home.join(".pi/agent/sessions/p/s.jsonl"),
    );
    copy_fixture(
        "gemini-cli-0.61/input.jsonl",
        home.join(".gemini/tmp/project/chats/session-1.jsonl"),
    );
    copy_fixture(
        "kimi-cli-1.48/input.jsonl",
        home.join(".kimi/sessions/p/s/context.jsonl"),
    );
    make_database(
        "opencode-1.18/input.sql",
        home.join(".local/share/opencode/opencode.db"),
    );
    make_database(
        "goose-1.34/input.sql",
        home.join(".local/share/goose/sessions/sessions.db"),
    );
    rig.write(
        ".auto-coder/conversations/conversations/1.json",
        fs::read_to_string(fixture_path("auto-coder-3.0/input.json")).unwrap(),
    );
    copy_fixture_folder(
        "opencode-1.1/input",
        &home.join(".local/share/opencode/storage"),
    );
    copy_fixture_folder(
        "openhands-sdk/input",
        &home.join(".openhands/conversations/1"),
    );
    rig
}

#[test]
fn sessions_of_all_agents_are_listed_shown_and_imported() {
    let rig = rig_with_all_agents();
    let page = ServedPage::start(&rig);
    let list = page.get_page("/sessions");
    for (agent, prompt) in AGENTS {
        let begin = format!("href=\"/sessions/{agent}/");
        let links: Vec<&str> = list
            .split(&begin)
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap())
            .collect();
        assert_eq!(
            links.len(),
            if agent == "opencode" { 2 } else { 1 },
            "{agent}: {list}"
        );
        for link in links {
            let place = format!("/sessions/{agent}/{link}");
            let shown = page.get_page(&place);
            assert!(
                shown.contains(prompt) && shown.contains("Nothing was stored"),
                "{place}: {shown}"
            );
            let answer = page.post(&place, &place, &[("do", "import")]);
            let to = answer
                .split("location: ")
                .nth(1)
                .unwrap_or_else(|| panic!("{place}: {answer}"));
            let timeline = to.lines().next().unwrap().trim();
            let html = page.get_page(timeline);
            assert!(
                html.contains(&format!("imported from {agent}")) && html.contains("<svg"),
                "{place}: {html}"
            );
            let request = timeline.replace("/timeline", "/r/2");
            let html = page.get_page(&request);
            assert!(
                html.starts_with("HTTP/1.1 200") && html.contains("not recorded"),
                "{request}: {html}"
            );
            let what_if = page.get_page(&timeline.replace("/timeline", "/what-if?policies=none"));
            assert!(
                what_if.contains("<svg") && !what_if.contains("role=\"alert\""),
                "{what_if}"
            );
        }
    }
    let listed = page.get_page("/");
    assert!(
        AGENTS
            .iter()
            .all(|(agent, _)| listed.contains(&format!("\"Agent\">{agent}</td>"))),
        "{listed}"
    );
}

#[test]
fn context_commands_read_imported_sessions() {
    let rig = rig_with_all_agents();
    for (agent, _) in AGENTS {
        let imported = rig.run(&["conversations", "import", agent, "--json"]);
        assert_eq!(imported.code(), 0, "{agent}: {}", imported.stderr());
        let first = imported.json()[0].clone();
        let id = first["id"].as_str().unwrap();
        for (command, expected) in [
            (&["context", "show", id, "--request", "2"][..], "history"),
            (&["context", "diff", id, "1", "2"], "+"),
            (&["context", "why", id], "break"),
            (&["context", "report", id], "current"),
        ] {
            let ran = rig.run(command);
            let told = ran.stdout();
            let said = ran.stderr();
            assert_eq!(ran.code(), 0, "{agent} {command:?}: {said}");
            assert!(
                told.to_lowercase().contains(expected),
                "{agent} {command:?}: {told}"
            );
            assert!(
                said.contains(&format!("imported from {agent}")) && said.contains("not recorded"),
                "{said}"
            );
        }
        let ran = rig.run(&["context", "replay", id, "--policy", "none", "--json"]);
        assert_eq!(ran.code(), 0, "{agent}: {}", ran.stderr());
        let raw = rig.run(&["context", "show", id, "--raw"]);
        assert!(
            raw.code() != 0 && raw.stderr().contains("no body"),
            "{agent}: {}",
            raw.stderr()
        );
    }
    let again = rig
        .run(&["conversations", "import", "goose", "--json"])
        .json();
    assert_eq!(again[0]["state"], "same", "{again}");
}
