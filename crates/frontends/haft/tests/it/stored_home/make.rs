//! Makes the stored home with a given binary: one conversation for each kind of data that is kept
//! between two runs.
//!
//! Do not make the fixture anew to add data: content written by the older version would be lost.
//! Add another folder beside it.

use std::path::PathBuf;
use std::sync::Arc;

use haft_store::{Revision, SqliteStore, Store, StoreConfig};
use haft_testkit::support::{FakeClock, SHELL_MCP_SERVER};
use haft_testkit::{Reply, Script, ScriptCall, ScriptedServer, When};
use haft_types::{ConversationId, Part, Usage};
use serde_json::{Value, json};

use super::home::{ANTHROPIC, CHAT, GEMINI, REACT, RESPONSES, StoredHome, XML, pack};
use super::observe::Observed;
use super::{
    COMPACTION_SETTINGS, EXECUTE_VIEW_SETTINGS, EXPECTED, HOME, PRUNING_SETTINGS,
    REMINDER_SETTINGS, fixture_path,
};
use crate::terminal::Terminal;

/// Writes the fixture anew. `HAFT_FIXTURE_BINARY` names the binary that makes it and whose outputs
/// are expected of later versions.
#[test]
#[ignore = "makes the fixture; the binary must be the one of the release it is named after"]
fn make_fixture() {
    let binary =
        std::env::var_os("HAFT_FIXTURE_BINARY").expect("`HAFT_FIXTURE_BINARY` names a binary");
    let home = StoredHome::claim_empty(PathBuf::from(&binary)).expect("a place to make it");
    let steps: [fn(&StoredHome); 18] = [
        write_project,
        make_finished,
        make_interrupted,
        make_edited,
        make_marked,
        make_compacted,
        make_trashed,
        make_revised,
        make_parent,
        make_planned,
        make_background,
        make_cleared,
        make_carried,
        make_without_summary,
        make_described,
        make_text_protocols,
        make_other_data,
        // Last, so that the database is in the state that a kill leaves.
        make_cut,
    ];
    for step in steps {
        step(&home);
    }
    pack(&fixture_path(HOME)).unwrap();
    // The outputs are taken from the unpacked home, as later versions find it.
    drop(home);
    let home = StoredHome::from_fixture_for(PathBuf::from(binary)).unwrap();
    Observed::from_home(&home).save(&fixture_path(EXPECTED));
}

/// Updates the expected outputs for a version that changes them on purpose. Sent and stored content
/// must not differ.
#[test]
#[ignore = "writes anew what is expected of the fixture"]
fn update_expected_outputs() {
    let binary =
        std::env::var_os("HAFT_FIXTURE_BINARY").expect("`HAFT_FIXTURE_BINARY` names a binary");
    let home = StoredHome::from_fixture_for(PathBuf::from(binary)).expect("a place to open it");
    let observed = Observed::from_home(&home);
    let differences = observed.differences(&Observed::load(&fixture_path(EXPECTED)));
    let never = |line: &&String| {
        line.starts_with("`context render") || line.starts_with("`conversations export")
    };
    let lost: Vec<_> = differences.iter().filter(never).collect();
    assert!(lost.is_empty(), "these never change: {lost:#?}");
    observed.save(&fixture_path(EXPECTED));
}

fn replies_script(replies: impl IntoIterator<Item = Reply>) -> Script {
    Script::replies(replies).unwrap()
}

fn call(name: &str, arguments: Value) -> Reply {
    Reply::call(name, arguments)
}

fn read_call(path: &str) -> Reply {
    call("read_file", json!({"path": path}))
}

fn command_call(line: &str) -> Reply {
    call(
        "execute_command",
        json!({"command": line, "requires_approval": false}),
    )
}

fn todo_call(first: &str, second: &str) -> Reply {
    call(
        "todo_write",
        json!({"todos": [{"content": "count the stripes", "status": first}, {"content": "write them down", "status": second}]}),
    )
}

