//! The functions that the pages of `haft serve` call for the request log and for sessions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "postgres")]
use haft_agent::config::Config;
#[cfg(feature = "lab")]
use haft_serve::{CompareQuery, PolicyTable};
use haft_serve::{
    EditQuery, EditQuote, EditableMessages, Inspector, InspectorActions, NextQuery,
    NextRequestDetails, PageAction, PageEdit, PageError, PageRuns, PrefixBreak, RequestDetails,
    RequestQuery, RequestTimeline, SegmentDetails, TimelineQuery, TimelineRequest, is_recorded,
};
use haft_store::{Conversation, LoggedRequest, RequestOutline, Store};
use haft_text::{Masker, format_thousands};
use haft_types::LlmMetadata;

use super::LookArgs;
use super::diff::RequestDiff;
use super::edit::{self, EditKind, EditOptions, PreparedEdit, SummariseArgs};
use super::picture::{self, PictureOptions, RequestColumn};
#[cfg(feature = "lab")]
use super::replay::{self, ReplayArgs};
use super::request_log::RequestLogReader;
use super::text::{full_message_text, message_opening};
use super::why::{PrefixBreakReport, find_breaks};
use super::{next, render};
use crate::cli::options::Common;
#[cfg(feature = "imports")]
use crate::commands::conversations::find_session_roots;
use crate::commands::conversations::part_to_text;
use crate::exit::format_failure;
use crate::haft::{Haft, Settings};
use crate::output::localize_text;

/// Builds the inspector of the conversations in `store`. Without `runs`, its pages only show data.
pub(crate) fn build_inspector(
    haft: &Haft,
    store: Arc<dyn Store>,
    settings: &Settings,
    common: &Common,
    form_token: String,
    runs: Option<PageRuns>,
) -> Inspector {
    Inspector {
        actions: build_actions(haft, &store, settings, common),
        store,
        masker: haft.masker(),
        part_text: part_to_text,
        picture_style: picture::STYLE,
        #[cfg(feature = "imports")]
        session_roots: find_session_roots(haft.environment()),
        form_token,
        runs,
        #[cfg(feature = "postgres")]
        open_queue: make_queue_opener(&settings.config),
        #[cfg(feature = "postgres")]
        queue: tokio::sync::OnceCell::new(),
    }
}

/// Returns a function that connects to the team's queue, or `None` if no server is configured.
#[cfg(feature = "postgres")]
fn make_queue_opener(config: &Config) -> Option<haft_serve::OpenQueue> {
    let url = config.store.url.clone()?;
    let timeout = config.store.lock_timeout();
    Some(Arc::new(move || {
        haft_postgres::TaskQueue::connect(&url, timeout)
    }))
}

fn build_actions(
    haft: &Haft,
    store: &Arc<dyn Store>,
    settings: &Settings,
    common: &Common,
) -> InspectorActions {
    let log = LogSource {
        store: Arc::clone(store),
        settings: settings.clone(),
        masker: haft.masker(),
    };
    let timeline = {
        let log = log.clone();
        wrap_log_action(move |query| load_timeline(log.clone(), query))
    };
    let request = wrap_log_action(move |query| load_request(log.clone(), query));
    let source = SessionSource {
        haft: haft.clone(),
        common: common.clone(),
    };
    let messages = {
        let source = source.clone();
        wrap_session_action(move |conversation| {
            list_editable_messages(source.clone(), conversation)
        })
    };
    let edit = {
        let source = source.clone();
        wrap_session_action(move |query| quote_or_apply_edit(source.clone(), query))
    };
    let next = {
        let source = source.clone();
        wrap_session_action(move |query| load_next_request(source.clone(), query))
    };
    #[cfg(feature = "lab")]
    let compare = wrap_session_action(move |query| compare_policies(source.clone(), query));
    InspectorActions {
        timeline,
        request,
        messages,
        edit,
        next,
        #[cfg(feature = "lab")]
        compare,
    }
}

fn to_page_error(error: &anyhow::Error) -> PageError {
    PageError::Action(format_failure(error))
}

