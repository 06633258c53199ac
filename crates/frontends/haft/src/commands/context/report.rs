//! `haft context report`: shows how many tokens of a request each layer takes.

use std::fmt::Write as _;

use haft_context::{Budget, Policy};
use haft_text::{grouped, percent};
use haft_types::{LlmMetadata, ModelSpec, Request};
use serde_json::{Value, json};

use super::logged::{RequestLogReader, rebuild};
use super::next;
use super::picture::{self, RequestColumn};
use super::text::and_cost;
use super::why::breaks;
use crate::commands::config::effective::reduction_reason;
use crate::commands::context::ReportArgs;
use crate::commands::models::{profile_reason, profile_text};
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
    if next::is_meant(look, args.next)? {
        let next = next::next(haft, look).await?;
        let model = next.encoding.spec;
        let budget = next.assembly.account.budget;
        let policy = next.policy;
        let title = text!("context-next-request").to_owned();
        return print(
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
    let log = RequestLogReader::open(haft, look.conversation.as_deref(), &look.common).await?;
    let logged = log.request(look.request).await?;
    let number = logged.summary.number;
    let model = match log.spec(logged.encoding.as_deref(), &logged.summary.model) {
        Ok(model) => model,
        Err(_) if log.imported.is_some() => {
            next::undeclared(
                haft.environment(),
                &logged.summary.model,
                logged.summary.api,
            )?
            .spec
        }
        Err(error) => return Err(error),
    };
    let request: Request = rebuild(&logged, model.tool_protocol);
    let reserve = model.output_reserve(log.settings.config.context.output_reserve);
    let budget = Budget::of(&request, &model, u64::from(reserve));
    let outlines = log.outlines().await?;
    let messages = log.messages().await?;
    let replies = log.replies(&outlines, &messages);
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
        let models = log.models(&outlines)?;
        let columns = RequestColumn::of(
            &outlines,
            &replies,
            &models,
            &breaks(&outlines, &models, &messages),
        );
        std::fs::write(
            path,
            picture::draw(
                &log.conversation.name,
                &columns,
                &picture::PictureFrame::default(),
            ),
        )
        .map_err(|error| {
            usage_error(text!(
                "context-picture-unwritable",
                path = path.display(),
                error
            ))
        })?;
        output::tell(&format!(
            "haft: {}",
            text!(
                "context-picture-written",
                count = columns.len(),
                path = path.display()
            )
        ));
    }
    let policy = log.settings.config.context.clone();
    print(
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

fn print(
    report: &BudgetReport,
    log: Option<&RequestLogReader>,
    args: &ReportArgs,
) -> anyhow::Result<()> {
    if args.json {
        output::print_json(&as_json(report, log))
    } else {
        output::print(&as_text(report))
    }
}

fn as_json(report: &BudgetReport, log: Option<&RequestLogReader>) -> Value {
    let budget = &report.budget;
    let usage = report.reply.as_ref().map(LlmMetadata::usage);
    json!({
        "conversation_id": log.map(|log| &log.conversation.id),
        "request": report.number,
        "model": report.model.full_name(),
        "api": report.model.api,
        "profile": report.model.profile,
        "profile_reason": profile_reason(&report.model),
        "layers": budget.layers,
        "tokens": budget.used(),
        "output_reserve": budget.output_reserve,
        "remaining": budget.remaining,
        "window": budget.window,
        "settings": settings_json(report),
        "usage": usage,
        "cached_share": usage.map(|usage| usage.cached_share()),
        "cost": usage.and_then(|usage| Some(report.model.price?.cost(usage))),
    })
}

/// Returns the settings about old results in force for the model, with the reason.
fn settings_json(report: &BudgetReport) -> Value {
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

/// Formats the settings about old results as one line, or returns `None` if the safe zone does not
/// fit the model.
fn settings_line(report: &BudgetReport) -> Option<String> {
    let (reduction, _) = report.policy.reduction_and_reason(&report.model);
    let tokens = report.policy.safe_zone_tokens(&report.model).ok()?;
    Some(text!(
        "context-report-settings",
        tokens = grouped(tokens),
        zone = reduction.safe_zone,
        to = percent(reduction.prune_to),
        keep = reduction.prune_keep,
        compress = reduction.compress.name(),
        reason = reduction_reason(&report.policy, &report.model)
    ))
}

fn as_text(report: &BudgetReport) -> String {
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
        .map(|layer| (output::localised(layer.layer), layer.tokens));
    for (name, tokens) in layers.chain([(
        text!("context-report-reserve").to_owned(),
        budget.output_reserve,
    )]) {
        line(&mut text, &name, &grouped(tokens), share(tokens));
    }
    // A shortage is printed as a negative number, without a bar.
    let remaining = budget.remaining.unsigned_abs();
    if budget.remaining < 0 {
        line(
            &mut text,
            text!("context-report-remaining"),
            &format!("-{}", grouped(remaining)),
            0.0,
        );
    } else {
        line(
            &mut text,
            text!("context-report-remaining"),
            &grouped(remaining),
            share(remaining),
        );
    }
    line(
        &mut text,
        text!("context-report-window"),
        &grouped(budget.window),
        1.0,
    );
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "\n{}",
        text!("context-report-estimate", used = grouped(budget.used()))
    );
    match &report.reply {
        Some(reply) => text.push_str(&told(reply, &report.model)),
        None if report.number.is_some() => text.extend([text!("context-report-no-reply"), "\n"]),
        None => text.extend([text!("context-report-end"), "\n"]),
    }
    text.extend(settings_line(report).map(|line| format!("{line}\n")));
    text
}

/// Formats the provider's token counts by class.
fn told(reply: &LlmMetadata, model: &ModelSpec) -> String {
    let usage = reply.usage();
    let cost = and_cost(model.price.map(|price| price.cost(usage).total));
    format!(
        "{}\n",
        text!(
            "context-report-reply",
            all_input = grouped(usage.all_input()),
            cached_input = grouped(usage.cached_input),
            cached_share = percent(usage.cached_share()),
            cache_write = grouped(usage.cache_write),
            input = grouped(usage.input),
            output = grouped(usage.output),
            cost
        )
    )
}

fn line(text: &mut String, name: &str, tokens: &str, share: f64) {
    let blanks = " ".repeat(15_usize.saturating_sub(haft_text::width(name)));
    let _ = writeln!(
        text,
        "{}",
        format!(
            "{name}{blanks}{tokens:>11} {:>8}  {}",
            percent(share),
            bar(share)
        )
        .trim_end()
    );
}

/// Draws a bar of up to 40 cells, in eighths of a cell. Any share above zero is visible.
fn bar(share: f64) -> String {
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
    fn bars_show_whatever_is_there() {
        assert_eq!((bar(0.0).as_str(), bar(0.000_01).as_str()), ("", "▏"));
        assert_eq!(bar(0.5).chars().count(), 20);
        assert_eq!(
            (bar(1.0).chars().count(), bar(7.0).chars().count()),
            (40, 40)
        );
    }
}
