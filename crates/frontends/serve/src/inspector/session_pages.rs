//! Renders the pages that list and show sessions of other agents. A session is imported into the
//! store only on request.

use std::path::Path;

use haft_imports::{
    ForeignSession, SessionError, find_session, format_session_folders, list_foreign_sessions,
    read_session,
};
use haft_store::Imported;
use haft_text::format_thousands;

use super::page_frame::SiteSection;
use super::{Inspector, PageResult, conversation_path};
use crate::markup::{Column, Markup};
use crate::server::{FormAnswer, encode_path_segment};
use crate::{PageError, localize_text};

/// The maximum number of sessions that the list of sessions shows.
const MAX_SESSIONS: usize = 200;
/// The maximum number of messages that the page of a session shows.
const MAX_MESSAGES: usize = 1_000;

impl Inspector {
    /// Renders the page that lists the sessions of all other agents, newest first.
    pub(super) fn render_sessions(&self) -> String {
        let sessions = list_foreign_sessions(&self.session_roots);
        let rows = sessions.iter().take(MAX_SESSIONS).map(|session| {
            let path = session.path.to_string_lossy();
            vec![
                Markup::link(
                    &session_path(session),
                    session.name.as_deref().unwrap_or(&path),
                ),
                Markup::text(session.format.name()),
                Markup::text(format_thousands(session.bytes)),
                Markup::text(session.changed.strftime("%Y-%m-%d %H:%M").to_string()),
            ]
        });
        let columns = [
            Column::prose(text!("serve-name")),
            Column::text(text!("serve-agent")),
            Column::figure(text!("serve-bytes")),
            Column::figure(text!("serve-updated")),
        ];
        let pieces = [
            Markup::text_element(
                "p",
                text!("serve-sessions-note", folders = format_session_folders()),
            ),
            Markup::table(&columns, rows),
        ];
        self.build_page(SiteSection::Sessions, text!("serve-sessions"), pieces)
    }

    /// Renders the page of one session of another agent. Returns `None` if the session does not
    /// exist.
    pub(super) fn render_session(&self, agent: &str, path: &[&str]) -> Option<String> {
        let place = find_session(&self.session_roots, agent, path)?;
        let name = path.join("/");
        let mut pieces = Vec::new();
        let mut title = name.clone();
        match read_session(&place) {
            Ok(read) => {
                if let Some(first) = read.first() {
                    title.clone_from(&first.document.name);
                }
                pieces.push(self.render_import_form(agent, path, &place.file));
                for one in &read {
                    if one.skipped > 0 {
                        pieces.push(Markup::text_element(
                            "p",
                            text!("serve-session-skipped", skipped = one.skipped),
                        ));
                    }
                    let messages = one.document.messages.iter().take(MAX_MESSAGES);
                    pieces.push(Markup::element(
                        "div",
                        &[("class", "dialogue")],
                        messages.map(|message| self.render_message(None, message)),
                    ));
                }
            }
            Err(problem) => pieces.push(self.render_alert(&session_error_message(&problem))),
        }
        Some(self.build_page(SiteSection::Sessions, &title, pieces))
    }

    /// Renders a note that the session is not stored, with a button that imports it.
    fn render_import_form(&self, agent: &str, path: &[&str], file: &Path) -> Markup {
        let to: Vec<_> = path.iter().map(|part| encode_path_segment(part)).collect();
        let note = Markup::text_element("p", text!("serve-session-note", path = file.display()));
        let button = Markup::button("import", text!("serve-session-import"));
        Markup::concat([
            note,
            Markup::form(
                &format!("/sessions/{agent}/{}", to.join("/")),
                &self.form_token,
                [button],
            ),
        ])
    }

    /// Imports a session into the namespace named after its agent, and redirects to the timeline of
    /// the new conversation.
    pub(super) async fn import_session(
        &self,
        agent: &str,
        path: &[&str],
    ) -> PageResult<Option<FormAnswer>> {
        let Some(place) = find_session(&self.session_roots, agent, path) else {
            return Ok(None);
        };
        let read = read_session(&place)
            .map_err(|error| PageError::Action(localize_text(session_error_message(&error))))?;
        let mut shown = None;
        for one in read {
            let (Imported::New(stored)
            | Imported::Same(stored)
            | Imported::Grown {
                conversation: stored,
                ..
            }) = self.store.import(one.document, agent).await?;
            shown = Some(FormAnswer::Redirect(conversation_path(
                &stored.id,
                "/timeline",
            )));
        }
        Ok(shown)
    }
}

fn session_error_message(error: &SessionError) -> String {
    match error {
        SessionError::TooLarge => text!("serve-session-too-large").to_owned(),
        SessionError::Io(_) | SessionError::Import(_) => error.to_string(),
    }
}

/// Returns the URL path of the page that shows a session.
fn session_path(session: &ForeignSession) -> String {
    let path = session.path.to_string_lossy();
    let parts: Vec<_> = path
        .split('/')
        .chain(session.id.as_deref())
        .map(encode_path_segment)
        .collect();
    format!("/sessions/{}/{}", session.format, parts.join("/"))
}
