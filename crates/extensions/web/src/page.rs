//! Converts fetched pages to Markdown.
//!
//! Invariant: every page yields a bounded result in bounded time. A page that is nested more
//! deeply, or has more elements, than a person would write is shown without its tags, because
//! parsing it would need an equally deep stack and equally large memory.

use std::collections::HashSet;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use dom_query::Document;
use dom_smoothie::{Config, Readability};
use haft_text::sanitize;
use url::Url;

use crate::decode::decode_page;
use crate::fetch::{Fetched, WebError};
use crate::html_limits::has_bounded_tree;

/// The maximum number of links kept for one page.
const MAX_LINKS: usize = 1_000;
/// The time limit for converting one page. A page that takes longer is shown without its tags.
const CONVERSION_TIMEOUT: Duration = if cfg!(test) {
    // A long limit, so that no test fails because the machine is busy.
    Duration::from_mins(10)
} else {
    Duration::from_secs(10)
};
/// The stack size of the conversion thread, in bytes. Nested elements need a large stack.
const CONVERSION_STACK_BYTES: usize = 64 << 20;
/// The names of HTML elements whose content is not part of a page's text.
const SKIPPED_TAGS: [&str; 10] = [
    "title", "script", "style", "noscript", "template", "svg", "iframe", "nav", "footer", "form",
];

/// A web page, converted to the text that a model reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebPage {
    pub(crate) url: Url,
    pub(crate) title: String,
    pub(crate) text: String,
    /// The page's links to other pages on its own host.
    pub(crate) links: Vec<Url>,
    /// True if the page was too large to be read completely.
    pub(crate) cut: bool,
}

enum PageKind {
    Html,
    Text,
}

impl WebPage {
    /// Converts a fetched page to text. Fails if the content of the page is not text.
    pub(crate) fn from_fetched(fetched: Fetched) -> Result<Self, WebError> {
        let Fetched {
            url,
            content_type,
            bytes,
            cut,
        } = fetched;
        let kind =
            detect_page_kind(content_type.as_deref(), &bytes).ok_or_else(|| WebError::NotText {
                url: url.to_string(),
                kind: format_content_type(content_type.as_deref()),
            })?;
        let text = decode_page(&bytes, content_type.as_deref());
        let (title, text, links) = match kind {
            PageKind::Text => (String::new(), text, Vec::new()),
            PageKind::Html => convert_html(&text, &url),
        };
        Ok(Self {
            url,
            title: sanitize(title.trim()).into_owned(),
            text: sanitize(text.trim()).into_owned(),
            links,
            cut,
        })
    }
}

fn format_content_type(content_type: Option<&str>) -> String {
    content_type
        .map_or("of an unknown type", |kind| {
            kind.split(';').next().unwrap_or(kind).trim()
        })
        .to_owned()
}

fn detect_page_kind(content_type: Option<&str>, bytes: &[u8]) -> Option<PageKind> {
    let said = format_content_type(content_type).to_ascii_lowercase();
    let is_text = !bytes.get(..4096).unwrap_or(bytes).contains(&0);
    match said.as_str() {
        "text/html" | "application/xhtml+xml" => Some(PageKind::Html),
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/yaml"
        | "application/toml" => Some(PageKind::Text),
        said if said.starts_with("text/") || said.ends_with("+json") || said.ends_with("+xml") => {
            Some(PageKind::Text)
        }
        "of an unknown type" | "application/octet-stream" if is_text => {
            let start = String::from_utf8_lossy(bytes.get(..512).unwrap_or(bytes))
                .trim_start()
                .to_ascii_lowercase();
            let html = start.starts_with("<!doctype html") || start.starts_with("<html");
            Some(if html { PageKind::Html } else { PageKind::Text })
        }
        _ => None,
    }
}

/// Returns the title, the Markdown and the links of a page. The conversion runs on a thread of its
/// own, which has a large stack and is abandoned if it takes too long.
fn convert_html(html: &str, url: &Url) -> (String, String, Vec<Url>) {
    let plain = || (String::new(), strip_tags(html), Vec::new());
    let page = html.to_owned();
    let at = url.clone();
    let (done, converted) = sync_channel(1);
    let worker =
        move || drop(done.send(has_bounded_tree(&page).then(|| html_to_markdown(&page, &at))));
    if std::thread::Builder::new()
        .stack_size(CONVERSION_STACK_BYTES)
        .spawn(worker)
        .is_err()
    {
        return plain();
    }
    match converted.recv_timeout(CONVERSION_TIMEOUT) {
        Ok(Some(converted)) => converted,
        Ok(None) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => plain(),
    }
}

fn html_to_markdown(html: &str, url: &Url) -> (String, String, Vec<Url>) {
    let document = Document::from(html);
    let links = collect_links(&document, url);
    let mut title = document.select("title").text().trim().to_owned();
    let markdown = htmd::HtmlToMarkdown::builder()
        .skip_tags(SKIPPED_TAGS.to_vec())
        .build();
    let config = Config {
        max_elements_to_parse: 50_000,
        ..Config::default()
    };
    let article = Readability::with_document(document, Some(url.as_str()), Some(config));
    let article = article.and_then(|mut readable| readable.parse()).ok();
    let mut text = String::new();
    if let Some(article) = article {
        text = markdown.convert(&article.content).unwrap_or_default();
        if title.is_empty() {
            title = article.title;
        }
    }
    // The page is not an article, so everything except the skipped elements is converted.
    if text.trim().len() < 200 {
        let whole = markdown.convert(html).unwrap_or_default();
        if whole.trim().len() > text.trim().len() {
            text = whole;
        }
    }
    (title, text, links)
}

