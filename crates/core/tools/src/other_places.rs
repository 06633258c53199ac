//! Finds the places that an edit left unchanged: files that still contain the replaced text.

use std::path::Path;

use haft_tool::ToolContext;
use ignore::DirEntry;

use crate::files::encoding::{TextEncoding, decode_text};
use crate::files::walk::{self, GitFolder};
use crate::on_files::run_off_thread;
use crate::paths;

/// The maximum number of files that are searched.
const MAX_SEARCHED_FILES: usize = 2_000;
/// The maximum size of a searched file, in bytes.
const MAX_SEARCHED_BYTES: u64 = 256 * 1024;
/// The maximum number of files that are returned.
const MAX_PLACES: usize = 5;
/// The maximum number of lines that are returned of a file.
const MAX_LINES: usize = 5;
/// The minimum length of a replaced word, in characters. Shorter ones occur everywhere.
const MIN_CHARS: usize = 3;
/// The minimum length of a replaced text in a script without spaces.
const MIN_CJK_CHARS: usize = 2;
/// The maximum length of a replaced text, in characters.
const MAX_CHARS: usize = 80;

/// The word or words that an edit replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacedText {
    pub old: String,
    pub new: String,
}

/// A file that contains the replaced text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherPlace {
    /// The path as the model may write it.
    pub name: String,
    /// The numbers of the first lines that contain the text.
    pub lines: Vec<usize>,
}

impl ReplacedText {
    /// Returns the part of one line that differs between two texts, extended to whole words.
    /// Returns `None` if the texts differ in more than one place, or if the part is too short or
    /// too long to be searched for.
    pub fn from_texts(old: &str, new: &str) -> Option<Self> {
        Self::from_edges(old, new)
            .and_then(Self::checked)
            .or_else(|| Self::from_words(old, new))
    }

    /// Compares the texts from both ends. The old part is empty if nothing was replaced.
    fn from_edges(old: &str, new: &str) -> Option<Self> {
        let old: Vec<char> = old.chars().collect();
        let new: Vec<char> = new.chars().collect();
        let mut start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        let shorter = old.len().min(new.len()) - start;
        let mut end = (old.iter().rev().zip(new.iter().rev()))
            .take(shorter)
            .take_while(|(a, b)| a == b)
            .count();
        let first_in_word = |text: &[char]| {
            text.get(start)
                .filter(|_| start < text.len() - end)
                .is_some_and(|c| is_word_char(*c))
        };
        if first_in_word(&old) || first_in_word(&new) {
            while start > 0 && continues_word(&old, start - 1) {
                start -= 1;
            }
        }
        let last_in_word = |text: &[char]| {
            text.len()
                .checked_sub(end + 1)
                .filter(|last| *last >= start)
                .and_then(|last| text.get(last))
                .is_some_and(|c| is_word_char(*c))
        };
        if last_in_word(&old) || last_in_word(&new) {
            while end > 0 && continues_word(&old, old.len() - end) {
                end -= 1;
            }
        }
        let part = |text: &[char]| -> Option<String> {
            Some(text.get(start..text.len() - end)?.iter().collect())
        };
        Some(Self {
            old: part(&old)?,
            new: part(&new)?,
        })
    }

    /// Returns the only word of the old text that is not in the new one, with the only new word.
    fn from_words(old: &str, new: &str) -> Option<Self> {
        let only = |text: &str, other: &str| {
            let others = split_words(other);
            let mut gone = split_words(text);
            gone.retain(|word| !others.contains(word));
            gone.sort_unstable();
            gone.dedup();
            match gone.as_slice() {
                [word] => Some((*word).to_owned()),
                _ => None,
            }
        };
        Self::checked(Self {
            old: only(old, new)?,
            new: only(new, old)?,
        })
    }

    /// Returns the texts if the old one can be searched for.
    fn checked(self) -> Option<Self> {
        let Self { old, new } = &self;
        let count = old.chars().count();
        let min = if old.chars().any(is_cjk) {
            MIN_CJK_CHARS
        } else {
            MIN_CHARS
        };
        let fits = (min..=MAX_CHARS).contains(&count)
            && old.trim() == old.as_str()
            && old.chars().any(char::is_alphanumeric)
            && !old.contains('\n')
            && !new.contains('\n')
            && !new.is_empty();
        fits.then_some(self)
    }

