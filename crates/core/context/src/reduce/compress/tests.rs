use std::path::Path;
use std::{env, fs};

use proptest::prelude::*;

use super::*;
use crate::testing::{Quarter, conversation, entry, id, model, system, tool_set};
use crate::{Compress, Memo, Policy, Snapshot, assemble};

/// Every `fixtures/compress/TOOL/SIZE.json` is an envelope; its compressed form stands beside it.
#[test]
fn the_fixtures() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/compress");
    let mut seen = 0;
    let mut folders: Vec<_> = fs::read_dir(&root).unwrap().map(|folder| folder.unwrap().path()).collect();
    folders.sort();
    for folder in folders {
        let tool = folder.file_name().unwrap().to_str().unwrap().to_owned();
        for size in ["small", "medium", "large"] {
            let text = fs::read_to_string(folder.join(size).with_extension("json")).unwrap();
            let envelope: Envelope = serde_json::from_str(&text).unwrap();
            let compressed = compress(&tool, &envelope, CompressLimits::default());
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
fn results_are_whole_while_the_round_runs_and_compressed_afterwards() {
    let (system, model, policy, tools) = (system(), model(), Policy::default(), tool_set(&["read_file"]));
    let texts = |history: &[Arc<Entry>], policy: &Policy| -> Vec<String> {
        let request = assemble(&Snapshot::new(&model, policy, &system, &tools, history, &Quarter)).unwrap().request;
        let results = request.segments.iter().flat_map(|segment| segment.entry.message.tool_results());
        results.map(|result| result.envelope.text.clone()).collect()
    };
    let compressed = |number| format!(r#"{{"status":"success","data":{{"output":"result {number}"}}}}"#);
    assert_eq!(texts(&conversation("UATAT"), &policy), ["result 2", "result 4"]);
    assert_eq!(texts(&conversation("UATATaU"), &policy), [compressed(2), compressed(4)]);
    assert_eq!(texts(&conversation("UATaUAT"), &policy), [compressed(2), "result 6".into()]);
    let never = Policy { compress: Compress::Never, ..Policy::default() };
    assert_eq!(texts(&conversation("UATaUAT"), &never), ["result 2", "result 6"]);
}

#[test]
fn nothing_is_compressed_twice() {
    let (system, model, policy, tools) = (system(), model(), Policy::default(), tool_set(&["read_file"]));
    let (memo, history) = (Memo::default(), conversation("UATATaU"));
    let snapshot =
        Snapshot { memo: Some(&memo), ..Snapshot::new(&model, &policy, &system, &tools, &history, &Quarter) };
    let (one, two) = (assemble(&snapshot).unwrap().request, assemble(&snapshot).unwrap().request);
    assert!(one.segments.iter().zip(&two.segments).all(|(one, two)| Arc::ptr_eq(&one.entry, &two.entry)));
    assert_eq!(one, assemble(&Snapshot { memo: None, ..snapshot }).unwrap().request);
}

#[test]
fn pictures_are_left_out_and_counted() {
    let mut message = conversation("UAT")[2].message.clone();
    message.content.push(Part::Image(haft_types::Image { media_type: "image/png".into(), data: "aGFmdA==".into() }));
    message.message_id = id(2);
    let maker = EntryMaker { counter: &Quarter, memo: None };
    let compressed = compressed_entry(&entry(message), CompressLimits::default(), maker);
    assert_eq!(compressed.message.content.len(), 1);
    assert!(compressed.message.tool_results().next().unwrap().envelope.text.contains(r#""images_left_out":1"#));
}

#[test]
fn react_models_read_the_whole_envelope_while_the_round_runs() {
    let mut line = Timeline::new(crate::build::blocks::repair(&conversation("UATUAT"), &Quarter));
    let maker = EntryMaker { counter: &Quarter, memo: None };
    let round = line.round;
    compress_finished(&mut line, round, CompressLimits::default(), maker);
    let before = line.items[2].entry.clone();
    show_envelopes(&mut line, maker);
    assert_eq!(line.items[2].entry, before, "what is compressed stays so");
    let envelope = Envelope {
        data: json!({"lines": 1}),
        stats: json!({"ms": 3}),
        error: Some(haft_types::ToolError { code: "odd".into(), message: "why".into() }),
        ..Envelope::success("a\nb")
    };
    line.items[5].entry = crate::testing::result(5, "call-4-0", envelope);
    show_envelopes(&mut line, maker);
    let shown = line.items[5].entry.message.tool_results().next().unwrap();
    let expected = r#"{"status":"success","data":{"lines":1},"text":"a\nb","stats":{"ms":3},"error":{"code":"odd","message":"why"}}"#;
    assert_eq!(shown.envelope, Envelope::success(expected));
}

proptest! {
    #[test]
    fn any_text_is_bounded_and_keeps_its_ends(text in "(?s).{0,9000}", lines in 2_usize..60) {
        let kept = ends(&text, lines, text.lines().count());
        prop_assert!(kept.chars().count() <= OTHER_CHARS + 40);
        let trimmed = text.trim_end_matches('\n');
        let first: String = trimmed.lines().next().unwrap_or_default().chars().take(100).collect();
        prop_assert!(kept.starts_with(&first));
        if trimmed.lines().count() <= lines && trimmed.chars().count() <= OTHER_CHARS {
            prop_assert_eq!(kept, trimmed);
        }
    }

    #[test]
    fn any_envelope_compresses_to_one_line(text in "(?s).{0,200}", name in "[a-z_]{1,12}") {
        let envelope = Envelope::failure("odd", text);
        for name in [name.as_str(), "read_file", "execute_command"] {
            let compressed = compress(name, &envelope, CompressLimits::default());
            prop_assert_eq!(compressed.matches('\n').count(), 0);
            prop_assert!(serde_json::from_str::<Value>(&compressed).is_ok());
        }
    }
}