/// Creates a conversation with this id, and a model for its next runs.
fn begin_conversation(
    home: &StoredHome,
    id: &str,
    replies: impl IntoIterator<Item = Reply>,
) -> ScriptedServer {
    let server = home.serve_script(replies_script(replies));
    home.run_successfully(&["conversations", "new", &format!("The {id} one"), "--id", id]);
    server
}

fn assert_no_refusals(server: &ScriptedServer) {
    assert!(server.refusals().is_empty(), "{:?}", server.refusals());
}

/// Returns the messages of a conversation.
fn messages(home: &StoredHome, id: &str) -> Vec<Value> {
    home.run_successfully(&["conversations", "export", id])
        .json()["messages"]
        .as_array()
        .unwrap()
        .clone()
}

fn short_id(message: &Value) -> &str {
    &message["message_id"].as_str().unwrap()[..8]
}

fn write_project(home: &StoredHome) {
    home.write("AGENTS.md", "Count twice.\n");
    home.write("server.sh", SHELL_MCP_SERVER);
    home.write("stripes.txt", "one stripe\ntwo stripes\nthree stripes\n");
    home.write("b.txt", "two\n");
    home.write(
        "docs/zebra.md",
        "# Zebras\n\nA zebra is counted by its stripes.\n",
    );
    home.write("docs/lion.md", "# Lions\n\nLions sleep.\n");
    for name in ["alpha", "beta", "gamma", "delta"] {
        let lines: String = (0..300)
            .map(|line| format!("{name} line {line} says something\n"))
            .collect();
        home.write(&format!("{name}.txt"), &lines);
    }
    home.write(
        ".haft/agents/scout.md",
        &format!(
            "---\nname: scout\ndescription: Looks closely\nmodel: {CHAT}\ntools: Read\n---\nYou look very closely.\n"
        ),
    );
    home.write(
        ".haft/workflows/mend.yaml",
        "description: Look, then mend\nsteps:\n  - name: look\n    prompt: LOOK at it.\n  - name: mend\n    needs: [look]\n    \
         prompt: \"MEND it: {{ steps.look.output }}\"\n",
    );
    home.serve_script(replies_script([]));
    home.run_successfully(&["trust"]);
    // Imitates a fetch, which would need git.
    let library = home
        .home()
        .join("data/libraries/repository/github.com/pallets/flask");
    std::fs::create_dir_all(&library).unwrap();
    std::fs::write(library.join("quick.md"), "Flask in brief.\n").unwrap();
    home.run_successfully(&["lib", "add", "flask"]);
}

/// Several rounds with tools, a TODO list, useful information, notes, file versions with an undo
/// and a redo, a long output.
fn make_finished(home: &StoredHome) {
    let diff = "<<<<<<< SEARCH\none stripe\n=======\n1 stripe\n>>>>>>> REPLACE";
    let useful = json!({"path": "stripes.txt", "start_line": 1, "end_line": 2, "description": "the first stripes"});
    let look = Reply::calls([
        ScriptCall::new("list_files", json!({"path": "."})),
        ScriptCall::new("read_file", json!({"path": "stripes.txt"})),
        ScriptCall::new("read_file", json!({"path": "missing.txt"})),
    ]);
    let server = begin_conversation(
        home,
        "finished",
        [
            look.with_thinking("First I look. ✓")
                .with_text("I'll look."),
            todo_call("in_progress", "pending"),
            call(
                "write_to_file",
                json!({"path": "out/new.txt", "content": "three\n"}),
            ),
            call(
                "replace_in_file",
                json!({"path": "stripes.txt", "diff": diff}),
            ),
            call("useful_info_add", useful),
            call(
                "note_add",
                json!({"path": "docs", "note": "zebras before lions"}),
            ),
            command_call("sed -i s/two/zwei/ b.txt && seq 1 4000"),
            // With open items an answer would not end the turn.
            todo_call("completed", "completed"),
            Reply::text("Counted: **three**."),
            read_call("docs/zebra.md"),
            Reply::text("By its stripes."),
        ],
    );
    home.task(
        "finished",
        &["-m", ANTHROPIC, "count the stripes of @stripes.txt"],
    );
    home.task("finished", &["-m", ANTHROPIC, "how is a zebra counted?"]);
    home.run_successfully(&["undo", "finished"]);
    home.run_successfully(&["redo", "finished"]);
    assert_no_refusals(&server);
    // This conversation was not given the tools of the server; later ones are.
    home.run_successfully(&["mcp", "test", "shell"]);
}

