use haft_types::{MessageId, Part, ToolCall};
use proptest::prelude::*;

use super::*;

const MINUTE: u64 = 60;

/// Prices per million tokens: reading costs a tenth of the input price.
fn price() -> Price {
    Price {
        input: 2.0,
        cached_input: Some(0.2),
        cache_write: Some(2.5),
        output: 10.0,
        long: None,
    }
}

fn five_minutes() -> Duration {
    Duration::from_mins(5)
}

/// A pause at the time of the first keep-alive request for a prefix of 100,000 tokens.
fn first_pause(mode: IdleMode, pending: PendingWork, gaps: &GapHistory) -> IdlePause<'_> {
    let due = keep_alive_after(five_minutes());
    IdlePause {
        mode,
        pending,
        cost: IdleCost::from_price(price(), 100_000, 1),
        limits: IdleLimits { pings: 6, usd: 0.1 },
        lifetime: five_minutes(),
        elapsed: due,
        unused: due,
        sent: 0,
        spent: 0.0,
        gaps,
    }
}

fn is_sent(decision: IdleDecision) -> bool {
    matches!(decision, IdleDecision::KeepAlive { .. })
}

#[test]
fn cost_is_a_read_and_one_token_against_a_write() {
    let IdleCost { ping, rebuild } = IdleCost::from_price(price(), 100_000, 1);
    assert!((ping - (0.02 + 0.000_01)).abs() < 1e-12, "{ping}");
    assert!((rebuild - 0.23).abs() < 1e-12, "{rebuild}");
    let automatic = Price {
        cache_write: None,
        ..price()
    };
    let rebuild = IdleCost::from_price(automatic, 100_000, 16).rebuild;
    assert!((rebuild - 0.18).abs() < 1e-12, "{rebuild}");
}

#[test]
fn decide_idle_sends_only_while_something_is_pending_unless_asked() {
    use PendingWork::{Call, Nothing, Question, Task};
    let gaps = GapHistory::default();
    let sent = |mode, pending| is_sent(decide_idle(&first_pause(mode, pending, &gaps)));
    let all = [Call, Task, Question, Nothing];
    assert_eq!(
        all.map(|pending| sent(IdleMode::Auto, pending)),
        [true, true, true, false]
    );
    let nothing = decide_idle(&first_pause(IdleMode::Auto, Nothing, &gaps));
    assert_eq!(nothing, IdleDecision::Expire(ExpiryReason::NothingPending));
    assert_eq!(all.map(|pending| sent(IdleMode::Off, pending)), [false; 4]);
}

/// A user who often comes back after ten minutes gets keep-alive requests before an answer; a user
/// who comes back after hours doesn't.
#[test]
fn decide_idle_follows_the_gaps_of_the_user() {
    let after = |minutes: u64| {
        let mut gaps = GapHistory::default();
        for _ in 0..30 {
            gaps.record(GapKind::User, Duration::from_secs(minutes * MINUTE));
        }
        gaps
    };
    let decide = |gaps: &GapHistory, mode, pending| decide_idle(&first_pause(mode, pending, gaps));
    let soon = after(10);
    let late = after(300);
    assert!(is_sent(decide(
        &soon,
        IdleMode::Auto,
        PendingWork::Question
    )));
    assert!(is_sent(decide(&soon, IdleMode::Ping, PendingWork::Nothing)));
    for (mode, pending) in [
        (IdleMode::Auto, PendingWork::Question),
        (IdleMode::Auto, PendingWork::Task),
        (IdleMode::Ping, PendingWork::Nothing),
    ] {
        assert_eq!(
            decide(&late, mode, pending),
            IdleDecision::Expire(ExpiryReason::NoSaving)
        );
    }
}

#[test]
fn decide_idle_stops_at_each_limit_and_after_the_expiry() {
    let gaps = GapHistory::default();
    let pause = first_pause(IdleMode::Auto, PendingWork::Call, &gaps);
    let reason = |pause: IdlePause<'_>| match decide_idle(&pause) {
        IdleDecision::KeepAlive { .. } => None,
        IdleDecision::Expire(reason) => Some(reason),
    };
    assert_eq!(reason(pause), None);
    let counted = IdlePause { sent: 6, ..pause };
    assert_eq!(reason(counted), Some(ExpiryReason::PingLimit));
    let paid = IdlePause {
        spent: 0.081,
        sent: 4,
        ..pause
    };
    assert_eq!(reason(paid), Some(ExpiryReason::MoneyLimit));
    let expired = IdlePause {
        unused: five_minutes(),
        ..pause
    };
    assert_eq!(reason(expired), Some(ExpiryReason::Expired));
}

