//! Ranks the completions of the word before the cursor.

use std::cmp::Reverse;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};

/// The maximum number of paths in the completion menu.
const MAX_PATHS: usize = 50;

/// The completions that are offered, best first, and the selected completion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompletionMenu {
    pub(crate) items: Vec<CompletionItem>,
    pub(crate) chosen: usize,
}

/// A completion of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompletionItem {
    /// The text that replaces the word.
    pub(crate) text: String,
    /// A short description.
    pub(crate) help: String,
}

/// A movement of the selection. Single steps wrap around at the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MenuMove {
    Up,
    Down,
    /// A page up, at most to the first item.
    PageUp,
    PageDown,
}

/// The number of items by which a page key moves the selection.
const PAGE_ITEMS: usize = 6;

impl CompletionMenu {
    pub(crate) fn move_selection(&mut self, step: MenuMove) {
        let count = self.items.len().max(1);
        self.chosen = match step {
            MenuMove::Up => self.chosen + count - 1,
            MenuMove::Down => self.chosen + 1,
            MenuMove::PageUp => self.chosen.saturating_sub(PAGE_ITEMS),
            MenuMove::PageDown => (self.chosen + PAGE_ITEMS).min(count - 1),
        } % count;
    }

    pub(crate) fn selected_item(&self) -> Option<&CompletionItem> {
        self.items.get(self.chosen)
    }
}

/// Returns the commands that match `typed`, best first. Among equally good matches, the most
/// frequently used command comes first, then the order of `names` decides.
pub(crate) fn rank_commands<'a>(
    typed: &str,
    names: impl Iterator<Item = &'a str>,
    used: impl Fn(&str) -> usize,
) -> Vec<&'a str> {
    let typed = typed.to_lowercase();
    let ranked = names.enumerate().filter_map(|(position, name)| {
        Some((
            rank_match(&typed, name)?,
            Reverse(used(name)),
            position,
            name,
        ))
    });
    let mut found: Vec<_> = ranked.collect();
    found.sort_unstable();
    found.into_iter().map(|(_, _, _, name)| name).collect()
}

/// Returns the paths that fuzzily match `typed`, best first. A path that is exactly `typed` comes
/// first, then paths that contain `typed`. The names of folders end with a slash.
pub(crate) fn rank_paths<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let pattern = Pattern::new(
        typed,
        CaseMatching::Ignore,
        Normalization::Smart,
        AtomKind::Fuzzy,
    );
    let scored = pattern.match_list(names, &mut matcher).into_iter();
    let typed = typed.to_lowercase();
    let mut found: Vec<_> = scored
        .map(|(name, score)| (rank_path(name, &typed), Reverse(score), name.len(), name))
        .collect();
    found.sort_unstable();
    found
        .into_iter()
        .take(MAX_PATHS)
        .map(|(.., name)| name)
        .collect()
}

/// Returns the rank of a path that matches the lower-case text `typed` fuzzily, 0 for the best.
fn rank_path(name: &str, typed: &str) -> u8 {
    let name = name.to_lowercase();
    match name.contains(typed) {
        true if is_same_path(&name, typed) => 0,
        true => 1,
        false => 2,
    }
}

/// Returns true if both paths name one file or folder.
pub(crate) fn is_same_path(path: &str, other: &str) -> bool {
    !path.is_empty() && path.trim_end_matches('/') == other.trim_end_matches('/')
}

/// Returns the rank of a match, 0 for the best, or `None` if `name` doesn't match.
fn rank_match(typed: &str, name: &str) -> Option<u8> {
    let name = name.to_lowercase();
    let last = name
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(&name);
    if name.starts_with(typed) {
        return Some(0);
    }
    if last.starts_with(typed) {
        return Some(1);
    }
    if name.contains(typed) {
        return Some(2);
    }
    let mut chars = name.chars();
    typed
        .chars()
        .all(|wanted| chars.any(|c| c == wanted))
        .then_some(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completion_ranks_the_best_match_first() {
        let names = [
            "src/app/keys.rs",
            "keys.md",
            "src/monkeys.rs",
            "k/e/y/s.txt",
            "README.md",
        ];
        let found = rank_paths("Keys", names.into_iter());
        assert_eq!(
            found,
            [
                "keys.md",
                "src/app/keys.rs",
                "src/monkeys.rs",
                "k/e/y/s.txt"
            ]
        );
        let found = rank_paths("apkey", names.into_iter());
        assert_eq!(
            found,
            ["src/app/keys.rs"],
            "letters may be left out, over folders too"
        );
        assert_eq!(rank_paths("", names.into_iter()).first(), Some(&"keys.md"));
        let found = rank_commands(
            "co",
            ["compact", "cost", "context", "commit", "docs"].into_iter(),
            |_| 0,
        );
        assert_eq!(found, ["compact", "cost", "context", "commit"]);
        let found = rank_paths("src", ["src/", "a/src.rs", "src/lib.rs"].into_iter());
        assert_eq!(found[0], "src/", "the exact name wins");
    }

    #[test]
    fn completion_prefers_used_commands() {
        let names = || ["help", "compact", "context", "commit", "cost"].into_iter();
        let used = |name: &str| match name {
            "context" => 5,
            "commit" => 2,
            _ => 0,
        };
        assert_eq!(
            rank_commands("", names(), used),
            ["context", "commit", "help", "compact", "cost"]
        );
        assert_eq!(rank_commands("com", names(), used), ["commit", "compact"]);
        assert_eq!(rank_commands("help", names(), used), ["help"]);
    }

    #[test]
    fn completion_selection_wraps_around() {
        let item = |text: &str| CompletionItem {
            text: text.into(),
            help: String::new(),
        };
        let mut menu = CompletionMenu {
            items: vec![item("a"), item("b")],
            chosen: 0,
        };
        menu.move_selection(MenuMove::Up);
        assert_eq!(menu.selected_item().unwrap().text, "b");
        menu.move_selection(MenuMove::Down);
        assert_eq!(menu.selected_item().unwrap().text, "a");
        CompletionMenu::default().move_selection(MenuMove::Down);
    }
}
