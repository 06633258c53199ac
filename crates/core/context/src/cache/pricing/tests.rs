use haft_types::{CacheKind, CacheRule, ContentHash, LongPrice, MessageId, Price};
use proptest::prelude::*;

use super::*;
use crate::testing::{Quarter, conversation, model, system, tool_set};
use crate::{Account, Policy, Snapshot, assemble};

fn build(rule: CacheKind, min: u32, shape: &str, last: Option<&Account>) -> (u64, Account) {
    let system = system();
    let tools = tool_set(&["read_file"]);
    let policy = Policy::default();
    let history = conversation(shape);
    let price = Price {
        input: 3.0,
        cached_input: Some(0.3),
        cache_write: Some(3.75),
        output: 15.0,
        long: None,
    };
    let model = ModelSpec {
        cache: CacheRule {
            rule,
            min,
            ..CacheRule::default()
        },
        price: Some(price),
        ..model()
    };
    let plain = Snapshot::new(&model, &policy, &system, &tools, &history, &Quarter);
    let built = assemble(&Snapshot {
        last: last.map(|account| &account.sent),
        ..plain
    })
    .unwrap();
    (built.request.estimated_tokens(), built.account)
}

#[test]
fn expected_classes_are_disjoint_and_add_up() {
    for rule in [
        CacheKind::Anthropic,
        CacheKind::Automatic,
        CacheKind::Deepseek,
        CacheKind::OpenaiBreakpoints,
        CacheKind::None,
    ] {
        let (first_tokens, first) = build(rule, 100, "UAT", None);
        let (second_tokens, second) = build(rule, 100, "UATAT", Some(&first));
        assert_eq!(first.expected.all_input(), first_tokens);
        assert_eq!(second.expected.all_input(), second_tokens);
        assert_eq!(first.expected.cached_input, 0);
        let cost = second.expected_cost.unwrap();
        assert!((cost.total - (cost.input + cost.cached_input + cost.cache_write)).abs() < 1e-12);
        match rule.cache_match() {
            CacheMatch::NoCache => assert_eq!(second.expected.input, second_tokens),
            // The whole first request except its framing is read from the cache.
            CacheMatch::Prefix => assert_eq!(second.expected.cached_input, first_tokens - 2),
            CacheMatch::Boundaries => {
                assert_eq!(second.expected.cached_input, first_tokens - 2);
                assert_eq!(first.expected.cache_write, first_tokens - 2);
                assert_eq!(second.expected.input, 2);
            }
        }
    }
}

#[test]
fn expected_usage_of_a_short_prefix_is_uncached() {
    let (_, first) = build(CacheKind::Anthropic, 100_000, "UAT", None);
    let (tokens, second) = build(CacheKind::Anthropic, 100_000, "UATAT", Some(&first));
    assert_eq!(second.expected.input, tokens);
}

#[test]
fn expected_cost_uses_the_models_own_tokens() {
    let system = system();
    let tools = tool_set(&["read_file"]);
    let policy = Policy::default();
    let history = conversation("UAT");
    let expected = |tokenizer_factor| {
        let price = Price {
            input: 3.0,
            cached_input: None,
            cache_write: None,
            output: 15.0,
            long: None,
        };
        let model = ModelSpec {
            price: Some(price),
            tokenizer_factor,
            ..model()
        };
        let built = assemble(&Snapshot::new(
            &model, &policy, &system, &tools, &history, &Quarter,
        ))
        .unwrap();
        (
            built.account.expected.input,
            built.account.expected_cost.unwrap().total,
        )
    };
    let (counted, cheap) = expected(1.0);
    let (tokens, dear) = expected(1.5);
    assert_eq!(tokens, (counted as f64 * 1.5).round() as u64);
    assert!(dear > 1.49 * cheap);
}

