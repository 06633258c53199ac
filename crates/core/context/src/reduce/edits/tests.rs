use proptest::prelude::*;

use super::*;
use crate::testing::{
    Quarter, any_conversation, conversation, id, model, system, text, tool_set, whole_conversation,
};
use crate::{
    Account, Assembly, Cause, Cleared, ContextError, Policy, SafeZone, Snapshot, Warning, assemble,
};

fn build(history: &[Arc<Entry>], edits: &Edits, policy: &Policy) -> Result<Assembly, ContextError> {
    build_after(history, edits, policy, None)
}

fn build_after(
    history: &[Arc<Entry>],
    edits: &Edits,
    policy: &Policy,
    last: Option<&Account>,
) -> Result<Assembly, ContextError> {
    let system = system();
    let model = model();
    let tools = tool_set(&["read_file"]);
    let state = edits.combined_state();
    let plain = Snapshot::new(&model, policy, &system, &tools, history, &Quarter);
    let last = last.map(|account| &account.sent);
    assemble(&Snapshot {
        edits: Some(&state),
        last,
        ..plain
    })
}

fn sent_ids(assembly: &Assembly) -> Vec<MessageId> {
    assembly.request.segments[1..]
        .iter()
        .map(|segment| segment.entry.message.message_id)
        .collect()
}

fn request_json(assembly: &Assembly) -> String {
    serde_json::to_string(
        &assembly
            .request
            .segments
            .iter()
            .map(|one| &one.entry.message)
            .collect::<Vec<_>>(),
    )
    .unwrap()
}

fn edits_of(list: impl IntoIterator<Item = ContextEdit>) -> Edits {
    Edits {
        list: list.into_iter().collect(),
    }
}

fn ids(numbers: &[usize]) -> BTreeSet<MessageId> {
    numbers.iter().map(|number| id(*number)).collect()
}

fn short_id(number: usize) -> String {
    id(number).short_id().to_string()
}

#[test]
fn choose_completes_a_block() {
    let history = conversation("UATTaUAT");
    let chosen = select_messages(&[short_id(2)], EditReach::Block, &history, &Quarter).unwrap();
    assert_eq!(
        (chosen.ids, chosen.along),
        ([1, 2, 3].map(id).to_vec(), [1, 3].map(id).to_vec())
    );
    let range = select_messages(
        &[format!("{}..{}", short_id(3), id(5))],
        EditReach::Block,
        &history,
        &Quarter,
    )
    .unwrap();
    assert_eq!(range.ids, [1, 2, 3, 4, 5].map(id));
    let alone = select_messages(&[short_id(2)], EditReach::Message, &history, &Quarter).unwrap();
    assert_eq!((alone.ids, alone.along.len()), (vec![id(2)], 0));
    let span = select_messages(
        &[short_id(2), short_id(5)],
        EditReach::Span,
        &history,
        &Quarter,
    )
    .unwrap();
    assert_eq!(span.ids, [1, 2, 3, 4, 5].map(id));
    // An edit that names half a block does not split it.
    let edits = edits_of([ContextEdit::Drop { ids: ids(&[2]) }]);
    let built = build(&history, &edits, &Policy::default()).unwrap();
    assert_eq!(sent_ids(&built), [0, 4, 5, 6, 7].map(id));
    assert!(built.account.edited_tokens > 0);
}

#[test]
fn check_edit_rejects_invalid_edits_with_a_reason() {
    let history = conversation("ΣUATaUAT");
    let named = |word: String| select_messages(&[word], EditReach::Block, &history, &Quarter);
    assert_eq!(
        named(short_id(0)),
        Err(EditError::Archive(id(0).short_id()))
    );
    assert_eq!(
        named("ffffffff".into()),
        Err(EditError::Unknown("ffffffff".into()))
    );
    let backwards = format!("{}..{}", short_id(4), short_id(2));
    assert_eq!(
        named(backwards.clone()),
        Err(EditError::Backwards(backwards))
    );
    let check = |edit| check_edit(&edit, &Edits::default(), &history, &Quarter);
    assert_eq!(
        check(ContextEdit::Drop { ids: ids(&[5]) }),
        Err(EditError::Current(id(5).short_id()))
    );
    assert_eq!(
        check(ContextEdit::Summarise {
            ids: vec![id(1)],
            text: " \n".into()
        }),
        Err(EditError::EmptySummary)
    );
    assert_eq!(
        check(ContextEdit::Undo { edits: 1 }),
        Err(EditError::TooManyUndos(0))
    );
    assert_eq!(
        check(ContextEdit::Drop {
            ids: ids(&[1, 2, 3, 4])
        }),
        Ok(())
    );
    let open = conversation("UATaUA");
    let rest = ContextEdit::Drop { ids: ids(&[5]) };
    assert_eq!(
        check_edit(&rest, &Edits::default(), &open, &Quarter),
        Ok(()),
        "the input is left to answer"
    );
}

