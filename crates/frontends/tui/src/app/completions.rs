//! The completion menu of the input line, and the names it offers.

use crate::commands::{COMMANDS, is_command};
use crate::complete::{self, CompletionItem, CompletionMenu, MenuMove, is_same_path};
use crate::editor::Editor;
use crate::line::{StyledLine, TextStyle};

/// The maximum number of rows of the completion menu.
const MENU_ROWS: usize = 8;
/// Commands that are offered first until the user has a history, by how often they are needed.
const FIRST_COMMANDS: [&str; 14] = [
    "model", "mode", "resume", "clear", "context", "cost", "diff", "undo", "rewind", "compact",
    "commit", "files", "help", "quit",
];

/// The completion menu, if it is open, and the names that can be completed.
#[derive(Debug)]
pub(super) struct Completions {
    menu: Option<CompletionMenu>,
    /// The paths of the project's files; empty until the user types `@`.
    files: Vec<String>,
    /// MCP resources, as `server:uri`.
    resources: Vec<String>,
    /// The names and descriptions of the user's own slash commands.
    user_commands: Vec<(String, String)>,
}

/// The action to take for Enter after the open completion menu has handled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EnterAction {
    /// Submits the input.
    Submit,
    /// Leaves the input in place, because Enter accepted a completion.
    Stay,
}

impl Completions {
    pub(super) fn new(resources: Vec<String>, user_commands: Vec<(String, String)>) -> Self {
        Self {
            menu: None,
            files: Vec::new(),
            resources,
            user_commands,
        }
    }

    /// Returns the names and descriptions of the user's own slash commands.
    pub(super) fn user_commands(&self) -> &[(String, String)] {
        &self.user_commands
    }

    pub(super) fn has_user_command(&self, name: &str) -> bool {
        self.user_commands.iter().any(|(own, _)| own == name)
    }

    pub(super) fn set_names(&mut self, commands: Vec<(String, String)>, resources: Vec<String>) {
        self.user_commands = commands;
        self.resources = resources;
    }

    pub(super) fn set_files(&mut self, files: Vec<String>, editor: &Editor) {
        self.files = files;
        self.refresh_menu(editor);
    }

    pub(super) fn is_open(&self) -> bool {
        self.menu.is_some()
    }

    pub(super) fn close_menu(&mut self) {
        self.menu = None;
    }

    pub(super) fn move_selection(&mut self, step: MenuMove) {
        if let Some(menu) = &mut self.menu {
            menu.move_selection(step);
        }
    }

    /// Replaces the word before the cursor with the selected item and closes the menu.
    pub(super) fn accept_selected(&mut self, editor: &mut Editor) {
        let Some(text) = self
            .menu
            .take()
            .and_then(|menu| menu.selected_item().map(|item| item.text.clone()))
        else {
            return;
        };
        let end = if text.ends_with('/') { "" } else { " " };
        editor.replace_word(&format!("{text}{end}"));
    }

    /// Accepts the selected item if that changes the input, and closes the menu.
    ///
    /// A command name or path that was typed in full is submitted as it is, unless the user moved the
    /// selection. So is a command that does not begin with what was typed: it is mistyped, and another
    /// command must not run in its place. A completed command is submitted at once; other completed
    /// words are not.
    pub(super) fn accept_on_enter(&mut self, editor: &mut Editor) -> EnterAction {
        let is_full_name = editor
            .text()
            .strip_prefix('/')
            .is_some_and(|name| is_command(name) || self.has_user_command(name));
        let word = editor.word_before_cursor();
        let is_slash_command = editor.text().starts_with('/');
        let typed = word.to_lowercase();
        let changes_input = self.menu.as_ref().is_some_and(|menu| {
            let is_whole_path = menu
                .items
                .iter()
                .any(|item| word.starts_with('@') && is_same_path(&item.text, word));
            menu.selected_item().is_some_and(|item| {
                let is_mistyped = is_slash_command && !item.text.to_lowercase().starts_with(&typed);
                let is_left = is_full_name || is_whole_path || is_mistyped;
                item.text != word && !(is_left && menu.chosen == 0)
            })
        });
        if changes_input {
            self.accept_selected(editor);
            if !is_slash_command {
                return EnterAction::Stay;
            }
        }
        self.close_menu();
        EnterAction::Submit
    }

