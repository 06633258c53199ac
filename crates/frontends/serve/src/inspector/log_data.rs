//! The data of the timeline and of the pages of single requests, read from the request log.

use haft_context::PriceBasis;
use haft_inspect::{
    PictureOptions, PrefixBreakReport, RequestColumn, RequestDiff, RequestLogReader, RequestView,
    draw_picture, find_breaks, full_message_text, message_opening,
};
use haft_store::{LoggedRequest, RequestOutline};
use haft_text::Masker;
use haft_types::{Api, Layer, LlmMetadata, Metadata, Timestamp};

use crate::{PageError, localize_text};

/// All requests of a conversation.
pub(crate) struct RequestTimeline {
    /// A note that the requests were rebuilt from the messages of an imported conversation.
    pub(crate) note: Option<String>,
    /// The drawing of the timeline, as SVG.
    pub(crate) picture: String,
    /// The requests, in order.
    pub(crate) requests: Vec<TimelineRequest>,
}

/// A request of a timeline.
pub(crate) struct TimelineRequest {
    /// The request's number, starting at 1.
    pub(crate) number: u64,
    pub(crate) sent_at: Timestamp,
    pub(crate) model: String,
    /// The estimated number of tokens.
    pub(crate) tokens: u64,
    /// The metadata of the reply to this request.
    pub(crate) reply: Option<LlmMetadata>,
    /// The break of the cached prefix that this request caused.
    pub(crate) broken: Option<PrefixBreak>,
}

/// A break of the cached prefix: the tokens after it are sent again at full price.
#[derive(Clone)]
pub(crate) struct PrefixBreak {
    /// The cause, in the user's language.
    pub(crate) cause: String,
    /// The number of tokens that were sent again.
    pub(crate) tokens: u64,
    /// The extra cost, in dollars.
    pub(crate) cost: Option<f64>,
    /// True if the figures are a forecast, because no bill exists for the request.
    pub(crate) is_forecast: bool,
}

