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
fn what_is_spent_is_in_the_totals_and_in_the_shared_budget() {
    let (mut meter, budget) = meter(TurnLimits::default());
    meter.begin(Some(price()));
    meter.settle(
        None,
        ("p/m", Some(price())),
        1_000_000,
        tokens(1_000_000, 100_000),
    );
    let cost = meter.take_cost().unwrap();
    assert!((cost.total - 2.0).abs() < 1e-9, "{cost:?}");
    assert_eq!(
        (meter.usage().total(), budget.tokens(), meter.spent().tokens),
        (1_100_000, 1_100_000, 1_100_000)
    );
    // The next turn: the totals start at zero, the budget does not.
    meter.begin(Some(price()));
    assert_eq!((meter.usage().total(), budget.tokens()), (0, 1_100_000));
    assert!((meter.spent().usd - 2.0).abs() < 1e-9);
}

#[test]
fn what_sub_agents_spent_is_not_spent_again() {
    let (mut meter, budget) = meter(TurnLimits::default());
    meter.begin(Some(price()));
    meter.add_relayed(tokens(10, 5), vec![Some(price().cost(tokens(10, 5)))]);
    assert_eq!((meter.usage().total(), budget.tokens()), (15, 0));
    assert!(meter.cost().is_some_and(|cost| cost.total > 0.0));
    meter.add_relayed(tokens(1, 1), vec![None]);
    let cost = meter.cost().unwrap();
    assert!(
        cost.total > 0.0 && cost.incomplete,
        "what is known is summed, and said to be incomplete: {cost:?}"
    );
}

#[test]
fn what_is_left_of_limits() {
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
        meter.used_of_limits(2).starts_with("2 of 3 replies"),
        "{}",
        meter.used_of_limits(2)
    );
}

#[test]
fn saved_tokens_are_told_once() {
    let (mut meter, _) = meter(TurnLimits::default());
    meter.note_saved(3);
    meter.note_saved(4);
    assert_eq!((meter.take_saved(), meter.take_saved()), (7, 0));
}

#[test]
fn a_factor_is_kept_only_when_it_moves_a_step() {
    let (mut meter, _) = meter(TurnLimits::default());
    assert_eq!(meter.factor("p/m"), None);
    let kept = meter
        .learn_factor("p/m", 1.0, 10_000, tokens(14_000, 0))
        .cloned();
    assert!(kept.is_some_and(|factors| factors.0.contains_key("p/m")));
    assert_eq!(meter.factor("p/m"), Some(1.12));
    assert_eq!(
        meter.learn_factor("p/m", 1.0, 10_000, tokens(11_200, 0)),
        None,
        "it is what it was"
    );
    assert_eq!(
        meter.learn_factor("p/m", 1.0, 10, tokens(14, 0)),
        None,
        "too short to teach anything"
    );
}

#[test]
fn the_factor_comes_close_within_five_replies() {
    let mut factor = 1.0;
    for _ in 0..5 {
        factor = corrected(factor, 10_000, 14_000).unwrap();
    }
    assert!((factor - 1.4).abs() < 0.07, "{factor}");
}

#[test]
fn what_is_not_the_tokenizers_doing_teaches_nothing() {
    for (counted, billed) in [
        (500, 700),
        (10_000, 0),
        (10_000, 1_000_000),
        (10_000, 4_000),
    ] {
        assert_eq!(corrected(1.2, counted, billed), None, "{counted} {billed}");
    }
}

#[test]
fn factors_move_in_steps() {
    assert!((in_steps(1.254_9) - 1.25).abs() < 1e-12);
}
