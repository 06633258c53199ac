//! Draws unified diffs.

use crate::highlight::Highlighter;
use crate::line::{StyledLine, TextStyle};
use crate::wrap::wrap_code;

/// Selects how the header lines of a diff are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffHeaders {
    /// As they are in the text.
    Verbatim,
    /// As the path of each file, without the prefixes of git. A row separates the hunks of a file,
    /// whose lines are numbered.
    Paths,
    /// Like `Paths`, but with names as they are, and without the path of a single file, which is
    /// shown elsewhere.
    PathsOfSeveral,
}

/// Draws a unified diff, or text that may contain one, with line numbers. `path` is the first file
/// if the diff doesn't name it.
pub(crate) fn draw_diff_rows<'a>(
    path: &str,
    headers: DiffHeaders,
    lines: impl Iterator<Item = &'a str>,
    columns: usize,
) -> Vec<StyledLine> {
    let lines: Vec<_> = lines.collect();
    let file_count = split_by_file(&lines.join("\n")).len();
    let mut headings = HeadingPainter {
        headers,
        shows_paths: headers == DiffHeaders::Paths || file_count > 1,
        old_name: "",
        last_text: "",
        is_first_hunk: true,
    };
    let last = lines
        .iter()
        .filter_map(|line| HunkLines::parse(line))
        .map(HunkLines::last_line)
        .max()
        .unwrap_or(0);
    let mut change = DiffPainter::new(path);
    let room = last.to_string().len();
    let rows = lines.into_iter().flat_map(|line| {
        let number = change.line_number(line);
        let row = change.draw_line(line);
        let Some(number) = number else {
            return match headings.replace_line(line, room) {
                Some(heading) => heading.into_iter().map(|row| row.cut(columns)).collect(),
                None => wrap_code(&row, columns),
            };
        };
        let gutter = StyledLine::new(format!("{number:>room$} "), TextStyle::LineNumber);
        // Continuation rows are indented behind the sign, so that they don't look like lines of
        // their own.
        let blank = StyledLine::new(" ".repeat(room + 2), TextStyle::LineNumber);
        let rows = wrap_code(&row, columns.saturating_sub(room + 2))
            .into_iter()
            .enumerate();
        let fronted = |(at, row): (usize, StyledLine)| {
            let front = if at == 0 { &gutter } else { &blank };
            front.spans().iter().chain(row.spans()).cloned().collect()
        };
        rows.map(fronted).collect::<Vec<_>>()
    });
    rows.collect()
}

/// Draws the header lines of a diff.
struct HeadingPainter<'a> {
    headers: DiffHeaders,
    shows_paths: bool,
    /// The old name of the file whose new name follows.
    old_name: &'a str,
    /// The last line that is not part of a diff, such as `modified src/lib.rs`.
    last_text: &'a str,
    is_first_hunk: bool,
}

impl<'a> HeadingPainter<'a> {
    /// Returns the rows that replace a line outside of hunks, or `None` if the line is drawn as it
    /// is.
    fn replace_line(&mut self, line: &'a str, number_columns: usize) -> Option<Vec<StyledLine>> {
        if self.headers == DiffHeaders::Verbatim {
            return None;
        }
        if let Some(name) = line.strip_prefix("--- ") {
            self.old_name = name;
            return Some(Vec::new());
        }
        if let Some(name) = line.strip_prefix("+++ ") {
            self.is_first_hunk = true;
            let (name, prefix) = if name == "/dev/null" {
                (self.old_name, "a/")
            } else {
                (name, "b/")
            };
            let is_from_git = match self.headers {
                DiffHeaders::Paths => true,
                DiffHeaders::PathsOfSeveral | DiffHeaders::Verbatim => false,
            };
            let name = match name.strip_prefix(prefix) {
                Some(bare) if is_from_git => bare,
                Some(_) | None => name,
            };
            let path = StyledLine::new(name, TextStyle::Strong);
            let is_named = self.last_text.ends_with(&format!(" {name}"));
            return Some(if self.shows_paths && !is_named {
                vec![path]
            } else {
                Vec::new()
            });
        }
        if HunkLines::parse(line).is_none() {
            self.last_text = line;
            return None;
        }
        let is_first = std::mem::replace(&mut self.is_first_hunk, false);
        let gap = StyledLine::new(format!("{:>number_columns$}", "⋮"), TextStyle::LineNumber);
        Some(if is_first { Vec::new() } else { vec![gap] })
    }
}

