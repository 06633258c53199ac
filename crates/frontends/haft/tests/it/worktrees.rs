//! Sub-agents that work in a copy of the project: the content of the copy, merges, and copies that
//! are kept.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use haft_testkit::{Reply, Script, Seen, When};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

/// A repository with one commit, and a model with these replies.
pub(crate) fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    rig.write("lines.txt", "one\ntwo\nthree\nfour\nfive\n");
    rig.write("old.txt", "old\n");
    rig.write(".gitignore", "ignored\n");
    run_git(&rig, &["init", "--quiet"]);
    run_git(&rig, &["add", "--all"]);
    run_git(&rig, &["commit", "--quiet", "-m", "begin"]);
    rig
}

pub(crate) fn run_git(rig: &Rig, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command
        .args(["-c", "user.name=t", "-c", "user.email=t@t"])
        .args(arguments)
        .current_dir(rig.project());
    let output = command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Adds an agent. The role at the head of a request identifies the agent it belongs to.
pub(crate) fn add_agent(rig: &Rig, name: &str, head: &str) {
    std::fs::create_dir_all(rig.project().join(".haft/agents")).unwrap();
    let text = format!("---\nname: {name}\ndescription: Works\n{head}\n---\nYou are {name}.\n");
    rig.write(&format!(".haft/agents/{name}.md"), text);
    assert_eq!(rig.run(&["trust"]).code(), 0);
}

pub(crate) fn reply_to(words: &str, reply: Reply) -> Reply {
    reply.when(When {
        last_contains: Some(words.into()),
        ..When::default()
    })
}

pub(crate) fn start_agents_reply(yaml: &str) -> Reply {
    reply_to(
        "begin",
        Reply::call("run_named_subagents", json!({ "subagents": yaml })),
    )
}

pub(crate) fn command_call(line: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({"command": line, "requires_approval": false}),
    )
}

pub(crate) fn file_text(rig: &Rig, name: &str) -> Option<String> {
    std::fs::read_to_string(rig.project().join(name)).ok()
}

/// Returns the result of the main agent's call.
pub(crate) fn main_result(ran: &Ran) -> String {
    let of_main = |event: &Value| event["type"] == "tool_result" && event["agent"] == "main";
    let found = ran
        .events()
        .into_iter()
        .find(of_main)
        .unwrap_or_else(|| panic!("{}{}", ran.stdout(), ran.stderr()));
    found["text"].as_str().unwrap().to_owned()
}

pub(crate) fn worktree_folders(rig: &Rig) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(rig.home().join("data/worktrees"))
        .into_iter()
        .flatten();
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect()
}

