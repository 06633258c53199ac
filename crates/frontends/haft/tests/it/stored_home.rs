//! A home made by an earlier release is opened, continued and rebuilt by this one, byte for byte.
//!
//! `fixtures/home-0.1` describes its content. A failure here means that users lose something when
//! they update: fix the code, not the fixture.

mod home;
mod make;
mod observe;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_store::{SqliteStore, Store, StoreConfig};
use haft_testkit::support::FakeClock;
use haft_testkit::{Reply, Script, ScriptedServer, Seen, SeenRole, When};
use haft_types::ConversationId;
use serde_json::{Value, json};

use home::{ANTHROPIC, CHAT, GEMINI, RESPONSES, StoredHome};
use observe::Observed;

use crate::terminal::Terminal;

/// Settings of some of the stored conversations.
const PRUNING_SETTINGS: [&str; 8] = [
    "--set",
    "context.safe_zone=20k",
    "--set",
    "context.prune_to=0.6",
    "--set",
    "context.prune_keep=1",
    "--set",
    "context.compress=never",
];
const REMINDER_SETTINGS: [&str; 4] = [
    "--set",
    "context.reminders=cache-aware",
    "--set",
    "context.compress=never",
];
const EXECUTE_VIEW_SETTINGS: [&str; 2] = ["--set", "context.view=execute"];
const COMPACTION_SETTINGS: [&str; 4] = [
    "--set",
    "context.keep_rounds=1",
    "--set",
    "context.compact_at=0.0001",
];
const ACTIVE_CONTEXT_SETTINGS: [&str; 2] = ["--set", "context.active=true"];

fn settings_for(id: &str) -> &'static [&'static str] {
    match id {
        "cleared" => &PRUNING_SETTINGS,
        "carried" => &REMINDER_SETTINGS,
        "executing" => &EXECUTE_VIEW_SETTINGS,
        "without-summary" => &COMPACTION_SETTINGS,
        "described" => &ACTIVE_CONTEXT_SETTINGS,
        _ => &[],
    }
}

/// The packed home, and the outputs expected of it.
const HOME: &str = "home.tar.gz";
const EXPECTED: &str = "expected.json.gz";

/// Returns the path of a fixture file.
fn fixture_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/fixtures/home-0.1")
        .join(name)
}

/// Names under which the store keeps documents beside a conversation, each with a conversation that
/// has such a document.
const DOCUMENTS: [(&str, &str); 16] = [
    ("active_context", "described"),
    ("background_tasks", "background"),
    ("carried", "carried"),
    ("cleared", "cleared"),
    ("edited", "edited"),
    ("edits", "edited"),
    ("failed_summaries", "without-summary"),
    ("marks", "marked"),
    ("plan_told", "planned"),
    ("policy", "finished"),
    ("stand_in", "without-summary"),
    ("steady_tools", "finished"),
    ("subagents", "parent"),
    ("todo", "finished"),
    ("tokenizer_factors", "carried"),
    ("useful", "finished"),
];

/// Returns the stored documents by name.
fn stored_documents(home: &StoredHome) -> Vec<(&'static str, Value)> {
    let database = home.home().join("data/conversations.db");
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = SqliteStore::open(
            &database,
            &StoreConfig::default(),
            Arc::new(FakeClock::default()),
        )
        .unwrap();
        let mut found = Vec::new();
        for (name, id) in DOCUMENTS {
            let value = store.state(&ConversationId::new(id), name).await.unwrap();
            found.push((
                name,
                value.unwrap_or_else(|| panic!("`{id}` has no `{name}`")),
            ));
        }
        let notes = store
            .project_state(home.project().to_str().unwrap(), "notes")
            .await
            .unwrap();
        found.push(("notes", notes.expect("the project has notes")));
        found
    })
}

fn replies_script(replies: impl IntoIterator<Item = Reply>) -> Script {
    Script::replies(replies).unwrap()
}

fn seen_requests(server: &ScriptedServer) -> Vec<Seen> {
    assert!(server.refusals().is_empty(), "{:?}", server.refusals());
    server
        .generation_requests()
        .iter()
        .map(|request| request.decode().unwrap())
        .collect()
}

/// Returns the messages of the conversation in a body, without those that every version generates
/// anew.
fn conversation_items(body: &[u8]) -> Vec<Value> {
    let body: Value = serde_json::from_slice(body).unwrap();
    let list = ["messages", "input", "contents"]
        .iter()
        .find_map(|name| body[name].as_array())
        .expect("messages");
    list.iter()
        .filter(|item| item["role"] != "system" && item["role"] != "developer")
        .cloned()
        .collect()
}

/// Returns the body of a logged request.
fn logged_body(home: &StoredHome, id: &str, number: &str) -> Vec<u8> {
    home.run_successfully(&["context", "render", id, "--request", number])
        .0
        .stdout
}

