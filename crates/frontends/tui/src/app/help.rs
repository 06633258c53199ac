//! The texts that explain keys and commands: `/help` and the keys below the input.

use crate::commands::{self, COMMANDS};
use crate::line::{StyledLine, TextStyle};
use crate::wrap::draw_definition_rows;

/// The width of the first column, which contains names of keys and commands.
const NAME_COLUMNS: usize = 17;
/// The width of the names in the help on keys, which has several columns.
const KEY_NAME_COLUMNS: usize = 10;
/// The minimum width of a column that contains a key and its description.
const KEY_COLUMNS: usize = 38;

/// Draws the text of `/help`. `user_commands` are the names and descriptions of the user's own
/// commands.
pub(super) fn draw_help(user_commands: &[(String, String)], columns: usize) -> Vec<StyledLine> {
    let row = |name: &str, help: &str| draw_definition_rows(name, help, NAME_COLUMNS, columns);
    let mut rows: Vec<_> = commands::list_keys()
        .into_iter()
        .flat_map(|(key, help)| row(key, help))
        .collect();
    rows.extend(row("@path", text!("app-help-path")));
    rows.extend(row("!command", text!("app-help-shell")));
    rows.extend(row("/noun verb", text!("app-help-haft")));
    rows.push(StyledLine::empty());
    rows.extend(
        COMMANDS
            .iter()
            .flat_map(|command| row(&format!("/{}", command.name), (command.help)())),
    );
    rows.extend(
        user_commands
            .iter()
            .flat_map(|(name, help)| row(&format!("/{name}"), help)),
    );
    rows
}

/// Draws the keys side by side in up to three columns and at most `max_rows` rows.
pub(super) fn draw_key_help(columns: usize, max_rows: usize) -> Vec<StyledLine> {
    let keys = commands::list_keys();
    let beside = (columns / KEY_COLUMNS).clamp(1, 3);
    let room = columns / beside;
    let entries: Vec<_> = keys
        .iter()
        .map(|(key, help)| draw_definition_rows(key, help, KEY_NAME_COLUMNS, room - 1))
        .collect();
    let shown = entries.concat();
    let height = shown.len().div_ceil(beside);
    let row = |at: usize| -> StyledLine {
        let cells = shown.iter().skip(at).step_by(height);
        let filled = cells.map(|cell| {
            cell.clone().with_text(
                " ".repeat(room.saturating_sub(cell.width())),
                TextStyle::Plain,
            )
        });
        filled.flat_map(|cell| cell.spans().to_vec()).collect()
    };
    let mut rows: Vec<_> = (0..height).map(row).map(|row| row.cut(columns)).collect();
    if rows.len() > max_rows {
        let left = max_rows.saturating_sub(1);
        let ends = entries.iter().scan(0, |end, entry| {
            *end += entry.len();
            Some(*end)
        });
        // A key is never shown without its whole description.
        rows.truncate(if beside == 1 {
            ends.take_while(|end| *end <= left).last().unwrap_or(left)
        } else {
            left
        });
        rows.push(
            StyledLine::new(format!("  {}", text!("app-more-keys")), TextStyle::Dim).cut(columns),
        );
    }
    rows
}
