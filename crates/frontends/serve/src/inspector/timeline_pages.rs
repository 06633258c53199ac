//! Renders the timeline of a conversation and the pages of its requests.

use haft_store::Conversation;
use haft_text::{format_dollars, format_percent, format_thousands};
use haft_types::Layer;

use super::glance::{BreakList, render_figures};
use super::log_data::{
    LogAnalysis, PrefixBreak, RequestBody, RequestDetails, SegmentDetails, TimelineRequest,
};
use super::page_frame::{ConversationTab, render_pager, render_request_pager};
use super::{Inspector, PageResult, conversation_path, format_cost_suffix};
use crate::computation::Computed;
use crate::localize_text;
use crate::markup::{Column, Markup};
use crate::server::PageRequest;

/// The maximum number of rows of a page.
const ROWS_PER_PAGE: usize = 200;

/// The selection of a timeline's page.
#[derive(Clone, Copy, Debug, Default)]
struct TimelineView {
    /// The position of the first row.
    from: usize,
    /// True if the picture shows only the requests of the page, each as a wide column.
    is_zoomed: bool,
    /// True if the table lists only the requests that broke the prefix.
    only_breaks: bool,
}

impl TimelineView {
    fn from_query(request: &PageRequest) -> Self {
        Self {
            from: request.number("from"),
            is_zoomed: request.query.contains_key("zoom"),
            only_breaks: request
                .query
                .get("show")
                .is_some_and(|show| show == "breaks"),
        }
    }

    /// Returns the query string of this view, without the parameter for the first row.
    fn query(self) -> String {
        let parts = [
            self.is_zoomed.then_some("zoom=in"),
            self.only_breaks.then_some("show=breaks"),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            String::new()
        } else {
            format!("?{}", parts.join("&"))
        }
    }
}

impl Inspector {
    pub(super) async fn render_timeline(
        &self,
        conversation: Conversation,
        request: &PageRequest,
    ) -> PageResult<String> {
        let analysis = match self.analyze_log(&conversation).await? {
            Computed::Ready(analysis) => analysis,
            Computed::Running(running) => {
                return Ok(self.build_progress_page(
                    &conversation,
                    ConversationTab::Timeline,
                    running.progress,
                ));
            }
        };
        let view = TimelineView::from_query(request);
        let content = if analysis.requests.is_empty() {
            vec![Markup::text_element("p", text!("serve-no-requests"))]
        } else {
            render_timeline_content(&conversation, &analysis, view)
        };
        Ok(self.build_conversation_page(&conversation, ConversationTab::Timeline, None, content))
    }

    pub(super) async fn render_request(
        &self,
        conversation: Conversation,
        number: u64,
        from: Option<usize>,
    ) -> PageResult<Option<String>> {
        let analysis = match self.analyze_log(&conversation).await? {
            Computed::Ready(analysis) => analysis,
            Computed::Running(running) => {
                return Ok(Some(self.build_progress_page(
                    &conversation,
                    ConversationTab::Other,
                    running.progress,
                )));
            }
        };
        let page = (from, ROWS_PER_PAGE);
        let Some(details) = analysis.load_request(number, page, &self.masker).await? else {
            return Ok(None);
        };
        let id = &conversation.id;
        let all = analysis.requests.len() as u64;
        let title = text!("serve-request-of", number, requests = format_thousands(all));
        let note = analysis
            .note
            .as_ref()
            .map(|note| Markup::element("p", &[("class", "notice")], [Markup::text(note)]));
        let to = conversation_path(id, &format!("/r/{number}"));
        let pager = render_pager(&to, details.from, ROWS_PER_PAGE, details.all_segments);
        let mut pieces = vec![
            render_figures(id, &analysis, BreakList::Closed),
            Markup::concat(note),
            render_request_pager(id, number, all),
            render_request_facts(&details),
        ];
        if let Some(difference) = &details.difference {
            pieces.extend([
                Markup::text_element("h2", text!("serve-difference")),
                Markup::diff(&self.masker.mask(difference)),
            ]);
        }
        pieces.extend([
            Markup::text_element("h2", text!("serve-segments")),
            pager.clone(),
            self.render_segments(&details),
            pager,
        ]);
        match &details.body {
            RequestBody::Unknown => {}
            RequestBody::Inline(body) => {
                let summary = text!("serve-body", bytes = format_thousands(body.len() as u64));
                let body = Markup::text_element("pre", self.masker.mask(body));
                pieces.push(Markup::details("", Markup::text(summary), [body]));
            }
            RequestBody::OwnPage => {
                let link = Markup::link(&format!("{to}/body"), text!("serve-body-page"));
                pieces.push(Markup::element("p", &[], [link]));
            }
        }
        Ok(Some(self.build_conversation_page(
            &conversation,
            ConversationTab::Other,
            Some(&title),
            pieces,
        )))
    }

