//! `haft context`, compared with what the scripted server received and with what the run reported.

use std::io::{Read, Write};
use std::net::TcpStream;

use haft_testkit::{Reply, Script, Seen, When};
use haft_types::{Api, Usage};
use serde_json::{Value, json};

use crate::rig::{CLASSIC, MODEL, Rig, SMALL_ARCHIVES};
use crate::screen::without_numbers;

/// A conversation of twelve requests: parallel calls, thinking, a picture, errors, a TODO list that
/// changes.
pub(crate) fn run_twelve_requests(api: Api) -> (Rig, Vec<Value>) {
    let script = Script::from_yaml("twelve_turns.yaml", include_str!("twelve_turns.yaml")).unwrap();
    let rig = Rig::new(api, script).with(CLASSIC);
    rig.write("notes.txt", "alpha\nbeta\n");
    rig.write("dot.png", b"\x89PNG\r\n\x1a\n not really a picture");
    let ran = rig.task(&["make the file"]);
    assert_eq!(ran.code(), 0, "{api}: {}", ran.stderr());
    assert_eq!(rig.server.generation_requests().len(), 12, "{api}");
    let events = ran.events();
    (rig, events)
}

fn events_of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .collect()
}

fn render_context(rig: &Rig, arguments: &[&str]) -> Vec<u8> {
    let mut all = vec!["context", "render"];
    all.extend(arguments);
    let ran = rig.run(&all);
    assert_eq!(ran.code(), 0, "{arguments:?}: {}", ran.stderr());
    ran.0.stdout
}

#[test]
fn render_reproduces_past_bodies_byte_for_byte() {
    for api in Api::ALL {
        let (rig, _) = run_twelve_requests(api);
        let same = |when: &str| {
            for (index, sent) in rig.server.generation_requests().iter().enumerate() {
                let body = render_context(&rig, &["--request", &(index + 1).to_string()]);
                assert!(
                    body == sent.body,
                    "{api}, request {}, {when}: the bytes differ",
                    index + 1
                );
            }
        };
        same("as configured");
        // Later configuration does not change past bodies.
        let other = if api == Api::Gemini {
            Api::Anthropic
        } else {
            Api::Gemini
        };
        rig.configure(&format!(
            "[providers.mock]\napi = \"{other}\"\nbase_url = \"http://localhost\"\nextra_body = {{ seed = 7 }}\n"
        ));
        same("configured otherwise");
    }
}

/// Rounds with a TODO list, pruning, compression, an edit, a changed document and a compaction: the
/// log reproduces every request as the server received it.
#[test]
fn show_raw_reproduces_bodies_after_edits_and_compaction() {
    for api in Api::ALL {
        let read = |from: u32| {
            Reply::call(
                "read_file",
                json!({"path": "notes.txt", "start_line": from, "end_line": from + 60}),
            )
        };
        let todo = |status: &str| {
            Reply::call(
                "todo_write",
                json!({"todos": [{"content": "a", "status": status}]}),
            )
        };
        let full = Usage {
            input: 170_000,
            ..Usage::default()
        };
        let summary = Reply::summary("Notes were read.").when(When {
            last_contains: Some("The session to be archived".into()),
            ..When::default()
        });
        let replies = [
            summary,
            todo("in_progress"),
            read(1),
            read(40),
            read(80),
            todo("completed"),
            Reply::text("Round one is done."),
            read(10),
            read(50),
            Reply::text("Round two is done."),
            read(90),
            Reply::text("Round three is done.").with_usage(full),
            read(120),
            Reply::text("Round four is done."),
        ];
        let rig = Rig::new(api, Script::replies(replies).unwrap())
            .with(CLASSIC)
            .with([SMALL_ARCHIVES]);
        let notes: String = (1..=200)
            .map(|line| format!("note {line}: something worth keeping in mind\n"))
            .collect();
        rig.write("notes.txt", notes);
        rig.write("AGENTS.md", "Read everything twice.\n");
        let small = [
            "--set",
            "context.safe_zone=2k",
            "--set",
            "context.keep_rounds=1",
            "--set",
            "context.prune_keep=1",
        ];
        let mut causes = Vec::new();
        for round in ["one", "two", "three", "four"] {
            match round {
                "two" => rig.write("AGENTS.md", "Read everything three times.\n"),
                "three" => {
                    let messages = rig.export()["messages"].clone();
                    for (what, index) in [("mask", 4), ("pin", 6)] {
                        let id = &messages[index]["message_id"].as_str().unwrap()[..8];
                        assert_eq!(rig.run(&["context", "edit", what, id]).code(), 0);
                    }
                }
                _ => {}
            }
            let mut arguments = small.to_vec();
            if round != "one" {
                arguments.push("-c");
            }
            arguments.push(round);
            let ran = rig.task(&arguments);
            assert_eq!(ran.code(), 0, "{api}, round {round}: {}", ran.result());
            let events = ran.events();
            causes.extend(
                events_of_type(&events, "pruning")
                    .iter()
                    .map(|one| one["step"].as_str().unwrap().to_owned()),
            );
            causes.extend(
                events_of_type(&events, "prefix_break")
                    .iter()
                    .map(|one| one["cause"].as_str().unwrap().to_owned()),
            );
        }
        for cause in [
            "documents_changed",
            "context_edited",
            "compaction",
            "reminders_moved",
            "cleared",
        ] {
            assert!(
                causes.iter().any(|one| one == cause),
                "{api}: no {cause} among {causes:?}"
            );
        }
        // The request for the summary is not part of the conversation.
        let sent = rig.server.generation_requests();
        let sent: Vec<_> = sent
            .iter()
            .filter(|one| !one.decode().unwrap().tools.is_empty())
            .collect();
        assert_eq!(sent.len(), 13, "{api}");
        let last = String::from_utf8_lossy(&sent[12].body);
        assert!(
            last.contains("note 45: something") && last.contains("Notes were read."),
            "{api}: what is pinned stays"
        );
        assert!(
            !last.contains("note 5: something") && !last.contains("note 105: something"),
            "{api}: the rest goes"
        );
        for (index, sent) in sent.iter().enumerate() {
            let number = (index + 1).to_string();
            let raw = rig
                .run(&["context", "show", "--raw", "--request", &number])
                .0
                .stdout;
            assert!(
                raw == sent.body,
                "{api}, request {number}: the bytes differ"
            );
        }
        assert!(
            rig.run(&["context", "show", "--raw"]).0.stdout == sent[12].body,
            "the last one without a number"
        );
    }
}

