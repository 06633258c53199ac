//! Surgery while it is free: compaction at the soft threshold waits for a cold prefix and then
//! includes the other pending changes.

use std::time::Duration;

use haft_context::{Compress, Policy};
use haft_engine::Session;
use haft_testkit::{Reply, Script, Seen, When};
use haft_types::{Event, EventBody, Usage};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;

const MODEL: &str = "context_window = 100_000, max_output_tokens = 4000, cache = { rule = 'anthropic', min = 1024, ttl = '5m' }";

/// Number of compaction events and causes of prefix breaks in one turn.
#[derive(Debug, Default, PartialEq)]
struct TurnEvents {
    compactions: usize,
    breaks: Vec<String>,
}

async fn run_turn(session: &mut Session, words: &str) -> TurnEvents {
    let mut told = TurnEvents::default();
    let mut tell = |event: &Event| {
        if let EventBody::Compaction { .. } = &event.body {
            told.compactions += 1;
        } else if let EventBody::PrefixBreak { cause, .. } = &event.body {
            told.breaks.push(cause.clone());
        }
    };
    let report = session
        .run(Some(words.into()), &mut tell, &CancellationToken::new())
        .await;
    assert_eq!(report.result.text, "Done.", "{}", report.result.message);
    told
}

/// Opens a session with three rounds, each with a long result, whose newest reply used `share` of
/// the window.
async fn session_after_three_rounds(share: f64, policy: &Policy) -> (Desk, Session) {
    let read = |n: u32| {
        Reply::call(
            "read_file",
            json!({"path": "long.txt", "start_line": n, "end_line": n + 700}),
        )
    };
    let used = Usage {
        input: (share * 100_000.0) as u64,
        ..Usage::default()
    };
    let done = || Reply::text("Done.");
    let summary = Reply::summary("Read it.").when(When {
        last_contains: Some("The session to be archived".into()),
        ..When::default()
    });
    let rounds = [
        read(1),
        done(),
        read(2),
        done(),
        read(3),
        done().with_usage(used),
        done().with_usage(used),
        done(),
    ];
    let script = Script::replies([summary].into_iter().chain(rounds)).unwrap();
    let desk = Desk::new(script, Vec::new()).await.unwrap();
    let lines = (1..=800)
        .map(|n| format!("line {n} of a long file\n"))
        .collect::<Vec<_>>()
        .concat();
    std::fs::write(desk.folder.path().join("long.txt"), lines).unwrap();
    let mut session = desk.open(policy.clone(), MODEL).await.unwrap();
    for words in ["one", "two", "three"] {
        let told = run_turn(&mut session, words).await;
        assert_eq!(
            told,
            TurnEvents::default(),
            "a warm prefix is only appended to: {words}"
        );
        desk.clock.advance(Duration::from_secs(20));
    }
    (desk, session)
}

fn policy_with_compression(compress: Compress) -> Policy {
    // Prices are unknown, so no change is known to pay off: changes happen because they are free or
    // can't wait.
    Policy {
        keep_rounds: 1,
        compact_frees: 0.01,
        compress: Some(compress),
        ..Policy::default()
    }
}

fn last_request(desk: &Desk) -> Seen {
    desk.server
        .generation_requests()
        .last()
        .unwrap()
        .decode()
        .unwrap()
}

#[tokio::test]
async fn compaction_at_the_soft_threshold_waits_for_a_cold_prefix() {
    let (desk, mut session) =
        session_after_three_rounds(0.7, &policy_with_compression(Compress::WhenFree)).await;
    assert_eq!(
        run_turn(&mut session, "four").await,
        TurnEvents::default(),
        "warm: it waits"
    );
    assert!(
        last_request(&desk).to_string().contains("line 690 of"),
        "results wait for it too"
    );
    desk.clock.advance(Duration::from_secs(301));
    let told = run_turn(&mut session, "five").await;
    assert_eq!(
        told,
        TurnEvents {
            compactions: 2,
            breaks: vec!["compaction".into()]
        },
        "one break for all of it"
    );
    let sent = last_request(&desk).to_string();
    assert!(
        sent.contains("Archived Session Summary") && !sent.contains("line 690 of"),
        "{sent}"
    );
}

#[tokio::test]
async fn compaction_at_the_hard_threshold_acts_on_a_warm_prefix() {
    let (desk, mut session) =
        session_after_three_rounds(0.85, &policy_with_compression(Compress::WhenFree)).await;
    let told = run_turn(&mut session, "four").await;
    assert_eq!(
        (told.compactions, told.breaks),
        (2, vec!["compaction".to_owned()])
    );
    assert!(
        last_request(&desk)
            .to_string()
            .contains("Archived Session Summary")
    );
}

#[tokio::test]
async fn compaction_ignores_the_soft_threshold_if_nothing_waits() {
    let (desk, mut session) =
        session_after_three_rounds(0.7, &policy_with_compression(Compress::Never)).await;
    desk.clock.advance(Duration::from_secs(301));
    assert_eq!(run_turn(&mut session, "four").await.compactions, 0);
}
