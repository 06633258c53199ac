//! Sessions of other agents. Pages list and show them; they are imported into the store only on
//! request.

use std::path::Path;

use haft_imports::{
    ForeignSession, SessionError, find_session, foreign_sessions, read_session, session_folders,
};
use haft_store::Imported;
use haft_text::grouped;

use super::{Inspector, PageResult, address, page};
use crate::markup::Markup;
use crate::server::{FormAnswer, path_segment};
use crate::{PageError, localized};

/// The maximum number of sessions in the list.
const MAX_SESSIONS: usize = 200;
/// The maximum number of messages shown on a session's page.
const MAX_MESSAGES: usize = 1_000;

impl Inspector {
    /// Renders the page that lists the sessions of all agents, newest first.
    pub(super) fn elsewhere(&self) -> String {
        let sessions = foreign_sessions(&self.session_roots);
        let rows = sessions.iter().take(MAX_SESSIONS).map(|session| {
            let path = session.path.to_string_lossy();
            vec![
                Markup::link(&place(session), session.name.as_deref().unwrap_or(&path)),
                Markup::text(session.format.name()),
                Markup::text(grouped(session.bytes)),
                Markup::text(session.changed.strftime("%Y-%m-%d %H:%M").to_string()),
            ]
        });
        let headings = [
            text!("serve-name"),
            text!("serve-agent"),
            text!("serve-bytes"),
            text!("serve-updated"),
        ];
        let pieces = [
            Markup::plain("h1", text!("serve-sessions")),
            Markup::plain(
                "p",
                text!("serve-sessions-note", folders = session_folders()),
            ),
            Markup::table(&headings, rows),
        ];
        page(text!("serve-sessions"), Markup::all([]), pieces)
    }

    /// Renders the page of a session, or returns `None` if there is no such session.
    pub(super) fn session(&self, agent: &str, path: &[&str]) -> Option<String> {
        let place = find_session(&self.session_roots, agent, path)?;
        let name = path.join("/");
        let mut pieces = Vec::new();
        match read_session(&place) {
            Ok(read) => {
                let named = read.first().map_or(&name, |one| &one.document.name);
                pieces.push(Markup::plain("h1", named));
                pieces.push(self.import_form(agent, path, &place.file));
                for one in &read {
                    if one.skipped > 0 {
                        pieces.push(Markup::plain(
                            "p",
                            text!("serve-session-skipped", skipped = one.skipped),
                        ));
                    }
                    pieces.extend(
                        one.document
                            .messages
                            .iter()
                            .take(MAX_MESSAGES)
                            .map(|message| self.message(None, message)),
                    );
                }
            }
            Err(problem) => {
                let alert = [("class", "broken"), ("role", "alert")];
                pieces.extend([
                    Markup::plain("h1", &name),
                    Markup::element("p", &alert, [Markup::text(worded(&problem))]),
                ]);
            }
        }
        Some(page(
            &name,
            Markup::link("/sessions", text!("serve-sessions")),
            pieces,
        ))
    }

    /// Renders the note that a session is not stored, and the button that imports it.
    fn import_form(&self, agent: &str, path: &[&str], file: &Path) -> Markup {
        let to: Vec<_> = path.iter().map(|part| path_segment(part)).collect();
        let note = Markup::plain("p", text!("serve-session-note", path = file.display()));
        let button = Markup::button("import", text!("serve-session-import"));
        Markup::all([
            note,
            Markup::form(
                &format!("/sessions/{agent}/{}", to.join("/")),
                &self.form_token,
                [button],
            ),
        ])
    }

    /// Imports a session into the namespace named after its agent, and redirects to its timeline.
    pub(super) async fn import(
        &self,
        agent: &str,
        path: &[&str],
    ) -> PageResult<Option<FormAnswer>> {
        let Some(place) = find_session(&self.session_roots, agent, path) else {
            return Ok(None);
        };
        let read =
            read_session(&place).map_err(|error| PageError::Action(localized(worded(&error))))?;
        let mut shown = None;
        for one in read {
            let (Imported::New(stored)
            | Imported::Same(stored)
            | Imported::Grown {
                conversation: stored,
                ..
            }) = self.store.import(one.document, agent).await?;
            shown = Some(FormAnswer::See(address(&stored.id, "/timeline")));
        }
        Ok(shown)
    }
}

fn worded(error: &SessionError) -> String {
    match error {
        SessionError::TooLarge => text!("serve-session-too-large").to_owned(),
        SessionError::Io(_) | SessionError::Import(_) => error.to_string(),
    }
}

/// Returns the path of a session's page.
fn place(session: &ForeignSession) -> String {
    let path = session.path.to_string_lossy();
    let parts: Vec<_> = path
        .split('/')
        .chain(session.id.as_deref())
        .map(path_segment)
        .collect();
    format!("/sessions/{}/{}", session.format, parts.join("/"))
}
