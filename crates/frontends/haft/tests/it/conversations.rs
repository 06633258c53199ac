//! `haft conversations` and forks of a session.

use std::fs;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;
use crate::screen::without_numbers;

fn rig() -> Rig {
    let replies =
        (1..=9).map(|n| Reply::text(format!("Answer {n}: the quick brown fox, 快速的棕色狐狸.")));
    Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap())
}

/// Runs a command that must succeed.
fn run_ok(rig: &Rig, arguments: &[&str]) -> String {
    let ran = rig.run(arguments);
    assert_eq!(
        ran.code(),
        0,
        "{arguments:?}: {}{}",
        ran.stdout(),
        ran.stderr()
    );
    ran.stdout()
}

fn run_json(rig: &Rig, arguments: &[&str]) -> Value {
    serde_json::from_str(&run_ok(rig, arguments)).unwrap()
}

/// Runs a command that must fail with a usage error, and returns its standard error.
fn run_rejected(rig: &Rig, arguments: &[&str]) -> String {
    let ran = rig.run(arguments);
    assert_eq!(
        ran.code(),
        2,
        "{arguments:?}: {}{}",
        ran.stdout(),
        ran.stderr()
    );
    ran.stderr()
}

fn ids(listed: &Value) -> Vec<&str> {
    listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap())
        .collect()
}

#[test]
fn new_use_rename_delete_and_restore_work() {
    let rig = rig();
    let new = [
        "conversations",
        "new",
        "First",
        "--id",
        "one",
        "--description",
        "why",
        "--metadata",
        "n=1",
        "--json",
    ];
    let made = run_json(&rig, &new);
    let keys: Vec<_> = made.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "id",
            "name",
            "namespace",
            "created_at",
            "updated_at",
            "messages"
        ]
    );
    assert_eq!(
        (&made["id"], &made["name"], &made["messages"]),
        (&json!("one"), &json!("First"), &json!(0))
    );
    let exported = run_json(&rig, &["conversations", "export", "one"]);
    assert_eq!(
        (&exported["description"], &exported["metadata"]),
        (&json!("why"), &json!({"n": 1}))
    );
    insta::assert_snapshot!(rig.screen(&new), @"
    -- errors
    haft: conversation id `one` is taken; choose another one
    -- exit 2
    ");

    let second = run_ok(&rig, &["conversations", "new"]);
    let id = second.split_whitespace().nth(1).unwrap();
    insta::assert_snapshot!(rig.mask_text(&second), @"created ID  Conversation ID");
    insta::assert_snapshot!(rig.screen(&["conversations", "list"]), @"
    ID  NAME  MESSAGES  UPDATED
    ID  Conversation ID  0  TIME
    one  First  0  TIME
    ");
    assert!(run_ok(&rig, &["conversations", "current"]).starts_with(id));
    insta::assert_snapshot!(rig.screen(&["conversations", "current"]), @"ID  Conversation ID");
    run_ok(&rig, &["conversations", "use", "First"]);
    assert_eq!(
        run_json(&rig, &["conversations", "current", "--json"])["id"],
        "one"
    );

    run_ok(&rig, &["conversations", "rename", "one", "第一个"]);
    assert_eq!(
        run_json(&rig, &["conversations", "current", "--json"])["name"],
        "第一个"
    );
    insta::assert_snapshot!(rig.screen(&["conversations", "rename", "one", " "]), @"
    -- errors
    haft: ` ` cannot be the name of a conversation: it must not be empty or hold control characters
    -- exit 2
    ");

    // Nothing is deleted if one of the names is wrong.
    insta::assert_snapshot!(rig.screen(&["conversations", "delete", "one", "nobody"]), @"
    -- errors
    haft: there is no conversation `nobody`; `haft conversations list --all` shows them
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["conversations", "delete", "第一个"]), @"deleted one  第一个");
    assert_eq!(
        ids(&run_json(&rig, &["conversations", "list", "--json"])),
        [id]
    );
    insta::assert_snapshot!(rig.screen(&["conversations", "current"]), @"
    -- errors
    haft: there is no current conversation in this project; give an id
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["conversations", "list", "--trash"]), @"
    ID  NAME  MESSAGES  UPDATED  PROJECT
    one  第一个  0  TIME  PROJECT
    ");
    assert_eq!(
        ids(&run_json(
            &rig,
            &["conversations", "list", "--trash", "--json"]
        )),
        ["one"]
    );
    insta::assert_snapshot!(rig.screen(&["conversations", "restore", id]), @"
    -- errors
    haft: there is no conversation `ID` in the trash; `haft conversations list --trash` shows them
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["conversations", "restore", "one"]), @"restored one  第一个");
    assert_eq!(
        run_json(&rig, &["conversations", "current", "--json"])["id"],
        "one"
    );
    assert_eq!(
        run_ok(&rig, &["conversations", "list", "--trash"]),
        "The trash is empty.\n"
    );
}

