//! Makes the stored home with a given binary: one conversation for each kind of data that is kept
//! between two runs.
//!
//! Do not make the fixture anew to add data: content written by the older version would be lost.
//! Add another folder beside it.

use std::path::PathBuf;
use std::sync::Arc;

use haft_store::{Revision, SqliteStore, Store, StoreConfig};
use haft_testkit::test::{FakeClock, SHELL_MCP_SERVER};
use haft_testkit::{Reply, Script, ScriptCall, ScriptedServer, When};
use haft_types::{ConversationId, Part, Usage};
use serde_json::{Value, json};

use super::home::{ANTHROPIC, CHAT, GEMINI, REACT, RESPONSES, StoredHome, XML, pack};
use super::observe::Observed;
use super::{CROWDED, EXECUTING, EXPECTED, HOME, SCARCE, STEADY_REMINDERS, fixture};
use crate::terminal::Terminal;

/// Writes the fixture anew. `HAFT_FIXTURE_BINARY` names the binary that makes it and whose outputs
/// are expected of later versions.
#[test]
#[ignore = "makes the fixture; the binary must be the one of the release it is named after"]
fn make() {
    let binary =
        std::env::var_os("HAFT_FIXTURE_BINARY").expect("`HAFT_FIXTURE_BINARY` names a binary");
    let home = StoredHome::empty(PathBuf::from(&binary)).expect("a place to make it");
    let steps: [fn(&StoredHome); 18] = [
        prepare,
        finished,
        interrupted,
        edited,
        marked,
        compacted,
        trashed,
        revised,
        parent,
        planned,
        background,
        cleared,
        carried,
        without_summary,
        described,
        text_protocols,
        beside_conversations,
        // Last, so that the database is in the state that a kill leaves.
        cut,
    ];
    for step in steps {
        step(&home);
    }
    pack(&fixture(HOME)).unwrap();
    // The outputs are taken from the unpacked home, as later versions find it.
    drop(home);
    let home = StoredHome::unpacked_for(PathBuf::from(binary)).unwrap();
    Observed::of(&home).keep(&fixture(EXPECTED));
}

/// Updates the expected outputs for a version that changes them on purpose. Sent and stored content
/// must not differ.
#[test]
#[ignore = "writes anew what is expected of the fixture"]
fn expect() {
    let binary =
        std::env::var_os("HAFT_FIXTURE_BINARY").expect("`HAFT_FIXTURE_BINARY` names a binary");
    let home = StoredHome::unpacked_for(PathBuf::from(binary)).expect("a place to open it");
    let observed = Observed::of(&home);
    let differences = observed.differences(&Observed::kept(&fixture(EXPECTED)));
    let never = |line: &&String| {
        line.starts_with("`context render") || line.starts_with("`conversations export")
    };
    let lost: Vec<_> = differences.iter().filter(never).collect();
    assert!(lost.is_empty(), "these never change: {lost:#?}");
    observed.keep(&fixture(EXPECTED));
}

fn script(replies: impl IntoIterator<Item = Reply>) -> Script {
    Script::replies(replies).unwrap()
}

fn call(name: &str, arguments: Value) -> Reply {
    Reply::call(name, arguments)
}

fn read(path: &str) -> Reply {
    call("read_file", json!({"path": path}))
}

fn command(line: &str) -> Reply {
    call(
        "execute_command",
        json!({"command": line, "requires_approval": false}),
    )
}

fn todo(first: &str, second: &str) -> Reply {
    call(
        "todo_write",
        json!({"todos": [{"content": "count the stripes", "status": first}, {"content": "write them down", "status": second}]}),
    )
}

/// Creates a conversation with this id, and a model for its next runs.
fn begin(home: &StoredHome, id: &str, replies: impl IntoIterator<Item = Reply>) -> ScriptedServer {
    let server = home.serve(script(replies));
    home.done(&["conversations", "new", &format!("The {id} one"), "--id", id]);
    server
}

fn well(server: &ScriptedServer) {
    assert!(server.refusals().is_empty(), "{:?}", server.refusals());
}

/// Returns the messages of a conversation.
fn messages(home: &StoredHome, id: &str) -> Vec<Value> {
    home.done(&["conversations", "export", id]).json()["messages"]
        .as_array()
        .unwrap()
        .clone()
}

fn short(message: &Value) -> &str {
    &message["message_id"].as_str().unwrap()[..8]
}

