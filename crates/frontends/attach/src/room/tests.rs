use std::time::Duration;

use async_trait::async_trait;
use haft_agent::{Approver, SubjectKind};
use serde_json::{Value, json};

use super::*;
use crate::approver::AttachApprover;

fn approval() -> Approval {
    Approval {
        agent: "main".into(),
        call_id: Some("c1".into()),
        tool: "execute_command".into(),
        arguments: json!({"command": "make"}),
        subject: "make".into(),
        subject_kind: SubjectKind::Text,
        reason: String::new(),
        leaves_sandbox: false,
        parts: Vec::new(),
        remember: Vec::new(),
    }
}

fn add_client(room: &Room, client: u64) -> Arc<Outbox> {
    let outbox = Arc::new(Outbox::default());
    room.add_client(client, &outbox);
    outbox
}

/// Removes and returns the lines that wait for a client.
async fn read_lines(outbox: &Outbox) -> Vec<Value> {
    let mut lines = Vec::new();
    while let Ok(Some(line)) =
        tokio::time::timeout(Duration::from_millis(1), outbox.next_line()).await
    {
        lines.push(serde_json::from_str(&line).unwrap());
    }
    lines
}

fn message(text: &str, answers: Option<u64>) -> ClientLine {
    ClientLine::User {
        text: text.into(),
        id: Some(text.into()),
        answers,
    }
}

fn allow() -> ClientLine {
    ClientLine::Approval {
        id: "1".into(),
        answer: ApprovalAnswer::Allow {},
    }
}

/// The session's own front end: answers when the sender sends.
struct OwnFrontEnd {
    reply: tokio::sync::Mutex<Option<oneshot::Receiver<ApprovalReply>>>,
    told: Mutex<Vec<ApprovalReply>>,
}

impl OwnFrontEnd {
    fn new() -> (Arc<Self>, oneshot::Sender<ApprovalReply>) {
        let (sender, receiver) = oneshot::channel();
        let own = Self {
            reply: tokio::sync::Mutex::new(Some(receiver)),
            told: Mutex::default(),
        };
        (Arc::new(own), sender)
    }
}

#[async_trait]
impl Approver for OwnFrontEnd {
    async fn ask(&self, _: &Approval) -> ApprovalReply {
        let receiver = self.reply.lock().await.take().unwrap();
        receiver.await.unwrap()
    }

    fn answered_elsewhere(&self, _: &Approval, reply: &ApprovalReply) {
        self.told.lock().unwrap().push(reply.clone());
    }

    async fn save_rules(&self, _: &[String]) -> Result<(), String> {
        Ok(())
    }
}

const NO: ApprovalReply = ApprovalReply::No {
    reason: String::new(),
};

#[tokio::test]
async fn approval_has_one_answer_even_if_two_come_at_once() {
    for client_first in [true, false] {
        let room = Arc::new(Room::default());
        let (own, sender) = OwnFrontEnd::new();
        let approver = AttachApprover::new(Arc::clone(&own) as _, Arc::clone(&room));
        let outbox = add_client(&room, 1);
        let subject = approval();
        let mut asking = Box::pin(approver.ask(&subject));
        assert!(futures_poll(&mut asking).await.is_none());
        if client_first {
            room.handle_line(1, allow());
        }
        sender.send(NO).unwrap();
        let reply = asking.await;
        // A late answer.
        room.handle_line(1, allow());
        let lines = read_lines(&outbox).await;
        let of_type = |name: &str| lines.iter().filter(|line| line["type"] == name).count();
        assert_eq!((of_type("approval_answered"), of_type("refused")), (1, 1));
        let told = own.told.lock().unwrap().clone();
        if client_first {
            assert_eq!(
                (reply, told),
                (ApprovalReply::Once, vec![ApprovalReply::Once])
            );
        } else {
            assert_eq!((reply, told), (NO, Vec::new()));
        }
    }
}

/// Polls a future once.
async fn futures_poll<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    tokio::select! {
        biased;
        value = future => Some(value),
        () = std::future::ready(()) => None,
    }
}

