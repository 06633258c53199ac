//! The beginning of every conversation page: money spent and wasted, the share read from the
//! cache, and the breaks of the cached prefix with links to their requests.

use haft_store::Conversation;
use haft_text::{format_dollars, format_percent, format_thousands};
use haft_types::ConversationId;

use super::log_data::{LogAnalysis, LogSource, LogTotals, TimelineRequest};
use super::page_frame::render_progress;
use super::{Inspector, PageResult, conversation_path};
use crate::computation::Computed;
use crate::markup::{Column, Markup};

/// The maximum number of breaks that a page lists. If there are more, the most expensive are
/// listed, and a link leads to all.
const MAX_BREAKS: usize = 8;

/// Whether the list of breaks is open when the page is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BreakList {
    Open,
    Closed,
}

impl Inspector {
    /// Returns the comparison of all requests of a conversation, or the progress of computing it.
    pub(super) async fn analyze_log(
        &self,
        conversation: &Conversation,
    ) -> PageResult<Computed<LogAnalysis>> {
        let version = self.log_version(conversation).await?;
        let source = LogSource {
            store: std::sync::Arc::clone(&self.store),
            environment: self.environment.clone(),
            config: self.config.clone(),
            conversation: conversation.clone(),
            notify: self.notify,
        };
        self.computations
            .analyses
            .get(
                conversation.id.as_str(),
                &version,
                move |watch| async move { LogAnalysis::load(source, &watch).await },
            )
            .await
    }

    /// Returns a text that changes whenever a message or a request of a conversation changes.
    pub(super) async fn log_version(&self, conversation: &Conversation) -> PageResult<String> {
        let requests = self.store.count_requests(&conversation.id).await?;
        Ok(format!(
            "{} {} {requests}",
            conversation.messages, conversation.revisions
        ))
    }

    /// Renders the figures of a conversation and its breaks, or the progress of computing them. An
    /// error is shown in their place, because the rest of the page does not need them.
    pub(super) async fn render_glance(
        &self,
        conversation: &Conversation,
        breaks: BreakList,
    ) -> Markup {
        match self.analyze_log(conversation).await {
            Ok(Computed::Ready(analysis)) => render_figures(&conversation.id, &analysis, breaks),
            Ok(Computed::Running(running)) => render_progress(running.progress),
            Err(error) => self.render_alert(&error.to_one_line()),
        }
    }
}

/// Renders the figures of a conversation and the list of its breaks.
pub(super) fn render_figures(
    id: &ConversationId,
    analysis: &LogAnalysis,
    breaks: BreakList,
) -> Markup {
    let totals = &analysis.totals;
    if analysis.requests.is_empty() && totals.replies == 0 {
        return Markup::default();
    }
    let requests = format_thousands(analysis.requests.len() as u64);
    let unknown = || "–".to_owned();
    let spent = if totals.priced < totals.replies && totals.cost.is_some() {
        text!(
            "serve-glance-priced",
            priced = format_thousands(totals.priced as u64),
            all = format_thousands(totals.replies as u64)
        )
    } else if totals.cost.is_none() {
        text!("serve-glance-no-price").to_owned()
    } else {
        text!("serve-glance-requests", requests)
    };
    let input = totals.usage.all_input();
    let figures = [
        render_figure(
            text!("serve-glance-spent"),
            text!("serve-glance-spent-meaning"),
            &totals.cost.map_or_else(unknown, format_dollars),
            &spent,
            "",
        ),
        render_waste(totals),
        render_figure(
            text!("serve-glance-cached"),
            text!("serve-glance-cached-meaning"),
            &if input == 0 {
                unknown()
            } else {
                format_percent(totals.usage.cached_share())
            },
            &if input == 0 {
                text!("serve-glance-no-usage").to_owned()
            } else {
                text!(
                    "serve-glance-input",
                    cached = format_thousands(totals.usage.cached_input),
                    input = format_thousands(input)
                )
            },
            "",
        ),
        render_figure(
            text!("serve-requests"),
            text!("serve-glance-requests-meaning"),
            &requests,
            &describe_models(&analysis.requests),
            "",
        ),
    ];
    let figures = Markup::element("dl", &[("class", "figures")], figures);
    Markup::element(
        "section",
        &[("class", "glance"), ("aria-label", text!("serve-glance"))],
        [figures, render_breaks(id, analysis, breaks)],
    )
}