/// The position in a hunk: the next line number and the number of remaining lines, for each of the
/// two files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HunkLines {
    old: u64,
    new: u64,
    old_left: u64,
    new_left: u64,
}

impl HunkLines {
    /// Parses a hunk header, such as `@@ -1,3 +1,4 @@`.
    fn parse(line: &str) -> Option<Self> {
        let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
        let range = |text: &str| {
            let (first, count) = text.split_once(',').unwrap_or((text, "1"));
            Some((
                first.parse::<u32>().ok()?.into(),
                count.parse::<u32>().ok()?.into(),
            ))
        };
        let (old, old_left) = range(old)?;
        let (new, new_left) = range(rest.split(' ').next()?)?;
        Some(Self {
            old,
            new,
            old_left,
            new_left,
        })
    }

    fn last_line(self) -> u64 {
        (self.old + self.old_left)
            .max(self.new + self.new_left)
            .saturating_sub(1)
    }
}

/// Draws a diff line by line, and keeps the state between two lines.
struct DiffPainter {
    /// A highlighter in its initial state, copied at the start of each hunk.
    file: Highlighter,
    /// The highlighter for the new version of the file, in its state before the current line.
    new: Highlighter,
    lines: HunkLines,
}

impl DiffPainter {
    fn new(path: &str) -> Self {
        let file = Highlighter::for_path(path);
        Self {
            file,
            new: file,
            lines: HunkLines::default(),
        }
    }

    /// Returns the number of the line: in the old file if the line is removed, else in the new
    /// file.
    fn line_number(&mut self, line: &str) -> Option<u64> {
        if let Some(lines) = HunkLines::parse(line) {
            self.lines = lines;
            return None;
        }
        let HunkLines {
            old,
            new,
            old_left,
            new_left,
        } = self.lines;
        let (from, to) = match line.bytes().next() {
            Some(b'-') if old_left > 0 => (1, 0),
            Some(b'+') if new_left > 0 => (0, 1),
            Some(b' ') | None if old_left > 0 && new_left > 0 => (1, 1),
            _ => return None,
        };
        self.lines = HunkLines {
            old: old + from,
            new: new + to,
            old_left: old_left - from,
            new_left: new_left - to,
        };
        Some(if to == 1 { new } else { old })
    }

    fn draw_line(&mut self, line: &str) -> StyledLine {
        match line.split_at_checked(1) {
            Some(("+", rest)) if !line.starts_with("+++") => {
                // The line changes the state of the highlighter, but has one color, as removed
                // lines do.
                self.new.highlight_line(rest);
                StyledLine::new(line, TextStyle::Added)
            }
            Some((" ", rest)) => {
                let code = self.new.highlight_line(rest);
                StyledLine::new(" ", TextStyle::Plain)
                    .spans()
                    .iter()
                    .chain(code.spans())
                    .cloned()
                    .collect()
            }
            _ => {
                if let Some(path) = line.strip_prefix("+++ ") {
                    self.file = Highlighter::for_path(path);
                    self.new = self.file;
                } else if line.starts_with("@@") {
                    self.new = self.file;
                }
                StyledLine::new(line, line_style(line))
            }
        }
    }
}

/// Formats the numbers of added and removed lines. A tool result states these numbers for each
/// file, because its diff may be cut; if a text doesn't state the numbers, the lines of the diff
/// are counted.
pub(crate) fn format_change_counts(text: &str) -> String {
    let said: Vec<_> = text.lines().filter_map(parse_stated_counts).collect();
    let (added, removed) = if said.is_empty() {
        count_diff_lines(text)
    } else {
        said.iter().fold((0, 0), add_counts)
    };
    format!(
        "+{} −{}",
        haft_text::format_thousands(added),
        haft_text::format_thousands(removed)
    )
}

