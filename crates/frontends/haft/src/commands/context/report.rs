//! `haft context report`: shows how many tokens of a request each layer takes.

use std::fmt::Write as _;

use haft_context::{Budget, Policy};
use haft_inspect::{
    PictureOptions, RequestColumn, RequestLogReader, declare_unknown_model, draw_picture,
    find_breaks, rebuild_request,
};
use haft_text::{format_percent, format_thousands};
use haft_types::{LlmMetadata, ModelSpec, Request};
use serde_json::{Value, json};

use super::next;
use super::opened_log::open_log;
use crate::commands::config::effective::reduction_reason;
use crate::commands::context::ReportArgs;
use crate::commands::models::{profile_reason_name, profile_text};
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::output;

/// A request with its token budget and the metadata of its reply.
struct BudgetReport {
    title: String,
    number: Option<u64>,
    model: ModelSpec,
    budget: Budget,
    /// The settings for requests to this model.
    policy: Policy,
    reply: Option<LlmMetadata>,
}

pub(super) async fn run(haft: &Haft, args: &ReportArgs) -> anyhow::Result<()> {
    let look = &args.look;
    if next::is_next_requested(look, args.next)? {
        let next = next::build_next_request(haft, look).await?;
        let model = next.encoding.spec;
        let budget = next.assembly.account.budget;
        let policy = next.policy;
        let title = haft_inspect::next_request_title().to_owned();
        return print_report(
            &BudgetReport {
                title,
                number: None,
                model,
                budget,
                policy,
                reply: None,
            },
            None,
            args,
        );
    }
    let log = open_log(haft, look.conversation.as_deref(), &look.common).await?;
    let logged = log.request(look.request).await?;
    let number = logged.summary.number;
    let model = match log.find_model(logged.encoding.as_deref(), &logged.summary.model) {
        Ok(model) => model,
        Err(_) if log.imported.is_some() => {
            declare_unknown_model(
                haft.environment(),
                &logged.summary.model,
                logged.summary.api,
            )?
            .spec
        }
        Err(error) => return Err(error.into()),
    };
    let request: Request = rebuild_request(&logged, model.tool_protocol);
    let reserve = model.output_reserve(log.config.context.output_reserve);
    let budget = Budget::for_request(&request, &model, u64::from(reserve));
    let outlines = log.outlines().await?;
    let messages = log.messages().await?;
    let replies = log.reply_metadata(&outlines, &messages);
    let reply = outlines
        .iter()
        .zip(&replies)
        .find(|(outline, _)| outline.summary.number == number);
    let reply = reply.and_then(|(_, reply)| *reply).cloned();
    let title = text!(
        "context-request-of",
        number,
        requests = log.requests,
        conversation = log.conversation.id
    );
    if let Some(path) = &args.svg {
        let models = log.find_models(&outlines)?;
        let columns = RequestColumn::from_log(
            &outlines,
            &replies,
            &models,
            &find_breaks(&outlines, &models, &messages, &replies),
        );
        std::fs::write(
            path,
            draw_picture(&log.conversation.name, &columns, &PictureOptions::default()),
        )
        .map_err(|error| {
            usage_error(text!(
                "context-picture-unwritable",
                path = path.display(),
                error
            ))
        })?;
        output::print_to_stderr(&format!(
            "haft: {}",
            text!(
                "context-picture-written",
                count = columns.len(),
                path = path.display()
            )
        ));
    }
    let policy = log.config.context.clone();
    print_report(
        &BudgetReport {
            title,
            number: Some(number),
            model,
            budget,
            policy,
            reply,
        },
        Some(&log),
        args,
    )
}

fn print_report(
    report: &BudgetReport,
    log: Option<&RequestLogReader>,
    args: &ReportArgs,
) -> anyhow::Result<()> {
    if args.json {
        output::print_json(&report_to_json(report, log))
    } else {
        output::print_text(&report_to_text(report))
    }
}

fn report_to_json(report: &BudgetReport, log: Option<&RequestLogReader>) -> Value {
    let budget = &report.budget;
    let usage = report.reply.as_ref().map(LlmMetadata::usage);
    json!({
        "conversation_id": log.map(|log| &log.conversation.id),
        "request": report.number,
        "model": report.model.full_name(),
        "api": report.model.api,
        "profile": report.model.profile,
        "profile_reason": profile_reason_name(&report.model),
        "layers": budget.layers,
        "tokens": budget.used_tokens(),
        "output_reserve": budget.output_reserve,
        "remaining": budget.remaining,
        "window": budget.window,
        "settings": settings_to_json(report),
        "usage": usage,
        "cached_share": usage.map(|usage| usage.cached_share()),
        "cost": usage.and_then(|usage| Some(report.model.price?.request_cost(usage))),
    })
}

