//! The pages of the context inspector: the list of conversations, a conversation's messages, its
//! requests as a timeline and a table, and single requests.
//!
//! The pages show the data that `haft context` and `haft conversations` print, and the editor
//! offers the edits of `haft context edit`. Secrets are masked.

mod conversation_tree;
mod editor;
mod log_data;
#[cfg(feature = "postgres")]
mod queue_pages;
mod run_pages;
#[cfg(feature = "imports")]
mod session_pages;
#[cfg(feature = "lab")]
mod what_if;

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use haft_agent::HostEnvironment;
use haft_agent::config::Config;
#[cfg(feature = "imports")]
use haft_imports::SessionRoots;
use haft_inspect::RequestLogReader;
#[cfg(feature = "postgres")]
use haft_postgres::TaskQueue;
#[cfg(feature = "postgres")]
use haft_store::StoreError;
use haft_store::{Conversation, ConversationRow, ConversationScope, SearchQuery, Store};
use haft_text::{Masker, format_dollars, format_percent, format_thousands};
use haft_types::{ConversationId, LlmMetadata, Message, Metadata, Part, Role, Usage};
use serde_json::Value;

pub use conversation_tree::JobRow;
pub use run_pages::PageRuns;

use log_data::{
    PrefixBreak, RequestDetails, SegmentDetails, TimelineRequest, is_recorded, load_request,
    load_timeline,
};

use crate::actions::InspectorActions;
use crate::markup::{Markup, build_html_document};
use crate::server::{FormAnswer, FormFields, PageRequest, Site, SiteImage, encode_path_segment};
use crate::{PageError, localize_text};