fn add_counts(all: (u64, u64), one: &(u64, u64)) -> (u64, u64) {
    (all.0 + one.0, all.1 + one.1)
}

/// Parses the counts of a result's line, such as "Changed `a`: 1 edit applied, 12 lines added, 3
/// removed.", or of a new file.
fn parse_stated_counts(line: &str) -> Option<(u64, u64)> {
    let said = line.strip_suffix('.').filter(|_| {
        ["Changed `", "Moved `", "Created `"]
            .iter()
            .any(|verb| line.starts_with(verb))
    })?;
    let number = |text: &str, unit: &[&str]| {
        let (count, is) = text.trim().split_once(' ')?;
        let count = count.replace(',', "").parse().ok()?;
        unit.contains(&is).then_some(count)
    };
    let (_, counts) = said.rsplit_once("`: ")?;
    if line.starts_with("Created") {
        return Some((number(counts.split(',').next()?, &["line", "lines"])?, 0));
    }
    let (rest, removed) = counts.rsplit_once(',')?;
    let added = rest.rsplit_once(',').map_or(rest, |(_, added)| added);
    Some((
        number(added, &["line added", "lines added"])?,
        number(removed, &["removed"])?,
    ))
}

fn count_diff_lines(text: &str) -> (u64, u64) {
    let mut painter = DiffPainter::new("");
    let mut counts = (0, 0);
    for line in text.lines() {
        match (painter.line_number(line), line.bytes().next()) {
            (Some(_), Some(b'+')) => counts.0 += 1,
            (Some(_), Some(b'-')) => counts.1 += 1,
            _ => {}
        }
    }
    counts
}

/// The part of a unified diff that concerns one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileSection<'a> {
    /// The old and the new name.
    pub(crate) names: (&'a str, &'a str),
    /// The hunk headers and the lines of all hunks.
    pub(crate) lines: Vec<&'a str>,
}

/// Splits a unified diff by file. Text before the first file is dropped.
pub(crate) fn split_by_file(diff: &str) -> Vec<FileSection<'_>> {
    let mut sections: Vec<FileSection<'_>> = Vec::new();
    let mut painter = DiffPainter::new("");
    let mut old = None;
    for line in diff.lines() {
        if painter.line_number(line).is_none() {
            match (line.strip_prefix("--- "), line.strip_prefix("+++ "), old) {
                (Some(name), ..) => {
                    old = Some(name);
                    continue;
                }
                (None, Some(name), Some(before)) => {
                    old = None;
                    sections.push(FileSection {
                        names: (before, name),
                        lines: Vec::new(),
                    });
                    continue;
                }
                _ => {}
            }
        }
        if let Some(section) = sections.last_mut() {
            section.lines.push(line);
        }
    }
    sections
}

/// Returns true if a result reports changed files.
pub(crate) fn is_change(text: &str) -> bool {
    is_diff(text) || text.lines().any(|line| parse_stated_counts(line).is_some())
}

/// Returns true if the text contains a unified diff.
pub(crate) fn is_diff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("@@ -"))
}