fn prepare(home: &StoredHome) {
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
    home.serve(script([]));
    home.done(&["trust"]);
    // Imitates a fetch, which would need git.
    let library = home
        .home()
        .join("data/libraries/repository/github.com/pallets/flask");
    std::fs::create_dir_all(&library).unwrap();
    std::fs::write(library.join("quick.md"), "Flask in brief.\n").unwrap();
    home.done(&["lib", "add", "flask"]);
}

/// Several rounds with tools, a TODO list, useful information, notes, file versions with an undo
/// and a redo, a long output.
fn finished(home: &StoredHome) {
    let diff = "<<<<<<< SEARCH\none stripe\n=======\n1 stripe\n>>>>>>> REPLACE";
    let useful = json!({"path": "stripes.txt", "start_line": 1, "end_line": 2, "description": "the first stripes"});
    let look = Reply::calls([
        ScriptCall::new("list_files", json!({"path": "."})),
        ScriptCall::new("read_file", json!({"path": "stripes.txt"})),
        ScriptCall::new("read_file", json!({"path": "missing.txt"})),
    ]);
    let server = begin(
        home,
        "finished",
        [
            look.with_thinking("First I look. ✓")
                .with_text("I'll look."),
            todo("in_progress", "pending"),
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
            command("sed -i s/two/zwei/ b.txt && seq 1 4000"),
            // With open items an answer would not end the turn.
            todo("completed", "completed"),
            Reply::text("Counted: **three**."),
            read("docs/zebra.md"),
            Reply::text("By its stripes."),
        ],
    );
    home.task(
        "finished",
        &["-m", ANTHROPIC, "count the stripes of @stripes.txt"],
    );
    home.task("finished", &["-m", ANTHROPIC, "how is a zebra counted?"]);
    home.done(&["undo", "finished"]);
    home.done(&["redo", "finished"]);
    well(&server);
    // This conversation was not given the tools of the server; later ones are.
    home.done(&["mcp", "test", "shell"]);
}

/// A command was started, and its outcome is unknown.
fn interrupted(home: &StoredHome) {
    let replies = [
        Reply::text("Ready."),
        command("echo ran >> effects.txt; touch begun; sleep 600"),
        Reply::text("never given"),
    ];
    let server = begin(home, "interrupted", replies);
    home.task("interrupted", &["-m", RESPONSES, "are you ready?"]);
    let begun = home.project().join("begun");
    home.kill_when("interrupted", &["-m", RESPONSES, "do it"], || {
        begun.exists()
    });
    well(&server);
}

/// A request was sent, and no reply came.
fn cut(home: &StoredHome) {
    let silent = Reply {
        delay_ms: 600_000,
        ..Reply::text("never given")
    };
    let list = call("list_files", json!({"path": "docs"}));
    let server = begin(
        home,
        "cut",
        [list.with_thinking("A listing will do."), silent],
    );
    home.kill_when("cut", &["-m", CHAT, "what documents are there?"], || {
        server.generations().len() == 2
    });
    well(&server);
}

/// Every kind of context edit, one of them undone, and a request after them.
fn edited(home: &StoredHome) {
    let replies = [
        Reply::calls(
            ["alpha.txt", "beta.txt"]
                .map(|path| ScriptCall::new("read_file", json!({"path": path}))),
        ),
        Reply::text("Both are read."),
        read("gamma.txt"),
        Reply::text("Read as well."),
        read("delta.txt"),
        Reply::text("And that."),
        Reply::text("So it is."),
    ];
    let server = begin(home, "edited", replies);
    for words in ["read alpha and beta", "read gamma", "read delta"] {
        home.task("edited", &["-m", GEMINI, words]);
    }
    let messages = messages(home, "edited");
    let edit = |arguments: &[&str]| {
        home.done(
            &[
                &["context", "edit"],
                arguments,
                &["--conversation", "edited", "-m", GEMINI],
            ]
            .concat(),
        );
    };
    edit(&["pin", short(&messages[2])]);
    edit(&["mask", short(&messages[3])]);
    let range = format!("{}..{}", short(&messages[5]), short(&messages[7]));
    edit(&["summarise", &range, "--text", "Gamma has 300 lines."]);
    edit(&["drop", short(&messages[9])]);
    edit(&["drop", short(&messages[0])]);
    edit(&["undo"]);
    home.task("edited", &["-m", GEMINI, "and now?"]);
    // Not sent yet.
    edit(&["mask", short(&messages[2])]);
    well(&server);
}

