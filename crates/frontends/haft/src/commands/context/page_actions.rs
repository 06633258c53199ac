//! The functions that the pages of `haft serve` call for sessions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "postgres")]
use haft_agent::config::Config;
use haft_inspect::message_opening;
#[cfg(feature = "lab")]
use haft_serve::{CompareQuery, PolicyTable};
use haft_serve::{
    EditQuery, EditQuote, EditableMessages, EditableQuery, Inspector, InspectorActions, NextQuery,
    NextRequestDetails, PageAction, PageComputations, PageEdit, PageError, PageRuns,
};
use haft_store::{Conversation, Store};
use haft_text::format_thousands;

use super::LookArgs;
use super::edit::{self, EditKind, EditOptions, PreparedEdit, SummariseArgs};
use super::next;
use super::opened_log::print_note;
#[cfg(feature = "lab")]
use super::replay::{self, BodyComparison, ReplayArgs};
use crate::cli::options::Common;
#[cfg(feature = "imports")]
use crate::commands::conversations::find_session_roots;
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
        actions: build_actions(haft, common),
        environment: settings.environment().clone(),
        config: settings.config.clone(),
        notify: print_note,
        store,
        masker: haft.masker(),
        #[cfg(feature = "imports")]
        session_roots: find_session_roots(haft.environment()),
        form_token,
        runs,
        computations: PageComputations::default(),
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

fn build_actions(haft: &Haft, common: &Common) -> InspectorActions {
    let source = SessionSource {
        haft: haft.clone(),
        common: common.clone(),
    };
    let messages = {
        let source = source.clone();
        wrap_session_action(move |query| list_editable_messages(source.clone(), query))
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
    Arc::new(move |input| {
        let work = work.clone();
        Box::pin(async move {
            let runtime = tokio::runtime::Handle::current();
            tokio::task::spawn_blocking(move || runtime.block_on(work(input)))
                .await?
                .map_err(|error| to_page_error(&error))
        })
    })
}

/// The command helper and the flags with which pages open sessions.
#[derive(Clone)]
struct SessionSource {
    haft: Haft,
    common: Common,
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
    query: EditableQuery,
) -> anyhow::Result<EditableMessages> {
    let how = make_edit_options(source.common, &query.conversation);
    let rows = edit::list_table_rows(&source.haft, &how, query.from, query.count).await?;
    Ok(EditableMessages {
        headings: edit::table_headings().to_vec(),
        rows: rows.rows,
        all: rows.all,
        edits: rows.edits,
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
    let watch = query.watch;
    let args = ReplayArgs {
        policy: query.policies,
        ..ReplayArgs::for_conversation(query.conversation.id.to_string(), source.common)
    };
    let progress = replay::ReplayProgress {
        begin: &|requests| watch.set_total(requests),
        advance: &|| {
            watch.advance(1);
            watch.is_wanted()
        },
        // The pages don't show whether bodies are equal, and comparing them takes most of the time.
        bodies: BodyComparison::Skip,
    };
    let compared = replay::compare_policies(&source.haft, &args, &progress).await?;
    Ok(PolicyTable {
        rows: replay::table_rows(&compared.outcomes).collect(),
        title: compared.title,
        outcomes: compared.outcomes,
        model: compared.encoding.spec,
        source: compared.source,
    })
}