const CONVERSATIONS_PER_PAGE: usize = 25;
const MESSAGES_PER_PAGE: usize = 200;

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
    /// The function that connects to the task queue of the team, if one is configured.
    #[cfg(feature = "postgres")]
    pub open_queue: Option<OpenQueue>,
    /// The connection to the task queue of the team. The first page that needs the connection opens
    /// it.
    #[cfg(feature = "postgres")]
    pub queue: tokio::sync::OnceCell<Arc<TaskQueue>>,
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
        let requests = self.store.logged_requests(&id).await.ok()?.len();
        let shown = if request.path.last().is_some_and(|page| page == "live") {
            &*run
        } else {
            ""
        };
        Some(format!(
            "{} {} {requests} {shown}",
            conversation.messages, conversation.revisions
        ))
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
        let number = |key: &str| {
            request
                .query
                .get(key)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0_usize)
        };
        let segments: Vec<_> = request.path.iter().map(String::as_str).collect();
        let (id, rest) = match segments.as_slice() {
            [] => {
                let query = request.query.get("q").map_or("", String::as_str);
                return self
                    .render_conversations(query, number("from"))
                    .await
                    .map(Some);
            }
            #[cfg(feature = "imports")]
            ["sessions"] => return Ok(Some(self.render_sessions())),
            #[cfg(feature = "imports")]
            ["sessions", agent, path @ ..] => return Ok(self.render_session(agent, path)),
            #[cfg(feature = "postgres")]
            ["queue", rest @ ..] => return self.render_queue(rest, number("from")).await,
            ["run"] => return Ok(self.render_runs(Markup::concat([]), &FormFields::default())),
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
                .render_dialogue(conversation, number("from"))
                .await
                .map(Some),
            ["timeline"] => self
                .render_timeline(conversation, request.query.contains_key("zoom"))
                .await
                .map(Some),
            ["edit"] => {
                let done = request
                    .query
                    .contains_key("done")
                    .then(|| Markup::text_element("p", text!("serve-edit-done")));
                self.render_editor(conversation, Markup::concat(done))
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
                Ok(number) => self.render_request(conversation, number).await,
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
        let shown = rest
            .first()
            .map_or_else(String::new, |page| format!("/{page}"));
        let alert = Markup::element(
            "p",
            &[("class", "broken"), ("role", "alert")],
            [Markup::text(message)],
        );
        let pieces = [Markup::text_element("h1", &conversation.name), alert];
        Ok(Some(build_page(
            &conversation.name,
            render_navigation(&conversation, &shown),
            pieces,
        )))
    }

    async fn handle_form(
        &self,
        request: &PageRequest,
        form: &FormFields,
    ) -> PageResult<Option<FormAnswer>> {
        let names: Vec<_> = request.path.iter().map(String::as_str).collect();
        match names.as_slice() {
            ["run"] => Ok(self.start_run(form)),
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
        let heading = Markup::text_element("h1", text!("serve-conversations"));
        let begin = self
            .runs
            .as_ref()
            .map(|_| Markup::link("/run", text!("serve-run-new")));
        let sessions =
            cfg!(feature = "imports").then(|| Markup::link("/sessions", text!("serve-sessions")));
        #[cfg(feature = "postgres")]
        let queue = self
            .open_queue
            .as_ref()
            .map(|_| Markup::link("/queue", text!("serve-queue")));
        #[cfg(not(feature = "postgres"))]
        let queue = None;
        let begin = Markup::element(
            "p",
            &[("class", "buttons")],
            begin.into_iter().chain(sessions).chain(queue),
        );
        Ok(build_page(
            text!("serve-conversations"),
            Markup::concat([]),
            [heading, begin, search, found],
        ))
    }

    async fn render_conversation_table(&self, from: usize) -> PageResult<Markup> {
        let all = self.store.list(ConversationScope::Everywhere).await?;
        let mut rows = Vec::new();
        for row in all.iter().skip(from).take(CONVERSATIONS_PER_PAGE) {
            rows.push(self.render_conversation_row(row).await?);
        }
        let headings = [
            text!("serve-name"),
            text!("serve-agent"),
            text!("serve-namespace"),
            text!("serve-messages"),
            text!("serve-requests"),
            text!("serve-cost"),
            text!("serve-cached"),
            text!("serve-updated"),
        ];
        let table = Markup::table(&headings, rows);
        Ok(Markup::concat([
            table,
            render_pager("/", from, CONVERSATIONS_PER_PAGE, all.len()),
        ]))
    }

    async fn render_conversation_row(&self, row: &ConversationRow) -> PageResult<Vec<Markup>> {
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
        let logged = self.store.logged_requests(&row.id).await?.len() as u64;
        let requests = if logged == 0 && metadata.get("imported_from").is_some_and(Value::is_string)
        {
            messages
                .iter()
                .filter(|message| message.role == Role::Assistant)
                .count() as u64
        } else {
            logged
        };
        let cost = if costs.is_empty() {
            String::new()
        } else {
            format_dollars(costs.iter().sum())
        };
        let cached = if usage.all_input() == 0 {
            String::new()
        } else {
            format_percent(usage.cached_share())
        };
        Ok(vec![
            Markup::link(&conversation_path(&row.id, ""), &row.name),
            Markup::text(agent_name(&metadata).unwrap_or("haft")),
            Markup::text(&row.namespace),
            Markup::text(format_thousands(row.messages)),
            Markup::text(format_thousands(requests)),
            Markup::text(cost),
            Markup::text(cached),
            Markup::text(row.updated_at.strftime("%Y-%m-%d %H:%M").to_string()),
        ])
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
            &[text!("serve-name"), text!("serve-text")],
            hits.into_iter().map(row),
        ))
    }

    async fn render_dialogue(&self, conversation: Conversation, from: usize) -> PageResult<String> {
        let messages = self.store.messages(&conversation.id).await?;
        let shown: Vec<_> = messages
            .iter()
            .skip(from)
            .take(MESSAGES_PER_PAGE)
            .map(|one| self.render_message(Some(&conversation.id), one))
            .collect();
        let pager = render_pager(
            &conversation_path(&conversation.id, ""),
            from,
            MESSAGES_PER_PAGE,
            messages.len(),
        );
        let heading = Markup::text_element("h1", &conversation.name);
        let family = self.render_conversation_tree(&conversation).await?;
        Ok(build_page(
            &conversation.name,
            render_navigation(&conversation, ""),
            [heading, family, Markup::concat(shown), pager],
        ))
    }

    /// Opens the log of a conversation, or returns `None` if it has no requests.
    async fn open_log(&self, conversation: Conversation) -> PageResult<Option<RequestLogReader>> {
        let log = RequestLogReader::for_conversation(
            Arc::clone(&self.store),
            self.environment.clone(),
            self.config.clone(),
            conversation,
            self.notify,
        )
        .await?;
        Ok(Some(log).filter(|log| log.requests > 0))
    }

    async fn render_timeline(
        &self,
        conversation: Conversation,
        zoomed: bool,
    ) -> PageResult<String> {
        let name = conversation.name.clone();
        let navigation = render_navigation(&conversation, "/timeline");
        let id = conversation.id.clone();
        let heading = Markup::text_element("h1", &name);
        let Some(log) = self.open_log(conversation).await? else {
            return Ok(build_page(
                &name,
                navigation,
                [
                    heading,
                    Markup::text_element("p", text!("serve-no-requests")),
                ],
            ));
        };
        let links = conversation_path(&id, "/r/");
        let timeline = load_timeline(&log, &links, zoomed).await?;
        let (to, zoom) = if zoomed {
            ("", text!("serve-zoom-out"))
        } else {
            ("?zoom=in", text!("serve-zoom-in"))
        };
        let zoom = Markup::element(
            "p",
            &[],
            [Markup::link(
                &conversation_path(&id, &format!("/timeline{to}")),
                zoom,
            )],
        );
        let rows = timeline.requests.iter().map(|request| {
            let number = request.number;
            let reply = request.reply.as_ref();
            vec![
                Markup::link(
                    &conversation_path(&id, &format!("/r/{number}")),
                    number.to_string(),
                ),
                Markup::text(request.sent_at.strftime("%H:%M:%S").to_string()),
                Markup::text(&request.model),
                Markup::text(format_thousands(request.tokens)),
                Markup::text(reply.map_or_else(String::new, |reply| {
                    format_percent(reply.usage().cached_share())
                })),
                Markup::text(
                    reply
                        .and_then(compute_reply_cost)
                        .map_or_else(String::new, format_dollars),
                ),
                Markup::text(
                    request
                        .broken
                        .as_ref()
                        .map_or_else(String::new, describe_break),
                ),
            ]
        });
        let headings = [
            text!("serve-request"),
            text!("serve-sent"),
            text!("serve-model"),
            text!("serve-tokens"),
            text!("serve-cached"),
            text!("serve-cost"),
            text!("serve-break"),
        ];
        let picture = Markup::element(
            "div",
            &[("class", "wide"), ("tabindex", "0")],
            [Markup::inline_svg(&timeline.picture)],
        );
        let note = Markup::concat(timeline.note.map(|note| Markup::text_element("p", note)));
        Ok(build_page(
            &name,
            navigation,
            [heading, note, zoom, picture, Markup::table(&headings, rows)],
        ))
    }

    async fn render_request(
        &self,
        conversation: Conversation,
        number: u64,
    ) -> PageResult<Option<String>> {
        let name = conversation.name.clone();
        let navigation = render_navigation(&conversation, "/r");
        let id = conversation.id.clone();
        let Some(log) = self.open_log(conversation).await? else {
            return Ok(None);
        };
        let Some(details) = load_request(&log, number, &self.masker).await? else {
            return Ok(None);
        };
        let title = text!("serve-request-of", number, requests = details.requests);
        let mut pieces = vec![
            Markup::text_element("h1", format!("{name}: {title}")),
            render_request_pager(&id, number, details.requests),
            render_request_facts(&details),
            Markup::text_element("h2", text!("serve-segments")),
            render_segments(&details.segments),
        ];
        if let Some(difference) = &details.difference {
            pieces.extend([
                Markup::text_element("h2", text!("serve-difference")),
                Markup::text_element("pre", self.masker.mask(difference)),
            ]);
        }
        if let Some(note) = &details.note {
            pieces.insert(1, Markup::text_element("p", note));
        }
        if let Some(body) = &details.body {
            let summary = Markup::text_element(
                "summary",
                text!("serve-body", bytes = format_thousands(body.len() as u64)),
            );
            pieces.push(Markup::element(
                "details",
                &[],
                [summary, Markup::text_element("pre", self.masker.mask(body))],
            ));
        }
        Ok(Some(build_page(
            &format!("{name}: {title}"),
            navigation,
            pieces,
        )))
    }

    /// Renders a message. Thinking, tool calls and results are collapsed until the user opens them.
    /// `stored` is the id of the conversation if it is stored; images are shown only in that case.
    fn render_message(&self, stored: Option<&ConversationId>, message: &Message) -> Markup {
        let role = localize_text(message.role);
        let at = message.created_at.strftime("%Y-%m-%d %H:%M:%S");
        let heading = Markup::text_element(
            "h2",
            format!("{role} {} {at}", message.message_id.short_id()),
        );
        let part = |(index, part): (usize, &Part)| {
            let text = haft_inspect::part_to_text(part);
            let text = self.masker.mask(&text);
            match (part, stored) {
                (Part::Image(_), Some(id)) => {
                    let from = conversation_path(id, &format!("/{}/{index}", message.message_id))
                        .replacen("/c/", "/image/", 1);
                    Markup::element(
                        "img",
                        &[("src", &from), ("alt", &text), ("loading", "lazy")],
                        [],
                    )
                }
                (Part::Text { .. } | Part::Image(_), _) => {
                    Markup::element("pre", &[("class", "said")], [Markup::text(text)])
                }
                (Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_), _) => {
                    render_folded(&text, &text)
                }
            }
        };
        let parts = message.content.iter().enumerate().map(part);
        Markup::element(
            "article",
            &[("class", &role)],
            std::iter::once(heading).chain(parts),
        )
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

