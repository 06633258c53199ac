//! Tests of totals, limits and factors, without a model.

use super::*;

fn meter(limits: TurnLimits) -> (Meter, SharedBudget) {
    let budget = SharedBudget::default();
    (
        Meter::new(limits, budget.clone(), TokenizerFactors::default()),
        budget,
    )
}

fn price() -> Price {
    Price {
        input: 1.0,
        cached_input: None,
        cache_write: None,
        output: 10.0,
        long: None,
    }
}

fn tokens(input: u64, output: u64) -> Usage {
    Usage {
        input,
        output,
        ..Usage::default()
    }
}

#[test]
fn settle_adds_to_the_totals_and_the_shared_budget() {
    let (mut meter, budget) = meter(TurnLimits::default());
    meter.begin_turn(Some(price()));
    meter.record_request(
        None,
        ("p/m", Some(price())),
        1_000_000,
        tokens(1_000_000, 100_000),
    );
    let cost = meter.take_unreported_cost().unwrap();
    assert!((cost.total - 2.0).abs() < 1e-9, "{cost:?}");
    assert_eq!(
        (meter.usage().total(), budget.tokens(), meter.spent().tokens),
        (1_100_000, 1_100_000, 1_100_000)
    );
    // The next turn: the totals start at zero, the budget does not.
    meter.begin_turn(Some(price()));
    assert_eq!((meter.usage().total(), budget.tokens()), (0, 1_100_000));
    assert!((meter.spent().usd - 2.0).abs() < 1e-9);
}

#[test]
fn add_relayed_leaves_the_shared_budget_unchanged() {
    let (mut meter, budget) = meter(TurnLimits::default());
    meter.begin_turn(Some(price()));
    meter.add_relayed_usage(
        tokens(10, 5),
        vec![Some(price().request_cost(tokens(10, 5)))],
    );
    assert_eq!((meter.usage().total(), budget.tokens()), (15, 0));
    assert!(meter.cost().is_some_and(|cost| cost.total > 0.0));
    meter.add_relayed_usage(tokens(1, 1), vec![None]);
    let cost = meter.cost().unwrap();
    assert!(
        cost.total > 0.0 && cost.incomplete,
        "what is known is summed, and said to be incomplete: {cost:?}"
    );
}

#[test]
fn turns_left_and_limits_count_down() {
    let limits = TurnLimits {
        turns: Some(3),
        wall_time: Some(Duration::from_hours(1)),
        ..TurnLimits::default()
    };
    let (meter, _) = meter(limits);
    assert_eq!(
        [0, 2, 3, 9].map(|replies| meter.turns_left(replies)),
        [Some(3), Some(1), Some(1), Some(1)]
    );
    assert!(
        meter
            .time_left()
            .is_some_and(|left| left > Duration::from_mins(50))
    );
    assert!(
        meter.describe_limits(2).starts_with("2 of 3 replies"),
        "{}",
        meter.describe_limits(2)
    );
}

#[test]
fn take_saved_returns_saved_tokens_once() {
    let (mut meter, _) = meter(TurnLimits::default());
    meter.add_saved_tokens(3);
    meter.add_saved_tokens(4);
    assert_eq!(
        (meter.take_saved_tokens(), meter.take_saved_tokens()),
        (7, 0)
    );
}

#[test]
fn learn_factor_keeps_a_factor_only_if_it_moves_a_step() {
    let (mut meter, _) = meter(TurnLimits::default());
    assert_eq!(meter.tokenizer_factor("p/m"), None);
    let kept = meter
        .learn_tokenizer_factor("p/m", 1.0, 10_000, tokens(14_000, 0))
        .cloned();
    assert!(kept.is_some_and(|factors| factors.0.contains_key("p/m")));
    assert_eq!(meter.tokenizer_factor("p/m"), Some(1.12));
    assert_eq!(
        meter.learn_tokenizer_factor("p/m", 1.0, 10_000, tokens(11_200, 0)),
        None,
        "it is what it was"
    );
    assert_eq!(
        meter.learn_tokenizer_factor("p/m", 1.0, 10, tokens(14, 0)),
        None,
        "too short to teach anything"
    );
}

#[test]
fn corrected_converges_within_five_replies() {
    let mut factor = 1.0;
    for _ in 0..5 {
        factor = updated_factor(factor, 10_000, 14_000).unwrap();
    }
    assert!((factor - 1.4).abs() < 0.07, "{factor}");
}

#[test]
fn corrected_ignores_small_missing_and_extreme_counts() {
    for (counted, billed) in [
        (500, 700),
        (10_000, 0),
        (10_000, 1_000_000),
        (10_000, 4_000),
    ] {
        assert_eq!(
            updated_factor(1.2, counted, billed),
            None,
            "{counted} {billed}"
        );
    }
}

#[test]
fn in_steps_rounds_factors() {
    assert!((round_factor(1.254_9) - 1.25).abs() < 1e-12);
}