    /// True if the line contains the old text as whole words.
    fn is_in(&self, line: &str) -> bool {
        let edge = |c: Option<char>, own: Option<char>| {
            !(c.is_some_and(is_word_char) && own.is_some_and(is_word_char))
        };
        line.match_indices(&self.old).any(|(at, found)| {
            let before = line.get(..at).and_then(|text| text.chars().next_back());
            let after = line
                .get(at + found.len()..)
                .and_then(|text| text.chars().next());
            edge(before, found.chars().next()) && edge(after, found.chars().next_back())
        })
    }
}

/// Applies the change of an edit whose old text is not in the file to the only line that the edit
/// can mean: the line that contains the replaced word once, and all other words of the edited line.
/// Returns the line before and after the change.
pub fn repair_edit(text: &str, old: &str, new: &str) -> Option<(String, String)> {
    let (old, new) = find_changed_line(old, new)?;
    let part = ReplacedText::from_edges(old, new)?;
    if part.old.trim().is_empty() || part.old.contains('\n') || part.new.contains('\n') {
        return None;
    }
    let wanted = split_words(old);
    let is_meant = |line: &&str| {
        let words = split_words(line);
        let mut long = wanted.iter().filter(|word| word.len() >= MIN_CHARS);
        part.is_in(line) && long.all(|word| words.contains(word))
    };
    let mut lines = text.lines().filter(is_meant);
    let line = lines.next()?;
    let is_unique = lines.next().is_none()
        && text.matches(line).count() == 1
        && line.matches(&part.old).count() == 1;
    is_unique.then(|| (line.to_owned(), line.replacen(&part.old, &part.new, 1)))
}

/// Returns the only line in which two texts with equally many lines differ.
fn find_changed_line<'a>(old: &'a str, new: &'a str) -> Option<(&'a str, &'a str)> {
    if old.lines().count() != new.lines().count() {
        return None;
    }
    let mut changed = old.lines().zip(new.lines()).filter(|(old, new)| old != new);
    let only = changed.next()?;
    changed.next().is_none().then_some(only)
}

