use haft_types::{Envelope, Part, Timestamp, TokenCounter, ToolResult};

use super::*;

struct NoCount;

impl TokenCounter for NoCount {
    fn count_text(&self, _: &str) -> u32 {
        0
    }
}

fn message(role: Role, content: Vec<Part>) -> Arc<Entry> {
    let id = MessageId("0a1b2c3d-0000-4000-8000-000000000000".parse().unwrap());
    Entry::new(
        Message::new(id, role, content, Timestamp::UNIX_EPOCH),
        &NoCount,
    )
}

fn user() -> Arc<Entry> {
    message(Role::User, vec![Part::from_text("do it")])
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
        signature: None,
    }
}

fn reply(calls: &[ToolCall]) -> Arc<Entry> {
    message(
        Role::Assistant,
        calls.iter().cloned().map(Part::ToolCall).collect(),
    )
}

fn result(id: &str, name: &str) -> Arc<Entry> {
    let result = ToolResult {
        tool_call_id: id.into(),
        name: name.into(),
        envelope: Envelope::success("ok"),
    };
    message(Role::Tool, vec![Part::ToolResult(Box::new(result))])
}

fn begun_calls(ids: &[&str]) -> HashSet<CallKey> {
    ids.iter()
        .map(|id| (reply(&[]).message.message_id, (*id).to_owned()))
        .collect()
}

#[test]
fn resumption_wants_a_reply_after_a_user_message_or_complete_block() {
    let block = [
        user(),
        reply(&[call("1", "read_file", "{}")]),
        result("1", "read_file"),
    ];
    for history in [&block[..1], &block[..]] {
        let expected = Resumption {
            uncertain: vec![],
            imported: Vec::new(),
            position: Position::WantsReply,
        };
        assert_eq!(plan_resumption(history, &begun_calls(&[]), None), expected);
    }
}

#[test]
fn resumption_runs_calls_not_begun_and_reports_begun_ones() {
    let calls = [
        call("1", "execute_command", "{}"),
        call("2", "execute_command", "{}"),
        call("3", "read_file", "{}"),
    ];
    let history = [user(), reply(&calls), result("1", "execute_command")];
    let found = plan_resumption(&history, &begun_calls(&["1", "2"]), None);
    assert_eq!(found.uncertain, [calls[1].clone()]);
    assert_eq!(found.position, Position::WantsTools(vec![calls[2].clone()]));
}

#[test]
fn resumption_ignores_ids_begun_in_earlier_replies() {
    let calls = [call("1", "execute_command", "{}")];
    let earlier = (
        MessageId("ffffffff-0000-4000-8000-000000000000".parse().unwrap()),
        "1".to_owned(),
    );
    let found = plan_resumption(&[user(), reply(&calls)], &HashSet::from([earlier]), None);
    assert_eq!(found.position, Position::WantsTools(calls.to_vec()));
}

#[test]
fn resumption_wants_a_reply_if_all_calls_are_uncertain() {
    let calls = [call("1", "execute_command", "{}")];
    let found = plan_resumption(&[user(), reply(&calls)], &begun_calls(&["1"]), None);
    assert_eq!(
        (found.uncertain.len(), found.position),
        (1, Position::WantsReply)
    );
}

#[test]
fn resumption_never_runs_calls_of_imported_messages() {
    let calls = [
        call("1", "execute_command", "{}"),
        call("2", "read_file", "{}"),
    ];
    let message = Message::clone(&reply(&calls).message).marked_imported();
    let imported = Entry::new(message, &NoCount);
    let found = plan_resumption(&[user(), Arc::clone(&imported)], &begun_calls(&[]), None);
    assert_eq!(
        (found.imported.len(), found.position),
        (2, Position::WantsReply)
    );
    // A later reply was written here.
    let answered = [
        user(),
        imported,
        result("1", "execute_command"),
        result("2", "read_file"),
        reply(&calls[..1]),
    ];
    let found = plan_resumption(&answered, &begun_calls(&[]), None);
    assert_eq!(
        (found.imported.len(), found.position),
        (0, Position::WantsTools(calls[..1].to_vec()))
    );
}

#[test]
fn resumption_waits_for_the_answer_to_an_open_question() {
    let ask = call(
        "1",
        names::ASK_TOOL,
        r#"{"question": "Which?", "options": ["a", "b"]}"#,
    );
    let found = plan_resumption(&[user(), reply(&[ask])], &begun_calls(&[]), None);
    let question = Question {
        question: "Which?".into(),
        options: vec!["a".into(), "b".into()],
        about: QuestionKind::Question,
    };
    assert_eq!(found.position, Position::WantsAnswer(question));
}

#[test]
fn resumption_is_finished_after_an_answer_or_a_completion() {
    let answer = [
        user(),
        message(Role::Assistant, vec![Part::from_text("Done.")]),
    ];
    let todos = Some(Unfinished::OpenTodos(2));
    let found = plan_resumption(&answer, &begun_calls(&[]), todos).position;
    assert!(matches!(found, Position::HasReply(reply) if reply.unfinished == todos));
    let complete = call("1", names::COMPLETE_TOOL, r#"{"result": "Fixed."}"#);
    let done = [
        user(),
        reply(&[complete]),
        result("1", names::COMPLETE_TOOL),
    ];
    assert_eq!(
        plan_resumption(&done, &begun_calls(&[]), None).position,
        Position::Completed("Fixed.".into())
    );
}

#[test]
fn resumption_is_finished_if_a_summary_follows_the_answer() {
    let answer = message(Role::Assistant, vec![Part::from_text("Done.")]);
    let summary = message(
        Role::Summary,
        vec![Part::from_text("# Archived Session Summary")],
    );
    let without = plan_resumption(&[user(), Arc::clone(&answer)], &begun_calls(&[]), None);
    assert!(matches!(&without.position, Position::HasReply(replied) if replied.text == "Done."));
    assert_eq!(
        plan_resumption(&[user(), answer, summary], &begun_calls(&[]), None),
        without
    );
}