#[test]
fn show_render_and_diff_mask_secrets() {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::turns([Reply::text("One."), Reply::text("Two.")]).unwrap(),
    );
    // Assembled here so that secret scanners don't report this file.
    let secret = format!("ghp_{}", "a1B2c3D4e5".repeat(4));
    let prompt = format!("The token is {secret} today.");
    assert_eq!(
        rig.task(&["--append-system-prompt", &prompt, "hi"]).code(),
        0
    );
    assert_eq!(
        rig.task(&[
            "-c",
            "--append-system-prompt",
            &format!("{prompt} Again."),
            "ho"
        ])
        .code(),
        0
    );
    let sent = String::from_utf8(rig.server.generation_requests()[0].body.to_vec()).unwrap();
    assert!(
        sent.contains(&secret),
        "the model is told what the user says"
    );
    for arguments in [
        vec!["render", "--request", "1"],
        vec!["show", "--raw", "--request", "1"],
        vec!["show", "--full", "--request", "1"],
        vec!["show", "--json", "--full"],
        vec!["diff", "--full"],
        vec!["diff", "--full", "--json"],
    ] {
        let ran = rig.run(&[vec!["context"], arguments.clone()].concat());
        assert_eq!(ran.code(), 0, "{arguments:?}: {}", ran.stderr());
        assert!(
            !ran.stdout().contains(&secret) && ran.stdout().contains("[masked: "),
            "{arguments:?}: {}",
            ran.stdout()
        );
    }
    let rendered = rig.run(&["context", "render", "--request", "1"]);
    assert!(
        rendered.stderr().contains("they are masked here"),
        "{}",
        rendered.stderr()
    );
    let masked = rendered.stdout();
    let (before, after) = sent.split_once(&secret).unwrap();
    assert!(
        masked.starts_with(before) && masked.ends_with(after),
        "everything else is as it was sent"
    );
}

#[test]
fn render_includes_extra_fields_and_the_stream_flag() {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::turns([Reply::text("Hello.")]).unwrap(),
    );
    let base_url = rig.server.base_url(Api::OpenaiChat);
    rig.configure(&format!(
        "[providers.mock]\napi = \"openai-chat\"\nbase_url = \"{base_url}\"\nstream = false\n\
         extra_body = {{ temperature = 0.5, seed = 7 }}\n"
    ));
    assert_eq!(rig.task(&["-m", "mock/m", "hi"]).code(), 0);
    rig.configure("");
    let sent = &rig.server.generation_requests()[0].body;
    assert!(String::from_utf8_lossy(sent).contains("\"seed\":7"));
    assert!(render_context(&rig, &["--request", "1"]) == *sent);
}

#[test]
fn render_of_the_next_request_matches_what_is_sent() {
    for api in Api::ALL {
        let todo = Reply::call(
            "todo_write",
            json!({"todos": [{"content": "a", "status": "completed"}]}),
        );
        let replies = [
            todo,
            Reply::text("First answer."),
            Reply::text("Second answer."),
        ];
        let rig = Rig::new(api, Script::replies(replies).unwrap());
        rig.write("AGENTS.md", "Speak softly.\n");
        // `haft context render` uses the default permission mode, so the runs do too: the prompt
        // names the mode.
        assert_eq!(rig.run(&["run", "first"]).code(), 0);
        let body = render_context(&rig, &["--input", "second: look at @AGENTS.md"]);
        assert_eq!(
            rig.run(&["run", "-c", "second: look at @AGENTS.md"]).code(),
            0
        );
        let sent = &rig.server.generation_requests()[2].body;
        assert_eq!(
            String::from_utf8_lossy(&body),
            String::from_utf8_lossy(sent),
            "{api}"
        );
    }
}

