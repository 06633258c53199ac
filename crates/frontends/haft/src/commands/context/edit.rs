//! `haft context edit`: edits the context message by message, and prints the price of every edit.
//!
//! The price is printed before an edit is stored. The conversation is locked meanwhile, so a
//! conversation that is in use cannot be edited.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use haft_agent::{InspectionMode, WallClock};
use haft_context::{ContextEdit, EditError, EditReach, EditTargets, Quote};
use haft_engine::{CacheState, ContextLine, EditContextError, EditEffect, Session};
use haft_inspect::{Countable, format_count};
use haft_store::{Store, WriteLock};
use haft_text::{format_dollars, format_thousands};
use haft_types::{Clock, MessageId, ModelSpec, Role, Timestamp};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::cli::options::{Common, OutputFormat, RunArgs};
use crate::commands::{conversations, run};
use crate::exit::usage_error;
use crate::haft::{Haft, Settings};
use crate::output::{self, Printer, TextTable};

#[derive(Debug, Subcommand)]
pub(crate) enum EditCommand {
    /// List every message with its tokens, age, cache state, and the price of removing it.
    List(EditOptions),
    /// Drop these messages; a call goes with its results, a result with its call.
    Drop(EditIds),
    /// Pin these messages: never prune, compress or archive them.
    Pin(EditIds),
    /// Mask these messages: send only their names.
    Mask(EditIds),
    /// Restore these messages: send them as they are.
    Restore(EditIds),
    /// Summarize these messages: send a summary in their place.
    ///
    /// The summary model writes it. A summary that lacks what must be kept is replaced by that,
    /// verbatim.
    #[command(visible_alias = "summarize")]
    Summarise(SummariseArgs),
    /// Undo the newest edits.
    Undo(UndoEditsArgs),
}

/// Selects the conversation to edit and the output format.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct EditOptions {
    /// An id, the beginning of one, or a name; the current conversation when absent.
    #[arg(long, value_name = "CONVERSATION")]
    pub(crate) conversation: Option<String>,

    /// The model that would be asked next, as `provider/model`.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// Only show what it would cost.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// The folder of the conversation's project, if haft was started in another one.
    #[arg(skip)]
    pub(crate) cwd: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct EditIds {
    /// Ids of messages, short or full, or ranges `A..B` with both ends.
    #[arg(required = true, value_name = "ID|A..B")]
    pub(crate) ids: Vec<String>,

    #[command(flatten)]
    pub(crate) how: EditOptions,
}

#[derive(Debug, Args)]
pub(crate) struct SummariseArgs {
    /// The range, both ends included; calls and results stay together.
    #[arg(required = true, value_name = "A..B")]
    pub(crate) ids: Vec<String>,

    /// The text of the summary.
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,

    /// Ask no model: keep only what must be kept, verbatim.
    #[arg(long, conflicts_with = "text")]
    pub(crate) no_model: bool,

    #[command(flatten)]
    pub(crate) how: EditOptions,
}

#[derive(Debug, Args)]
pub(crate) struct UndoEditsArgs {
    /// The number of edits to undo.
    #[arg(default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) number: u32,

    #[command(flatten)]
    pub(crate) how: EditOptions,
}

pub(super) async fn run(haft: &Haft, command: &EditCommand) -> anyhow::Result<()> {
    let (how, prepared) = match command {
        EditCommand::List(how) => return print_message_list(haft, how).await,
        EditCommand::Drop(args) => (
            &args.how,
            PreparedEdit::prepare_edit(haft, &args.how, EditKind::Drop, &args.ids).await?,
        ),
        EditCommand::Pin(args) => (
            &args.how,
            PreparedEdit::prepare_edit(haft, &args.how, EditKind::Pin, &args.ids).await?,
        ),
        EditCommand::Mask(args) => (
            &args.how,
            PreparedEdit::prepare_edit(haft, &args.how, EditKind::Mask, &args.ids).await?,
        ),
        EditCommand::Restore(args) => (
            &args.how,
            PreparedEdit::prepare_edit(haft, &args.how, EditKind::Restore, &args.ids).await?,
        ),
        EditCommand::Summarise(args) => {
            (&args.how, PreparedEdit::prepare_summary(haft, args).await?)
        }
        EditCommand::Undo(args) => (
            &args.how,
            PreparedEdit::prepare_undo(haft, &args.how, args.number).await?,
        ),
    };
    prepared.print_and_apply(how).await
}

