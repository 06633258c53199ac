//! The frame of every page: the bar with the site's sections, the heading and the pages of a
//! conversation, pagers, and pages for errors and for results that are still being computed.

use haft_store::Conversation;
use haft_types::ConversationId;

use super::log_data::is_recorded;
use super::{Inspector, conversation_path};
use crate::computation::ComputationProgress;
use crate::markup::{Markup, build_html_document, build_waiting_document};

/// The id of the element that shows the progress of a computation. The script of the pages knows
/// it, too.
const PROGRESS_ID: &str = "computing";

/// A section of the site, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SiteSection {
    Conversations,
    Run,
    #[cfg(feature = "imports")]
    Sessions,
    #[cfg(feature = "postgres")]
    Queue,
    /// The page belongs to no section.
    Elsewhere,
}

/// The page of a conversation that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConversationTab {
    Dialogue,
    Timeline,
    Run,
    Editor,
    Next,
    #[cfg(feature = "lab")]
    WhatIf,
    /// A page that no tab leads to, such as a single request.
    Other,
}

impl Inspector {
    /// Builds a page of a section.
    pub(super) fn build_page(
        &self,
        section: SiteSection,
        title: &str,
        content: impl IntoIterator<Item = Markup>,
    ) -> String {
        let heading = Markup::text_element("h1", title);
        let content = std::iter::once(heading).chain(content);
        self.build_document(
            section,
            title,
            Markup::default(),
            content,
            PageState::Complete,
        )
    }

    /// Builds a page of a conversation. `title` is the heading, or `None` for the conversation's
    /// name.
    pub(super) fn build_conversation_page(
        &self,
        conversation: &Conversation,
        tab: ConversationTab,
        title: Option<&str>,
        content: impl IntoIterator<Item = Markup>,
    ) -> String {
        let head = render_conversation_head(conversation, tab, title);
        let full = match title {
            Some(title) => format!("{}: {title}", conversation.name),
            None => conversation.name.clone(),
        };
        self.build_document(
            SiteSection::Elsewhere,
            &full,
            head,
            content,
            PageState::Complete,
        )
    }

    /// Builds a page of a conversation whose content is still being computed.
    pub(super) fn build_progress_page(
        &self,
        conversation: &Conversation,
        tab: ConversationTab,
        progress: ComputationProgress,
    ) -> String {
        let head = render_conversation_head(conversation, tab, None);
        let content = [render_progress(progress)];
        self.build_document(
            SiteSection::Elsewhere,
            &conversation.name,
            head,
            content,
            PageState::Waiting,
        )
    }

    /// Builds the page for an error, with a way back.
    pub(super) fn build_error_page(&self, title: &str, message: &str) -> String {
        let note = Markup::element(
            "p",
            &[("role", "alert")],
            [Markup::text(self.masker.mask(message))],
        );
        let back = Markup::element(
            "p",
            &[("class", "buttons")],
            [Markup::link("/", text!("serve-back"))],
        );
        self.build_page(SiteSection::Elsewhere, title, [note, back])
    }

    fn build_document(
        &self,
        section: SiteSection,
        title: &str,
        head: Markup,
        content: impl IntoIterator<Item = Markup>,
        state: PageState,
    ) -> String {
        let skip = Markup::element(
            "a",
            &[("class", "skip"), ("href", "#content")],
            [Markup::text(text!("serve-skip"))],
        );
        let main = Markup::element(
            "main",
            &[("id", "content")],
            std::iter::once(head).chain(content),
        );
        let body = Markup::concat([skip, self.render_bar(section), main]);
        let language = haft_messages::current_language().name();
        let title = format!("{title} · haft");
        match state {
            PageState::Complete => build_html_document(language, &title, body),
            PageState::Waiting => build_waiting_document(language, &title, body),
        }
    }

    /// Renders the links to the sections of the site.
    fn render_bar(&self, section: SiteSection) -> Markup {
        let mut links = vec![(
            SiteSection::Conversations,
            "/",
            text!("serve-conversations"),
        )];
        if self.runs.is_some() {
            links.push((SiteSection::Run, "/run", text!("serve-run-new")));
        }
        #[cfg(feature = "imports")]
        links.push((SiteSection::Sessions, "/sessions", text!("serve-sessions")));
        #[cfg(feature = "postgres")]
        if self.open_queue.is_some() {
            links.push((SiteSection::Queue, "/queue", text!("serve-queue")));
        }
        let mark = Markup::element(
            "a",
            &[("class", "mark"), ("href", "/")],
            [Markup::text("haft")],
        );
        let links = links
            .into_iter()
            .map(|(to, path, name)| render_tab(path, name, to == section));
        Markup::element(
            "header",
            &[("class", "bar")],
            [Markup::element(
                "nav",
                &[("aria-label", text!("serve-sections"))],
                std::iter::once(mark).chain(links),
            )],
        )
    }
}

/// Whether a page is complete, or shows the progress of its computation.
#[derive(Clone, Copy)]
enum PageState {
    Complete,
    Waiting,
}

fn render_tab(to: &str, name: &str, is_current: bool) -> Markup {
    let attributes = [("href", to), ("aria-current", "page")];
    let shown = if is_current { 2 } else { 1 };
    Markup::element("a", &attributes[..shown], [Markup::text(name)])
}

