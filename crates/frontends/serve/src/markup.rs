//! HTML, written element by element: whatever is text is escaped here, so that a caller cannot
//! forget it.

use haft_text::escape_markup;

/// The field by which a form shows that the site wrote it.
pub(crate) const FORM_TOKEN: &str = "form_token";

/// A piece of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Markup(String);

impl Markup {
    /// A text, which stays one whatever is in it.
    pub fn text(text: impl AsRef<str>) -> Self {
        Self(escape_markup(text.as_ref()))
    }

    /// An element with these attributes and this content. Values of attributes are escaped, names
    /// are the caller's own.
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
        for piece in content {
            html.push_str(&piece.0);
        }
        // These have no content and no end.
        if !matches!(name, "input" | "br" | "hr" | "img" | "link" | "meta") {
            html.extend(["</", name, ">"]);
        }
        Self(html)
    }

    /// An element without attributes that holds one text.
    pub fn plain(name: &'static str, text: impl AsRef<str>) -> Self {
        Self::element(name, &[], [Self::text(text)])
    }

    /// A link to another page of this site.
    pub fn link(to: &str, text: impl AsRef<str>) -> Self {
        Self::element("a", &[("href", to)], [Self::text(text)])
    }

    /// A picture drawn by [`haft_text::Svg`], which escapes what is in it. Its style sheet is left
    /// out: the site's own has it.
    pub fn picture(svg: &str) -> Self {
        let style = svg
            .split_once("<style>")
            .and_then(|(before, rest)| Some((before, rest.split_once("</style>")?.1)));
        Self(style.map_or_else(
            || svg.to_owned(),
            |(before, after)| format!("{before}{after}"),
        ))
    }

    /// A form that is posted to a page of this site, with what
    /// [`AccessToken::for_forms`](crate::AccessToken::for_forms) gives.
    pub fn form(to: &str, token: &str, content: impl IntoIterator<Item = Self>) -> Self {
        let token = Self::hidden(FORM_TOKEN, token);
        Self::element(
            "form",
            &[("method", "post"), ("action", to)],
            std::iter::once(token).chain(content),
        )
    }

    /// A field of a form that is not shown.
    pub fn hidden(name: &str, value: &str) -> Self {
        Self::element(
            "input",
            &[("type", "hidden"), ("name", name), ("value", value)],
            [],
        )
    }

    /// A button that posts its form with this value of the field `do`.
    pub fn button(does: &str, text: impl AsRef<str>) -> Self {
        Self::element(
            "button",
            &[("name", "do"), ("value", does)],
            [Self::text(text)],
        )
    }

    /// These pieces, one after another.
    pub fn all(pieces: impl IntoIterator<Item = Self>) -> Self {
        Self(pieces.into_iter().map(|piece| piece.0).collect())
    }

    /// A table with these headings. The first cell of a row is its heading.
    pub fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<Self>>) -> Self {
        let heading = |text: &&str| Self::element("th", &[("scope", "col")], [Self::text(text)]);
        let head = Self::element(
            "thead",
            &[],
            [Self::element("tr", &[], headings.iter().map(heading))],
        );
        let row = |cells: Vec<Self>| {
            // On a narrow screen a row is a card, in which each cell says what it is.
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
        // A wide table scrolls by itself; the page never does.
        let table = Self::element("table", &[], [head, body]);
        Self::element("div", &[("class", "wide"), ("tabindex", "0")], [table])
    }
}

/// Returns a page that sends the browser to another address at once, without scripts.
pub fn redirect_page(to: &str) -> String {
    let head = Markup::all([
        Markup::element("meta", &[("charset", "utf-8")], []),
        Markup::element(
            "meta",
            &[
                ("http-equiv", "refresh"),
                ("content", &format!("0; url={to}")),
            ],
            [],
        ),
        Markup::plain("title", "haft"),
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

/// A whole page.
pub fn document(language: &str, title: &str, body: Markup) -> String {
    let head = Markup::all([
        Markup::element("meta", &[("charset", "utf-8")], []),
        Markup::element(
            "meta",
            &[
                ("name", "viewport"),
                ("content", "width=device-width, initial-scale=1"),
            ],
            [],
        ),
        Markup::plain("title", title),
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
    fn texts_and_attributes_stay_what_they_are() {
        let hostile = "</td><script>alert(1)</script>\" onload='x' & \u{1b}[31m";
        let page = document(
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
    fn the_style_of_a_picture_is_left_out() {
        assert_eq!(
            Markup::picture("<svg><style>x{}</style><g/></svg>").0,
            "<svg><g/></svg>"
        );
        assert_eq!(Markup::picture("<svg/>").0, "<svg/>");
    }
}