/// A provider rejected such a request: the first message must be from the user.
#[test]
fn drop_of_an_input_leaves_a_user_message_first() {
    let history = conversation("UATaUATaU");
    let without = |numbers: &[usize]| {
        build(
            &history,
            &edits_of([ContextEdit::Drop { ids: ids(numbers) }]),
            &Policy::default(),
        )
    };
    let first = without(&[0]).unwrap();
    let roles: Vec<_> = first.request.segments[1..3]
        .iter()
        .map(|segment| segment.entry.message.role)
        .collect();
    assert_eq!(roles, [Role::User, Role::Assistant]);
    assert_eq!(sent_ids(&first)[1..], (1..9).map(id).collect::<Vec<_>>());
    assert!(request_json(&first).contains("[What was said before is left out.]"));
    // A round that is dropped whole needs no user message.
    assert_eq!(
        sent_ids(&without(&[0, 1, 2, 3]).unwrap()),
        (4..9).map(id).collect::<Vec<_>>()
    );
}

#[test]
fn mask_leaves_only_the_name_of_a_message() {
    let mut history = conversation("UATaUAT");
    history[0] = text(0, Role::User, "SECRET input");
    history[3] = text(3, Role::Assistant, "SECRET answer");
    let mut call = history[1].message.clone();
    call.content.insert(0, Part::from_text("SECRET words"));
    if let Some(Part::ToolCall(call)) = call.content.last_mut() {
        call.arguments = r#"{"path":"SECRET"}"#.into();
    }
    history[1] = crate::testing::entry(call);
    history[2] = crate::testing::result(2, "call-1-0", Envelope::success("SECRET result"));
    let plain = build(&history, &Edits::default(), &Policy::default()).unwrap();
    let masked = build(
        &history,
        &edits_of([ContextEdit::Mask {
            ids: ids(&[0, 1, 2, 3]),
        }]),
        &Policy::default(),
    )
    .unwrap();
    assert!(
        request_json(&plain).contains("SECRET") && !request_json(&masked).contains("SECRET"),
        "{}",
        request_json(&masked)
    );
    assert_eq!(
        sent_ids(&plain),
        sent_ids(&masked),
        "every message keeps its place"
    );
    for number in 0..4 {
        assert!(
            request_json(&masked).contains(&format!("message id {}", short_id(number))),
            "{number}"
        );
    }
    let owners: Vec<_> = masked.request.segments[1..5]
        .iter()
        .map(|segment| segment.owner)
        .collect();
    assert_eq!(owners, [MASKED_OWNER; 4]);
}

#[test]
fn summarise_replaces_messages_in_place() {
    let history = conversation("UATaUATaU");
    let edit = ContextEdit::Summarise {
        ids: [4, 5, 6, 7].map(id).to_vec(),
        text: "The second round.".into(),
    };
    let edits = edits_of([edit.clone()]);
    let built = build(&history, &edits, &Policy::default()).unwrap();
    let summary = &built.request.segments[5];
    assert_eq!(
        (summary.owner, summary.layer),
        (SUMMARISED_OWNER, Layer::History)
    );
    let said = summary.entry.message.joined_text();
    assert!(
        said.ends_with("The second round.")
            && said.contains(&short_id(4))
            && said.contains(&short_id(7)),
        "{said}"
    );
    assert_eq!(sent_ids(&built).len(), 6);
    // Restoring one of them restores all.
    let restored = edits_of([edit, ContextEdit::Restore { ids: ids(&[6]) }]);
    let plain = build(&history, &Edits::default(), &Policy::default()).unwrap();
    assert_eq!(
        build(&history, &restored, &Policy::default())
            .unwrap()
            .request,
        plain.request
    );
}

#[test]
fn edits_apply_to_the_messages_that_a_fork_keeps() {
    let history = conversation("UATaUATaU");
    let edits = edits_of([
        ContextEdit::Mask { ids: ids(&[2]) },
        ContextEdit::Summarise {
            ids: [4, 5, 6, 7].map(id).to_vec(),
            text: "The second round.".into(),
        },
    ]);
    // Cut in the middle of the summarized messages: the remaining ones are sent.
    let fork = &history[..7];
    let built = build(fork, &edits, &Policy::default()).unwrap();
    assert_eq!(sent_ids(&built), [0, 1, 2, 3, 4, 5, 6].map(id));
    assert_eq!(built.request.segments[3].owner, MASKED_OWNER);
}