    /// Renders the page that shows the body of a request as it was sent.
    pub(super) async fn render_body(
        &self,
        conversation: Conversation,
        number: u64,
    ) -> PageResult<Option<String>> {
        let Computed::Ready(analysis) = self.analyze_log(&conversation).await? else {
            return Ok(None);
        };
        if number == 0 || number > analysis.requests.len() as u64 {
            return Ok(None);
        }
        let body = analysis.load_body(number).await?;
        let title = text!("serve-body", bytes = format_thousands(body.len() as u64));
        let back = Markup::link(
            &conversation_path(&conversation.id, &format!("/r/{number}")),
            text!(
                "serve-request-of",
                number,
                requests = format_thousands(analysis.requests.len() as u64)
            ),
        );
        let pieces = [
            Markup::element("p", &[], [back]),
            Markup::text_element("pre", self.masker.mask(&body)),
        ];
        Ok(Some(self.build_conversation_page(
            &conversation,
            ConversationTab::Other,
            Some(&title),
            pieces,
        )))
    }

    fn render_segments(&self, details: &RequestDetails) -> Markup {
        let tools = (details.from == 0 && !details.tools.is_empty()).then(|| {
            let names: Vec<_> = details
                .tools
                .iter()
                .map(|(name, _)| name.as_str())
                .collect();
            let list = details.tools.iter().map(|(name, description)| {
                Markup::concat([
                    Markup::text_element("dt", name),
                    Markup::text_element("dd", self.masker.mask(description)),
                ])
            });
            let list = Markup::element("dl", &[("class", "tools")], list);
            let summary = text!(
                "serve-offered-tools",
                number = names.len(),
                names = shorten(&names.join(", "))
            );
            vec![
                Markup::text("–"),
                Markup::text(localize_text(Layer::System)),
                Markup::text(text!("serve-tools-owner")),
                Markup::text(format_thousands(details.tool_tokens)),
                Markup::text(if details.kept > 0 {
                    text!("serve-kept")
                } else {
                    text!("serve-new")
                }),
                Markup::details("", Markup::text(summary), [list]),
            ]
        });
        let rows = details
            .segments
            .iter()
            .zip(details.from + 1..)
            .map(|(segment, number)| render_segment(number, segment));
        let columns = [
            Column::figure("#"),
            Column::text(text!("serve-layer")).explained(text!("serve-layer-meaning")),
            Column::text(text!("serve-owner")).explained(text!("serve-owner-meaning")),
            Column::figure(text!("serve-tokens")),
            Column::text(text!("serve-state")).explained(text!("serve-state-meaning")),
            Column::prose(text!("serve-text")),
        ];
        Markup::table(&columns, tools.into_iter().chain(rows))
    }
}

