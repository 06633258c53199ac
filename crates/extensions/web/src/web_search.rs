//! The tool `web_search`: queries the configured search service. The tool is registered only if
//! there is one.

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

use crate::NOTICE;
use crate::search::{FoundPage, Searcher, SearcherError};

const NAME: &str = "web_search";
const USUAL: u32 = 8;
const MOST: u32 = 20;

static MANUAL: Manual = Manual::of(Group::Others);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WebSearchParameters {
    /// What to look for, as you would type it into a search engine.
    query: String,
    /// How many results at most; 8 when absent.
    #[schemars(range(min = 1, max = 20))]
    max_results: Option<u32>,
}

/// Creates the tool `web_search`, which queries this service.
pub fn web_search(searcher: Searcher) -> impl Tool {
    let host = searcher.host().to_owned();
    let searcher = Arc::new(searcher);
    ToolDefinition::new(
        NAME,
        prompt!("web_search/prompt"),
        &MANUAL,
        Access::Read,
        move |_| Intent::Hosts(vec![host.clone()]),
    )
    .runs(move |context, parameters| {
        let searcher = Arc::clone(&searcher);
        Box::pin(async move { run(&searcher, context, parameters).await })
    })
}

async fn run(
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
    let most = max_results.unwrap_or(USUAL).clamp(1, MOST) as usize;
    tokio::select! {
        found = searcher.search(query.trim(), most) => match found {
            Ok(found) => Ok(shown(context, &query, &found)),
            Err(error) => Err(broken(&error)),
        },
        () = context.cancel.cancelled() => Err(Envelope::failure("cancelled", "The search was cancelled.").into()),
    }
}

fn broken(error: &SearcherError) -> ToolOutput {
    let envelope = Envelope::failure("search_failed", haft_text::sanitise(&error.to_string()));
    ToolOutput {
        health: ToolHealth::Broken,
        ..envelope.into()
    }
}

fn shown(context: &ToolContext, query: &str, found: &[FoundPage]) -> Envelope {
    let mut text = match found {
        [] => format!("Nothing was found for `{query}`. Try fewer or other words."),
        _ => format!("{NOTICE}\n"),
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
