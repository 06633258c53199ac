//! The data of the timeline and of the pages of single requests, read from the request log.

use std::sync::Arc;

use haft_agent::HostEnvironment;
use haft_agent::config::Config;
use haft_context::PriceBasis;
use haft_inspect::{
    PictureOptions, PrefixBreakReport, RequestColumn, RequestDiff, RequestLogReader, draw_picture,
    find_breaks, full_message_text, message_opening, summarize_columns,
};
use haft_store::{Conversation, LoggedRequest, RequestOutline, Store};
use haft_text::Masker;
use haft_types::{Api, LlmMetadata, Metadata, Timestamp, Usage};

use super::compute_reply_cost;
use crate::computation::ComputationWatch;
use crate::{PageError, localize_text};

/// The maximum number of columns of a picture of a whole conversation. More could not be told
/// apart or clicked.
const MAX_COLUMNS: usize = 160;

/// The maximum number of estimated tokens of a request whose body is part of its page. Larger
/// bodies have a page of their own.
const MAX_INLINE_BODY_TOKENS: u64 = 60_000;

/// The comparison of all requests of a conversation: everything that pages show about the log,
/// without the segments, which need much more memory.
pub(crate) struct LogAnalysis {
    /// The log, for single requests.
    pub(crate) log: RequestLogReader,
    /// A note that the requests were rebuilt from the messages of an imported conversation.
    pub(crate) note: Option<String>,
    /// The requests, in order.
    pub(crate) requests: Vec<TimelineRequest>,
    pub(crate) totals: LogTotals,
    columns: Vec<RequestColumn>,
    /// The token count at which clearing begins, if it is known.
    zone: Option<u64>,
}

/// The sums over a conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogTotals {
    /// The usage of all replies, as counted by the providers.
    pub(crate) usage: Usage,
    /// The cost of all replies that have a price, in dollars.
    pub(crate) cost: Option<f64>,
    /// The number of replies with a price, and of all replies with a usage.
    pub(crate) priced: usize,
    pub(crate) replies: usize,
    /// The number of breaks of the cached prefix, and the tokens that they sent again.
    pub(crate) breaks: usize,
    pub(crate) break_tokens: u64,
    /// The extra cost of all breaks, in dollars; `None` unless every break has a price.
    pub(crate) break_cost: Option<f64>,
}

/// A request of a timeline.
#[derive(Clone)]
pub(crate) struct TimelineRequest {
    /// The request's number, starting at 1.
    pub(crate) number: u64,
    pub(crate) sent_at: Timestamp,
    pub(crate) model: String,
    /// The estimated number of tokens.
    pub(crate) tokens: u64,
    /// The figures of the reply to this request.
    pub(crate) reply: Option<ReplyFigures>,
    /// The break of the cached prefix that this request caused.
    pub(crate) broken: Option<PrefixBreak>,
}

/// The usage and the cost of a reply.
#[derive(Clone, Copy)]
pub(crate) struct ReplyFigures {
    pub(crate) usage: Usage,
    /// The cost in dollars, if it is known.
    pub(crate) cost: Option<f64>,
}

/// A break of the cached prefix: the tokens after it are sent again at full price.
#[derive(Clone)]
pub(crate) struct PrefixBreak {
    /// The cause, in the user's language.
    pub(crate) cause: String,
    /// The first difference to the previous request, in the user's language.
    pub(crate) place: String,
    /// The number of tokens that were sent again.
    pub(crate) tokens: u64,
    /// The extra cost, in dollars.
    pub(crate) cost: Option<f64>,
    /// True if the figures are a forecast, because no bill exists for the request.
    pub(crate) is_forecast: bool,
}

/// A request in detail.
pub(crate) struct RequestDetails {
    /// The API of the provider.
    pub(crate) api: Api,
    pub(crate) request: TimelineRequest,
    /// The tools that the request offers, each as its name and its description.
    pub(crate) tools: Vec<(String, String)>,
    /// The estimated tokens of the tools, and the few that each API adds.
    pub(crate) tool_tokens: u64,
    /// The number of segments, and of those at the front that did not change.
    pub(crate) all_segments: usize,
    pub(crate) kept: usize,
    /// The number of the first segment in `segments`, starting at 0.
    pub(crate) from: usize,
    /// The segments of the page, in order.
    pub(crate) segments: Vec<SegmentDetails>,
    /// The difference to the previous request, as text.
    pub(crate) difference: Option<String>,
    pub(crate) body: RequestBody,
}

/// The body of a request.
pub(crate) enum RequestBody {
    /// The request log does not have the body.
    Unknown,
    /// The body is part of the page.
    Inline(String),
    /// The body has a page of its own, because it is large.
    OwnPage,
}

