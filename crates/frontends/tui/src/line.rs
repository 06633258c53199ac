//! Lines of text with styles that name a meaning, before colors are chosen.
//!
//! Invariant: no span contains a control character, a line break, a tab, or more than a few
//! combining marks in a row. Everything that is drawn consists of spans, so nothing that is drawn
//! can move the cursor.

use haft_text::{display_width, sanitize};

use crate::web_address;

/// The maximum number of zero-width characters kept after a character. The number is enough for
/// every script, but too small for marks that reach into other rows.
const MAX_MARKS: usize = 6;
const TAB: &str = "    ";

/// The meaning of a piece of text. The [`Palette`](crate::Palette) maps it to colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextStyle {
    /// Text without emphasis.
    #[default]
    Plain,
    /// Text that is less important than the text around it.
    Dim,
    /// Bold text.
    Strong,
    /// Italic text.
    Emphasis,
    /// The title of a section.
    Heading,
    /// Inline code.
    Code,
    /// A keyword of the code's language.
    Keyword,
    /// A string literal in code.
    Literal,
    /// A number, a constant, or the name of a type in code.
    Number,
    /// A comment in code.
    Comment,
    /// A link that the user can open.
    Link,
    /// A line that a change adds.
    Added,
    /// A line that a change removes.
    Removed,
    /// Text that reports success.
    Good,
    /// Text that reports a failure.
    Bad,
    /// Text that needs the user's attention.
    Warning,
    /// A line number in a file.
    LineNumber,
    /// Elements of the interface itself, such as the prompt and the selection.
    Accent,
}

/// A piece of text with one style.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledSpan {
    text: String,
    style: TextStyle,
    /// The percent-encoded URL that a click opens.
    link: Option<String>,
}

impl StyledSpan {
    /// Creates a span. The text is sanitized, so that it is safe to draw.
    pub fn new(text: impl AsRef<str>, style: TextStyle) -> Self {
        Self {
            text: sanitize_text(text.as_ref()),
            style,
            link: None,
        }
    }

    /// Links the span to a file. `path` must be absolute.
    #[must_use]
    pub(crate) fn with_link(mut self, path: &str) -> Self {
        let coded = |byte: u8| {
            if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        };
        self.link = Some(format!(
            "file://{}",
            path.bytes().map(coded).collect::<String>()
        ));
        self
    }

    /// Returns the span in another style.
    #[must_use]
    pub(crate) fn with_style(self, style: TextStyle) -> Self {
        Self { style, ..self }
    }

    /// Returns the URL that a click on the span opens.
    pub(crate) fn link(&self) -> Option<&str> {
        self.link.as_deref()
    }

    /// Creates a span from a part of another span's text. The part isn't sanitized again, because
    /// sanitizing it without the surrounding text could change it.
    pub(crate) fn from_sanitized(text: String, style: TextStyle) -> Self {
        Self {
            text,
            style,
            link: None,
        }
    }

    /// Creates a span from a part of this span's text, with the style and the link of this span.
    pub(crate) fn part(&self, text: &str) -> Self {
        Self {
            text: text.to_owned(),
            style: self.style,
            link: self.link.clone(),
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn style(&self) -> TextStyle {
        self.style
    }
}

/// A line of styled text, which may become several rows when it is wrapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledLine {
    spans: Vec<StyledSpan>,
    /// True if the next row continues this row without a line break. Such a row fills the width of
    /// the terminal.
    continues: bool,
}

impl StyledLine {
    pub fn empty() -> Self {
        Self::default()
    }

    /// Creates a line with one span.
    pub fn new(text: impl AsRef<str>, style: TextStyle) -> Self {
        Self {
            spans: vec![StyledSpan::new(text, style)],
            continues: false,
        }
    }

    /// Appends the spans of another line, and returns the line.
    #[must_use]
    pub(crate) fn joined_with(mut self, behind: &Self) -> Self {
        behind.spans.iter().for_each(|span| self.push(span.clone()));
        self
    }

    /// Marks the row as continued by the next row without a line break.
    #[must_use]
    pub(crate) fn with_continuation(self) -> Self {
        Self {
            continues: true,
            ..self
        }
    }

    /// Returns true if the next row continues this row without a line break.
    pub(crate) fn continues(&self) -> bool {
        self.continues
    }

    /// Splits the line at a byte offset of its text, which must be a character boundary.
    pub(crate) fn split_at(&self, offset: usize) -> (Self, Self) {
        let [mut front, mut back] = [Self::empty(), Self::empty()];
        let mut start = 0;
        for span in &self.spans {
            let at = offset.saturating_sub(start).min(span.text.len());
            let (before, after) = span.text.split_at(at);
            front.push(span.part(before));
            back.push(span.part(after));
            start += span.text.len();
        }
        (front, back)
    }

