use haft_types::{Layer, ModelSpec};
use proptest::prelude::*;

use super::*;
use crate::testing::{
    Quarter, at, call, entry, id, model, result, system, text, tool_set, whole_conversation,
};
use crate::{Assembly, Compress, SafeZone, Snapshot, assemble};

fn policy(zone: u64) -> Policy {
    Policy {
        safe_zone: Some(SafeZone::Tokens(zone)),
        compress: Some(Compress::Never),
        ..Policy::default()
    }
}

fn build(history: &[Arc<Entry>], policy: &Policy, cleared: Option<&Cleared>) -> Assembly {
    build_with_tools(history, policy, cleared, &["read_file", "recall"])
}

fn build_with_tools(
    history: &[Arc<Entry>],
    policy: &Policy,
    cleared: Option<&Cleared>,
    names: &[&str],
) -> Assembly {
    let system = system();
    let model = ModelSpec {
        context_window: 1_000_000,
        ..model()
    };
    let tools = tool_set(names);
    let plain = Snapshot::new(&model, policy, &system, &tools, history, &Quarter);
    assemble(&Snapshot { cleared, ..plain }).unwrap()
}

/// Returns an input and `steps` blocks with results of 1,000 tokens each.
fn long_conversation(steps: usize) -> Vec<Arc<Entry>> {
    let mut history = vec![text(0, Role::User, "go")];
    for step in 0..steps {
        let number = 1 + step * 2;
        let call_id = format!("call-{step}");
        let parts = vec![call(&call_id, "read_file", r#"{"path":"a"}"#)];
        history.push(entry(Message::new(
            id(number),
            Role::Assistant,
            parts,
            at(number),
        )));
        history.push(result(
            number + 1,
            &call_id,
            Envelope::success("word ".repeat(800)),
        ));
    }
    history
}

fn cleared_ids(assembly: &Assembly) -> Vec<MessageId> {
    let cleared = assembly
        .request
        .segments
        .iter()
        .filter(|segment| segment.owner == CLEARED_OWNER);
    cleared
        .map(|segment| segment.entry.message.message_id)
        .collect()
}

#[test]
fn prune_clears_nothing_below_the_safe_zone() {
    let assembly = build(&long_conversation(10), &policy(100_000), None);
    assert!(cleared_ids(&assembly).is_empty());
    assert_eq!(
        (assembly.account.pruned_tokens, assembly.account.cleared),
        (0, None)
    );
}

#[test]
fn prune_clears_only_as_many_of_the_oldest_results_as_needed() {
    let history = long_conversation(10);
    let whole = build(&history, &policy(1_000_000), None)
        .request
        .estimated_tokens();
    let assembly = build(
        &history,
        &Policy {
            prune_to: Some(1.0),
            ..policy(whole - 1_500)
        },
        None,
    );
    assert_eq!(cleared_ids(&assembly), [2, 4].map(id));
    assert!(assembly.request.estimated_tokens() <= whole - 1_500);
    assert_eq!(
        assembly.account.pruned_tokens,
        whole - assembly.request.estimated_tokens()
    );
    let notice = assembly.request.segments[3]
        .entry
        .message
        .tool_results()
        .next()
        .unwrap()
        .envelope
        .text
        .clone();
    assert_eq!(
        notice,
        format!(
            "[Cleared: result of `read_file` (success); `recall` {} brings it back.]",
            id(2).short_id()
        )
    );
}

#[test]
fn prune_notices_name_only_offered_tools() {
    let mut history = long_conversation(10);
    let arguments = serde_json::json!({"path": "a", "content": "x".repeat(700)});
    let parts = vec![call("big", "write_to_file", &arguments.to_string())];
    history.insert(
        1,
        entry(Message::new(id(100), Role::Assistant, parts, at(0))),
    );
    history.insert(2, result(101, "big", Envelope::success("ok")));
    let assembly = build_with_tools(&history, &policy(1_000), None, &["read_file"]);
    let sent = serde_json::to_string(
        &assembly
            .request
            .segments
            .iter()
            .map(|one| &one.entry.message)
            .collect::<Vec<_>>(),
    );
    let sent = sent.unwrap();
    assert!(
        sent.contains(&format!(
            "[Cleared: result of `read_file` (success); message {}.]",
            id(2).short_id()
        )),
        "{sent}"
    );
    assert!(
        sent.contains(&format!(
            "[The arguments of this call are shortened here; message {} has them whole.]",
            id(100).short_id()
        )),
        "{sent}"
    );
    assert!(!sent.contains("recall"), "{sent}");
}

#[test]
fn prune_notices_name_failed_tests() {
    let mut history = long_conversation(10);
    let output = format!(
        "{}\n  --- FAIL: TestOne (0.1s)  \ntest two ... FAILED\n{0}",
        "ok\n".repeat(900)
    );
    history[2] = result(2, "call-0", Envelope::success(output));
    let assembly = build(&history, &policy(1_000), None);
    let notice = assembly.request.segments[3]
        .entry
        .message
        .tool_results()
        .next()
        .unwrap()
        .envelope
        .text
        .clone();
    let named: Vec<_> = notice.lines().skip(1).collect();
    assert_eq!(named, ["--- FAIL: TestOne (0.1s)", "test two ... FAILED"]);
}

#[test]
fn prune_keeps_the_newest_six_results() {
    let assembly = build(&long_conversation(10), &policy(1_000), None);
    assert_eq!(cleared_ids(&assembly), [2, 4, 6, 8].map(id));
}

#[test]
fn prune_keeps_results_cleared_in_later_requests() {
    let mut history = long_conversation(10);
    let first = build(&history, &policy(8_000), None);
    let cleared = first.account.cleared.clone().unwrap();
    assert_eq!(cleared.ids.len(), cleared_ids(&first).len());
    // Even if the results would fit again; no new result is cleared while the request fits.
    history.truncate(11);
    let later = build(&history, &policy(8_000), Some(&cleared));
    assert_eq!(cleared_ids(&later), cleared_ids(&first));
    assert_eq!(later.account.cleared, None);
    // A larger zone reverts the decisions.
    let larger = build(&history, &policy(100_000), Some(&cleared));
    assert!(cleared_ids(&larger).is_empty());
}

#[test]
fn prune_waits_while_it_would_clear_little_and_the_request_fits() {
    let history = long_conversation(7);
    let whole = build(&history, &policy(1_000_000), None)
        .request
        .estimated_tokens();
    // One result can be cleared, which is less than a tenth of the zone.
    let zone = SafeZone::Tokens(whole * 20 - 1);
    let small = Policy {
        safe_zone: Some(zone),
        prune_keep: Some(6),
        ..policy(1_000)
    };
    let mut long_input = history.clone();
    long_input[0] = text(0, Role::User, &"word ".repeat(whole as usize * 16));
    let build = |window: u32| {
        let system = system();
        let tools = tool_set(&["read_file"]);
        let model = ModelSpec {
            context_window: window,
            max_output_tokens: Some(1_000),
            ..model()
        };
        assemble(&Snapshot::new(
            &model,
            &small,
            &system,
            &tools,
            &long_input,
            &Quarter,
        ))
        .unwrap()
    };
    let tokens = build(10_000_000).request.estimated_tokens();
    assert!(cleared_ids(&build(10_000_000)).is_empty());
    assert_eq!(
        cleared_ids(&build((tokens as f64 / 0.9) as u32 + 900)),
        [id(2)],
        "close to the window it goes"
    );
}

#[test]
fn prune_with_a_lower_target_clears_less_often() {
    let episodes = |prune_to: f64| {
        let policy = Policy {
            prune_to: Some(prune_to),
            ..policy(12_000)
        };
        let mut cleared = None;
        let mut episodes = 0;
        for steps in 1..40 {
            if let Some(more) = build(&long_conversation(steps), &policy, cleared.as_ref())
                .account
                .cleared
            {
                (cleared, episodes) = (Some(more), episodes + 1);
            }
        }
        episodes
    };
    assert!(
        episodes(0.5) * 2 <= episodes(0.9),
        "{} and {}",
        episodes(0.5),
        episodes(0.9)
    );
}

#[test]
fn prune_cuts_long_arguments_into_valid_calls() {
    let content = "ü".repeat(700);
    let arguments = serde_json::json!({"path": "a", "content": content, "n": 1, "deep": [{"text": "x".repeat(501)}]});
    let mut history = long_conversation(8);
    let parts = vec![call("big", "write_to_file", &arguments.to_string())];
    history.insert(
        1,
        entry(Message::new(id(100), Role::Assistant, parts, at(0))),
    );
    history.insert(2, result(101, "big", Envelope::success("ok")));
    let assembly = build(&history, &policy(1_000), None);
    let message = &assembly.request.segments[2].entry.message;
    let cut: Value = serde_json::from_str(&message.tool_calls().next().unwrap().arguments).unwrap();
    assert_eq!(cut["content"], "ü".repeat(500));
    assert_eq!(cut["deep"][0]["text"], "x".repeat(500));
    assert_eq!((&cut["path"], &cut["n"]), (&"a".into(), &1.into()));
    let short = assembly.request.segments[3]
        .entry
        .message
        .tool_results()
        .next()
        .unwrap();
    let note = "[The arguments of this call are shortened here; `recall` ";
    let text = &short.envelope.text;
    assert!(
        text.starts_with(&format!("ok\n{note}{}", id(100).short_id())),
        "{text}"
    );
}

#[test]
fn has_large_argument_only_for_a_long_string() {
    let policy = Policy {
        prune_argument_chars: 5,
        ..Policy::default()
    };
    let large = |arguments: &str| {
        let Part::ToolCall(call) = call("1", "t", arguments) else {
            unreachable!()
        };
        has_large_argument(&call, &policy)
    };
    for (arguments, expected) in [
        (
            r#"{"a": "12345", "b": "12345", "c": [1, 2, 3, 4, 5, 6]}"#,
            false,
        ),
        (r#"{"a": "123456"}"#, true),
        (r#"{"a": "1\"3\n\u00fc"}"#, false),
        (r#"{"a": "1\"3\n\u00fc6"}"#, true),
        ("üüüüü", false),
    ] {
        assert_eq!(large(arguments), expected, "{arguments}");
    }
}

#[test]
fn safe_zone_beyond_the_window_is_an_error() {
    let system = system();
    let model = model();
    let tools = tool_set(&[]);
    let policy = policy(200_001);
    let history = long_conversation(1);
    let error = assemble(&Snapshot::new(
        &model, &policy, &system, &tools, &history, &Quarter,
    ))
    .unwrap_err();
    assert!(matches!(error, crate::ContextError::SafeZone(_)));
}

proptest! {
    #[test]
    fn prune_never_changes_the_structure(history in whole_conversation(120), zone in 1_000_u64..3_000) {
        let mut history = history;
        history.push(text(10_000, Role::User, "go on"));
        let before = build(&history, &policy(900_000), None);
        let after = build(&history, &policy(zone), None);
        let structure = |assembly: &Assembly| -> Vec<_> {
            let segments = assembly.request.segments.iter();
            segments.map(|one| (one.entry.message.message_id, one.entry.message.role, one.layer)).collect()
        };
        prop_assert_eq!(structure(&before), structure(&after));
        prop_assert!(after.request.estimated_tokens() <= before.request.estimated_tokens());
        prop_assert!(after.account.pruning_steps <= 2 * history.len());
        prop_assert!(after.request.segments.iter().all(|one| one.owner != CLEARED_OWNER || one.layer == Layer::History));
        // Decisions only ever grow, and the next request repeats the bytes.
        if let Some(cleared) = &after.account.cleared {
            let again = build(&history, &policy(zone), Some(cleared));
            prop_assert_eq!(&again.request, &after.request);
            prop_assert_eq!(&again.account.cleared, &None);
        }
    }
}

#[test]
fn prune_decisions_survive_a_corrected_factor() {
    let system = system();
    let tools = tool_set(&["read_file"]);
    let history = long_conversation(20);
    let policy = Policy {
        prune_to: Some(1.0),
        ..policy(20_000)
    };
    let build = |tokenizer_factor, cleared: Option<&Cleared>| {
        let model = ModelSpec {
            context_window: 1_000_000,
            tokenizer_factor,
            ..model()
        };
        assemble(&Snapshot {
            cleared,
            ..Snapshot::new(&model, &policy, &system, &tools, &history, &Quarter)
        })
        .unwrap()
    };
    let first = build(1.3, None);
    let cleared = first.account.cleared.clone().expect("results were cleared");
    let second = build(1.2, Some(&cleared));
    assert_eq!(
        second.request, first.request,
        "a smaller factor makes room, but what is cleared stays so"
    );
    assert!(cleared_ids(&build(1.2, None)).len() < cleared.ids.len());
}

/// Returns a step with one call of each of these tools; all results arrive in one message.
fn step(number: usize, named: &[(&str, String)], texts: &[String]) -> [Arc<Entry>; 2] {
    let calls = named
        .iter()
        .enumerate()
        .map(|(index, (name, arguments))| call(&format!("call-{number}-{index}"), name, arguments));
    let results = named
        .iter()
        .zip(texts)
        .enumerate()
        .map(|(index, ((name, _), text))| {
            Part::ToolResult(Box::new(ToolResult {
                tool_call_id: format!("call-{number}-{index}"),
                name: (*name).to_owned(),
                envelope: Envelope::success(text.clone()),
            }))
        });
    [
        entry(Message::new(
            id(number),
            Role::Assistant,
            calls.collect(),
            at(number),
        )),
        entry(Message::new(
            id(number + 1),
            Role::Tool,
            results.collect(),
            at(number + 1),
        )),
    ]
}

fn read(path: &str) -> (&'static str, String) {
    ("read_file", format!(r#"{{"path":"{path}"}}"#))
}

fn edit(path: &str) -> (&'static str, String) {
    (
        "edit_file",
        format!(r#"{{"path":"{path}","old_string":"a","new_string":"b"}}"#),
    )
}

fn words(count: usize) -> Vec<String> {
    vec!["word ".repeat(800); count]
}

#[test]
fn prune_keep_counts_results_not_messages() {
    let three: Vec<_> = ["a", "b", "c"].map(read).into();
    let mut history = vec![text(0, Role::User, "go")];
    for number in (1..20).step_by(2) {
        history.extend(step(number, &three, &words(3)));
    }
    history.push(text(50, Role::Assistant, "Seen."));
    history.push(text(51, Role::User, "go on"));
    let policy = |keep| Policy {
        prune_keep: Some(keep),
        ..policy(1_000)
    };
    let cleared = |keep| cleared_ids(&build(&history, &policy(keep), None));
    let up_to = |last: usize| (2..=last).step_by(2).map(id).collect::<Vec<_>>();
    assert_eq!(cleared(1), up_to(18), "the newest step counts as one");
    assert_eq!(cleared(4), up_to(16), "and three of the step before");
    assert_eq!(
        cleared(5),
        up_to(14),
        "a message of which one result stays is whole"
    );
}

#[test]
fn prune_keep_counts_results_of_the_newest_step_if_they_do_not_fit() {
    let mut history = vec![text(0, Role::User, "go")];
    let reads: Vec<_> = ["a", "b", "c"].map(read).into();
    let [calls, _] = step(1, &reads, &words(3));
    history.push(calls);
    for index in 0..3 {
        let call = format!("call-1-{index}");
        let whole = Envelope::success("word ".repeat(100_000));
        history.push(result(2 + index, &call, whole));
    }
    history.push(text(50, Role::Assistant, "Seen."));
    history.push(text(51, Role::User, "go on"));
    let policy = Policy {
        prune_keep: Some(1),
        ..policy(1_000)
    };
    let model = ModelSpec {
        context_window: 300_000,
        ..model()
    };
    let (system, tools) = (system(), tool_set(&["read_file"]));
    let snapshot = Snapshot::new(&model, &policy, &system, &tools, &history, &Quarter);
    assert_eq!(cleared_ids(&assemble(&snapshot).unwrap()), [2, 3].map(id));
}

#[test]
fn prune_keeps_views_of_files_being_changed() {
    let conversation = |change: fn(&str) -> (&'static str, String)| {
        let mut history = vec![text(0, Role::User, "go")];
        history.extend(step(1, &[read("src/a.rs")], &words(1)));
        history.extend(step(3, &[change("./src/a.rs")], &words(1)));
        for number in (5..41).step_by(2) {
            history.extend(step(number, &[read(&format!("{number}"))], &words(1)));
        }
        history
    };
    let cleared = |history: &[Arc<Entry>]| {
        let cleared = cleared_ids(&build(history, &policy(8_000), None));
        assert!(cleared.contains(&id(6)), "others are cleared");
        cleared
    };
    let changed = conversation(edit);
    assert!(!cleared(&changed).contains(&id(2)), "read and then changed");
    assert!(
        cleared(&conversation(read)).contains(&id(2)),
        "read long ago"
    );
    let mut later = changed.clone();
    later.push(text(51, Role::User, "next"));
    assert!(!cleared(&later).contains(&id(2)), "the round before counts");
    for number in (52..58).step_by(2) {
        later.push(text(number, Role::Assistant, "Done."));
        later.push(text(number + 1, Role::User, "next"));
        assert!(!cleared(&later).contains(&id(2)), "four rounds count");
    }
    later.push(text(58, Role::Assistant, "Done."));
    later.push(text(59, Role::User, "next"));
    assert!(cleared(&later).contains(&id(2)), "older rounds do not");
}

#[test]
fn prune_keeps_recently_used_views_within_a_quarter_of_the_zone() {
    let mut history = vec![text(0, Role::User, "go")];
    for number in (1..13).step_by(2) {
        history.extend(step(number, &[read(&format!("{number}"))], &words(1)));
    }
    for number in (13..25).step_by(2) {
        history.extend(step(
            number,
            &[edit(&format!("{}", number - 12))],
            &words(1),
        ));
    }
    for number in (25..61).step_by(2) {
        history.extend(step(number, &[read(&format!("{number}"))], &words(1)));
    }
    let kept = |zone| {
        let cleared = cleared_ids(&build(&history, &policy(zone), None));
        let views = (2..13)
            .step_by(2)
            .filter(|view| !cleared.contains(&id(*view)));
        views.collect::<Vec<_>>()
    };
    assert_eq!(kept(16_500), [6, 8, 10, 12]);
    assert_eq!(kept(8_500), [10, 12]);
    assert_eq!(kept(2_000), [0; 0]);
}

#[test]
fn prune_keeps_the_call_that_wrote_a_file_as_its_view() {
    let content = "word ".repeat(800);
    let write = |path: &str| {
        let arguments = serde_json::json!({"path": path, "content": content});
        ("write_to_file", arguments.to_string())
    };
    let mut history = vec![text(0, Role::User, "go")];
    history.extend(step(1, &[write("new.rs")], &["ok".to_owned()]));
    history.extend(step(3, &[write("new.rs")], &["ok".to_owned()]));
    for number in (5..41).step_by(2) {
        history.extend(step(number, &[read(&format!("{number}"))], &words(1)));
    }
    let cleared = cleared_ids(&build(&history, &policy(8_000), None));
    assert!(cleared.contains(&id(1)), "an older version");
    assert!(!cleared.contains(&id(3)), "what the file holds now");
}
