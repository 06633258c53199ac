//! Lines of text with a meaning, before they are coloured.
//!
//! Invariant: no span holds a control character, a line break or a tab, and none piles up marks on
//! a character. Everything that is drawn is made of spans, so nothing that is drawn can move the
//! cursor.

use haft_text::{sanitise, width};

/// How many characters without a width may follow one that has it: enough for every script, too few
/// to draw over other rows.
const MARKS: usize = 6;
const TAB: &str = "    ";

/// What a piece of text is. The [`Palette`](crate::Palette) says how that looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextStyle {
    /// Plain text.
    #[default]
    Plain,
    /// Less important.
    Dim,
    /// Bold.
    Strong,
    /// Italic.
    Emphasis,
    /// The title of a section.
    Heading,
    /// Inline code.
    Code,
    /// A keyword of the code's language.
    Keyword,
    /// A string in code.
    Literal,
    /// A number, a constant, the name of a type in code.
    Number,
    /// A comment in code.
    Comment,
    /// A link.
    Link,
    /// A line that is added.
    Added,
    /// A line that is taken away.
    Removed,
    /// It went well.
    Good,
    /// It failed.
    Bad,
    /// It wants attention.
    Warning,
    /// The number of a line of a file.
    LineNumber,
    /// haft itself: the prompt, what is chosen.
    Accent,
}

/// Text of one style.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledSpan {
    text: String,
    style: TextStyle,
    /// Where a click leads, as an address of safe characters.
    link: Option<String>,
}

impl StyledSpan {
    /// Text that is safe to draw, whatever it was before.
    pub fn new(text: impl AsRef<str>, style: TextStyle) -> Self {
        Self {
            text: clean(text.as_ref()),
            style,
            link: None,
        }
    }

    /// The same, leading to a file: an absolute path.
    #[must_use]
    pub(crate) fn leading_to(mut self, path: &str) -> Self {
        let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
        let coded = |byte: u8| {
            if safe(byte) {
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

    /// Where a click leads.
    pub(crate) fn link(&self) -> Option<&str> {
        self.link.as_deref()
    }

    /// A part of the text of another span: what was safe there may look otherwise without its
    /// neighbours.
    pub(crate) fn part(text: String, style: TextStyle) -> Self {
        Self {
            text,
            style,
            link: None,
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its style.
    pub fn style(&self) -> TextStyle {
        self.style
    }
}

/// One row, or what will be several once it is wrapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledLine {
    spans: Vec<StyledSpan>,
}

impl StyledLine {
    /// A row without anything.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Text of one style.
    pub fn of(text: impl AsRef<str>, style: TextStyle) -> Self {
        Self {
            spans: vec![StyledSpan::new(text, style)],
        }
    }

    /// The line with more text.
    #[must_use]
    pub fn and(mut self, text: impl AsRef<str>, style: TextStyle) -> Self {
        self.push(StyledSpan::new(text, style));
        self
    }

    /// Adds a span; one of the same style as the last becomes part of it.
    pub fn push(&mut self, span: StyledSpan) {
        match self.spans.last_mut() {
            Some(last) if last.style == span.style && last.link == span.link => {
                last.text.push_str(&span.text);
            }
            _ if span.text.is_empty() => {}
            _ => self.spans.push(span),
        }
    }

    /// The spans, in order.
    pub fn spans(&self) -> &[StyledSpan] {
        &self.spans
    }

    /// The columns it takes.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| width(&span.text)).sum()
    }

    /// The text without its tones.
    pub fn plain(&self) -> String {
        self.spans.iter().map(StyledSpan::text).collect()
    }

    /// The line in at most this many columns; a cut is shown.
    #[must_use]
    pub fn cut(self, columns: usize) -> Self {
        if self.width() <= columns {
            return self;
        }
        let mut kept = Self::empty();
        let mut room = columns;
        for span in self.spans {
            let wide = width(&span.text);
            if wide >= room {
                // Something follows, or the whole would have fitted: the cut must show.
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

fn clean(text: &str) -> String {
    let safe = sanitise(text);
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
            c if width(c.encode_utf8(&mut buffer)) == 0 => {
                marks += 1;
                if marks <= MARKS {
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
    fn nothing_in_a_span_moves_the_cursor() {
        let span = StyledSpan::new("a\u{1b}[2J\rb\nc\td\u{202e}e\u{9b}5A", TextStyle::Plain);
        assert!(
            !span.text().chars().any(char::is_control),
            "{:?}",
            span.text()
        );
        assert!(span.text().contains("<U+202E>"));
    }

    #[test]
    fn marks_do_not_pile_up() {
        let zalgo = format!("a{}b", "\u{301}".repeat(500));
        let span = StyledSpan::new(zalgo, TextStyle::Plain);
        assert_eq!(span.text().chars().count(), 2 + MARKS);
    }

    #[test]
    fn a_cut_shows_and_fits() {
        let line = StyledLine::of("model ", TextStyle::Dim).and("a long name", TextStyle::Plain);
        assert_eq!(line.clone().cut(17).plain(), "model a long name");
        assert_eq!(line.clone().cut(9).plain(), "model a …");
        assert_eq!(line.clone().cut(6).plain(), "model…");
        assert_eq!(line.cut(0).plain(), "");
    }

    proptest! {
        #[test]
        fn whatever_it_is_given_a_line_is_one_row(text in any::<String>(), columns in 0usize..30) {
            let line = StyledLine::of(&text, TextStyle::Plain).and(&text, TextStyle::Bad);
            prop_assert!(!line.plain().chars().any(char::is_control));
            prop_assert!(line.cut(columns).width() <= columns);
        }
    }
}
