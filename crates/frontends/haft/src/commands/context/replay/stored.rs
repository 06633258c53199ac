//! Reads a recording from the store: conversations of haft from the request log, imported or
//! recorded conversations from their messages.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use haft_context::{Documents, Reminders};
use haft_inspect::{
    collect_offered_tools, declare_unknown_model, find_breaks, rebuild_request, recorded_model,
};
use haft_lab::{ImaginedReminders, RecordedConversation, RecordedStep, RecordedSurroundings};
use haft_model::{BodyEncoding, O200k};
use haft_store::{ChunkMaximum, LoggedRequest, LoggedSegment, RequestOutline};
use haft_types::{Entry, Layer, SentSegment, ToolProtocol};

use super::super::opened_log::open_any_log;
use super::{BodyComparison, ReplayArgs};
use crate::exit::usage_error;
use crate::haft::Haft;

/// Reads the conversation, and the encoding of its last request if the request was recorded.
pub(super) async fn read_stored(
    haft: &Haft,
    args: &ReplayArgs,
    compared: BodyComparison,
) -> anyhow::Result<(RecordedConversation, Option<BodyEncoding>)> {
    let log = open_any_log(haft, args.conversation.as_deref(), &args.common).await?;
    let messages = log.messages().await?;
    let outlines = log.outlines().await?;
    let replies = log.reply_metadata(&outlines, &messages);
    let breaks = find_breaks(&outlines, &log.find_models(&outlines)?, &messages, &replies);
    let breaks = Some(breaks.len());
    let foreign = log.imported.is_some()
        || outlines
            .iter()
            .all(|outline| recorded_model(outline.encoding.as_deref()).is_some());
    if foreign {
        let imagined = ImaginedReminders {
            tokens: args.reminders.tokens,
            changes: args.reminders.changes,
            from_first: false,
        };
        let recorded = outlines
            .last()
            .and_then(|last| recorded_model(last.encoding.as_deref()));
        let encoding = match recorded {
            Some(spec) => {
                let name = spec.full_name();
                let declared = declare_unknown_model(haft.environment(), &name, spec.api)?;
                let mut encoding = declared.body_encoding();
                encoding.spec = spec;
                Some(encoding)
            }
            None => None,
        };
        let name = log.conversation.name;
        let read = RecordedConversation::from_messages(name, messages, imagined, &O200k)?;
        let read = read.ok_or_else(|| usage_error(text!("replay-own-no-requests")))?;
        return Ok((RecordedConversation { breaks, ..read }, encoding));
    }
    let made: Vec<_> = replies.into_iter().flatten().collect();
    let models = made.iter().map(|made| made.model_name.clone()).collect();
    let counted = made
        .into_iter()
        .map(haft_types::LlmMetadata::usage)
        .collect();
    let places: HashMap<_, _> = messages
        .iter()
        .enumerate()
        .map(|(index, one)| (one.message_id, index))
        .collect();
    let history = messages
        .into_iter()
        .map(|message| Entry::new(message, &O200k))
        .collect();
    let mut steps = Vec::new();
    let mut asides = Vec::<RecordedSurroundings>::new();
    let mut bodies = Vec::new();
    let mut last: Option<BodyEncoding> = None;
    let begun = outlines.first().map(|outline| outline.summary.sent_at);
    let mut newest_places = ChunkMaximum::default();
    let mut before: Option<&RequestOutline> = None;
    for outline in &outlines {
        let since = begun.and_then(|begun| {
            Duration::try_from(outline.summary.sent_at.duration_since(begun)).ok()
        });
        let newest = newest_places.find(&outline.segments, |segment| {
            places.get(&segment.message).copied()
        });
        steps.push(RecordedStep {
            messages: newest.map_or(0, |newest| newest + 1),
            at: since.unwrap_or_default(),
        });
        // Reading a request reads all its messages, so it is read only if it is needed.
        let unchanged = before
            .replace(outline)
            .is_some_and(|before| has_equal_surroundings(before, outline));
        if let Some(aside) = asides
            .last()
            .filter(|_| unchanged && compared != BodyComparison::Compare)
        {
            asides.push(aside.clone());
            continue;
        }
        let logged = log.request(Some(outline.summary.number)).await?;
        let encoding = log.find_encoding(logged.encoding.as_deref(), &logged.summary.model)?;
        let protocol = encoding.spec.tool_protocol;
        if compared == BodyComparison::Compare {
            bodies.push(
                encoding
                    .encode_request(&rebuild_request(&logged, protocol))
                    .to_vec(),
            );
        }
        let aside = build_surroundings(&logged, protocol, asides.last());
        asides.push(aside);
        last = Some(encoding);
    }
    let encoding = last.ok_or_else(|| usage_error(text!("replay-own-no-requests")))?;
    Ok((
        RecordedConversation {
            name: log.conversation.name,
            history,
            steps,
            surroundings: asides,
            counted,
            breaks,
            models,
            bodies,
        },
        Some(encoding),
    ))
}

/// True if two requests differ only in the conversation's messages.
fn has_equal_surroundings(before: &RequestOutline, now: &RequestOutline) -> bool {
    let beside = |outline: &'_ RequestOutline| {
        let is_beside = |segment: &&SentSegment| match segment.layer {
            Layer::System | Layer::Documents | Layer::Reminders => true,
            Layer::History | Layer::Current => false,
        };
        let first = outline.segments.get(0).map(|segment| segment.hash);
        let beside = outline.segments.iter().filter(is_beside);
        let beside: Vec<_> = beside.map(|one| (one.layer, one.hash)).collect();
        (first, beside)
    };
    before.tools == now.tools
        && before.encoding == now.encoding
        && before.summary.model == now.summary.model
        && beside(before) == beside(now)
}

/// Returns the contents of a request besides the conversation's messages, such as the tools.
/// Unchanged tools are shared with the previous request.
fn build_surroundings(
    logged: &LoggedRequest,
    protocol: ToolProtocol,
    before: Option<&RecordedSurroundings>,
) -> RecordedSurroundings {
    let of = |layer: Layer| {
        logged
            .segments
            .iter()
            .filter(move |segment| segment.layer == layer)
    };
    let entry = |segment: &LoggedSegment| {
        Arc::new(Entry {
            message: segment.message.clone(),
            hash: segment.hash,
            tokens: segment.tokens,
        })
    };
    let texts: Vec<_> = of(Layer::Reminders)
        .map(|one| (one.owner.as_str(), one.message.joined_text()))
        .collect();
    let offered = match before {
        Some(before) if before.tools.specs == logged.tools => Arc::clone(&before.tools),
        Some(_) | None => collect_offered_tools(logged, protocol),
    };
    // Requests of views that rewrite all messages have no system layer, and the log lacks the
    // originals.
    let system = of(Layer::System)
        .next()
        .or(logged.segments.first())
        .map(entry);
    let documents =
        Documents::from_segments(of(Layer::Documents).map(|one| (one.owner.as_str(), entry(one))));
    RecordedSurroundings {
        system: system.unwrap_or_else(|| haft_context::system_entry("", &O200k)),
        tools: offered,
        documents: Some(documents),
        reminders: Reminders::from_segments(
            texts.iter().map(|(owner, text)| (*owner, text.as_str())),
        ),
        cache_key: logged.cache_key.clone(),
    }
}
