//! Renders the Markdown of a model as HTML.
//!
//! Only elements of text are made: HTML in the Markdown is shown as text, pictures are shown as
//! their description, and only links to web and mail addresses are links. [`Markup`] escapes all
//! text, so no input can add an element or an attribute.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::markup::Markup;

/// The maximum depth of nested elements. Deeper content is added to the element at this depth.
const MAX_DEPTH: usize = 32;

/// An element that is still open.
struct OpenElement {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    content: Vec<Markup>,
}

/// Renders `text`. Headings are rendered below the second level, because the page has its own.
pub(crate) fn render_markdown(text: &str) -> Markup {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut tree = OpenElements::default();
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Start(tag) => tree.start(&tag),
            Event::End(tag) => tree.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                tree.add(Markup::text(text));
            }
            Event::Code(code) | Event::InlineMath(code) | Event::DisplayMath(code) => {
                tree.add(Markup::text_element("code", code));
            }
            Event::SoftBreak => tree.add(Markup::text("\n")),
            Event::HardBreak => tree.add(Markup::element("br", &[], [])),
            Event::Rule => tree.add(Markup::element("hr", &[], [])),
            Event::TaskListMarker(done) => {
                tree.add(Markup::text(if done { "☑ " } else { "☐ " }));
            }
            Event::FootnoteReference(name) => tree.add(Markup::text(format!("[{name}]"))),
        }
    }
    Markup::element("div", &[("class", "markdown")], tree.finish())
}

#[derive(Default)]
struct OpenElements {
    open: Vec<OpenElement>,
    /// The number of open tags that have no element because they are nested too deeply.
    skipped: usize,
    /// True inside the head of a table.
    in_head: bool,
    done: Vec<Markup>,
}

impl OpenElements {
    fn add(&mut self, piece: Markup) {
        match self.open.last_mut() {
            Some(element) => element.content.push(piece),
            None => self.done.push(piece),
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        if self.open.len() >= MAX_DEPTH || self.skipped > 0 {
            self.skipped += 1;
            return;
        }
        let mut attributes = Vec::new();
        let name = match tag {
            Tag::Paragraph => "p",
            Tag::Heading { level, .. } => match level {
                HeadingLevel::H1 | HeadingLevel::H2 => "h3",
                HeadingLevel::H3 => "h4",
                HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => "h5",
            },
            Tag::BlockQuote(_) => "blockquote",
            Tag::CodeBlock(kind) => {
                attributes.push(("tabindex", "0".to_owned()));
                if matches!(kind, CodeBlockKind::Fenced(language) if &**language == "diff") {
                    attributes.push(("class", "diff".to_owned()));
                }
                "pre"
            }
            Tag::List(Some(first)) => {
                attributes.extend((*first != 1).then(|| ("start", first.to_string())));
                "ol"
            }
            Tag::List(None) => "ul",
            Tag::Item => "li",
            Tag::Table(_) => "table",
            Tag::TableHead => {
                self.in_head = true;
                "tr"
            }
            Tag::TableRow => "tr",
            Tag::TableCell if self.in_head => "th",
            Tag::TableCell => "td",
            Tag::Emphasis => "em",
            Tag::Strong => "strong",
            Tag::Strikethrough => "del",
            Tag::Superscript => "sup",
            Tag::Subscript => "sub",
            Tag::Link { dest_url, .. } if is_web_address(dest_url) => {
                attributes.push(("href", dest_url.to_string()));
                attributes.push(("rel", "noopener noreferrer".to_owned()));
                "a"
            }
            Tag::Link { .. }
            | Tag::Image { .. }
            | Tag::HtmlBlock
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_) => "span",
        };
        self.open.push(OpenElement {
            name,
            attributes,
            content: Vec::new(),
        });
    }

    fn end(&mut self, tag: TagEnd) {
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        if tag == TagEnd::TableHead {
            self.in_head = false;
        }
        if let Some(element) = self.open.pop() {
            self.add(element.finish());
        }
    }