/// A command was started, and its outcome is unknown.
fn make_interrupted(home: &StoredHome) {
    let replies = [
        Reply::text("Ready."),
        command_call("echo ran >> effects.txt; touch begun; sleep 600"),
        Reply::text("never given"),
    ];
    let server = begin_conversation(home, "interrupted", replies);
    home.task("interrupted", &["-m", RESPONSES, "are you ready?"]);
    let begun = home.project().join("begun");
    home.kill_when("interrupted", &["-m", RESPONSES, "do it"], || {
        begun.exists()
    });
    assert_no_refusals(&server);
}

/// A request was sent, and no reply came.
fn make_cut(home: &StoredHome) {
    let silent = Reply {
        delay_ms: 600_000,
        ..Reply::text("never given")
    };
    let list = call("list_files", json!({"path": "docs"}));
    let server = begin_conversation(
        home,
        "cut",
        [list.with_thinking("A listing will do."), silent],
    );
    home.kill_when("cut", &["-m", CHAT, "what documents are there?"], || {
        server.generation_requests().len() == 2
    });
    assert_no_refusals(&server);
}

/// Every kind of context edit, one of them undone, and a request after them.
fn make_edited(home: &StoredHome) {
    let replies = [
        Reply::calls(
            ["alpha.txt", "beta.txt"]
                .map(|path| ScriptCall::new("read_file", json!({"path": path}))),
        ),
        Reply::text("Both are read."),
        read_call("gamma.txt"),
        Reply::text("Read as well."),
        read_call("delta.txt"),
        Reply::text("And that."),
        Reply::text("So it is."),
    ];
    let server = begin_conversation(home, "edited", replies);
    for words in ["read alpha and beta", "read gamma", "read delta"] {
        home.task("edited", &["-m", GEMINI, words]);
    }
    let messages = messages(home, "edited");
    let edit = |arguments: &[&str]| {
        home.run_successfully(
            &[
                &["context", "edit"],
                arguments,
                &["--conversation", "edited", "-m", GEMINI],
            ]
            .concat(),
        );
    };
    edit(&["pin", short_id(&messages[2])]);
    edit(&["mask", short_id(&messages[3])]);
    let range = format!("{}..{}", short_id(&messages[5]), short_id(&messages[7]));
    edit(&["summarise", &range, "--text", "Gamma has 300 lines."]);
    edit(&["drop", short_id(&messages[9])]);
    edit(&["drop", short_id(&messages[0])]);
    edit(&["undo"]);
    home.task("edited", &["-m", GEMINI, "and now?"]);
    // Not sent yet.
    edit(&["mask", short_id(&messages[2])]);
    assert_no_refusals(&server);
}

/// The model itself has hidden a result.
fn make_marked(home: &StoredHome) {
    let server = begin_conversation(
        home,
        "marked",
        [read_call("alpha.txt"), Reply::text("I read it.")],
    );
    home.task("marked", &["-m", CHAT, "read alpha"]);
    assert_no_refusals(&server);
    let messages = messages(home, "marked");
    let ids = json!({"message_ids": short_id(&messages[2]), "action": "append"});
    let server = home.serve_script(replies_script([
        call("conversation_message_ids_write", ids),
        Reply::text("Forgotten."),
    ]));
    home.task("marked", &["-m", CHAT, "forget it"]);
    assert_no_refusals(&server);
}

fn summary_reply(reply: Reply) -> Reply {
    Reply {
        times: Some(99),
        ..reply
    }
    .when(When {
        last_contains: Some("The session to be archived".into()),
        ..When::default()
    })
}

