//! The tool `web_search`: queries the configured search service. The tool is registered only if a
//! search service is configured.

use std::fmt::Write as _;
use std::sync::Arc;

use haft_text::cut_lines;
use haft_tool::{
    Access, Group, Intent, Manual, Tool, ToolContext, ToolDefinition, ToolHealth, ToolOutput,
};
use haft_types::{Envelope, prompt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::UNTRUSTED_NOTICE;
use crate::search::{FoundPage, Searcher, SearcherError};

const TOOL_NAME: &str = "web_search";
const DEFAULT_RESULTS: u32 = 8;
const MAX_RESULTS: u32 = 20;

static MANUAL: Manual = Manual::for_group(Group::Others);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WebSearchParameters {
    /// What to look for, as you would type it into a search engine.
    query: String,
    /// How many results at most; 8 when absent.
    #[schemars(range(min = 1, max = 20))]
    max_results: Option<u32>,
}

/// Creates the tool `web_search`, which queries `searcher`.
pub fn web_search(searcher: Searcher) -> impl Tool {
    let host = searcher.host().to_owned();
    let searcher = Arc::new(searcher);
    ToolDefinition::new(
        TOOL_NAME,
        prompt!("web_search/prompt"),
        &MANUAL,
        Access::Read,
        move |_| Intent::Hosts(vec![host.clone()]),
    )
    .with_function(move |context, parameters| {
        let searcher = Arc::clone(&searcher);
        Box::pin(async move { run_search(&searcher, context, parameters).await })
    })
}

async fn run_search(
    searcher: &Searcher,
    context: &ToolContext,
    WebSearchParameters { query, max_results }: WebSearchParameters,
) -> Result<Envelope, ToolOutput> {
    if query.trim().is_empty() {
        return Err(Envelope::failure(
            "invalid_arguments",
            "`query` is empty; say what to look for",
        )
        .into());
    }
    let most = max_results.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS) as usize;
    tokio::select! {
        found = searcher.search(query.trim(), most) => match found {
            Ok(found) => Ok(format_results(context, &query, &found)),
            Err(error) => Err(report_search_failure(&error)),
        },
        () = context.cancel.cancelled() => Err(Envelope::failure("cancelled", "The search was cancelled.").into()),
    }
}

fn report_search_failure(error: &SearcherError) -> ToolOutput {
    let envelope = Envelope::failure("search_failed", haft_text::sanitize(&error.to_string()));
    ToolOutput {
        health: ToolHealth::Broken,
        ..envelope.into()
    }
}

fn format_results(context: &ToolContext, query: &str, found: &[FoundPage]) -> Envelope {
    let mut text = match found {
        [] => format!("Nothing was found for `{query}`. Try fewer or other words."),
        _ => format!("{UNTRUSTED_NOTICE}\n"),
    };
    for (
        number,
        FoundPage {
            title,
            url,
            text: about,
        },
    ) in (1..).zip(found)
    {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{number}. {title}\n   {url}\n   {about}\n");
    }
    let cut = cut_lines(&text, context.limits.into());
    let results: Vec<_> = found
        .iter()
        .map(|one| json!({"title": one.title, "url": one.url}))
        .collect();
    Envelope::success(cut.text).with_data(json!({ "query": query, "results": results }))
}