/// Renders the heading of a conversation's page, with the links to its pages.
fn render_conversation_head(
    conversation: &Conversation,
    tab: ConversationTab,
    title: Option<&str>,
) -> Markup {
    let mut pages = vec![
        (ConversationTab::Dialogue, "", text!("serve-dialogue")),
        (
            ConversationTab::Timeline,
            "/timeline",
            text!("serve-timeline"),
        ),
    ];
    // The context of another agent's conversation cannot be edited.
    if !is_recorded(&conversation.metadata) {
        pages.extend([
            (ConversationTab::Run, "/live", text!("serve-run")),
            (ConversationTab::Editor, "/edit", text!("serve-editor")),
            (ConversationTab::Next, "/next", text!("serve-next")),
        ]);
    }
    #[cfg(feature = "lab")]
    pages.push((ConversationTab::WhatIf, "/what-if", text!("serve-what-if")));
    let tabs = pages.into_iter().map(|(page, path, name)| {
        let to = conversation_path(&conversation.id, path);
        render_tab(&to, name, page == tab)
    });
    let tabs = Markup::element(
        "nav",
        &[("class", "tabs"), ("aria-label", text!("serve-pages"))],
        tabs,
    );
    let name = Markup::text(&conversation.name);
    let heading = match title {
        None => Markup::element("h1", &[], [name]),
        Some(title) => Markup::element(
            "h1",
            &[],
            [
                Markup::element("span", &[("class", "of")], [name, Markup::text(" · ")]),
                Markup::text(title),
            ],
        ),
    };
    Markup::element("div", &[("class", "head")], [heading, tabs])
}

/// Renders the progress of a computation. The page is replaced when the result is there.
pub(super) fn render_progress(progress: ComputationProgress) -> Markup {
    let ComputationProgress { done, total } = progress;
    let max = total.max(1).to_string();
    let value = done.min(total).to_string();
    let bar = Markup::element(
        "progress",
        &[
            ("max", &max),
            ("value", &value),
            ("aria-label", text!("serve-computing")),
        ],
        [],
    );
    let share = haft_text::format_percent(done as f64 / total.max(1) as f64);
    Markup::element(
        "p",
        &[("id", PROGRESS_ID), ("role", "status")],
        [
            Markup::text(text!("serve-computing-share", share)),
            Markup::text(" "),
            bar,
        ],
    )
}

/// Renders the links to the previous and the next page of a list, and the place in the list. `to`
/// is the address of the list, which may have a query.
pub(super) fn render_pager(to: &str, from: usize, size: usize, all: usize) -> Markup {
    if all <= size && from == 0 {
        return Markup::default();
    }
    let sign = if to.contains('?') { '&' } else { '?' };
    let link = |at: usize, rel: &str, text: &str| {
        render_pager_link(&format!("{to}{sign}from={at}"), rel, text)
    };
    let before = (from > 0).then(|| link(from.saturating_sub(size), "prev", text!("serve-before")));
    let rest = all.saturating_sub(from);
    let after = (rest > size).then(|| link(from + size, "next", text!("serve-after")));
    let place = (rest > 0).then(|| {
        Markup::text_element(
            "span",
            text!(
                "serve-place",
                first = haft_text::format_thousands(from as u64 + 1),
                last = haft_text::format_thousands((from + rest.min(size)) as u64),
                all = haft_text::format_thousands(all as u64)
            ),
        )
    });
    let last = (all.saturating_sub(1) / size * size > from).then(|| {
        link(
            all.saturating_sub(1) / size * size,
            "last",
            text!("serve-last"),
        )
    });
    let pieces = before.into_iter().chain(place).chain(after).chain(last);
    Markup::element("p", &[("class", "pager")], pieces)
}

/// Renders the links to the previous and the next page of a list whose length is unknown.
#[cfg(feature = "postgres")]
pub(super) fn render_open_pager(to: &str, from: usize, size: usize, has_more: bool) -> Markup {
    let before = (from > 0).then(|| {
        let to = format!("{to}?from={}", from.saturating_sub(size));
        render_pager_link(&to, "prev", text!("serve-before"))
    });
    let after = has_more.then(|| {
        let to = format!("{to}?from={}", from + size);
        render_pager_link(&to, "next", text!("serve-after"))
    });
    Markup::element("p", &[("class", "pager")], before.into_iter().chain(after))
}

fn render_pager_link(to: &str, rel: &str, text: &str) -> Markup {
    Markup::element("a", &[("href", to), ("rel", rel)], [Markup::text(text)])
}

pub(super) fn render_request_pager(id: &ConversationId, number: u64, requests: u64) -> Markup {
    let link = |at: u64, rel: &str, text: &str| {
        let to = conversation_path(id, &format!("/r/{at}"));
        render_pager_link(&to, rel, text)
    };
    let before = (number > 1).then(|| link(number - 1, "prev", text!("serve-before")));
    let after = (number < requests).then(|| link(number + 1, "next", text!("serve-after")));
    Markup::element("p", &[("class", "pager")], before.into_iter().chain(after))
}