    /// Opens the menu for the word before the cursor, or closes it if nothing matches.
    pub(super) fn refresh_menu(&mut self, editor: &Editor) {
        let chosen = self.menu.take().map_or(0, |menu| menu.chosen);
        let word = editor.word_before_cursor();
        let items = if let Some(name) = word.strip_prefix('/').filter(|_| editor.text() == word) {
            self.command_items(name, editor)
        } else if let Some(name) = word.strip_prefix('@') {
            self.mention_items(name)
        } else {
            Vec::new()
        };
        let chosen = chosen.min(items.len().saturating_sub(1));
        self.menu = (!items.is_empty()).then_some(CompletionMenu { items, chosen });
    }

    fn command_items(&self, name: &str, editor: &Editor) -> Vec<CompletionItem> {
        let built_in = COMMANDS
            .iter()
            .map(|command| (command.name, (command.help)()));
        let user = self
            .user_commands
            .iter()
            .map(|(name, help)| (&**name, &**help));
        let mut all: Vec<_> = built_in.chain(user).collect();
        all.sort_by_key(|(name, _)| {
            let place = FIRST_COMMANDS.iter().position(|first| first == name);
            place.unwrap_or(FIRST_COMMANDS.len())
        });
        let used = |name: &str| editor.count_uses(name);
        complete::rank_commands(name, all.iter().map(|command| command.0), used)
            .into_iter()
            .map(|name| {
                let help = all.iter().find(|command| command.0 == name);
                CompletionItem {
                    text: format!("/{name}"),
                    help: help.map_or("", |command| command.1).to_owned(),
                }
            })
            .collect()
    }

    fn mention_items(&self, name: &str) -> Vec<CompletionItem> {
        let all = self.files.iter().chain(&self.resources).map(String::as_str);
        complete::rank_paths(name, all)
            .into_iter()
            .map(|path| {
                let is_resource = self.resources.iter().any(|one| one == path);
                CompletionItem {
                    text: if is_resource {
                        format!("@{path}")
                    } else {
                        format_file_mention(path)
                    },
                    help: String::new(),
                }
            })
            .collect()
    }

    /// Draws the menu.
    pub(super) fn draw_menu(&self, columns: usize) -> Vec<StyledLine> {
        let Some(menu) = &self.menu else {
            return Vec::new();
        };
        let widest = |item: &CompletionItem| haft_text::display_width(&item.text);
        let width = menu.items.iter().map(widest).max().unwrap_or(0);
        let width = width.min(columns / 2);
        let row = |(at, item): (usize, &CompletionItem)| {
            let (mark, style) = if at == menu.chosen {
                ("▸ ", TextStyle::Accent)
            } else {
                ("  ", TextStyle::Plain)
            };
            let line = StyledLine::new(mark, style)
                .with_text(haft_text::reveal_controls(&item.text), style);
            if item.help.is_empty() {
                return line.cut(columns);
            }
            let blank = " ".repeat((width + 4).saturating_sub(line.width()).max(2));
            line.with_text(blank, TextStyle::Plain)
                .with_text(&item.help, TextStyle::Dim)
                .cut(columns)
        };
        let count = menu.items.len();
        let first = (menu.chosen + 1).saturating_sub(MENU_ROWS);
        let mut rows: Vec<_> = menu
            .items
            .iter()
            .enumerate()
            .skip(first)
            .take(MENU_ROWS)
            .map(row)
            .collect();
        if count > MENU_ROWS {
            let place = text!("app-menu-place", at = menu.chosen + 1, count);
            rows.push(StyledLine::new(format!("  {place}"), TextStyle::Dim).cut(columns));
        }
        rows
    }
}

/// Formats a mention of a file for a prompt, quoted if necessary.
fn format_file_mention(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if path.chars().all(is_plain) {
        format!("@{path}")
    } else {
        format!("@\"{path}\"")
    }
}