/// Wraps a function that only reads the request log.
fn wrap_log_action<I, O, W>(work: impl Fn(I) -> W + Send + Sync + 'static) -> PageAction<I, O>
where
    W: Future<Output = anyhow::Result<O>> + Send + 'static,
{
    Box::new(move |input| {
        let result = work(input);
        Box::pin(async move { result.await.map_err(|error| to_page_error(&error)) })
    })
}

/// Wraps a function that opens a session. Sessions cannot move between threads, so the function
/// runs on a thread of its own.
fn wrap_session_action<I, O, W>(
    work: impl Fn(I) -> W + Clone + Send + Sync + 'static,
) -> PageAction<I, O>
where
    I: Send + 'static,
    O: Send + 'static,
    W: Future<Output = anyhow::Result<O>>,
{
    Box::new(move |input| {
        let work = work.clone();
        Box::pin(async move {
            let runtime = tokio::runtime::Handle::current();
            tokio::task::spawn_blocking(move || runtime.block_on(work(input)))
                .await?
                .map_err(|error| to_page_error(&error))
        })
    })
}

/// The store and configuration for reading request logs.
#[derive(Clone)]
struct LogSource {
    store: Arc<dyn Store>,
    settings: Settings,
    masker: Masker,
}

/// The command helper and the flags with which pages open sessions.
#[derive(Clone)]
struct SessionSource {
    haft: Haft,
    common: Common,
}

impl LogSource {
    /// Opens the log of a conversation, or returns `None` if it has no requests.
    async fn open(self, conversation: Conversation) -> anyhow::Result<Option<RequestLogReader>> {
        let log =
            RequestLogReader::for_conversation(self.store, self.settings, conversation).await?;
        Ok(Some(log).filter(|log| log.requests > 0))
    }
}

async fn load_timeline(
    source: LogSource,
    query: TimelineQuery,
) -> anyhow::Result<Option<RequestTimeline>> {
    let Some(log) = source.open(query.conversation).await? else {
        return Ok(None);
    };
    let outlines = log.outlines().await?;
    let messages = log.messages().await?;
    let models = log.find_models(&outlines)?;
    let replies = log.reply_metadata(&outlines, &messages);
    let breaks = find_breaks(&outlines, &models, &messages);
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
        .and_then(|model| log.settings.config.context.safe_zone_tokens(model).ok());
    let frame = PictureOptions {
        links: Some(&query.links),
        zone,
        zoomed: query.zoomed,
    };
    let requests = outlines
        .iter()
        .zip(&replies)
        .map(|(outline, reply)| to_timeline_request(outline, *reply, &breaks));
    Ok(Some(RequestTimeline {
        note: log.imported_note(),
        picture: picture::draw_picture(&log.conversation.name, &columns, &frame),
        requests: requests.collect(),
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
    let (tokens, cost) = broken.price();
    PrefixBreak {
        cause: broken
            .cause
            .map_or_else(|| text!("context-why-no-cause").to_owned(), localize_text),
        tokens,
        cost,
    }
}

async fn load_request(
    source: LogSource,
    query: RequestQuery,
) -> anyhow::Result<Option<RequestDetails>> {
    let number = query.number;
    let masker = source.masker.clone();
    let log = source.open(query.conversation).await?;
    let Some(log) = log.filter(|log| (1..=log.requests).contains(&number)) else {
        return Ok(None);
    };
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
    let breaks = find_breaks(&outlines, &models, &messages);
    let position = outlines
        .iter()
        .position(|one| one.summary.number == number)
        .unwrap_or_default();
    let reply = replies.get(position).copied().flatten();
    let broken = breaks.iter().find(|one| one.request == number);
    let note = log.imported_note();
    let body = match note {
        Some(_) => None,
        None => Some(render::load_logged_body(&log, Some(number), None).await?),
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
        segments: describe_segments(&now, before.as_ref(), &masker),
        difference: before
            .as_ref()
            .map(|before| RequestDiff::new(before, &now, &masker).to_text(true)),
        body: body.map(|body| String::from_utf8_lossy(&body).into_owned()),
        note,
    }))
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

/// Returns the folder of a conversation's project, or `None` if it doesn't exist.
fn find_project_folder(conversation: &Conversation) -> Option<PathBuf> {
    Some(PathBuf::from(&conversation.namespace))
        .filter(|folder| folder.is_absolute() && Path::is_dir(folder))
}

fn make_edit_options(common: Common, conversation: &Conversation) -> EditOptions {
    EditOptions {
        conversation: Some(conversation.id.to_string()),
        cwd: find_project_folder(conversation),
        common,
        ..EditOptions::default()
    }
}

async fn list_editable_messages(
    source: SessionSource,
    conversation: Conversation,
) -> anyhow::Result<EditableMessages> {
    let how = make_edit_options(source.common, &conversation);
    let (rows, edits) = edit::list_table_rows(&source.haft, &how).await?;
    Ok(EditableMessages {
        headings: edit::table_headings().to_vec(),
        rows,
        edits,
    })
}

async fn quote_or_apply_edit(source: SessionSource, query: EditQuery) -> anyhow::Result<EditQuote> {
    let SessionSource { haft, common } = source;
    let how = make_edit_options(common, &query.conversation);
    let mut prepared = match query.edit {
        PageEdit::Undo => PreparedEdit::prepare_undo(&haft, &how, 1).await?,
        PageEdit::Drop(ids) => {
            PreparedEdit::prepare_edit(&haft, &how, EditKind::Drop, &ids).await?
        }
        PageEdit::Pin(ids) => PreparedEdit::prepare_edit(&haft, &how, EditKind::Pin, &ids).await?,
        PageEdit::Mask(ids) => {
            PreparedEdit::prepare_edit(&haft, &how, EditKind::Mask, &ids).await?
        }
        PageEdit::Restore(ids) => {
            PreparedEdit::prepare_edit(&haft, &how, EditKind::Restore, &ids).await?
        }
        PageEdit::Summarize {
            range,
            text,
            ask_model,
        } => {
            let args = SummariseArgs {
                ids: vec![range],
                text,
                no_model: !ask_model,
                how,
            };
            PreparedEdit::prepare_summary(&haft, &args).await?
        }
    };
    if query.keep {
        prepared.apply().await?;
    }
    Ok(EditQuote {
        text: prepared.description(),
        summary: prepared.summary_text().map(str::to_owned),
        quote: *prepared.quote(),
    })
}

async fn load_next_request(
    source: SessionSource,
    query: NextQuery,
) -> anyhow::Result<NextRequestDetails> {
    let SessionSource { haft, common } = source;
    let look = LookArgs {
        conversation: Some(query.conversation.id.to_string()),
        input: query.input,
        cwd: find_project_folder(&query.conversation),
        quiet: true,
        common,
        ..LookArgs::default()
    };
    let next = next::build_next_request(&haft, &look).await?;
    let masker = haft.masker();
    let request = &next.assembly.request;
    let segments = request.segments.iter().map(|one| {
        [
            localize_text(one.layer),
            localize_text(one.owner),
            format_thousands(one.entry.tokens),
            message_opening(&one.entry.message, &masker),
        ]
    });
    Ok(NextRequestDetails {
        segments: segments.collect(),
        body: String::from_utf8_lossy(&next.encoding.encode_request(request)).into_owned(),
    })
}

#[cfg(feature = "lab")]
async fn compare_policies(
    source: SessionSource,
    query: CompareQuery,
) -> anyhow::Result<PolicyTable> {
    let args = ReplayArgs {
        policy: query.policies,
        ..ReplayArgs::for_conversation(query.conversation.id.to_string(), source.common)
    };
    let compared = replay::compare_policies(&source.haft, &args).await?;
    Ok(PolicyTable {
        rows: replay::table_rows(&compared.outcomes).collect(),
        title: compared.title,
        outcomes: compared.outcomes,
        model: compared.encoding.spec,
        source: compared.source,
    })
}