/// A break late in a long request resends little, but at the prices of a long request.
#[test]
fn break_cost_uses_the_prices_of_the_whole_request() {
    let cost_of = |above| {
        let long = LongPrice {
            above,
            input: 6.0,
            cached_input: Some(0.6),
            cache_write: None,
            output: 15.0,
        };
        let price = Price {
            input: 3.0,
            cached_input: Some(0.3),
            cache_write: None,
            output: 15.0,
            long: Some(long),
        };
        let rule = CacheRule {
            rule: CacheKind::Automatic,
            min: 0,
            ..CacheRule::default()
        };
        let model = ModelSpec {
            cache: rule,
            price: Some(price),
            ..model()
        };
        let system = system();
        let policy = Policy::default();
        let history = conversation("UATAT");
        let tools = tool_set(&["read_file", "list_files"]);
        let fewer = tool_set(&["read_file"]);
        let first = assemble(&Snapshot::new(
            &model, &policy, &system, &tools, &history, &Quarter,
        ))
        .unwrap();
        let plain = Snapshot::new(&model, &policy, &system, &fewer, &history, &Quarter);
        let built = assemble(&Snapshot {
            last: Some(&first.account.sent),
            ..plain
        })
        .unwrap();
        let broken = built.account.prefix.unwrap().broken.unwrap();
        (
            broken.price.tokens,
            broken.price.cost.unwrap(),
            built.request.estimated_tokens(),
        )
    };
    let (resent, cheap, whole) = cost_of(u64::MAX);
    assert!(resent < whole, "{resent} of {whole}");
    let (_, dear, _) = cost_of(resent + 1);
    assert!((dear - 2.0 * cheap).abs() < 1e-12, "{cheap} {dear}");
}

/// The input of a request of 100,000 tokens, 1,000 of them new.
fn broken_input(input: u64, cache_write: u64) -> BrokenInput {
    BrokenInput {
        total: 100_000,
        new: 1_000,
        again: Usage {
            input,
            cache_write,
            ..Usage::default()
        },
    }
}

fn bill(input: u64, cached_input: u64, cache_write: u64) -> Usage {
    Usage {
        input,
        cached_input,
        cache_write,
        output: 7,
        ..Usage::default()
    }
}

#[test]
fn break_price_is_bounded_by_the_bill() {
    use PriceBasis::{Billed, Forecast};
    let price = Price {
        input: 3.0,
        cached_input: Some(0.3),
        cache_write: Some(3.75),
        output: 15.0,
        long: None,
    };
    let model = ModelSpec {
        cache: CacheRule {
            rule: CacheKind::Anthropic,
            ..CacheRule::default()
        },
        price: Some(price),
        ..model()
    };
    let written = 3.75 - 0.3;
    let fresh = 3.0 - 0.3;
    let table = [
        // (case, forecast, bill, tokens, cost of a million tokens, basis)
        ("no bill", (0, 50_000), None, 50_000, written, Forecast),
        (
            "no counts",
            (0, 50_000),
            Some(bill(0, 0, 0)),
            50_000,
            written,
            Forecast,
        ),
        // A switch back to a model whose cache was still alive: nearly everything was read.
        (
            "all read",
            (0, 99_000),
            Some(bill(2, 98_800, 1_198)),
            200,
            written,
            Billed,
        ),
        (
            "only new input was not read",
            (0, 99_000),
            Some(bill(2, 99_000, 998)),
            0,
            written,
            Billed,
        ),
        (
            "less than the new input was not read",
            (0, 99_000),
            Some(bill(0, 99_500, 500)),
            0,
            written,
            Billed,
        ),
        // The cache lost more than the break explains, for example because it had expired.
        (
            "nothing read",
            (0, 50_000),
            Some(bill(0, 0, 100_000)),
            50_000,
            written,
            Billed,
        ),
        (
            "as foreseen",
            (0, 50_000),
            Some(bill(0, 49_000, 51_000)),
            50_000,
            written,
            Billed,
        ),
        (
            "fresh",
            (50_000, 0),
            Some(bill(51_000, 49_000, 0)),
            50_000,
            fresh,
            Billed,
        ),
        // The provider counts half as many tokens, so only 500 of them are new.
        (
            "other tokenizer",
            (0, 99_000),
            Some(bill(0, 40_000, 10_000)),
            9_500,
            written,
            Billed,
        ),
        // The bill includes a system message that the log lacks, so it says nothing about new ones.
        (
            "incomplete log",
            (0, 99_000),
            Some(bill(0, 290_000, 10_000)),
            9_000,
            written,
            Billed,
        ),
    ];
    for (case, (input, cache_write), billed, tokens, cost, basis) in table {
        let found = broken_input(input, cache_write).price(billed, &model);
        assert_eq!((found.tokens, found.basis), (tokens, basis), "{case}");
        let expected = tokens as f64 * cost / 1e6;
        assert!(
            (found.cost.unwrap() - expected).abs() < 1e-9,
            "{case}: {found:?}"
        );
    }
    let unpriced = ModelSpec {
        price: None,
        ..model
    };
    assert_eq!(broken_input(0, 9).price(None, &unpriced).cost, None);
}

