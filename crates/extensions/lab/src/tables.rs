//! Formats the outcomes of policies: table cells for users, JSON for programs, and an HTML page.

use haft_text::{escape_markup, format_thousands};
use haft_types::{ModelSpec, Usage};
use serde_json::{Value, json};

use crate::assumption::{ModelSource, format_model_line};
use crate::outcome::PolicyOutcome;
use crate::plot::{Wording, draw_plot};

/// The column headings for the rows of [`format_outcome_rows`].
pub const OUTCOME_HEADINGS: [&str; 16] = [
    "POLICY",
    "REQUESTS",
    "TOKENS",
    "READ",
    "WRITTEN",
    "FRESH",
    "COST",
    "AGAINST FIRST",
    "RE-READS",
    "PEAK",
    "BREAKS",
    "ARCHIVES",
    "REGRET",
    "BLIND",
    "UNSEEN",
    "MUST-KEEP",
];

/// Formats the table cells of one policy. Its cost is compared with `first`, the cost of the first
/// policy.
fn format_cells(outcome: &PolicyOutcome, first: Option<f64>) -> Vec<String> {
    let usage = outcome.total_usage();
    let all = usage.all_input().max(1) as f64;
    let share = |tokens: u64| format_percent(tokens as f64 / all);
    let unknown = || "–".to_owned();
    let times = outcome
        .total_cost()
        .zip(first)
        .filter(|(_, first)| *first > 0.0);
    let kept = outcome.kept;
    let too_large = match outcome.too_large {
        0 => String::new(),
        many => format!(" (+{many} too large)"),
    };
    vec![
        outcome.name.clone(),
        format!("{}{too_large}", outcome.requests.len()),
        format_thousands(usage.all_input()),
        share(usage.cached_input),
        share(usage.cache_write),
        share(usage.input),
        outcome.total_cost().map_or_else(unknown, format_money),
        times.map_or_else(unknown, |(cost, first)| format!("{:.2}", cost / first)),
        outcome
            .cost_with_rereads()
            .map_or_else(unknown, format_money),
        format_thousands(outcome.peak_tokens()),
        outcome
            .breaks
            .map_or_else(unknown, |breaks| breaks.to_string()),
        outcome.archives.to_string(),
        outcome.regret.to_string(),
        match outcome.edits {
            0 => unknown(),
            edits => format!("{} of {edits}", outcome.blind_edits),
        },
        outcome.unseen_results.to_string(),
        if kept.all == 0 {
            unknown()
        } else {
            format!("{} of {}", kept.kept, kept.all)
        },
    ]
}

/// Describes the simulated cache and the prices in one line.
pub fn format_pricing_line(model: &ModelSpec) -> String {
    let cache = serde_json::to_value(model.cache.rule).ok();
    let cache = cache.as_ref().and_then(Value::as_str).unwrap_or_default();
    let price = model.price.map_or_else(
        || "no prices known; `--prices READ/WRITE` sets some".to_owned(),
        |price| {
            let read = price.cached_input.unwrap_or(price.input);
            let write = price.cache_write.unwrap_or(price.input);
            format!(
                "input ${}, read ${read}, written ${write} per million tokens",
                price.input
            )
        },
    );
    format!("cache {cache} ({}), {price}", model.cache.ttl)
}

/// Formats one row of cells for each policy, under [`OUTCOME_HEADINGS`]. Costs are compared with
/// that of the first policy.
pub fn format_outcome_rows(outcomes: &[PolicyOutcome]) -> Vec<Vec<String>> {
    let first = outcomes.first().and_then(PolicyOutcome::total_cost);
    outcomes
        .iter()
        .map(|outcome| format_cells(outcome, first))
        .collect()
}

/// Returns all figures of the outcomes as JSON.
pub fn outcomes_to_json(
    title: &str,
    conversations: usize,
    outcomes: &[PolicyOutcome],
    model: &ModelSpec,
    source: ModelSource,
) -> Value {
    let usage = |usage: Usage| json!({"input": usage.input, "cached_input": usage.cached_input, "cache_write": usage.cache_write});
    let one = |outcome: &PolicyOutcome| {
        let requests = outcome
            .requests
            .iter()
            .map(|one| json!({"usage": usage(one.usage), "cost": one.cost}));
        json!({
            "policy": outcome.name,
            "requests": outcome.requests.len(),
            "too_large": outcome.too_large,
            "tokens": outcome.total_usage().all_input(),
            "usage": usage(outcome.total_usage()),
            "cost": outcome.total_cost(),
            "peak": outcome.peak_tokens(),
            "breaks": outcome.breaks,
            "archives": outcome.archives,
            "cost_with_rereads": outcome.cost_with_rereads(),
            "regret": outcome.regret,
            "edits": outcome.edits,
            "blind_edits": outcome.blind_edits,
            "unseen_results": outcome.unseen_results,
            "must_keep": {"kept": outcome.kept.kept, "all": outcome.kept.all},
            "same_bytes": outcome.same_bytes,
            "each": requests.collect::<Vec<_>>(),
        })
    };
    json!({
        "name": title,
        "conversations": conversations,
        "model": model.full_name(),
        "model_source": source.name(),
        "context_window": model.context_window,
        "tokenizer_factor": model.tokenizer_factor,
        "cache": model.cache,
        "price": model.price,
        "policies": outcomes.iter().map(one).collect::<Vec<_>>(),
    })
}

/// Renders an HTML page with the table and the plot, without external references.
pub fn render_outcome_page(
    title: &str,
    outcomes: &[PolicyOutcome],
    model: &ModelSpec,
    source: ModelSource,
    words: Wording<'_>,
) -> String {
    const STYLE: &str = "\
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1080px; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto }
th, td { padding: .25rem .5rem; text-align: right; border-bottom: 1px solid #8884; white-space: nowrap }
th:first-child, td:first-child { text-align: left }
svg { max-width: 100%; height: auto; margin-top: 1.5rem }";
    let row = |tag: &str, cells: &[String]| {
        let cells: Vec<_> = cells
            .iter()
            .map(|cell| format!("<{tag}>{}</{tag}>", escape_markup(cell)))
            .collect();
        format!("<tr>{}</tr>\n", cells.concat())
    };
    let picture = draw_plot(title, outcomes, words);
    let head = row(
        "th",
        &OUTCOME_HEADINGS.map(|heading| words(heading).to_lowercase()),
    );
    let rows: String = format_outcome_rows(outcomes)
        .iter()
        .map(|cells| row("td", cells))
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{name}: {replay}</title>\n<style>{STYLE}</style>\n<h1>{name}</h1>\n<p>{about}</p>\n\
         <table>\n{head}{rows}</table>\n{picture}</html>\n",
        name = escape_markup(title),
        replay = escape_markup(&words("what-if replay")),
        about = escape_markup(&format!(
            "{}; {}",
            words(&format_model_line(model, source)),
            words(&format_pricing_line(model))
        )),
    )
}

/// Formats a share between 0 and 1 as a percentage.
pub(crate) fn format_percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Formats an amount of money, with four decimals below one dollar.
pub(crate) fn format_money(usd: f64) -> String {
    if usd.abs() < 1.0 {
        format!("${usd:.4}")
    } else {
        format!("${usd:.2}")
    }
}