#[test]
fn inspection_does_not_change_conversations() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::turns([Reply::text("One."), Reply::text("Two.")]).unwrap(),
    );
    rig.task(&["first"]);
    let first = rig.export();
    rig.task(&["second"]);
    let second = rig.run(&["conversations", "show", "--json"]).json();
    assert_ne!(first["id"], second["id"]);
    let id = first["id"].as_str().unwrap();
    for command in ["show", "report", "why", "render"] {
        let ran = rig.run(&["context", command, id]);
        assert_eq!(ran.code(), 0, "{command}: {}", ran.stderr());
    }
    assert_eq!(
        rig.run(&["conversations", "show", "--json"]).json(),
        second,
        "the current one stays current"
    );
    assert_eq!(rig.run(&["conversations", "export", id]).json(), first);
    let waiting = rig.run(&["context", "render", id]);
    assert!(waiting.stderr().contains("--input"), "{}", waiting.stderr());
    assert!(waiting.stdout().contains("next input") && waiting.stdout().contains("One."));
}

#[test]
fn report_matches_the_budget_events() {
    let (rig, events) = run_twelve_requests(Api::Anthropic);
    let budgets = events_of_type(&events, "budget");
    let usages = events_of_type(&events, "usage");
    assert_eq!((budgets.len(), usages.len()), (12, 12));
    for (index, (budget, usage)) in budgets.iter().zip(&usages).enumerate() {
        let report = rig
            .run(&[
                "context",
                "report",
                "--json",
                "--request",
                &(index + 1).to_string(),
            ])
            .json();
        assert_eq!(report["request"], json!(index + 1));
        for key in ["layers", "output_reserve", "remaining", "window"] {
            assert_eq!(report[key], budget[key], "{key} of request {}", index + 1);
        }
        assert_eq!(report["usage"], usage["usage"]);
        assert_eq!(report["cost"]["total"], usage["cost"]["total"]);
    }
    let text = rig.run(&["context", "report"]).stdout();
    assert!(
        text.contains("1,870 read from the cache (96.9 %)") && text.contains("60 neither"),
        "{text}"
    );
    insta::assert_snapshot!(without_numbers(&rig.mask_text(&text)), @"
    request N of N in `ID`: mock/gemini-N-scripted in anthropic
    Profile: `full`, the default

    system  N  N %
    documents  N  N %
    history  N  N %
    reminders  N  N %
    current  N  N %
    output reserve  N  N %
    remaining  N  N %
    window  N  N %

    The request takes N tokens by estimate, N by the provider's count:
    N read from the cache (N %), N written to it, N neither; N of output, $N.
    Old results are pruned above N tokens (`safe_zone` N) to N % of it, all but the newest N, and compressed `round-end`: default for models with known prices and a cache lifetime under N minutes.
    ");
}

#[test]
fn why_matches_the_prefix_break_events() {
    for api in [Api::Anthropic, Api::OpenaiChat] {
        let (rig, events) = run_twelve_requests(api);
        let told = events_of_type(&events, "prefix_break");
        assert!(
            !told.is_empty(),
            "a run of reminders that moves breaks the prefix"
        );
        let why = rig.run(&["context", "why", "--json"]).json();
        let found = why["breaks"].as_array().unwrap();
        assert_eq!(
            (found.len(), &why["unexplained"]),
            (told.len(), &json!(0)),
            "{why}"
        );
        for (one, told) in found.iter().zip(&told) {
            let index = json!(told["index"].as_u64().unwrap() + 1);
            assert_eq!(
                (&one["cause"], &one["first"]["index"]),
                (&told["cause"], &index)
            );
            // The event is a forecast; the bill of every reply exists by now.
            assert_eq!(
                (&one["basis"], &told["forecast"]),
                (&json!("billed"), &json!(true))
            );
            let request = one["request"].as_u64().unwrap() as usize;
            let bill = &events_of_type(&events, "usage")[request - 1]["usage"];
            let unread = bill["input"].as_u64().unwrap() + bill["cache_write"].as_u64().unwrap();
            let tokens = one["tokens"].as_u64().unwrap();
            assert!(
                tokens <= told["tokens"].as_u64().unwrap().min(unread),
                "{one} {told} {bill}"
            );
        }
        let text = rig.run(&["context", "why"]).stdout();
        assert!(
            text.contains("the reminders moved") && text.contains("tokens were resent, $"),
            "{text}"
        );
    }
}

/// The bill of a request, by class: fresh, read from the cache, written to it.
fn bill(input: u64, cached_input: u64, cache_write: u64) -> Usage {
    Usage {
        input,
        cached_input,
        cache_write,
        output: 5,
        ..Usage::default()
    }
}

#[test]
fn why_bounds_the_price_of_a_break_by_the_bill() {
    let replies = [
        Reply::text("One.").with_usage(bill(2, 0, 9_000)),
        Reply::text("Two.").with_usage(bill(2, 2_000, 7_100)),
        Reply::text("Three.").with_usage(bill(2, 0, 9_200)),
        Reply::text("Four.").with_usage(bill(2, 9_100, 200)),
        Reply::text("Five.").with_usage(Usage::default()),
    ];
    let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap());
    rig.write("AGENTS.md", "Be brief.\n");
    assert_eq!(rig.task(&["one"]).code(), 0);
    rig.write("AGENTS.md", "Be very brief.\n");
    assert_eq!(rig.task(&["-c", "two"]).code(), 0);
    assert_eq!(rig.task(&["-c", "-m", "mock/other", "three"]).code(), 0);
    // The cache of the first model still lives, so the switch back reads nearly everything.
    let back = rig.task(&["-c", "-m", &format!("mock/{MODEL}"), "four"]);
    assert_eq!(back.code(), 0, "{}", back.stderr());
    let foreseen = events_of_type(&back.events(), "prefix_break")[0].clone();
    rig.write("AGENTS.md", "Be brief again.\n");
    assert_eq!(rig.task(&["-c", "five"]).code(), 0);

    let why = rig.run(&["context", "why", "--json"]).json();
    let found: Vec<_> = why["breaks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap().to_owned();
            (
                one["request"].as_u64().unwrap(),
                text("cause"),
                text("basis"),
            )
        })
        .collect();
    let expected = [
        (2, "documents_changed", "billed"),
        (3, "model_switched", "billed"),
        (4, "model_switched", "billed"),
        (5, "documents_changed", "forecast"),
    ];
    let expected = expected.map(|(request, cause, basis)| (request, cause.into(), basis.into()));
    assert_eq!(found, expected);
    let tokens = |index: usize| why["breaks"][index]["tokens"].as_u64().unwrap();
    assert!((1..=7_102).contains(&tokens(0)), "{why}");
    assert!((1..=9_202).contains(&tokens(1)), "{why}");
    assert!(tokens(2) <= 202, "{why}");
    let cost = why["breaks"][2]["cost"].as_f64().unwrap();
    assert!(cost <= 202.0 * (3.75 - 0.3) / 1e6, "{why}");
    // The event before the switch back foresees the same.
    assert_eq!(foreseen["forecast"], true);
    assert!(
        foreseen["tokens"].as_u64().unwrap() < tokens(1) / 4,
        "{foreseen} {why}"
    );
    let text = without_numbers(&rig.screen(&["context", "why"]));
    insta::assert_snapshot!(text, @"
    REQUEST  CAUSE  FIRST DIFFERENCE  SENT AGAIN  COST
          N  a rules file or another document changed  segment N, document:rules ID  N tokens  $N
          N  the model was switched  segment N, system ID  N tokens  -
          N  the model was switched  segment N, system ID  N tokens  $N
          N  a rules file or another document changed  segment N, document:rules ID  ≈N tokens  $N

    N breaks in N requests: N tokens were resent.
    Figures with ≈ are forecasts, because no bill is known for the request.
    ");
}