fn build_page(
    title: &str,
    navigation: Markup,
    content: impl IntoIterator<Item = Markup>,
) -> String {
    let home = Markup::link("/", text!("serve-conversations"));
    let header = Markup::element("nav", &[], [home, navigation]);
    build_html_document(
        haft_messages::current_language().name(),
        title,
        Markup::concat([header, Markup::element("main", &[], content)]),
    )
}

/// Returns the path of a page that belongs to a conversation. The id is percent-encoded, because it
/// may contain any character.
fn conversation_path(id: &ConversationId, page: &str) -> String {
    format!("/c/{}{page}", encode_path_segment(id.as_str()))
}

/// Renders the links to the pages of a conversation. The link to the current page, `shown`, is
/// marked.
fn render_navigation(conversation: &Conversation, shown: &str) -> Markup {
    let mut pages = vec![
        ("", text!("serve-dialogue")),
        ("/timeline", text!("serve-timeline")),
    ];
    // The context of another agent's conversation cannot be edited.
    if !is_recorded(&conversation.metadata) {
        pages.extend([
            ("/live", text!("serve-run")),
            ("/edit", text!("serve-editor")),
            ("/next", text!("serve-next")),
        ]);
    }
    if cfg!(feature = "lab") {
        pages.push(("/what-if", text!("serve-what-if")));
    }
    Markup::concat(pages.into_iter().map(|(page, name)| {
        let to = conversation_path(&conversation.id, page);
        let current = if page == shown {
            &[("href", to.as_str()), ("aria-current", "page")][..]
        } else {
            &[("href", &*to)]
        };
        Markup::element("a", current, [Markup::text(name)])
    }))
}

