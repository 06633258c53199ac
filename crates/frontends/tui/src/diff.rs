//! Changes of files as rows.

use crate::highlight::Highlighter;
use crate::line::{StyledLine, StyledSpan, TextStyle};
use crate::wrap::chop;

/// The rows of a unified diff, or of text that may hold one, with the numbers of its lines; the
/// first file need not be named where it is known.
pub(crate) fn numbered<'a>(
    path: &str,
    lines: impl Iterator<Item = &'a str>,
    columns: usize,
) -> Vec<StyledLine> {
    let lines: Vec<_> = lines.collect();
    let last = lines
        .iter()
        .filter_map(|line| HunkLines::of(line))
        .map(HunkLines::last)
        .max()
        .unwrap_or(0);
    let mut change = DiffPainter::of(path);
    let room = last.to_string().len();
    let rows = lines.into_iter().flat_map(|line| {
        let number = change.number(line);
        let row = change.line(line);
        let Some(number) = number else {
            return chop(&row, columns);
        };
        let gutter = StyledLine::of(format!("{number:>room$} "), TextStyle::LineNumber);
        // What goes on stands behind the sign, so that it is not taken for a line of its own.
        let blank = StyledLine::of(" ".repeat(room + 2), TextStyle::LineNumber);
        let rows = chop(&row, columns.saturating_sub(room + 2))
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

/// The numbers of the next lines of a place, and how many are left of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HunkLines {
    old: u64,
    new: u64,
    old_left: u64,
    new_left: u64,
}

impl HunkLines {
    /// What the head of a place says, as in `@@ -1,3 +1,4 @@`.
    fn of(line: &str) -> Option<Self> {
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

    fn last(self) -> u64 {
        (self.old + self.old_left)
            .max(self.new + self.new_left)
            .saturating_sub(1)
    }
}

/// A change as it is read, line by line.
struct DiffPainter {
    /// The file as it is at the beginning of each place.
    file: Highlighter,
    /// The file as it will be, up to here.
    new: Highlighter,
    lines: HunkLines,
}

impl DiffPainter {
    fn of(path: &str) -> Self {
        let file = Highlighter::of_path(path);
        Self {
            file,
            new: file,
            lines: HunkLines::default(),
        }
    }

    /// The number of this line: in the file as it was where it is removed, else as it will be.
    fn number(&mut self, line: &str) -> Option<u64> {
        if let Some(lines) = HunkLines::of(line) {
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

    fn line(&mut self, line: &str) -> StyledLine {
        match line.split_at_checked(1) {
            Some(("+", rest)) if !line.starts_with("+++") => {
                let code = self.new.line(rest);
                StyledLine::of("+", TextStyle::Added)
                    .spans()
                    .iter()
                    .cloned()
                    .chain(code.spans().iter().map(added))
                    .collect()
            }
            Some((" ", rest)) => {
                let code = self.new.line(rest);
                StyledLine::of(" ", TextStyle::Plain)
                    .spans()
                    .iter()
                    .chain(code.spans())
                    .cloned()
                    .collect()
            }
            _ => {
                if let Some(path) = line.strip_prefix("+++ ") {
                    self.file = Highlighter::of_path(path);
                    self.new = self.file;
                } else if line.starts_with("@@") {
                    self.new = self.file;
                }
                StyledLine::of(line, style(line))
            }
        }
    }
}

/// What is added stays the colour of that; only words that stand out keep their own.
fn added(span: &StyledSpan) -> StyledSpan {
    let style = if span.style() == TextStyle::Plain {
        TextStyle::Added
    } else {
        span.style()
    };
    StyledSpan::part(span.text().to_owned(), style)
}

/// How many lines are added and removed: as a result says of each file, for its diff may be cut,
/// else as the diff shows.
pub(crate) fn counts(text: &str) -> String {
    let said: Vec<_> = text.lines().filter_map(said_counts).collect();
    let (added, removed) = if said.is_empty() {
        shown_counts(text)
    } else {
        said.iter().fold((0, 0), sum)
    };
    format!(
        "+{} −{}",
        haft_text::grouped(added),
        haft_text::grouped(removed)
    )
}

fn sum(all: (u64, u64), one: &(u64, u64)) -> (u64, u64) {
    (all.0 + one.0, all.1 + one.1)
}

/// What a line of a result says, as in "Changed `a`: 1 edit applied, 12 lines added, 3 removed.",
/// or of a file that is new.
fn said_counts(line: &str) -> Option<(u64, u64)> {
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

fn shown_counts(text: &str) -> (u64, u64) {
    let mut painter = DiffPainter::of("");
    let mut counts = (0, 0);
    for line in text.lines() {
        match (painter.number(line), line.bytes().next()) {
            (Some(_), Some(b'+')) => counts.0 += 1,
            (Some(_), Some(b'-')) => counts.1 += 1,
            _ => {}
        }
    }
    counts
}

/// What a unified diff says of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileSection<'a> {
    /// Its name before, and after.
    pub(crate) names: (&'a str, &'a str),
    /// The heads and lines of its places.
    pub(crate) lines: Vec<&'a str>,
}

/// A unified diff file by file; what stands before the first is left out.
pub(crate) fn sections(diff: &str) -> Vec<FileSection<'_>> {
    let mut sections: Vec<FileSection<'_>> = Vec::new();
    let mut painter = DiffPainter::of("");
    let mut old = None;
    for line in diff.lines() {
        if painter.number(line).is_none() {
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

/// Whether a result says what was changed in files.
pub(crate) fn is_change(text: &str) -> bool {
    is_diff(text) || text.lines().any(|line| said_counts(line).is_some())
}

/// Whether the text holds a unified diff.
pub(crate) fn is_diff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("@@ -"))
}

fn style(line: &str) -> TextStyle {
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
    fn code_in_a_diff_has_the_tones_of_its_language() {
        let text = "--- a.rs\n+++ a.rs\n@@ -1 +1 @@\n fn a() {\n-    1\n+    if b { \"c\" }\n";
        let rows = numbered("", text.lines(), 60);
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
        assert!(
            has(5, "+    ", TextStyle::Added)
                && has(5, "if", TextStyle::Keyword)
                && has(5, "\"c\"", TextStyle::Literal),
            "{rows:?}"
        );
        assert_eq!(
            rows[3..].iter().map(StyledLine::plain).collect::<Vec<_>>(),
            ["1  fn a() {", "-    1", "+    if b { \"c\" }"]
        );
    }

    #[test]
    fn lines_are_numbered_as_their_place_says() {
        let text = "--- a\n+++ b\n@@ -8,3 +8,4 @@\n x\n-y\n+z\n+zz\n w\n@@ -99,1 +100,0 @@ fn\n---- rule\nafter";
        let shown: Vec<_> = numbered("", text.lines(), 40)
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
        let shown: Vec<_> = numbered("", long.lines(), 20)
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
    fn lines_are_counted_though_the_diff_is_cut() {
        let cut = "2 edits applied in 2 files.\nChanged `a: b`: 1 edit applied, 1 line added, 2 removed.\n@@ -1,2 +1 @@\n-x\n\
                   [9 more lines of the diff are not shown.]\nCreated `b`: 1300 lines.\nMoved `c` to `d`: 1 chunk applied, 4 lines \
                   added, 0 removed.\nDeleted `e`.";
        assert_eq!(counts(cut), "+1,305 −2");
        assert_eq!(
            counts(
                "--- a\n+++ b\n@@ -1,2 +1,3 @@\n--- rule\n+++ x\n+y\n z\n--- c\n+++ d\n@@ -0,0 +1 @@\n+q"
            ),
            "+3 −1"
        );
        assert_eq!(counts("Created `a`: 2 lines, 8 bytes."), "+2 −0");
    }

    #[test]
    fn a_diff_is_read_file_by_file() {
        let diff = "--- a\n+++ a\n@@ -1 +1 @@\n--- rule\n+++ rule\n--- /dev/null\n+++ b c\n@@ -0,0 +1 @@\n+new\n--- old\n+++ moved\n";
        let found = sections(diff);
        let names: Vec<_> = found.iter().map(|section| section.names).collect();
        assert_eq!(names, [("a", "a"), ("/dev/null", "b c"), ("old", "moved")]);
        assert_eq!(found[0].lines, ["@@ -1 +1 @@", "--- rule", "+++ rule"]);
        assert!(found[2].lines.is_empty());
    }

    proptest::proptest! {
        #[test]
        fn any_head_of_a_place_is_read(text in proptest::prelude::any::<String>(), numbers in proptest::array::uniform4(0u64..u64::MAX)) {
            let [a, b, c, d] = numbers;
            let diff = format!("@@ -{a},{b} +{c},{d} @@{text}\n-x\n+y\n z\n{text}");
            for row in numbered("", diff.lines(), 24) {
                proptest::prop_assert!(row.width() <= 24);
            }
        }
    }

    #[test]
    fn lines_of_a_diff_have_their_tones() {
        let text = "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z";
        let styles: Vec<_> = numbered("", text.lines(), 40)
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
