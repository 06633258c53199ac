//! The pages of the context inspector: the list of conversations, a conversation's messages, its
//! requests as a timeline and a table, and single requests.
//!
//! The pages show the data that `haft context` and `haft conversations` print, and the editor
//! offers the edits of `haft context edit`. Secrets are masked.

mod call_diff;
mod conversation_tree;
mod dialogue;
mod editor;
mod glance;
mod log_data;
mod page_frame;
#[cfg(feature = "postgres")]
mod queue_pages;
mod run_pages;
#[cfg(feature = "imports")]
mod session_pages;
mod timeline_pages;
#[cfg(feature = "lab")]
mod what_if;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use haft_agent::HostEnvironment;
use haft_agent::config::Config;
#[cfg(feature = "imports")]
use haft_imports::SessionRoots;
#[cfg(feature = "postgres")]
use haft_postgres::TaskQueue;
#[cfg(feature = "postgres")]
use haft_store::StoreError;
use haft_store::{ConversationRow, ConversationScope, SearchQuery, Store};
use haft_text::{Masker, format_dollars, format_percent, format_thousands};
use haft_types::{ConversationId, LlmMetadata, Metadata, Part, Role, Usage};
use serde_json::Value;

pub use conversation_tree::JobRow;
pub use run_pages::PageRuns;

use log_data::LogAnalysis;
use page_frame::{ConversationTab, SiteSection, render_pager};

use crate::PageError;
use crate::actions::InspectorActions;
#[cfg(feature = "lab")]
use crate::actions::PolicyTable;
use crate::computation::Computations;
use crate::markup::{Column, Markup};
use crate::server::{FormAnswer, FormFields, PageRequest, Site, SiteImage, encode_path_segment};

const CONVERSATIONS_PER_PAGE: usize = 25;
/// The maximum number of conversations whose figures in the list are kept.
const MAX_KEPT_ROWS: usize = 1_000;
/// The maximum number of conversations whose comparison of requests is kept.
const MAX_KEPT_ANALYSES: usize = 4;
#[cfg(feature = "lab")]
const MAX_KEPT_COMPARISONS: usize = 8;

/// A function that connects to the team's queue.
#[cfg(feature = "postgres")]
pub type OpenQueue = Arc<dyn Fn() -> Result<TaskQueue, StoreError> + Send + Sync>;

/// The site that shows conversations, with the data and the operations that its pages need.
pub struct Inspector {
    /// The store whose conversations are shown.
    pub store: Arc<dyn Store>,
    /// The operations for pages that need the request log or a session.
    pub actions: InspectorActions,
    /// The masker that hides the secrets in all text that pages show.
    pub masker: Masker,
    /// The environment and the configuration, which declare the models of logged requests.
    pub environment: HostEnvironment,
    pub config: Config,
    /// Receives notes about details that the request log lacks.
    pub notify: fn(&str),
    /// The folders that contain the sessions of other agents.
    #[cfg(feature = "imports")]
    pub session_roots: SessionRoots,
    /// The value that every form of the site contains, from
    /// [`AccessToken::form_token`](crate::AccessToken::form_token).
    pub form_token: String,
    /// The runs that the pages can start. If `None`, the pages are read-only.
    pub runs: Option<PageRuns>,
    /// The results that are kept between pages.
    pub computations: PageComputations,
    /// The function that connects to the task queue of the team, if one is configured.
    #[cfg(feature = "postgres")]
    pub open_queue: Option<OpenQueue>,
    /// The connection to the task queue of the team. The first page that needs the connection opens
    /// it.
    #[cfg(feature = "postgres")]
    pub queue: tokio::sync::OnceCell<Arc<TaskQueue>>,
}

/// Results that took long to compute. Their number is limited; each is computed again when its
/// conversation has changed.
pub struct PageComputations {
    analyses: Computations<LogAnalysis>,
    #[cfg(feature = "lab")]
    comparisons: Computations<PolicyTable>,
    /// The cached figures of the rows in the list of conversations, each with the version of the
    /// conversation that it was computed from.
    rows: Mutex<HashMap<ConversationId, (String, RowFigures)>>,
}

impl Default for PageComputations {
    fn default() -> Self {
        Self {
            analyses: Computations::new(MAX_KEPT_ANALYSES),
            #[cfg(feature = "lab")]
            comparisons: Computations::new(MAX_KEPT_COMPARISONS),
            rows: Mutex::default(),
        }
    }
}

/// The figures of a conversation in the list of conversations.
#[derive(Clone)]
struct RowFigures {
    agent: Option<String>,
    requests: u64,
    cost: Option<f64>,
    usage: Usage,
}

#[async_trait]
impl Site for Inspector {
    async fn page(&self, request: &PageRequest) -> Result<Option<String>, String> {
        match self.render_page(request).await {
            Ok(page) => Ok(page),
            Err(error) => {
                self.render_error_page(request, &self.masker.mask(&error.to_one_line()))
                    .await
            }
        }
    }