/// Renders the links to the previous and the next page of a list.
fn render_pager(to: &str, from: usize, size: usize, all: usize) -> Markup {
    let link = |at: usize, rel: &str, text: &str| {
        Markup::element(
            "a",
            &[("href", &format!("{to}?from={at}")), ("rel", rel)],
            [Markup::text(text)],
        )
    };
    let before = (from > 0).then(|| link(from.saturating_sub(size), "prev", text!("serve-before")));
    let rest = all.saturating_sub(from);
    let after = (rest > size).then(|| link(from + size, "next", text!("serve-after")));
    Markup::element("p", &[("class", "pager")], before.into_iter().chain(after))
}

fn render_request_pager(id: &ConversationId, number: u64, requests: u64) -> Markup {
    let link = |at: u64, rel: &str, text: &str| {
        let to = conversation_path(id, &format!("/r/{at}"));
        Markup::element("a", &[("href", &to), ("rel", rel)], [Markup::text(text)])
    };
    let before = (number > 1).then(|| link(number - 1, "prev", text!("serve-before")));
    let after = (number < requests).then(|| link(number + 1, "next", text!("serve-after")));
    Markup::element("p", &[("class", "pager")], before.into_iter().chain(after))
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
        sent_at,
        model,
        tokens,
        reply,
        broken,
        ..
    } = &details.request;
    let sent = text!(
        "serve-sent-to",
        model,
        api = details.api,
        time = sent_at.strftime("%Y-%m-%d %H:%M:%S"),
        tokens = format_thousands(*tokens)
    );
    let billed = match reply {
        Some(reply) => {
            let usage = reply.usage();
            let cost = format_cost_suffix(compute_reply_cost(reply));
            text!(
                "serve-billed",
                input = format_thousands(usage.all_input()),
                cached = format_thousands(usage.cached_input),
                written = format_thousands(usage.cache_write),
                output = format_thousands(usage.output),
                cost
            )
        }
        None => text!("serve-no-reply").to_owned(),
    };
    let why = match broken {
        Some(broken) => Markup::element(
            "p",
            &[("class", "broken")],
            [Markup::text(describe_break(broken))],
        ),
        None => Markup::text_element("p", text!("serve-no-break")),
    };
    Markup::concat([
        Markup::text_element("p", sent),
        Markup::text_element("p", billed),
        why,
    ])
}

fn render_segments(segments: &[SegmentDetails]) -> Markup {
    let rows = segments.iter().enumerate().map(|(index, segment)| {
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
        let opening: String = segment.opening.chars().take(100).collect();
        let summary = Markup::text_element("summary", opening);
        let whole = Markup::text_element("pre", &segment.text);
        vec![
            Markup::text((index + 1).to_string()),
            Markup::text(&segment.layer),
            Markup::text(&segment.owner),
            Markup::text(format_thousands(segment.tokens)),
            Markup::text(format!("{state}{boundary}")),
            Markup::element("details", &[], [summary, whole]),
        ]
    });
    let headings = [
        "#",
        text!("serve-layer"),
        text!("serve-owner"),
        text!("serve-tokens"),
        text!("serve-state"),
        text!("serve-text"),
    ];
    Markup::table(&headings, rows)
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
