use std::path::Path;
use std::{env, fs};

use proptest::prelude::*;

use super::rules::{MAX_UNSTRUCTURED_CHARS, cut_to_ends};
use super::*;
use crate::memo::RecallTool;
use crate::testing::{Quarter, conversation, entry, id, lengthy, model, system, tool_set};
use crate::{Compress, Memo, Policy, Snapshot, assemble};

const PLAIN: Compression = Compression {
    limits: CompressLimits {
        list: 20,
        glob: 10,
        grep: 5,
        read: 500,
        edit: 50,
        stdout: 10,
        stderr: 20,
        other: 40,
    },
    protocol: ToolProtocol::Native,
};

/// Every `fixtures/compress/TOOL/SIZE.json` is an envelope; the file beside it has its compressed
/// form.
#[test]
fn compress_matches_the_fixtures() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/compress");
    let mut seen = 0;
    let mut folders: Vec<_> = fs::read_dir(&root)
        .unwrap()
        .map(|folder| folder.unwrap().path())
        .collect();
    folders.sort();
    for folder in folders {
        let tool = folder.file_name().unwrap().to_str().unwrap().to_owned();
        for size in ["small", "medium", "large"] {
            let text = fs::read_to_string(folder.join(size).with_extension("json")).unwrap();
            let envelope: Envelope = serde_json::from_str(&text).unwrap();
            let compressed = compress_envelope(&tool, &envelope, CompressLimits::default());
            assert_eq!(compressed.lines().count(), 1, "{tool} {size}");
            let value: Value = serde_json::from_str(&compressed).unwrap();
            insta::with_settings!({ snapshot_path => &folder, prepend_module_to_snapshot => false, omit_expression => true }, {
                insta::assert_snapshot!(size, serde_json::to_string_pretty(&value).unwrap());
            });
            seen += 1;
        }
    }
    assert_eq!(seen, 3 * 13);
}

#[test]
fn compress_names_failed_tests() {
    let quiet = "test a ... ok\n".repeat(60);
    let stdout = format!("{quiet}test b::\"c\" ... FAILED\n{quiet}test z ... FAILED\n");
    let envelope =
        Envelope::success(stdout.clone()).with_data(json!({"exit_code": 101, "stdout": stdout}));
    let kept = || reduce_result("execute_command", &envelope, PLAIN.limits);
    let text = format_plain_text(
        kept(),
        &envelope,
        Original {
            id: None,
            images: 0,
        },
    );
    assert!(
        text.ends_with("failing:\ntest b::\"c\" ... FAILED"),
        "what the ends show is not said twice: {text}"
    );
    let line = format_json_line(
        kept(),
        &envelope,
        Original {
            id: None,
            images: 0,
        },
    );
    assert_eq!(line.lines().count(), 1);
    let text = Envelope::success(format!("{quiet}FAILED tests/a.py::b\n{quiet}"));
    assert_eq!(
        reduce_result("mcp__a__b", &text, PLAIN.limits).data["failing"],
        json!(["FAILED tests/a.py::b"])
    );
    let whole = Envelope::success("FAILED tests/a.py::b");
    assert_eq!(
        reduce_result("mcp__a__b", &whole, PLAIN.limits)
            .data
            .get("failing"),
        None
    );
}

/// Diffs and lines that the tool itself has shortened: the remaining lines are kept, with a
/// reference to the whole.
#[test]
fn compress_refers_to_results_that_the_tool_shortened() {
    let text = |tool: &str, data: Value| {
        let envelope = Envelope::success("much more").with_data(data);
        format_plain_text(
            reduce_result(tool, &envelope, PLAIN.limits),
            &envelope,
            Original {
                id: Some(id(1).short_id()),
                images: 0,
            },
        )
    };
    let edited = json!({"path": "a", "added": 80, "truncated": true, "diff_head": "@@ -1 +1,80 @@\n-one\n+two"});
    let id = id(1).short_id();
    let named = format!("\"message_id\":\"{id}\"");
    for edited in [
        text("edit_file", edited.clone()),
        text("multi_edit", json!({"files": [edited]})),
    ] {
        assert!(
            edited.ends_with("@@ -1 +1,80 @@\n-one\n+two") && edited.contains(&named),
            "{edited}"
        );
        assert!(!edited.contains("diff_head"), "{edited}");
    }
    let line = json!({"exit_code": 0, "stdout": "数".repeat(2_000), "stdout_lines": 1, "stdout_bytes": 18_001});
    assert!(text("execute_command", line).contains(&named));
    let whole = json!({"exit_code": 0, "stdout": "数".repeat(1_300), "stdout_lines": 1, "stdout_bytes": 3_900});
    assert!(!text("execute_command", whole).contains(&named));
}

