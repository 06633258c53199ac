//! The pages of `haft serve`: conversations, a dialogue, its requests as a picture and a table, and
//! one request.
//!
//! They show what `haft context` and `haft conversations` print; the editor does what `haft context
//! edit` does. What looks like a key is masked.

mod editor;
#[cfg(feature = "imports")]
mod elsewhere;
mod family;
mod live;
#[cfg(feature = "postgres")]
mod queue;
#[cfg(feature = "lab")]
mod what_if;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use haft_agent::config::Config;
use haft_serve::{FormAnswer, FormFields, Markup, PageRequest, Site, SiteImage, document};
use haft_store::{
    Conversation, ConversationRow, ConversationScope, LoggedRequest, SearchQuery, Store,
};
use haft_text::grouped;
use haft_types::{ConversationId, LlmMetadata, Message, Metadata, Part, Role, Usage};
use serde_json::Value;

pub(crate) use live::PageRuns;

use super::diff::RequestDiff;
use super::imported;
use super::logged::RequestLogReader;
use super::picture::{self, PictureFrame, RequestColumn};
use super::render;
use super::text::{and_cost, masked, money, opening, percent, whole_text};
use super::why::{PrefixBreakReport, breaks};
use crate::cli::options::Common;
use crate::commands::conversations::part_as_text;
use crate::exit::in_one_line;

/// Conversations on a page.
const LISTED: usize = 25;
/// Messages on a page.
const SPOKEN: usize = 200;

/// Everything there is to look at.
pub(crate) struct Inspector {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) config: Config,
    pub(crate) common: Common,
    /// The user's home, where other agents keep their sessions.
    pub(crate) home: Option<PathBuf>,
    /// What forms bring along.
    pub(crate) form_token: String,
    /// Where runs go on; a page that only shows has none.
    pub(crate) runs: Option<PageRuns>,
    /// The team's tasks, once somebody looked at them.
    #[cfg(feature = "postgres")]
    pub(crate) queue: tokio::sync::OnceCell<Arc<haft_postgres::TaskQueue>>,
}

/// Sessions do not leave their thread, so whatever opens one gets a thread of its own.
async fn apart<T, W>(work: impl FnOnce() -> W + Send + 'static) -> anyhow::Result<T>
where
    T: Send + 'static,
    W: Future<Output = anyhow::Result<T>>,
{
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(work())).await?
}

#[async_trait]
impl Site for Inspector {
    async fn page(&self, request: &PageRequest) -> Result<Option<String>, String> {
        match self.made(request).await {
            Ok(page) => Ok(page),
            Err(error) => self.problem(request, &masked(&in_one_line(&error))).await,
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
        self.posted(request, form)
            .await
            .map_err(|error| in_one_line(&error))
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
        let run = self.live_version(&id);
        let conversation = self.store.get(&id).await.ok()?.filter(|_| place == "c");
        // A run that was just begun is not stored yet.
        let Some(conversation) = conversation else {
            return Some(run).filter(|run| !run.is_empty());
        };
        let requests = self.store.requests(&id).await.ok()?.len();
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
            picture::STYLE
        );
        #[cfg(feature = "lab")]
        let style = format!("{style}.plot svg {{\n{}\n}}\n", haft_lab::PLOT_STYLE);
        style
    }
}