#[test]
fn keep_alives_need_a_documented_lifetime() {
    let kept: Vec<_> = [
        CacheKind::Anthropic,
        CacheKind::Automatic,
        CacheKind::Openai,
        CacheKind::OpenaiBreakpoints,
        CacheKind::Gemini,
        CacheKind::Deepseek,
        CacheKind::Vllm,
        CacheKind::LlamaCpp,
        CacheKind::None,
    ]
    .into_iter()
    .filter(|kind| can_keep_alive(*kind))
    .collect();
    let documented = [
        CacheKind::Anthropic,
        CacheKind::Openai,
        CacheKind::OpenaiBreakpoints,
    ];
    assert_eq!(kept, documented);
}

#[test]
fn choose_lifetime_buys_the_hour_for_a_user_with_long_pauses() {
    let offers = [(5, 2.5), (60, 4.0)].map(|(minutes, write)| LifetimeOffer {
        lifetime: Duration::from_mins(minutes),
        write,
    });
    let chosen = |pause: Duration, mode, growth| {
        let mut gaps = GapHistory::default();
        for _ in 0..40 {
            gaps.record(GapKind::User, pause);
            gaps.record(GapKind::Call, Duration::from_secs(3));
        }
        let choice = LifetimeChoice {
            mode,
            limits: IdleLimits { pings: 6, usd: 0.1 },
            read: 0.2,
            prefix: 60_000,
            growth,
            gaps: &gaps,
        };
        choose_lifetime(&offers, &choice)
    };
    let quarter = Duration::from_mins(15);
    assert_eq!(chosen(quarter, IdleMode::Auto, 1_000), 1);
    assert_eq!(
        chosen(Duration::from_secs(40), IdleMode::Auto, 1_000),
        0,
        "short pauses never need it"
    );
    assert_eq!(
        chosen(Duration::from_hours(5), IdleMode::Auto, 1_000),
        0,
        "the hour does not help"
    );
    assert_eq!(
        choose_lifetime(
            &[],
            &LifetimeChoice {
                mode: IdleMode::Off,
                limits: IdleLimits { pings: 0, usd: 0.0 },
                read: 1.0,
                prefix: 1,
                growth: 1,
                gaps: &GapHistory::default(),
            }
        ),
        0
    );
}

#[test]
fn gaps_of_a_conversation_run_from_a_reply_to_the_next_request() {
    let message = |role, second: i64, parts: Vec<Part>| {
        let at = Timestamp::from_second(1_000 + second).unwrap();
        let id = MessageId::from_hash(haft_types::ContentHash::from_content(&second.to_le_bytes()));
        Message::new(id, role, parts, at)
    };
    let call = Part::ToolCall(ToolCall {
        id: "1".into(),
        name: "read_file".into(),
        arguments: "{}".into(),
        signature: None,
    });
    let text = |text: &str| Part::from_text(text);
    let messages = [
        message(Role::User, 0, vec![text("go")]),
        message(Role::Assistant, 5, vec![call]),
        message(Role::Tool, 47, vec![]),
        message(Role::Assistant, 50, vec![text("done")]),
        message(Role::User, 650, vec![text("more")]),
        message(Role::Assistant, 660, vec![text("done")]),
    ];
    let mut expected = GapHistory::default();
    expected.record(GapKind::Call, Duration::from_secs(42));
    expected.record(GapKind::User, Duration::from_secs(600));
    assert_eq!(GapHistory::from_messages(&messages), expected);
}

