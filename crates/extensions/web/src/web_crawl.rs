//! The tool `web_crawl`: reads pages as Markdown.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use haft_text::cut_lines;
use haft_tool::{Access, Group, Intent, Manual, Tool, ToolContext, ToolDefinition};
use haft_types::{Envelope, prompt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::UNTRUSTED_NOTICE;
use crate::crawl::{Bounds, Crawled, crawl_site};
use crate::fetch::{Fetcher, ReadContext, WebError};

const TOOL_NAME: &str = "web_crawl";
const MAX_PAGES: u32 = 20;
const MAX_DEPTH: u32 = 3;

static MANUAL: Manual = Manual::for_group(Group::Others);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WebCrawlParameters {
    /// The address, with `https://` or `http://`.
    url: String,
    /// How many pages at most; 1 when absent. Those the first one links to on the same host are
    /// read after it.
    #[schemars(range(min = 1, max = 20))]
    max_pages: Option<u32>,
    /// How many links away from the first page; 1 when absent.
    #[schemars(range(min = 1, max = 3))]
    max_depth: Option<u32>,
}

/// Creates the tool `web_crawl`, which reads pages through `fetcher`.
pub fn web_crawl(fetcher: Fetcher) -> impl Tool {
    let fetcher = Arc::new(fetcher);
    ToolDefinition::new(
        TOOL_NAME,
        prompt!("web_crawl/prompt"),
        &MANUAL,
        Access::Read,
        parse_intent,
    )
    .with_function(move |context, parameters| {
        let fetcher = Arc::clone(&fetcher);
        Box::pin(async move { run_crawl(&fetcher, context, parameters).await })
    })
}

fn parse_intent(arguments: &Value) -> Intent {
    let url = arguments
        .get("url")
        .and_then(Value::as_str)
        .and_then(|url| Url::parse(url.trim()).ok());
    match url.as_ref().and_then(Url::host_str) {
        Some(host) => Intent::Hosts(vec![host.to_owned()]),
        // An invalid address is reported when the tool runs.
        None => Intent::Nothing,
    }
}

async fn run_crawl(
    fetcher: &Fetcher,
    context: &ToolContext,
    parameters: WebCrawlParameters,
) -> Result<Envelope, Envelope> {
    let WebCrawlParameters {
        url,
        max_pages,
        max_depth,
    } = parameters;
    let Ok(first) = Url::parse(url.trim()) else {
        return Err(failure_envelope(&WebError::Address(url)));
    };
    let bounds = Bounds {
        pages: max_pages.unwrap_or(1).clamp(1, MAX_PAGES) as usize,
        depth: max_depth.unwrap_or(1).clamp(1, MAX_DEPTH) as usize,
    };
    let place = ReadContext {
        spill: &context.workspace.spill,
        cancel: &context.cancel,
    };
    tokio::select! {
        crawled = crawl_site(fetcher, first, bounds, place) => match crawled {
            Ok(crawled) => Ok(format_pages(context, &url, &crawled)),
            Err(error) => Err(failure_envelope(&error)),
        },
        () = context.cancel.cancelled() => Err(Envelope::failure("cancelled", "Reading was cancelled.")),
    }
}

fn failure_envelope(error: &WebError) -> Envelope {
    Envelope::failure(error.code(), haft_text::sanitize(&error.to_string()))
}

fn format_pages(context: &ToolContext, asked: &str, crawled: &Crawled) -> Envelope {
    let mut text = format!("{UNTRUSTED_NOTICE}\n");
    // Writing to a String cannot fail.
    for page in &crawled.pages {
        let title = if page.title.is_empty() {
            page.url.as_str()
        } else {
            &page.title
        };
        let _ = write!(
            text,
            "\n# {}\n{}\n\n{}\n",
            title.replace('\n', " "),
            page.url,
            page.text
        );
        if page.cut {
            text.push_str("\n(The page is longer; this is its beginning.)\n");
        }
    }
    for (url, error) in &crawled.failed {
        let _ = write!(
            text,
            "\nNot read: {url}: {}\n",
            haft_text::sanitize(&error.to_string())
        );
    }
    if crawled.left > 0 && crawled.pages.len() > 1 {
        let _ = write!(
            text,
            "\n{} more pages are named and were not read.\n",
            crawled.left
        );
    }
    let pages: Vec<_> = crawled
        .pages
        .iter()
        .map(|page| json!({"url": page.url.as_str(), "title": page.title}))
        .collect();
    let mut data = json!({ "url": asked, "pages": pages });
    let cut = cut_lines(&text, context.limits.into());
    let mut told = cut.text.clone();
    if cut.is_cut() {
        data["truncated"] = true.into();
        if let Some(whole) = spill_to_file(&context.workspace.spill, &text) {
            let _ = write!(told, "\nThe whole is in `{whole}`; read it by range.");
            data["spill"] = json!([whole]);
        }
    }
    Envelope::success(told).with_data(data)
}

/// Writes the complete text of pages to a file, and returns the path of the file. Returns `None` if
/// that fails; the model then receives only the shortened text.
fn spill_to_file(folder: &Path, text: &str) -> Option<String> {
    let mut file = haft_files::create_temporary_file(folder, "web-", ".md").ok()?;
    file.write_all(text.as_bytes()).ok()?;
    let (_, path) = file.keep().ok()?;
    Some(path.display().to_string())
}