fn render_timeline_content(
    conversation: &Conversation,
    analysis: &LogAnalysis,
    view: TimelineView,
) -> Vec<Markup> {
    let id = &conversation.id;
    let links = conversation_path(id, "/r/");
    let end = analysis
        .requests
        .len()
        .min(view.from.saturating_add(ROWS_PER_PAGE));
    let picture = if view.is_zoomed && view.from < end {
        analysis.draw_zoomed(view.from..end, &links)
    } else {
        analysis.draw_overview(&links)
    };
    let zoom = TimelineView {
        is_zoomed: !view.is_zoomed,
        ..view
    };
    let to = |view: TimelineView| conversation_path(id, &format!("/timeline{}", view.query()));
    let zoom = Markup::link(
        &to(zoom),
        if view.is_zoomed {
            text!("serve-zoom-out")
        } else {
            text!("serve-zoom-in")
        },
    );
    let rows = analysis
        .requests
        .iter()
        .filter(|request| !view.only_breaks || request.broken.is_some());
    let all = rows.clone().count();
    let rows = rows.skip(view.from).take(ROWS_PER_PAGE);
    let only = TimelineView {
        only_breaks: !view.only_breaks,
        from: 0,
        ..view
    };
    let only = (analysis.totals.breaks > 0).then(|| {
        let text = if view.only_breaks {
            text!("serve-all-requests")
        } else {
            text!("serve-only-breaks")
        };
        Markup::link(&to(only), text)
    });
    let pager = render_pager(&to(view), view.from, ROWS_PER_PAGE, all);
    let note = analysis
        .note
        .as_ref()
        .map(|note| Markup::element("p", &[("class", "notice")], [Markup::text(note)]));
    let controls = Markup::element(
        "p",
        &[("class", "buttons")],
        std::iter::once(zoom).chain(only),
    );
    vec![
        Markup::concat(note),
        Markup::element(
            "div",
            &[("class", "overview")],
            [
                render_figures(id, analysis, BreakList::Open),
                render_chart(analysis, &picture, view),
            ],
        ),
        controls,
        pager.clone(),
        render_request_table(conversation, analysis, rows),
        pager,
    ]
}

/// Renders the picture of the requests with its caption and legend.
fn render_chart(analysis: &LogAnalysis, picture: &str, view: TimelineView) -> Markup {
    let mut caption = analysis.summary();
    if analysis.is_combined() && !view.is_zoomed {
        caption = text!("serve-combined", summary = caption);
    }
    let keys = Layer::ALL
        .into_iter()
        .map(|layer| (layer.name(), localize_text(layer)))
        .chain([
            ("kept", text!("serve-legend-kept").to_owned()),
            ("cached", text!("serve-legend-cached").to_owned()),
            ("break", text!("serve-legend-break").to_owned()),
        ]);
    let keys = keys.map(|(class, name)| {
        Markup::element(
            "li",
            &[("class", &format!("key-{class}"))],
            [Markup::text(name)],
        )
    });
    let caption = Markup::element(
        "figcaption",
        &[],
        [
            Markup::text_element("p", caption),
            Markup::element("ul", &[("class", "legend")], keys),
            Markup::element(
                "p",
                &[("class", "scrolls")],
                [Markup::text(text!("serve-scrolls"))],
            ),
        ],
    );
    let picture = Markup::scroller("wide", Markup::inline_svg(picture));
    Markup::element("figure", &[("class", "chart")], [caption, picture])
}