    /// Links each web address in the text to itself. Addresses that are linked already keep their
    /// link.
    pub(crate) fn link_addresses(&self) -> Self {
        let text = self.plain();
        if !text.contains("://") {
            return self.clone();
        }
        let mut linked = Self::empty();
        let mut rest = self.clone();
        let mut start = 0;
        for range in web_address::find_addresses(&text) {
            let (before, found) = rest.split_at(range.start - start);
            let (address, behind) = found.split_at(range.len());
            before.spans.into_iter().for_each(|span| linked.push(span));
            for span in address.spans {
                let link = span.link.clone();
                let link = link.or_else(|| Some(text[range.clone()].to_owned()));
                linked.push(StyledSpan { link, ..span });
            }
            start = range.end;
            rest = behind;
        }
        rest.spans.into_iter().for_each(|span| linked.push(span));
        Self {
            continues: self.continues,
            ..linked
        }
    }

    /// Appends text in the given style, and returns the line.
    #[must_use]
    pub fn with_text(mut self, text: impl AsRef<str>, style: TextStyle) -> Self {
        self.push(StyledSpan::new(text, style));
        self
    }

    /// Appends a span. The span is merged with the last one if their styles and links are equal.
    pub fn push(&mut self, span: StyledSpan) {
        match self.spans.last_mut() {
            Some(last) if last.style == span.style && last.link == span.link => {
                last.text.push_str(&span.text);
            }
            _ if span.text.is_empty() => {}
            _ => self.spans.push(span),
        }
    }

    /// Returns the spans of the line, in order.
    pub fn spans(&self) -> &[StyledSpan] {
        &self.spans
    }

    /// Returns the width of the line on the screen, in columns.
    pub fn width(&self) -> usize {
        self.spans
            .iter()
            .map(|span| display_width(&span.text))
            .sum()
    }

    /// Returns the text without styles.
    pub fn plain(&self) -> String {
        self.spans.iter().map(StyledSpan::text).collect()
    }

    /// Appends `end`, which stays visible: the line before it is cut to the columns that are left.
    #[must_use]
    pub(crate) fn with_end(self, end: &Self, columns: usize) -> Self {
        self.cut(columns.saturating_sub(end.width()))
            .spans
            .iter()
            .chain(&end.spans)
            .cloned()
            .collect::<Self>()
            .cut(columns)
    }

    /// Cuts the line to at most `columns` columns. A cut line ends with `…`.
    #[must_use]
    pub fn cut(self, columns: usize) -> Self {
        if self.width() <= columns {
            return self;
        }
        let mut kept = Self::empty();
        let mut room = columns;
        for span in self.spans {
            let wide = display_width(&span.text);
            if wide >= room {
                // The cut is marked even if this span fits exactly, because more text follows.
                let cut =
                    haft_text::truncate_to_width(&format!("{}…", span.text), room).into_owned();
                kept.push(StyledSpan { text: cut, ..span });
                break;
            }
            room -= wide;
            kept.push(span);
        }
        kept
    }
}

impl FromIterator<StyledSpan> for StyledLine {
    fn from_iter<T: IntoIterator<Item = StyledSpan>>(spans: T) -> Self {
        let mut line = Self::empty();
        spans.into_iter().for_each(|span| line.push(span));
        line
    }
}

fn sanitize_text(text: &str) -> String {
    let safe = sanitize(text);
    if safe.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return safe.into_owned();
    }
    let mut out = String::with_capacity(safe.len());
    let mut marks = 0;
    let mut buffer = [0; 4];
    for c in safe.chars() {
        match c {
            '\n' => out.push(' '),
            '\t' => out.push_str(TAB),
            c if display_width(c.encode_utf8(&mut buffer)) == 0 => {
                marks += 1;
                if marks <= MAX_MARKS {
                    out.push(c);
                }
                continue;
            }
            c => out.push(c),
        }
        marks = 0;
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn span_cannot_move_the_cursor() {
        let span = StyledSpan::new("a\u{1b}[2J\rb\nc\td\u{202e}e\u{9b}5A", TextStyle::Plain);
        assert!(
            !span.text().chars().any(char::is_control),
            "{:?}",
            span.text()
        );
        assert!(span.text().contains("<U+202E>"));
    }

    #[test]
    fn span_limits_combining_marks() {
        let zalgo = format!("a{}b", "\u{301}".repeat(500));
        let span = StyledSpan::new(zalgo, TextStyle::Plain);
        assert_eq!(span.text().chars().count(), 2 + MAX_MARKS);
    }

    #[test]
    fn cut_is_marked_and_fits() {
        let line =
            StyledLine::new("model ", TextStyle::Dim).with_text("a long name", TextStyle::Plain);
        assert_eq!(line.clone().cut(17).plain(), "model a long name");
        assert_eq!(line.clone().cut(9).plain(), "model a …");
        assert_eq!(line.clone().cut(6).plain(), "model…");
        assert_eq!(line.cut(0).plain(), "");
    }

    proptest! {
        #[test]
        fn line_is_one_row_for_any_text(text in any::<String>(), columns in 0usize..30) {
            let line = StyledLine::new(&text, TextStyle::Plain).with_text(&text, TextStyle::Bad);
            prop_assert!(!line.plain().chars().any(char::is_control));
            prop_assert!(line.cut(columns).width() <= columns);
        }
    }
}