/// The model itself has hidden a result.
fn marked(home: &StoredHome) {
    let server = begin(
        home,
        "marked",
        [read("alpha.txt"), Reply::text("I read it.")],
    );
    home.task("marked", &["-m", CHAT, "read alpha"]);
    well(&server);
    let messages = messages(home, "marked");
    let ids = json!({"message_ids": short(&messages[2]), "action": "append"});
    let server = home.serve(script([
        call("conversation_message_ids_write", ids),
        Reply::text("Forgotten."),
    ]));
    home.task("marked", &["-m", CHAT, "forget it"]);
    well(&server);
}

fn summary(reply: Reply) -> Reply {
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
fn compacted(home: &StoredHome) {
    let replies = [
        summary(Reply::summary("Two files were read.")),
        read("alpha.txt"),
        Reply::text("One."),
        read("beta.txt"),
        Reply::text("Two."),
        Reply::text("Three."),
        Reply::text("Four."),
        Reply::text("Five, in the fork."),
        Reply::text("Another end."),
    ];
    let server = begin(home, "compacted", replies);
    for words in ["one: you must never touch Cargo.lock", "two", "three"] {
        home.task("compacted", &["-m", ANTHROPIC, words]);
    }
    home.done(&[
        "context",
        "compact",
        "compacted",
        "--set",
        "context.keep_rounds=1",
    ]);
    home.task("compacted", &["-m", ANTHROPIC, "four"]);
    home.done(&[
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
    home.done(&[
        "conversations",
        "fork",
        "finished",
        "--at",
        short(at),
        "--new-id",
        "branched",
    ]);
    home.task("branched", &["-m", ANTHROPIC]);
    well(&server);
}

fn trashed(home: &StoredHome) {
    let server = begin(home, "trashed", [Reply::text("Nobody needs this.")]);
    home.task("trashed", &["-m", GEMINI, "say something superfluous"]);
    home.done(&["conversations", "delete", "trashed"]);
    well(&server);
}

/// A message whose newest revision differs from the first one. No command makes such a message, so
/// it is written through the store.
fn revised(home: &StoredHome) {
    let server = begin(
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
            content: Some(vec![Part::text("The revised version.")]),
            ..Revision::default()
        };
        let _lock = store.lock(&id).await.unwrap();
        store.update(&id, message, revision).await.unwrap();
        store.flush().await.unwrap();
    });
    home.task("revised", &["-m", RESPONSES, "and another"]);
    well(&server);
}

/// A sub-agent with a conversation of its own.
fn parent(home: &StoredHome) {
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
        of(CHAT, 0, read("b.txt")),
        of(CHAT, 1, Reply::text("It says zwei.")),
    ];
    let server = begin(home, "parent", replies);
    home.task("parent", &["-m", ANTHROPIC, "have b.txt looked at"]);
    well(&server);
}

/// Plan mode started at a terminal in the middle of a conversation, and the prompts typed there.
fn planned(home: &StoredHome) {
    let server = begin(
        home,
        "planned",
        ["Hello.", "I would write plan.txt."].map(Reply::text),
    );
    let mut terminal =
        Terminal::around(&home.command(&["-r", "planned", "-m", RESPONSES]), (90, 24));
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
    assert_eq!(terminal.ended().0, 0);
    well(&server);
}

/// A task that still ran when its run ended, which is not reported to the model yet.
fn background(home: &StoredHome) {
    let start = call(
        "background_task",
        json!({"action": "start", "command": "sleep 600"}),
    );
    let server = begin(home, "background", [start, Reply::text("Started.")]);
    home.task("background", &["-m", CHAT, "start a server"]);
    well(&server);
}

/// Old results cleared at once, more than necessary, and newer results after them.
fn cleared(home: &StoredHome) {
    let names = ["alpha.txt", "beta.txt", "gamma.txt", "delta.txt"];
    let first = names.into_iter().chain(names).map(read);
    let server = begin(
        home,
        "cleared",
        first.chain([
            Reply::text("All read."),
            read("alpha.txt"),
            Reply::text("Again."),
        ]),
    );
    let ran = home.task(
        "cleared",
        &[&SCARCE[..], &["-m", RESPONSES, "read everything"]].concat(),
    );
    let pruned = |event: &Value| event["type"] == "pruning" && event["step"] == "cleared";
    assert!(ran.events().iter().any(pruned), "something is cleared");
    let ran = home.task(
        "cleared",
        &[&SCARCE[..], &["-m", RESPONSES, "read alpha again"]].concat(),
    );
    assert!(
        !ran.events().iter().any(pruned),
        "and nothing more for a while"
    );
    well(&server);
}

