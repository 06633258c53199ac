use haft_types::{CacheKind, CacheRule, LongPrice, Price};

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