    async fn image(&self, request: &PageRequest) -> Option<SiteImage> {
        let [_, id, message, part] = request.path.as_slice() else {
            return None;
        };
        let messages = self.store.messages(&ConversationId::new(id)).await.ok()?;
        let message = messages
            .iter()
            .find(|one| one.message_id.to_string() == *message)?;
        let Part::Image(image) = message.content.get(part.parse::<usize>().ok()?)? else {
            return None;
        };
        SiteImage::new(&image.media_type, BASE64_STANDARD.decode(&image.data).ok()?)
    }

    async fn post(
        &self,
        request: &PageRequest,
        form: &FormFields,
    ) -> Result<Option<FormAnswer>, String> {
        self.handle_form(request, form)
            .await
            .map_err(|error| error.to_one_line())
    }

    async fn version(&self, request: &PageRequest) -> Option<String> {
        #[cfg(feature = "postgres")]
        if let ["queue", rest @ ..] = &*request.path.iter().map(String::as_str).collect::<Vec<_>>()
        {
            return self.queue_version(rest).await;
        }
        let [place, id, ..] = request.path.as_slice() else {
            return None;
        };
        let id = ConversationId::new(id);
        let run = self.run_page_version(&id);
        let conversation = self.store.get(&id).await.ok()?.filter(|_| place == "c");
        // A run that was just started has no stored conversation yet.
        let Some(conversation) = conversation else {
            return Some(run).filter(|run| !run.is_empty());
        };
        let log = self.log_version(&conversation).await.ok()?;
        let shown = if request.path.last().is_some_and(|page| page == "live") {
            &*run
        } else {
            ""
        };
        let computing = self.computations.analyses.progress_text(id.as_str());
        #[cfg(feature = "lab")]
        let computing = computing + &self.computations.comparisons.progress_text(id.as_str());
        Some(format!("{log} {shown}{computing}"))
    }

    fn live_text(&self, request: &PageRequest) -> Option<String> {
        match request.path.as_slice() {
            [place, id, page] if place == "c" && page == "live" => {
                self.run_text(&ConversationId::new(id))
            }
            _ => None,
        }
    }

    fn error_page(&self, status: u16, message: &str) -> Option<String> {
        let title = if status == 404 {
            text!("serve-not-found")
        } else {
            text!("serve-error")
        };
        Some(self.build_error_page(title, message))
    }

    fn style(&self) -> String {
        let style = format!(
            "{}\nsvg {{\n{}\n}}\n",
            include_str!("inspector.css"),
            haft_inspect::PICTURE_STYLE
        );
        #[cfg(feature = "lab")]
        let style = format!("{style}.plot svg {{\n{}\n}}\n", haft_lab::PLOT_STYLE);
        style
    }
}

