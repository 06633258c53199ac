use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn message(from: &str, to: &str, text: &str) -> AgentMessage {
    AgentMessage {
        from: from.into(),
        to: to.into(),
        group: None,
        text: text.into(),
    }
}

#[tokio::test]
async fn register_replaces_the_earlier_registration_of_a_name() {
    let hub = Arc::new(Hub::default());
    let first = hub.register("a", "one");
    let second = hub.register("a", "two");
    hub.send(message("b", "a", "hi")).await.unwrap();
    assert_eq!(
        (first.take_messages().len(), second.take_messages().len()),
        (0, 1)
    );
    drop(first);
    assert_eq!(
        hub.agent_names(),
        ["a"],
        "the end of a replaced registration ends nothing"
    );
    drop(second);
    let lost = hub.send(message("b", "a", "hi")).await.unwrap_err();
    assert_eq!(
        lost,
        DeliveryError::NotRunning {
            name: "a".into(),
            running: vec![]
        }
    );
    assert_eq!(
        hub.history().len(),
        1,
        "what was not delivered is no history"
    );
}

#[tokio::test]
async fn close_if_empty_refuses_while_messages_wait_and_then_ends_delivery() {
    let hub = Arc::new(Hub::default());
    let own = hub.register("a", "");
    hub.send(message("b", "a", "one")).await.unwrap();
    assert!(
        own.has_messages() && !own.close_if_empty(),
        "what waits must be read first"
    );
    hub.send(message("b", "a", "two")).await.unwrap();
    assert_eq!(own.take_messages().len(), 2);
    assert!(own.close_if_empty());
    assert!(matches!(
        hub.send(message("b", "a", "three")).await,
        Err(DeliveryError::NotRunning { .. })
    ));
    assert_eq!((own.take_messages().len(), hub.history().len()), (0, 2));
    let other = hub.register("c", "");
    hub.send(message("b", "c", "one")).await.unwrap();
    assert_eq!(other.close().len(), 1);
    assert!(hub.send(message("b", "c", "two")).await.is_err());
}

#[tokio::test]
async fn send_rejects_messages_to_oneself_and_to_full_mailboxes() {
    let hub = Arc::new(Hub::default());
    let own = hub.register("a", "");
    let _other = hub.register("b", "");
    assert!(
        matches!(hub.send(message("a", "a", "x")).await, Err(DeliveryError::NotRunning { running, .. }) if running == ["b"])
    );
    for _ in 0..MAX_QUEUED_MESSAGES {
        hub.send(message("b", "a", "x")).await.unwrap();
    }
    assert!(matches!(
        hub.send(message("b", "a", "x")).await,
        Err(DeliveryError::Full { .. })
    ));
    assert_eq!(own.take_messages().len(), MAX_QUEUED_MESSAGES);
    assert!(
        hub.send(message("b", "a", "x")).await.is_ok(),
        "once read there is room again"
    );
}

#[tokio::test]
async fn send_to_group_reports_missing_members_and_reaches_the_rest() {
    let hub = Arc::new(Hub::with_groups([(
        "all".to_owned(),
        GroupConfig {
            members: ["a", "x", "b", "b"].map(Into::into).into(),
        },
    )]));
    let a = hub.register("a", "");
    let b = hub.register("b", "");
    let delivery = hub.send_to_group("a", "all", "go").await.unwrap();
    assert_eq!(delivery.reached, ["b"]);
    assert_eq!(
        delivery
            .failed
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        ["x"]
    );
    assert_eq!(
        (a.take_messages().len(), b.take_messages().len()),
        (0, 1),
        "not to the sender, and to nobody twice"
    );
    assert!(
        matches!(hub.send_to_group("a", "none", "go").await, Err(DeliveryError::NoGroup { groups, .. }) if groups == ["all"])
    );
}