/// When a break lets results be compressed, the compressed results count as sent before.
#[test]
fn why_counts_compressed_results_as_sent_before() {
    let read = || Reply::call("read_file", json!({"path": "long.txt"}));
    let replies = [
        read(),
        read(),
        Reply::text("One.").with_usage(bill(2, 9_000, 4_000)),
        Reply::text("Two.").with_usage(bill(2, 2_000, 8_000)),
    ];
    let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap());
    rig.write("long.txt", "a line of the file\n".repeat(1_900));
    rig.write("AGENTS.md", "Be brief.\n");
    let compress = ["--set", "context.compress=round-end"];
    assert_eq!(rig.task(&[&compress[..], &["one"]].concat()).code(), 0);
    rig.write("AGENTS.md", "Be very brief.\n");
    let second = rig.task(&[&compress[..], &["-c", "two"]].concat());
    assert_eq!(second.code(), 0, "{}", second.stderr());
    let shown = rig.run(&["context", "show", "--json"]).json();
    let segments = shown["segments"].as_array().unwrap();
    let compressed: u64 = segments
        .iter()
        .filter(|one| one["owner"] == "history:compressed")
        .map(|one| one["tokens"].as_u64().unwrap())
        .sum();
    assert!(compressed > 0, "{shown}");
    let why = rig.run(&["context", "why", "--json"]).json();
    let last = why["breaks"].as_array().unwrap().last().unwrap().clone();
    let whole: u64 = segments
        .iter()
        .filter(|one| one["layer"] == "history")
        .map(|one| one["tokens"].as_u64().unwrap())
        .sum();
    assert_eq!(last["cause"], "documents_changed", "{why}");
    assert!(
        last["tokens"].as_u64().unwrap() > whole - compressed,
        "{last}: {compressed} of {whole} compressed"
    );
}

