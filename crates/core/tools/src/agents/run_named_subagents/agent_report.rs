//! Formats the results of sub-agents for the model.

use std::fmt::Write as _;

use haft_text::{CutLimits, cut_lines};
use haft_tool::{AgentReport, OutputLimits, StartedAgent, ToolNames, WorkOrder};
use haft_types::{Envelope, Outcome, ToolError, ToolStatus};
use serde_json::{Value, json};

const BACKGROUND: &str = "background";

/// Returns the tool result for agents that were started in the background.
pub(super) fn build_started_envelope(agents: &[StartedAgent], tools: &ToolNames) -> Envelope {
    let line =
        |one: &StartedAgent| format!("- `{}`\n  Conversation: {}", one.name, one.conversation);
    let lines: Vec<_> = agents.iter().map(line).collect();
    let talk = tools.hint_if_known("talk_to", "; `talk_to` writes to one that still runs");
    let text = format!(
        "Started:\n{}\n\nThey work while you go on. When one has ended you are told what came of it{talk}. When nothing else is left to do, answer: you are asked again once the next one has ended.",
        lines.join("\n")
    );
    let named = |one: &StartedAgent| json!({ "name": one.name, "conversation": one.conversation });
    let data =
        json!({ "mode": BACKGROUND, "agents": agents.iter().map(named).collect::<Vec<_>>() });
    Envelope::success(text).with_data(data)
}

/// Returns the agents that a result of the tool reports as started in the background.
pub fn parse_background_agents(envelope: &Envelope) -> Vec<StartedAgent> {
    let named = Some(&envelope.data)
        .filter(|data| data["mode"] == BACKGROUND)
        .and_then(|data| data["agents"].as_array());
    let agents = named.into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    agents
        .map(|one| StartedAgent {
            name: text(&one["name"]),
            conversation: text(&one["conversation"]),
        })
        .collect()
}

/// Formats the reports of background agents that have ended, for the model.
pub fn format_ended_agents(
    reports: &[AgentReport],
    limits: OutputLimits,
    tools: &ToolNames,
) -> String {
    format_sections(reports, limits, tools).join("\n\n")
}

fn format_sections(
    reports: &[AgentReport],
    limits: OutputLimits,
    tools: &ToolNames,
) -> Vec<String> {
    let share = reports.len().max(1);
    let limits = CutLimits {
        lines: limits.lines / share,
        bytes: limits.bytes / share,
    };
    reports
        .iter()
        .map(|report| format_section(report, limits, tools))
        .collect()
}

/// Returns the tool result with one section for each agent, in the order of `reports`.
pub(super) fn build_reports_envelope(
    order: WorkOrder,
    reports: &[AgentReport],
    limits: OutputLimits,
    tools: &ToolNames,
) -> Envelope {
    let sections = format_sections(reports, limits, tools);
    let data = json!({ "mode": order_name(order), "agents": reports.iter().map(build_report_data).collect::<Vec<_>>() });
    let completed = reports
        .iter()
        .filter(|report| report.outcome == Outcome::Completed)
        .count();
    let status = match completed {
        0 => ToolStatus::Error,
        some if some < reports.len() => ToolStatus::Partial,
        _ => ToolStatus::Success,
    };
    let error = (status == ToolStatus::Error).then(|| ToolError {
        code: "no_agent_completed".to_owned(),
        message: "none of the agents completed its task".to_owned(),
    });
    Envelope {
        status,
        error,
        ..Envelope::success(sections.join("\n\n")).with_data(data)
    }
}

fn format_section(report: &AgentReport, limits: CutLimits, tools: &ToolNames) -> String {
    let mut text = format!("## {}: {}\n", report.name, outcome_label(report.outcome));
    // Writing to a String cannot fail.
    if report.outcome != Outcome::Completed {
        let _ = write!(text, "\n{}\n", report.message);
    }
    if !report.answer.trim().is_empty() {
        let cut = cut_lines(report.answer.trim(), limits);
        let _ = write!(text, "\n{}\n", cut.text);
        if let Some(last) = report.evidence.last().filter(|_| cut.is_cut()) {
            let how = if tools.contains("recall") {
                format!("`recall` with `{}` reads the whole answer", last.id)
            } else {
                format!("the whole answer is message {}", last.id)
            };
            let _ = writeln!(text, "[Cut; {how}.]");
        }
    }
    if !report.merged.is_empty() {
        let _ = write!(text, "\n{}\n", report.merged);
    }
    if !report.evidence.is_empty() {
        let named: Vec<_> = report
            .evidence
            .iter()
            .map(|one| format!("{} ({})", one.id, one.what))
            .collect();
        let _ = write!(text, "\nEvidence: {}\n", named.join(", "));
    }
    if let Some(conversation) = &report.conversation {
        let _ = writeln!(text, "Conversation: {conversation}");
    }
    text.truncate(text.trim_end().len());
    text
}

fn build_report_data(report: &AgentReport) -> Value {
    json!({
        "name": report.name,
        "outcome": report.outcome,
        "code": report.code,
        "answer": report.answer,
        "conversation": report.conversation,
        "evidence": report.evidence.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(),
        "turns": report.turns,
        "usage": report.usage,
        "cost": report.cost.map(|cost| cost.total),
    })
}

fn order_name(order: WorkOrder) -> &'static str {
    match order {
        WorkOrder::Parallel => "parallel",
        WorkOrder::Serial => "serial",
        WorkOrder::Background => BACKGROUND,
    }
}

fn outcome_label(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Waiting => "waits for an answer",
        Outcome::Aborted => "cancelled",
        Outcome::Exhausted => "reached a limit",
        Outcome::Failed => "failed",
    }
}