fn line_style(line: &str) -> TextStyle {
    match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => TextStyle::Strong,
        [b'-', ..] => TextStyle::Removed,
        [b'@', b'@', ..] => TextStyle::Accent,
        _ => TextStyle::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_highlights_code() {
        let text = "--- a.rs\n+++ a.rs\n@@ -1 +1 @@\n fn a() {\n-    1\n+    if b { \"c\" }\n";
        let rows = draw_diff_rows("", DiffHeaders::Verbatim, text.lines(), 60);
        let has = |row: usize, text: &str, style| {
            rows[row]
                .spans()
                .iter()
                .any(|s| s.text().contains(text) && s.style() == style)
        };
        assert!(
            has(3, "fn", TextStyle::Keyword) && has(4, "1", TextStyle::Removed),
            "{rows:?}"
        );
        assert!(has(5, "+    if b { \"c\" }", TextStyle::Added), "{rows:?}");
        assert_eq!(
            rows[3..].iter().map(StyledLine::plain).collect::<Vec<_>>(),
            ["1  fn a() {", "-    1", "+    if b { \"c\" }"]
        );
    }

    #[test]
    fn diff_numbers_lines_by_hunk() {
        let text = "--- a\n+++ b\n@@ -8,3 +8,4 @@\n x\n-y\n+z\n+zz\n w\n@@ -99,1 +100,0 @@ fn\n---- rule\nafter";
        let shown: Vec<_> = draw_diff_rows("", DiffHeaders::Verbatim, text.lines(), 40)
            .iter()
            .map(StyledLine::plain)
            .collect();
        let wanted = [
            " 8  x",
            " 9 -y",
            " 9 +z",
            "10 +zz",
            "11  w",
            "@@ -99,1 +100,0 @@ fn",
            "99 ---- rule",
            "after",
        ];
        assert_eq!(shown[3..], wanted);
        let long = format!("@@ -1 +1 @@\n-{}", "x".repeat(30));
        let shown: Vec<_> = draw_diff_rows("", DiffHeaders::Verbatim, long.lines(), 20)
            .iter()
            .map(StyledLine::plain)
            .collect();
        assert_eq!(
            shown[1..],
            [
                format!("1 -{}", "x".repeat(16)),
                format!("   {}", "x".repeat(14))
            ]
        );
    }

    #[test]
    fn diff_counts_lines_of_a_cut_diff() {
        let cut = "2 edits applied in 2 files.\nChanged `a: b`: 1 edit applied, 1 line added, 2 removed.\n@@ -1,2 +1 @@\n-x\n\
                   [9 more lines of the diff are not shown.]\nCreated `b`: 1300 lines.\nMoved `c` to `d`: 1 chunk applied, 4 lines \
                   added, 0 removed.\nDeleted `e`.";
        assert_eq!(format_change_counts(cut), "+1,305 −2");
        assert_eq!(
            format_change_counts(
                "--- a\n+++ b\n@@ -1,2 +1,3 @@\n--- rule\n+++ x\n+y\n z\n--- c\n+++ d\n@@ -0,0 +1 @@\n+q"
            ),
            "+3 −1"
        );
        assert_eq!(
            format_change_counts("Created `a`: 2 lines, 8 bytes."),
            "+2 −0"
        );
    }

    #[test]
    fn diff_is_split_by_file() {
        let diff = "--- a\n+++ a\n@@ -1 +1 @@\n--- rule\n+++ rule\n--- /dev/null\n+++ b c\n@@ -0,0 +1 @@\n+new\n--- old\n+++ moved\n";
        let found = split_by_file(diff);
        let names: Vec<_> = found.iter().map(|section| section.names).collect();
        assert_eq!(names, [("a", "a"), ("/dev/null", "b c"), ("old", "moved")]);
        assert_eq!(found[0].lines, ["@@ -1 +1 @@", "--- rule", "+++ rule"]);
        assert!(found[2].lines.is_empty());
    }

    proptest::proptest! {
        #[test]
        fn diff_accepts_any_hunk_header(text in proptest::prelude::any::<String>(), numbers in proptest::array::uniform4(0u64..u64::MAX)) {
            let [a, b, c, d] = numbers;
            let diff = format!("@@ -{a},{b} +{c},{d} @@{text}\n-x\n+y\n z\n{text}");
            for row in draw_diff_rows("", DiffHeaders::Verbatim, diff.lines(), 24) {
                proptest::prop_assert!(row.width() <= 24);
            }
        }
    }

    #[test]
    fn diff_styles_lines() {
        let text = "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z";
        let styles: Vec<_> = draw_diff_rows("", DiffHeaders::Verbatim, text.lines(), 40)
            .iter()
            .map(|row| row.spans().last().unwrap().style())
            .collect();
        assert_eq!(
            styles,
            [
                TextStyle::Strong,
                TextStyle::Strong,
                TextStyle::Accent,
                TextStyle::Removed,
                TextStyle::Added,
                TextStyle::Plain
            ]
        );
        assert!(is_diff(text) && !is_diff("+ not one"));
    }
}