/// Renders the table of requests. A column whose cells would all be empty or equal is left out.
fn render_request_table<'a>(
    conversation: &Conversation,
    analysis: &LogAnalysis,
    requests: impl Iterator<Item = &'a TimelineRequest>,
) -> Markup {
    let first = analysis.requests.first().map(|request| &request.model);
    let has_models = analysis
        .requests
        .iter()
        .any(|request| Some(&request.model) != first);
    let has_costs = analysis.totals.cost.is_some();
    let has_replies = analysis
        .requests
        .iter()
        .any(|request| request.reply.is_some());
    let mut columns = vec![
        Column::figure(text!("serve-request")),
        Column::figure(text!("serve-sent")),
    ];
    columns.extend(has_models.then(|| Column::text(text!("serve-model"))));
    columns.push(Column::figure(text!("serve-tokens")).explained(text!("serve-tokens-meaning")));
    columns.extend(
        has_replies.then(|| {
            Column::figure(text!("serve-cached")).explained(text!("serve-cached-meaning"))
        }),
    );
    columns.extend(has_costs.then(|| Column::figure(text!("serve-cost"))));
    columns.push(Column::prose(text!("serve-break")).explained(text!("serve-break-meaning")));
    let rows = requests.map(|request| {
        let number = request.number;
        let reply = request.reply;
        let at = request.sent_at.strftime("%Y-%m-%d %H:%M:%S").to_string();
        let time = Markup::element(
            "time",
            &[("title", &at)],
            [Markup::text(
                request.sent_at.strftime("%H:%M:%S").to_string(),
            )],
        );
        let mut cells = vec![
            Markup::link(
                &conversation_path(&conversation.id, &format!("/r/{number}")),
                number.to_string(),
            ),
            time,
        ];
        cells.extend(has_models.then(|| Markup::text(&request.model)));
        cells.push(Markup::text(format_thousands(request.tokens)));
        cells.extend(has_replies.then(|| {
            Markup::text(reply.map_or_else(String::new, |reply| {
                format_percent(reply.usage.cached_share())
            }))
        }));
        cells.extend(has_costs.then(|| {
            let cost = reply.and_then(|reply| reply.cost);
            Markup::text(cost.map_or_else(String::new, format_dollars))
        }));
        cells.push(match &request.broken {
            Some(broken) => Markup::element(
                "span",
                &[("class", "broken")],
                [Markup::text(describe_break(broken))],
            ),
            None => Markup::default(),
        });
        cells
    });
    Markup::table(&columns, rows)
}

fn describe_break(broken: &PrefixBreak) -> String {
    let cost = format_cost_suffix(broken.cost);
    let forecast = if broken.is_forecast {
        text!("serve-forecast")
    } else {
        ""
    };
    text!(
        "serve-why",
        cause = broken.cause,
        tokens = format_thousands(broken.tokens),
        cost,
        forecast
    )
}

fn render_request_facts(details: &RequestDetails) -> Markup {
    let TimelineRequest {
        number,
        sent_at,
        model,
        tokens,
        reply,
        broken,
    } = &details.request;
    let sent = text!(
        "serve-sent-to",
        model,
        api = details.api,
        time = sent_at.strftime("%Y-%m-%d %H:%M:%S"),
        tokens = format_thousands(*tokens)
    );
    let billed = match reply {
        Some(reply) => text!(
            "serve-billed",
            input = format_thousands(reply.usage.all_input()),
            cached = format_thousands(reply.usage.cached_input),
            written = format_thousands(reply.usage.cache_write),
            output = format_thousands(reply.usage.output),
            cost = format_cost_suffix(reply.cost)
        ),
        None => text!("serve-no-reply").to_owned(),
    };
    let why = match (broken, number) {
        (Some(broken), _) => Markup::element(
            "p",
            &[("class", "broken")],
            [Markup::text(describe_break(broken))],
        ),
        (None, 1) => Markup::text_element("p", text!("serve-first-request")),
        (None, _) => Markup::text_element("p", text!("serve-no-break")),
    };
    Markup::concat([
        Markup::text_element("p", sent),
        Markup::text_element("p", billed),
        why,
    ])
}

fn render_segment(number: usize, segment: &SegmentDetails) -> Vec<Markup> {
    let state = if segment.kept {
        text!("serve-kept")
    } else {
        text!("serve-new")
    };
    let boundary = if segment.boundary {
        text!("serve-boundary")
    } else {
        ""
    };
    let whole = Markup::text_element("pre", &segment.text);
    vec![
        Markup::text(format_thousands(number as u64)),
        Markup::text(&segment.layer),
        Markup::text(&segment.owner),
        Markup::text(format_thousands(segment.tokens)),
        Markup::text(format!("{state}{boundary}")),
        Markup::details("", Markup::text(shorten(&segment.opening)), [whole]),
    ]
}

fn shorten(text: &str) -> String {
    text.chars().take(100).collect()
}
