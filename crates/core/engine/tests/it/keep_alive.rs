//! Keep-alive requests: when they are sent, what they contain, and what they cost.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use haft_context::{ExpiryReason, IdleMode, PendingWork, Policy};
use haft_engine::turn::TurnLimits;
use haft_engine::{
    Approval, ApprovalReply, Approver, CacheStatus, CacheWatch, Presence, Session, SessionConfig,
};
use haft_store::KEEP_ALIVE_CAUSE;
use haft_testkit::{Reply, Script};
use haft_types::{ConversationId, Event, EventBody, Outcome, PermissionMode, Usage};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::desk::{CONVERSATION, Desk};

const MODEL: &str = "context_window = 200_000, max_output_tokens = 4000, \
                     price = { input = 2.0, cached_input = 0.2, cache_write = 2.5, output = 10.0 }, \
                     cache = { rule = 'anthropic', min = 1024, ttl = '5m' }";
/// A time after which an entry that lives for five minutes needs a keep-alive request.
const NEARLY_EXPIRED: Duration = Duration::from_secs(280);

fn read(tokens: u64) -> Usage {
    Usage {
        cached_input: tokens,
        output: 1,
        ..Usage::default()
    }
}

/// An approver that answers when the test allows it.
#[derive(Default)]
struct SlowApprover {
    asked: Notify,
    answer: Notify,
}

#[async_trait]
impl Approver for SlowApprover {
    async fn ask(&self, _: &Approval) -> ApprovalReply {
        self.asked.notify_one();
        self.answer.notified().await;
        ApprovalReply::No {
            reason: "not now".into(),
        }
    }

    async fn save_rules(&self, _: &[String]) -> Result<(), String> {
        Ok(())
    }
}

fn attended(config: &mut SessionConfig) {
    config.task.presence = Presence::Person;
}

/// The script of a turn that asks for an approval, with `kept` replies to keep-alive requests.
fn approval_script(kept: Vec<Reply>) -> Script {
    let first = Reply::call("read_file", json!({"path": "/outside/secret.txt"}));
    let last = Reply::text("Done.").with_usage(read(60_000));
    let replies = [first.with_usage(read(50_000))]
        .into_iter()
        .chain(kept)
        .chain([last]);
    Script::replies(replies).unwrap()
}