/// Older rounds behind a summary, a fork of that conversation, and a fork from the middle of one.
fn make_compacted(home: &StoredHome) {
    let replies = [
        summary_reply(Reply::summary("Two files were read.")),
        read_call("alpha.txt"),
        Reply::text("One."),
        read_call("beta.txt"),
        Reply::text("Two."),
        Reply::text("Three."),
        Reply::text("Four."),
        Reply::text("Five, in the fork."),
        Reply::text("Another end."),
    ];
    let server = begin_conversation(home, "compacted", replies);
    for words in ["one: you must never touch Cargo.lock", "two", "three"] {
        home.task("compacted", &["-m", ANTHROPIC, words]);
    }
    home.run_successfully(&[
        "context",
        "compact",
        "compacted",
        "--set",
        "context.keep_rounds=1",
    ]);
    home.task("compacted", &["-m", ANTHROPIC, "four"]);
    home.run_successfully(&[
        "conversations",
        "fork",
        "compacted",
        "--new-id",
        "forked",
        "--name",
        "The forked one",
    ]);
    home.task("forked", &["-m", ANTHROPIC, "five"]);
    let at = messages(home, "finished");
    let at = at
        .iter()
        .rfind(|message| message["content"] == "how is a zebra counted?")
        .unwrap();
    home.run_successfully(&[
        "conversations",
        "fork",
        "finished",
        "--at",
        short_id(at),
        "--new-id",
        "branched",
    ]);
    home.task("branched", &["-m", ANTHROPIC]);
    assert_no_refusals(&server);
}

fn make_trashed(home: &StoredHome) {
    let server = begin_conversation(home, "trashed", [Reply::text("Nobody needs this.")]);
    home.task("trashed", &["-m", GEMINI, "say something superfluous"]);
    home.run_successfully(&["conversations", "delete", "trashed"]);
    assert_no_refusals(&server);
}

/// A message whose newest revision differs from the first one. No command makes such a message, so
/// it is written through the store.
fn make_revised(home: &StoredHome) {
    let server = begin_conversation(
        home,
        "revised",
        [
            Reply::text("The first version."),
            Reply::text("The second."),
        ],
    );
    home.task("revised", &["-m", RESPONSES, "write a version"]);
    let database = home.home().join("data/conversations.db");
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = SqliteStore::open(
            &database,
            &StoreConfig::default(),
            Arc::new(FakeClock::default()),
        )
        .unwrap();
        let id = ConversationId::new("revised");
        let message = store.messages(&id).await.unwrap()[1].message_id;
        let revision = Revision {
            content: Some(vec![Part::from_text("The revised version.")]),
            ..Revision::default()
        };
        let _lock = store.lock(&id).await.unwrap();
        store.revise_message(&id, message, revision).await.unwrap();
        store.flush().await.unwrap();
    });
    home.task("revised", &["-m", RESPONSES, "and another"]);
    assert_no_refusals(&server);
}

/// A sub-agent with a conversation of its own.
fn make_parent(home: &StoredHome) {
    let start = call(
        "run_named_subagents",
        json!({"subagents": "- {name: scout, task: Look at b.txt.}"}),
    );
    let of = |model: &str, results: usize, reply: Reply| {
        let model = model.split_once('/').unwrap().1.to_owned();
        reply.when(When {
            model: Some(model),
            tool_results: Some(results),
            ..When::default()
        })
    };
    let replies = [
        of(ANTHROPIC, 0, start),
        of(ANTHROPIC, 1, Reply::text("The scout has looked.")),
        of(CHAT, 0, read_call("b.txt")),
        of(CHAT, 1, Reply::text("It says zwei.")),
    ];
    let server = begin_conversation(home, "parent", replies);
    home.task("parent", &["-m", ANTHROPIC, "have b.txt looked at"]);
    assert_no_refusals(&server);
}