    fn finish(mut self) -> Vec<Markup> {
        while let Some(element) = self.open.pop() {
            let piece = element.finish();
            self.add(piece);
        }
        self.done
    }
}

impl OpenElement {
    fn finish(self) -> Markup {
        let attributes: Vec<_> = self
            .attributes
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let element = Markup::element(self.name, &attributes, self.content);
        if self.name == "table" {
            return Markup::scroller("wide", element);
        }
        element
    }
}

/// True for addresses that a page may link to. Other addresses, such as those of scripts and
/// files, are shown as text.
fn is_web_address(address: &str) -> bool {
    let scheme = address.split_once(':').map_or("", |(scheme, _)| scheme);
    ["https", "http", "mailto"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markup::build_html_document;

    /// Renders Markdown and returns the content of the element around it.
    fn render(text: &str) -> String {
        let html = build_html_document("en", "x", render_markdown(text));
        let (_, content) = html.split_once("<div class=\"markdown\">").unwrap();
        content.rsplit_once("</div></body>").unwrap().0.to_owned()
    }

    #[test]
    fn markdown_becomes_elements() {
        let cases = [
            (
                "plain *a* **b** ~~c~~ `d`",
                "<p>plain <em>a</em> <strong>b</strong> <del>c</del> <code>d</code></p>",
            ),
            (
                "# One\n## Two\n### Three",
                "<h3>One</h3><h3>Two</h3><h4>Three</h4>",
            ),
            (
                "- a\n- [x] b\n\n3. c",
                "<ul><li>a</li><li>☑ b</li></ul><ol start=\"3\"><li>c</li></ol>",
            ),
            (
                "```rust\nlet a = 1 < 2;\n```",
                "<pre tabindex=\"0\">let a = 1 &lt; 2;\n</pre>",
            ),
            ("> quoted", "<blockquote><p>quoted</p></blockquote>"),
            (
                "[a](https://example.com/?q=\"x\")",
                "<p><a href=\"https://example.com/?q=&quot;x&quot;\" rel=\"noopener noreferrer\">a</a></p>",
            ),
            (
                "|a|b|\n|-|-|\n|1|2|",
                "<div class=\"wide\" tabindex=\"0\"><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table></div>",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(render(text), expected, "{text}");
        }
    }

    #[test]
    fn hostile_markdown_stays_text() {
        let cases = [
            (
                "<script>alert(1)</script>",
                "&lt;script&gt;alert(1)&lt;/script&gt;",
            ),
            (
                "a <img src=x onerror=alert(1)> b",
                "<p>a &lt;img src=x onerror=alert(1)&gt; b</p>",
            ),
            ("[a](javascript:alert(1))", "<p><span>a</span></p>"),
            ("[a](JaVaScRiPt&colon;alert(1))", "<p><span>a</span></p>"),
            (
                "[a](data:text/html,x) [b](/c/1/edit) [c](file:///etc/passwd)",
                "<p><span>a</span> <span>b</span> <span>c</span></p>",
            ),
            (
                "![secret](https://evil.example/?q=1)",
                "<p><span>secret</span></p>",
            ),
            (
                "<https://a.example/'\"onclick=x>",
                "<p>&lt;https://a.example/&#39;&quot;onclick=x&gt;</p>",
            ),
        ];
        for (text, expected) in cases {
            let html = render(text);
            let html = html
                .replace("<span>&lt;", "&lt;")
                .replace("&gt;</span>", "&gt;");
            assert!(
                !html.contains("<script") && !html.contains("<img"),
                "{html}"
            );
            if !text.starts_with("<https") {
                assert_eq!(html, expected, "{text}");
            }
        }
        // Deep nesting neither overflows the stack nor loses text.
        let deep = format!("{}deep", "> ".repeat(5_000));
        assert!(render(&deep).contains("deep"));
    }
}