#[tokio::test]
async fn approval_of_a_canceled_turn_is_withdrawn() {
    let room = Room::default();
    let outbox = add_client(&room, 1);
    drop(room.open_approval(&approval()));
    room.handle_line(1, allow());
    let types: Vec<_> = read_lines(&outbox)
        .await
        .iter()
        .map(|line| line["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(types, ["live", "approval_request", "withdrawn", "refused"]);
    // A client that attaches now is not asked.
    assert_eq!(
        read_lines(&add_client(&room, 2)).await,
        [json!({"type": "live"})]
    );
}

#[tokio::test]
async fn message_is_confirmed_when_it_is_stored_and_refused_when_it_is_not() {
    let room = Room::default();
    let outbox = add_client(&room, 1);
    room.accept_prompts();
    room.begin_turn(&CancellationToken::new());
    for text in ["one", "two", "three"] {
        room.handle_line(1, message(text, None));
    }
    // A repetition has no effect.
    room.handle_line(1, message("two", None));
    assert_eq!(room.take_messages(), ["one", "two", "three"]);
    room.confirm_taken_message();
    room.handle_line(1, message("four", None));
    room.end_turn();
    assert_eq!(room.next_prompt().await, "four");
    room.begin_turn(&CancellationToken::new());
    room.confirm_first_input("four, expanded");
    drop(room.close());
    let lines: Vec<_> = read_lines(&outbox)
        .await
        .into_iter()
        .filter(|line| line["type"] == "user" || line["type"] == "refused")
        .map(|line| (line["type"] == "user", line["id"].clone()))
        .collect();
    assert_eq!(
        lines,
        [
            (true, json!("one")),
            (false, json!("two")),
            (false, json!("three")),
            (true, json!("four"))
        ]
    );
}

#[tokio::test]
async fn second_answer_to_a_wait_is_refused_and_a_message_without_a_turn_too() {
    let room = Room::default();
    let outbox = add_client(&room, 1);
    room.handle_line(1, message("early", None));
    room.accept_prompts();
    let mut prompt = Box::pin(room.next_prompt());
    assert!(futures_poll(&mut prompt).await.is_none());
    room.handle_line(1, message("red", Some(0)));
    room.handle_line(1, message("blue", Some(0)));
    assert_eq!(prompt.await, "red");
    // The front end could not use it.
    room.accept_prompts();
    let lines: Vec<_> = read_lines(&outbox)
        .await
        .into_iter()
        .map(|line| {
            (
                line["type"].clone(),
                line["id"].clone(),
                line["message"].clone(),
            )
        })
        .collect();
    let refused = |id: &str, why: &str| (json!("refused"), json!(id), json!(why));
    let plain = |name: &str| (json!(name), Value::Null, Value::Null);
    assert_eq!(
        lines,
        [
            plain("live"),
            refused(
                "early",
                "no turn is running, and the session's own front end begins the next one"
            ),
            plain("idle"),
            refused("blue", "another answer came first"),
            refused("red", "the session could not begin a turn with the message"),
        ]
    );
}

#[tokio::test]
async fn backlog_is_bounded_and_says_what_is_left_out() {
    let room = Room::default();
    room.begin_turn(&CancellationToken::new());
    let text = "x".repeat(1 << 20);
    for _ in 0..6 {
        room.confirm_own_input(&text);
    }
    let lines = read_lines(&add_client(&room, 1)).await;
    // `turn_began` and the oldest inputs.
    assert_eq!(lines[0], json!({"type": "skipped", "lines": 4}));
    assert_eq!(lines.len(), 1 + 3 + 1);
}

#[tokio::test]
async fn slow_client_is_disconnected_and_the_others_go_on() {
    let room = Room::default();
    let slow = add_client(&room, 1);
    let text = "x".repeat(1 << 20);
    for _ in 0..17 {
        let other = add_client(&room, 2);
        room.confirm_own_input(&text);
        assert!(other.next_line().await.is_some());
    }
    assert!(slow.next_line().await.is_none());
    assert_eq!(room.lock_state().clients.keys().collect::<Vec<_>>(), [&2]);
}
