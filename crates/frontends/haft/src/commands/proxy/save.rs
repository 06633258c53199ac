//! `haft proxy --save`: the consent, the folders, and the lines about what was saved.

use std::path::Path;
use std::sync::Arc;

use haft_agent::WallClock;
use haft_proxy::{
    ProxyConfig, SaveConfig, SaveCost, SaveEvent, SavePolicy, SaveSetup, SaveTotals, Saver,
    UnchangedReason, can_read_everywhere,
};
use haft_text::format_thousands;

use super::{ExplanationLines, ProxyArgs};
use crate::exit::usage_error;
use crate::haft::Settings;
use crate::output;

/// Opens the saver with the configuration. Fails if the agent's requests may not be rewritten.
pub(super) fn open_saver(
    settings: &Settings,
    args: &ProxyArgs,
    lines: &ExplanationLines,
) -> anyhow::Result<Arc<Saver>> {
    let ProxyConfig { save } = settings.config.read_section("proxy")?;
    let agent = args.command.first().map(|program| {
        let name = Path::new(program).file_stem().unwrap_or_default();
        name.to_string_lossy().into_owned()
    });
    check_config(&save, agent.as_deref())?;
    let folder = settings.places.proxy_folder();
    let setup = SaveSetup {
        catalogue: haft_agent::build_catalogue(&settings.config)?,
        clock: Arc::new(WallClock),
        policy: SavePolicy {
            budget: save.budget,
            ..SavePolicy::default()
        },
        agents: save.agents,
        agent,
        folder,
        spill_folder: save.spill_dir,
        is_dry_run: args.dry_run,
    };
    let lines = lines.clone();
    let is_dry_run = args.dry_run;
    Ok(Arc::new(Saver::new(setup, move |event| {
        lines.print_line(&format_event(&event, is_dry_run));
    })))
}

/// Checks that the configuration allows requests to be rewritten: those of any agent, or those of
/// the agent that is started.
fn check_config(save: &SaveConfig, agent: Option<&str>) -> anyhow::Result<()> {
    if let Some(folder) = save
        .spill_dir
        .as_ref()
        .filter(|folder| !folder.is_absolute())
    {
        return Err(usage_error(text!(
            "proxy-spill-relative",
            folder = folder.display()
        )));
    }
    let Some(agent) = agent else {
        if save.agents.is_empty() {
            return Err(usage_error(text!("proxy-no-agents")));
        }
        return Ok(());
    };
    if !save.agents.iter().any(|allowed| allowed == agent) {
        return Err(usage_error(text!("proxy-agent-not-allowed", agent)));
    }
    if save.spill_dir.is_none() && !can_read_everywhere(agent) {
        return Err(usage_error(text!("proxy-agent-cannot-read", agent)));
    }
    Ok(())
}

fn format_event(event: &SaveEvent, is_dry_run: bool) -> String {
    match event {
        SaveEvent::Cleared {
            conversation,
            agent,
            results,
            tokens,
            folder,
        } => {
            let conversation: String = conversation.chars().take(8).collect();
            let tokens = format_thousands(*tokens);
            if is_dry_run {
                text!(
                    "proxy-would-clear",
                    conversation,
                    agent,
                    results = *results,
                    tokens
                )
            } else {
                text!(
                    "proxy-cleared",
                    conversation,
                    agent,
                    results = *results,
                    tokens,
                    folder = folder.display()
                )
            }
        }
        SaveEvent::BudgetTooSmall { budget, needed } => text!(
            "proxy-budget-too-small",
            budget = format_thousands(*budget),
            needed = format_thousands(*needed)
        ),
        SaveEvent::TextMoved { agent, opening } => text!("proxy-text-moved", agent, opening),
        SaveEvent::NotAllowed { agent } => text!("proxy-not-allowed", agent),
        SaveEvent::NoReadableFolder { agent } => text!("proxy-agent-cannot-read", agent),
        SaveEvent::NotStored { reason } => text!("proxy-not-stored", reason),
    }
}

/// Prints the requests that were rewritten, those that could not be, and the estimated saving.
pub(super) fn print_totals(saver: &Saver, is_dry_run: bool) {
    let totals = saver.totals();
    if totals.requests == 0 {
        return;
    }
    let rewritten = totals.rewritten;
    let requests = totals.requests;
    output::print_to_stderr(&if is_dry_run {
        text!("proxy-would-rewrite", rewritten, requests)
    } else {
        text!("proxy-rewritten", rewritten, requests)
    });
    for (reason, count) in &totals.unchanged {
        let reason = name_reason(*reason);
        output::print_to_stderr(&text!("proxy-unchanged", count = *count, reason));
    }
    if totals.conversations > 0 {
        output::print_to_stderr(&format_saving(&totals));
    }
}

fn name_reason(reason: UnchangedReason) -> &'static str {
    match reason {
        UnchangedReason::Unreadable => text!("proxy-reason-unreadable"),
        UnchangedReason::StoredResponse => text!("proxy-reason-stored-response"),
        UnchangedReason::StoredConversation => text!("proxy-reason-stored-conversation"),
        UnchangedReason::Compaction => text!("proxy-reason-compaction"),
        UnchangedReason::ContextManagement => text!("proxy-reason-context-management"),
        UnchangedReason::NamedCache => text!("proxy-reason-named-cache"),
        UnchangedReason::NoConsent => text!("proxy-reason-no-consent"),
    }
}

fn format_saving(totals: &SaveTotals) -> String {
    let percent = 100.0 * (1.0 - totals.cost.sent / totals.cost.received.max(1.0));
    let percent = format!("{percent:.0}");
    match totals.usd {
        Some(SaveCost { received, sent }) => text!(
            "proxy-saved-money",
            saved = format_args!("${:.2}", received - sent),
            received = format_args!("${received:.2}"),
            percent,
            conversations = totals.conversations
        ),
        None => text!(
            "proxy-saved-units",
            saved = format_thousands((totals.cost.received - totals.cost.sent).max(0.0) as u64),
            received = format_thousands(totals.cost.received as u64),
            percent,
            conversations = totals.conversations
        ),
    }
}
