use std::sync::Arc;

use haft_types::{Entry, Layer, MessageId};
use proptest::prelude::*;

use super::*;
use crate::testing::{
    Quarter, any_conversation, conversation, model, system, text, tool_set, whole_conversation,
};
use crate::{Assembly, Policy, Reminders, Snapshot, assemble};

fn reminders() -> Reminders {
    Reminders {
        role: Some("You are careful.".into()),
        todo: Some("- [ ] write".into()),
        useful: None,
        folder_notes: Some("Note.".into()),
        clock: None,
    }
}

fn build(history: &[Arc<Entry>], place: Placement, reminders: &Reminders) -> Assembly {
    let policy = Policy {
        reminders: place,
        ..Policy::default()
    };
    let system = system();
    let model = model();
    let tools = tool_set(&["read_file"]);
    assemble(&Snapshot {
        reminders: Some(reminders),
        ..Snapshot::new(&model, &policy, &system, &tools, history, &Quarter)
    })
    .unwrap()
}

/// Returns the request as letters, with one star for all reminders.
fn request_letters(assembly: &Assembly) -> String {
    let mut shape = String::new();
    for segment in &assembly.request.segments {
        let message = &segment.entry.message;
        let letter = match (segment.layer, message.role) {
            (Layer::Reminders, _) => '*',
            (_, Role::System) => 'S',
            (_, Role::User) => 'U',
            (_, Role::Summary) => 'Σ',
            (_, Role::Tool) => 'T',
            (_, Role::Assistant) => {
                if message.tool_calls().next().is_some() {
                    'A'
                } else {
                    'a'
                }
            }
        };
        if !(letter == '*' && shape.ends_with('*')) {
            shape.push(letter);
        }
    }
    shape
}

#[test]
fn find_matches_the_test_vectors() {
    let mut place = Placement::default();
    let mut checked = 0;
    for line in include_str!("../../../fixtures/placement/vectors.txt").lines() {
        if let Some(name) = line.strip_prefix("place ") {
            place = name.parse().unwrap();
        } else if !line.starts_with('#') && !line.is_empty() {
            let (before, after) = line.split_once(char::is_whitespace).unwrap();
            let mut history = conversation(before);
            // A conversation that ends with an answer has a place, but only one that ends with an
            // input can be sent.
            let open = matches!(history.last().unwrap().message.role, Role::Assistant);
            if open {
                let items =
                    crate::build::rounds::Timeline::new(crate::repair_blocks(&history, &Quarter))
                        .items;
                let star = after
                    .trim()
                    .chars()
                    .position(|letter| letter == '*')
                    .unwrap()
                    - 1;
                assert_eq!(find_run_index(place, &items, 24), star, "{place}: {before}");
            } else {
                assert_eq!(
                    request_letters(&build(&history, place, &reminders())),
                    after.trim(),
                    "{place}: {before}"
                );
            }
            history.clear();
            checked += 1;
        }
    }
    assert!(checked >= 30, "{checked} vectors");
}

#[test]
fn placement_names_round_trip() {
    for name in [
        "after-tool-result:3",
        "before-assistant:1",
        "from-end:5",
        "front",
        "tail",
        "cache-aware",
    ] {
        assert_eq!(name.parse::<Placement>().unwrap().to_string(), name);
        let json = format!("\"{name}\"");
        assert_eq!(
            serde_json::to_string(&serde_json::from_str::<Placement>(&json).unwrap()).unwrap(),
            json
        );
    }
    for wrong in [
        "",
        "front:1",
        "from-end",
        "from-end:0",
        "from-end:-1",
        "from-end:x",
        "tail:",
        "cache-aware:2",
        "middle",
    ] {
        let error = wrong.parse::<Placement>().unwrap_err().to_string();
        assert!(error.contains("after-tool-result:N"), "{error}");
    }
}

fn any_place() -> impl Strategy<Value = Placement> {
    prop_oneof![
        (1_u32..8).prop_map(Placement::AfterToolResult),
        (1_u32..8).prop_map(Placement::BeforeAssistant),
        (1_u32..40).prop_map(Placement::FromEnd),
        Just(Placement::Front),
        Just(Placement::Tail),
        Just(Placement::CacheAware),
    ]
}

fn ids_without_reminders(assembly: &Assembly) -> Vec<MessageId> {
    let outside = assembly
        .request
        .segments
        .iter()
        .filter(|segment| segment.layer != Layer::Reminders);
    outside
        .map(|segment| segment.entry.message.message_id)
        .collect()
}

fn check_placement(mut history: Vec<Arc<Entry>>, place: Placement) -> Result<(), TestCaseError> {
    history.push(text(100_000, Role::User, "go on"));
    let plain = build(&history, place, &Reminders::default());
    prop_assert!(
        plain
            .request
            .segments
            .iter()
            .all(|segment| segment.layer != Layer::Reminders)
    );
    let with = build(&history, place, &reminders());
    // All other messages are present in order; the reminders are contiguous and in their own order.
    // `assemble` checks that blocks are whole.
    prop_assert_eq!(ids_without_reminders(&plain), ids_without_reminders(&with));
    let run: Vec<_> = with
        .request
        .segments
        .iter()
        .enumerate()
        .filter(|(_, one)| one.layer == Layer::Reminders)
        .collect();
    let owners: Vec<_> = run.iter().map(|(_, segment)| segment.owner).collect();
    prop_assert_eq!(owners, ["reminder:role", "reminder:todo", "reminder:notes"]);
    prop_assert_eq!(run[2].0 - run[0].0, 2);
    prop_assert_eq!(&build(&history, place, &reminders()).request, &with.request);
    Ok(())
}

proptest! {
    #[test]
    fn placement_keeps_order_and_blocks(history in whole_conversation(300), place in any_place()) {
        check_placement(history, place)?;
    }

    #[test]
    fn placement_keeps_order_and_blocks_of_broken_conversations(history in any_conversation(300), place in any_place()) {
        check_placement(history, place)?;
    }
}
