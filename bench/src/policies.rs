//! Measures the cost of each reminder placement on recorded conversations, replayed request by
//! request. Sends nothing.
//!
//! Every conversation gets a role and a todo list as reminders; the list changes every eighth
//! request. Pruning is active; nothing is archived. Tokens are classified as read, written or fresh
//! as the engine expects for a warm cache.

use std::path::PathBuf;

use anyhow::ensure;
use haft_context::{
    Cleared, Memo, Placement, Policy, Reminders, RoleText, Sent, Snapshot, SystemInput, View,
    assemble, render_system, system_entry,
};
use haft_model::O200k;
use haft_types::{CacheKind, Usage};

use crate::figures;
use crate::model;
use crate::recorded::{self, Conversation};

/// Requests between two changes of the todo list.
const TODO_CHANGE_INTERVAL: usize = 8;

/// A policy for building requests.
struct PolicyVariant {
    name: String,
    policy: Policy,
    /// False for requests without reminders.
    reminders: bool,
}

/// The totals of a policy.
#[derive(Default)]
struct Sum {
    requests: u64,
    tokens: u64,
    usage: Usage,
    cost: f64,
    breaks: u64,
    again: u64,
    pruned: u64,
    too_large: u64,
}

fn build_variants() -> Vec<PolicyVariant> {
    let places = [
        Placement::Front,
        Placement::FromEnd(5),
        Placement::BeforeAssistant(3),
        Placement::BeforeAssistant(1),
        Placement::AfterToolResult(3),
        Placement::AfterToolResult(1),
        Placement::Tail,
    ];
    let none = PolicyVariant {
        name: "no reminders".into(),
        policy: Policy::default(),
        reminders: false,
    };
    let placed = places.into_iter().map(|place| {
        let policy = Policy {
            reminders: place,
            ..Policy::default()
        };
        PolicyVariant {
            name: place.to_string(),
            policy,
            reminders: true,
        }
    });
    let execute = Policy {
        view: View::Execute,
        ..Policy::default()
    };
    let execute = PolicyVariant {
        name: "execute view".into(),
        policy: execute,
        reminders: true,
    };
    [none].into_iter().chain(placed).chain([execute]).collect()
}

fn build_reminders(request: usize) -> Reminders {
    let done = request / TODO_CHANGE_INTERVAL;
    let item = |number: usize| {
        let mark = if number < done { "[x]" } else { "[ ]" };
        format!(
            "- {mark} step {number} of the plan, described in a line of the usual length for such a thing\n"
        )
    };
    Reminders {
        role: Some(
            "You are an expert in software engineering who works carefully, step by step. "
                .repeat(20),
        ),
        todo: Some((0..done.max(12)).map(item).collect()),
        ..Reminders::default()
    }
}

/// Replays one conversation.
fn replay_conversation(
    conversation: &Conversation,
    way: &PolicyVariant,
    rule: CacheKind,
    sum: &mut Sum,
) -> anyhow::Result<()> {
    let spec = model::build_spec(rule, 200_000)?;
    let role = if conversation.prompt.trim().is_empty() {
        RoleText::BuiltIn
    } else {
        RoleText::Custom(&conversation.prompt)
    };
    let input = SystemInput {
        role,
        tools: &conversation.tools.specs,
        ..SystemInput::default()
    };
    let system = system_entry(render_system(&input)?, &O200k);
    let memo = Memo::default();
    let (mut last, mut cleared): (Option<Sent>, Option<Cleared>) = (None, None);
    for (number, end) in conversation.request_lengths().enumerate() {
        let reminders = build_reminders(number);
        let history = &conversation.history[..end];
        let plain = Snapshot::new(
            &spec,
            &way.policy,
            &system,
            &conversation.tools,
            history,
            &O200k,
        );
        let full = Snapshot {
            system_input: Some(&input),
            reminders: way.reminders.then_some(&reminders),
            cleared: cleared.as_ref(),
            last: last.as_ref(),
            memo: Some(&memo),
            ..plain
        };
        let Ok(assembly) = assemble(&full) else {
            sum.too_large += 1;
            continue;
        };
        let account = assembly.account;
        sum.requests += 1;
        sum.tokens += assembly.request.estimated_tokens();
        sum.usage += account.expected;
        sum.cost += account.expected_cost.map_or(0.0, |cost| cost.total);
        sum.pruned += account.pruned_tokens;
        if let Some(broken) = account.prefix.and_then(|prefix| prefix.broken) {
            sum.breaks += 1;
            sum.again += broken.price.tokens;
        }
        cleared = account.cleared.or(cleared);
        last = Some(account.sent);
    }
    Ok(())
}

/// Replays the conversations in the file `path`.
pub(crate) fn run_benchmark(path: Option<PathBuf>) -> anyhow::Result<()> {
    let Some(path) = path else {
        figures::print_line("skipped: set HAFT_TRAJECTORIES to a file of recorded conversations");
        return Ok(());
    };
    let ways = build_variants();
    let rules = [CacheKind::Automatic, CacheKind::Anthropic];
    let mut sums: Vec<Vec<Sum>> = rules
        .iter()
        .map(|_| ways.iter().map(|_| Sum::default()).collect())
        .collect();
    let mut conversations = 0;
    for conversation in recorded::read_conversations(&path, &O200k)? {
        let conversation = conversation?;
        conversations += 1;
        for (rule, sums) in rules.iter().zip(&mut sums) {
            for (way, sum) in ways.iter().zip(sums) {
                replay_conversation(&conversation, way, *rule, sum)?;
            }
        }
    }
    ensure!(
        conversations > 0,
        "`{}` holds no conversation",
        path.display()
    );
    figures::print_line(&format!(
        "{conversations} conversations. Prices in USD per million tokens: input 3.00, read 0.30, written 3.75. Columns: \
         tokens a request, shares of them read, written and fresh, requests that break the prefix, tokens such a break \
         makes us pay again, USD of input per 1,000 requests."
    ));
    for (rule, sums) in rules.iter().zip(&sums) {
        figures::print_line("");
        let cache = if *rule == CacheKind::Anthropic {
            "cache with markers (anthropic)"
        } else {
            "automatic cache"
        };
        figures::print_line(&format!(
            "{cache:<32} {:>8} {:>7} {:>7} {:>7} {:>7} {:>8} {:>9}",
            "tokens", "read", "written", "fresh", "breaks", "again", "USD/1000"
        ));
        for (way, sum) in ways.iter().zip(sums) {
            figures::print_line(&format_row(&way.name, sum));
        }
    }
    Ok(())
}

fn format_row(name: &str, sum: &Sum) -> String {
    let requests = sum.requests.max(1) as f64;
    let share = |tokens: u64| 100.0 * tokens as f64 / sum.tokens.max(1) as f64;
    let refused = if sum.too_large > 0 {
        format!("  ({} too large)", sum.too_large)
    } else {
        String::new()
    };
    format!(
        "{name:<32} {:>8.0} {:>6.1}% {:>6.1}% {:>6.1}% {:>6.1}% {:>8.0} {:>9.2}{refused}",
        sum.tokens as f64 / requests,
        share(sum.usage.cached_input),
        share(sum.usage.cache_write),
        share(sum.usage.input),
        100.0 * sum.breaks as f64 / requests,
        sum.again as f64 / sum.breaks.max(1) as f64,
        1_000.0 * sum.cost / requests,
    )
}