/// The kinds of edits that apply to messages chosen one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EditKind {
    Drop,
    Pin,
    Mask,
    Restore,
}

impl EditKind {
    fn to_context_edit(self, ids: &[MessageId]) -> ContextEdit {
        let ids = ids.iter().copied().collect();
        match self {
            Self::Drop => ContextEdit::Drop { ids },
            Self::Pin => ContextEdit::Pin { ids },
            Self::Mask => ContextEdit::Mask { ids },
            Self::Restore => ContextEdit::Restore { ids },
        }
    }
}

/// An edit with its price, not yet applied.
pub(super) struct PreparedEdit {
    open: EditedConversation,
    edit: ContextEdit,
    chosen: EditTargets,
    notes: Vec<String>,
    news: EditEffect,
}

impl PreparedEdit {
    pub(super) async fn prepare_edit(
        haft: &Haft,
        how: &EditOptions,
        kind: EditKind,
        ids: &[String],
    ) -> anyhow::Result<Self> {
        let open = Box::pin(EditedConversation::open_locked(haft, how)).await?;
        let reach = if kind == EditKind::Mask {
            EditReach::Message
        } else {
            EditReach::Block
        };
        let chosen = open
            .session
            .resolve_messages(ids, reach)
            .map_err(|error| to_usage_error(&error))?;
        Self::new(open, kind.to_context_edit(&chosen.ids), chosen, Vec::new()).await
    }

    pub(super) async fn prepare_undo(
        haft: &Haft,
        how: &EditOptions,
        edits: u32,
    ) -> anyhow::Result<Self> {
        let open = Box::pin(EditedConversation::open_locked(haft, how)).await?;
        let chosen = EditTargets {
            ids: Vec::new(),
            along: Vec::new(),
        };
        Self::new(open, ContextEdit::Undo { edits }, chosen, Vec::new()).await
    }

    pub(super) async fn prepare_summary(haft: &Haft, args: &SummariseArgs) -> anyhow::Result<Self> {
        let mut open = Box::pin(EditedConversation::open_locked(haft, &args.how)).await?;
        let chosen = open
            .session
            .resolve_messages(&args.ids, EditReach::Span)
            .map_err(|error| to_usage_error(&error))?;
        let mut notes = Vec::new();
        let text = if let Some(text) = &args.text {
            text.clone()
        } else {
            // Quoting a placeholder first avoids asking the model for a summary whose edit would be
            // refused.
            let probe = ContextEdit::Summarise {
                ids: chosen.ids.clone(),
                text: "…".to_owned(),
            };
            open.session
                .quote_edit(&probe)
                .await
                .map_err(to_context_error)?;
            let made = if args.no_model || args.how.dry_run {
                open.session.summarize_without_model(&chosen.ids)
            } else {
                let mut printer = Printer::new(OutputFormat::Text, false);
                open.session
                    .summarize_messages(&chosen.ids, &mut printer, &CancellationToken::new())
                    .await
            };
            let made = made.map_err(to_context_error)?;
            if args.how.dry_run && !args.no_model {
                notes.push(text!("edits-no-model").to_owned());
            } else if let Some(why) = made.without_model.filter(|_| !args.no_model) {
                notes.push(text!("edits-no-model-because", why));
            }
            made.text
        };
        let edit = ContextEdit::Summarise {
            ids: chosen.ids.clone(),
            text,
        };
        Self::new(open, edit, chosen, notes).await
    }

    async fn new(
        mut open: EditedConversation,
        edit: ContextEdit,
        chosen: EditTargets,
        notes: Vec<String>,
    ) -> anyhow::Result<Self> {
        let news = open
            .session
            .quote_edit(&edit)
            .await
            .map_err(to_context_error)?;
        Ok(Self {
            open,
            edit,
            chosen,
            notes,
            news,
        })
    }

    /// Describes the edit and its price for people.
    pub(super) fn description(&self) -> String {
        edit_to_text(
            &self.edit,
            &self.chosen,
            &self.notes,
            &self.news,
            self.open.session.model(),
        )
    }

