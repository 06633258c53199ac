//! Measures rules for the time between two requests on the timed recordings: keep-alive requests and
//! lifetimes of cache entries. Sends nothing to a provider.
//!
//! The recorded gaps in `haft-context` are those of every second conversation, beginning with the
//! first. The figures of the other half are the ones that count.

use std::path::PathBuf;
use std::time::Duration;

use haft_context::{GapKind, IdleLimits, IdleMode, LifetimeOffer, Policy};
use haft_lab::{IdleRule, TimedPrices, TimedRequest, oracle_idle_cost, price_idle_rule};
use haft_model::O200k;
use haft_types::{Price, Role};

use crate::figures;
use crate::recorded::{self, Conversation};

/// The factor of the lowest possible cost that a rule should not exceed.
const GOAL: f64 = 1.10;

/// Prints the cost of each rule for each set of prices, relative to the lowest possible cost.
pub(crate) fn run_benchmark(path: Option<PathBuf>) -> anyhow::Result<()> {
    let Some(path) = path else {
        figures::print_line("skipped: set HAFT_TRAJECTORIES to a file of recorded conversations");
        return Ok(());
    };
    let mut halves = [Vec::new(), Vec::new()];
    let mut count = 0;
    for conversation in recorded::read_conversations(&path, &O200k)? {
        let requests = timed_requests(&conversation?);
        if !requests.is_empty() {
            halves[count % 2].push(requests);
            count += 1;
        }
    }
    let limits = Policy::default().idle_limits();
    for (name, half) in ["fitted", "reported"].into_iter().zip(&halves) {
        print_table(name, half, limits);
    }
    Ok(())
}

/// Returns the requests of a conversation with times and the provider's counts. A gap lasts from a
/// reply to the newest message before the next one.
fn timed_requests(conversation: &Conversation) -> Vec<TimedRequest> {
    let mut requests = Vec::new();
    let mut replied: Option<Duration> = None;
    for billed in &conversation.billed {
        let Some(at) = conversation.message_time(billed.at) else {
            continue;
        };
        let tokens = billed.prompt_tokens();
        if tokens == 0 {
            continue;
        }
        let newest = billed.at.saturating_sub(1);
        let sent = conversation.message_time(newest).unwrap_or(at);
        let index = conversation.history_index(newest);
        let answers_call = conversation
            .history
            .get(index)
            .is_some_and(|entry| entry.message.role == Role::Tool);
        let kind = if answers_call {
            GapKind::Call
        } else {
            GapKind::User
        };
        let gap = replied.map(|replied| (sent.saturating_sub(replied), kind));
        requests.push(TimedRequest { gap, tokens });
        replied = Some(at);
    }
    requests
}

/// Returns the prices of models of the catalog whose caches have different rules.
fn price_tables() -> [TimedPrices; 5] {
    let offer = |minutes, write| LifetimeOffer {
        lifetime: Duration::from_mins(minutes),
        write,
    };
    let prices = |name, input, read, write, output, offers| TimedPrices {
        name,
        price: Price {
            input,
            cached_input: Some(read),
            cache_write: write,
            output,
            long: None,
        },
        offers,
    };
    let hour = |write, longer| vec![offer(5, write), offer(60, longer)];
    [
        prices(
            "claude-sonnet-5-5",
            2.0,
            0.2,
            Some(2.5),
            10.0,
            hour(2.5, 4.0),
        ),
        prices("claude-opus-5-5", 4.0, 0.2, Some(5.0), 20.0, hour(5.0, 8.0)),
        prices(
            "claude-fable-5-1",
            10.0,
            0.25,
            Some(12.5),
            50.0,
            hour(12.5, 20.0),
        ),
        prices("gpt-6-sol", 2.0, 0.2, Some(2.5), 10.0, vec![offer(30, 2.5)]),
        prices("gpt-5.1", 1.25, 0.125, None, 10.0, vec![offer(5, 1.25)]),
    ]
}

fn print_table(name: &str, conversations: &[Vec<TimedRequest>], limits: IdleLimits) {
    let requests: usize = conversations.iter().map(Vec::len).sum();
    figures::print_line(&format!(
        "\n{name} half: {} conversations, {requests} requests\n",
        conversations.len()
    ));
    figures::print_line(
        "| rule | claude-sonnet-5-5 | claude-opus-5-5 | claude-fable-5-1 | gpt-6-sol | gpt-5.1 |",
    );
    figures::print_line("| --- | --: | --: | --: | --: | --: |");
    let tables = price_tables();
    let oracle = tables
        .each_ref()
        .map(|prices| oracle_idle_cost(conversations, prices));
    let cells = oracle.map(|cost| format!("${cost:.2}"));
    figures::print_line(&format!("| all gaps known | {} |", cells.join(" | ")));
    let rules = [
        (
            "let it expire, shortest lifetime",
            IdleRule::Expire { offer: 0 },
        ),
        (
            "let it expire, longest lifetime",
            IdleRule::Expire { offer: 1 },
        ),
        ("1 keep-alive in every gap", IdleRule::Always { pings: 1 }),
        ("6 keep-alives in every gap", IdleRule::Always { pings: 6 }),
        (
            "12 keep-alives in every gap",
            IdleRule::Always { pings: 12 },
        ),
        ("`idle = \"auto\"`", IdleRule::Decide(IdleMode::Auto)),
        ("`idle = \"ping\"`", IdleRule::Decide(IdleMode::Ping)),
    ];
    for (name, rule) in rules {
        let cells: Vec<_> = tables
            .iter()
            .zip(oracle)
            .map(|(prices, best)| {
                let rule = match rule {
                    IdleRule::Expire { offer } => IdleRule::Expire {
                        offer: offer.min(prices.offers.len() - 1),
                    },
                    other => other,
                };
                let outcome = price_idle_rule(rule, conversations, prices, limits);
                let factor = outcome.cost / best;
                let missed = if factor > GOAL { " ✗" } else { "" };
                format!(
                    "{factor:.3}{missed}, {} sent, {} rebuilt",
                    outcome.pings, outcome.rebuilds
                )
            })
            .collect();
        figures::print_line(&format!("| {name} | {} |", cells.join(" | ")));
    }
}
