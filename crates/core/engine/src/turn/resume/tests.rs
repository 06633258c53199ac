use haft_types::{Envelope, Part, Timestamp, TokenCounter, ToolResult};

use super::*;

struct NoCount;

impl TokenCounter for NoCount {
    fn text(&self, _: &str) -> u32 {
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
    message(Role::User, vec![Part::text("do it")])
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

fn begun(ids: &[&str]) -> HashSet<Begun> {
    ids.iter()
        .map(|id| (reply(&[]).message.message_id, (*id).to_owned()))
        .collect()
}

#[test]
fn a_user_message_or_a_complete_block_wants_a_reply() {
    let block = [
        user(),
        reply(&[call("1", "read_file", "{}")]),
        result("1", "read_file"),
    ];
    for history in [&block[..1], &block[..]] {
        let expected = Resumption {
            uncertain: vec![],
            position: Position::WantsReply,
        };
        assert_eq!(resumption(history, &begun(&[]), None), expected);
    }
}

#[test]
fn a_call_never_begun_runs_and_a_begun_one_is_uncertain() {
    let calls = [
        call("1", "execute_command", "{}"),
        call("2", "execute_command", "{}"),
        call("3", "read_file", "{}"),
    ];
    let history = [user(), reply(&calls), result("1", "execute_command")];
    let found = resumption(&history, &begun(&["1", "2"]), None);
    assert_eq!(found.uncertain, [calls[1].clone()]);
    assert_eq!(found.position, Position::WantsTools(vec![calls[2].clone()]));
}

#[test]
fn an_id_begun_in_an_earlier_reply_says_nothing_of_this_one() {
    let calls = [call("1", "execute_command", "{}")];
    let earlier = (
        MessageId("ffffffff-0000-4000-8000-000000000000".parse().unwrap()),
        "1".to_owned(),
    );
    let found = resumption(&[user(), reply(&calls)], &HashSet::from([earlier]), None);
    assert_eq!(found.position, Position::WantsTools(calls.to_vec()));
}

#[test]
fn with_only_uncertain_calls_the_model_decides() {
    let calls = [call("1", "execute_command", "{}")];
    let found = resumption(&[user(), reply(&calls)], &begun(&["1"]), None);
    assert_eq!(
        (found.uncertain.len(), found.position),
        (1, Position::WantsReply)
    );
}

#[test]
fn an_open_question_waits() {
    let ask = call(
        "1",
        names::ASK,
        r#"{"question": "Which?", "options": ["a", "b"]}"#,
    );
    let found = resumption(&[user(), reply(&[ask])], &begun(&[]), None);
    let question = Question {
        question: "Which?".into(),
        options: vec!["a".into(), "b".into()],
        about: About::Question,
    };
    assert_eq!(found.position, Position::WantsAnswer(question));
}

#[test]
fn an_answer_and_a_completion_are_finished() {
    let answer = [user(), message(Role::Assistant, vec![Part::text("Done.")])];
    let todos = Some(Unfinished::OpenTodos(2));
    let found = resumption(&answer, &begun(&[]), todos).position;
    assert!(matches!(found, Position::HasReply(reply) if reply.unfinished == todos));
    let complete = call("1", names::COMPLETE, r#"{"result": "Fixed."}"#);
    let done = [user(), reply(&[complete]), result("1", names::COMPLETE)];
    assert_eq!(
        resumption(&done, &begun(&[]), None).position,
        Position::Completed("Fixed.".into())
    );
}

#[test]
fn a_summary_made_after_the_answer_leaves_the_turn_finished() {
    let answer = message(Role::Assistant, vec![Part::text("Done.")]);
    let summary = message(
        Role::Summary,
        vec![Part::text("# Archived Session Summary")],
    );
    let without = resumption(&[user(), Arc::clone(&answer)], &begun(&[]), None);
    assert!(matches!(&without.position, Position::HasReply(replied) if replied.text == "Done."));
    assert_eq!(
        resumption(&[user(), answer, summary], &begun(&[]), None),
        without
    );
}