fn render_waste(totals: &LogTotals) -> Markup {
    let wasted = match (totals.breaks, totals.break_cost) {
        (0, _) => "$0".to_owned(),
        (_, Some(cost)) => format_dollars(cost),
        (_, None) => text!(
            "serve-tokens-number",
            tokens = format_thousands(totals.break_tokens)
        ),
    };
    let note = text!(
        "serve-glance-breaks",
        breaks = haft_inspect::format_count(totals.breaks, haft_inspect::Countable::Break),
        tokens = format_thousands(totals.break_tokens)
    );
    let state = if totals.breaks > 0 { "bad" } else { "" };
    render_figure(
        text!("serve-glance-wasted"),
        text!("serve-glance-wasted-meaning"),
        &wasted,
        &note,
        state,
    )
}

fn render_figure(name: &str, meaning: &str, figure: &str, note: &str, state: &str) -> Markup {
    let name = Markup::element("abbr", &[("title", meaning)], [Markup::text(name)]);
    let class = format!("figure {state}");
    Markup::element(
        "div",
        &[("class", class.trim_end())],
        [
            Markup::element("dt", &[], [name]),
            Markup::element("dd", &[("class", "value")], [Markup::text(figure)]),
            Markup::element("dd", &[("class", "note")], [Markup::text(note)]),
        ],
    )
}

/// Lists the models of the requests: the names of up to two, or else their number.
fn describe_models(requests: &[TimelineRequest]) -> String {
    let mut models: Vec<&str> = requests
        .iter()
        .map(|request| request.model.as_str())
        .collect();
    models.dedup();
    models.sort_unstable();
    models.dedup();
    match models.as_slice() {
        [] => String::new(),
        [_] | [_, _] => models.join(", "),
        [_, _, ..] => text!("serve-glance-models", number = models.len()),
    }
}

/// Renders the breaks of the cached prefix, or nothing if there are none.
fn render_breaks(id: &ConversationId, analysis: &LogAnalysis, list: BreakList) -> Markup {
    let mut broken: Vec<_> = analysis
        .requests
        .iter()
        .filter_map(|request| Some((request.number, request.broken.as_ref()?)))
        .collect();
    let all = broken.len();
    if all == 0 {
        return Markup::default();
    }
    if all > MAX_BREAKS {
        broken.sort_by(|(_, one), (_, other)| {
            let costs = other.cost.partial_cmp(&one.cost);
            let costs = costs.unwrap_or(std::cmp::Ordering::Equal);
            costs.then(other.tokens.cmp(&one.tokens))
        });
        broken.truncate(MAX_BREAKS);
        broken.sort_by_key(|(number, _)| *number);
    }
    let columns = [
        Column::figure(text!("serve-request")),
        Column::prose(text!("serve-cause-heading")),
        Column::text(text!("serve-difference-heading")),
        Column::figure(text!("serve-resent")),
        Column::figure(text!("serve-cost")),
    ];
    let rows = broken.into_iter().map(|(number, broken)| {
        // As in `haft context why`.
        let mark = if broken.is_forecast { "≈" } else { "" };
        let cost = broken.cost.map(format_dollars);
        vec![
            Markup::link(
                &conversation_path(id, &format!("/r/{number}")),
                format_thousands(number),
            ),
            Markup::text(&broken.cause),
            Markup::text(&broken.place),
            Markup::text(format!("{mark}{}", format_thousands(broken.tokens))),
            Markup::text(cost.map_or_else(String::new, |cost| format!("{mark}{cost}"))),
        ]
    });
    let table = Markup::table(&columns, rows);
    let more = (all > MAX_BREAKS).then(|| {
        let to = conversation_path(id, "/timeline?show=breaks");
        let number = format_thousands(all as u64);
        let link = Markup::link(&to, text!("serve-all-breaks", number));
        Markup::element("p", &[], [link])
    });
    let summary = Markup::text(if all > MAX_BREAKS {
        text!(
            "serve-dearest-breaks",
            shown = MAX_BREAKS,
            all = format_thousands(all as u64)
        )
    } else {
        text!("serve-breaks-heading").to_owned()
    });
    let content = std::iter::once(table).chain(more);
    match list {
        BreakList::Open => Markup::open_details("breaks", summary, content),
        BreakList::Closed => Markup::details("breaks", summary, content),
    }
}