#[test]
fn compress_waits_for_the_end_of_the_round() {
    let system = system();
    let model = model();
    let tools = tool_set(&["read_file"]);
    let texts = |history: &[Arc<Entry>], policy: &Policy| -> Vec<String> {
        let request = assemble(&Snapshot::new(
            &model, policy, &system, &tools, history, &Quarter,
        ))
        .unwrap()
        .request;
        let results = request
            .segments
            .iter()
            .flat_map(|segment| segment.entry.message.tool_results());
        results.map(|result| result.envelope.text.clone()).collect()
    };
    let policy = Policy {
        compress: Some(Compress::RoundEnd),
        ..Policy::default()
    };
    let compressed = |history: &[Arc<Entry>], policy: &Policy| -> Vec<bool> {
        texts(history, policy)
            .iter()
            .map(|text| text.starts_with(r#"{"status":"success""#))
            .collect()
    };
    assert_eq!(compressed(&lengthy("UATAT"), &policy), [false, false]);
    assert_eq!(compressed(&lengthy("UATATaU"), &policy), [true, true]);
    assert_eq!(compressed(&lengthy("UATaUAT"), &policy), [true, false]);
    let never = Policy {
        compress: Some(Compress::Never),
        ..Policy::default()
    };
    assert_eq!(compressed(&lengthy("UATaUAT"), &never), [false, false]);
    // A result whose compressed form would not be smaller stays whole.
    assert_eq!(
        texts(&conversation("UATATaU"), &policy),
        ["result 2", "result 4"]
    );
}

#[test]
fn compress_turns_files_and_output_into_plain_text() {
    let numbers: Vec<_> = (1..=600)
        .map(|number| format!("let \"x\" = {number};"))
        .collect();
    let data = json!({"path": "a.rs", "start_line": 1, "end_line": 600, "total_lines": 600, "mtime": "2026-11-15T10:00:00Z",
        "content": numbers.join("\n")});
    let envelope = Envelope::success(numbers.join("\n")).with_data(data);
    let original = Original {
        id: Some(id(3).short_id()),
        images: 0,
    };
    let text = format_plain_text(
        reduce_result("read_file", &envelope, PLAIN.limits),
        &envelope,
        original,
    );
    let (head, body) = text.split_once('\n').unwrap();
    let expected = format!(
        r#"{{"status":"success","data":{{"path":"a.rs","start_line":1,"end_line":500,"total_lines":600,"truncated":true,"message_id":"{}"}}}}"#,
        id(3).short_id()
    );
    assert_eq!(head, expected);
    assert_eq!(body.lines().count(), 500);
    assert_eq!(body.lines().nth(1).unwrap(), "2\tlet \"x\" = 2;");

    let data = json!({"exit_code": 1, "stdout": "out\n", "stderr": "bad\n", "stdout_lines": 1, "stdout_bytes": 4});
    let envelope = Envelope::success("out\nbad").with_data(data);
    let text = format_plain_text(
        reduce_result("execute_command", &envelope, PLAIN.limits),
        &envelope,
        original,
    );
    assert_eq!(
        text,
        "{\"status\":\"success\",\"data\":{\"exit_code\":1,\"stdout_lines\":1,\"stdout_bytes\":4}}\nstdout:\nout\nstderr:\nbad",
        "nothing is left out, so no id is named"
    );
    let hit = |line: u32| json!({"path": "a.rs", "line": line, "text": "fn main()"});
    let data = json!({"matches": 7, "lines": (1..8).map(hit).collect::<Vec<_>>()});
    let text = format_plain_text(
        reduce_result(
            "search_files",
            &Envelope::success("").with_data(data),
            PLAIN.limits,
        ),
        &envelope,
        original,
    );
    assert!(
        text.ends_with("a.rs:4:fn main()\na.rs:5:fn main()"),
        "{text}"
    );
}

#[test]
fn compress_memoizes_entries() {
    let system = system();
    let model = model();
    let policy = Policy::default();
    let tools = tool_set(&["read_file"]);
    let memo = Memo::default();
    let history = lengthy("UATATaU");
    let snapshot = Snapshot {
        memo: Some(&memo),
        ..Snapshot::new(&model, &policy, &system, &tools, &history, &Quarter)
    };
    let one = assemble(&snapshot).unwrap().request;
    let two = assemble(&snapshot).unwrap().request;
    assert!(
        one.segments
            .iter()
            .zip(&two.segments)
            .all(|(one, two)| Arc::ptr_eq(&one.entry, &two.entry))
    );
    assert_eq!(
        one,
        assemble(&Snapshot {
            memo: None,
            ..snapshot
        })
        .unwrap()
        .request
    );
}

#[test]
fn compressed_entry_omits_and_counts_images() {
    let mut message = conversation("UAT")[2].message.clone();
    message.content.push(Part::Image(haft_types::Image {
        media_type: "image/png".into(),
        data: "aGFmdA==".into(),
    }));
    message.message_id = id(2);
    let maker = EntryMaker {
        counter: &Quarter,
        memo: None,
        recall: RecallTool::Missing,
    };
    for part in &mut message.content {
        if let Part::ToolResult(result) = part {
            result.envelope.text = "a line\n".repeat(100);
        }
    }
    let compressed = compressed_entry(&entry(message), PLAIN, maker).unwrap();
    assert_eq!(compressed.message.content.len(), 1);
    assert!(
        compressed
            .message
            .tool_results()
            .next()
            .unwrap()
            .envelope
            .text
            .contains(r#""images_left_out":1"#)
    );
}

#[test]
fn compress_keeps_react_envelopes_while_the_round_runs() {
    let mut line = Timeline::new(crate::build::blocks::repair_blocks(
        &lengthy("UATUAT"),
        &Quarter,
    ));
    let maker = EntryMaker {
        counter: &Quarter,
        memo: None,
        recall: RecallTool::Missing,
    };
    let round = line.round;
    compress_rounds_before(
        &mut line,
        round,
        Compression {
            protocol: ToolProtocol::React,
            ..PLAIN
        },
        maker,
    );
    let before = line.items[2].entry.clone();
    show_envelopes(&mut line, maker);
    assert_eq!(line.items[2].entry, before, "what is compressed stays so");
    let envelope = Envelope {
        data: json!({"lines": 1, "path": "/p/a", "content": "a\nb\n", "truncated": true, "entries": ["a"]}),
        stats: json!({"ms": 3}),
        context: json!({"hash": "x"}),
        error: Some(haft_types::ToolError {
            code: "odd".into(),
            message: "why".into(),
        }),
        ..Envelope::success("a\nb")
    };
    line.items[5].entry = crate::testing::result(5, "call-4-0", envelope);
    show_envelopes(&mut line, maker);
    let shown = line.items[5].entry.message.tool_results().next().unwrap();
    let expected = r#"{"status":"success","data":{"lines":1,"truncated":true},"text":"a\nb","error":{"code":"odd","message":"why"}}"#;
    assert_eq!(shown.envelope, Envelope::success(expected));
}

proptest! {
    #[test]
    fn ends_limit_any_text_and_keep_both_ends(text in "(?s).{0,9000}", lines in 2_usize..60) {
        let (kept, cut) = cut_to_ends(&text, lines, text.lines().count());
        prop_assert!(kept.chars().count() <= MAX_UNSTRUCTURED_CHARS + 40);
        let trimmed = text.trim_end_matches('\n');
        let first: String = trimmed.lines().next().unwrap_or_default().chars().take(100).collect();
        prop_assert!(kept.starts_with(&first));
        if trimmed.lines().count() <= lines && trimmed.chars().count() <= MAX_UNSTRUCTURED_CHARS {
            prop_assert_eq!(kept, trimmed);
            prop_assert!(!cut);
        }
    }

    #[test]
    fn compress_turns_any_envelope_into_one_line(text in "(?s).{0,200}", name in "[a-z_]{1,12}") {
        let envelope = Envelope::failure("odd", text);
        for name in [name.as_str(), "read_file", "execute_command"] {
            let compressed = compress_envelope(name, &envelope, CompressLimits::default());
            prop_assert_eq!(compressed.matches('\n').count(), 0);
            prop_assert!(serde_json::from_str::<Value>(&compressed).is_ok());
        }
    }

    #[test]
    fn compressed_entry_is_never_larger_than_the_whole(
        name in prop::sample::select(TOOLS.to_vec()),
        text in "(?s)[ -~é字\n]{0,600}",
        data in data(),
        react in any::<bool>(),
    ) {
        let envelope = Envelope { data, text, ..Envelope::default() };
        let whole = crate::testing::named_result(2, "call", name, envelope);
        let protocol = if react { ToolProtocol::React } else { ToolProtocol::Native };
        let maker = EntryMaker { counter: &Quarter, memo: None, recall: RecallTool::Missing };
        if let Some(compressed) = compressed_entry(&whole, Compression { protocol, ..PLAIN }, maker) {
            prop_assert!(compressed.tokens * 5 <= whole.tokens * 4, "{} of {}", compressed.tokens, whole.tokens);
        }
    }
}

/// Every tool with its own rule, and one without.
const TOOLS: [&str; 18] = [
    "list_files",
    "glob",
    "search_files",
    "read_file",
    "ac_mod_read",
    "write_to_file",
    "edit_file",
    "replace_in_file",
    "ac_mod_write",
    "multi_edit",
    "apply_patch",
    "execute_command",
    "session_start",
    "session_interactive",
    "background_task",
    "todo_read",
    "todo_write",
    "mcp__a__b",
];

/// Generates data of results: fields that the rules use, with any value, and others.
fn data() -> impl Strategy<Value = Value> {
    const KEYS: [&str; 12] = [
        "path",
        "entries",
        "lines",
        "content",
        "diff",
        "files",
        "stdout",
        "stderr",
        "items",
        "truncated",
        "start_line",
        "other",
    ];
    let text = prop_oneof![
        "[a-z \n]{0,300}".prop_map(Value::from),
        any::<u32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from)
    ];
    let value = prop_oneof![
        text.clone(),
        prop::collection::vec(text, 0..40).prop_map(Value::from)
    ];
    prop::collection::vec((prop::sample::select(KEYS.to_vec()), value), 0..8).prop_map(|fields| {
        Value::Object(
            fields
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        )
    })
}