/// A segment of a request. Secrets in its texts are masked.
pub(crate) struct SegmentDetails {
    /// The name of the context layer, in the user's language.
    pub(crate) layer: String,
    /// The owner of the segment, in the user's language.
    pub(crate) owner: String,
    /// The number of tokens.
    pub(crate) tokens: u32,
    /// True if the segment is part of the prefix that did not change.
    pub(crate) kept: bool,
    /// True if the provider's cache can match the prefix up to the end of this segment.
    pub(crate) boundary: bool,
    /// The beginning of the text.
    pub(crate) opening: String,
    /// The whole text.
    pub(crate) text: String,
}

/// The values from which a log is read.
pub(crate) struct LogSource {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) environment: HostEnvironment,
    pub(crate) config: Config,
    pub(crate) conversation: Conversation,
    pub(crate) notify: fn(&str),
}

impl LogAnalysis {
    /// Reads and compares all requests of a log. Fails between two steps if no page waits for the
    /// result any more.
    pub(crate) async fn load(
        source: LogSource,
        watch: &ComputationWatch,
    ) -> Result<Self, PageError> {
        let log = RequestLogReader::for_conversation(
            source.store,
            source.environment,
            source.config,
            source.conversation,
            source.notify,
        )
        .await?;
        watch.set_total(4 * log.requests);
        let step = || {
            watch.advance(log.requests);
            if watch.is_wanted() {
                Ok(())
            } else {
                Err(PageError::Action(text!("serve-abandoned").to_owned()))
            }
        };
        let outlines = log.outlines().await?;
        step()?;
        let messages = log.messages().await?;
        let models = log.find_models(&outlines)?;
        let replies = log.reply_metadata(&outlines, &messages);
        step()?;
        let breaks = find_breaks(&outlines, &models, &messages, &replies);
        step()?;
        let mut columns = RequestColumn::from_log(&outlines, &replies, &models, &breaks);
        if log.imported.is_some() {
            // The cached share relates to all tokens sent, but a column shows only the rebuilt part.
            columns
                .iter_mut()
                .for_each(RequestColumn::remove_cache_line);
        }
        step()?;
        // The safe zone of other agents is unknown.
        let own = !is_recorded(&log.conversation.metadata) && log.imported.is_none();
        let zone = models
            .last()
            .filter(|_| own)
            .and_then(|model| log.config.context.safe_zone_tokens(model).ok());
        let mut totals = LogTotals::default();
        messages
            .iter()
            .filter_map(|message| message.llm_metadata.as_deref())
            .for_each(|reply| totals.add_reply(reply));
        totals.add_breaks(&breaks);
        let requests = to_timeline_requests(&outlines, &replies, &breaks);
        Ok(Self {
            note: log.imported_note(),
            requests,
            totals,
            columns,
            zone,
            log,
        })
    }

    /// Draws all requests as SVG. If there are many, several share a column. `links` is the URL
    /// prefix of a request's page, to which the request's number is appended.
    pub(crate) fn draw_overview(&self, links: &str) -> String {
        self.draw(
            &RequestColumn::combine(&self.columns, MAX_COLUMNS),
            links,
            false,
        )
    }

    /// Draws the requests at these positions as SVG. Every column is wide enough to be clicked.
    pub(crate) fn draw_zoomed(&self, range: std::ops::Range<usize>, links: &str) -> String {
        let columns = self.columns.get(range).unwrap_or_default();
        self.draw(columns, links, true)
    }

    fn draw(&self, columns: &[RequestColumn], links: &str, zoomed: bool) -> String {
        let frame = PictureOptions {
            links: Some(links),
            zone: self.zone,
            zoomed,
        };
        draw_picture(&self.log.conversation.name, columns, &frame)
    }

    /// Describes all requests in one line.
    pub(crate) fn summary(&self) -> String {
        summarize_columns(&self.columns)
    }

    /// True if the picture of all requests combines several in a column.
    pub(crate) fn is_combined(&self) -> bool {
        self.columns.len() > MAX_COLUMNS
    }