/// Letters of scripts without spaces are no parts of words: each may begin a text of its own.
fn is_word_char(c: char) -> bool {
    (c.is_alphanumeric() || c == '_') && !is_cjk(c)
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// True if the character belongs to the word beside it. A dot between digits does, as in versions.
fn continues_word(text: &[char], at: usize) -> bool {
    let digit = |at: Option<usize>| {
        at.and_then(|at| text.get(at))
            .is_some_and(char::is_ascii_digit)
    };
    text.get(at).is_some_and(|c| {
        is_word_char(*c) || (*c == '.' && digit(at.checked_sub(1)) && digit(at.checked_add(1)))
    })
}

fn split_words(text: &str) -> Vec<&str> {
    text.split(|c: char| !is_word_char(c))
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns files of the project that contain the replaced text, the file of the edit first. Hidden
/// and ignored files and files that may not be read are not searched.
pub async fn find_other_places(
    context: &ToolContext,
    edited: &str,
    replaced: &ReplacedText,
) -> Vec<OtherPlace> {
    let edited = edited.to_owned();
    let replaced = replaced.clone();
    let found = run_off_thread(context, move |scope| {
        let edited = paths::resolve_path(&scope.workspace, &edited)?;
        let is_small = |entry: &DirEntry| {
            entry.file_type().is_some_and(|kind| kind.is_file())
                && entry
                    .metadata()
                    .is_ok_and(|metadata| metadata.len() <= MAX_SEARCHED_BYTES)
        };
        let walk = walk::build_walk(scope, &scope.workspace.root, GitFolder::Skipped)
            .sort_by_file_name(Ord::cmp)
            .build();
        let files = walk
            .filter_map(Result::ok)
            .filter(is_small)
            .take(MAX_SEARCHED_FILES);
        let mut places = Vec::new();
        for file in files {
            let lines = find_lines(file.path(), &replaced);
            if !lines.is_empty() {
                let name = paths::display_path(&scope.workspace, file.path());
                places.push((file.path() != edited, OtherPlace { name, lines }));
            }
        }
        places.sort_by_key(|(elsewhere, _)| *elsewhere);
        places.truncate(MAX_PLACES);
        Ok(places.into_iter().map(|(_, place)| place).collect())
    });
    found.await.unwrap_or_default()
}

fn find_lines(path: &Path, replaced: &ReplacedText) -> Vec<usize> {
    let text = std::fs::read(path)
        .ok()
        .and_then(|bytes| decode_text(&bytes))
        .filter(|decoded| decoded.encoding == TextEncoding::Utf8)
        .map_or_else(String::new, |decoded| decoded.text);
    let lines = text.lines().zip(1..);
    lines
        .filter(|(line, _)| replaced.is_in(line))
        .map(|(_, number)| number)
        .take(MAX_LINES)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    fn replaced(old: &str, new: &str) -> Option<(String, String)> {
        ReplacedText::from_texts(old, new).map(|text| (text.old, text.new))
    }

    #[test]
    fn replaced_text_is_extended_to_whole_words() {
        for (old, new, wanted) in [
            (
                "def old_name():",
                "def new_name():",
                ("old_name", "new_name"),
            ),
            (
                "version = \"0.1.0\"",
                "version = \"0.2.0\"",
                ("0.1.0", "0.2.0"),
            ),
            ("我买了苹果。", "我买了香蕉。", ("苹果", "香蕉")),
            ("self.port = 8000", "self.port = 9000", ("8000", "9000")),
            ("foo(x)", "foobar(x)", ("foo", "foobar")),
            (
                "\"Hello \" + name",
                "\"Goodbye \" + name",
                ("Hello", "Goodbye"),
            ),
            (
                "def calc(v):\n    return calc(v - 1)\n",
                "def total(v):\n    return total(v - 1)\n",
                ("calc", "total"),
            ),
            ("recieve", "receive", ("recieve", "receive")),
        ] {
            let wanted = Some((wanted.0.to_owned(), wanted.1.to_owned()));
            assert_eq!(replaced(old, new), wanted, "{old}");
        }
    }

    #[test]
    fn replaced_text_is_none_for_additions_and_short_or_several_changes() {
        for (old, new) in [
            ("age > 18", "age >= 18"),
            ("value", "value + 1"),
            ("x = 10", "x = 50"),
            ("a", "a"),
            ("", "anything"),
            ("anything", ""),
            ("line one\n", "line one\nline two\n"),
            ("print(\"debug\")\n", ""),
        ] {
            assert_eq!(replaced(old, new), None, "{old}");
        }
    }

    #[test]
    fn repair_edit_changes_the_only_line_that_is_meant() {
        let text = "pub const MIN_USERS: u32 = 1;\npub const MAX_USERS: u32 = 10;\n\nfn f() -> u32 {\n    10\n}\n";
        assert_eq!(
            repair_edit(text, "MAX_USERS = 10;", "MAX_USERS = 50;"),
            Some((
                "pub const MAX_USERS: u32 = 10;".to_owned(),
                "pub const MAX_USERS: u32 = 50;".to_owned()
            ))
        );
        assert_eq!(
            repair_edit(
                "def f(x):\n    return 1\n",
                "def f(y):\n  return 1",
                "def f(y):\n  return 22"
            ),
            Some(("    return 1".to_owned(), "    return 22".to_owned()))
        );
        for (old, new) in [
            ("const OTHER = 10;", "const OTHER = 50;"),
            ("MAX_USERS", "MAX_USERS\nMIN_USERS"),
            ("USERS: u32", "USERS: u64"),
            ("nothing", "something"),
            ("", "x"),
        ] {
            assert_eq!(repair_edit(text, old, new), None, "{old}");
        }
    }

    #[tokio::test]
    async fn other_places_are_files_with_the_whole_word() {
        let bench = Bench::new();
        bench.write("lib.py", "def new_name():\n    return old_name\n");
        bench.write("main.py", "from lib import old_name\n\nprint(old_name())\n");
        bench.write("other.py", "very_old_name = old_names\n");
        bench.write(".hidden.py", "old_name\n");
        bench.write("build/out.py", "old_name\n");
        bench.write(".gitignore", "build/\n");
        let text = ReplacedText {
            old: "old_name".into(),
            new: "new_name".into(),
        };
        let places = find_other_places(&bench.context, "lib.py", &text).await;
        let shown: Vec<_> = places
            .iter()
            .map(|place| (place.name.as_str(), place.lines.as_slice()))
            .collect();
        assert_eq!(shown, [("lib.py", &[2][..]), ("main.py", &[1, 3][..])]);
    }
}