/// Returns the settings for reducing old results that are in force for the model, with the reason
/// for their values.
fn settings_to_json(report: &BudgetReport) -> Value {
    let (reduction, _) = report.policy.reduction_and_reason(&report.model);
    json!({
        "safe_zone": reduction.safe_zone,
        "safe_zone_tokens": report.policy.safe_zone_tokens(&report.model).ok(),
        "prune_to": reduction.prune_to,
        "prune_keep": reduction.prune_keep,
        "compress": reduction.compress,
        "reason": reduction_reason(&report.policy, &report.model),
    })
}

/// Formats the settings for reducing old results as one line, or returns `None` if the safe zone
/// does not fit the model.
fn settings_line(report: &BudgetReport) -> Option<String> {
    let (reduction, _) = report.policy.reduction_and_reason(&report.model);
    let tokens = report.policy.safe_zone_tokens(&report.model).ok()?;
    Some(text!(
        "context-report-settings",
        tokens = format_thousands(tokens),
        zone = reduction.safe_zone,
        to = format_percent(reduction.prune_to),
        keep = reduction.prune_keep,
        compress = reduction.compress.name(),
        reason = reduction_reason(&report.policy, &report.model)
    ))
}

fn report_to_text(report: &BudgetReport) -> String {
    let budget = &report.budget;
    let title = &report.title;
    let model = report.model.full_name();
    let api = report.model.api;
    let heading = text!("context-report-heading", title, model, api);
    let mut text = format!("{heading}\n{}\n\n", profile_text(&report.model));
    let share = |tokens: u64| tokens as f64 / budget.window.max(1) as f64;
    let layers = budget
        .layers
        .iter()
        .map(|layer| (output::localize_text(layer.layer), layer.tokens));
    for (name, tokens) in layers.chain([(
        text!("context-report-reserve").to_owned(),
        budget.output_reserve,
    )]) {
        write_layer_line(&mut text, &name, &format_thousands(tokens), share(tokens));
    }
    // A shortage is printed as a negative number, without a bar.
    let remaining = budget.remaining.unsigned_abs();
    if budget.remaining < 0 {
        write_layer_line(
            &mut text,
            text!("context-report-remaining"),
            &format!("-{}", format_thousands(remaining)),
            0.0,
        );
    } else {
        write_layer_line(
            &mut text,
            text!("context-report-remaining"),
            &format_thousands(remaining),
            share(remaining),
        );
    }
    write_layer_line(
        &mut text,
        text!("context-report-window"),
        &format_thousands(budget.window),
        1.0,
    );
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "\n{}",
        text!(
            "context-report-estimate",
            used = format_thousands(budget.used_tokens())
        )
    );
    match &report.reply {
        Some(reply) => text.push_str(&reply_text(reply, &report.model)),
        None if report.number.is_some() => text.extend([text!("context-report-no-reply"), "\n"]),
        None => text.extend([text!("context-report-end"), "\n"]),
    }
    text.extend(settings_line(report).map(|line| format!("{line}\n")));
    text
}

/// Formats the provider's token counts for a reply by class, with the cost.
fn reply_text(reply: &LlmMetadata, model: &ModelSpec) -> String {
    let usage = reply.usage();
    let cost = output::cost_suffix(model.price.map(|price| price.request_cost(usage).total));
    format!(
        "{}\n",
        text!(
            "context-report-reply",
            all_input = format_thousands(usage.all_input()),
            cached_input = format_thousands(usage.cached_input),
            cached_share = format_percent(usage.cached_share()),
            cache_write = format_thousands(usage.cache_write),
            input = format_thousands(usage.input),
            output = format_thousands(usage.output),
            cost
        )
    )
}

fn write_layer_line(text: &mut String, name: &str, tokens: &str, share: f64) {
    let blanks = " ".repeat(15_usize.saturating_sub(haft_text::display_width(name)));
    let _ = writeln!(
        text,
        "{}",
        format!(
            "{name}{blanks}{tokens:>11} {:>8}  {}",
            format_percent(share),
            draw_bar(share)
        )
        .trim_end()
    );
}

/// Draws a bar of up to 40 cells, in eighths of a cell. Any share above zero is visible.
fn draw_bar(share: f64) -> String {
    const CELLS: f64 = 40.0;
    const PARTS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
    let eighths = (share.clamp(0.0, 1.0) * CELLS * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let mut bar: String = std::iter::repeat_n('█', eighths / 8).collect();
    if eighths % 8 > 0 {
        bar.push(PARTS[eighths % 8 - 1]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draw_bar_shows_small_and_large_shares() {
        assert_eq!(
            (draw_bar(0.0).as_str(), draw_bar(0.000_01).as_str()),
            ("", "▏")
        );
        assert_eq!(draw_bar(0.5).chars().count(), 20);
        assert_eq!(
            (draw_bar(1.0).chars().count(), draw_bar(7.0).chars().count()),
            (40, 40)
        );
    }
}
