//! `/useful` and `/notes`: list, add and remove the file ranges and notes that reminders show.

use std::sync::Arc;

use haft_agent::WallClock;
use haft_tool::PortError;
use haft_tools::{NewUsefulItem, StoredNotes, StoredUseful, UsefulItem};

use super::TuiSession;
use crate::commands::notes;
use crate::commands::useful::{self, LineSpan};
use crate::exit::usage_error;

impl TuiSession<'_> {
    /// Carries out `/useful` with these arguments. Before the first prompt, the ranges wait for the
    /// conversation that it opens.
    pub(super) async fn handle_useful(&mut self, arguments: &str) -> anyhow::Result<()> {
        let usage = || usage_error(text!("interactive-useful-usage"));
        let (verb, rest) = split_verb(arguments);
        let text = match (verb.as_str(), rest) {
            ("" | "list", "") => useful::format_ranges(self.list_ranges().await?),
            ("add", _) => {
                let (path, rest) = split_first_word(rest);
                let (lines, description) = split_first_word(rest);
                let lines: LineSpan = lines.parse().map_err(|_| usage())?;
                self.add_range(&path, lines, strip_quotes(description))
                    .await?
            }
            ("remove", number) => {
                let number = number.parse().map_err(|_| usage())?;
                self.remove_range(number).await?
            }
            _ => return Err(usage()),
        };
        self.show_text(text.trim_end());
        Ok(())
    }

    async fn list_ranges(&mut self) -> anyhow::Result<Vec<UsefulItem>> {
        match self.stored_ranges() {
            Some(stored) => stored.list().await.map_err(notes::to_command_error),
            None => Ok(number_ranges(self.waiting_ranges())),
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
        if let Some(stored) = self.stored_ranges() {
            let added = stored.add(new).await.map_err(notes::to_command_error)?;
            return Ok(useful::added_range_to_text(&added));
        }
        let waiting = self.waiting_ranges();
        waiting.push(new);
        Ok(useful::format_ranges(number_ranges(waiting)))
    }

    async fn remove_range(&mut self, number: u32) -> anyhow::Result<String> {
        let unknown = || usage_error(text!("interactive-useful-unknown", number));
        let item = if let Some(stored) = self.stored_ranges() {
            match stored.delete(number).await {
                Err(PortError::Unknown { .. }) => return Err(unknown()),
                deleted => deleted.map_err(notes::to_command_error)?,
            }
        } else {
            let waiting = self.waiting_ranges();
            let mut numbered = number_ranges(waiting);
            let index = numbered.iter().position(|item| item.number == number);
            let index = index.ok_or_else(unknown)?;
            waiting.remove(index);
            numbered.swap_remove(index)
        };
        Ok(text!("useful-removed", item = useful::format_item(&item)))
    }

    /// Returns the ranges of the open conversation, or `None` if no conversation is in the store
    /// yet.
    fn stored_ranges(&self) -> Option<Arc<StoredUseful>> {
        let session = self.session.as_ref()?;
        session.useful().map(Arc::clone)
    }

    /// Returns the ranges that wait for a conversation.
    fn waiting_ranges(&mut self) -> &mut Vec<NewUsefulItem> {
        match &mut self.session {
            Some(session) => session.waiting_ranges(),
            None => &mut self.chosen.useful,
        }
    }

    /// Hands the ranges that waited for a conversation to the open one.
    pub(super) async fn add_waiting_ranges(&mut self) -> anyhow::Result<()> {
        let waiting = std::mem::take(&mut self.chosen.useful);
        match self.stored_ranges() {
            Some(stored) => {
                for new in waiting {
                    stored.add(new).await.map_err(notes::to_command_error)?;
                }
            }
            None => self.waiting_ranges().extend(waiting),
        }
        Ok(())
    }

    /// Carries out `/notes` with these arguments.
    pub(super) async fn handle_notes(&mut self, arguments: &str) -> anyhow::Result<()> {
        let usage = || usage_error(text!("interactive-notes-usage"));
        let (verb, rest) = split_verb(arguments);
        let stored = self.open_notes().await?;
        let text = match (verb.as_str(), rest) {
            ("" | "list", "") => {
                let all = stored.list().await.map_err(notes::to_command_error)?;
                notes::format_notes(all)
            }
            ("add", _) => {
                let (path, note) = split_first_word(rest);
                if path.is_empty() {
                    return Err(usage());
                }
                notes::add_to_notes(&self.project, &stored, &path, strip_quotes(note)).await?
            }
            ("remove", id) if !id.is_empty() => {
                let removed = stored.delete(id).await.map_err(notes::to_command_error)?;
                text!("notes-deleted", note = notes::format_note(&removed))
            }
            _ => return Err(usage()),
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

/// Splits off the verb of a command, which may begin with a slash.
fn split_verb(arguments: &str) -> (String, &str) {
    let arguments = arguments.trim();
    split_first_word(arguments.strip_prefix('/').unwrap_or(arguments))
}

/// Splits off the first word of a line, which may be quoted. The rest of the line stays as it is,
/// without the spaces around it.
fn split_first_word(line: &str) -> (String, &str) {
    let line = line.trim();
    let quoted = line
        .chars()
        .next()
        .filter(|quote| matches!(quote, '"' | '\''))
        .and_then(|quote| line[1..].split_once(quote));
    let (word, rest) = match quoted {
        Some(found) => found,
        None => line.split_once(char::is_whitespace).unwrap_or((line, "")),
    };
    (word.to_owned(), rest.trim_start())
}

/// Removes quotes around a whole text.
fn strip_quotes(text: &str) -> &str {
    let text = text.trim();
    ['"', '\'']
        .into_iter()
        .find_map(|quote| {
            let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
            (!inner.contains(quote)).then_some(inner)
        })
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_keep_the_text_after_the_words() {
        for (line, word, rest) in [
            ("", "", ""),
            ("  src  it's  \"here\" ", "src", "it's  \"here\""),
            ("'a b.rs' 1-2 x", "a b.rs", "1-2 x"),
            ("\"a'b\" c", "a'b", "c"),
            ("'tis unclosed", "'tis", "unclosed"),
            ("é è", "é", "è"),
        ] {
            assert_eq!(split_first_word(line), (word.to_owned(), rest), "{line}");
        }
        assert_eq!(split_verb(" /add x"), ("add".to_owned(), "x"));
        for (text, stripped) in [
            ("\"a b\"", "a b"),
            ("'a' and 'b'", "'a' and 'b'"),
            ("it's", "it's"),
            ("\"", "\""),
        ] {
            assert_eq!(strip_quotes(text), stripped, "{text}");
        }
    }
}