fn collect_links(document: &Document, url: &Url) -> Vec<Url> {
    let base = document
        .select("base[href]")
        .attr("href")
        .and_then(|href| url.join(&href).ok());
    let base = base.unwrap_or_else(|| url.clone());
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for link in &document.select("a[href]") {
        if found.len() == MAX_LINKS {
            break;
        }
        let Some(mut to) = link
            .attr("href")
            .and_then(|href| base.join(href.trim()).ok())
        else {
            continue;
        };
        to.set_fragment(None);
        if matches!(to.scheme(), "http" | "https")
            && to.host_str() == url.host_str()
            && seen.insert(to.clone())
        {
            found.push(to);
        }
    }
    found
}

fn strip_tags(html: &str) -> String {
    let mut text = String::new();
    for piece in html.split('<') {
        text.push_str(piece.split_once('>').map_or("", |(_, after)| after));
        text.push(' ');
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(content_type: &str, body: &str) -> Result<WebPage, WebError> {
        let url = Url::parse("https://example.com/docs/a").unwrap();
        let content_type = (!content_type.is_empty()).then(|| content_type.to_owned());
        WebPage::from_fetched(Fetched {
            url,
            content_type,
            bytes: body.as_bytes().to_vec(),
            cut: false,
        })
    }

    #[test]
    fn page_becomes_markdown_without_navigation_and_scripts() {
        let body = format!(
            "<html><head><title>How it works</title><script>alert(1)</script></head><body><nav><a href='/x'>Menu</a></nav>\
             <article><h1>How it works</h1><p>{}</p><pre><code>let a = 1;</code></pre><p><a href='b?q=1#top'>Next</a> \
             <a href='https://other.org/'>Other</a></p></article></body></html>",
            "It works by doing the work. ".repeat(20)
        );
        let page = page("text/html", &body).unwrap();
        assert_eq!(page.title, "How it works");
        assert!(
            page.text.contains("It works by doing the work."),
            "{}",
            page.text
        );
        assert!(page.text.contains("let a = 1;"), "{}", page.text);
        assert!(
            !page.text.contains("alert") && !page.text.contains("Menu"),
            "{}",
            page.text
        );
        let links: Vec<_> = page.links.iter().map(Url::as_str).collect();
        assert_eq!(
            links,
            ["https://example.com/x", "https://example.com/docs/b?q=1"]
        );
    }

    #[test]
    fn page_keeps_plain_text_and_rejects_data() {
        assert_eq!(page("text/plain", "a\nb").unwrap().text, "a\nb");
        assert_eq!(
            page("application/json; charset=utf-8", "{}").unwrap().text,
            "{}"
        );
        assert_eq!(page("", "plain words").unwrap().text, "plain words");
        assert!(
            page("", "<!DOCTYPE html><p>hello")
                .unwrap()
                .text
                .contains("hello")
        );
        assert_eq!(
            page("application/pdf", "%PDF-").unwrap_err().code(),
            "not_text"
        );
        assert_eq!(page("", "\0\0\0").unwrap_err().code(), "not_text");
        assert_eq!(page("image/png", "x").unwrap_err().code(), "not_text");
    }

    #[test]
    fn page_survives_malicious_markup() {
        let deep = format!(
            "{}deep down{}",
            "<div>".repeat(200_000),
            "</div>".repeat(200_000)
        );
        assert!(page("text/html", &deep).unwrap().text.contains("deep down"));
        let wide = "<b><i>x</b></i><table><tr><td>y".repeat(20_000);
        page("text/html", &wide).unwrap();
        page("text/html", "<<<>>><a href='http://['>x").unwrap();
        // A few bytes that become many elements, or nest deeply despite end tags.
        for (what, head, again, times) in [
            ("end tags of nothing", "", "<div></p>", 300_000),
            ("end tags in comments", "", "<div><!--</a>-->", 200_000),
            ("end tags in attributes", "", "<div a='</a>'>", 200_000),
            ("unknown end tags", "", "<section></nothing>", 150_000),
            (
                "end tags in text",
                "<textarea></div></textarea>",
                "<dl><dt>",
                300_000,
            ),
            ("foreign elements", "<svg>", "<g><title></p>", 200_000),
            ("tables in tables", "", "<table><tr><td></p>", 150_000),
            ("templates", "", "<template></p>", 200_000),
            ("lists", "", "<ul><li></p>", 200_000),
        ] {
            let body = format!("<title>t</title>{head}{}deep down", again.repeat(times));
            assert!(
                page("text/html", &body).unwrap().text.contains("deep down"),
                "{what}"
            );
        }
        let formatting = (0..900)
            .map(|number| format!("<b class=c{number}>"))
            .collect::<Vec<_>>()
            .concat();
        let repeated = format!("<p>{formatting}</p>{}deep down", "<p>x".repeat(300_000));
        assert!(
            page("text/html", &repeated)
                .unwrap()
                .text
                .contains("deep down"),
            "formatting that is repeated"
        );
        let swapped = "<b><p></b>y</p>".repeat(100_000) + "deep down";
        assert!(
            page("text/html", &swapped)
                .unwrap()
                .text
                .contains("deep down"),
            "elements that are moved"
        );
        let links = (0..50_000)
            .map(|number| format!("<a href=/{number}>x</a>"))
            .collect::<Vec<_>>()
            .concat();
        assert_eq!(page("text/html", &links).unwrap().links.len(), MAX_LINKS);
        assert!(
            !page("text/html", "<p>\u{1b}[2Jhello")
                .unwrap()
                .text
                .contains('\u{1b}')
        );
    }
}