#[test]
fn conversations_commands_explain_an_empty_store() {
    let rig = rig();
    insta::assert_snapshot!(rig.screen(&["conversations", "list"]), @r#"No conversations here yet. Start one with `haft run "…"`."#);
    insta::assert_snapshot!(rig.screen(&["conversations", "show"]), @"
    -- errors
    haft: there is no current conversation in this project; give an id
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["conversations", "backup", "list"]), @"No backups yet. `haft run` makes one at its start, `haft conversations backup` makes one now.");
    insta::assert_snapshot!(rig.screen(&["conversations", "search", "word"]), @"Nothing found in this project; `--all` searches every one.");
}

#[test]
fn export_of_an_unknown_conversation_is_a_usage_error() {
    let rig = rig();
    insta::assert_snapshot!(rig.screen(&["conversations", "export", "nobody"]), @"
    -- errors
    haft: there is no conversation `nobody`; `haft conversations list --all` shows them
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["conversations", "use", "nobody"]), @"
    -- errors
    haft: there is no conversation `nobody`; `haft conversations list --all` shows them
    -- exit 2
    ");
}

#[test]
fn namespaces_are_separate() {
    let rig = rig();
    run_ok(&rig, &["conversations", "new", "--id", "here"]);
    run_ok(
        &rig,
        &[
            "conversations",
            "new",
            "--id",
            "there",
            "--namespace",
            "other",
        ],
    );
    run_ok(
        &rig,
        &["conversations", "new", "--id", "unnamed", "--namespace", ""],
    );
    assert_eq!(
        ids(&run_json(&rig, &["conversations", "list", "--json"])),
        ["here"]
    );
    assert_eq!(
        ids(&run_json(
            &rig,
            &["conversations", "list", "--namespace", "other", "--json"]
        )),
        ["there"]
    );
    assert_eq!(
        ids(&run_json(
            &rig,
            &["conversations", "list", "--all", "--json"]
        )),
        ["unnamed", "there", "here"]
    );
    let project = rig.project().display().to_string();
    let namespace = |name: &str, current: &str| json!({"namespace": name, "conversations": 1, "current": current});
    let expected = [
        namespace(&project, "here"),
        namespace("default", "unnamed"),
        namespace("other", "there"),
    ];
    assert_eq!(
        run_json(&rig, &["conversations", "namespaces", "--json"]),
        json!(expected)
    );
    insta::assert_snapshot!(rig.screen(&["conversations", "namespaces"]), @"
    NAMESPACE  CONVERSATIONS  CURRENT
    PROJECT  1  here
    default  1  unnamed
    other  1  there
    ");
    insta::assert_snapshot!(rig.screen(&["conversations", "list", "--all"]), @"
    ID  NAME  MESSAGES  UPDATED  PROJECT
    unnamed  Conversation unnamed  0  TIME  default
    there  Conversation there  0  TIME  other
    here  Conversation here  0  TIME  PROJECT
    ");
}

#[test]
fn search_finds_messages_by_their_words() {
    let rig = rig();
    rig.task(&["where is the login form?"]);
    let hits = run_json(&rig, &["conversations", "search", "brown", "FOX", "--json"]);
    assert_eq!(hits.as_array().unwrap().len(), 1);
    let hit = &hits[0];
    assert_eq!(
        (&hit["conversation"]["name"], &hit["message"]["role"]),
        (&json!("where is the login form?"), &json!("assistant"))
    );
    let text = hit["snippet"]["text"].as_str().unwrap();
    let highlights = &hit["snippet"]["highlights"];
    let marked: Vec<String> = highlights
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| {
            let at = |n: usize| pair[n].as_u64().unwrap() as usize;
            text.chars().skip(at(0)).take(at(1) - at(0)).collect()
        })
        .collect();
    assert_eq!(marked, ["brown", "fox"]);
    insta::assert_snapshot!(rig.screen(&["conversations", "search", "狐狸"]), @"
    ID  where is the login form?  ID assistant TIME
        …1: the quick brown fox, 快速的棕色狐狸.
    ");
    // Both the message and the conversation, whose name is the message.
    assert_eq!(
        run_json(&rig, &["conversations", "search", "login", "--json"])
            .as_array()
            .unwrap()
            .len(),
        2
    );
    insta::assert_snapshot!(rig.screen(&["conversations", "search", "absent"]), @"Nothing found in this project; `--all` searches every one.");
    insta::assert_snapshot!(rig.screen(&["conversations", "search", "login", "--namespace", "other"]), @"Nothing found in this project; `--all` searches every one.");
    insta::assert_snapshot!(rig.screen(&["conversations", "search", "?!"]), @"
    -- errors
    haft: `?!` contains no word to search for
    -- exit 2
    ");
}

#[test]
fn show_starts_near_the_end_of_a_long_conversation() {
    let rig = rig();
    for n in 1..=3 {
        rig.task(&["-c", &format!("question {n}")]);
    }
    insta::assert_snapshot!(rig.screen(&["conversations", "show", "--last", "2"]), @"
    question 1 (ID)

    … 4 earlier messages; `--all` shows them

    ID user TIME
        question 3

    ID assistant TIME
        Answer 3: the quick brown fox, 快速的棕色狐狸.
    ");
    insta::assert_snapshot!(rig.screen(&["conversations", "show", "--all"]), @"
    question 1 (ID)

    ID user TIME
        question 1

    ID assistant TIME
        Answer 1: the quick brown fox, 快速的棕色狐狸.

    ID user TIME
        question 2

    ID assistant TIME
        Answer 2: the quick brown fox, 快速的棕色狐狸.

    ID user TIME
        question 3

    ID assistant TIME
        Answer 3: the quick brown fox, 快速的棕色狐狸.
    ");
    let stats = run_json(&rig, &["conversations", "stats", "--json"]);
    assert_eq!(
        (
            &stats["conversations"],
            &stats["messages"],
            &stats["requests"]
        ),
        (&json!(1), &json!(6), &json!(3))
    );
    insta::assert_snapshot!(without_numbers(&rig.screen(&["conversations", "stats"])), @"
    WHAT  COUNT
    conversations  N
    in the trash  N
    namespaces  N
    messages  N
    revisions of messages  N
    logged requests  N
    size of the database  N kB
    ");
}

#[test]
fn fork_keeps_messages_up_to_the_given_one() {
    let rig = rig();
    rig.task(&["first question"]);
    rig.task(&["-c", "second question"]);
    let original = rig.export();
    let messages = original["messages"].as_array().unwrap();
    let at = &messages[1]["message_id"].as_str().unwrap()[..8];
    let fork = run_json(
        &rig,
        &[
            "conversations",
            "fork",
            "--at",
            at,
            "--name",
            "Other way",
            "--json",
        ],
    );
    assert_eq!(
        (&fork["name"], &fork["messages"]),
        (&json!("Other way"), &json!(2))
    );
    assert_eq!(
        run_json(&rig, &["conversations", "current", "--json"])["id"],
        fork["id"],
        "it is the current one now"
    );
    rig.task(&["-c", "another second question"]);
    let exported = run_json(
        &rig,
        &["conversations", "export", fork["id"].as_str().unwrap()],
    );
    let forked = exported["messages"].as_array().unwrap();
    assert_eq!(forked[..2], messages[..2]);
    assert_eq!(
        (forked.len(), &forked[2]["content"]),
        (4, &json!("another second question"))
    );
    let unchanged = run_json(
        &rig,
        &["conversations", "export", original["id"].as_str().unwrap()],
    );
    assert_eq!(unchanged, original);
    assert!(
        run_rejected(&rig, &["conversations", "fork", "--at", "ffffffff"])
            .contains("no message `ffffffff`")
    );
    insta::assert_snapshot!(rig.screen(&["conversations", "fork", "--name", "Again"]), @"forked ID  Again");
}

#[test]
fn fork_session_leaves_the_original_unchanged() {
    let rig = rig();
    rig.task(&["first question"]);
    let original = rig.export();
    let ran = rig.task(&["-c", "--fork-session", "second question"]);
    let fork = ran.result()["conversation_id"].as_str().unwrap().to_owned();
    assert_ne!(json!(fork), original["id"]);
    let sent = rig
        .server
        .generation_requests()
        .pop()
        .unwrap()
        .json()
        .unwrap();
    assert!(
        sent.to_string().contains("first question"),
        "the model sees what was said before: {sent}"
    );
    let exported = run_json(&rig, &["conversations", "export", &fork]);
    assert_eq!(exported["messages"].as_array().unwrap().len(), 4);
    assert_eq!(
        exported["messages"][0], original["messages"][0],
        "with its ids"
    );
    let id = original["id"].as_str().unwrap();
    assert_eq!(run_json(&rig, &["conversations", "export", id]), original);
    // With an id, and without a conversation to copy.
    let again = rig.task(&["-r", id, "--fork-session", "third question"]);
    assert_ne!(again.result()["conversation_id"], original["id"]);
    insta::assert_snapshot!(rig.screen(&["run", "--fork-session", "x"]), @"
    -- errors
    haft: `--fork-session` copies a conversation; say which one with `-c` or `-r ID`
    -- exit 2
    ");
}

#[test]
fn backup_can_be_restored() {
    let rig = rig();
    rig.task(&["first question"]);
    let name = |index: usize| {
        run_json(&rig, &["conversations", "backup", "list", "--json"])[index]["name"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    insta::assert_snapshot!(rig.screen(&["conversations", "backup"]), @"HOME/data/backups/haft-000001-TIME-ID.db (SIZE)");
    rig.task(&["-c", "second question"]);
    assert_eq!(rig.export()["messages"].as_array().unwrap().len(), 4);
    let listed = run_json(&rig, &["conversations", "backup", "list", "--json"]);
    let made = listed.as_array().unwrap().len();
    assert!(run_ok(&rig, &["conversations", "backup", "list"]).contains(&name(made - 1)));
    insta::assert_snapshot!(rig.screen(&["conversations", "backup", "restore", "unknown"]), @"
    -- errors
    haft: there is no backup `unknown`; `haft conversations backup list` shows them
    -- exit 2
    ");
    run_ok(
        &rig,
        &["conversations", "backup", "restore", &name(made - 1)],
    );
    assert_eq!(rig.export()["messages"].as_array().unwrap().len(), 2);
    insta::assert_snapshot!(rig.screen(&["conversations", "backup", "restore", "newest"]), @"restored HOME/data/backups/haft-000002-TIME-replaced.db; the previous state is now the newest backup");
    assert_eq!(
        rig.export()["messages"].as_array().unwrap().len(),
        4,
        "what was replaced was kept"
    );
}

#[test]
fn export_all_writes_one_file_per_conversation() {
    let rig = rig();
    run_ok(&rig, &["conversations", "new", "--id", "one"]);
    run_ok(
        &rig,
        &[
            "conversations",
            "new",
            "--id",
            "two/../three",
            "--namespace",
            "other",
        ],
    );
    let folder = rig.project().join("exported");
    insta::assert_snapshot!(rig.screen(&["conversations", "export", "--all", "exported"]), @"exported 2 conversations to exported");
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "current_conversations.json",
            "namespaces.json",
            "one.json",
            "two%2f..%2fthree.json"
        ]
    );
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
    };
    let project = rig.project().display().to_string();
    assert_eq!(
        read("current_conversations.json"),
        json!({project: "one", "other": "two/../three"})
    );
    assert_eq!(read("one.json")["id"], "one");
}

#[test]
fn import_of_an_export_restores_everything() {
    let rig = rig();
    rig.task(&["first question"]);
    run_ok(
        &rig,
        &[
            "conversations",
            "new",
            "--id",
            "one",
            "--namespace",
            "other",
        ],
    );
    let folder = rig.project().join("exported");
    run_ok(
        &rig,
        &["conversations", "export", "--all", folder.to_str().unwrap()],
    );
    let exported = rig.export();

    let other = self::rig();
    let imported = run_json(
        &other,
        &[
            "conversations",
            "import",
            folder.to_str().unwrap(),
            "--json",
        ],
    );
    assert_eq!(imported.as_array().unwrap().len(), 2);
    assert!(
        imported
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["state"] == "new"),
        "{imported}"
    );
    let id = exported["id"].as_str().unwrap();
    assert_eq!(run_json(&other, &["conversations", "export", id]), exported);
    let current = run_json(
        &other,
        &["conversations", "current", "--namespace", "other", "--json"],
    );
    assert_eq!(current["id"], "one");
    let again = run_ok(
        &other,
        &["conversations", "import", folder.to_str().unwrap()],
    );
    insta::assert_snapshot!(rig.mask_text(&again), @"
    ID  NAME  MESSAGES  STATE  SKIPPED
    ID  first question  2  already there  -
    one  Conversation one  0  already there  -
    ");
    // The agent continues the imported conversation.
    let ran = other.task(&["-r", id, "second question"]);
    assert_eq!(ran.result()["outcome"], "completed");
    assert_eq!(other.server.generation_requests().len(), 1);
}

/// An imported conversation may have any id; no id leads out of an export's folder.
#[test]
fn export_of_odd_ids_stays_in_its_folder() {
    let rig = rig();
    rig.task(&["first question"]);
    let document = rig.export();
    let long = "x".repeat(3_000);
    let ids = [
        "../../x",
        "/abs",
        "a\u{0}b",
        "..",
        ".hidden",
        "a/../../b",
        "current",
        "namespaces",
        "a\nb",
        &long,
    ];
    fs::create_dir(rig.project().join("odd")).unwrap();
    for (number, id) in ids.iter().enumerate() {
        let mut document = document.clone();
        document["id"] = (*id).into();
        rig.write(&format!("odd/{number}.json"), document.to_string());
    }
    // An id that the store rejects is reported; the other files are imported.
    rig.run(&["conversations", "import", "odd"]);
    let listed = run_json(&rig, &["conversations", "list", "--all", "--json"]);
    assert!(
        listed.as_array().unwrap().len() >= ids.len() / 2,
        "{listed}"
    );
    run_ok(
        &rig,
        &["conversations", "export", "--all", "deep/er/exported"],
    );
    let names = |folder: &str| {
        let entries = fs::read_dir(rig.project().join(folder)).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (names("deep"), names("deep/er")),
        (vec!["er".to_owned()], vec!["exported".to_owned()])
    );
    let exported = names("deep/er/exported");
    assert!(
        exported.len() >= listed.as_array().unwrap().len(),
        "{exported:?}"
    );
    assert!(
        exported
            .iter()
            .all(|name| name.len() < 200 && !name.starts_with('.')),
        "{exported:?}"
    );
}

#[test]
fn import_of_other_programs_sessions_can_be_continued() {
    let fixtures = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../extensions/imports/fixtures"
    );
    for (name, file) in [
        ("claude-code", "input.jsonl"),
        ("codex", "input.jsonl"),
        ("openai-chat", "input.json"),
    ] {
        let rig = rig();
        let imported = run_json(
            &rig,
            &[
                "conversations",
                "import",
                &format!("{fixtures}/{name}/{file}"),
                "--json",
            ],
        );
        let id = imported[0]["id"].as_str().unwrap();
        // The strict server refuses what a real one would.
        let ran = rig.task(&["-r", id, "go on"]);
        assert_eq!(ran.code(), 0, "{name}: {}{}", ran.stdout(), ran.stderr());
        assert_eq!(rig.server.refusals().len(), 0, "{name}");
        let messages = imported[0]["messages"].as_u64().unwrap() as usize;
        assert_eq!(
            rig.export()["messages"].as_array().unwrap().len(),
            messages + 2,
            "{name}"
        );
    }
}

#[test]
fn import_names_bad_files_and_continues_with_others() {
    let rig = rig();
    rig.write(
        "bad.json",
        "{\"messages\": [{\"role\": \"robot\", \"content\": \"x\"}]}",
    );
    rig.write(
        "good.json",
        "[{\"role\": \"user\", \"content\": \"hello\"}]",
    );
    insta::assert_snapshot!(rig.screen(&["conversations", "import", "bad.json", "missing.json", "good.json"]), @"
    ID  NAME  MESSAGES  STATE  SKIPPED
    ID  hello  1  new  -
    -- errors
    haft: bad.json: message 1: unknown role `robot`
    haft: missing.json: No such file or directory (os error 2)
    -- exit 1
    ");
    insta::assert_snapshot!(rig.screen(&["conversations", "import", "--format", "word", "good.json"]), @"
    -- errors
    error: invalid value 'word' for '--format <FORMAT>': `word` is not a format; the formats are document, openai-chat, claude-code, codex, trajectory, codex-exec, pi, openhands, swe-agent, cline, gemini-cli, opencode, goose, kimi-cli, auto-coder, atif

    For more information, try '--help'.
    -- exit 2
    ");
}

#[test]
fn import_refuses_files_over_1_gib_before_reading_them() {
    let rig = rig();
    let large = fs::File::create(rig.project().join("large.json")).unwrap();
    // The sparse file takes no space on disk, but would take it in memory.
    large.set_len((1 << 30) + 1).unwrap();
    rig.write(
        "good.json",
        "[{\"role\": \"user\", \"content\": \"hello\"}]",
    );
    insta::assert_snapshot!(rig.screen(&["conversations", "import", "large.json", "good.json"]), @"
    ID  NAME  MESSAGES  STATE  SKIPPED
    ID  hello  1  new  -
    -- errors
    haft: large.json: it is larger than 1024 MiB
    -- exit 1
    ");
}

/// Runs and conversation commands with a store on a PostgreSQL server.
#[cfg(feature = "postgres")]
#[test]
fn postgres_stores_conversations_of_runs() {
    let Ok(url) = std::env::var("HAFT_POSTGRES") else {
        println!("skipped: HAFT_POSTGRES does not name a PostgreSQL server");
        return;
    };
    let rig = rig();
    let on_server = |arguments: &[&str]| {
        let mut command = rig.command(arguments);
        command_output(command.env("HAFT_STORE__URL", &url))
    };
    let run = [
        "run",
        "--output-format",
        "json",
        "--permission-mode",
        "yolo",
    ];
    let first: Value =
        serde_json::from_str(&on_server(&[&run[..], &["first question"]].concat())).unwrap();
    on_server(&[&run[..], &["-c", "second question"]].concat());
    let id = first["conversation_id"].as_str().unwrap();
    let exported: Value =
        serde_json::from_str(&on_server(&["conversations", "export", id])).unwrap();
    assert_eq!(exported["messages"].as_array().unwrap().len(), 4);
    assert!(on_server(&["conversations", "search", "second"]).contains("second question"));
    assert!(
        on_server(&["doctor"]).contains("server"),
        "the server is looked at"
    );
    assert!(
        !rig.home().join("data/conversations.db").exists(),
        "nothing is kept here"
    );
    let shown = on_server(&[
        "config",
        "show",
        "--set",
        "store.url=postgres://me:secret@host/db",
    ]);
    assert!(
        shown.contains("me@host/db") && !shown.contains("secret"),
        "{shown}"
    );
}

/// A project is identified by its remote, wherever it is checked out; conversations that were
/// stored under a path before are still found there.
#[cfg(feature = "postgres")]
#[test]
fn postgres_finds_a_project_by_its_remote() {
    let Ok(url) = std::env::var("HAFT_POSTGRES") else {
        println!("skipped: HAFT_POSTGRES does not name a PostgreSQL server");
        return;
    };
    let one = rig();
    let other = rig();
    let on_server = |rig: &Rig, arguments: &[&str]| {
        let mut command = rig.command(arguments);
        command_output(command.env("HAFT_STORE__URL", &url))
    };
    let ids = |rig: &Rig, more: &[&str]| {
        let listed = on_server(rig, &[&["conversations", "list", "--json"], more].concat());
        let rows: Vec<Value> = serde_json::from_str(&listed).unwrap();
        rows.iter()
            .map(|row| row["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let run = [
        "run",
        "--output-format",
        "json",
        "--permission-mode",
        "yolo",
    ];
    let said = |rig: &Rig, more: &[&str]| {
        let told: Value =
            serde_json::from_str(&on_server(rig, &[&run[..], more].concat())).unwrap();
        told["conversation_id"].as_str().unwrap().to_owned()
    };
    // Like an older version that knew only paths: for another project a path is just a name.
    let path = one.project().canonicalize().unwrap().display().to_string();
    let before = on_server(
        &other,
        &[
            "conversations",
            "new",
            "from before",
            "--namespace",
            &path,
            "--json",
        ],
    );
    let before = serde_json::from_str::<Value>(&before).unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let unique = format!("team-{}", std::process::id());
    for (rig, remote) in [
        (&one, format!("git@example.com:{unique}/x.git")),
        (&other, format!("https://me:secret@example.com/{unique}/x")),
    ] {
        fs::create_dir_all(rig.project().join(".git")).unwrap();
        rig.write(
            ".git/config",
            format!("[remote \"origin\"]\n\turl = {remote}\n"),
        );
    }
    let first = said(&one, &["first question"]);
    assert_eq!(
        ids(&other, &[]),
        std::slice::from_ref(&first),
        "the other checkout has it"
    );
    assert_eq!(
        ids(&one, &[]),
        [first.clone(), before.clone()],
        "and what was there stays"
    );
    assert!(on_server(&one, &["conversations", "show", &before]).contains("from before"));
    assert_eq!(
        said(&other, &["-c", "second question"]),
        first,
        "and goes on with it"
    );
    assert!(on_server(&other, &["conversations", "search", "first"]).contains("first question"));
    let names = on_server(&one, &["conversations", "namespaces"]);
    assert!(
        names.contains(&format!("example.com/{unique}/x")) && !names.contains("secret"),
        "{names}"
    );
    assert_eq!(
        ids(&one, &["--namespace", &format!("example.com/{unique}/x")]),
        [first]
    );
}

#[cfg(feature = "postgres")]
fn command_output(command: &mut std::process::Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[cfg(not(feature = "postgres"))]
#[test]
fn a_server_without_the_feature_is_a_clear_mistake() {
    let told = run_rejected(
        &rig(),
        &[
            "conversations",
            "list",
            "--set",
            "store.url=postgres://host/db",
        ],
    );
    assert!(told.contains("--features postgres"), "{told}");
}