/// Copies of reminders that stay where they were sent, and a model with another tokenizer.
fn carried(home: &StoredHome) {
    let usage = |input| Usage {
        input,
        output: 20,
        ..Usage::default()
    };
    let replies = [
        todo("in_progress", "pending").with_usage(usage(14_000)),
        read("b.txt").with_usage(usage(14_200)),
        todo("completed", "completed").with_usage(usage(14_400)),
        Reply::text("So far.").with_usage(usage(14_600)),
        Reply::text("Still so.").with_usage(usage(14_800)),
    ];
    let server = begin(home, "carried", replies);
    for words in ["begin", "go on"] {
        home.task(
            "carried",
            &[&STEADY_REMINDERS[..], &["-m", CHAT, words]].concat(),
        );
    }
    well(&server);
}

/// Summaries that failed until none is requested any more.
fn without_summary(home: &StoredHome) {
    let mut replies = vec![
        summary(Reply::error(400, "no summaries today")),
        read("alpha.txt"),
    ];
    replies.extend((1..=6).map(|number| Reply::text(format!("Answer {number}."))));
    let _server = begin(home, "without-summary", replies);
    for words in ["you must never touch Cargo.lock", "two", "three"] {
        home.task("without-summary", &["-m", ANTHROPIC, words]);
    }
    for number in 4..=6 {
        let words = format!(
            "Please go on with part {number}, and tell me when you are through: there is more to come."
        );
        home.task(
            "without-summary",
            &[&CROWDED[..], &["-m", ANTHROPIC, &words]].concat(),
        );
    }
}

/// Descriptions of folders: the version sent in the conversation, and a newer one on disk.
fn described(home: &StoredHome) {
    home.write(".haft/active-context/docs/active.md", "Holds animals.\n");
    let server = begin(home, "described", [Reply::text("I see.")]);
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
    well(&server);
}

/// Calls written as text, and the execute view.
fn text_protocols(home: &StoredHome) {
    let replies = [
        "<thinking>Look first.</thinking>\n\nI'll look.\n<read_file>\n<path>b.txt</path>\n</read_file>",
        "<write_to_file>\n<path>out/xml.txt</path>\n<content>\n<content>x</content>\n& ü\n\n</content>\n</write_to_file>",
        "<attempt_completion>\n<result>\nWritten.\n</result>\n</attempt_completion>",
    ];
    let server = begin(home, "xml", replies.map(Reply::text));
    home.task("xml", &["-m", XML, "copy it"]);
    well(&server);
    let replies = [
        "Thought: Look first.\nAction: read_file[{\"path\": \"b.txt\"}]\n",
        "Action: write_to_file[{\"path\": \"out/react.txt\", \"content\": \"<b>x</b>\\n& ü\\n\"}]",
        "Thought: Done.\nAction: Finish[Written.]",
    ];
    let server = begin(home, "react", replies.map(Reply::text));
    home.task("react", &["-m", REACT, "copy it"]);
    well(&server);
    let replies = [
        read("b.txt"),
        Reply::text("It says zwei."),
        Reply::text("As I said."),
    ];
    let server = begin(home, "executing", replies);
    for words in ["read b.txt", "what did it say?"] {
        home.task(
            "executing",
            &[&EXECUTING[..], &["-m", GEMINI, words]].concat(),
        );
    }
    well(&server);
}

/// A job, a workflow that stopped in the middle, a collection, another namespace, and a backup of
/// all conversations.
fn beside_conversations(home: &StoredHome) {
    let server = home.serve(script([
        read("b.txt"),
        Reply::text("Done in the background."),
    ]));
    let id = home
        .done(&[
            "run",
            "--bg",
            "--permission-mode",
            "yolo",
            "-m",
            CHAT,
            "work on your own",
        ])
        .stdout();
    home.done(&["jobs", "attach", id.trim()]);
    well(&server);

    let on = |words: &str, reply: Reply| {
        reply.when(When {
            last_contains: Some(words.into()),
            ..When::default()
        })
    };
    let _server = home.serve(script([
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

    home.done(&["rag", "query", "zoo", "stripes"]);

    let given = [
        "--id",
        "elsewhere",
        "--description",
        "not of a project",
        "--metadata",
        "ticket=7",
    ];
    home.done(
        &[
            &["conversations", "new", "Elsewhere", "--namespace", "team"],
            &given[..],
        ]
        .concat(),
    );
    home.done(&["conversations", "rename", "elsewhere", "Renamed"]);
    home.done(&["conversations", "use", "finished"]);
    home.done(&["conversations", "backup", "--set", "store.backups=3"]);
}