/// A request in detail.
pub(crate) struct RequestDetails {
    /// A note that the request was rebuilt from the messages of an imported conversation.
    pub(crate) note: Option<String>,
    /// The number of requests in the conversation.
    pub(crate) requests: u64,
    /// The API of the provider.
    pub(crate) api: Api,
    pub(crate) request: TimelineRequest,
    /// The segments of the request, in order.
    pub(crate) segments: Vec<SegmentDetails>,
    /// The difference to the previous request, as text.
    pub(crate) difference: Option<String>,
    /// The body as sent, if the request log has it.
    pub(crate) body: Option<String>,
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

/// Reads all requests of a log. `links` is the URL prefix of a request's page, to which the
/// request's number is appended. With `zoomed`, every column is wide enough to be clicked.
pub(super) async fn load_timeline(
    log: &RequestLogReader,
    links: &str,
    zoomed: bool,
) -> Result<RequestTimeline, PageError> {
    let outlines = log.outlines().await?;
    let messages = log.messages().await?;
    let models = log.find_models(&outlines)?;
    let replies = log.reply_metadata(&outlines, &messages);
    let breaks = find_breaks(&outlines, &models, &messages, &replies);
    let mut columns = RequestColumn::from_log(&outlines, &replies, &models, &breaks);
    if log.imported.is_some() {
        // The cached share relates to all tokens sent, but a column shows only the rebuilt part.
        columns
            .iter_mut()
            .for_each(RequestColumn::remove_cache_line);
    }
    // The safe zone of other agents is unknown.
    let own = !is_recorded(&log.conversation.metadata) && log.imported.is_none();
    let zone = models
        .last()
        .filter(|_| own)
        .and_then(|model| log.config.context.safe_zone_tokens(model).ok());
    let frame = PictureOptions {
        links: Some(links),
        zone,
        zoomed,
    };
    let requests = outlines
        .iter()
        .zip(&replies)
        .map(|(outline, reply)| to_timeline_request(outline, *reply, &breaks));
    Ok(RequestTimeline {
        note: log.imported_note(),
        picture: draw_picture(&log.conversation.name, &columns, &frame),
        requests: requests.collect(),
    })
}

/// Reads one request, or returns `None` if there is no such request.
pub(super) async fn load_request(
    log: &RequestLogReader,
    number: u64,
    masker: &Masker,
) -> Result<Option<RequestDetails>, PageError> {
    if !(1..=log.requests).contains(&number) {
        return Ok(None);
    }
    let now = log.request(Some(number)).await?;
    let before = if number > 1 {
        Some(log.request(Some(number - 1)).await?)
    } else {
        None
    };
    let outlines = log.outlines().await?;
    let messages = log.messages().await?;
    let models = log.find_models(&outlines)?;
    let replies = log.reply_metadata(&outlines, &messages);
    let breaks = find_breaks(&outlines, &models, &messages, &replies);
    let position = outlines
        .iter()
        .position(|one| one.summary.number == number)
        .unwrap_or_default();
    let reply = replies.get(position).copied().flatten();
    let broken = breaks.iter().find(|one| one.request == number);
    let note = log.imported_note();
    let body = match note {
        Some(_) => None,
        None => Some(log.body(Some(number), None).await?),
    };
    Ok(Some(RequestDetails {
        requests: log.requests,
        api: now.summary.api,
        request: TimelineRequest {
            number,
            sent_at: now.summary.sent_at,
            model: now.summary.model.clone(),
            tokens: now.summary.tokens,
            reply: reply.cloned(),
            broken: broken.map(to_prefix_break),
        },
        segments: describe_tools(&now, before.as_ref(), masker)
            .into_iter()
            .chain(describe_segments(&now, before.as_ref(), masker))
            .collect(),
        difference: before
            .as_ref()
            .map(|before| RequestDiff::new(before, &now, masker).to_text(true)),
        body: body.map(|body| String::from_utf8_lossy(&body).into_owned()),
        note,
    }))
}

fn to_timeline_request(
    outline: &RequestOutline,
    reply: Option<&LlmMetadata>,
    breaks: &[PrefixBreakReport],
) -> TimelineRequest {
    let summary = &outline.summary;
    let broken = breaks.iter().find(|one| one.request == summary.number);
    TimelineRequest {
        number: summary.number,
        sent_at: summary.sent_at,
        model: summary.model.clone(),
        tokens: summary.tokens,
        reply: reply.cloned(),
        broken: broken.map(to_prefix_break),
    }
}

fn to_prefix_break(broken: &PrefixBreakReport) -> PrefixBreak {
    let price = broken.price();
    PrefixBreak {
        cause: broken.cause_text(),
        tokens: price.tokens,
        cost: price.cost,
        is_forecast: price.basis == PriceBasis::Forecast,
    }
}

/// Describes the tools of a request, which providers receive before the first segment, together
/// with the few tokens that each API adds. Returns `None` if the request has no tools beside its
/// segments.
fn describe_tools(
    now: &LoggedRequest,
    before: Option<&LoggedRequest>,
    masker: &Masker,
) -> Option<SegmentDetails> {
    if now.tools.is_empty() {
        return None;
    }
    let names: Vec<_> = now.tools.iter().map(|tool| tool.name.as_str()).collect();
    let text = serde_json::to_string_pretty(&now.tools).unwrap_or_default();
    let tokens = RequestView::from_logged(now).tool_tokens();
    Some(SegmentDetails {
        layer: localize_text(Layer::System),
        owner: text!("serve-tools").to_owned(),
        tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
        kept: before.is_some_and(|before| {
            before.tools == now.tools && before.summary.model == now.summary.model
        }),
        boundary: false,
        opening: masker.mask(&names.join(", ")).into_owned(),
        text: masker.mask(&text).into_owned(),
    })
}

fn describe_segments(
    now: &LoggedRequest,
    before: Option<&LoggedRequest>,
    masker: &Masker,
) -> Vec<SegmentDetails> {
    let old = before.map_or(&[][..], |before| &before.segments);
    let kept = old
        .iter()
        .zip(&now.segments)
        .take_while(|(old, new)| old.hash == new.hash)
        .count();
    let details = now.segments.iter().enumerate().map(|(index, segment)| {
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
