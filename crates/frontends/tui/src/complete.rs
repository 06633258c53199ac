//! What the word that is being typed could become.

use std::cmp::Reverse;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};

/// How many paths are offered.
const OFFERED: usize = 50;

/// What is offered, best first, and which of it is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompletionMenu {
    pub(crate) items: Vec<CompletionItem>,
    pub(crate) chosen: usize,
}

/// Something the word could become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompletionItem {
    /// What is put in its place.
    pub(crate) text: String,
    /// What that is, in a few words.
    pub(crate) help: String,
}

/// Which way the choice moves; behind the last comes the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MenuMove {
    Up,
    Down,
    /// A page further, up to the first or the last.
    PageUp,
    PageDown,
}

/// Items a page key moves over.
const PAGE: usize = 6;

impl CompletionMenu {
    pub(crate) fn step(&mut self, step: MenuMove) {
        let count = self.items.len().max(1);
        self.chosen = match step {
            MenuMove::Up => self.chosen + count - 1,
            MenuMove::Down => self.chosen + 1,
            MenuMove::PageUp => self.chosen.saturating_sub(PAGE),
            MenuMove::PageDown => (self.chosen + PAGE).min(count - 1),
        } % count;
    }

    pub(crate) fn choice(&self) -> Option<&CompletionItem> {
        self.items.get(self.chosen)
    }
}

/// The commands that fit what was typed: the best first, and of those the ones that were used most.
pub(crate) fn commands<'a>(
    typed: &str,
    names: impl Iterator<Item = &'a str>,
    used: impl Fn(&str) -> usize,
) -> Vec<&'a str> {
    let typed = typed.to_lowercase();
    let ranked =
        names.filter_map(|name| Some((rank(&typed, name)?, Reverse(used(name)), name.len(), name)));
    let mut found: Vec<_> = ranked.collect();
    found.sort_unstable();
    found.into_iter().map(|(_, _, _, name)| name).collect()
}

/// The paths that a few of their letters may mean, best first; those that have the letters in one
/// piece before the others.
pub(crate) fn paths<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let pattern = Pattern::new(
        typed,
        CaseMatching::Ignore,
        Normalization::Smart,
        AtomKind::Fuzzy,
    );
    let scored = pattern.match_list(names, &mut matcher).into_iter();
    let typed = typed.to_lowercase();
    let in_pieces = |name: &str| !name.to_lowercase().contains(&typed);
    let mut found: Vec<_> = scored
        .map(|(name, score)| (in_pieces(name), Reverse(score), name.len(), name))
        .collect();
    found.sort_unstable();
    found
        .into_iter()
        .take(OFFERED)
        .map(|(.., name)| name)
        .collect()
}

/// How well a name fits: 0 is best.
fn rank(typed: &str, name: &str) -> Option<u8> {
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
    fn the_best_comes_first() {
        let names = [
            "src/app/keys.rs",
            "keys.md",
            "src/monkeys.rs",
            "k/e/y/s.txt",
            "README.md",
        ];
        let found = paths("Keys", names.into_iter());
        assert_eq!(
            found,
            [
                "keys.md",
                "src/app/keys.rs",
                "src/monkeys.rs",
                "k/e/y/s.txt"
            ]
        );
        let found = paths("apkey", names.into_iter());
        assert_eq!(
            found,
            ["src/app/keys.rs"],
            "letters may be left out, over folders too"
        );
        assert_eq!(paths("", names.into_iter()).first(), Some(&"keys.md"));
        let found = commands(
            "co",
            ["compact", "cost", "context", "commit", "docs"].into_iter(),
            |_| 0,
        );
        assert_eq!(found, ["cost", "commit", "compact", "context"]);
    }

    #[test]
    fn commands_that_are_used_come_before_others() {
        let names = || ["help", "compact", "context", "commit", "cost"].into_iter();
        let used = |name: &str| match name {
            "context" => 5,
            "commit" => 2,
            _ => 0,
        };
        assert_eq!(
            commands("", names(), used),
            ["context", "commit", "cost", "help", "compact"]
        );
        assert_eq!(commands("com", names(), used), ["commit", "compact"]);
        assert_eq!(commands("help", names(), used), ["help"]);
    }

    #[test]
    fn the_choice_goes_round() {
        let item = |text: &str| CompletionItem {
            text: text.into(),
            help: String::new(),
        };
        let mut menu = CompletionMenu {
            items: vec![item("a"), item("b")],
            chosen: 0,
        };
        menu.step(MenuMove::Up);
        assert_eq!(menu.choice().unwrap().text, "b");
        menu.step(MenuMove::Down);
        assert_eq!(menu.choice().unwrap().text, "a");
        CompletionMenu::default().step(MenuMove::Down);
    }
}
