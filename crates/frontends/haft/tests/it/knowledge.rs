//! State that is kept beside the messages: useful information, notes, marks, and recalled messages.

use haft_testkit::{Reply, Script, SeenRole};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{CLASSIC, Ran, Rig};

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::replies(replies).unwrap()).with(CLASSIC)
}

/// Keeps home and project, and replaces the model's replies.
fn with_replies(rig: Rig, replies: impl IntoIterator<Item = Reply>) -> Rig {
    rig.with_script(Script::replies(replies).unwrap(), Api::Anthropic)
}

/// Returns all texts of the user and of tools in a request, counted from 0.
fn user_and_tool_texts(rig: &Rig, request: usize) -> String {
    let seen = rig.server.generation_requests()[request].decode().unwrap();
    [seen.texts(SeenRole::User), seen.texts(SeenRole::Tool)]
        .concat()
        .join("\n")
}

/// Returns the reminder with this heading in a request.
fn find_reminder(rig: &Rig, request: usize, heading: &str) -> Option<String> {
    let seen = rig.server.generation_requests()[request].decode().unwrap();
    let inside = |text: &str| {
        Some(
            text.strip_prefix("<system-reminder>\n")?
                .strip_suffix("\n</system-reminder>")?
                .to_owned(),
        )
    };
    seen.texts(SeenRole::User)
        .into_iter()
        .filter_map(inside)
        .find(|text| text.starts_with(heading))
}

fn results(ran: &Ran) -> Vec<Value> {
    ran.events()
        .into_iter()
        .filter(|event| event["type"] == "tool_result")
        .collect()
}

/// Returns the short id of the first message of the conversation for which `fits` is true.
fn short_id_of(rig: &Rig, fits: impl Fn(&Value) -> bool) -> String {
    let export = rig.export();
    let message = export["messages"]
        .as_array()
        .unwrap()
        .iter()
        .find(|message| fits(message))
        .expect("a message");
    message["message_id"].as_str().unwrap()[..8].to_owned()
}

const USEFUL: &str = "## Useful Information";
const NOTES: &str = "## Folder Notes";

fn useful_info_add_call(start: u32, end: u32) -> Reply {
    Reply::call(
        "useful_info_add",
        json!({"path": "a.txt", "start_line": start, "end_line": end, "description": format!("from {start}")}),
    )
}

