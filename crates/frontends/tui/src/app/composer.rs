//! The input line: its text, history search, completion menu, attached images, and the input that
//! is queued while a turn runs.
//!
//! Invariant: queued input stays visible until it becomes part of a turn; it is neither lost nor
//! sent twice.

use std::collections::VecDeque;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::completions::{Completions, EnterAction};
use super::scrollback::PROMPT_MARK;
use super::update::Effect;
use crate::complete::MenuMove;
use crate::config::Editing;
use crate::editor::Editor;
use crate::image_paste::PastedImage;
use crate::line::{StyledLine, TextStyle};
use crate::link::{Operation, SideAction};

/// The maximum number of rows of the input.
const INPUT_ROWS: usize = 10;

#[derive(Debug)]
pub(super) struct Composer {
    editor: Editor,
    completions: Completions,
    search: Option<HistorySearch>,
    /// The user's text while a question or form uses the editor.
    draft: Option<String>,
    queue: VecDeque<QueuedInput>,
    /// Pasted images that have not been sent yet.
    images: Vec<PastedImage>,
}

/// Input that waits until it can join the running turn or start another turn.
#[derive(Debug)]
struct QueuedInput {
    text: String,
    /// True if the session was asked to add the text to the running turn.
    joins: bool,
}

/// An open search in the input history.
#[derive(Debug, Default)]
struct HistorySearch {
    query: String,
    /// The number of matches to skip, beginning with the newest.
    skip: usize,
}

/// The rows of the input, and the row and column of the cursor within these rows.
pub(super) type InputView = (Vec<StyledLine>, (usize, usize));

impl Composer {
    pub(super) fn new(history: Vec<String>, editing: Editing, completions: Completions) -> Self {
        let mut editor = Editor::with_history(history);
        match editing {
            Editing::Shell => {}
            Editing::Vim => editor.enable_vim(),
        }
        Self {
            editor,
            completions,
            search: None,
            draft: None,
            queue: VecDeque::new(),
            images: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.editor.is_empty()
    }

    /// Returns the text with each long paste in full.
    pub(super) fn text(&self) -> String {
        self.editor.full_text()
    }

    pub(super) fn vim_mode(&self) -> Option<&'static str> {
        self.editor.vim_mode()
    }

    pub(super) fn is_cursor_at_end(&self) -> bool {
        self.editor.cursor() == self.editor.text().len()
    }

    pub(super) fn completions(&self) -> &Completions {
        &self.completions
    }

    pub(super) fn set_text(&mut self, text: &str) {
        self.editor.set_text(text);
    }

    /// Replaces the text with the result of the user's external editor.
    pub(super) fn set_edited_text(&mut self, text: &str) {
        self.completions.close_menu();
        self.editor.set_text(text.trim_end_matches('\n'));
    }

    pub(super) fn insert_text(&mut self, text: &str) {
        self.editor.insert(text);
    }

    pub(super) fn insert_paste(&mut self, text: &str) {
        self.editor.paste(text);
    }

    pub(super) fn clear_text(&mut self) {
        self.editor.clear();
    }

    pub(super) fn clear_input(&mut self) {
        self.editor.clear();
        self.completions.close_menu();
    }

    /// Sets the file paths that can be mentioned in a prompt.
    pub(super) fn set_files(&mut self, files: Vec<String>) {
        self.completions.set_files(files, &self.editor);
    }

    /// Sets the names of the user's commands and of MCP resources.
    pub(super) fn set_names(&mut self, commands: Vec<(String, String)>, resources: Vec<String>) {
        self.completions.set_names(commands, resources);
    }

    /// Closes the completion menu. Returns false if the menu wasn't open.
    pub(super) fn close_menu(&mut self) -> bool {
        let was_open = self.completions.is_open();
        self.completions.close_menu();
        was_open
    }

    /// Attaches an image and inserts its label.
    pub(super) fn attach_image(&mut self, image: PastedImage) {
        self.editor.insert(&image.label);
        self.images.push(image);
    }

