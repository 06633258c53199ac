use std::sync::Arc;

use haft_types::{Entry, Envelope, Message};

use super::*;
use crate::build::rounds::Timeline;
use crate::repair_blocks;
use crate::testing::{Quarter, at, call, entry, id, named_result, text};

/// Returns a conversation of one call per line: `name arguments`, with ` !` at the end of a failed
/// one.
fn conversation_of_calls(lines: &[&str]) -> Vec<Arc<Entry>> {
    let mut history = vec![text(0, Role::User, "go")];
    for line in lines {
        let number = history.len();
        let (line, failed) = line
            .strip_suffix(" !")
            .map_or((*line, false), |line| (line, true));
        let (name, arguments) = line.split_once(' ').unwrap();
        let call_id = format!("call-{number}");
        let envelope = Envelope::success("text");
        let status = if failed {
            ToolStatus::Error
        } else {
            envelope.status
        };
        history.push(entry(Message::new(
            id(number),
            Role::Assistant,
            vec![call(&call_id, name, arguments)],
            at(number),
        )));
        history.push(named_result(
            number + 1,
            &call_id,
            name,
            Envelope { status, ..envelope },
        ));
    }
    history
}

/// Returns the indices of the superseded calls.
fn superseded_calls(lines: &[&str]) -> Vec<usize> {
    let items = Timeline::new(repair_blocks(&conversation_of_calls(lines), &Quarter)).items;
    let mut found: Vec<_> = find_superseded(&items)
        .into_iter()
        .map(|index| (index - 2) / 2)
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn superseded_matches_the_fixture() {
    let mut checked = 0;
    for case in include_str!("../../../fixtures/superseded.txt").split("\n\n") {
        let lines: Vec<_> = case.lines().filter(|line| !line.starts_with('#')).collect();
        let expected: Vec<usize> = lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line.starts_with("- "))
            .map(|(index, _)| index)
            .collect();
        let lines: Vec<_> = lines.iter().map(|line| &line[2..]).collect();
        assert_eq!(superseded_calls(&lines), expected, "{case}");
        checked += 1;
    }
    assert!(checked >= 10, "{checked} cases");
}

#[test]
fn call_subject_recognizes_calls_of_other_agents() {
    let of = |name: &str, arguments: &str| {
        let id = "c".to_owned();
        let name = name.to_owned();
        let arguments = arguments.to_owned();
        CallSubject::from_call(&ToolCall {
            id,
            name,
            arguments,
            signature: None,
        })
    };
    let run = |command: &str, cwd: &str| {
        Some(CallSubject::Run {
            command: command.into(),
            cwd: cwd.into(),
        })
    };
    assert_eq!(
        of(
            "shell",
            r#"{"command":["bash","-lc","make test"],"workdir":"/p"}"#
        ),
        run("make test", "/p")
    );
    assert_eq!(
        of("shell", r#"{"command":["ls","-l","src"]}"#),
        run("ls -l src", "")
    );
    assert_eq!(of("exec_command", r#"{"cmd":"make"}"#), run("make", ""));
    assert_eq!(of("execute_bash", r#"{"command":"make"}"#), run("make", ""));
    let view = of(
        "str_replace_editor",
        r#"{"command":"view","path":"a.c","view_range":[3,9]}"#,
    );
    assert_eq!(
        view,
        Some(CallSubject::Read {
            path: "a.c".into(),
            from: 3,
            to: 9
        })
    );
    assert_eq!(
        of("str_replace_editor", r#"{"command":"insert","path":"a.c"}"#),
        Some(CallSubject::Edit {
            paths: vec!["a.c".into()]
        })
    );
    assert_eq!(
        of(
            "str_replace_editor",
            r#"{"command":"undo_edit","path":"a.c"}"#
        ),
        None
    );
}