#[test]
fn why_reports_that_nothing_broke() {
    let replies = [
        Reply::call("list_files", json!({"path": "."})),
        Reply::text("Nothing here."),
    ];
    let rig = Rig::new(Api::Gemini, Script::turns(replies).unwrap());
    rig.task(&["look"]);
    insta::assert_snapshot!(rig.screen(&["context", "why"]), @"No breaks: each of the 2 requests of `ID` begins with the one before.");
    assert_eq!(
        rig.run(&["context", "why", "--json"]).json()["breaks"],
        json!([])
    );
}

#[test]
fn show_lists_every_segment_in_the_order_it_was_sent() {
    let (rig, _) = run_twelve_requests(Api::OpenaiChat);
    let shown = rig
        .run(&["context", "show", "--json", "--full", "--request", "12"])
        .json();
    let segments = shown["segments"].as_array().unwrap();
    let sent: Seen = rig.server.generation_requests()[11].decode().unwrap();
    assert_eq!(segments[0]["layer"], "system");
    assert!(
        sent.system
            .contains(segments[0]["text"].as_str().unwrap().trim_end())
    );
    let ids: Vec<_> = rig.export()["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["message_id"].clone())
        .collect();
    let stored: Vec<_> = segments
        .iter()
        .map(|one| one["message_id"].clone())
        .filter(|id| ids.contains(id))
        .collect();
    assert_eq!(
        stored,
        ids[..stored.len()],
        "the stored messages, in their order"
    );
    let owners: Vec<_> = segments
        .iter()
        .map(|one| one["owner"].as_str().unwrap())
        .collect();
    assert!(
        owners.contains(&"current") && owners.contains(&"reminder:todo"),
        "{owners:?}"
    );
    let sum: u64 = segments
        .iter()
        .map(|one| one["tokens"].as_u64().unwrap())
        .sum();
    assert_eq!(
        sum + shown["tool_tokens"].as_u64().unwrap(),
        shown["tokens"].as_u64().unwrap()
    );
    let text = rig.screen(&["context", "show"]);
    assert!(text.contains("request 12 of 12"), "{text}");
    insta::assert_snapshot!(without_numbers(&text), @r#"
    request N of N in `ID`: mock/gemini-N-scripted in openai-chat, N tokens, N tools with N tokens

     #  LAYER  OWNER  ID  ROLE  TOKENS  CACHE  TEXT
     N  system  system  ID  system  N  |  You are haft, an expert software engineering ag…
     N  current  current  ID  user  N  make the file
     N  history  history  ID  assistant  N  (thinking) First I need to see what there is.
     N  history  history  ID  tool  N  ← list_files (ok) dot.png notes.txt
     N  history  history  ID  tool  N  ← read_file (ok) N alpha N beta
     N  history  history  ID  tool  N  ← search_files (ok) N matches in N files. dot.p…
     N  history  history  ID  assistant  N  That file may hold more.
     N  history  history  ID  tool  N  ← read_file (error) `missing.txt` does not exis…
     N  history  history  ID  assistant  N  → read_file {"path":"dot.png"}
    N  history  history  ID  tool  N  ← read_file (ok) `dot.png` is a picture (image/…
    N  history  history  ID  assistant  N  (thinking) The picture is one pixel. Ünïcödé an…
    N  history  history  ID  tool  N  ← todo_write (ok) [~] write the file [ ] check …
    N  history  history  ID  assistant  N  Now the file.
    N  history  history  ID  tool  N  ← write_to_file (ok) Created `out/new.txt`: N l…
    N  history  history  ID  assistant  N  → replace_in_file {"path":"out/new.txt","diff":…
    N  history  history  ID  tool  N  ← replace_in_file (ok) Changed `out/new.txt`: N…
    N  history  history  ID  assistant  N  Does it hold what it should?
    N  history  history  ID  tool  N  ← execute_command (error) Exit code N. --- stdo…
    N  history  history  ID  assistant  N  → read_file {"path":"out/new.txt","start_line":…
    N  history  history  ID  tool  N  ← read_file (ok) N ALPHA N beta 漢字 [Lines N-N…
    N  history  history  ID  tool  N  ← todo_read (ok) [~] write the file [ ] check i…
    N  history  history  ID  assistant  N  A tool that does not exist, and one with a wron…
    N  history  history  ID  tool  N  ← raed_file (error) There is no tool `raed_file…
    N  history  history  ID  tool  N  |  ← list_files (error) invalid arguments for `lis…
    N  reminders  reminder:todo  ID  user  N  <system-reminder> ## TODO List Keep this list c…
    N  history  history  ID  assistant  N  → todo_write {"todos":[{"content":"write the fi…
    N  history  history  ID  tool  N  ← todo_write (ok) [x] write the file [x] check …
    N  history  history  ID  assistant  N  One last look.
    N  history  history  ID  tool  N  ← list_files (ok) dot.png notes.txt out/ out/ne…
    "#);
    assert!(
        rig.run(&["context", "show", "--full"])
            .stdout()
            .contains("beta 漢字")
    );
}

#[test]
fn show_marks_the_cache_boundaries_of_the_request() {
    let (rig, _) = run_twelve_requests(Api::Anthropic);
    let shown = rig.run(&["context", "show", "--json"]).json();
    let marked = shown["segments"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["boundary"] == true)
        .count();
    assert_eq!(
        marked,
        rig.server.generation_requests()[11]
            .decode()
            .unwrap()
            .cache_marks
            .len()
    );
    assert!(marked > 1);
}

#[test]
fn diff_lists_removed_and_added_segments() {
    let (rig, _) = run_twelve_requests(Api::OpenaiResponses);
    let show = |number: &str| {
        rig.run(&["context", "show", "--json", "--request", number])
            .json()
    };
    for (from, to) in [("1", "2"), ("4", "5"), ("9", "12")] {
        let diff = rig.run(&["context", "diff", "--json", from, to]).json();
        let kept = diff["kept"]["segments"].as_u64().unwrap() as usize;
        let count = |sign: &str| {
            let changes = diff["changes"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|one| one["change"] == sign);
            changes
                .map(|one| one["segments"].as_u64().unwrap_or(1) as usize)
                .sum::<usize>()
        };
        let old = show(from);
        let new = show(to);
        assert_eq!(
            kept + count("-") + count("="),
            old["segments"].as_array().unwrap().len(),
            "{from} {to}"
        );
        assert_eq!(
            kept + count("+") + count("="),
            new["segments"].as_array().unwrap().len(),
            "{from} {to}"
        );
        let hashes = |shown: &Value| {
            let segments = shown["segments"].as_array().unwrap()[..kept].iter();
            segments
                .map(|one| (one["message_id"].clone(), one["tokens"].clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(hashes(&old), hashes(&new));
    }
    let text = rig.screen(&["context", "diff", "4", "5"]);
    assert!(text.starts_with("request 4 → 5: "), "{text}");
    insta::assert_snapshot!(without_numbers(&text), @"
    request N → N: N → N tokens
    = N segments, N tokens kept
    + N reminder:todo ID user (N tokens) <system-reminder> ## TODO List Keep this list current. - [~…
      N segments, N tokens unchanged but resent
    + N history ID assistant (N tokens) (thinking) The picture is one pixel. Ünïcödé and 漢字 must …
    + N history ID tool (N tokens) ← todo_write (ok) [~] write the file [ ] check it ✓
    ");
    insta::assert_snapshot!(without_numbers(&rig.screen(&["context", "diff", "3", "3"])), @"
    request N → N: N → N tokens
    = N segments, N tokens kept
    Nothing else changed.
    ");
}

#[test]
fn diff_shows_a_changed_message_line_by_line() {
    let todo = |status: &str| {
        Reply::call(
            "todo_write",
            json!({"todos": [{"content": "a", "status": status}]}),
        )
    };
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::turns([todo("pending"), todo("completed"), Reply::text("Done.")]).unwrap(),
    );
    let rig = rig.with(CLASSIC);
    rig.task(&["do a"]);
    let text = rig.screen(&["context", "diff", "2", "3", "--full"]);
    insta::assert_snapshot!(without_numbers(&text), @r#"
    request N → N: N → N tokens
    = N segments, N tokens kept
    - N reminder:todo ID user (N tokens) <system-reminder> ## TODO List Keep this list current. - [ …
    + N reminder:todo ID user (N tokens) <system-reminder> ## TODO List Keep this list current. - [x…
        @@ -N +N @@

         Keep this list current.

        -- [ ] a
        +- [x] a
         </system-reminder>
      N segments, N tokens unchanged but resent
    + N history ID assistant (N tokens) → todo_write {"todos":[{"content":"a","status":"completed"}…
        → todo_write {"todos":[{"content":"a","status":"completed"}]}
    + N history ID tool (N tokens) ← todo_write (ok) [x] a
        ← todo_write (ok) [x] a
    "#);
}

#[test]
fn report_svg_has_a_column_for_every_request() {
    let (rig, _) = run_twelve_requests(Api::Anthropic);
    let file = rig.project().join("budget.svg");
    let ran = rig.run(&["context", "report", "--svg", file.to_str().unwrap()]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains("make the file"));
    for number in 1..=12 {
        assert!(
            svg.contains(&format!("<title>request {number}: ")),
            "{number}"
        );
    }
    assert!(
        svg.contains("class=\"history kept\"") && svg.contains("break: the reminders moved"),
        "{svg}"
    );
    assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
    insta::assert_snapshot!(rig.screen(&["context", "report", "--svg", "/nowhere/at/all.svg"]), @"
    -- errors
    haft: cannot write `/nowhere/at/all.svg`: No such file or directory (os error 2)
    -- exit 2
    ");
}

/// A conversation in the format of OpenAI's chat API.
fn chat() -> Value {
    let call = |id: &str| {
        json!({"role": "assistant", "content": "", "tool_calls": [
        {"id": id, "type": "function", "function": {"name": "read_file", "arguments": "{\"path\": \"a.txt\"}"}}]})
    };
    json!([
        {"role": "system", "content": "You are a test."},
        {"role": "user", "content": "What is in a.txt?"},
        call("c1"),
        {"role": "tool", "tool_call_id": "c1", "content": "hello from the file"},
        call("c2"),
        {"role": "tool", "tool_call_id": "c2", "content": "hello again"},
    ])
}

#[test]
fn render_from_file_is_equivalent_on_every_api() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("unused")]).unwrap(),
    );
    let line = json!({"id": "t1", "source": "somewhere", "kind": "coding", "messages": chat(), "usage": []});
    rig.write("chat.json", chat().to_string());
    rig.write("document.json", json!({"messages": chat()}).to_string());
    rig.write("line.json", format!("{line}\n"));
    let mut seen = Vec::new();
    for api in Api::ALL {
        let bodies = ["chat.json", "document.json", "line.json"]
            .map(|file| render_context(&rig, &["--from-file", file, "--api", api.name()]));
        let [chat, document, line] = bodies.map(|body| decode_with_server(&rig, api, &body));
        assert_eq!(
            (chat.difference(&document), chat.difference(&line)),
            (None, None),
            "{api}"
        );
        assert!(chat.system.contains("You are a test."), "{api}");
        assert_eq!(
            (chat.count_assistant_turns(), chat.count_tool_results()),
            (2, 2),
            "{api}"
        );
        assert!(!chat.tools.is_empty());
        seen.push(chat);
    }
    for other in &seen[1..] {
        assert_eq!(seen[0].difference(other), None, "{}", other.api);
    }
}

/// Posts a rendered body to the strict server, which decodes it with code of its own.
fn decode_with_server(rig: &Rig, api: Api, body: &[u8]) -> Seen {
    let base = rig.server.base_url(api);
    let (host, prefix) = base
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap_or((&base[7..], ""));
    let path = match api {
        Api::OpenaiChat => "v1/chat/completions".to_owned(),
        Api::OpenaiResponses => "v1/responses".to_owned(),
        Api::Anthropic => "v1/messages".to_owned(),
        Api::Gemini => format!("v1beta/models/{MODEL}:streamGenerateContent?alt=sse"),
    };
    let path = if prefix.is_empty() || path.starts_with(prefix) {
        path
    } else {
        format!("{prefix}/{path}")
    };
    let mut stream = TcpStream::connect(host).unwrap();
    let head = format!(
        "POST /{path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\nanthropic-version: 2023-06-01\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    drop(stream.read_to_end(&mut Vec::new()));
    assert!(
        rig.server.refusals().is_empty(),
        "{api}: {:?}",
        rig.server.refusals()
    );
    rig.server
        .generation_requests()
        .pop()
        .unwrap()
        .decode()
        .unwrap()
}

#[test]
fn from_file_needs_no_configuration_if_an_api_is_given() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::turns([Reply::text("unused")]).unwrap(),
    );
    rig.configure("");
    rig.write("chat.json", chat().to_string());
    insta::assert_snapshot!(rig.screen(&["context", "render", "--from-file", "chat.json"]), @"
    -- errors
    haft: no model is chosen; use `-m provider/model` or `--api NAME`, or set `model` in config.toml
    -- exit 2
    ");
    let body = render_context(&rig, &["--from-file", "chat.json", "--api", "gemini"]);
    assert!(serde_json::from_slice::<Value>(&body).unwrap()["contents"].is_array());
    let report = rig
        .run(&[
            "context",
            "report",
            "--from-file",
            "chat.json",
            "--api",
            "gemini",
            "--json",
        ])
        .json();
    assert!(report["tokens"].as_u64().unwrap() > 1_000, "{report}");
    assert!(
        rig.run(&[
            "context",
            "show",
            "--from-file",
            "chat.json",
            "--api",
            "gemini"
        ])
        .stdout()
        .contains("a.txt?")
    );
}

#[test]
fn render_of_a_longer_file_only_appends_bytes() {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::turns([Reply::text("unused")]).unwrap(),
    );
    let mut messages = chat().as_array().unwrap().clone();
    rig.write("long.json", json!(messages).to_string());
    messages.truncate(4);
    rig.write("short.json", json!(messages).to_string());
    for api in Api::ALL {
        let short = render_context(&rig, &["--from-file", "short.json", "--api", api.name()]);
        let long = render_context(&rig, &["--from-file", "long.json", "--api", api.name()]);
        let mark = short
            .windows(19)
            .position(|window| window == b"hello from the file")
            .expect("the result");
        assert!(short[..mark] == long[..mark], "{api}");
    }
}

#[test]
fn from_file_accepts_an_export() {
    let (rig, _) = run_twelve_requests(Api::Anthropic);
    rig.write("export.json", rig.export().to_string());
    // The task is finished, so both continue with equal input.
    let of_file = render_context(&rig, &["--from-file", "export.json", "--input", "go on"]);
    let of_store = render_context(&rig, &["--input", "go on"]);
    let of_file = decode_with_server(&rig, Api::Anthropic, &of_file);
    let of_store = decode_with_server(&rig, Api::Anthropic, &of_store);
    assert_eq!(of_file.count_tool_results(), of_store.count_tool_results());
    assert_eq!(
        of_file.count_assistant_turns(),
        of_store.count_assistant_turns()
    );
}

#[test]
fn render_shows_a_past_request_on_another_api() {
    let (rig, _) = run_twelve_requests(Api::Anthropic);
    let body = render_context(&rig, &["--request", "6", "--api", "openai-chat"]);
    let value: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (&value["messages"][0]["role"], &value["model"]),
        (&json!("system"), &json!(MODEL))
    );
}

#[test]
fn invalid_arguments_get_clear_errors() {
    let usage = Usage {
        input: 10,
        ..Usage::default()
    };
    let rig = Rig::new(
        Api::Anthropic,
        Script::turns([Reply::text("Hello.").with_usage(usage)]).unwrap(),
    );
    rig.write(
        "broken.json",
        "{\"messages\": [{\"role\": \"robot\", \"content\": \"x\"}]}",
    );
    rig.write("two.jsonl", "{\"messages\": []}\n{\"messages\": []}\n");
    let asked = |arguments: &[&str]| rig.screen(&[&["context"], arguments].concat());
    insta::assert_snapshot!(asked(&["show"]), @"
    -- errors
    haft: there is no current conversation in this project; give an id
    -- exit 2
    ");
    rig.task(&["hi"]);
    insta::assert_snapshot!(asked(&["show", "nobody"]), @"
    -- errors
    haft: there is no conversation `nobody`; `haft conversations list --all` shows them
    -- exit 2
    ");
    insta::assert_snapshot!(asked(&["show", "--request", "7"]), @"
    -- errors
    haft: there is no request 7; conversation `ID` has 1
    -- exit 2
    ");
    insta::assert_snapshot!(asked(&["report", "--request", "0"]), @"
    -- errors
    error: invalid value '0' for '--request <N>': 0 is not in 1..18446744073709551615

    For more information, try '--help'.
    -- exit 2
    ");
    insta::assert_snapshot!(asked(&["render", "--request", "2"]), @"
    -- errors
    haft: there is no request 2; conversation `ID` has 1
    -- exit 2
    ");
    insta::assert_snapshot!(asked(&["why", "--request", "2"]), @"
    -- errors
    haft: there is no request 2; conversation `ID` has 1
    -- exit 2
    ");
    insta::assert_snapshot!(asked(&["diff"]), @"
    -- errors
    haft: request 1 has no request before it to compare with
    -- exit 2
    ");
    insta::assert_snapshot!(asked(&["diff", "1", "x"]), @"
    -- errors
    haft: `x` is not the number of a request
    -- exit 2
    ");
    insta::assert_snapshot!(asked(&["show", "--api", "gemini"]), @"
    -- errors
    haft: `--model` and `--api` are for requests not sent yet; add `--next`, or use `render`
    -- exit 2
    ");
    insta::assert_snapshot!(asked(&["render", "--api", "smtp"]), @"
    -- errors
    error: invalid value 'smtp' for '--api <API>': `smtp` is not an API; use openai-chat, openai-responses, anthropic or gemini

    For more information, try '--help'.
    -- exit 2
    ");
    insta::assert_snapshot!(asked(&["render", "--from-file", "nowhere.json"]), @"
    -- errors
    haft: cannot read the conversation `nowhere.json`: No such file or directory (os error 2)
    -- exit 2
    ");
    insta::assert_snapshot!(asked(&["render", "--from-file", "broken.json"]), @"
    -- errors
    haft: `broken.json` is not a conversation: message 1: unknown role `robot`
    -- exit 2
    ");
    insta::assert_snapshot!(asked(&["render", "--from-file", "two.jsonl"]), @"
    -- errors
    haft: `two.jsonl` is not a conversation: it holds 2 lines of JSON; give one of them
    -- exit 2
    ");
    insta::assert_snapshot!(asked(&["render", "--from-file", "broken.json", "--request", "1"]), @"
    -- errors
    error: the argument '--from-file <FILE>' cannot be used with '--request <N>'

    Usage: haft context render --from-file <FILE> [CONVERSATION]

    For more information, try '--help'.
    -- exit 2
    ");
}