    /// Removes all images and returns the paths of those that `text` mentions.
    pub(super) fn take_images<'a>(
        &'a mut self,
        text: &'a str,
    ) -> impl Iterator<Item = String> + 'a {
        std::mem::take(&mut self.images)
            .into_iter()
            .filter(|image| text.contains(&image.label))
            .map(|image| image.path)
    }

    /// Lends the editor to a question or form, with `text` as the initial content.
    pub(super) fn lend_editor(&mut self, text: &str) {
        self.draft = Some(self.editor.full_text());
        self.editor.set_text(text);
    }

    /// Enters insert mode if Vim's normal mode is active, so that the next letters are inserted as
    /// text.
    pub(super) fn enter_insert_mode(&mut self) {
        self.editor.enter_insert_mode();
    }

    /// Takes the editor back from a question and restores the user's text, even if that text is
    /// empty.
    pub(super) fn reclaim_editor(&mut self) {
        let draft = self.draft.take().unwrap_or_default();
        self.editor.set_text(&draft);
    }

    /// Restores the user's text if the editor is lent to a question or a form.
    pub(super) fn restore_draft(&mut self) {
        if let Some(draft) = self.draft.take() {
            self.editor.set_text(&draft);
        }
    }

    /// Handles a key in Vim mode. Returns false if the key isn't bound in Vim mode.
    pub(super) fn handle_vim_key(&mut self, key: KeyEvent) -> bool {
        !self.completions.is_open() && self.editor.handle_vim_key(key)
    }

    /// Handles a key that edits the text or moves in the completion menu.
    pub(super) fn handle_key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        let menu_move = match key.code {
            KeyCode::Up => Some(MenuMove::Up),
            KeyCode::Down => Some(MenuMove::Down),
            KeyCode::PageUp => Some(MenuMove::PageUp),
            KeyCode::PageDown => Some(MenuMove::PageDown),
            _ => None,
        };
        if let Some(menu_move) = menu_move.filter(|_| self.completions.is_open()) {
            return self.completions.move_selection(menu_move);
        }
        match key.code {
            KeyCode::Tab => self.completions.accept_selected(&mut self.editor),
            KeyCode::Enter => self.insert_line_break(),
            KeyCode::Char('j') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                self.insert_line_break();
            }
            _ => {
                self.editor.handle_shell_key(key);
                // The menu is rebuilt: a selection in the old one has no meaning in the new one.
                self.completions.close_menu();
                self.completions.refresh_menu(&self.editor);
                // The project's files are listed only when the user starts a mention.
                if self.editor.word_before_cursor() == "@" {
                    effects.push(Effect::Do(Operation::Side(SideAction::Files)));
                }
            }
        }
    }

    fn insert_line_break(&mut self) {
        self.editor.insert("\n");
        self.completions.close_menu();
    }

    /// Handles Enter. Returns the submitted input, or `None` if Enter only changed the text or the
    /// menu.
    pub(super) fn handle_enter(&mut self, effects: &mut Vec<Effect>) -> Option<String> {
        if let Some(before) = self.editor.text().strip_suffix('\\')
            && self.is_cursor_at_end()
        {
            // A trailing backslash continues the input, for terminals that don't send Alt-Enter.
            let text = format!("{before}\n");
            self.editor.set_text(&text);
            return None;
        }
        match self.completions.accept_on_enter(&mut self.editor) {
            EnterAction::Stay => return None,
            EnterAction::Submit => {}
        }
        if self.editor.text().trim().is_empty() {
            return None;
        }
        let mut text = self.editor.take_text();
        effects.push(Effect::Keep(text.clone()));
        if text.trim_start().starts_with('/') {
            // Completion appends a space. A command with a blank before it is still a command.
            text = text.trim().to_owned();
        }
        Some(text)
    }

    pub(super) fn is_searching(&self) -> bool {
        self.search.is_some()
    }

    pub(super) fn start_search(&mut self) {
        self.search = Some(HistorySearch::default());
    }

    /// Appends pasted text to the search query. Returns false if no search is open.
    pub(super) fn paste_into_search(&mut self, text: &str) -> bool {
        let Some(search) = &mut self.search else {
            return false;
        };
        search
            .query
            .push_str(text.lines().next().unwrap_or_default());
        true
    }

    /// Handles a key during a search of the history. A key that doesn't change the search accepts
    /// the match.
    pub(super) fn handle_search_key(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let Some(search) = &mut self.search else {
            return;
        };
        match key.code {
            KeyCode::Char('r') if control => {
                if self
                    .editor
                    .search_history(&search.query, search.skip + 1)
                    .is_some()
                {
                    search.skip += 1;
                }
            }
            KeyCode::Char('c' | 'g') if control => self.search = None,
            KeyCode::Esc => self.search = None,
            KeyCode::Char(c) if !control => {
                search.query.push(c);
                search.skip = 0;
            }
            KeyCode::Backspace => {
                search.query.pop();
                search.skip = 0;
            }
            _ => {
                let found = self
                    .editor
                    .search_history(&search.query, search.skip)
                    .map(str::to_owned);
                self.search = None;
                if let Some(found) = found {
                    self.editor.set_text(&found);
                }
            }
        }
    }

    /// Queues input that was submitted during a turn. If the input can join the turn, asks the
    /// session to add it.
    pub(super) fn queue_input(&mut self, text: String, effects: &mut Vec<Effect>) {
        // Slash commands are expanded first and images are attached to a turn, so both need a turn
        // of their own.
        let joins =
            !text.starts_with('/') && !self.images.iter().any(|image| text.contains(&image.label));
        if joins {
            effects.push(Effect::Do(Operation::Join(text.clone())));
        }
        self.queue.push_back(QueuedInput { text, joins });
    }

    /// Removes and returns the first queued input that waits to join the turn, because the session
    /// has now added it.
    pub(super) fn take_joined_input(&mut self) -> Option<String> {
        let at = self.queue.iter().position(|queued| queued.joins)?;
        self.queue.remove(at).map(|queued| queued.text)
    }

    /// Removes and returns the queued input that starts the next turn.
    pub(super) fn take_next_input(&mut self) -> Option<String> {
        self.queue.pop_front().map(|queued| queued.text)
    }

    /// Returns true if input waits to join the turn or to start the next one.
    pub(super) fn has_queue(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Moves all queued input back into the editor. Returns false if no input was queued.
    pub(super) fn recall_queue(&mut self) -> bool {
        if self.queue.is_empty() {
            return false;
        }
        let mut lines: Vec<_> = self.queue.drain(..).map(|queued| queued.text).collect();
        lines.extend(Some(self.editor.full_text()).filter(|text| !text.is_empty()));
        self.editor.set_text(&lines.join("\n"));
        true
    }

    pub(super) fn draw_queue(&self, columns: usize) -> impl Iterator<Item = StyledLine> {
        self.queue.iter().map(move |QueuedInput { text, .. }| {
            let line = format!("  {} {}", text!("app-queued"), text.replace('\n', " "));
            StyledLine::new(line, TextStyle::Dim).cut(columns)
        })
    }

    /// Draws the history search or the input in at most half of `height` rows. An empty input
    /// shows `placeholder`.
    pub(super) fn draw_input(
        &self,
        columns: usize,
        height: usize,
        placeholder: Option<&str>,
    ) -> InputView {
        if let Some(search) = &self.search {
            return self.draw_search(search, columns);
        }
        let mut typed = self
            .editor
            .layout_rows(PROMPT_MARK, columns, INPUT_ROWS.min(height / 2));
        if let Some(placeholder) = placeholder.filter(|_| self.editor.is_empty()) {
            let line = StyledLine::new(PROMPT_MARK, TextStyle::Accent)
                .with_text(placeholder, TextStyle::Dim);
            typed.rows = vec![line.cut(columns)];
        }
        (typed.rows, (typed.row, typed.column.min(columns - 1)))
    }

    fn draw_search(&self, search: &HistorySearch, columns: usize) -> InputView {
        let found = self
            .editor
            .search_history(&search.query, search.skip)
            .unwrap_or(text!("app-nothing-found"));
        let line = StyledLine::new(format!("{} ", text!("app-search")), TextStyle::Accent)
            .with_text(&search.query, TextStyle::Strong);
        let column = line.width().min(columns - 1);
        let row = line
            .with_text("  ", TextStyle::Plain)
            .with_text(found.replace('\n', " "), TextStyle::Dim)
            .cut(columns);
        (vec![row], (0, column))
    }
}
