use haft_types::{Layer, ModelSpec};
use proptest::prelude::*;

use super::*;
use crate::testing::{Quarter, at, call, entry, id, model, result, system, text, tool_set, whole_conversation};
use crate::{Assembly, Compress, SafeZone, Snapshot, assemble};

fn policy(zone: u64) -> Policy {
    Policy { safe_zone: SafeZone::Tokens(zone), compress: Compress::Never, ..Policy::default() }
}

fn build(history: &[Arc<haft_types::Entry>], policy: &Policy, cleared: Option<&Cleared>, marks: &Marks) -> Assembly {
    let (system, model, tools) =
        (system(), ModelSpec { context_window: 1_000_000, ..model() }, tool_set(&["read_file"]));
    let plain = Snapshot::new(&model, policy, &system, &tools, history, &Quarter);
    assemble(&Snapshot { cleared, marks: Some(marks), ..plain }).unwrap()
}

/// An input and `steps` blocks with results of 1,000 tokens each.
fn long(steps: usize) -> Vec<Arc<haft_types::Entry>> {
    let mut history = vec![text(0, Role::User, "go")];
    for step in 0..steps {
        let (number, call_id) = (1 + step * 2, format!("call-{step}"));
        let parts = vec![call(&call_id, "read_file", r#"{"path":"a"}"#)];
        history.push(entry(Message::new(id(number), Role::Assistant, parts, at(number))));
        history.push(result(number + 1, &call_id, Envelope::success("word ".repeat(800))));
    }
    history
}

fn cleared_ids(assembly: &Assembly) -> Vec<MessageId> {
    let cleared = assembly.request.segments.iter().filter(|segment| segment.owner == CLEARED);
    cleared.map(|segment| segment.entry.message.message_id).collect()
}

#[test]
fn below_the_safe_zone_nothing_is_cleared() {
    let assembly = build(&long(10), &policy(100_000), None, &Marks::default());
    assert!(cleared_ids(&assembly).is_empty());
    assert_eq!((assembly.account.pruned_tokens, assembly.account.cleared), (0, None));
}

#[test]
fn the_oldest_results_go_first_and_only_as_many_as_needed() {
    let history = long(10);
    let whole = build(&history, &policy(1_000_000), None, &Marks::default()).request.tokens();
    let assembly = build(&history, &policy(whole - 1_500), None, &Marks::default());
    assert_eq!(cleared_ids(&assembly), [2, 4].map(id));
    assert!(assembly.request.tokens() <= whole - 1_500);
    assert_eq!(assembly.account.pruned_tokens, whole - assembly.request.tokens());
    let notice = assembly.request.segments[3].entry.message.tool_results().next().unwrap().envelope.text.clone();
    assert_eq!(
        notice,
        format!(
            "[Cleared to make room: result of `read_file` (success). Its text is kept under message id {}.]",
            id(2).short()
        )
    );
}

#[test]
fn the_newest_six_cleanable_messages_stay() {
    let assembly = build(&long(10), &policy(1), None, &Marks::default());
    assert_eq!(cleared_ids(&assembly), [2, 4, 6, 8].map(id));
}

#[test]
fn what_was_cleared_stays_cleared() {
    let mut history = long(10);
    let first = build(&history, &policy(8_000), None, &Marks::default());
    let cleared = first.account.cleared.clone().unwrap();
    assert_eq!(cleared.ids.len(), cleared_ids(&first).len());
    // Even if it would fit again, and nothing new is decided while it fits.
    history.truncate(9);
    let later = build(&history, &policy(8_000), Some(&cleared), &Marks::default());
    assert_eq!(cleared_ids(&later), cleared_ids(&first));
    assert_eq!(later.account.cleared, None);
    // A larger zone takes the decisions back.
    let larger = build(&history, &policy(100_000), Some(&cleared), &Marks::default());
    assert!(cleared_ids(&larger).is_empty());
}

#[test]
fn larger_steps_clear_less_often() {
    let episodes = |prune_to: f64| {
        let policy = Policy { prune_to, ..policy(12_000) };
        let (mut cleared, mut episodes) = (None, 0);
        for steps in 1..40 {
            if let Some(more) = build(&long(steps), &policy, cleared.as_ref(), &Marks::default()).account.cleared {
                (cleared, episodes) = (Some(more), episodes + 1);
            }
        }
        episodes
    };
    assert!(episodes(0.7) * 2 < episodes(1.0));
}

#[test]
fn pinned_messages_stay_and_masked_ones_go() {
    let marks = Marks { pinned: [id(2)].into(), masked: [id(20)].into(), ..Marks::default() };
    let assembly = build(&long(10), &policy(100_000), None, &marks);
    assert_eq!(cleared_ids(&assembly), [id(20)]);
    let assembly = build(&long(10), &policy(1), None, &marks);
    assert_eq!(cleared_ids(&assembly), [4, 6, 8, 20].map(id));
}

#[test]
fn long_arguments_are_cut_and_the_call_stays_valid() {
    let content = "ü".repeat(700);
    let arguments = serde_json::json!({"path": "a", "content": content, "n": 1, "deep": [{"text": "x".repeat(501)}]});
    let mut history = long(8);
    let parts = vec![call("big", "write_to_file", &arguments.to_string())];
    history.insert(1, entry(Message::new(id(100), Role::Assistant, parts, at(0))));
    history.insert(2, result(101, "big", Envelope::success("ok")));
    let assembly = build(&history, &policy(1), None, &Marks::default());
    let message = &assembly.request.segments[2].entry.message;
    let cut: Value = serde_json::from_str(&message.tool_calls().next().unwrap().arguments).unwrap();
    assert_eq!(
        cut["content"],
        format!("{}[200 more characters were cleared: message {}]", "ü".repeat(500), id(100).short())
    );
    assert_eq!(
        cut["deep"][0]["text"],
        format!("{}[1 more characters were cleared: message {}]", "x".repeat(500), id(100).short())
    );
    assert_eq!((&cut["path"], &cut["n"]), (&"a".into(), &1.into()));
    let short = assembly.request.segments[3].entry.message.tool_results().next().unwrap();
    assert_eq!(short.envelope.text, "ok", "a notice would be longer");
}

#[test]
fn only_a_long_string_makes_arguments_large() {
    let policy = Policy { prune_argument_chars: 5, ..Policy::default() };
    let large = |arguments: &str| {
        let Part::ToolCall(call) = call("1", "t", arguments) else { unreachable!() };
        has_large_argument(&call, &policy)
    };
    for (arguments, expected) in [
        (r#"{"a": "12345", "b": "12345", "c": [1, 2, 3, 4, 5, 6]}"#, false),
        (r#"{"a": "123456"}"#, true),
        (r#"{"a": "1\"3\n\u00fc"}"#, false),
        (r#"{"a": "1\"3\n\u00fc6"}"#, true),
        ("üüüüü", false),
    ] {
        assert_eq!(large(arguments), expected, "{arguments}");
    }
}

#[test]
fn a_zone_beyond_the_window_is_an_error() {
    let (system, model, tools) = (system(), model(), tool_set(&[]));
    let (policy, history) = (policy(200_001), long(1));
    let error = assemble(&Snapshot::new(&model, &policy, &system, &tools, &history, &Quarter)).unwrap_err();
    assert!(matches!(error, crate::ContextError::SafeZone(_)));
}

proptest! {
    #[test]
    fn structure_never_changes(history in whole_conversation(120), zone in 1_u64..3_000) {
        let mut history = history;
        history.push(text(10_000, Role::User, "go on"));
        let before = build(&history, &policy(900_000), None, &Marks::default());
        let after = build(&history, &policy(zone), None, &Marks::default());
        let structure = |assembly: &Assembly| -> Vec<_> {
            let segments = assembly.request.segments.iter();
            segments.map(|one| (one.entry.message.message_id, one.entry.message.role, one.layer)).collect()
        };
        prop_assert_eq!(structure(&before), structure(&after));
        prop_assert!(after.request.tokens() <= before.request.tokens());
        prop_assert!(after.account.pruning_steps <= 2 * history.len());
        prop_assert!(after.request.segments.iter().all(|one| one.owner != CLEARED || one.layer == Layer::History));
        // Decisions only ever grow, and the next request repeats the same bytes.
        if let Some(cleared) = &after.account.cleared {
            let again = build(&history, &policy(zone), Some(cleared), &Marks::default());
            prop_assert_eq!(&again.request, &after.request);
            prop_assert_eq!(&again.account.cleared, &None);
        }
    }
}

#[test]
fn a_corrected_factor_does_not_take_pruning_back() {
    let (system, tools, history, policy) = (system(), tool_set(&["read_file"]), long(20), policy(20_000));
    let build = |tokenizer_factor, cleared: Option<&Cleared>| {
        let model = ModelSpec { context_window: 1_000_000, tokenizer_factor, ..model() };
        assemble(&Snapshot { cleared, ..Snapshot::new(&model, &policy, &system, &tools, &history, &Quarter) }).unwrap()
    };
    let first = build(1.3, None);
    let cleared = first.account.cleared.clone().expect("results were cleared");
    let second = build(1.2, Some(&cleared));
    assert_eq!(second.request, first.request, "a smaller factor makes room, but what is cleared stays so");
    assert!(cleared_ids(&build(1.2, None)).len() < cleared.ids.len());
}
