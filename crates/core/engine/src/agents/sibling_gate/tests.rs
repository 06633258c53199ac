//! Tests of the order in which sub-agents with equal first bytes send their first requests.

use haft_testkit::support::FakeClock;

use super::*;

fn place(gate: &Arc<SiblingGate>) -> SiblingPlace {
    SiblingPlace {
        gate: Arc::clone(gate),
        key: "scout".to_owned(),
    }
}

fn rule() -> CacheRule {
    CacheRule {
        rule: CacheKind::Anthropic,
        ttl: "5m".into(),
        ..CacheRule::default()
    }
}

async fn wait(place: &SiblingPlace, clock: &FakeClock) -> Option<FirstSender> {
    place.wait(&rule(), clock, &CancellationToken::new()).await
}

#[tokio::test]
async fn others_wait_for_the_first_token() {
    let gate = Arc::new(SiblingGate::default());
    let clock = FakeClock::default();
    let first = wait(&place(&gate), &clock)
        .await
        .expect("nobody was before");
    let second = place(&gate);
    let waiting = wait(&second, &clock);
    tokio::pin!(waiting);
    assert!(futures::poll!(&mut waiting).is_pending());
    first.release();
    assert!(waiting.await.is_none());
    assert!(wait(&place(&gate), &clock).await.is_none(), "it is warm");
}

#[tokio::test]
async fn failed_first_sender_is_replaced_by_one_other() {
    let gate = Arc::new(SiblingGate::default());
    let clock = FakeClock::default();
    let first = wait(&place(&gate), &clock).await;
    let (second, third) = (place(&gate), place(&gate));
    let (second, third) = (wait(&second, &clock), wait(&third, &clock));
    tokio::pin!(second, third);
    assert!(futures::poll!(&mut second).is_pending());
    assert!(futures::poll!(&mut third).is_pending());
    drop(first);
    let sender = second.await.expect("it is the first now");
    assert!(futures::poll!(&mut third).is_pending());
    sender.release();
    assert!(third.await.is_none());
}

#[tokio::test(start_paused = true)]
async fn others_wait_ten_seconds_at_most() {
    let gate = Arc::new(SiblingGate::default());
    let clock = FakeClock::default();
    let begun = tokio::time::Instant::now();
    let first = wait(&place(&gate), &clock).await;
    assert!(wait(&place(&gate), &clock).await.is_none());
    assert_eq!(begun.elapsed().as_secs(), 10);
    drop(first);
}

#[tokio::test]
async fn expired_bytes_have_a_first_sender_again() {
    let gate = Arc::new(SiblingGate::default());
    let clock = FakeClock::default();
    wait(&place(&gate), &clock).await.unwrap().release();
    clock.advance(Duration::from_secs(299));
    assert!(wait(&place(&gate), &clock).await.is_none());
    clock.advance(Duration::from_secs(301));
    assert!(wait(&place(&gate), &clock).await.is_some());
}

#[tokio::test]
async fn servers_without_a_cache_are_not_waited_for() {
    let gate = Arc::new(SiblingGate::default());
    let clock = FakeClock::default();
    let none = CacheRule {
        rule: CacheKind::None,
        ..CacheRule::default()
    };
    let cancel = CancellationToken::new();
    for _ in 0..2 {
        assert!(place(&gate).wait(&none, &clock, &cancel).await.is_none());
    }
}
