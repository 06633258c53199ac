//! Builds HTML element by element. All text is escaped here, so that callers cannot forget it.

use haft_text::escape_markup;

/// The name of the hidden form field that proves that the site wrote the form.
pub(crate) const FORM_TOKEN_FIELD: &str = "form_token";

/// A piece of HTML in which all text is escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Markup(String);

impl Markup {
    /// Creates HTML that shows `text`. Characters that have a meaning in HTML are escaped.
    pub fn text(text: impl AsRef<str>) -> Self {
        Self(escape_markup(text.as_ref()))
    }

    /// Creates an element. The values of attributes are escaped, but not names, which must be
    /// valid.
    pub fn element(
        name: &'static str,
        attributes: &[(&'static str, &str)],
        content: impl IntoIterator<Item = Self>,
    ) -> Self {
        let mut html = format!("<{name}");
        for (key, value) in attributes {
            html.extend([" ", key, "=\"", &escape_markup(value), "\""]);
        }
        html.push('>');
        let start = html.len();
        for piece in content {
            html.push_str(&piece.0);
        }
        // Browsers drop a line break at the start of this element.
        if name == "pre" && html[start..].starts_with('\n') {
            html.insert(start, '\n');
        }
        // These elements have no content and no end tag.
        if !matches!(name, "input" | "br" | "hr" | "img" | "link" | "meta") {
            html.extend(["</", name, ">"]);
        }
        Self(html)
    }

    /// Creates an element that has no attributes and contains only text.
    pub fn text_element(name: &'static str, text: impl AsRef<str>) -> Self {
        Self::element(name, &[], [Self::text(text)])
    }

    pub fn link(to: &str, text: impl AsRef<str>) -> Self {
        Self::element("a", &[("href", to)], [Self::text(text)])
    }

    /// Embeds an SVG drawn by [`haft_text::Svg`], which escapes its contents. The SVG's own style
    /// sheet is removed, because the site's style sheet contains it.
    pub fn inline_svg(svg: &str) -> Self {
        let style = svg
            .split_once("<style>")
            .and_then(|(before, rest)| Some((before, rest.split_once("</style>")?.1)));
        Self(style.map_or_else(
            || svg.to_owned(),
            |(before, after)| format!("{before}{after}"),
        ))
    }

    /// Creates a form that is posted to the page `to` of this site. `token` is the value of
    /// [`AccessToken::form_token`](crate::AccessToken::form_token).
    pub fn form(to: &str, token: &str, content: impl IntoIterator<Item = Self>) -> Self {
        let token = Self::hidden_field(FORM_TOKEN_FIELD, token);
        Self::element(
            "form",
            &[("method", "post"), ("action", to)],
            std::iter::once(token).chain(content),
        )
    }

    pub fn hidden_field(name: &str, value: &str) -> Self {
        Self::element(
            "input",
            &[("type", "hidden"), ("name", name), ("value", value)],
            [],
        )
    }

    /// Creates a button that submits its form with the value `does` in the field `do`.
    pub fn button(does: &str, text: impl AsRef<str>) -> Self {
        Self::element(
            "button",
            &[("name", "do"), ("value", does)],
            [Self::text(text)],
        )
    }

    /// Like [`Self::button`], for the choice that most users make.
    pub fn primary_button(does: &str, text: impl AsRef<str>) -> Self {
        Self::element(
            "button",
            &[("class", "primary"), ("name", "do"), ("value", does)],
            [Self::text(text)],
        )
    }

    /// Joins several pieces of HTML.
    pub fn concat(pieces: impl IntoIterator<Item = Self>) -> Self {
        Self(pieces.into_iter().map(|piece| piece.0).collect())
    }

    /// Creates a table. The first cell of each row is the heading of the row. Explained terms are
    /// also listed below the table, for users who cannot point at a heading.
    pub fn table(columns: &[Column<'_>], rows: impl IntoIterator<Item = Vec<Self>>) -> Self {
        let heading = |column: &Column<'_>| {
            let mut attributes = vec![("scope", "col")];
            attributes.extend(column.class().map(|class| ("class", class)));
            let text = Self::text(column.heading);
            let text = match column.meaning {
                Some(meaning) => Self::element("abbr", &[("title", meaning)], [text]),
                None => text,
            };
            Self::element("th", &attributes, [text])
        };
        let head = Self::element(
            "thead",
            &[],
            [Self::element("tr", &[], columns.iter().map(heading))],
        );
        let row = |cells: Vec<Self>| {
            // On a narrow screen each row is shown as a card, in which each cell is labeled.
            let cell = |(index, cell): (usize, Self)| {
                let column = columns.get(index);
                let class = column.and_then(Column::class);
                let mut attributes = Vec::from_iter(class.map(|class| ("class", class)));
                attributes.push(("data-label", column.map_or("", |column| column.heading)));
                if index == 0 {
                    attributes.push(("scope", "row"));
                    return Self::element("th", &attributes, [cell]);
                }
                Self::element("td", &attributes, [cell])
            };
            Self::element("tr", &[], cells.into_iter().enumerate().map(cell))
        };
        let body = Self::element("tbody", &[], rows.into_iter().map(row));
        // A wide table scrolls on its own; the page never scrolls sideways.
        let table = Self::element("table", &[], [head, body]);
        Self::concat([Self::scroller("wide", table), render_terms(columns)])
    }

    /// Creates a box that scrolls sideways if its content is wider than the page.
    pub fn scroller(class: &str, content: Self) -> Self {
        Self::element("div", &[("class", class), ("tabindex", "0")], [content])
    }

    /// Creates a text that is hidden until the user opens it.
    pub fn details(class: &str, summary: Self, content: impl IntoIterator<Item = Self>) -> Self {
        let summary = Self::element("summary", &[], [summary]);
        let attributes = [("class", class)];
        let attributes = if class.is_empty() {
            &[]
        } else {
            &attributes[..]
        };
        Self::element(
            "details",
            attributes,
            std::iter::once(summary).chain(content),
        )
    }

    /// Like [`Self::details`], but open at first.
    pub fn open_details(
        class: &str,
        summary: Self,
        content: impl IntoIterator<Item = Self>,
    ) -> Self {
        let summary = Self::element("summary", &[], [summary]);
        Self::element(
            "details",
            &[("class", class), ("open", "")],
            std::iter::once(summary).chain(content),
        )
    }

    /// Creates a preformatted text in which the lines of a diff are marked by kind.
    pub fn diff(text: &str) -> Self {
        let line = |line: &str| {
            let class = match line.as_bytes() {
                [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => "file",
                [b'+', ..] => "add",
                [b'-', ..] => "del",
                [b'@', b'@', ..] => "hunk",
                _ => return Self::text(line),
            };
            Self::element("span", &[("class", class)], [Self::text(line)])
        };
        let lines = text.split_inclusive('\n').map(line);
        Self::element("pre", &[("class", "diff"), ("tabindex", "0")], lines)
    }

    /// Joins pieces with a text between them.
    pub fn join(pieces: impl IntoIterator<Item = Self>, between: &str) -> Self {
        let between = Self::text(between);
        let mut joined = Self::default();
        for piece in pieces {
            if !joined.0.is_empty() {
                joined.0.push_str(&between.0);
            }
            joined.0.push_str(&piece.0);
        }
        joined
    }

    /// True if there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    heading: &'a str,
    kind: ColumnKind,
    /// An explanation of the heading.
    meaning: Option<&'a str>,
}

/// The content of a column, which decides its alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnKind {
    /// A short text that is not wrapped.
    Text,
    /// A number, aligned at the right.
    Figure,
    /// A long text, which takes the width that other columns leave.
    Prose,
}

impl<'a> Column<'a> {
    /// Creates a column of short texts.
    pub fn text(heading: &'a str) -> Self {
        Self {
            heading,
            kind: ColumnKind::Text,
            meaning: None,
        }
    }

    /// Creates a column of numbers.
    pub fn figure(heading: &'a str) -> Self {
        Self {
            kind: ColumnKind::Figure,
            ..Self::text(heading)
        }
    }

    /// Creates a column of long texts.
    pub fn prose(heading: &'a str) -> Self {
        Self {
            kind: ColumnKind::Prose,
            ..Self::text(heading)
        }
    }

    /// Adds an explanation of the heading.
    #[must_use]
    pub fn explained(self, meaning: &'a str) -> Self {
        Self {
            meaning: Some(meaning),
            ..self
        }
    }

    fn class(&self) -> Option<&'static str> {
        match self.kind {
            ColumnKind::Text => None,
            ColumnKind::Figure => Some("num"),
            ColumnKind::Prose => Some("prose"),
        }
    }
}

/// Renders the list of explained terms, or nothing if no column is explained.
fn render_terms(columns: &[Column<'_>]) -> Markup {
    let terms: Vec<_> = columns
        .iter()
        .filter_map(|column| Some((column.heading, column.meaning?)))
        .map(|(heading, meaning)| {
            Markup::concat([
                Markup::text_element("dt", heading),
                Markup::text_element("dd", meaning),
            ])
        })
        .collect();
    if terms.is_empty() {
        return Markup::default();
    }
    let list = Markup::element("dl", &[], terms);
    Markup::details("terms", Markup::text(text!("serve-terms")), [list])
}

/// Returns an HTML page that redirects the browser to another address at once, without scripts.
pub fn build_redirect_page(to: &str) -> String {
    let head = Markup::concat([
        Markup::element("meta", &[("charset", "utf-8")], []),
        Markup::element(
            "meta",
            &[
                ("http-equiv", "refresh"),
                ("content", &format!("0; url={to}")),
            ],
            [],
        ),
        Markup::text_element("title", "haft"),
    ]);
    let body = Markup::link(to, "haft");
    let html = Markup::element(
        "html",
        &[],
        [
            Markup::element("head", &[], [head]),
            Markup::element("body", &[], [body]),
        ],
    );
    format!("<!doctype html>\n{}\n", html.0)
}

/// Returns a complete HTML document that uses the site's style sheet, icon and script.
pub fn build_html_document(language: &str, title: &str, body: Markup) -> String {
    build_document(language, title, Markup::default(), body)
}

/// Returns a document that a browser without scripts loads again after a second.
pub(crate) fn build_waiting_document(language: &str, title: &str, body: Markup) -> String {
    let refresh = Markup::element("meta", &[("http-equiv", "refresh"), ("content", "1")], []);
    let refresh = Markup::element("noscript", &[], [refresh]);
    build_document(language, title, refresh, body)
}

fn build_document(language: &str, title: &str, head: Markup, body: Markup) -> String {
    let head = Markup::concat([
        Markup::element("meta", &[("charset", "utf-8")], []),
        Markup::element(
            "meta",
            &[
                ("name", "viewport"),
                ("content", "width=device-width, initial-scale=1"),
            ],
            [],
        ),
        Markup::text_element("title", title),
        Markup::element("link", &[("rel", "stylesheet"), ("href", "/style.css")], []),
        Markup::element(
            "link",
            &[
                ("rel", "icon"),
                ("href", "/icon.svg"),
                ("type", "image/svg+xml"),
            ],
            [],
        ),
        Markup::element("script", &[("src", "/live.js"), ("type", "module")], []),
        head,
    ]);
    let html = Markup::element(
        "html",
        &[("lang", language)],
        [
            Markup::element("head", &[], [head]),
            Markup::element("body", &[], [body]),
        ],
    );
    format!("<!doctype html>\n{}\n", html.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_document_escapes_texts_and_attributes() {
        let hostile = "</td><script>alert(1)</script>\" onload='x' & \u{1b}[31m";
        let page = build_html_document(
            "en",
            hostile,
            Markup::element("p", &[("title", hostile)], [Markup::text(hostile)]),
        );
        assert_eq!(page.matches("<script").count(), 1, "{page}");
        assert!(
            !page.contains("\" onload") && !page.contains('\u{1b}'),
            "{page}"
        );
        assert!(page.contains("&lt;script&gt;"), "{page}");
        let column = Column::figure(hostile).explained(hostile);
        let row = Markup::table(&[column], [vec![Markup::link(hostile, hostile)]]);
        assert!(!row.0.contains("<script"), "{row:?}");
    }

    #[test]
    fn diff_marks_lines_and_keeps_the_text() {
        let text = "--- a\n+++ b\n@@ -1 +1 @@\n same\n-old <b>\n+new\n\n++x";
        assert_eq!(
            Markup::diff(text).0,
            "<pre class=\"diff\" tabindex=\"0\"><span class=\"file\">--- a\n</span><span class=\"file\">+++ b\n</span>\
             <span class=\"hunk\">@@ -1 +1 @@\n</span> same\n<span class=\"del\">-old &lt;b&gt;\n</span>\
             <span class=\"add\">+new\n</span>\n<span class=\"add\">++x</span></pre>"
        );
    }

    #[test]
    fn inline_svg_drops_the_style_element() {
        assert_eq!(
            Markup::inline_svg("<svg><style>x{}</style><g/></svg>").0,
            "<svg><g/></svg>"
        );
        assert_eq!(Markup::inline_svg("<svg/>").0, "<svg/>");
    }
}