/// Waits until the pause after the newest request has ended without a further keep-alive request.
async fn wait_until_stopped(watch: &CacheWatch) -> CacheStatus {
    loop {
        if let Some(status) = watch.status().filter(|status| status.stopped.is_some()) {
            return status;
        }
        // A request instead of a stop is reported by the server's script, which has run out.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Opens a session in which a call waits for an approval, and runs `during` while it waits. Returns
/// the session and the events of the turn.
async fn run_with_open_approval(
    desk: &Desk,
    policy: Policy,
    model: &str,
    adjust: impl FnOnce(&mut SessionConfig),
    during: impl AsyncFnOnce(CacheWatch),
) -> (Session, Vec<EventBody>) {
    let approver = Arc::new(SlowApprover::default());
    let asks: Arc<dyn Approver> = Arc::<SlowApprover>::clone(&approver);
    let mut session = desk
        .open_with(policy, model, |config| {
            config.safety.permissions.mode = PermissionMode::Ask;
            config.task.approver = Some(asks);
            adjust(config);
        })
        .await
        .unwrap();
    let watch = session.watch_cache();
    let mut events = Vec::new();
    let mut sink = |event: &Event| events.push(event.body.clone());
    let cancel = CancellationToken::new();
    let turn = session.run(Some("go".into()), &mut sink, &cancel);
    let meanwhile = async {
        approver.asked.notified().await;
        during(watch).await;
        approver.answer.notify_one();
    };
    let (report, ()) = tokio::join!(turn, meanwhile);
    let outcome = report.result.outcome;
    assert!(
        matches!(outcome, Outcome::Completed | Outcome::Exhausted),
        "{}",
        report.result.message
    );
    (session, events)
}

fn usages(events: &[EventBody]) -> Vec<(u64, f64)> {
    events
        .iter()
        .filter_map(|event| match event {
            EventBody::Usage { usage, cost, .. } => {
                Some((usage.all_input(), cost.map_or(0.0, |cost| cost.total)))
            }
            _ => None,
        })
        .collect()
}

async fn logged_causes(desk: &Desk) -> Vec<Option<String>> {
    let id = ConversationId::new(CONVERSATION);
    let requests = desk.store.logged_requests(&id).await.unwrap();
    requests.into_iter().map(|request| request.cause).collect()
}

/// The keep-alive request equals the last request except for the output limit. Its reply, a call,
/// leaves no message and runs no tool. It is in the log and in the cost of the turn.
#[tokio::test]
async fn keep_alive_repeats_the_last_request_while_an_approval_is_open() {
    let kept = Reply::call("read_file", json!({"path": "notes.txt"})).with_usage(read(50_000));
    let desk = Desk::new(approval_script(vec![kept]), Vec::new())
        .await
        .unwrap();
    let (session, events) =
        run_with_open_approval(&desk, Policy::default(), MODEL, attended, async |watch| {
            desk.clock.advance(NEARLY_EXPIRED);
            desk.server.wait_for_requests(2).await;
            while watch.status().is_none_or(|status| status.keep_alives == 0) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    let requests = desk.server.generation_requests();
    let body = |index: usize| String::from_utf8(requests[index].body.to_vec()).unwrap();
    assert_eq!(requests.len(), 3);
    assert_eq!(
        body(1),
        body(0).replacen("\"max_tokens\":4000", "\"max_tokens\":1", 1)
    );
    assert_ne!(body(1), body(0));
    let roles: Vec<_> = session
        .history()
        .iter()
        .map(|entry| entry.message.role.to_string())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    let spent = usages(&events);
    let tokens: Vec<_> = spent.iter().map(|(tokens, _)| *tokens).collect();
    assert_eq!(tokens, [50_000, 50_000, 60_000]);
    assert!((spent[1].1 - 0.010_01).abs() < 1e-9, "{spent:?}");
    assert_eq!(
        logged_causes(&desk).await,
        [None, Some(KEEP_ALIVE_CAUSE.to_owned()), None]
    );
    let records = session.keep_alives();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].pending, PendingWork::Call);
}

#[tokio::test]
async fn keep_alive_prolongs_the_warm_cache() {
    let kept = Reply::text("x").with_usage(read(50_000));
    let desk = Desk::new(approval_script(vec![kept]), Vec::new())
        .await
        .unwrap();
    run_with_open_approval(&desk, Policy::default(), MODEL, attended, async |watch| {
        assert_eq!(watch.status().unwrap().expires_in.as_secs(), 300);
        desk.clock.advance(NEARLY_EXPIRED);
        desk.server.wait_for_requests(2).await;
        while watch.status().is_none_or(|status| status.keep_alives == 0) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let status = watch.status().unwrap();
        assert_eq!((status.expires_in.as_secs(), status.tokens), (300, 50_000));
        let rebuild = status.rebuild.unwrap();
        assert!((rebuild - 0.115).abs() < 1e-9, "{rebuild}");
    })
    .await;
}

/// Runs a turn with an open approval during which no second keep-alive request may be sent, and
/// returns the reason.
async fn stop_reason(
    policy: Policy,
    model: &str,
    adjust: impl FnOnce(&mut SessionConfig),
    kept: usize,
) -> ExpiryReason {
    let replies = vec![Reply::text("x").with_usage(read(50_000)); kept];
    let desk = Desk::new(approval_script(replies), Vec::new())
        .await
        .unwrap();
    let mut reason = None;
    run_with_open_approval(&desk, policy, model, adjust, async |watch| {
        for count in 0..kept {
            desk.clock.advance(NEARLY_EXPIRED);
            desk.server.wait_for_requests(2 + count).await;
            while watch
                .status()
                .is_none_or(|status| status.keep_alives as usize <= count)
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        desk.clock.advance(NEARLY_EXPIRED);
        reason = wait_until_stopped(&watch).await.stopped;
    })
    .await;
    assert_eq!(desk.server.generation_requests().len(), 2 + kept);
    reason.unwrap()
}

#[tokio::test]
async fn keep_alive_respects_its_number_and_its_money() {
    let twice = Policy {
        idle_max_pings: 2,
        ..Policy::default()
    };
    let counted = stop_reason(twice, MODEL, attended, 2).await;
    assert_eq!(counted, ExpiryReason::PingLimit);
    let cent = Policy {
        idle_max_usd: 0.015,
        ..Policy::default()
    };
    let paid = stop_reason(cent, MODEL, attended, 1).await;
    assert_eq!(paid, ExpiryReason::MoneyLimit);
}

#[tokio::test]
async fn keep_alive_respects_the_budget_of_the_run() {
    let costly = Usage {
        cache_write: 20_000,
        ..read(50_000)
    };
    let ask = Reply::call("read_file", json!({"path": "/outside/secret.txt"}));
    let script = Script::replies([ask.with_usage(costly)]).unwrap();
    let desk = Desk::new(script, Vec::new()).await.unwrap();
    let limited = |config: &mut SessionConfig| {
        attended(config);
        config.task.limits = TurnLimits {
            budget_usd: Some(0.06),
            ..TurnLimits::default()
        };
    };
    run_with_open_approval(&desk, Policy::default(), MODEL, limited, async |watch| {
        desk.clock.advance(NEARLY_EXPIRED);
        let status = wait_until_stopped(&watch).await;
        assert_eq!(status.stopped, Some(ExpiryReason::MoneyLimit));
    })
    .await;
    assert_eq!(desk.server.generation_requests().len(), 1);
}

#[tokio::test]
async fn keep_alive_is_off_by_configuration_and_by_a_thinking_budget() {
    let off = Policy {
        idle: IdleMode::Off,
        ..Policy::default()
    };
    assert_eq!(
        stop_reason(off, MODEL, attended, 0).await,
        ExpiryReason::Off
    );
    let thinks = format!(
        "{MODEL}, extra_body = {{ thinking = {{ type = 'enabled', budget_tokens = 1024 }} }}"
    );
    assert_eq!(
        stop_reason(Policy::default(), &thinks, attended, 0).await,
        ExpiryReason::Unsupported
    );
    let deepseek = MODEL.replace("'anthropic'", "'deepseek'");
    assert_eq!(
        stop_reason(Policy::default(), &deepseek, attended, 0).await,
        ExpiryReason::Unsupported
    );
}

#[tokio::test]
async fn keep_alive_needs_a_person() {
    let desk = Desk::new(approval_script(Vec::new()), Vec::new())
        .await
        .unwrap();
    run_with_open_approval(
        &desk,
        Policy::default(),
        MODEL,
        |_| {},
        async |watch| {
            desk.clock.advance(NEARLY_EXPIRED);
            assert_eq!(watch.status(), None, "nothing waits for the time");
        },
    )
    .await;
    assert_eq!(desk.server.generation_requests().len(), 2);
}

#[tokio::test]
async fn keep_alive_is_not_sent_after_a_turn_unless_configured() {
    let done = || Reply::text("Done.").with_usage(read(50_000));
    let desk = Desk::new(Script::replies([done(), done()]).unwrap(), Vec::new())
        .await
        .unwrap();
    let mut session = desk
        .open_with(Policy::default(), MODEL, attended)
        .await
        .unwrap();
    let cancel = CancellationToken::new();
    session
        .run(Some("go".into()), &mut |_: &Event| (), &cancel)
        .await;
    let watch = session.watch_cache();
    desk.clock.advance(NEARLY_EXPIRED);
    let status = wait_until_stopped(&watch).await;
    assert_eq!(status.stopped, Some(ExpiryReason::NothingPending));
    assert_eq!(desk.server.generation_requests().len(), 1);
    drop(session);
    assert_eq!(watch.status(), None, "the session is closed");
}
