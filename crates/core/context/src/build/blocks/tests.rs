use proptest::prelude::*;

use super::*;
use crate::testing::{
    Quarter, any_conversation, call, calls, conversation, entry, id, result, text,
    whole_conversation,
};

/// Returns the sequence as letters: `A`, its results as `T`, interrupted ones as `I`, `U`, `a`.
fn block_letters(blocks: &Blocks) -> String {
    let letter = |entry: &Arc<Entry>| match entry.message.role {
        Role::System => 'S',
        Role::User => 'U',
        Role::Summary => 'Σ',
        Role::Assistant if entry.message.tool_calls().next().is_some() => 'A',
        Role::Assistant => 'a',
        Role::Tool => {
            let interrupted = entry
                .message
                .tool_results()
                .any(|result| result.envelope.text == INTERRUPTED_TEXT);
            if interrupted { 'I' } else { 'T' }
        }
    };
    blocks.entries.iter().map(letter).collect()
}

fn ids(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn success_result(number: usize, call: &str) -> Arc<Entry> {
    result(number, call, Envelope::success("fine"))
}

#[test]
fn repair_shares_whole_conversations_unchanged() {
    for shape_in in ["U", "UaU", "UAT", "UATTTATaUATaU", "ΣΣUATa"] {
        let history = conversation(shape_in);
        let blocks = repair_blocks(&history, &Quarter);
        assert_eq!(block_letters(&blocks), shape_in);
        assert!(blocks.repairs.is_empty());
        assert!(
            history
                .iter()
                .zip(&blocks.entries)
                .all(|(stored, sent)| Arc::ptr_eq(stored, sent))
        );
    }
}

#[test]
fn repair_moves_messages_behind_the_results_of_their_block() {
    let history = [
        text(0, Role::User, "go"),
        calls(1, &ids(&["1", "2"])),
        success_result(2, "1"),
        text(3, Role::User, "wait"),
        text(4, Role::Assistant, "hm"),
        success_result(5, "2"),
        text(6, Role::User, "on"),
    ];
    let blocks = repair_blocks(&history, &Quarter);
    assert_eq!(block_letters(&blocks), "UATTUaU");
    assert_eq!(
        blocks.repairs,
        [
            Repair::MovedBehindBlock { message: id(3) },
            Repair::MovedBehindBlock { message: id(4) }
        ]
    );
    assert_eq!(blocks.block_start(3), 1);
    assert_eq!(blocks.block_start(4), 4);
    assert_eq!(blocks.block_start(99), 99);
}

#[test]
fn repair_marks_results_that_no_assistant_message_follows() {
    let unseen = |history: &[Arc<Entry>]| {
        let blocks = repair_blocks(history, &Quarter);
        let unseen = blocks.entries.iter().zip(&blocks.unseen);
        let ids = unseen.filter(|(_, unseen)| **unseen);
        ids.map(|(entry, _)| entry.message.message_id)
            .collect::<Vec<_>>()
    };
    let mut history = vec![
        text(0, Role::User, "go"),
        calls(1, &ids(&["1", "2"])),
        success_result(2, "1"),
    ];
    assert_eq!(unseen(&history)[0], id(2));
    history.push(text(3, Role::Assistant, "one is still running"));
    assert_eq!(unseen(&history), [], "the answer saw that one is missing");
    history.push(success_result(4, "2"));
    assert_eq!(
        unseen(&history),
        [id(4)],
        "stored after the answer, although it is sent before it"
    );
    history.push(text(5, Role::User, "and?"));
    assert_eq!(unseen(&history), [id(4)], "an input sees nothing");
    history.push(calls(6, &ids(&["3"])));
    history.push(success_result(7, "3"));
    assert_eq!(unseen(&history), [id(7)]);
}

#[test]
fn repair_adds_interrupted_results_for_missing_ones() {
    let history = [
        text(0, Role::User, "go"),
        calls(1, &ids(&["1", "2", "3"])),
        success_result(2, "2"),
        text(3, Role::User, "on"),
    ];
    let blocks = repair_blocks(&history, &Quarter);
    assert_eq!(block_letters(&blocks), "UATIIU");
    assert_eq!(blocks.repairs, [Repair::Interrupted { message: id(1) }; 2]);
    let made = &blocks.entries[3].message;
    assert_eq!(made.created_at, history[1].message.created_at);
    assert_eq!(made.tool_results().next().unwrap().tool_call_id, "1");
    assert_eq!(
        made,
        &repair_blocks(&history, &Quarter).entries[3].message,
        "made the same every time"
    );
}

#[test]
fn repair_ends_a_block_at_a_foreign_result() {
    let history = [
        calls(0, &ids(&["1", "2"])),
        success_result(1, "1"),
        success_result(2, "9"),
        success_result(3, "2"),
    ];
    let blocks = repair_blocks(&history, &Quarter);
    assert_eq!(block_letters(&blocks), "ATI");
    assert_eq!(
        blocks.repairs,
        [
            Repair::OrphanResult { message: id(2) },
            Repair::Interrupted { message: id(0) },
            Repair::OrphanResult { message: id(3) },
        ]
    );
}

#[test]
fn repair_ends_a_block_at_the_next_calls() {
    let history = [
        calls(0, &ids(&["1"])),
        text(1, Role::User, "hm"),
        calls(2, &ids(&["2"])),
        success_result(3, "1"),
        success_result(4, "2"),
    ];
    // The result of call 1 arrives too late and is foreign to call 2.
    assert_eq!(block_letters(&repair_blocks(&history, &Quarter)), "AIUAI");
}

#[test]
fn repair_drops_a_second_result_of_a_call() {
    let history = [
        calls(0, &ids(&["1"])),
        success_result(1, "1"),
        success_result(2, "1"),
    ];
    let blocks = repair_blocks(&history, &Quarter);
    assert_eq!(block_letters(&blocks), "AT");
    assert_eq!(blocks.repairs, [Repair::OrphanResult { message: id(2) }]);
}

#[test]
fn repair_keeps_only_the_expected_results_of_a_message() {
    let both = [success_result(0, "1"), success_result(0, "9")]
        .iter()
        .flat_map(|entry| entry.message.content.clone())
        .collect();
    let history = [
        calls(1, &ids(&["1"])),
        entry(Message::new(id(2), Role::Tool, both, crate::testing::at(2))),
    ];
    let blocks = repair_blocks(&history, &Quarter);
    let sent: Vec<_> = blocks.entries[1]
        .message
        .tool_results()
        .map(|result| result.tool_call_id.as_str())
        .collect();
    assert_eq!(sent, ["1"]);
}

#[test]
fn repair_matches_calls_by_id_not_by_name() {
    let parts = vec![call("x", "read_file", "{}"), call("y", "read_file", "{}")];
    let history = [
        entry(Message::new(
            id(0),
            Role::Assistant,
            parts,
            crate::testing::at(0),
        )),
        success_result(1, "y"),
        success_result(2, "x"),
    ];
    assert_eq!(block_letters(&repair_blocks(&history, &Quarter)), "ATT");
}

proptest! {
    #[test]
    fn repair_leaves_well_formed_conversations_unchanged(history in whole_conversation(120)) {
        let blocks = repair_blocks(&history, &Quarter);
        prop_assert!(blocks.repairs.is_empty());
        prop_assert_eq!(blocks.entries, history);
    }

    #[test]
    fn repair_makes_every_block_whole_and_keeps_the_order(history in any_conversation(120)) {
        let blocks = repair_blocks(&history, &Quarter);
        let mut waiting: Vec<&str> = Vec::new();
        for (index, entry) in blocks.entries.iter().enumerate() {
            let message = &entry.message;
            if message.role == Role::Tool {
                prop_assert!(blocks.block_start(index) < index);
                for result in message.tool_results() {
                    let call = waiting.iter().position(|call| *call == result.tool_call_id);
                    prop_assert!(call.is_some(), "a result without its call");
                    waiting.remove(call.unwrap());
                }
            } else {
                prop_assert!(waiting.is_empty(), "a call without its result");
                prop_assert_eq!(blocks.block_start(index), index);
                waiting.extend(message.tool_calls().map(|call| call.id.as_str()));
            }
        }
        prop_assert!(waiting.is_empty());

        let others = |entries: &[Arc<Entry>]| -> Vec<MessageId> {
            let speech = |entry: &&Arc<Entry>| matches!(entry.message.role, Role::User | Role::Assistant | Role::Summary);
            entries.iter().filter(speech).map(|entry| entry.message.message_id).collect()
        };
        let mut stored = others(&history);
        let mut sent = others(&blocks.entries);
        // A message between results only moves behind them, so the order of all other messages
        // stays.
        prop_assert_eq!(&stored, &sent);
        stored.sort_unstable();
        sent.dedup();
        prop_assert_eq!(stored.len(), sent.len());
    }

    #[test]
    fn repair_is_idempotent(history in any_conversation(120)) {
        let once = repair_blocks(&history, &Quarter);
        let twice = repair_blocks(&once.entries, &Quarter);
        prop_assert!(twice.repairs.is_empty(), "{:?}", twice.repairs);
        prop_assert!(once.entries.iter().zip(&twice.entries).all(|(one, two)| Arc::ptr_eq(one, two)));
        prop_assert_eq!(once.entries.len(), twice.entries.len());
    }
}
