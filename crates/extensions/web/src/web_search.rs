//! `web_search`: asks the search service the user configured. Registered only where there is one.

use std::fmt::Write as _;

use async_trait::async_trait;
use haft_text::{Limits, cut_lines};
use haft_tool::{Access, Group, Health, Intent, Manual, Tool, ToolContext, ToolOutput, parse_arguments, schema_of};
use haft_types::{Envelope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::NOTICE;
use crate::search::{FoundPage, Searcher, SearcherError};

const NAME: &str = "web_search";
const USUAL: u32 = 8;
const MOST: u32 = 20;

static MANUAL: Manual = Manual {
    example_of: "Looking for what an error of another program means",
    example: r#"{"query": "rustc E0502 cannot borrow as mutable because also borrowed as immutable"}"#,
    ..Manual::of(Group::Others)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// What to look for.
    query: String,
    /// How many results at most; 8 when absent.
    #[schemars(range(min = 1, max = 20))]
    max_results: Option<u32>,
}

/// The tool.
pub struct WebSearch {
    spec: ToolSpec,
    searcher: Searcher,
}

impl WebSearch {
    /// The tool over this service.
    pub fn new(searcher: Searcher) -> Self {
        let spec = ToolSpec {
            name: NAME.to_owned(),
            description: include_str!("web_search/prompt.md").trim_end().to_owned(),
            parameters: schema_of::<Parameters>(),
        };
        Self { spec, searcher }
    }
}

#[async_trait]
impl Tool for WebSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn access(&self) -> Access {
        Access::Read
    }

    fn intent(&self, _arguments: &Value) -> Intent {
        Intent::Hosts(vec![self.searcher.host().to_owned()])
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        let Parameters { query, max_results } = match parse_arguments(NAME, arguments) {
            Ok(parameters) => parameters,
            Err(error) => return Envelope::failure("invalid_arguments", error.to_string()).into(),
        };
        if query.trim().is_empty() {
            return Envelope::failure("invalid_arguments", "`query` is empty; say what to look for").into();
        }
        let most = max_results.unwrap_or(USUAL).clamp(1, MOST) as usize;
        let found = tokio::select! {
            found = self.searcher.search(query.trim(), most) => found,
            () = context.cancel.cancelled() => return Envelope::failure("cancelled", "The search was cancelled.").into(),
        };
        match found {
            Ok(found) => shown(context, &query, &found).into(),
            Err(error) => broken(&error),
        }
    }
}

fn broken(error: &SearcherError) -> ToolOutput {
    let envelope = Envelope::failure("search_failed", haft_text::sanitise(&error.to_string()));
    ToolOutput { health: Health::Broken, ..envelope.into() }
}

fn shown(context: &ToolContext, query: &str, found: &[FoundPage]) -> Envelope {
    let mut text = match found {
        [] => format!("Nothing was found for `{query}`. Try fewer or other words."),
        _ => format!("{NOTICE}\n"),
    };
    for (number, FoundPage { title, url, text: about }) in (1..).zip(found) {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{number}. {title}\n   {url}\n   {about}\n");
    }
    let cut = cut_lines(&text, Limits { lines: context.limits.lines, bytes: context.limits.bytes });
    let results: Vec<_> = found.iter().map(|one| json!({"title": one.title, "url": one.url})).collect();
    Envelope::success(cut.text).with_data(json!({ "query": query, "results": results }))
}