    /// Reads one request, or returns `None` if there is no such request. `page` is the first
    /// segment and the number of segments to read; without a first segment, the page with the
    /// first new segment is read.
    pub(crate) async fn load_request(
        &self,
        number: u64,
        page: (Option<usize>, usize),
        masker: &Masker,
    ) -> Result<Option<RequestDetails>, PageError> {
        let log = &self.log;
        let position = number
            .checked_sub(1)
            .and_then(|index| usize::try_from(index).ok());
        let Some(request) = position.and_then(|index| self.requests.get(index)) else {
            return Ok(None);
        };
        let is_inline = request.tokens <= MAX_INLINE_BODY_TOKENS;
        let sent = log.sent_request(Some(number)).await?;
        let body = match (&self.note, is_inline) {
            (Some(_), _) => RequestBody::Unknown,
            (None, false) => RequestBody::OwnPage,
            (None, true) => {
                let body = log.body_of_request(&sent, None)?;
                RequestBody::Inline(String::from_utf8_lossy(&body).into_owned())
            }
        };
        let now = haft_inspect::to_readable(sent);
        let before = if number > 1 {
            Some(log.request(Some(number - 1)).await?)
        } else {
            None
        };
        let old = before.as_ref().map_or(&[][..], |before| &before.segments);
        let kept = old
            .iter()
            .zip(&now.segments)
            .take_while(|(old, new)| old.hash == new.hash)
            .count();
        let (from, size) = page;
        let first_new = kept.min(now.segments.len().saturating_sub(1));
        let from = from.unwrap_or(first_new / size * size);
        Ok(Some(RequestDetails {
            api: now.summary.api,
            request: request.clone(),
            tools: now
                .tools
                .iter()
                .map(|tool| (tool.name.clone(), tool.description.clone()))
                .collect(),
            tool_tokens: now.summary.tokens.saturating_sub(sum_tokens(&now)),
            all_segments: now.segments.len(),
            kept,
            from,
            segments: describe_segments(&now, from, size, kept, masker),
            difference: before
                .as_ref()
                .map(|before| RequestDiff::new(before, &now, masker).to_text(true)),
            body,
        }))
    }

    /// Returns the body of a request as sent.
    pub(crate) async fn load_body(&self, number: u64) -> Result<String, PageError> {
        let body = self.log.body(Some(number), None).await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

impl LogTotals {
    fn add_reply(&mut self, reply: &LlmMetadata) {
        let usage = reply.usage();
        self.usage += usage;
        self.replies += usize::from(usage != Usage::default());
        if let Some(cost) = compute_reply_cost(reply) {
            *self.cost.get_or_insert(0.0) += cost;
            self.priced += 1;
        }
    }

    fn add_breaks(&mut self, breaks: &[PrefixBreakReport]) {
        self.breaks = breaks.len();
        let prices = breaks.iter().map(PrefixBreakReport::price);
        self.break_tokens = prices.clone().map(|price| price.tokens).sum();
        self.break_cost = prices.map(|price| price.cost).sum();
    }
}

fn sum_tokens(request: &LoggedRequest) -> u64 {
    request
        .segments
        .iter()
        .map(|segment| u64::from(segment.tokens))
        .sum()
}

/// Joins the requests with their replies and breaks, both in the order of the requests.
fn to_timeline_requests(
    outlines: &[RequestOutline],
    replies: &[Option<&LlmMetadata>],
    breaks: &[PrefixBreakReport],
) -> Vec<TimelineRequest> {
    let mut breaks = breaks.iter().peekable();
    let requests = outlines.iter().zip(replies).map(|(outline, reply)| {
        let summary = &outline.summary;
        let broken = breaks.next_if(|one| one.request == summary.number);
        TimelineRequest {
            number: summary.number,
            sent_at: summary.sent_at,
            model: summary.model.clone(),
            tokens: summary.tokens,
            reply: reply.map(|reply| ReplyFigures {
                usage: reply.usage(),
                cost: compute_reply_cost(reply),
            }),
            broken: broken.map(to_prefix_break),
        }
    });
    requests.collect()
}

fn to_prefix_break(broken: &PrefixBreakReport) -> PrefixBreak {
    let price = broken.price();
    let first = &broken.found.first;
    PrefixBreak {
        cause: broken.cause_text(),
        place: text!(
            "serve-break-place",
            at = broken.kept + 1,
            owner = localize_text(&first.owner),
            message = first.message.short_id()
        ),
        tokens: price.tokens,
        cost: price.cost,
        is_forecast: price.basis == PriceBasis::Forecast,
    }
}

fn describe_segments(
    now: &LoggedRequest,
    from: usize,
    size: usize,
    kept: usize,
    masker: &Masker,
) -> Vec<SegmentDetails> {
    let shown = now.segments.iter().enumerate().skip(from).take(size);
    let details = shown.map(|(index, segment)| {
        let message = &segment.message;
        SegmentDetails {
            layer: localize_text(segment.layer),
            owner: localize_text(&segment.owner),
            tokens: segment.tokens,
            kept: index < kept,
            boundary: segment.boundary,
            opening: message_opening(message, masker),
            text: full_message_text(message, masker),
        }
    });
    details.collect()
}

/// True if another program sent the requests of a conversation: the metadata names an agent but no
/// parent conversation.
pub(super) fn is_recorded(metadata: &Metadata) -> bool {
    metadata.contains_key("agent") && !metadata.contains_key("parent")
}
