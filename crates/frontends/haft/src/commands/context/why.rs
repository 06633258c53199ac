//! `haft context why`: lists every break of the cached prefix with its cause and price.
//!
//! [`find_breaks`] finds them in the log.

use std::fmt::Write as _;

use haft_context::PriceBasis;
use haft_inspect::{Countable, PrefixBreakReport, RequestLogReader, find_breaks, format_count};
use haft_text::{format_dollars, format_thousands};
use serde_json::{Value, json};

use super::opened_log::open_log;
use crate::commands::context::WhyArgs;
use crate::haft::Haft;
use crate::output::{self, TextTable};

pub(super) async fn run(haft: &Haft, args: &WhyArgs) -> anyhow::Result<()> {
    let log = open_log(haft, args.conversation.as_deref(), &args.output.common).await?;
    if let Some(number) = args.request.filter(|number| *number > log.requests) {
        return Err(log.unknown_request(number).into());
    }
    let outlines = log.outlines().await?;
    let messages = log.messages().await?;
    let mut breaks = find_breaks(
        &outlines,
        &log.find_models(&outlines)?,
        &messages,
        &log.reply_metadata(&outlines, &messages),
    );
    breaks.retain(|one| args.request.is_none_or(|number| number == one.request));
    if args.output.json {
        return output::print_json(&breaks_to_json(&log, &breaks));
    }
    output::print_text(&breaks_to_text(&log, &breaks))
}

fn sum_breaks(breaks: &[PrefixBreakReport]) -> (u64, Option<f64>) {
    let tokens = breaks.iter().map(|one| one.price().tokens).sum();
    // The total cost is unknown unless every break has a price.
    let cost = breaks
        .iter()
        .map(|one| one.price().cost)
        .sum::<Option<f64>>();
    // The empty sum of floating-point numbers is -0.0.
    (tokens, cost.map(|cost| cost + 0.0))
}

fn breaks_to_json(log: &RequestLogReader, breaks: &[PrefixBreakReport]) -> Value {
    let (tokens, cost) = sum_breaks(breaks);
    let one = |one: &PrefixBreakReport| {
        json!({
            "request": one.request,
            "cause": one.cause,
            "message": one.cause.map(|cause| cause.to_string()),
            "kept_segments": one.kept,
            "first": {
                "index": one.kept + 1,
                "layer": one.found.first.layer,
                "owner": one.found.first.owner,
                "message_id": one.found.first.message,
            },
            "tokens": one.price().tokens,
            "cost": one.price().cost,
            "basis": one.price().basis,
        })
    };
    json!({
        "conversation_id": log.conversation.id,
        "requests": log.requests,
        "breaks": breaks.iter().map(one).collect::<Vec<_>>(),
        "unexplained": breaks.iter().filter(|one| one.cause.is_none()).count(),
        "tokens": tokens,
        "cost": cost,
    })
}

fn breaks_to_text(log: &RequestLogReader, breaks: &[PrefixBreakReport]) -> String {
    let requests = format_count(log.requests as usize, Countable::Request);
    if breaks.is_empty() {
        return format!(
            "{}\n",
            text!(
                "context-why-none",
                requests,
                conversation = log.conversation.id
            )
        );
    }
    let mut table = TextTable::new(&[
        text!("table-request"),
        text!("table-cause"),
        text!("table-first-difference"),
        text!("table-sent-again"),
        text!("table-cost"),
    ]);
    let is_forecast = |one: &PrefixBreakReport| one.price().basis == PriceBasis::Forecast;
    for one in breaks {
        let first = &one.found.first;
        let price = one.price();
        let tokens = format_thousands(price.tokens);
        table.add_row(vec![
            one.request.to_string(),
            one.cause_text(),
            text!(
                "context-why-place",
                at = one.kept + 1,
                owner = output::localize_text(&first.owner),
                message = first.message.short_id()
            ),
            if is_forecast(one) {
                text!("context-why-forecast-tokens", tokens)
            } else {
                text!("context-why-tokens", tokens)
            },
            price.cost.map_or_else(|| "-".to_owned(), format_dollars),
        ]);
    }
    let (tokens, cost) = sum_breaks(breaks);
    let cost = cost.map_or_else(String::new, |cost| {
        text!("context-why-cost", cost = format_dollars(cost))
    });
    let breaks_counted = format_count(breaks.len(), Countable::Break);
    let sum = text!(
        "context-why-sum",
        breaks = breaks_counted,
        requests,
        tokens = format_thousands(tokens),
        cost
    );
    let mut text = format!("{table}\n{sum}\n");
    if breaks.iter().any(is_forecast) {
        text.extend([text!("context-why-forecast"), "\n"]);
    }
    let unexplained: Vec<_> = breaks
        .iter()
        .filter(|one| one.cause.is_none())
        .map(|one| one.request.to_string())
        .collect();
    if !unexplained.is_empty() {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{}",
            text!(
                "context-why-unexplained",
                number = output::join_names(&unexplained)
            )
        );
    }
    text
}