/// Plan mode started at a terminal in the middle of a conversation, and the prompts typed there.
fn make_planned(home: &StoredHome) {
    let server = begin_conversation(
        home,
        "planned",
        ["Hello.", "I would write plan.txt."].map(Reply::text),
    );
    let mut terminal =
        Terminal::start_command(&home.command(&["-r", "planned", "-m", RESPONSES]), (90, 24));
    let say = |terminal: &mut Terminal, words: &str, answer: &str| {
        terminal.press(&format!("{words}\r"));
        terminal.until_text(answer);
        terminal.until_idle();
    };
    terminal.until_text("> ");
    say(&mut terminal, "hello there", "Hello.");
    terminal.press("\u{1b}[Z\u{1b}[Z\u{1b}[Z");
    terminal.until_text("plan: the model reads");
    say(&mut terminal, "make a plan", "I would write plan.txt.");
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
    assert_no_refusals(&server);
}

/// A task that still ran when its run ended, which is not reported to the model yet.
fn make_background(home: &StoredHome) {
    let start = call(
        "background_task",
        json!({"action": "start", "command": "sleep 600"}),
    );
    let server = begin_conversation(home, "background", [start, Reply::text("Started.")]);
    home.task("background", &["-m", CHAT, "start a server"]);
    assert_no_refusals(&server);
}

/// Old results cleared at once, more than necessary, and newer results after them.
fn make_cleared(home: &StoredHome) {
    let names = ["alpha.txt", "beta.txt", "gamma.txt", "delta.txt"];
    let first = names.into_iter().chain(names).map(read_call);
    let server = begin_conversation(
        home,
        "cleared",
        first.chain([
            Reply::text("All read."),
            read_call("alpha.txt"),
            Reply::text("Again."),
        ]),
    );
    let ran = home.task(
        "cleared",
        &[&PRUNING_SETTINGS[..], &["-m", RESPONSES, "read everything"]].concat(),
    );
    let pruned = |event: &Value| event["type"] == "pruning" && event["step"] == "cleared";
    assert!(ran.events().iter().any(pruned), "something is cleared");
    let ran = home.task(
        "cleared",
        &[
            &PRUNING_SETTINGS[..],
            &["-m", RESPONSES, "read alpha again"],
        ]
        .concat(),
    );
    assert!(
        !ran.events().iter().any(pruned),
        "and nothing more for a while"
    );
    assert_no_refusals(&server);
}

/// Copies of reminders that stay where they were sent, and a model with another tokenizer.
fn make_carried(home: &StoredHome) {
    let usage = |input| Usage {
        input,
        output: 20,
        ..Usage::default()
    };
    let replies = [
        todo_call("in_progress", "pending").with_usage(usage(14_000)),
        read_call("b.txt").with_usage(usage(14_200)),
        todo_call("completed", "completed").with_usage(usage(14_400)),
        Reply::text("So far.").with_usage(usage(14_600)),
        Reply::text("Still so.").with_usage(usage(14_800)),
    ];
    let server = begin_conversation(home, "carried", replies);
    for words in ["begin", "go on"] {
        home.task(
            "carried",
            &[&REMINDER_SETTINGS[..], &["-m", CHAT, words]].concat(),
        );
    }
    assert_no_refusals(&server);
}

/// Summaries that failed until none is requested any more.
fn make_without_summary(home: &StoredHome) {
    let mut replies = vec![
        summary_reply(Reply::error(400, "no summaries today")),
        read_call("alpha.txt"),
    ];
    replies.extend((1..=6).map(|number| Reply::text(format!("Answer {number}."))));
    let _server = begin_conversation(home, "without-summary", replies);
    for words in ["you must never touch Cargo.lock", "two", "three"] {
        home.task("without-summary", &["-m", ANTHROPIC, words]);
    }
    for number in 4..=6 {
        let words = format!(
            "Please go on with part {number}, and tell me when you are through: there is more to come."
        );
        home.task(
            "without-summary",
            &[&COMPACTION_SETTINGS[..], &["-m", ANTHROPIC, &words]].concat(),
        );
    }
}

