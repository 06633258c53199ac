use haft_types::{Message, Thinking};

use super::*;
use crate::memo::RecallTool;
use crate::testing::{Quarter, at, call, conversation, entry, id, model, system, tool_set};
use crate::{Compress, Policy, Snapshot, assemble};

const MAKER: EntryMaker<'_> = EntryMaker {
    counter: &Quarter,
    memo: None,
    recall: RecallTool::Missing,
};

fn sent_texts(shape: &str, ids: MessageIds) -> Vec<String> {
    let policy = Policy {
        message_ids: ids,
        compress: Some(Compress::Never),
        ..Policy::default()
    };
    let system = system();
    let model = model();
    let tools = tool_set(&[]);
    let history = conversation(shape);
    let built = assemble(&Snapshot::new(
        &model, &policy, &system, &tools, &history, &Quarter,
    ))
    .unwrap();
    assert_eq!(
        built.account.budget.used_tokens(),
        built.request.estimated_tokens()
    );
    let text = |message: &Message| match message.tool_results().next() {
        Some(result) => result.envelope.text.clone(),
        None => message.joined_text(),
    };
    built.request.segments[1..]
        .iter()
        .map(|segment| text(&segment.entry.message))
        .collect()
}

#[test]
fn message_ids_setting_selects_the_messages_with_hints() {
    let hint = |number: usize| format_hint(id(number));
    assert_eq!(
        sent_texts("UAT", MessageIds::Off),
        ["input 0", "", "result 2"]
    );
    assert_eq!(
        sent_texts("UAT", MessageIds::Results),
        [
            "input 0".into(),
            String::new(),
            format!("result 2\n\n{}", hint(2))
        ]
    );
    let all = [
        format!("input 0\n\n{}", hint(0)),
        hint(1),
        format!("result 2\n\n{}", hint(2)),
    ];
    assert_eq!(sent_texts("UAT", MessageIds::All), all);
    assert_eq!(
        sent_texts("ΣU", MessageIds::All),
        ["summary 0".into(), format!("input 1\n\n{}", hint(1))]
    );
}

#[test]
fn hinted_puts_the_hint_before_calls_and_after_signed_parts() {
    let signed = Part::Text {
        text: "signed".into(),
        signature: Some("s".into()),
    };
    let thinking = Part::Thinking(Thinking {
        text: "hm".into(),
        ..Thinking::default()
    });
    let parts = vec![thinking.clone(), signed.clone(), call("1", "t", "{}")];
    let message = entry(Message::new(id(7), Role::Assistant, parts, at(7)));
    let made = add_hint(&message, MAKER);
    assert_eq!(
        made.message.content,
        [
            thinking,
            signed,
            Part::from_text(format_hint(id(7))),
            call("1", "t", "{}")
        ]
    );
    assert_ne!(made.hash, message.hash);
}

#[test]
fn strip_hints_removes_every_repeated_hint() {
    for (text, expected) in [
        ("done", "done"),
        ("done\n\n[Hint: message_id: 0a1b2c3d]", "done"),
        (
            "one\n\n[Hint: message_id: 0a1b2c3d]\ntwo [Hint: message_id: ffffffff].",
            "one\ntwo .",
        ),
        ("[Hint: message_id: 0a1b2c3]", "[Hint: message_id: 0a1b2c3]"),
        (
            "[Hint: message_id: 0a1b2c3g]",
            "[Hint: message_id: 0a1b2c3g]",
        ),
        ("[Hint: message_id: äöüß]", "[Hint: message_id: äöüß]"),
        ("[Hint: message_id: ", "[Hint: message_id: "),
    ] {
        assert_eq!(strip_hints(text), expected);
    }
}

#[test]
fn hint_filter_on_pieces_equals_strip_hints() {
    let texts = [
        "done\n\n[Hint: message_id: 0a1b2c3d]",
        "one\n\n[Hint: message_id: 0a1b2c3d]\ntwo [Hint: message_id: ffffffff].\n",
        "[[Hint: message_id: 0a1b2c3d]]\n[Hin\n[Hint: message_id: 0a1b2c3]\n\n",
        "多行\n[Hint: message_id: äöüß]\n[Hint: message_id: 0a1b2c3d]尾",
    ];
    for text in texts {
        let whole = strip_hints(text);
        for size in 1..9 {
            let mut filter = HintFilter::default();
            let letters: Vec<char> = text.chars().collect();
            let mut shown = String::new();
            for piece in letters.chunks(size) {
                shown += &filter.feed(&piece.iter().collect::<String>());
                assert!(whole.starts_with(&shown), "{shown:?} of {whole:?}");
            }
            assert_eq!(shown + &filter.take_rest(), whole, "{size}");
        }
    }
}