#[test]
fn useful_info_is_merged_read_from_disk_and_deleted() {
    let rig = rig([
        useful_info_add_call(1, 2),
        useful_info_add_call(3, 3),
        Reply::call("useful_info_list", json!({})),
        Reply::text("Kept."),
    ]);
    rig.write("a.txt", "one\ntwo\nthree\nfour\n");
    let ran = rig.task(&["keep it"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(find_reminder(&rig, 0, USEFUL), None);
    let shown = find_reminder(&rig, 1, USEFUL).expect("shown from the next request on");
    assert!(
        shown.contains("### `a.txt` lines 1-2: from 1\n\n```\none\ntwo\n```"),
        "{shown}"
    );
    let listed = results(&ran)[2]["text"].as_str().unwrap().to_owned();
    assert_eq!(listed, "1. `a.txt` lines 1-3: from 1; from 3");

    // Another process, and a file that is first changed and then deleted.
    rig.write("a.txt", "uno\ndos\ntres\n");
    let rig = with_replies(rig, [Reply::text("Seen."), Reply::text("Gone.")]);
    rig.task(&["-c", "look"]);
    let shown = find_reminder(&rig, 0, USEFUL).unwrap();
    assert!(
        shown.contains("uno\ndos\ntres") && !shown.contains("two"),
        "{shown}"
    );
    std::fs::remove_file(rig.project().join("a.txt")).unwrap();
    rig.task(&["-c", "look again"]);
    let shown = find_reminder(&rig, 1, USEFUL).unwrap();
    assert!(
        shown.contains("(cannot be read now: the file does not exist)"),
        "{shown}"
    );

    let delete = || Reply::call("useful_info_delete", json!({"number": 1}));
    let rig = with_replies(rig, [delete(), delete(), Reply::text("Deleted.")]);
    let ran = rig.task(&["-c", "delete it"]);
    assert_eq!(find_reminder(&rig, 1, USEFUL), None);
    assert_eq!(results(&ran)[1]["error"]["code"], "not_found");
    assert_eq!(rig.run(&["useful", "list", "--json"]).json(), json!([]));
}

#[test]
fn notes_come_with_reads_and_stay_with_the_project() {
    let note =
        |path: &str, note: &str| Reply::call("note_add", json!({"path": path, "note": note}));
    let script = [
        note("src", "run `make test` here"),
        note("src/a.txt", "generated"),
        Reply::text("Noted."),
    ];
    let rig = rig(script);
    std::fs::create_dir(rig.project().join("src")).unwrap();
    rig.write("src/a.txt", "one\n");
    assert_eq!(rig.task(&["note it"]).code(), 0);
    assert_eq!(
        find_reminder(&rig, 2, NOTES),
        None,
        "no file below was read"
    );

    // Another conversation of the project.
    let read = Reply::call("read_file", json!({"path": "src/a.txt"}));
    let update = Reply::call(
        "note_update",
        json!({"note_id": "n1", "note": "run `just test` here"}),
    );
    let delete = Reply::call("note_delete", json!({"note_id": "n1"}));
    let rig = with_replies(rig, [read, update, delete, Reply::text("Done.")]);
    let ran = rig.task(&["read it"]);
    let text = results(&ran)[0]["text"].as_str().unwrap().to_owned();
    assert_eq!(text, "1\tone\n[Notes on `src/a.txt`:]\n- n2: generated");
    assert_eq!(
        find_reminder(&rig, 1, NOTES).unwrap(),
        format!("{NOTES}\n\n### `src`\n\n- n1: run `make test` here")
    );
    assert_eq!(
        find_reminder(&rig, 2, NOTES).unwrap(),
        format!("{NOTES}\n\n### `src`\n\n- n1: run `just test` here")
    );
    assert_eq!(find_reminder(&rig, 3, NOTES), None);

    let listed = rig.run(&["notes", "list", "--json"]).json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(
        (&listed[0]["id"], &listed[0]["path"]),
        (&json!("n2"), &json!("src/a.txt"))
    );
}

#[test]
fn marked_message_is_left_out_of_later_requests() {
    let rig = rig([
        Reply::call("read_file", json!({"path": "secret.txt"})),
        Reply::text("I read it."),
    ]);
    // At the end, because the list shows the first words.
    rig.write(
        "secret.txt",
        "nothing here\n".repeat(30) + "the word is xyzzy\n",
    );
    rig.task(&["read it"]);
    let id = short_id_of(&rig, |message| message["role"] == "tool");

    let rig = with_replies(
        rig,
        [
            Reply::call("conversation_message_ids_read", json!({})),
            Reply::call(
                "conversation_message_ids_write",
                json!({"message_ids": format!(" {id} , deadbeef"), "action": "append"}),
            ),
            Reply::text("Marked."),
        ],
    );
    let ran = rig.task(&["-c", "forget it"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let listed = results(&ran)[0]["text"].as_str().unwrap().to_owned();
    assert!(
        listed
            .lines()
            .any(|line| line.starts_with(&format!("{id} tool read_file ("))),
        "{listed}"
    );
    let report = &results(&ran)[1];
    assert_eq!(report["status"], "partial", "{report}");
    assert!(
        report["text"]
            .as_str()
            .unwrap()
            .starts_with("1 marked, 0 already marked, 1 unknown."),
        "{report}"
    );
    assert!(
        user_and_tool_texts(&rig, 1).contains("the word is xyzzy"),
        "still sent when it was marked"
    );
    let after = rig.server.generation_requests()[2].decode().unwrap();
    assert!(
        !user_and_tool_texts(&rig, 2).contains("the word is xyzzy"),
        "{}",
        user_and_tool_texts(&rig, 2)
    );
    assert_eq!(
        after.count_tool_results(),
        2,
        "the two calls of this round; the block of the read is gone"
    );

    let rig = with_replies(
        rig,
        [
            Reply::call(
                "conversation_message_ids_write",
                json!({"message_ids": id, "action": "delete"}),
            ),
            Reply::text("Back."),
        ],
    );
    rig.task(&["-c", "go on"]);
    assert!(
        !user_and_tool_texts(&rig, 0).contains("the word is xyzzy"),
        "a restart changes nothing"
    );
    assert!(
        user_and_tool_texts(&rig, 1).contains("the word is xyzzy"),
        "taken off the list it is sent again"
    );
    assert!(
        rig.server.refusals().is_empty(),
        "{:?}",
        rig.server.refusals()
    );
}

#[test]
fn recall_returns_content_that_later_rounds_omit() {
    let rig = rig([
        Reply::call("read_file", json!({"path": "long.txt"})),
        Reply::text("Long."),
    ]);
    let lines: Vec<_> = (1..=800)
        .map(|line| format!("text {line} of the file"))
        .collect();
    rig.write("long.txt", lines.join("\n"));
    rig.task(&["read it"]);
    std::fs::remove_file(rig.project().join("long.txt")).unwrap();
    let id = short_id_of(&rig, |message| message["role"] == "tool");

    let recall = |id: &str| Reply::call("recall", json!({"message_id": id}));
    let rig = with_replies(
        rig,
        [recall(&id), recall("00000000"), Reply::text("I see.")],
    );
    let ran = rig.task(&["-c", "what was on line 700?"]);
    assert!(
        !user_and_tool_texts(&rig, 0).contains("text 700 of the file"),
        "compressed in the next round"
    );
    let recalled = results(&ran)[0]["text"].as_str().unwrap().to_owned();
    assert!(recalled.starts_with(&format!(
        "[Message {id}: the result of read_file]\n1\ttext 1 of the file\n"
    )));
    assert!(
        recalled.contains("\n700\ttext 700 of the file\n")
            && recalled.ends_with("\n800\ttext 800 of the file")
    );
    assert!(user_and_tool_texts(&rig, 1).contains("\n700\ttext 700 of the file\n"));
    assert_eq!(results(&ran)[1]["error"]["code"], "not_found");
}

#[test]
fn useful_command_keeps_ranges_in_view() {
    let rig = rig([Reply::text("Hello."), Reply::text("I see it.")]);
    rig.write("a.txt", "one\ntwo\nthree\n");
    assert_eq!(
        rig.run(&["useful", "list"]).code(),
        2,
        "there is no conversation yet"
    );
    rig.task(&["hi"]);
    let empty = rig.run(&["useful", "list"]).stdout();
    assert!(empty.starts_with("Nothing is kept in view."), "{empty}");
    let added = rig.run(&["useful", "add", "a.txt", "2-9", "the middle"]);
    assert_eq!(
        (added.code(), added.stdout().as_str()),
        (0, "In view: 1. `a.txt` lines 2-3: the middle\n")
    );
    let merged = rig
        .run(&["useful", "add", "a.txt", "1", "the start", "--json"])
        .json();
    assert_eq!(
        (&merged["merged"], &merged["item"]["start_line"]),
        (&json!(1), &json!(1))
    );
    let table = rig.run(&["useful", "list"]).stdout();
    assert!(
        table.starts_with("NUMBER") && table.contains("a.txt    1-3  the middle; the start"),
        "{table}"
    );
    rig.task(&["-c", "look"]);
    assert!(
        find_reminder(&rig, 1, USEFUL)
            .unwrap()
            .contains("one\ntwo\nthree")
    );

    let id = rig.export()["id"].as_str().unwrap().to_owned();
    let removed = rig.run(&["useful", "remove", "1", "--conversation", &id]);
    assert_eq!(removed.code(), 0, "{}", removed.stderr());
    assert_eq!(rig.run(&["useful", "list", "--json"]).json(), json!([]));
    for wrong in [
        &["useful", "remove", "1"][..],
        &["useful", "add", "missing.txt", "1", "why"],
        &["useful", "add", "a.txt", "9", "why"],
        &["useful", "add", "a.txt", "3-1", "why"],
        &["useful", "add", "a.txt", "1", " "],
        &["useful", "list", "--conversation", "nobody"],
    ] {
        let ran = rig.run(wrong);
        assert_eq!(
            (ran.code(), ran.stdout().as_str()),
            (2, ""),
            "{wrong:?}: {}",
            ran.stderr()
        );
    }
}

#[test]
fn notes_command_adds_lists_and_removes_notes() {
    let rig = rig([Reply::text("Hello.")]);
    std::fs::create_dir_all(rig.project().join("src/deep")).unwrap();
    assert!(
        rig.run(&["notes", "list"])
            .stdout()
            .starts_with("No notes yet.")
    );
    let added = rig.run(&["notes", "add", "src", "run\nmake test"]);
    assert_eq!(
        (added.code(), added.stdout().as_str()),
        (0, "Added note n1 `src`: run make test\n")
    );
    assert_eq!(
        rig.run(&["notes", "add", ".", "the whole", "--json"])
            .json()["path"],
        "."
    );
    let table = rig.run(&["notes", "list"]).stdout();
    assert!(
        table.starts_with("ID") && table.contains("n1  src   run make test"),
        "{table}"
    );
    let shown = rig.run(&["notes", "show", "src/deep"]).stdout();
    assert_eq!(shown, "n1 `src`: run make test\nn2 `.`: the whole\n");
    assert_eq!(
        rig.run(&["notes", "show", "src", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        2
    );
    std::fs::remove_dir_all(rig.project().join("src")).unwrap();
    assert!(
        rig.run(&["notes", "show", "src"])
            .stdout()
            .contains("n1 `src`"),
        "what is gone may have notes"
    );
    assert_eq!(
        rig.run(&["notes", "remove", "n1"]).stdout(),
        "Deleted note n1 `src`: run make test\n"
    );
    for wrong in [
        &["notes", "remove", "n1"][..],
        &["notes", "add", "missing", "text"],
        &["notes", "add", "/etc", "text"],
        &["notes", "add", ".", " "],
        &["notes", "show", "/etc"],
    ] {
        let ran = rig.run(wrong);
        assert_eq!(
            (ran.code(), ran.stdout().as_str()),
            (2, ""),
            "{wrong:?}: {}",
            ran.stderr()
        );
    }
    assert_eq!(
        rig.run(&["notes", "list", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

/// Instructions of a trusted project import files of the project, but none of the user's.
#[test]
fn imports_stay_in_the_project() {
    let secrets = tempfile::tempdir().unwrap();
    std::fs::write(secrets.path().join("key.md"), "hunter22").unwrap();
    let secret = secrets.path().join("key.md").display().to_string();
    let rig = Rig::untrusted(
        Api::Anthropic,
        Script::replies([Reply::text("ok")]).unwrap(),
    );
    let config = rig.home().join("config.toml").display().to_string();
    rig.write(
        "AGENTS.md",
        format!("@{secret} @/proc/self/environ @/etc/passwd @{config} @link.md @//{secret} and @style.md"),
    );
    rig.write(
        "CLAUDE.md",
        format!("Also @./../..{}{secret}", "/..".repeat(9)),
    );
    rig.write("style.md", "Tabs, never spaces.");
    std::os::unix::fs::symlink(&secret, rig.project().join("link.md")).unwrap();
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let ran = rig.task(&["go"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let sent = user_and_tool_texts(&rig, 0);
    assert!(sent.contains("Tabs, never spaces."), "{sent}");
    for planted in ["hunter22", "root:x:0", "HAFT_HOME=", "[providers.mock]"] {
        assert!(!sent.contains(planted), "{planted} was sent: {sent}");
    }
}