/// Descriptions of folders: the version sent in the conversation, and a newer one on disk.
fn make_described(home: &StoredHome) {
    home.write(".haft/active-context/docs/active.md", "Holds animals.\n");
    let server = begin_conversation(home, "described", [Reply::text("I see.")]);
    home.task(
        "described",
        &[
            "-m",
            CHAT,
            "--set",
            "context.active=true",
            "what is in docs?",
        ],
    );
    home.write(
        ".haft/active-context/docs/active.md",
        "Holds plants by now.\n",
    );
    assert_no_refusals(&server);
}

/// Calls written as text, and the execute view.
fn make_text_protocols(home: &StoredHome) {
    let replies = [
        "<thinking>Look first.</thinking>\n\nI'll look.\n<read_file>\n<path>b.txt</path>\n</read_file>",
        "<write_to_file>\n<path>out/xml.txt</path>\n<content>\n<content>x</content>\n& ü\n\n</content>\n</write_to_file>",
        "<attempt_completion>\n<result>\nWritten.\n</result>\n</attempt_completion>",
    ];
    let server = begin_conversation(home, "xml", replies.map(Reply::text));
    home.task("xml", &["-m", XML, "copy it"]);
    assert_no_refusals(&server);
    let replies = [
        "Thought: Look first.\nAction: read_file[{\"path\": \"b.txt\"}]\n",
        "Action: write_to_file[{\"path\": \"out/react.txt\", \"content\": \"<b>x</b>\\n& ü\\n\"}]",
        "Thought: Done.\nAction: Finish[Written.]",
    ];
    let server = begin_conversation(home, "react", replies.map(Reply::text));
    home.task("react", &["-m", REACT, "copy it"]);
    assert_no_refusals(&server);
    let replies = [
        read_call("b.txt"),
        Reply::text("It says zwei."),
        Reply::text("As I said."),
    ];
    let server = begin_conversation(home, "executing", replies);
    for words in ["read b.txt", "what did it say?"] {
        home.task(
            "executing",
            &[&EXECUTE_VIEW_SETTINGS[..], &["-m", GEMINI, words]].concat(),
        );
    }
    assert_no_refusals(&server);
}

/// A job, a workflow that stopped in the middle, a collection, another namespace, and a backup of
/// all conversations.
fn make_other_data(home: &StoredHome) {
    let server = home.serve_script(replies_script([
        read_call("b.txt"),
        Reply::text("Done in the background."),
    ]));
    let id = home
        .run_successfully(&[
            "run",
            "--bg",
            "--permission-mode",
            "yolo",
            "-m",
            CHAT,
            "work on your own",
        ])
        .stdout();
    home.run_successfully(&["jobs", "attach", id.trim()]);
    assert_no_refusals(&server);

    let on = |words: &str, reply: Reply| {
        reply.when(When {
            last_contains: Some(words.into()),
            ..When::default()
        })
    };
    let _server = home.serve_script(replies_script([
        on("LOOK", Reply::text("Two mistakes.")),
        on("MEND", Reply::error(400, "not today")),
    ]));
    let ran = home.run(&[
        "workflow",
        "run",
        "mend",
        "-m",
        CHAT,
        "--permission-mode",
        "yolo",
    ]);
    assert_ne!(ran.code(), 0, "the second step fails: {}", ran.stdout());

    home.run_successfully(&["rag", "query", "zoo", "stripes"]);

    let given = [
        "--id",
        "elsewhere",
        "--description",
        "not of a project",
        "--metadata",
        "ticket=7",
    ];
    home.run_successfully(
        &[
            &["conversations", "new", "Elsewhere", "--namespace", "team"],
            &given[..],
        ]
        .concat(),
    );
    home.run_successfully(&["conversations", "rename", "elsewhere", "Renamed"]);
    home.run_successfully(&["conversations", "use", "finished"]);
    home.run_successfully(&["conversations", "backup", "--set", "store.backups=3"]);
}