#[test]
fn described_lists_the_other_agents_and_groups() {
    let hub = Arc::new(Hub::with_groups([(
        "g".to_owned(),
        GroupConfig {
            members: vec!["a".into(), "b".into()],
        },
    )]));
    let _kept = (
        hub.register("a", &"ä ".repeat(150)),
        hub.register("b", "Tests\nthings."),
    );
    let [agents, groups] = hub.describe_peers("b");
    let role = "ä ".repeat(50);
    assert_eq!(
        agents.unwrap().text,
        format!("- `a`: {role}\n- `b` (you): Tests things.")
    );
    assert_eq!(groups.unwrap().text, "- `g`: 2 members: a, b");
    assert!(hub.has_group_for("a") && hub.has_group_for("c"));
}

/// A recipient that delivers slowly and counts concurrent deliveries.
struct Slow {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

#[async_trait]
impl Recipient for Slow {
    async fn deliver(&self, _message: AgentMessage) -> Result<(), DeliveryError> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        self.now.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test]
async fn send_to_group_delivers_concurrently_up_to_the_limit() {
    let hub = Hub::default();
    let now = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let names: Vec<String> = (0..100).map(|number| format!("a{number}")).collect();
    for name in &names {
        let slow = Slow {
            now: Arc::clone(&now),
            most: Arc::clone(&most),
        };
        hub.register_recipient(name, "", Arc::new(slow));
    }
    hub.set_group("all", names);
    assert_eq!(
        hub.send_to_group("x", "all", "go")
            .await
            .unwrap()
            .reached
            .len(),
        100
    );
    assert_eq!(most.load(Ordering::SeqCst), max_concurrency());
}

/// 200 agents in 20 overlapping groups of 30 members. All agents write at once to each of their
/// groups and to the next agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hub_delivers_every_message_of_200_agents_exactly_once() {
    const AGENTS: usize = 200;
    const GROUPS: usize = 20;
    let name = |number: usize| format!("agent-{}", number % AGENTS);
    let members = |group: usize| {
        (0..30)
            .map(|step| name(group * 10 + step * 7))
            .collect::<Vec<_>>()
    };
    let hub = Arc::new(Hub::default());
    for group in 0..GROUPS {
        hub.set_group(format!("group-{group}"), members(group));
    }
    let boxes: Vec<_> = (0..AGENTS)
        .map(|number| hub.register(&name(number), "A role."))
        .collect();
    let mut expected: Vec<BTreeSet<String>> = vec![BTreeSet::new(); AGENTS];
    let mut tasks = Vec::new();
    for number in 0..AGENTS {
        let own = name(number);
        let groups: Vec<_> = (0..GROUPS)
            .filter(|group| members(*group).contains(&own))
            .collect();
        for group in &groups {
            for other in members(*group).into_iter().filter(|other| *other != own) {
                let to: usize = other["agent-".len()..].parse().unwrap();
                expected[to].insert(format!("{own} to group-{group}"));
            }
        }
        let neighbour = number + 1;
        expected[neighbour % AGENTS].insert(format!("{own} to {}", name(neighbour)));
        let hub = Arc::clone(&hub);
        let neighbour = name(neighbour);
        tasks.push(tokio::spawn(async move {
            for group in groups {
                let text = format!("{own} to group-{group}");
                let delivery = hub
                    .send_to_group(&own, &format!("group-{group}"), &text)
                    .await
                    .unwrap();
                assert_eq!((delivery.reached.len(), delivery.failed.len()), (29, 0));
            }
            hub.send(message(&own, &neighbour, &format!("{own} to {neighbour}")))
                .await
                .unwrap();
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut delivered = 0;
    for (mailbox, expected) in boxes.iter().zip(expected) {
        let got: Vec<_> = mailbox
            .take_messages()
            .into_iter()
            .map(|message| message.text)
            .collect();
        delivered += got.len();
        assert_eq!(got.len(), expected.len(), "none twice");
        assert_eq!(got.into_iter().collect::<BTreeSet<_>>(), expected);
    }
    assert_eq!(delivered, 20 * 30 * 29 + 200);
}