proptest! {
    #[test]
    fn break_price_never_exceeds_forecast_and_bill(
        total in 0_u64..200_000, new in 0_u64..200_000, input in 0_u64..200_000, write in 0_u64..200_000,
        fresh in 0_u64..200_000, read in 0_u64..200_000, written in 0_u64..200_000,
    ) {
        let broken = BrokenInput {
            total,
            new: new.min(total),
            again: Usage { input, cache_write: write, ..Usage::default() },
        };
        let found = broken.price(Some(bill(fresh, read, written)), &model());
        // A bill can be up to twice as large as the estimate.
        prop_assert!(found.tokens <= 2 * (input + write));
        if fresh + read + written > 0 {
            prop_assert!(found.tokens <= fresh + written);
            prop_assert_eq!(found.basis, PriceBasis::Billed);
        }
    }
}

/// Segments as words: `S` is the system message, `u` a message, `u'` the same message in another
/// form, `r` a reminder. Each has 1,000 tokens and is a cache boundary.
fn outline(model: &ModelSpec, text: &str) -> Sent {
    let segment = |word: &str| {
        let layer = match &word[..1] {
            "S" => Layer::System,
            "r" => Layer::Reminders,
            _ => Layer::History,
        };
        let message = ContentHash::from_content(word.trim_end_matches('\'').as_bytes());
        SentSegment {
            layer,
            owner: "history".into(),
            message: MessageId::from_hash(message),
            hash: ContentHash::from_content(word.as_bytes()),
            tokens: 1_000,
            boundary: true,
        }
    };
    let empty = ContentHash::from_content(b"");
    Sent {
        model: model.full_name(),
        tools: empty,
        policy: empty,
        edits: None,
        segments: text.split_whitespace().map(segment).collect(),
    }
}

#[test]
fn logged_break_counts_what_was_sent_before() {
    let anthropic = |name: &str| ModelSpec {
        name: name.into(),
        cache: CacheRule {
            rule: CacheKind::Anthropic,
            min: 0,
            ttl: "5m".into(),
            ..CacheRule::default()
        },
        ..model()
    };
    let first = anthropic("first");
    let other = anthropic("other");
    let minutes = |minutes: u64| Some(Duration::from_secs(60 * minutes));
    let table = [
        // (case, last request, its model, own request, minutes since, now, tokens)
        (
            "a reminder changed",
            "S r1 a b",
            &first,
            None,
            1,
            "S r2 a b c",
            2_000,
        ),
        // Compressed text replaces what was sent before; a client that appends would not send it.
        (
            "compressed",
            "S a b c",
            &first,
            None,
            1,
            "S a' b' c d",
            3_000,
        ),
        ("expired", "S r1 a b", &first, None, 6, "S r2 a b c", 0),
        ("switched", "S a b", &other, None, 1, "S a b c", 4_000),
        (
            "switched back",
            "S a b c d",
            &other,
            Some(("S a b", 2)),
            1,
            "S a b c d e",
            2_000,
        ),
        (
            "switched back late",
            "S a b c d",
            &other,
            Some(("S a b", 6)),
            1,
            "S a b c d e",
            6_000,
        ),
    ];
    for (case, last, last_model, own, idle, now, tokens) in table {
        let now = outline(&first, now);
        let last = outline(last_model, last);
        let own = own.map(|(own, idle)| (outline(&first, own), minutes(idle)));
        let prefix = compare_logged_requests(
            LoggedInput {
                sent: &now,
                model: &first,
                tool_tokens: 1_000,
                billed: None,
            },
            EarlierRequest {
                sent: &last,
                idle: minutes(idle),
            },
            || {
                own.as_ref()
                    .map(|(sent, idle)| EarlierRequest { sent, idle: *idle })
            },
        );
        let broken = prefix.broken.unwrap_or_else(|| panic!("{case}: no break"));
        assert_eq!(broken.price.tokens, tokens, "{case}");
    }
}
