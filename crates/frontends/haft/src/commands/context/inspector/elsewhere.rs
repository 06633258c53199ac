//! Sessions of other agents where these keep them: listed and shown, and stored only when that is
//! asked for.

use std::path::Path;

use haft_serve::{FormAnswer, Markup, path_segment};
use haft_store::Imported;
use haft_text::grouped;

use super::{Inspector, address, page, spoken};
use crate::commands::conversations::other_agents::{self, ForeignSession};

/// Sessions that are listed, the newest first.
const MOST: usize = 200;
/// Messages that are shown at most.
const SHOWN: usize = 1_000;

impl Inspector {
    /// The sessions of all agents, the newest first.
    pub(super) fn elsewhere(&self) -> String {
        let sessions = other_agents::sessions(self.home.as_deref());
        let rows = sessions.iter().take(MOST).map(|session| {
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
                text!("serve-sessions-note", folders = other_agents::folders()),
            ),
            Markup::table(&headings, rows),
        ];
        page(text!("serve-sessions"), Markup::all([]), pieces)
    }

    /// One of them, read as it is now.
    pub(super) fn session(&self, agent: &str, path: &[&str]) -> Option<String> {
        let (file, id, format) = other_agents::find(self.home.as_deref(), agent, path)?;
        let name = path.join("/");
        let mut pieces = Vec::new();
        match other_agents::read(&file, id.as_deref(), format) {
            Ok(read) => {
                let named = read.first().map_or(&name, |one| &one.document.name);
                pieces.push(Markup::plain("h1", named));
                pieces.push(self.keep(agent, path, &file));
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
                            .take(SHOWN)
                            .map(|message| spoken(None, message)),
                    );
                }
            }
            Err(problem) => {
                let alert = [("class", "broken"), ("role", "alert")];
                pieces.extend([
                    Markup::plain("h1", &name),
                    Markup::element("p", &alert, [Markup::text(problem)]),
                ]);
            }
        }
        Some(page(
            &name,
            Markup::link("/sessions", text!("serve-sessions")),
            pieces,
        ))
    }

    /// What is said of a session that is not stored, and the button that stores it.
    fn keep(&self, agent: &str, path: &[&str], file: &Path) -> Markup {
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

    /// Stores a session beside haft's own, in a namespace of its agent's name, and shows it.
    pub(super) async fn import(
        &self,
        agent: &str,
        path: &[&str],
    ) -> anyhow::Result<Option<FormAnswer>> {
        let Some((file, id, format)) = other_agents::find(self.home.as_deref(), agent, path) else {
            return Ok(None);
        };
        let read = other_agents::read(&file, id.as_deref(), format).map_err(anyhow::Error::msg)?;
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

/// The address of a session's page.
fn place(session: &ForeignSession) -> String {
    let path = session.path.to_string_lossy();
    let parts: Vec<_> = path
        .split('/')
        .chain(session.id.as_deref())
        .map(path_segment)
        .collect();
    format!("/sessions/{}/{}", session.format, parts.join("/"))
}