impl Inspector {
    async fn render_page(&self, request: &PageRequest) -> PageResult<Option<String>> {
        let segments: Vec<_> = request.path.iter().map(String::as_str).collect();
        let (id, rest) = match segments.as_slice() {
            [] => {
                let query = request.query.get("q").map_or("", String::as_str);
                return self
                    .render_conversations(query, request.number("from"))
                    .await
                    .map(Some);
            }
            #[cfg(feature = "imports")]
            ["sessions"] => return Ok(Some(self.render_sessions())),
            #[cfg(feature = "imports")]
            ["sessions", agent, path @ ..] => return Ok(self.render_session(agent, path)),
            #[cfg(feature = "postgres")]
            ["queue", rest @ ..] => return self.render_queue(rest, request.number("from")).await,
            ["run"] => {
                return Ok(self
                    .render_runs(Markup::concat([]), &FormFields::default())
                    .await);
            }
            ["c", id, "live"] => {
                return self
                    .render_run(&ConversationId::new(*id), Markup::concat([]))
                    .await;
            }
            ["c", id, rest @ ..] => (ConversationId::new(*id), rest),
            _ => return Ok(None),
        };
        let Some(conversation) = self.store.get(&id).await? else {
            return Ok(None);
        };
        match rest {
            [] => self
                .render_dialogue(conversation, request.number("from"))
                .await
                .map(Some),
            ["timeline"] => self.render_timeline(conversation, request).await.map(Some),
            ["edit"] => {
                let done = request
                    .query
                    .contains_key("done")
                    .then(|| Markup::text_element("p", text!("serve-edit-done")));
                let from = request.query.get("from").and_then(|from| from.parse().ok());
                self.render_editor(conversation, Markup::concat(done), from)
                    .await
                    .map(Some)
            }
            ["next"] => {
                let input = request.query.get("input").map_or("", String::as_str);
                self.render_next_request(conversation, input)
                    .await
                    .map(Some)
            }
            #[cfg(feature = "lab")]
            ["what-if"] => self
                .render_what_if(conversation, &request.query)
                .await
                .map(Some),
            ["r", number] => match number.parse() {
                Ok(number) => {
                    let from = request.query.get("from").and_then(|from| from.parse().ok());
                    self.render_request(conversation, number, from).await
                }
                Err(_) => Ok(None),
            },
            ["r", number, "body"] => match number.parse() {
                Ok(number) => self.render_body(conversation, number).await,
                Err(_) => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Returns a page that shows an error message and, for a conversation's page, links to the
    /// conversation's other pages. If the request is not for a conversation's page, the message is
    /// returned as an error.
    async fn render_error_page(
        &self,
        request: &PageRequest,
        message: &str,
    ) -> Result<Option<String>, String> {
        let [place, id, rest @ ..] = request.path.as_slice() else {
            return Err(message.to_owned());
        };
        let found = self
            .store
            .get(&ConversationId::new(id))
            .await
            .ok()
            .flatten();
        let Some(conversation) = found.filter(|_| place == "c") else {
            return Err(message.to_owned());
        };
        let tab = match rest.first().map(String::as_str) {
            None => ConversationTab::Dialogue,
            Some("timeline") => ConversationTab::Timeline,
            Some("live") => ConversationTab::Run,
            Some("edit") => ConversationTab::Editor,
            Some("next") => ConversationTab::Next,
            #[cfg(feature = "lab")]
            Some("what-if") => ConversationTab::WhatIf,
            Some(_) => ConversationTab::Other,
        };
        let alert = self.render_alert(message);
        Ok(Some(self.build_conversation_page(
            &conversation,
            tab,
            None,
            [alert],
        )))
    }

    async fn handle_form(
        &self,
        request: &PageRequest,
        form: &FormFields,
    ) -> PageResult<Option<FormAnswer>> {
        let names: Vec<_> = request.path.iter().map(String::as_str).collect();
        match names.as_slice() {
            ["run"] => Ok(self.start_run(form).await),
            #[cfg(feature = "postgres")]
            ["queue", id] => self.change_task(id, form.get("do")).await,
            #[cfg(feature = "imports")]
            ["sessions", agent, path @ ..] => self.import_session(agent, path).await,
            ["c", id, "live"] => self.handle_run_form(&ConversationId::new(*id), form).await,
            ["c", id, "edit"] => match self.store.get(&ConversationId::new(*id)).await? {
                Some(conversation) => self.handle_edit(conversation, form).await.map(Some),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    async fn render_conversations(&self, query: &str, from: usize) -> PageResult<String> {
        let search = Markup::element(
            "form",
            &[("action", "/"), ("role", "search")],
            [
                Markup::element(
                    "label",
                    &[("for", "q")],
                    [Markup::text(text!("serve-search"))],
                ),
                Markup::element(
                    "input",
                    &[
                        ("id", "q"),
                        ("name", "q"),
                        ("type", "search"),
                        ("value", query),
                    ],
                    [],
                ),
            ],
        );
        let found = if query.trim().is_empty() {
            self.render_conversation_table(from).await?
        } else {
            self.render_search_results(query).await?
        };
        Ok(self.build_page(
            SiteSection::Conversations,
            text!("serve-conversations"),
            [search, found],
        ))
    }

    async fn render_conversation_table(&self, from: usize) -> PageResult<Markup> {
        let all = self.store.list(ConversationScope::Everywhere).await?;
        let mut rows = Vec::new();
        for row in all.iter().skip(from).take(CONVERSATIONS_PER_PAGE) {
            rows.push(self.render_conversation_row(row).await?);
        }
        let columns = [
            Column::prose(text!("serve-name")),
            Column::text(text!("serve-agent")),
            Column::text(text!("serve-namespace")),
            Column::figure(text!("serve-messages")),
            Column::figure(text!("serve-requests")),
            Column::figure(text!("serve-cost")),
            Column::figure(text!("serve-cached")),
            Column::figure(text!("serve-updated")),
        ];
        let table = Markup::table(&columns, rows);
        Ok(Markup::concat([
            table,
            render_pager("/", from, CONVERSATIONS_PER_PAGE, all.len()),
        ]))
    }

    async fn render_conversation_row(&self, row: &ConversationRow) -> PageResult<Vec<Markup>> {
        let figures = self.load_row_figures(row).await?;
        let cached = if figures.usage.all_input() == 0 {
            String::new()
        } else {
            format_percent(figures.usage.cached_share())
        };
        Ok(vec![
            Markup::link(&conversation_path(&row.id, ""), &row.name),
            Markup::text(figures.agent.as_deref().unwrap_or("haft")),
            Markup::text(&row.namespace),
            Markup::text(format_thousands(row.messages)),
            Markup::text(format_thousands(figures.requests)),
            Markup::text(figures.cost.map_or_else(String::new, format_dollars)),
            Markup::text(cached),
            Markup::text(row.updated_at.strftime("%Y-%m-%d %H:%M").to_string()),
        ])
    }

    /// Returns the figures of a conversation. They are read again only if it has changed.
    async fn load_row_figures(&self, row: &ConversationRow) -> PageResult<RowFigures> {
        let logged = self.store.count_requests(&row.id).await?;
        let version = format!("{} {} {logged}", row.messages, row.updated_at);
        let kept = || {
            self.computations
                .rows
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some((_, figures)) = kept().get(&row.id).filter(|(known, _)| *known == version) {
            return Ok(figures.clone());
        }
        let metadata = self
            .store
            .get(&row.id)
            .await?
            .map(|one| one.metadata)
            .unwrap_or_default();
        let messages = self.store.messages(&row.id).await?;
        let made = messages
            .iter()
            .filter_map(|message| message.llm_metadata.as_deref());
        let mut usage = Usage::default();
        made.clone().for_each(|made| usage += made.usage());
        let costs: Vec<f64> = made.filter_map(compute_reply_cost).collect();
        let requests = if logged == 0 && metadata.get("imported_from").is_some_and(Value::is_string)
        {
            messages
                .iter()
                .filter(|message| message.role == Role::Assistant)
                .count() as u64
        } else {
            logged
        };
        let figures = RowFigures {
            agent: agent_name(&metadata).map(str::to_owned),
            requests,
            cost: (!costs.is_empty()).then(|| costs.iter().sum()),
            usage,
        };
        let mut rows = kept();
        if rows.len() >= MAX_KEPT_ROWS {
            rows.clear();
        }
        rows.insert(row.id.clone(), (version, figures.clone()));
        Ok(figures)
    }

    async fn render_search_results(&self, query: &str) -> PageResult<Markup> {
        let query = SearchQuery {
            text: query,
            scope: ConversationScope::Everywhere,
            limit: 50,
        };
        let hits = self.store.search(query).await?;
        if hits.is_empty() {
            return Ok(Markup::text_element("p", text!("serve-no-hits")));
        }
        let row = |hit: haft_store::SearchHit| {
            let snippet = self.masker.mask(&hit.snippet.text).into_owned();
            vec![
                Markup::link(
                    &conversation_path(&hit.conversation.id, ""),
                    &hit.conversation.name,
                ),
                Markup::text(snippet),
            ]
        };
        Ok(Markup::table(
            &[
                Column::text(text!("serve-name")),
                Column::prose(text!("serve-text")),
            ],
            hits.into_iter().map(row),
        ))
    }

    /// Renders an error message as a paragraph.
    fn render_alert(&self, text: &str) -> Markup {
        Markup::element(
            "p",
            &[("class", "broken"), ("role", "alert")],
            [Markup::text(self.masker.mask(text))],
        )
    }
}

type PageResult<T> = Result<T, PageError>;

/// Returns the name of the sub-agent that ran the conversation, or of the coding agent from which
/// it was recorded or imported. Returns `None` for other conversations.
fn agent_name(metadata: &Metadata) -> Option<&str> {
    let text = |key: &str| metadata.get(key).and_then(Value::as_str);
    text("agent").or(text("imported_from"))
}

/// Returns the cost of a reply in dollars, or `None` if no part of it has a price.
fn compute_reply_cost(reply: &LlmMetadata) -> Option<f64> {
    let parts = [
        reply.input_cost,
        reply.output_cost,
        reply.cached_input_cost,
        reply.cache_write_cost,
    ];
    parts
        .iter()
        .any(Option::is_some)
        .then(|| parts.iter().flatten().sum())
}

/// Returns the path of a page that belongs to a conversation. The id is percent-encoded, because it
/// may contain any character.
fn conversation_path(id: &ConversationId, page: &str) -> String {
    format!("/c/{}{page}", encode_path_segment(id.as_str()))
}

/// Converts a heading of the command line, which is in capitals, to the style of the pages.
fn to_sentence_case(heading: impl AsRef<str>) -> String {
    let mut chars = heading.as_ref().chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + &chars.as_str().to_lowercase()
}

/// Formats a cost so that it can be appended to other text. Returns an empty string if the cost is
/// unknown.
fn format_cost_suffix(usd: Option<f64>) -> String {
    usd.map_or_else(String::new, |usd| {
        text!("serve-and-cost", cost = format_dollars(usd))
    })
}

/// Renders a text that is hidden until the user opens it. The first line of `headline` is always
/// visible.
fn render_folded(headline: &str, text: &str) -> Markup {
    let first: String = headline
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(120)
        .collect();
    Markup::element(
        "details",
        &[],
        [
            Markup::text_element("summary", first),
            Markup::text_element("pre", text),
        ],
    )
}
