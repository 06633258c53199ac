use haft_types::{Envelope, Message};

use super::*;
use crate::testing::{at, call, entry, id, named_result};

/// Returns the call `tool arguments` and its result as messages `number` and `number + 1`.
fn step(number: usize, tool: &str, arguments: &str, envelope: Envelope) -> Vec<Arc<Entry>> {
    let call_id = format!("call-{number}");
    let caller = Message::new(
        id(number),
        Role::Assistant,
        vec![call(&call_id, tool, arguments)],
        at(number),
    );
    vec![
        entry(caller),
        named_result(number + 1, &call_id, tool, envelope),
    ]
}

fn cleared(numbers: &[usize]) -> Cleared {
    Cleared {
        target: 1,
        ids: numbers.iter().map(|number| id(*number)).collect(),
        ..Cleared::default()
    }
}

/// Returns how often the last of these steps is regretted if the results of the steps with the
/// indices `gone` are cleared.
fn count_regrets(steps: &[(&str, &str)], gone: &[usize]) -> usize {
    let mut regrets = Regrets::default();
    let cleared = cleared(&gone.iter().map(|step| 2 * step + 1).collect::<Vec<_>>());
    let mut last = 0;
    for (index, (tool, arguments)) in steps.iter().enumerate() {
        last = regrets.count_new_regrets(
            &step(2 * index, tool, arguments, Envelope::success("text")),
            Some(&cleared),
        );
    }
    last
}

const READ: (&str, &str) = (
    "read_file",
    r#"{"path":"a.rs","start_line":1,"end_line":80}"#,
);

#[test]
fn regret_counts_rereads_of_a_cleared_part() {
    let part = (
        "read_file",
        r#"{"path":"./a.rs","start_line":40,"end_line":60}"#,
    );
    assert_eq!(count_regrets(&[READ, part], &[0]), 1);
    assert_eq!(count_regrets(&[READ, part], &[]), 0, "it is still there");
    assert_eq!(
        count_regrets(
            &[READ, ("read_file", r#"{"path":"a.rs","start_line":81}"#)],
            &[0]
        ),
        0,
        "other lines"
    );
    assert_eq!(
        count_regrets(&[READ, ("read_file", r#"{"path":"b.rs"}"#)], &[0]),
        0,
        "another file"
    );
    assert_eq!(
        count_regrets(&[READ, READ, READ], &[0]),
        0,
        "a newer copy is there"
    );
}

#[test]
fn regret_ignores_rereads_of_a_changed_file() {
    let edit = ("replace_in_file", r#"{"path":"a.rs"}"#);
    assert_eq!(count_regrets(&[READ, edit, READ], &[0]), 0);
}

#[test]
fn regret_counts_commands_and_recalls() {
    let run = ("execute_command", r#"{"command":"cargo test"}"#);
    assert_eq!(count_regrets(&[run, run], &[0]), 1);
    let edit = ("replace_in_file", r#"{"path":"a.rs"}"#);
    let again = count_regrets(&[run, edit, run], &[0]);
    assert_eq!(again, 0, "a change wants a new output");
    assert_eq!(
        count_regrets(
            &[
                run,
                ("execute_command", r#"{"command":"cargo test","cwd":"b"}"#)
            ],
            &[0]
        ),
        0
    );
    let asked = format!(r#"{{"message_ids":"{}"}}"#, id(1).short_id());
    assert_eq!(count_regrets(&[run, ("recall", &asked)], &[0]), 1);
    assert_eq!(count_regrets(&[run, ("recall", &asked)], &[]), 0);
}

#[test]
fn regret_counts_results_of_omitted_rounds() {
    let mut regrets = Regrets::default();
    regrets.count_new_regrets(&step(0, READ.0, READ.1, Envelope::success("text")), None);
    regrets.count_new_regrets(
        &step(2, "list_files", "{}", Envelope::success("text")),
        None,
    );
    let kept_from = Cleared {
        target: 1,
        first_kept: Some(id(2)),
        ..Cleared::default()
    };
    assert_eq!(
        regrets.count_new_regrets(
            &step(4, READ.0, READ.1, Envelope::success("text")),
            Some(&kept_from)
        ),
        1
    );
}