#[test]
fn evidence_needs_two_contradictions() {
    let declared = five_minutes();
    let observed = |reads: &[(u64, u64)]| {
        let mut evidence = LifetimeEvidence::default();
        for &(seconds, read) in reads {
            evidence.observe(declared, Duration::from_secs(seconds), 10_000, read);
        }
        evidence
            .measured_lifetime(declared)
            .map(|life| life.as_secs())
    };
    assert_eq!(observed(&[(100, 10_000), (280, 10_000), (400, 0)]), None);
    assert_eq!(observed(&[(200, 0)]), None, "one loss may be an accident");
    assert_eq!(observed(&[(100, 10_000), (200, 0), (240, 0)]), Some(100));
    assert_eq!(
        observed(&[(200, 0), (240, 0), (280, 10_000)]),
        None,
        "a later hit shows that the losses had another cause"
    );
    assert_eq!(observed(&[(900, 9_000), (1_500, 10_000)]), Some(1_500));
    assert_eq!(
        observed(&[(10, 0), (20, 0)]),
        None,
        "not a question of time"
    );
}

/// Returns the expected saving of `planned` keep-alive requests by going through the possible ends
/// of the pause, second by second.
fn saving_by_enumeration(pause: &IdlePause<'_>, planned: u32) -> f64 {
    let kind = pause.pending.gap_kind();
    let longer = |time: Duration| pause.gaps.longer_than(kind, time);
    let step = keep_alive_after(pause.lifetime);
    let expires = pause.elapsed + pause.lifetime - pause.unused;
    let end = pause.elapsed + step * planned + pause.lifetime;
    let mut saving = 0.0;
    let mut time = pause.elapsed;
    while time < end {
        let next = time + Duration::from_secs(1);
        let probability = longer(time) - longer(next);
        let sent = (0..planned)
            .filter(|index| pause.elapsed + step * *index <= time)
            .count() as u32;
        let alive_until = pause.elapsed + step * (sent.max(1) - 1) + pause.lifetime;
        let rescued = time >= expires && next <= alive_until;
        let gained = if rescued { pause.cost.rebuild } else { 0.0 };
        saving += probability * (gained - f64::from(sent) * pause.cost.ping);
        time = next;
    }
    saving -= longer(end) * f64::from(planned) * pause.cost.ping;
    saving / longer(pause.elapsed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A keep-alive request is never sent if it is expected to cost money, and never beyond a limit.
    #[test]
    fn keep_alive_saves_money_and_keeps_the_limits(
        read in 0.01_f64..1.0,
        write in 1.0_f64..2.0,
        tokens in 1_000_u64..500_000,
        minutes in 2_u64..40,
        sent in 0_u32..7,
        usd in 0.0_f64..0.5,
        calls in proptest::collection::vec(1_u64..4_000, 0..40),
        inputs in proptest::collection::vec(1_u64..20_000, 0..40),
        kind in 0_usize..4,
    ) {
        let mut gaps = GapHistory::default();
        for gap in calls {
            gaps.record(GapKind::Call, Duration::from_secs(gap));
        }
        for gap in inputs {
            gaps.record(GapKind::User, Duration::from_secs(gap));
        }
        let price = Price {
            input: 1.0,
            cached_input: Some(read),
            cache_write: Some(write),
            output: 5.0,
            long: None,
        };
        let cost = IdleCost::from_price(price, tokens, 1);
        let lifetime = Duration::from_mins(minutes);
        let due = keep_alive_after(lifetime);
        let pending = [
            PendingWork::Call,
            PendingWork::Task,
            PendingWork::Question,
            PendingWork::Nothing,
        ][kind];
        let pause = IdlePause {
            mode: IdleMode::Ping,
            pending,
            cost,
            limits: IdleLimits { pings: 6, usd },
            lifetime,
            elapsed: due * (sent + 1),
            unused: due,
            sent,
            spent: f64::from(sent) * cost.ping,
            gaps: &gaps,
        };
        if let IdleDecision::KeepAlive { saving, planned } = decide_idle(&pause) {
            let counted = saving_by_enumeration(&pause, planned);
            let tolerance = 0.02 * (cost.rebuild + cost.ping);
            prop_assert!(saving > 0.0);
            prop_assert!((saving - counted).abs() < tolerance, "{saving} {counted}");
            prop_assert!(sent + planned <= 6);
            prop_assert!(f64::from(sent + planned) * cost.ping <= usd + 1e-9);
        }
    }
}
