//! Writes SVG pictures element by element.
//!
//! The output has no scripts, no fonts and no references to other files. This module escapes texts
//! and attributes, so that a caller cannot forget it. Numbers have at most two decimals, so that
//! equal values give equal bytes.

use std::fmt::Write as _;

use crate::sanitize;

/// An SVG picture under construction.
#[derive(Clone, Debug)]
pub struct Svg {
    text: String,
    /// The names of the elements that are still open, beginning with the root.
    open: Vec<&'static str>,
}

/// An element whose attributes are being written. The element is drawn by
/// [`draw_empty`](SvgElement::draw_empty), [`draw_text`](SvgElement::draw_text) or
/// [`open`](SvgElement::open).
#[must_use = "an element is drawn by `empty`, `text` or `open`"]
pub struct SvgElement<'a> {
    svg: &'a mut Svg,
    name: &'static str,
}

/// The part of a label's text that is placed at the label's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The start of the text is at the position.
    Start,
    /// The middle of the text is at the position.
    Middle,
    /// The end of the text is at the position.
    End,
}

impl Svg {
    /// Creates a picture of `width` by `height` pixels. `attributes` are added to its root element.
    pub fn new(width: f64, height: f64, attributes: &[(&str, &str)]) -> Self {
        let mut svg = Self {
            text: String::new(),
            open: Vec::new(),
        };
        let view = format!("0 0 {} {}", format_number(width), format_number(height));
        let root = svg
            .begin_element("svg")
            .attribute("xmlns", "http://www.w3.org/2000/svg")
            .attribute("viewBox", &view);
        let root = root
            .number_attribute("width", width)
            .number_attribute("height", height);
        attributes
            .iter()
            .fold(root, |root, (name, value)| root.attribute(name, value))
            .open();
        svg
    }

    pub fn begin_element(&mut self, name: &'static str) -> SvgElement<'_> {
        self.text.push('<');
        self.text.push_str(name);
        SvgElement { svg: self, name }
    }

    /// Adds a style sheet. The sheet is written without escaping, so it must be a constant.
    pub fn add_style(&mut self, sheet: &'static str) {
        self.write_markup(format_args!("<style>{sheet}</style>\n"));
    }

    /// Adds a rectangle with its top left corner at (x, y).
    pub fn add_rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let rect = self
            .begin_element("rect")
            .attribute("class", class)
            .number_attribute("x", x)
            .number_attribute("y", y);
        rect.number_attribute("width", width)
            .number_attribute("height", height)
            .draw_empty();
    }

    pub fn add_line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let line = self
            .begin_element("line")
            .attribute("class", class)
            .number_attribute("x1", x1)
            .number_attribute("x2", x2);
        line.number_attribute("y1", y1)
            .number_attribute("y2", y2)
            .draw_empty();
    }

    /// Adds a text whose baseline passes through (x, y). If `class` is empty, no class is written.
    pub fn add_label(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let mut label = self.begin_element("text");
        if !class.is_empty() {
            label = label.attribute("class", class);
        }
        let label = label.number_attribute("x", x).number_attribute("y", y);
        match anchor {
            Anchor::Start => label,
            Anchor::Middle => label.attribute("text-anchor", "middle"),
            Anchor::End => label.attribute("text-anchor", "end"),
        }
        .draw_text(text);
    }

    /// Closes the element that was opened last. The root stays open until [`finish`](Svg::finish).
    pub fn close_element(&mut self) {
        if self.open.len() > 1 {
            self.close_innermost();
        }
    }

    /// Closes all open elements and returns the picture.
    pub fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close_innermost();
        }
        self.text
    }

    fn close_innermost(&mut self) {
        if let Some(name) = self.open.pop() {
            self.write_markup(format_args!("</{name}>\n"));
        }
    }

    fn write_markup(&mut self, piece: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(piece);
    }
}

impl SvgElement<'_> {
    /// Adds an attribute and escapes its value.
    pub fn attribute(self, name: &str, value: &str) -> Self {
        self.svg
            .write_markup(format_args!(" {name}=\"{}\"", escape_markup(value)));
        self
    }

    /// Adds a numeric attribute.
    pub fn number_attribute(self, name: &str, value: f64) -> Self {
        self.svg
            .write_markup(format_args!(" {name}=\"{}\"", format_number(value)));
        self
    }

    /// Draws the element with no content.
    pub fn draw_empty(self) {
        self.svg.text.push_str("/>\n");
    }

    /// Draws the element with `text` as its content. The text is escaped.
    pub fn draw_text(self, text: &str) {
        let name = self.name;
        self.svg
            .write_markup(format_args!(">{}</{name}>\n", escape_markup(text)));
    }

    /// Opens the element. Everything drawn until [`Svg::close_element`] closes it becomes its
    /// content.
    pub fn open(self) {
        self.svg.text.push_str(">\n");
        self.svg.open.push(self.name);
    }
}

/// Formats a number with at most two decimals and without trailing zeros.
fn format_number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// Escapes text for SVG and HTML. Control characters other than line breaks and tabs are removed or
/// replaced like in [`sanitize()`](crate::sanitize()).
pub fn escape_markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in sanitize(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn svg_nests_and_closes_elements() {
        let mut svg = Svg::new(10.0, 20.5, &[("role", "img")]);
        svg.begin_element("title").draw_text("a & b");
        svg.begin_element("g").open();
        svg.add_rect("kept", (1.0, 2.25), (3.333, 0.0));
        svg.add_line("grid", (0.0, 1.0), (2.0, -0.001));
        svg.close_element();
        svg.add_label("", (1.0, 1.0), Anchor::End, "<b>");
        svg.close_element();
        let expected = "\
<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 10 20.5\" width=\"10\" height=\"20.5\" role=\"img\">
<title>a &amp; b</title>
<g>
<rect class=\"kept\" x=\"1\" y=\"2.25\" width=\"3.33\" height=\"0\"/>
<line class=\"grid\" x1=\"0\" x2=\"2\" y1=\"1\" y2=\"0\"/>
</g>
<text x=\"1\" y=\"1\" text-anchor=\"end\">&lt;b&gt;</text>
</svg>
";
        assert_eq!(svg.finish(), expected);
    }

    #[test]
    fn svg_escapes_untrusted_text() {
        let escaped = escape_markup("<script>&\"\u{1b}[31m\u{ffff}\n\ta\u{a0}");
        assert_eq!(
            escaped,
            "&lt;script&gt;&amp;&quot;&lt;U+FFFF&gt;\n\ta\u{a0}"
        );
        let mut svg = Svg::new(1.0, 1.0, &[]);
        svg.begin_element("rect")
            .attribute("class", "\"/><script>")
            .draw_empty();
        assert!(!svg.finish().contains("<script>"));
    }
}