/// Long results, a tight safe zone, and rounds that are compressed and archived.
#[test]
fn pins_survive_compression_pruning_and_archives() {
    let mut history = conversation(&"UATa".repeat(12));
    for (number, entry) in history
        .iter_mut()
        .enumerate()
        .filter(|(_, one)| one.message.role == Role::Tool)
    {
        let envelope = Envelope::success(format!("result {number} {}", "word ".repeat(2_000)));
        *entry = crate::testing::result(number, &format!("call-{}-0", number - 1), envelope);
    }
    history.push(text(48, Role::User, "and now?"));
    let policy = Policy {
        safe_zone: Some(SafeZone::Tokens(20_000)),
        prune_keep: Some(0),
        ..Policy::default()
    };
    let whole = |built: &Assembly, number: usize| {
        let is_it = |segment: &&haft_types::Segment| segment.entry.message.message_id == id(number);
        let found = built
            .request
            .segments
            .iter()
            .find(is_it)
            .map(|segment| segment.entry.hash);
        found == Some(history[number].hash)
    };
    let plain = build(&history, &Edits::default(), &policy).unwrap();
    assert!(!whole(&plain, 2) && !whole(&plain, 6));
    let edits = edits_of([ContextEdit::Pin { ids: ids(&[2]) }]);
    let pinned = build(&history, &edits, &policy).unwrap();
    assert!(whole(&pinned, 2) && !whole(&pinned, 6));

    // Archived behind a summary: the pinned block stays whole.
    let mut archived = history.clone();
    let mut summary = Message::from_text(
        id(900),
        Role::Summary,
        "Ten rounds.",
        crate::testing::at(900),
    );
    summary
        .metadata
        .insert("first_kept".into(), id(40).to_string().into());
    archived.push(crate::testing::entry(summary));
    let built = build(&archived, &edits, &policy).unwrap();
    let sent_now = sent_ids(&built);
    assert_eq!(sent_now[..3], [id(900), id(1), id(2)], "{sent_now:?}");
    assert!(whole(&built, 2) && !sent_now.contains(&id(0)) && !sent_now.contains(&id(6)));

    // Omitted by the ladder before, and remembered.
    let system = system();
    let model = model();
    let tools = tool_set(&["read_file"]);
    let state = edits.combined_state();
    let cleared = Cleared {
        target: 20_000,
        first_kept: Some(id(40)),
        users_from: None,
        ids: ids(&[2, 42]),
        ..Cleared::default()
    };
    let plain = Snapshot::new(&model, &policy, &system, &tools, &history, &Quarter);
    let built = assemble(&Snapshot {
        edits: Some(&state),
        cleared: Some(&cleared),
        ..plain
    })
    .unwrap();
    assert!(whole(&built, 2) && !whole(&built, 42));
}

#[test]
fn edit_causes_one_named_break() {
    let history = conversation("UATaUATaU");
    let policy = Policy::default();
    let none = Edits::default();
    let first = build(&history, &none, &policy).unwrap();
    for edit in [
        ContextEdit::Drop { ids: ids(&[1, 2]) },
        ContextEdit::Mask { ids: ids(&[3]) },
        ContextEdit::Summarise {
            ids: [4, 5, 6, 7].map(id).to_vec(),
            text: "Done.".into(),
        },
    ] {
        let edits = edits_of([edit]);
        let second = build_after(&history, &edits, &policy, Some(&first.account)).unwrap();
        let broken = second.account.prefix.clone().unwrap().broken.unwrap();
        assert_eq!(broken.cause, Cause::ContextEdited);
        let third = build_after(&history, &edits, &policy, Some(&second.account)).unwrap();
        assert_eq!(third.account.prefix.unwrap().broken, None, "once");
    }
}

#[test]
fn edits_that_would_leave_no_input_are_not_applied() {
    // As after a rewind: the current input lies in the middle of the summarized messages.
    let history = conversation("Ua");
    let mut history: Vec<_> = history.into_iter().take(1).collect();
    history.push(text(7, Role::User, "go on"));
    let edits = edits_of([ContextEdit::Drop { ids: ids(&[0, 7]) }]);
    let built = build(&history, &edits, &Policy::default()).unwrap();
    assert_eq!(sent_ids(&built), [id(7)], "the current input stays");
    let joined = conversation("UA");
    let built = build(
        &joined,
        &edits_of([ContextEdit::Drop { ids: ids(&[0]) }]),
        &Policy::default(),
    )
    .unwrap();
    assert_eq!(built.request.segments[1].entry.message.message_id, id(0));
    assert!(!built.account.warnings.contains(&Warning::MarksNotApplied));
}

