use std::sync::Arc;

use haft_types::{Entry, Layer, Message, Segment};

use super::*;
use crate::build::system::REQUIRED_SECTIONS;
use crate::testing::{at, call, conversation, entry, id, system, tool_set};

fn request(messages: Vec<Arc<Entry>>) -> Request {
    let segment = |entry| Segment {
        layer: Layer::History,
        owner: "history",
        entry,
        boundary: false,
    };
    Request {
        segments: messages.into_iter().map(segment).collect(),
        tools: tool_set(&[]),
        max_output_tokens: None,
        cache_key: None,
    }
}

/// Returns the system message, followed by a conversation.
fn with_system(shape: &str) -> Vec<Arc<Entry>> {
    [vec![system()], conversation(shape)].concat()
}

fn check_error(messages: Vec<Arc<Entry>>) -> IntegrityError {
    check_request(&request(messages), REQUIRED_SECTIONS).unwrap_err()
}

#[test]
fn check_accepts_a_sound_request() {
    check_request(&request(with_system("ΣUATTaUAT")), REQUIRED_SECTIONS).unwrap();
}

#[test]
fn check_requires_exactly_one_system_message_at_the_start() {
    assert_eq!(check_error(Vec::new()), IntegrityError::Empty);
    assert_eq!(
        check_error(conversation("U")),
        IntegrityError::FirstNotSystem {
            id: id(0),
            role: Role::User
        }
    );
    let twice = [with_system("U"), with_system("")].concat();
    let second = twice[2].message.message_id;
    let last = [twice, conversation("U")].concat();
    assert_eq!(
        check_error(last),
        IntegrityError::SecondSystem { id: second }
    );
}

#[test]
fn check_requires_an_answerable_last_message() {
    let error = check_error(with_system("Ua"));
    assert_eq!(
        error,
        IntegrityError::LastNotAnswerable {
            id: id(1),
            role: Role::Assistant
        }
    );
    assert!(
        error.to_string().contains(&id(1).to_string()),
        "the error names the message: {error}"
    );
}

#[test]
fn check_requires_whole_blocks() {
    let mut messages = with_system("UATTU");
    messages.remove(4);
    let broken = IntegrityError::BrokenBlock {
        id: id(1),
        call: "call-1-1".into(),
    };
    assert_eq!(check_error(messages), broken);
    let mut messages = with_system("UAT");
    messages.remove(2);
    assert_eq!(
        check_error(messages),
        IntegrityError::OrphanResult {
            id: id(2),
            call: "call-1-0".into()
        }
    );
    // A message between a call and its result.
    let mut messages = with_system("UATU");
    messages.swap(3, 4);
    assert!(matches!(
        check_error(messages),
        IntegrityError::BrokenBlock { .. }
    ));
}

#[test]
fn check_rejects_calls_in_a_user_message() {
    let odd = entry(Message::new(
        id(9),
        Role::User,
        vec![call("1", "t", "{}")],
        at(9),
    ));
    let messages = [with_system("U"), vec![odd]].concat();
    assert_eq!(
        check_error(messages),
        IntegrityError::MisplacedPart {
            id: id(9),
            role: Role::User
        }
    );
}

#[test]
fn check_requires_the_given_sections() {
    let bare = crate::system_entry(
        "You are haft.\n\n====\n\nRULES\n\nNone.\n",
        &crate::testing::Quarter,
    );
    let messages = [vec![bare], conversation("U")].concat();
    let error = check_request(
        &request(messages.clone()),
        &[SystemSection::Rules, SystemSection::Objective],
    )
    .unwrap_err();
    assert!(
        matches!(
            error,
            IntegrityError::MissingSection {
                section: "OBJECTIVE",
                ..
            }
        ),
        "{error}"
    );
    check_request(&request(messages), &[SystemSection::Rules]).unwrap();
}