impl Inspector {
    async fn made(&self, request: &PageRequest) -> anyhow::Result<Option<String>> {
        let number = |key: &str| {
            request
                .query
                .get(key)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0_usize)
        };
        let names: Vec<_> = request.path.iter().map(String::as_str).collect();
        let (id, rest) = match names.as_slice() {
            [] => {
                let query = request.query.get("q").map_or("", String::as_str);
                return self.conversations(query, number("from")).await.map(Some);
            }
            #[cfg(feature = "imports")]
            ["sessions"] => return Ok(Some(self.elsewhere())),
            #[cfg(feature = "imports")]
            ["sessions", agent, path @ ..] => return Ok(self.session(agent, path)),
            #[cfg(feature = "postgres")]
            ["queue", rest @ ..] => return self.queue(rest, number("from")).await,
            ["run"] => return Ok(self.runs(Markup::all([]), &FormFields::default())),
            ["c", id, "live"] => {
                return self.live(&ConversationId::new(*id), Markup::all([])).await;
            }
            ["c", id, rest @ ..] => (ConversationId::new(*id), rest),
            _ => return Ok(None),
        };
        let Some(conversation) = self.store.get(&id).await? else {
            return Ok(None);
        };
        match rest {
            [] => self.dialogue(conversation, number("from")).await.map(Some),
            ["timeline"] => self
                .timeline(conversation, request.query.contains_key("zoom"))
                .await
                .map(Some),
            ["edit"] => {
                let done = request
                    .query
                    .contains_key("done")
                    .then(|| Markup::plain("p", text!("serve-edit-done")));
                self.editor(conversation, Markup::all(done)).await.map(Some)
            }
            ["next"] => {
                let input = request.query.get("input").map_or("", String::as_str);
                self.next(conversation, input).await.map(Some)
            }
            #[cfg(feature = "lab")]
            ["what-if"] => self.what_if(conversation, &request.query).await.map(Some),
            ["r", number] => match number.parse() {
                Ok(number) => self.request(conversation, number).await,
                Err(_) => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// A page of a conversation that cannot be made says why, and leads to the others.
    async fn problem(&self, request: &PageRequest, told: &str) -> Result<Option<String>, String> {
        let [place, id, rest @ ..] = request.path.as_slice() else {
            return Err(told.to_owned());
        };
        let found = self
            .store
            .get(&ConversationId::new(id))
            .await
            .ok()
            .flatten();
        let Some(conversation) = found.filter(|_| place == "c") else {
            return Err(told.to_owned());
        };
        let shown = rest
            .first()
            .map_or_else(String::new, |page| format!("/{page}"));
        let alert = Markup::element(
            "p",
            &[("class", "broken"), ("role", "alert")],
            [Markup::text(told)],
        );
        let pieces = [Markup::plain("h1", &conversation.name), alert];
        Ok(Some(page(
            &conversation.name,
            navigation(&conversation, &shown),
            pieces,
        )))
    }

    async fn posted(
        &self,
        request: &PageRequest,
        form: &FormFields,
    ) -> anyhow::Result<Option<FormAnswer>> {
        let names: Vec<_> = request.path.iter().map(String::as_str).collect();
        match names.as_slice() {
            ["run"] => Ok(self.start(form)),
            #[cfg(feature = "postgres")]
            ["queue", id] => self.change_task(id, form.get("do")).await,
            #[cfg(feature = "imports")]
            ["sessions", agent, path @ ..] => self.import(agent, path).await,
            ["c", id, "live"] => self.answered(&ConversationId::new(*id), form).await,
            ["c", id, "edit"] => match self.store.get(&ConversationId::new(*id)).await? {
                Some(conversation) => self.edit(conversation, form).await.map(Some),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    async fn conversations(&self, query: &str, from: usize) -> anyhow::Result<String> {
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
            self.list(from).await?
        } else {
            self.search(query).await?
        };
        let heading = Markup::plain("h1", text!("serve-conversations"));
        let begin = self
            .runs
            .as_ref()
            .map(|_| Markup::link("/run", text!("serve-run-new")));
        let sessions =
            cfg!(feature = "imports").then(|| Markup::link("/sessions", text!("serve-sessions")));
        let team = cfg!(feature = "postgres") && self.config.store.url.is_some();
        let queue = team.then(|| Markup::link("/queue", text!("serve-queue")));
        let begin = Markup::element(
            "p",
            &[("class", "buttons")],
            begin.into_iter().chain(sessions).chain(queue),
        );
        Ok(page(
            text!("serve-conversations"),
            Markup::all([]),
            [heading, begin, search, found],
        ))
    }

    async fn list(&self, from: usize) -> anyhow::Result<Markup> {
        let all = self.store.list(ConversationScope::Everywhere).await?;
        let mut rows = Vec::new();
        for row in all.iter().skip(from).take(LISTED) {
            rows.push(self.row(row).await?);
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
        Ok(Markup::all([table, pager("/", from, LISTED, all.len())]))
    }

    async fn row(&self, row: &ConversationRow) -> anyhow::Result<Vec<Markup>> {
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
        let costs: Vec<f64> = made.filter_map(cost_of).collect();
        let logged = self.store.requests(&row.id).await?.len() as u64;
        let replies = || {
            messages
                .iter()
                .filter(|message| message.role == Role::Assistant)
                .count() as u64
        };
        let requests = if logged == 0 && imported::agent(&metadata).is_some() {
            replies()
        } else {
            logged
        };
        let cost = if costs.is_empty() {
            String::new()
        } else {
            money(costs.iter().sum())
        };
        let cached = if usage.all_input() == 0 {
            String::new()
        } else {
            percent(usage.cached_share())
        };
        Ok(vec![
            Markup::link(&address(&row.id, ""), &row.name),
            Markup::text(agent_of(&metadata).unwrap_or("haft")),
            Markup::text(&row.namespace),
            Markup::text(grouped(row.messages)),
            Markup::text(grouped(requests)),
            Markup::text(cost),
            Markup::text(cached),
            Markup::text(row.updated_at.strftime("%Y-%m-%d %H:%M").to_string()),
        ])
    }

    async fn search(&self, query: &str) -> anyhow::Result<Markup> {
        let query = SearchQuery {
            text: query,
            scope: ConversationScope::Everywhere,
            limit: 50,
        };
        let hits = self.store.search(query).await?;
        if hits.is_empty() {
            return Ok(Markup::plain("p", text!("serve-no-hits")));
        }
        let row = |hit: haft_store::SearchHit| {
            let snippet = masked(&hit.snippet.text).into_owned();
            vec![
                Markup::link(&address(&hit.conversation.id, ""), &hit.conversation.name),
                Markup::text(snippet),
            ]
        };
        Ok(Markup::table(
            &[text!("serve-name"), text!("serve-text")],
            hits.into_iter().map(row),
        ))
    }

    async fn dialogue(&self, conversation: Conversation, from: usize) -> anyhow::Result<String> {
        let messages = self.store.messages(&conversation.id).await?;
        let shown: Vec<_> = messages
            .iter()
            .skip(from)
            .take(SPOKEN)
            .map(|one| spoken(Some(&conversation.id), one))
            .collect();
        let pager = pager(&address(&conversation.id, ""), from, SPOKEN, messages.len());
        let heading = Markup::plain("h1", &conversation.name);
        let family = self.family(&conversation).await?;
        Ok(page(
            &conversation.name,
            navigation(&conversation, ""),
            [heading, family, Markup::all(shown), pager],
        ))
    }

    /// The log of a conversation; `None` without requests.
    async fn log(&self, conversation: Conversation) -> anyhow::Result<Option<RequestLogReader>> {
        let store = Arc::clone(&self.store);
        let config = self.config.clone();
        Ok(
            Some(RequestLogReader::of(store, config, conversation).await?)
                .filter(|log| log.requests > 0),
        )
    }

    async fn timeline(&self, conversation: Conversation, zoomed: bool) -> anyhow::Result<String> {
        let name = conversation.name.clone();
        let navigation = navigation(&conversation, "/timeline");
        let id = conversation.id.clone();
        let heading = Markup::plain("h1", &name);
        let Some(log) = self.log(conversation).await? else {
            return Ok(page(
                &name,
                navigation,
                [heading, Markup::plain("p", text!("serve-no-requests"))],
            ));
        };
        let outlines = log.outlines().await?;
        let messages = log.messages().await?;
        let models = log.models(&outlines)?;
        let replies = log.replies(&outlines, &messages);
        let breaks = breaks(&outlines, &models, &messages);
        let mut columns = RequestColumn::of(&outlines, &replies, &models, &breaks);
        if log.imported.is_some() {
            // What the cache gave is a share of all that was sent, and a column is not all of it.
            columns
                .iter_mut()
                .for_each(RequestColumn::without_cache_line);
        }
        // Where other agents begin to clear is not known.
        let own = !is_recorded(&log.conversation.metadata) && log.imported.is_none();
        let zone = models
            .last()
            .filter(|_| own)
            .and_then(|model| self.config.context.safe_zone_tokens(model).ok());
        let links = address(&id, "/r/");
        let picture = picture::draw(
            &name,
            &columns,
            &PictureFrame {
                links: Some(&links),
                zone,
                zoomed,
            },
        );
        let (to, zoom) = if zoomed {
            ("", text!("serve-zoom-out"))
        } else {
            ("?zoom=in", text!("serve-zoom-in"))
        };
        let zoom = Markup::element(
            "p",
            &[],
            [Markup::link(&address(&id, &format!("/timeline{to}")), zoom)],
        );
        let rows = outlines.iter().zip(&replies).map(|(outline, reply)| {
            let number = outline.summary.number;
            let broken = breaks.iter().find(|one| one.request == number);
            vec![
                Markup::link(&address(&id, &format!("/r/{number}")), number.to_string()),
                Markup::text(outline.summary.sent_at.strftime("%H:%M:%S").to_string()),
                Markup::text(&outline.summary.model),
                Markup::text(grouped(outline.summary.tokens)),
                Markup::text(
                    reply.map_or_else(String::new, |reply| percent(reply.usage().cached_share())),
                ),
                Markup::text(reply.and_then(cost_of).map_or_else(String::new, money)),
                Markup::text(broken.map_or_else(String::new, why)),
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
            [Markup::picture(&picture)],
        );
        let note = Markup::all(log.imported_note().map(|note| Markup::plain("p", note)));
        Ok(page(
            &name,
            navigation,
            [heading, note, zoom, picture, Markup::table(&headings, rows)],
        ))
    }

    async fn request(
        &self,
        conversation: Conversation,
        number: u64,
    ) -> anyhow::Result<Option<String>> {
        let name = conversation.name.clone();
        let navigation = navigation(&conversation, "/r");
        let id = conversation.id.clone();
        let Some(log) = self
            .log(conversation)
            .await?
            .filter(|log| (1..=log.requests).contains(&number))
        else {
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
        let models = log.models(&outlines)?;
        let replies = log.replies(&outlines, &messages);
        let breaks = breaks(&outlines, &models, &messages);
        let reply = replies.get(
            outlines
                .iter()
                .position(|one| one.summary.number == number)
                .unwrap_or_default(),
        );
        let title = text!("serve-request-of", number, requests = log.requests);
        let mut pieces = vec![
            Markup::plain("h1", format!("{name}: {title}")),
            steps(&id, number, log.requests),
            facts(
                &now,
                reply.copied().flatten(),
                breaks.iter().find(|one| one.request == number),
            ),
            Markup::plain("h2", text!("serve-segments")),
            segments(&now, before.as_ref()),
        ];
        if let Some(before) = &before {
            let difference = RequestDiff::of(before, &now).text(true);
            pieces.extend([
                Markup::plain("h2", text!("serve-difference")),
                Markup::plain("pre", masked(&difference)),
            ]);
        }
        if let Some(note) = log.imported_note() {
            pieces.insert(1, Markup::plain("p", note));
        } else {
            let body = String::from_utf8_lossy(&render::body(&log, Some(number), None).await?)
                .into_owned();
            let summary = Markup::plain(
                "summary",
                text!("serve-body", bytes = grouped(body.len() as u64)),
            );
            pieces.push(Markup::element(
                "details",
                &[],
                [summary, Markup::plain("pre", masked(&body))],
            ));
        }
        Ok(Some(page(&format!("{name}: {title}"), navigation, pieces)))
    }
}

/// The other agent that a conversation was had with, or the sub-agent.
fn agent_of(metadata: &Metadata) -> Option<&str> {
    let said = |key: &str| metadata.get(key).and_then(Value::as_str);
    said("agent").or(said("imported_from"))
}

/// Whether another program sent it: its name is noted, and no conversation that it was started
/// from.
fn is_recorded(metadata: &Metadata) -> bool {
    metadata.contains_key("agent") && !metadata.contains_key("parent")
}

/// What a reply cost.
fn cost_of(made: &LlmMetadata) -> Option<f64> {
    let parts = [
        made.input_cost,
        made.output_cost,
        made.cached_input_cost,
        made.cache_write_cost,
    ];
    parts
        .iter()
        .any(Option::is_some)
        .then(|| parts.iter().flatten().sum())
}

fn page(title: &str, navigation: Markup, content: impl IntoIterator<Item = Markup>) -> String {
    let home = Markup::link("/", text!("serve-conversations"));
    let header = Markup::element("nav", &[], [home, navigation]);
    document(
        haft_messages::spoken().name(),
        title,
        Markup::all([header, Markup::element("main", &[], content)]),
    )
}

/// The address of a page of a conversation. An id may hold anything.
fn address(id: &ConversationId, page: &str) -> String {
    format!("/c/{}{page}", encoded(id.as_str()))
}

/// A text as a part of an address.
fn encoded(text: &str) -> String {
    let mut address = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => address.push(byte.into()),
            // Writing to a String cannot fail.
            _ => drop(write!(address, "%{byte:02X}")),
        }
    }
    address
}

/// The pages of a conversation; the one that is shown is marked.
fn navigation(conversation: &Conversation, shown: &str) -> Markup {
    let mut pages = vec![
        ("", text!("serve-dialogue")),
        ("/timeline", text!("serve-timeline")),
    ];
    // What another agent sends is its own business.
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
    Markup::all(pages.into_iter().map(|(page, name)| {
        let to = address(&conversation.id, page);
        let current = if page == shown {
            &[("href", to.as_str()), ("aria-current", "page")][..]
        } else {
            &[("href", &*to)]
        };
        Markup::element("a", current, [Markup::text(name)])
    }))
}

/// Links to what is before and behind a page of a list.
fn pager(to: &str, from: usize, size: usize, all: usize) -> Markup {
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

fn steps(id: &ConversationId, number: u64, requests: u64) -> Markup {
    let link = |at: u64, rel: &str, text: &str| {
        let to = address(id, &format!("/r/{at}"));
        Markup::element("a", &[("href", &to), ("rel", rel)], [Markup::text(text)])
    };
    let before = (number > 1).then(|| link(number - 1, "prev", text!("serve-before")));
    let after = (number < requests).then(|| link(number + 1, "next", text!("serve-after")));
    Markup::element("p", &[("class", "pager")], before.into_iter().chain(after))
}

fn why(broken: &PrefixBreakReport) -> String {
    let cause = broken.cause.map_or_else(
        || text!("context-why-no-cause").to_owned(),
        crate::output::localised,
    );
    let (tokens, cost) = broken.price();
    let cost = and_cost(cost);
    text!("serve-why", cause, tokens = grouped(tokens), cost)
}

fn facts(
    now: &LoggedRequest,
    reply: Option<&LlmMetadata>,
    broken: Option<&PrefixBreakReport>,
) -> Markup {
    let summary = &now.summary;
    let sent = text!(
        "serve-sent-to",
        model = summary.model,
        api = summary.api,
        time = summary.sent_at.strftime("%Y-%m-%d %H:%M:%S"),
        tokens = grouped(summary.tokens)
    );
    let billed = match reply {
        Some(reply) => {
            let usage = reply.usage();
            let cost = and_cost(cost_of(reply));
            text!(
                "serve-billed",
                input = grouped(usage.all_input()),
                cached = grouped(usage.cached_input),
                written = grouped(usage.cache_write),
                output = grouped(usage.output),
                cost
            )
        }
        None => text!("serve-no-reply").to_owned(),
    };
    let why = match broken {
        Some(broken) => Markup::element("p", &[("class", "broken")], [Markup::text(why(broken))]),
        None => Markup::plain("p", text!("serve-no-break")),
    };
    Markup::all([Markup::plain("p", sent), Markup::plain("p", billed), why])
}

fn segments(now: &LoggedRequest, before: Option<&LoggedRequest>) -> Markup {
    let old = before.map_or(&[][..], |before| &before.segments);
    let kept = old
        .iter()
        .zip(&now.segments)
        .take_while(|(old, new)| old.hash == new.hash)
        .count();
    let rows = now.segments.iter().enumerate().map(|(index, segment)| {
        let state = if index < kept {
            text!("serve-kept")
        } else {
            text!("serve-new")
        };
        let boundary = if segment.boundary {
            text!("serve-boundary")
        } else {
            ""
        };
        let summary = Markup::plain(
            "summary",
            opening(&segment.message)
                .chars()
                .take(100)
                .collect::<String>(),
        );
        let whole = Markup::plain("pre", whole_text(&segment.message));
        vec![
            Markup::text((index + 1).to_string()),
            Markup::text(crate::output::localised(segment.layer)),
            Markup::text(crate::output::localised(&segment.owner)),
            Markup::text(grouped(segment.tokens)),
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

/// A text under the beginning of its headline.
fn folded(headline: &str, text: &str) -> Markup {
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
        [Markup::plain("summary", first), Markup::plain("pre", text)],
    )
}

/// A message of the dialogue. What tools were given and gave is folded; pictures are shown where
/// the conversation is stored.
fn spoken(stored: Option<&ConversationId>, message: &Message) -> Markup {
    let role = crate::output::localised(message.role);
    let at = message.created_at.strftime("%Y-%m-%d %H:%M:%S");
    let heading = Markup::plain("h2", format!("{role} {} {at}", message.message_id.short()));
    let part = |(index, part): (usize, &Part)| {
        let text = part_as_text(part);
        let text = masked(&text);
        match (part, stored) {
            (Part::Image(_), Some(id)) => {
                let from = address(id, &format!("/{}/{index}", message.message_id))
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
                folded(&text, &text)
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
