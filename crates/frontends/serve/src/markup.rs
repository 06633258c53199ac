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

    /// Joins several pieces of HTML.
    pub fn concat(pieces: impl IntoIterator<Item = Self>) -> Self {
        Self(pieces.into_iter().map(|piece| piece.0).collect())
    }

    /// Creates a table. The first cell of each row is the heading of the row.
    pub fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<Self>>) -> Self {
        let heading = |text: &&str| Self::element("th", &[("scope", "col")], [Self::text(text)]);
        let head = Self::element(
            "thead",
            &[],
            [Self::element("tr", &[], headings.iter().map(heading))],
        );
        let row = |cells: Vec<Self>| {
            // On a narrow screen each row is shown as a card, in which each cell is labeled.
            let cell = |(index, cell): (usize, Self)| match index {
                0 => Self::element("th", &[("scope", "row")], [cell]),
                _ => Self::element(
                    "td",
                    &[(
                        "data-label",
                        headings.get(index).copied().unwrap_or_default(),
                    )],
                    [cell],
                ),
            };
            Self::element("tr", &[], cells.into_iter().enumerate().map(cell))
        };
        let body = Self::element("tbody", &[], rows.into_iter().map(row));
        // A wide table scrolls on its own; the page never scrolls sideways.
        let table = Self::element("table", &[], [head, body]);
        Self::element("div", &[("class", "wide"), ("tabindex", "0")], [table])
    }
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
        let row = Markup::table(&[hostile], [vec![Markup::link(hostile, hostile)]]);
        assert!(!row.0.contains("<script"), "{row:?}");
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
