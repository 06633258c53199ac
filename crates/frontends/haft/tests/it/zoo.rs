//! Projects written for haft and for other agents, each with the expected content of the last
//! request of a run, in order.
//!
//! A case is a folder of `fixtures/zoo`: `project/` and `home/` are copied (`_git` becomes `.git`),
//! `case.toml` holds the prompt, the working folder, and the files that the model reads;
//! `expected.txt` holds everything sent up to the prompt, and the notices of the run. A run that
//! differs writes `expected.new` beside it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Case {
    prompt: String,
    cwd: String,
    read: Vec<String>,
    /// The user's configuration, in the form that `--set` takes.
    set: Vec<String>,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            prompt: "Hello.".into(),
            cwd: String::new(),
            read: Vec::new(),
            set: Vec::new(),
        }
    }
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/zoo");
    let mut cases: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    cases
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let target = to.join(if name == "_git" { ".git" } else { &name });
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Returns a rig with the case in a folder `shop`, and the case.
fn prepare_case(folder: &Path) -> (Rig, Case) {
    let case: Case =
        toml::from_str(&fs::read_to_string(folder.join("case.toml")).unwrap()).unwrap();
    let reads = case
        .read
        .iter()
        .map(|path| Reply::call("read_file", json!({"path": path})));
    let replies: Vec<_> = reads.chain([Reply::text("Done.")]).collect();
    let twice: Vec<_> = replies.iter().chain(&replies).cloned().collect();
    let rig = Rig::untrusted(Api::OpenaiChat, Script::replies(twice).unwrap());
    copy_folder(&folder.join("project"), &rig.project().join("shop"));
    if folder.join("home").exists() {
        copy_folder(&folder.join("home"), rig.home());
    }
    (rig, case)
}

fn run_case(rig: &Rig, case: &Case) -> Ran {
    let cwd = rig.project().join("shop").join(&case.cwd);
    let set = case.set.iter().flat_map(|one| ["--set", one]);
    let arguments: Vec<_> = ["--cwd", cwd.to_str().unwrap()]
        .into_iter()
        .chain(set)
        .chain([&*case.prompt])
        .collect();
    rig.task(&arguments)
}

/// Renders the messages of the newest request, with only the part about folders of the system
/// message and only the notes about modules of results, and the notices of the run. The document
/// about the place is left out, because it differs from machine to machine.
fn render_last_request(rig: &Rig, ran: &Ran) -> String {
    let home = rig.home().canonicalize().unwrap().display().to_string();
    let project = rig.project().join("shop").display().to_string();
    let requests = rig.server.requests();
    let body: Value = serde_json::from_slice(&requests.last().unwrap().body).unwrap();
    let mut text = String::new();
    for message in body["messages"].as_array().unwrap() {
        let content = message["content"].as_str().unwrap_or_default();
        match message["role"].as_str().unwrap() {
            "system" => {
                let folders = content.split_once("PROJECT PACKAGE CONTEXT\n");
                if let Some((_, rest)) = folders {
                    let folders = rest.split("====").next().unwrap_or_default().trim();
                    write!(text, "[folders]\n{folders}\n\n").unwrap();
                }
            }
            "tool" => {
                for line in content
                    .lines()
                    .filter(|line| line.starts_with("[It belongs to the module"))
                {
                    writeln!(text, "(result) {line}").unwrap();
                }
            }
            _ if message["tool_calls"].is_array() => {}
            _ if content.starts_with("Where you work.") || content == "I will work there." => {}
            role => write!(text, "[{role}]\n{content}\n\n").unwrap(),
        }
    }
    for event in ran
        .events()
        .iter()
        .filter(|event| event["type"] == "error" && event["code"] == "document")
    {
        writeln!(text, "(told) {}", event["message"].as_str().unwrap()).unwrap();
    }
    text.replace(&home, "HOME").replace(&project, "PROJECT")
}

#[test]
fn projects_send_the_expected_request() {
    let mut wrong = Vec::new();
    for folder in cases() {
        let (rig, case) = prepare_case(&folder);
        assert!(
            rig.run(&["trust", rig.project().join("shop").to_str().unwrap()])
                .code()
                == 0
        );
        let ran = run_case(&rig, &case);
        assert_eq!(
            ran.code(),
            0,
            "{}: {}{}",
            folder.display(),
            ran.stdout(),
            ran.stderr()
        );
        let seen = render_last_request(&rig, &ran);
        let expected = fs::read_to_string(folder.join("expected.txt")).unwrap_or_default();
        if seen != expected {
            fs::write(folder.join("expected.new"), &seen).unwrap();
            wrong.push(folder.display().to_string());
        }
    }
    assert!(
        wrong.is_empty(),
        "these differ from their expected.txt (see expected.new beside it):\n{}",
        wrong.join("\n")
    );
}

#[test]
fn untrusted_projects_send_none_of_their_documents() {
    for folder in cases() {
        let (rig, case) = prepare_case(&folder);
        let case = Case {
            prompt: "Hello.".into(),
            ..case
        };
        let ran = run_case(&rig, &case);
        assert_eq!(ran.code(), 0, "{}: {}", folder.display(), ran.stderr());
        let seen = render_last_request(&rig, &ran);
        let headings: Vec<_> = seen.lines().filter(|line| line.starts_with("# ")).collect();
        assert!(!seen.contains("[folders]"), "{}: {seen}", folder.display());
        // The document about external tools and the user's own documents are sent.
        let of_user =
            |line: &str| line.starts_with("# HOME") || line.starts_with("# External tools");
        assert!(
            headings.iter().all(|heading| of_user(heading)),
            "{}: {headings:?}",
            folder.display()
        );
        let mut tools = seen.lines().filter(|line| line.starts_with("Folder: `"));
        assert!(
            tools.all(|line| line.starts_with("Folder: `HOME")),
            "{}: {seen}",
            folder.display()
        );
    }
}

#[test]
fn removed_rule_is_absent_from_the_next_request() {
    let folder = cases()
        .into_iter()
        .find(|case| case.ends_with("haft-rules"))
        .unwrap();
    let (rig, case) = prepare_case(&folder);
    rig.run(&["trust", rig.project().join("shop").to_str().unwrap()]);
    assert!(render_last_request(&rig, &run_case(&rig, &case)).contains("Use tabs."));
    fs::remove_file(rig.project().join("shop/.haft/rules/always.md")).unwrap();
    let ran = run_case(&rig, &case);
    let seen = render_last_request(&rig, &ran);
    assert!(
        !seen.contains("Use tabs.") && seen.contains("release.md"),
        "{seen}"
    );
}