#[test]
fn edits_round_trip_through_json() {
    let edits = edits_of([
        ContextEdit::Drop { ids: ids(&[1, 2]) },
        ContextEdit::Summarise {
            ids: vec![id(3)],
            text: "x".into(),
        },
        ContextEdit::Undo { edits: 2 },
    ]);
    let json = serde_json::to_value(&edits).unwrap();
    assert_eq!(json[2], serde_json::json!({"edit": "undo", "edits": 2}));
    assert_eq!(serde_json::from_value::<Edits>(json).unwrap(), edits);
    assert!(edits.combined_state().is_empty() && edits.all_edits().len() == 3);
}

/// Generates an edit: its kind, its start and its length.
fn any_edit() -> impl Strategy<Value = (u8, f64, f64)> {
    (0_u8..6, 0.0_f64..1.0, 0.0_f64..0.3)
}

/// Returns the edit as a person would make it, or `None` if that is not possible.
fn make_edit(
    edits: &Edits,
    history: &[Arc<Entry>],
    (what, from, far): (u8, f64, f64),
) -> Option<ContextEdit> {
    let line = Timeline::new(repair_blocks(history, &Quarter));
    let first = (line.items.len() as f64 * from) as usize;
    let last =
        (first + (line.items.len() as f64 * far) as usize).min(line.items.len().checked_sub(1)?);
    let range = format!("{}..{}", line.items.get(first)?.id(), line.items[last].id());
    let chosen = |reach| {
        select_messages(std::slice::from_ref(&range), reach, history, &Quarter)
            .ok()
            .map(|one| one.ids)
    };
    let set = |ids: Vec<MessageId>| ids.into_iter().collect();
    let edit = match what {
        0 => ContextEdit::Drop {
            ids: set(chosen(EditReach::Block)?),
        },
        1 => ContextEdit::Pin {
            ids: set(chosen(EditReach::Block)?),
        },
        2 => ContextEdit::Mask {
            ids: set(chosen(EditReach::Message)?),
        },
        3 => ContextEdit::Restore {
            ids: set(chosen(EditReach::Message)?),
        },
        4 => ContextEdit::Summarise {
            ids: chosen(EditReach::Span)?,
            text: "what was done".into(),
        },
        _ => ContextEdit::Undo { edits: 1 },
    };
    check_edit(&edit, edits, history, &Quarter)
        .ok()
        .map(|()| edit)
}

fn check_edits_and_undos(
    history: &[Arc<Entry>],
    wanted: &[(u8, f64, f64)],
) -> Result<(), TestCaseError> {
    let policy = Policy {
        safe_zone: Some(SafeZone::Tokens(2_500)),
        ..Policy::default()
    };
    let Ok(original) = build(history, &Edits::default(), &policy) else {
        return Ok(());
    };
    let mut edits = Edits::default();
    for one in wanted {
        let Some(edit) = make_edit(&edits, history, *one) else {
            continue;
        };
        edits.push(edit);
        // Building checks blocks and roles; accepted edits give a valid request.
        let built = build(history, &edits, &policy);
        prop_assert!(built.is_ok(), "{:?}: {:?}", edits, built.err());
        let built = built.unwrap();
        prop_assert!(
            !built.account.warnings.contains(&Warning::MarksNotApplied),
            "{edits:?}"
        );
        let state = edits.combined_state();
        let gone = |one: &haft_types::Segment| {
            state.get(one.entry.message.message_id) == Some(Edited::Dropped)
        };
        prop_assert!(!built.request.segments.iter().any(gone));
    }
    let undos = edits.edits_in_force().len();
    let before = edits.all_edits().len();
    for _ in 0..undos {
        edits.push(ContextEdit::Undo { edits: 1 });
    }
    prop_assert_eq!(
        edits.all_edits().len(),
        before + undos,
        "the list only grows"
    );
    prop_assert_eq!(
        build(history, &edits, &policy).unwrap().request,
        original.request
    );
    Ok(())
}

proptest! {
    #[test]
    fn edits_followed_by_as_many_undos_give_the_original_request(
        history in whole_conversation(40),
        wanted in prop::collection::vec(any_edit(), 0..12),
    ) {
        check_edits_and_undos(&history, &wanted)?;
    }

    #[test]
    fn edits_and_undos_work_on_broken_conversations(
        history in any_conversation(30),
        wanted in prop::collection::vec(any_edit(), 0..12),
    ) {
        check_edits_and_undos(&history, &wanted)?;
    }
}