    /// Returns the text of the summary, or `None` if the edit is not a summary.
    #[cfg(feature = "serve")]
    pub(super) fn summary_text(&self) -> Option<&str> {
        match &self.edit {
            ContextEdit::Summarise { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns the price of the next request after the edit.
    #[cfg(feature = "serve")]
    pub(super) fn quote(&self) -> &Quote {
        &self.news.quote
    }

    /// Applies the edit, which takes effect with the next request.
    pub(super) async fn apply(&mut self) -> anyhow::Result<()> {
        self.open
            .session
            .edit_context(self.edit.clone())
            .await
            .map_err(to_context_error)?;
        Ok(self.open.store.flush().await?)
    }

    /// Prints the price, then applies the edit unless only the price was requested.
    async fn print_and_apply(mut self, how: &EditOptions) -> anyhow::Result<()> {
        if !how.json {
            output::print_text(&self.description())?;
        }
        if !how.dry_run {
            self.apply().await?;
        }
        if how.json {
            return output::print_json(&json!({
                "conversation_id": self.open.session.conversation().id,
                "edit": self.edit,
                "messages": short_ids(&self.chosen.ids),
                "along": short_ids(&self.chosen.along),
                "quote": quote_to_json(&self.news.quote, self.open.session.model()),
                "in_force": self.news.in_force,
                "applied": !how.dry_run,
                "notes": self.notes,
            }));
        }
        output::print_text_line(if how.dry_run {
            text!("edits-nothing-changed")
        } else if matches!(self.edit, ContextEdit::Undo { .. }) {
            text!("edits-done")
        } else {
            text!("edits-done-undo")
        })
    }
}

/// Converts an error that the user can fix with other arguments into a usage error.
fn to_usage_error(error: &EditError) -> anyhow::Error {
    usage_error(output::hints::explain_error(error))
}

fn to_context_error(error: EditContextError) -> anyhow::Error {
    match error {
        EditContextError::Edit(error) => to_usage_error(&error),
        EditContextError::NotWorthIt => usage_error(error.to_string()),
        EditContextError::Context(_)
        | EditContextError::Store(_)
        | EditContextError::Unreadable(_) => error.into(),
    }
}

/// A conversation opened to list or edit its context.
struct EditedConversation {
    session: Box<Session>,
    store: Arc<dyn Store>,
    /// Keeps other processes from writing to the conversation during an edit.
    _lock: Option<WriteLock>,
}

impl EditedConversation {
    /// Opens the conversation without locking it.
    async fn open_unlocked(haft: &Haft, how: &EditOptions) -> anyhow::Result<Self> {
        let settings = haft.load(&how.common)?;
        let store = settings.open_store()?;
        Self::open(haft, how, &settings, (store, None)).await
    }

    /// Opens the conversation and locks it.
    async fn open_locked(haft: &Haft, how: &EditOptions) -> anyhow::Result<Self> {
        let settings = haft.load(&how.common)?;
        let store = settings.open_store()?;
        let conversation =
            conversations::find_named_or_current(haft, store.as_ref(), how.conversation.as_deref())
                .await?;
        let lock = store.lock(&conversation.id).await?;
        Self::open(haft, how, &settings, (store, Some(lock))).await
    }

    async fn open(
        haft: &Haft,
        how: &EditOptions,
        settings: &Settings,
        (store, lock): (Arc<dyn Store>, Option<WriteLock>),
    ) -> anyhow::Result<Self> {
        let conversation =
            conversations::find_named_or_current(haft, store.as_ref(), how.conversation.as_deref())
                .await?;
        let messages = store.messages(&conversation.id).await?;
        let resume = Some(conversation.id.to_string());
        let args = RunArgs {
            model: how.model.clone(),
            resume,
            cwd: how.cwd.clone(),
            ..RunArgs::default()
        };
        let project = haft.project(args.cwd.as_deref())?;
        let plan = run::lower_args(&args, settings, project, None)?;
        let session = settings
            .build_agent()
            .open_for_inspection(
                plan,
                Arc::clone(&store),
                (conversation, messages),
                InspectionMode::WithModel,
            )
            .await?;
        Ok(Self {
            session: Box::new(session),
            store,
            _lock: lock,
        })
    }
}

fn short_ids(ids: &[MessageId]) -> Vec<String> {
    ids.iter().map(|id| id.short_id().to_string()).collect()
}

fn quote_to_json(quote: &Quote, model: &ModelSpec) -> Value {
    json!({
        "tokens": quote.tokens,
        "cost": quote.cost,
        "extra": quote.extra,
        "saved_tokens": quote.saved_tokens(),
        "saved_cost": quote.saved_cost(model),
        "usage": quote.usage,
        "otherwise": quote.otherwise,
    })
}

fn edit_to_text(
    edit: &ContextEdit,
    chosen: &EditTargets,
    notes: &[String],
    news: &EditEffect,
    model: &ModelSpec,
) -> String {
    let messages = format_count(chosen.ids.len(), Countable::Message);
    let mut text = match edit {
        ContextEdit::Drop { .. } => text!("edits-drops", messages),
        ContextEdit::Pin { .. } => text!("edits-pins", messages),
        ContextEdit::Mask { .. } => text!("edits-masks", messages),
        ContextEdit::Restore { .. } => text!("edits-restores", messages),
        ContextEdit::Summarise { .. } => text!("edits-summarises", messages),
        ContextEdit::Undo { edits } => text!(
            "edits-takes-back",
            edits = format_count(*edits as usize, Countable::Edit)
        ),
    };
    // Here and below: writing to a String cannot fail.
    if !chosen.ids.is_empty() {
        const MAX_IDS: usize = 12;
        let ids = short_ids(&chosen.ids);
        let more = if ids.len() > MAX_IDS { " …" } else { "" };
        let _ = write!(text, ": {}{more}", ids[..ids.len().min(MAX_IDS)].join(" "));
    }
    text.push_str(".\n");
    if !chosen.along.is_empty() {
        let along = short_ids(&chosen.along).join(" ");
        let _ = writeln!(text, "{}", text!("edits-along", along));
    }
    if let ContextEdit::Summarise { text: summary, .. } = edit {
        let _ = writeln!(text, "\n{}\n", summary.trim());
    }
    for note in notes {
        let _ = writeln!(text, "{note}");
    }
    text.push_str(&price_text(&news.quote, model));
    text
}

/// Describes the price of the next request and the tokens that later requests save.
fn price_text(quote: &Quote, model: &ModelSpec) -> String {
    let mut text = if quote.tokens == 0 {
        text!("edits-nothing-to-write").to_owned()
    } else {
        text!("edits-to-write", quote = output::localize_text(quote))
    };
    match (
        quote.saved_tokens(),
        quote
            .usage
            .all_input()
            .saturating_sub(quote.otherwise.all_input()),
    ) {
        (0, 0) => {}
        (0, longer) => text.push_str(&text!("edits-longer", tokens = format_thousands(longer))),
        (saved, _) => {
            let cost = quote
                .saved_cost(model)
                .filter(|cost| *cost >= MIN_AMOUNT_USD);
            let cost = output::cost_suffix(cost);
            text.push_str(&text!(
                "edits-shorter",
                tokens = format_thousands(saved),
                cost
            ));
        }
    }
    text.push('\n');
    text
}

/// Rows of the table of messages, without its headings.
#[cfg(feature = "serve")]
pub(super) struct TableRows {
    pub(super) rows: Vec<Vec<String>>,
    /// The number of messages in the conversation.
    pub(super) all: usize,
    /// The number of edits that are in effect.
    pub(super) edits: usize,
}

/// Returns the table rows of at most `count` messages of a conversation, starting at position
/// `from`.
#[cfg(feature = "serve")]
pub(super) async fn list_table_rows(
    haft: &Haft,
    how: &EditOptions,
    from: usize,
    count: usize,
) -> anyhow::Result<TableRows> {
    let mut open = Box::pin(EditedConversation::open_unlocked(haft, how)).await?;
    let page = open
        .session
        .list_context_page(from, count)
        .await
        .map_err(to_context_error)?;
    let now = WallClock.now();
    Ok(TableRows {
        rows: page
            .lines
            .iter()
            .map(|line| table_cells(line, now))
            .collect(),
        all: page.all,
        edits: open.session.edits().edits_in_force().len(),
    })
}

/// Returns the headings of the table of messages.
pub(super) fn table_headings() -> [&'static str; 10] {
    [
        text!("table-id"),
        text!("table-role"),
        text!("table-layer"),
        text!("table-tokens"),
        text!("table-age"),
        text!("table-cache"),
        text!("table-removing"),
        text!("table-saves"),
        text!("table-edited"),
        text!("table-text"),
    ]
}

fn table_cells(line: &ContextLine, now: Timestamp) -> Vec<String> {
    let removal = line.removal.as_ref();
    vec![
        line.id.short_id().to_string(),
        role_label(line),
        line.layer
            .map_or_else(|| "-".to_owned(), output::localize_text),
        format_thousands(line.tokens),
        format_age(line.at, now),
        output::localize_text(line.cache.map_or("-", cache_name)),
        removal.map_or_else(
            || "-".to_owned(),
            |quote| {
                quote
                    .extra
                    .map_or_else(|| output::localize_text(quote), format_signed)
            },
        ),
        removal.map_or_else(
            || "-".to_owned(),
            |quote| format_thousands(quote.saved_tokens()),
        ),
        line.edited
            .map_or_else(String::new, |edited| output::localize_text(edited.name())),
        line.excerpt.clone(),
    ]
}

async fn print_message_list(haft: &Haft, how: &EditOptions) -> anyhow::Result<()> {
    let mut open = Box::pin(EditedConversation::open_unlocked(haft, how)).await?;
    let lines = open
        .session
        .list_context_lines()
        .await
        .map_err(to_context_error)?;
    let model = open.session.model().clone();
    let now = WallClock.now();
    if how.json {
        let messages: Vec<_> = lines
            .iter()
            .map(|line| line_to_json(line, &model))
            .collect();
        return output::print_json(&json!({
            "conversation_id": open.session.conversation().id,
            "model": model.full_name(),
            "edits": open.session.edits().edits_in_force(),
            "messages": messages,
        }));
    }
    let mut table = TextTable::new(&table_headings());
    for line in &lines {
        table.add_row(table_cells(line, now));
    }
    let edits = open.session.edits().edits_in_force().len();
    let note = text!(
        "edits-list-note",
        edits = format_count(edits, Countable::Edit)
    );
    output::print_text(&format!("{table}\n{note}\n"))
}

/// Amounts below this, in USD, count as zero.
const MIN_AMOUNT_USD: f64 = 0.000_05;

fn format_signed(usd: f64) -> String {
    match usd {
        _ if usd.abs() < MIN_AMOUNT_USD => "$0".to_owned(),
        _ if usd < 0.0 => format!("-{}", format_dollars(-usd)),
        _ => format!("+{}", format_dollars(usd)),
    }
}

fn role_label(line: &ContextLine) -> String {
    match (line.role, line.tools.as_slice()) {
        (Role::Assistant, [tool]) => text!("edits-call", tool),
        (Role::Assistant, [_, ..]) => text!("edits-calls", count = line.tools.len()),
        (Role::Tool, [tool, ..]) => text!("edits-result", tool),
        (Role::System | Role::User | Role::Assistant | Role::Tool | Role::Summary, _) => {
            output::localize_text(line.role)
        }
    }
}

fn cache_name(state: CacheState) -> &'static str {
    match state {
        CacheState::Cached => "cached",
        CacheState::Written => "written",
        CacheState::Uncached => "not",
    }
}

/// Formats the time since `at` in one unit, such as days.
fn format_age(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(at).as_secs().max(0);
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn line_to_json(line: &ContextLine, model: &ModelSpec) -> Value {
    json!({
        "id": line.id.short_id().to_string(),
        "message_id": line.id,
        "role": line.role,
        "tools": line.tools,
        "layer": line.layer,
        "tokens": line.tokens,
        "created_at": line.at.to_string(),
        "cache": line.cache.map(cache_name),
        "edited": line.edited,
        "block": line.block.to_string(),
        "removal": line.removal.as_ref().map(|quote| quote_to_json(quote, model)),
        "first_words": line.excerpt,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_age_uses_one_unit() {
        let at = |seconds: i64| Timestamp::from_second(seconds).unwrap();
        let ages = [0, 119, 120, 7_200, 172_800].map(|seconds| format_age(at(0), at(seconds)));
        assert_eq!(ages, ["0 s", "119 s", "2 min", "2 h", "2 d"]);
        assert_eq!(
            format_age(at(10), at(0)),
            "0 s",
            "a clock that was set back"
        );
    }

    #[test]
    fn format_signed_marks_savings_with_a_minus() {
        assert_eq!(
            (format_signed(-0.5), format_signed(0.01)),
            ("-$0.5000".into(), "+$0.0100".into())
        );
        assert_eq!(format_signed(-0.000_001), "$0");
    }
}