#[test]
fn agent_changes_in_a_copy_are_merged_as_one_change() {
    let work = "test -e new.txt && test ! -e ignored && printf 'ONE\\ntwo\\nthree\\nfour\\nfive\\n' > lines.txt && \
                rm old.txt && mkdir -p deep/er && echo made > deep/er/made.txt && chmod +x deep/er/made.txt && echo x > ignored && pwd";
    let rig = rig([
        start_agents_reply("- {name: worker, task: TASK}"),
        reply_to("TASK", command_call(work)),
        reply_to("worktrees", Reply::text("Worked.")),
        reply_to("## worker", Reply::text("All done.")),
    ]);
    add_agent(&rig, "worker", "worktree: true");
    // Uncommitted changes are in the copy, ignored files are not.
    rig.write("lines.txt", "one\ntwo\nthree\nfour\nFIVE?\n");
    run_git(&rig, &["checkout", "--quiet", "lines.txt"]);
    rig.write("new.txt", "new\n");
    rig.write("ignored", "mine\n");
    let before = run_git(&rig, &["log", "--oneline", "--all"]);
    let index = run_git(&rig, &["diff", "--cached"]);
    let ran = rig.task(&["begin"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    let told = main_result(&ran);
    assert!(
        told.contains("Merged into the project: ") && told.contains("`deep/er/made.txt`"),
        "{told}"
    );
    assert_eq!(
        file_text(&rig, "lines.txt").unwrap(),
        "ONE\ntwo\nthree\nfour\nfive\n"
    );
    assert_eq!(
        (
            file_text(&rig, "old.txt"),
            file_text(&rig, "deep/er/made.txt").as_deref()
        ),
        (None, Some("made\n"))
    );
    assert_eq!(
        file_text(&rig, "ignored").unwrap(),
        "mine\n",
        "what git ignores is nobody's business"
    );
    assert!(
        worktree_folders(&rig).is_empty(),
        "nothing is left of the copy"
    );
    assert_eq!(run_git(&rig, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(
        (
            run_git(&rig, &["log", "--oneline", "--all"]),
            run_git(&rig, &["diff", "--cached"])
        ),
        (before, index)
    );
    let changed: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "file_changed")
        .collect();
    assert!(
        changed
            .iter()
            .any(|event| event["path"].as_str().unwrap().ends_with("lines.txt")),
        "{changed:?}"
    );

    // The merge is one change, reverted by one undo.
    assert_eq!(rig.run(&["undo"]).code(), 0);
    assert_eq!(
        file_text(&rig, "lines.txt").unwrap(),
        "one\ntwo\nthree\nfour\nfive\n"
    );
    assert_eq!(
        (
            file_text(&rig, "old.txt").as_deref(),
            rig.project().join("deep").exists()
        ),
        (Some("old\n"), false)
    );
}

#[test]
fn parallel_agents_merge_changes_of_one_file() {
    let rig = rig([
        start_agents_reply(
            "mode: parallel\nsubagents:\n  - {name: left, task: FIRST, worktree: true}\n  - {name: right, task: LAST, worktree: true}\n",
        ),
        reply_to(
            "FIRST",
            command_call("sed -i s/one/ONE/ lines.txt; echo changed the top"),
        ),
        reply_to(
            "LAST",
            command_call("sed -i s/five/FIVE/ lines.txt; echo changed the end"),
        ),
        reply_to("changed the top", Reply::text("Top.")),
        reply_to("changed the end", Reply::text("End.")),
        reply_to("## left", Reply::text("All done.")),
    ]);
    add_agent(&rig, "left", "");
    add_agent(&rig, "right", "");
    let ran = rig.task(&["begin"]);
    let told = main_result(&ran);
    assert_eq!(
        told.matches("Merged into the project: `lines.txt`.")
            .count(),
        2,
        "{told}"
    );
    assert_eq!(
        file_text(&rig, "lines.txt").unwrap(),
        "ONE\ntwo\nthree\nfour\nFIVE\n"
    );
    assert!(worktree_folders(&rig).is_empty());
    assert_eq!(rig.run(&["undo"]).code(), 0);
    assert_eq!(
        file_text(&rig, "lines.txt").unwrap(),
        "one\ntwo\nthree\nfour\nfive\n",
        "they are changes of one call"
    );
}

#[test]
fn merge_conflict_changes_no_file_and_keeps_the_copy() {
    let rig = rig([
        start_agents_reply(
            "mode: serial\nsubagents:\n  - {name: left, task: FIRST, worktree: true}\n",
        ),
        // Meanwhile a hook changes a line of the project that the agent changes, too.
        reply_to(
            "FIRST",
            command_call("echo mine > other.txt; sed -i s/one/ONE/ lines.txt; echo one more"),
        ),
        reply_to("one more", Reply::text("Top.")),
        reply_to("NOT MERGED", Reply::text("It could not be merged.")),
    ]);
    add_agent(&rig, "left", "");
    let project = rig.project();
    let hook = format!(
        "[[hooks.subagent_stop]]\nmatcher = \"*\"\nhooks = [{{ command = \"sed -i s/one/EINS/ {}/lines.txt\", timeout = 60 }}]\n",
        project.display()
    );
    let config = rig.home().join("config.toml");
    std::fs::write(&config, std::fs::read_to_string(&config).unwrap() + &hook).unwrap();
    let ran = rig.task(&["begin"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    let told = main_result(&ran);
    assert!(
        told.contains("NOT MERGED, nothing of its work is in the project: `lines.txt` changed"),
        "{told}"
    );
    assert_eq!(
        file_text(&rig, "lines.txt").unwrap(),
        "EINS\ntwo\nthree\nfour\nfive\n"
    );
    assert_eq!(file_text(&rig, "other.txt"), None, "all or nothing");
    let kept = worktree_folders(&rig);
    assert_eq!(kept.len(), 1);
    assert!(told.contains(&kept[0].display().to_string()), "{told}");
    assert_eq!(
        std::fs::read_to_string(kept[0].join("lines.txt")).unwrap(),
        "ONE\ntwo\nthree\nfour\nfive\n"
    );
    assert_listed_and_removed(&rig, &kept[0]);
}

/// Checks `haft worktrees` with one kept copy.
fn assert_listed_and_removed(rig: &Rig, copy: &Path) {
    let listed = rig.run(&["worktrees", "--json"]).json();
    let id = listed[0]["id"].as_str().unwrap();
    let project = rig.project().canonicalize().unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(
        (&listed[0]["path"], &listed[0]["project"]),
        (&json!(copy), &json!(project))
    );
    let table = rig.run(&["worktree", "list"]).stdout();
    assert!(table.contains(id) && table.contains("just now"), "{table}");
    assert_eq!(
        rig.run(&["worktrees", "remove", "nothing-like-it"]).code(),
        2
    );
    assert!(copy.exists());
    let removed = rig.run(&["worktrees", "remove", &id[..8]]);
    assert_eq!(removed.code(), 0, "{}", removed.stderr());
    let patch = copy.with_extension("patch");
    assert!(
        removed.stdout().contains(patch.to_str().unwrap()) && !copy.exists(),
        "{}",
        removed.stdout()
    );
    assert!(std::fs::read_to_string(patch).unwrap().contains("+ONE\n"));
    assert!(
        !run_git(rig, &["worktree", "list"]).contains("worktrees"),
        "git has forgotten it"
    );
    assert_eq!(rig.run(&["worktrees", "list", "--json"]).json(), json!([]));
}

#[test]
fn agent_with_worktree_needs_git_and_trust() {
    let replies = || {
        [
            start_agents_reply("- {name: worker, task: TASK, worktree: true}"),
            reply_to("## worker", Reply::text("It did not start.")),
        ]
    };
    let bare = Rig::new(Api::OpenaiChat, Script::replies(replies()).unwrap());
    add_agent(&bare, "worker", "");
    let told = main_result(&bare.task(&["begin"]));
    assert!(
        told.contains("## worker: failed") && told.contains("is not in a git repository"),
        "{told}"
    );

    let rig = rig(replies());
    std::fs::create_dir_all(rig.home().join("agents")).unwrap();
    std::fs::write(
        rig.home().join("agents/worker.md"),
        "---\nname: worker\ndescription: Works\n---\nYou work.\n",
    )
    .unwrap();
    assert_eq!(rig.run(&["trust", "--revoke"]).code(), 0);
    let told = main_result(&rig.task(&["begin"]));
    assert!(
        told.contains("## worker: failed")
            && told.contains("is not trusted, so git is not run in it"),
        "{told}"
    );
    let asked: Vec<Seen> = rig
        .server
        .generation_requests()
        .iter()
        .map(|request| request.decode().unwrap())
        .collect();
    assert!(
        asked
            .iter()
            .all(|seen| !seen.last_message_contains("TASK") || seen.count_assistant_turns() > 0),
        "nobody started"
    );
    assert!(worktree_folders(&rig).is_empty());
}

#[test]
fn sandboxed_commands_write_to_the_copy_only() {
    let rig = rig([
        start_agents_reply("- {name: worker, task: TASK, worktree: true}"),
        reply_to(
            "TASK",
            command_call(
                "echo in > made.txt; git status --short; cd \"$(git rev-parse --git-common-dir)/..\" && echo out > escaped.txt; echo ended",
            ),
        ),
        reply_to("ended", Reply::text("Worked.")),
        reply_to("## worker", Reply::text("All done.")),
    ]);
    add_agent(&rig, "worker", "");
    let run = [
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "auto",
        "begin",
    ];
    let ran = rig.run(&run);
    let sandboxed = ran.events()[0]["sandbox"]["layer"] == "namespace";
    if !sandboxed {
        eprintln!("skipped: there are no namespaces here");
        return;
    }
    let told = main_result(&ran);
    assert!(
        told.contains("Merged into the project: `made.txt`."),
        "{told}\n{}",
        ran.stdout()
    );
    assert_eq!(
        (
            file_text(&rig, "made.txt").as_deref(),
            file_text(&rig, "escaped.txt")
        ),
        (Some("in\n"), None)
    );
}

#[test]
fn interrupted_agent_resumes_in_its_copy() {
    let ask = Reply::call(
        "ask_followup_question",
        json!({"question": "Left or right?"}),
    );
    let rig = rig([
        start_agents_reply("- {name: worker, task: TASK}"),
        reply_to("TASK", command_call("echo half > made.txt; echo so far")),
        // The text that the agent saw is in the result, too.
        reply_to("## worker: waits", Reply::text("It asks.")),
        reply_to("so far", ask),
    ]);
    add_agent(&rig, "worker", "worktree: true");
    let told = main_result(&rig.task(&["begin"]));
    assert!(
        told.contains("Its work (`made.txt`) is not merged, because it is not done"),
        "{told}"
    );
    assert_eq!(
        (file_text(&rig, "made.txt"), worktree_folders(&rig).len()),
        (None, 1)
    );
    let id = told
        .split("Conversation: ")
        .nth(1)
        .unwrap()
        .trim()
        .to_owned();
    let again =
        json!({ "subagents": format!("- {{name: worker, task: Left, conversation: {id}}}") });
    let script = Script::replies([
        reply_to("go on", Reply::call("run_named_subagents", again)),
        reply_to(
            "The user answered: Left",
            command_call("echo whole >> made.txt; echo at last"),
        ),
        reply_to("## worker: completed", Reply::text("All done.")),
        reply_to("at last", Reply::text("Worked.")),
    ]);
    let rig = rig.with_script(script.unwrap(), Api::OpenaiChat);
    let ran = rig.task(&["-c", "go on"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    assert!(
        main_result(&ran).contains("Merged into the project: `made.txt`."),
        "{}",
        main_result(&ran)
    );
    assert_eq!(
        (
            file_text(&rig, "made.txt").as_deref(),
            worktree_folders(&rig).len()
        ),
        (Some("half\nwhole\n"), 0)
    );
}

/// Sets the time of everything at the top of a copy back by `days` days.
fn set_age(copy: &Path, days: u64) {
    let time = SystemTime::now() - Duration::from_hours(24 * days);
    for path in [copy.to_owned(), copy.with_extension("base")] {
        File::open(path).unwrap().set_modified(time).unwrap();
    }
}

#[test]
fn abandoned_copy_is_removed_and_kept_as_a_patch() {
    let rig = rig([
        start_agents_reply("subagents: [{name: alpha, task: DO-A, worktree: true}]"),
        reply_to(
            "DO-A",
            command_call("printf 'ALPHA\\ntwo\\nthree\\nfour\\nfive\\n' > lines.txt; echo DID-A"),
        ),
        reply_to("DID-A", Reply::error(400, "no more")),
        reply_to("not merged", Reply::text("Kept.")),
        reply_to(
            "again",
            Reply::call(
                "run_named_subagents",
                json!({"subagents": "[{name: beta, task: DO-B, worktree: true}]"}),
            ),
        ),
        reply_to("DO-B", Reply::text("Nothing.")),
        reply_to("beta: completed", Reply::text("Done.")),
    ]);
    add_agent(&rig, "alpha", "");
    add_agent(&rig, "beta", "");
    let ran = rig.task(&["begin"]);
    let copy = worktree_folders(&rig)
        .pop()
        .unwrap_or_else(|| panic!("{}{}", ran.stdout(), ran.stderr()));
    let notices = |ran: &Ran| -> Vec<Value> {
        ran.events()
            .into_iter()
            .filter(|event| event["code"] == "worktree_removed")
            .collect()
    };
    // Too young to be removed.
    set_age(&copy, 29);
    let ran = rig.task(&["again"]);
    assert_eq!(
        (
            ran.code(),
            notices(&ran).len(),
            worktree_folders(&rig).len()
        ),
        (0, 0, 1),
        "{}",
        ran.stdout()
    );
    set_age(&copy, 31);
    let ran = rig.task(&["again"]);
    assert_eq!(
        (
            ran.code(),
            notices(&ran).len(),
            worktree_folders(&rig).len()
        ),
        (0, 1, 0),
        "{}",
        ran.stdout()
    );
    let told = notices(&ran)[0]["message"].as_str().unwrap().to_owned();
    assert!(
        told.contains("`lines.txt`") && told.contains(".patch`"),
        "{told}"
    );
    assert!(
        !run_git(&rig, &["worktree", "list"]).contains("worktrees"),
        "git has forgotten it"
    );
    let patch = copy.with_extension("patch");
    run_git(&rig, &["apply", patch.to_str().unwrap()]);
    assert!(file_text(&rig, "lines.txt").unwrap().starts_with("ALPHA\n"));
}
