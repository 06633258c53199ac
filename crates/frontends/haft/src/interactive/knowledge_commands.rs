//! `/useful` and `/notes`: list, add and remove the file ranges and notes that reminders show.

use std::sync::Arc;

use haft_agent::{WallClock, split_words};
use haft_tools::{NewUsefulItem, StoredNotes, UsefulItem};

use super::TuiSession;
use crate::commands::notes;
use crate::commands::useful::{self, LineSpan};
use crate::exit::usage_error;

impl TuiSession<'_> {
    /// Carries out `/useful` with these arguments. Before the first prompt, the ranges wait for the
    /// conversation that it opens.
    pub(super) async fn handle_useful(&mut self, arguments: &str) -> anyhow::Result<()> {
        let words = split_words(arguments.strip_prefix('/').unwrap_or(arguments));
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let text = match words.as_slice() {
            [] | ["list"] => useful::format_ranges(self.list_ranges().await?),
            ["add", path, lines, description @ ..] => {
                let Ok(lines) = lines.parse::<LineSpan>() else {
                    return Err(usage_error(text!("interactive-useful-usage")));
                };
                self.add_range(path, lines, &description.join(" ")).await?
            }
            ["remove", number] => match number.parse() {
                Ok(number) => self.remove_range(number).await?,
                Err(_) => return Err(usage_error(text!("interactive-useful-usage"))),
            },
            _ => return Err(usage_error(text!("interactive-useful-usage"))),
        };
        self.show_text(text.trim_end());
        Ok(())
    }

    async fn list_ranges(&self) -> anyhow::Result<Vec<UsefulItem>> {
        match &self.session {
            Some(session) => session
                .useful()
                .list()
                .await
                .map_err(notes::to_command_error),
            None => Ok(number_ranges(&self.chosen.useful)),
        }
    }

    async fn add_range(
        &mut self,
        path: &str,
        lines: LineSpan,
        description: &str,
    ) -> anyhow::Result<String> {
        let root = self.project.root.clone();
        let new = useful::locate_range(&self.project.cwd, &root, path, lines, description)?;
        let Some(session) = &self.session else {
            self.chosen.useful.push(new);
            return Ok(useful::format_ranges(number_ranges(&self.chosen.useful)));
        };
        let added = session.useful().add(new).await;
        added
            .map(|added| useful::added_range_to_text(&added))
            .map_err(notes::to_command_error)
    }

    async fn remove_range(&mut self, number: u32) -> anyhow::Result<String> {
        let item = match &self.session {
            Some(session) => session
                .useful()
                .delete(number)
                .await
                .map_err(notes::to_command_error)?,
            None => {
                let waiting = number_ranges(&self.chosen.useful);
                let unknown = || usage_error(text!("useful-unknown", number));
                let item = waiting.into_iter().find(|item| item.number == number);
                let item = item.ok_or_else(unknown)?;
                self.chosen.useful.remove(number as usize - 1);
                item
            }
        };
        Ok(text!("useful-removed", item = useful::format_item(&item)))
    }

    /// Adds the ranges that waited for a conversation to the one that was opened.
    pub(super) async fn add_waiting_ranges(&mut self) -> anyhow::Result<()> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        for new in self.chosen.useful.drain(..) {
            session
                .useful()
                .add(new)
                .await
                .map_err(notes::to_command_error)?;
        }
        Ok(())
    }

    /// Carries out `/notes` with these arguments.
    pub(super) async fn handle_notes(&mut self, arguments: &str) -> anyhow::Result<()> {
        let words = split_words(arguments.strip_prefix('/').unwrap_or(arguments));
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let stored = self.open_notes().await?;
        let text = match words.as_slice() {
            [] | ["list"] => {
                let all = stored.list().await.map_err(notes::to_command_error)?;
                notes::format_notes(all)
            }
            ["add", path, text @ ..] => {
                notes::add_to_notes(&self.project, &stored, path, &text.join(" ")).await?
            }
            ["remove", id] => {
                let removed = stored.delete(id).await.map_err(notes::to_command_error)?;
                text!("notes-deleted", note = notes::format_note(&removed))
            }
            _ => return Err(usage_error(text!("interactive-notes-usage"))),
        };
        self.show_text(text.trim_end());
        Ok(())
    }

    /// Returns the notes of the open session, whose next request then shows the change. Without a
    /// session, opens the notes of the project.
    async fn open_notes(&self) -> anyhow::Result<Arc<StoredNotes>> {
        if let Some(session) = &self.session {
            return Ok(Arc::clone(session.notes()));
        }
        let store = self.settings.open_store()?;
        let namespace = self.project.namespace();
        let root = self.project.root.clone();
        let notes = StoredNotes::open(store, &namespace, root, Arc::new(WallClock)).await?;
        Ok(Arc::new(notes))
    }
}

/// Numbers ranges that are not stored yet, in the order in which they were added.
fn number_ranges(ranges: &[NewUsefulItem]) -> Vec<UsefulItem> {
    let number = |(new, number): (&NewUsefulItem, u32)| UsefulItem {
        number,
        path: new.path.clone(),
        start_line: new.start_line,
        end_line: new.end_line,
        description: new.description.clone(),
    };
    ranges.iter().zip(1..).map(number).collect()
}