#[test]
fn reading_commands_print_the_expected_output() {
    let Some(home) = StoredHome::from_fixture() else {
        return;
    };
    stored_documents(&home);
    let differences =
        Observed::from_home(&home).differences(&Observed::load(&fixture_path(EXPECTED)));
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn interrupted_turns_resume_where_they_stopped() {
    let Some(home) = StoredHome::from_fixture() else {
        return;
    };
    let server = home.serve_script(replies_script([Reply::text("Gone on.")]));
    let before = conversation_items(&logged_body(&home, "interrupted", "2"));
    let ran = home.task("interrupted", &["-m", RESPONSES]);
    assert_eq!(ran.result()["text"], "Gone on.");
    let told = seen_requests(&server).pop().unwrap();
    assert!(
        told.last_message_contains("uncertain whether it took effect"),
        "{told}"
    );
    assert_eq!(
        conversation_items(&server.generation_requests()[0].body)[..before.len()],
        before,
        "what was sent stays as it was"
    );
    assert_eq!(home.read("effects.txt"), "ran\n", "nothing runs twice");

    let server = home.serve_script(replies_script([Reply::text("Two documents.")]));
    let sent = logged_body(&home, "cut", "2");
    assert_eq!(
        home.task("cut", &["-m", CHAT]).result()["text"],
        "Two documents."
    );
    assert_eq!(
        conversation_items(&server.generation_requests()[0].body),
        conversation_items(&sent),
        "the same question once more"
    );
    seen_requests(&server);
}

#[test]
fn conversation_documents_still_take_effect() {
    let Some(home) = StoredHome::from_fixture() else {
        return;
    };
    let before = stored_documents(&home);
    let answers =
        |home: &StoredHome| home.serve_script(replies_script([Reply::text("Well.").times(99)]));
    let last = |server: &ScriptedServer| seen_requests(server).pop().unwrap();
    let texts = |seen: &Seen| seen.texts(SeenRole::User).join("\n");

    // The TODO list, the ranges in view, the notes on files that were read; the description of a
    // server's tools; the description of the folder.
    let server = answers(&home);
    let todo = json!({"todos": [{"content": "sleep", "status": "completed"}]});
    // Settings under which the newest result does not show the list.
    let differently = [
        "-m",
        ANTHROPIC,
        "--set",
        "context.prune_keep=3",
        "--set",
        "context.reminders=tail",
    ];
    home.task("finished", &[&differently[..], &["and now?"]].concat());
    let told = last(&server);
    for kept in [
        "- [x] write them down",
        "the first stripes",
        "1 stripe\ntwo stripes",
        "zebras before lions",
    ] {
        assert!(texts(&told).contains(kept), "no {kept:?} in {told}");
    }
    let of_servers = |seen: &Seen| {
        seen.prompt_section("MCP_SERVER_LIST")
            .expect("the servers are listed")
            .to_owned()
    };
    assert!(
        of_servers(&told).contains("not known yet"),
        "{}",
        of_servers(&told)
    );
    home.run_successfully(&["run", "-m", ANTHROPIC, "something new"]);
    assert!(
        of_servers(&last(&server)).contains("Shows its environment."),
        "{}",
        of_servers(&last(&server))
    );
    home.task(
        "described",
        &["-m", CHAT, "--set", "context.active=true", "and now?"],
    );
    assert!(
        last(&server).system.contains("Holds animals."),
        "what it heard first"
    );
    assert!(
        !last(&server).system.contains("Holds plants"),
        "{}",
        last(&server).system
    );
    home.task("background", &["-m", CHAT, "and now?"]);
    assert!(
        texts(&last(&server)).contains("it still ran when the run was over"),
        "{}",
        last(&server)
    );
    home.task(
        "carried",
        &[&REMINDER_SETTINGS[..], &["-m", CHAT, "and now?"]].concat(),
    );
    home.task("planned", &["-m", RESPONSES, "go"]);
    assert!(
        last(&server).to_string().contains("has left plan mode"),
        "{}",
        last(&server)
    );
    home.task("marked", &["-m", CHAT, "and now?"]);
    assert!(
        !last(&server).to_string().contains("alpha line 200"),
        "{}",
        last(&server)
    );
    home.task("edited", &["-m", GEMINI, "and now?"]);
    let told = last(&server).to_string();
    assert!(
        told.contains("Gamma has 300 lines.") && told.contains("Masked by the user"),
        "{told}"
    );

    // Too many summaries have failed: none is requested, and the stand-in for one is still sent.
    let asked = seen_requests(&server).len();
    let words =
        "Please go on with part 7, and tell me when you are through: there is more to come.";
    home.task(
        "without-summary",
        &[&COMPACTION_SETTINGS[..], &["-m", ANTHROPIC, words]].concat(),
    );
    assert_eq!(
        seen_requests(&server).len(),
        asked + 1,
        "one request, and none for a summary"
    );
    assert!(
        texts(&last(&server)).contains("you must never touch Cargo.lock"),
        "{}",
        last(&server)
    );

    // The sub-agent is identified by its conversation.
    let agents = |all: &[(&str, Value)]| {
        all.iter()
            .find(|(name, _)| *name == "subagents")
            .unwrap()
            .1
            .clone()
    };
    let child = agents(&before)[0]["conversation"]
        .as_str()
        .unwrap()
        .to_owned();
    let again = json!({"subagents": format!("- {{name: scout, task: Look once more., conversation: {child}}}")});
    let main = |reply: Reply, results| {
        reply.when(When {
            model: Some("claude".into()),
            tool_results: Some(results),
            ..When::default()
        })
    };
    let server = home.serve_script(replies_script([
        main(Reply::call("run_named_subagents", again), 1),
        main(Reply::text("It has."), 2),
        Reply::text("Still zwei.").when(When {
            model: Some("gpt".into()),
            ..When::default()
        }),
    ]));
    let ran = home.task("parent", &["-m", ANTHROPIC, "have it look again"]);
    assert_eq!(ran.result()["text"], "It has.", "{}", ran.stdout());
    assert_eq!(
        agents(&stored_documents(&home)),
        agents(&before),
        "no other conversation was begun"
    );
    assert!(
        seen_requests(&server)
            .iter()
            .any(|seen| seen.to_string().contains("Still zwei.")),
        "and its answer came"
    );

    // Changed documents are kept under their old names.
    let server = home.serve_script(replies_script([
        Reply::call("todo_write", todo),
        Reply::call(
            "useful_info_add",
            json!({"path": "b.txt", "start_line": 1, "end_line": 1, "description": "b"}),
        ),
        Reply::call("note_add", json!({"path": "out", "note": "made"})),
        Reply::text("Changed."),
    ]));
    home.task(
        "finished",
        &[&differently[..], &["change everything"]].concat(),
    );
    seen_requests(&server);
    let after = stored_documents(&home);
    let changed: Vec<_> = before
        .iter()
        .zip(&after)
        .filter(|(one, other)| one != other)
        .map(|(one, _)| one.0)
        .collect();
    for name in [
        "edited",
        "plan_told",
        "policy",
        "todo",
        "tokenizer_factors",
        "useful",
        "notes",
    ] {
        assert!(
            changed.contains(&name),
            "`{name}` is kept elsewhere now; these changed: {changed:?}"
        );
    }
    // One reply moves a factor only a little: it started from the stored value, not from 1.
    let factors = &after
        .iter()
        .find(|(name, _)| *name == "tokenizer_factors")
        .unwrap()
        .1;
    assert!(factors[CHAT].as_f64().unwrap() > 1.15, "{factors}");
}

#[test]
fn undo_jobs_workflows_history_trash_and_backups_still_work() {
    let Some(home) = StoredHome::from_fixture() else {
        return;
    };
    assert_eq!(home.read("b.txt"), "zwei\n");
    home.run_successfully(&["undo", "finished"]);
    assert_eq!(home.read("b.txt"), "two\n");
    home.run_successfully(&["redo", "finished"]);
    home.run_successfully(&["undo", "finished", "--session"]);
    assert_eq!(home.read("stripes.txt").lines().next(), Some("one stripe"));
    assert!(!home.project().join("out/new.txt").exists());

    let job = home.run_successfully(&["jobs", "list", "--json"]).json()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        home.run_successfully(&["jobs", "show", &job])
            .stdout()
            .contains("Done in the background.")
    );
    let logs = home.run_successfully(&["jobs", "logs", &job]).stdout();
    assert!(logs.contains("Read b.txt"), "{logs}");

    let server = home.serve_script(replies_script([Reply::text("Mended.")]));
    let run = [
        "workflow",
        "run",
        "mend",
        "--continue",
        "-m",
        CHAT,
        "--permission-mode",
        "yolo",
    ];
    assert!(home.run_successfully(&run).stdout().contains("Mended."));
    assert!(
        seen_requests(&server).len() == 1
            && seen_requests(&server)[0].last_message_contains("MEND it: Two mistakes."),
        "one step was left"
    );

    let mut terminal = Terminal::start_command(&home.command(&[]), (90, 24));
    terminal.until_text("> ");
    terminal.press("\u{1b}[A");
    terminal.until_text("> make a plan");
    terminal.press("\u{3}\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);

    assert_eq!(
        home.run_successfully(&["trust", "--show", "--json"]).json()["standing"],
        "trusted"
    );
    home.write(".haft/workflows/mend.yaml", "steps: []\n");
    assert_eq!(
        home.run_successfully(&["trust", "--show", "--json"]).json()["standing"],
        "changed"
    );

    home.run_successfully(&["conversations", "restore", "trashed"]);
    assert!(
        home.run_successfully(&["conversations", "show", "trashed"])
            .stdout()
            .contains("Nobody needs this.")
    );
    home.run_successfully(&["conversations", "delete", "finished"]);
    home.run_successfully(&[
        "conversations",
        "backup",
        "restore",
        "newest",
        "--set",
        "store.backups=3",
    ]);
    assert!(
        home.run_successfully(&["conversations", "show", "finished"])
            .stdout()
            .contains("By its stripes.")
    );
    assert_eq!(
        home.run_successfully(&["doctor", "--json"]).json()["ok"],
        true
    );
}
