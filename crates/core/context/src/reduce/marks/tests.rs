use super::*;
use crate::testing::{Quarter, conversation, id, lengthy, model, system, tool_set};
use crate::{Assembly, Compress, Policy, Snapshot, Warning, assemble};

fn build(history: &[Arc<Entry>], marks: &Marks) -> Assembly {
    let system = system();
    let model = model();
    let policy = Policy {
        compress: Some(Compress::RoundEnd),
        ..Policy::default()
    };
    let tools = tool_set(&["read_file"]);
    assemble(&Snapshot {
        marks: Some(marks),
        ..Snapshot::new(&model, &policy, &system, &tools, history, &Quarter)
    })
    .unwrap()
}

fn sent_ids(assembly: &Assembly) -> Vec<MessageId> {
    assembly.request.segments[1..]
        .iter()
        .map(|segment| segment.entry.message.message_id)
        .collect()
}

fn marks_deleting(numbers: &[usize]) -> Marks {
    Marks {
        deleted: numbers.iter().map(|number| id(*number)).collect(),
    }
}

#[test]
fn marks_on_one_side_of_a_block_delete_the_block() {
    let history = conversation("UATTaUAT");
    for side in 1..=3 {
        let assembly = build(&history, &marks_deleting(&[side]));
        assert_eq!(sent_ids(&assembly), [0, 4, 5, 6, 7].map(id));
        assert_eq!(
            assembly.account.deleted_tokens,
            history[1..4]
                .iter()
                .map(|entry| u64::from(entry.tokens))
                .sum::<u64>()
        );
    }
}

#[test]
fn marks_that_delete_an_old_input_keep_its_round() {
    let assembly = build(&lengthy("UATaUAT"), &marks_deleting(&[0]));
    assert_eq!(
        sent_ids(&assembly)[1..],
        [1, 2, 3, 4, 5, 6].map(id),
        "after a line that says so"
    );
    assert_eq!(assembly.account.round, 2);
    let result = assembly.request.segments[3]
        .entry
        .message
        .tool_results()
        .next()
        .unwrap()
        .envelope
        .text
        .clone();
    assert!(
        result.starts_with("{\"status\""),
        "still compressed: {result}"
    );
}

#[test]
fn marks_do_not_delete_the_current_input() {
    assert_eq!(
        sent_ids(&build(&conversation("UaU"), &marks_deleting(&[0, 2])))[1..],
        [1, 2].map(id)
    );
    assert_eq!(
        sent_ids(&build(&conversation("U"), &marks_deleting(&[0]))),
        [0].map(id)
    );
}

#[test]
fn marks_that_would_leave_no_input_are_not_applied() {
    let history = conversation("UaAT");
    let assembly = build(&history, &marks_deleting(&[2]));
    assert_eq!(sent_ids(&assembly).len(), 4);
    assert!(
        assembly
            .account
            .warnings
            .contains(&Warning::MarksNotApplied),
        "{:?}",
        assembly.account.warnings
    );
}

#[test]
fn edit_deleted_accepts_short_and_full_ids() {
    let history = conversation("UATaUΣ");
    let short = |number: usize| id(number).short_id().to_string();
    let mut marks = Marks::default();
    let ids = format!(
        " {}, {} ,nonsense,{},, {}",
        short(1).to_uppercase(),
        id(2),
        short(4),
        short(5)
    );
    let report = marks.edit_deleted(MarkAction::Create, &ids, &history);
    assert_eq!((report.changed, report.unchanged), (2, 0));
    assert_eq!(report.unknown, ["nonsense"]);
    assert_eq!(
        report.refused,
        [short(4), short(5)],
        "current input and summary"
    );

    let report = marks.edit_deleted(
        MarkAction::Append,
        &format!("{},{}", short(1), short(3)),
        &history,
    );
    assert_eq!((report.changed, report.unchanged), (1, 1));
    let report = marks.edit_deleted(
        MarkAction::Delete,
        &format!("{},{}", short(1), short(0)),
        &history,
    );
    assert_eq!((report.changed, report.unchanged), (1, 1));
    assert_eq!(marks.deleted, [id(2), id(3)].into());
    let report = marks.edit_deleted(
        MarkAction::Create,
        &format!("{},{}", short(3), short(0)),
        &history,
    );
    assert_eq!(
        (report.changed, report.unchanged),
        (1, 1),
        "one was on the list already"
    );
    assert_eq!(marks.deleted, [id(3), id(0)].into());
}

#[test]
fn message_lines_show_tools_and_first_words() {
    let history = conversation("UATa");
    let lines = list_messages(&history, &marks_deleting(&[2]));
    let shown: Vec<_> = lines
        .iter()
        .map(|line| {
            (
                line.role,
                line.tools.len(),
                line.preview.as_str(),
                line.marked,
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (Role::User, 0, "input 0", false),
            (Role::Assistant, 1, "", false),
            (Role::Tool, 1, "result 2", true),
            (Role::Assistant, 0, "answer 3", false),
        ]
    );
    assert_eq!(
        (lines[0].id, lines[0].tokens),
        (id(0).short_id(), history[0].tokens)
    );
}
