//! `tool_search`: finds deferred tools, with their arguments.
//!
//! The tool searches [catalogues](ToolCatalogue). It does not depend on where their tools come from
//! or how they are called.

mod deferred_catalogue;
mod relevance;

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use futures::future::join_all;
use haft_text::{cut_lines, sanitize};
use haft_types::{Envelope, Prompt, ToolSpec, prompt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Access, DeferralUpdate, Gateway, Group, Intent, Manual, SourceWait, Tool, ToolCatalogue,
    ToolContext, ToolOutput, ToolTexts, parameter_schema, parse_arguments,
};
use deferred_catalogue::DeferredTools;
use relevance::{score_tool, split_terms};

const NAME: &str = "tool_search";
/// The maximum number of found tools that are shown with their arguments.
const MAX_SHOWN: usize = 5;
/// The maximum number of further tools that a search lists by name.
const MAX_NAMED: usize = 50;

const PROMPT: Prompt = prompt!("tool_search/prompt");

static MANUAL: LazyLock<Manual> = LazyLock::new(|| {
    ToolTexts::parse(PROMPT.english).fill_manual(Manual::for_group(Group::Others))
});

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToolSearchParameters {
    /// What the tool should do, in words, or its name; empty for all.
    query: String,
    /// Only tools of this server.
    server_name: Option<String>,
}

/// The tool that searches catalogues and deferred built-in tools.
pub struct ToolSearch {
    spec: ToolSpec,
    catalogues: Vec<Arc<dyn ToolCatalogue>>,
    deferred: Option<Arc<DeferredTools>>,
}

/// A source of tools, such as a server, by its name and with the catalogue that contains it.
type CatalogueSource<'a> = (&'a dyn ToolCatalogue, String);

/// A tool that matches a query.
struct SearchResult<'a> {
    relevance: u32,
    source: &'a CatalogueSource<'a>,
    tool: ToolSpec,
}

impl ToolSearch {
    /// Creates a search tool for these catalogues.
    pub fn new(catalogues: Vec<Arc<dyn ToolCatalogue>>) -> Self {
        Self::with_deferred_tools(catalogues, None)
    }

    fn with_deferred_tools(
        catalogues: Vec<Arc<dyn ToolCatalogue>>,
        deferred: Option<Arc<DeferredTools>>,
    ) -> Self {
        let mut description = ToolTexts::parse(PROMPT.english).description.to_owned();
        let guides = deferred
            .iter()
            .map(|tools| tools.guide())
            .chain(catalogues.iter().map(|one| one.guide()));
        // Writing to a String cannot fail.
        for guide in guides {
            let _ = write!(description, "\n\n{}", guide.trim_end());
        }
        let mut parameters = parameter_schema::<ToolSearchParameters>();
        if catalogues.is_empty()
            && let Some(Value::Object(properties)) = parameters.get_mut("properties")
        {
            // Without catalogues there is only one source.
            properties.shift_remove("server_name");
        }
        let spec = ToolSpec {
            name: NAME.into(),
            description,
            parameters,
        };
        Self {
            spec,
            catalogues,
            deferred,
        }
    }

    fn all_sources(&self) -> Vec<CatalogueSource<'_>> {
        let own = self
            .deferred
            .iter()
            .map(|tools| tools.as_ref() as &dyn ToolCatalogue);
        let all = own.chain(self.catalogues.iter().map(AsRef::as_ref));
        all.flat_map(|one| one.sources().into_iter().map(move |name| (one, name)))
            .collect()
    }

    fn unknown_source_failure(&self, name: &str) -> Envelope {
        let mut nouns: Vec<_> = self
            .catalogues
            .iter()
            .map(|catalogue| catalogue.source_noun())
            .collect();
        nouns.dedup();
        let known: Vec<_> = self
            .all_sources()
            .iter()
            .map(|(_, name)| format!("`{name}`"))
            .collect();
        let message = format!(
            "there is no {} `{name}`; there are {}",
            nouns.join(" or "),
            known.join(", ")
        );
        Envelope::failure("unknown_server", message)
    }
}

#[async_trait]
impl Tool for ToolSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prompt(&self) -> Option<Prompt> {
        Some(PROMPT)
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn gateway(&self) -> Option<&dyn Gateway> {
        Some(self)
    }

    fn access(&self) -> Access {
        Access::Read
    }

    fn intent(&self, _arguments: &Value) -> Intent {
        Intent::Nothing
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        let ToolSearchParameters { query, server_name } = match parse_arguments(NAME, arguments) {
            Ok(parameters) => parameters,
            Err(error) => return error.into(),
        };
        let wanted = server_name.filter(|name| !name.trim().is_empty());
        let mut sources = self.all_sources();
        sources.retain(|(_, name)| wanted.as_ref().is_none_or(|wanted| wanted == name));
        if let (Some(name), []) = (&wanted, sources.as_slice()) {
            return self.unknown_source_failure(name).into();
        }
        let patience = if wanted.is_some() {
            SourceWait::Full
        } else {
            SourceWait::Short
        };
        let asked = sources
            .iter()
            .map(|(catalogue, name)| catalogue.list_tools(name, patience, &context.cancel));
        let terms = split_terms(&query);
        let mut all = 0;
        let mut found = Vec::new();
        let mut failed = Vec::new();
        for (source, tools) in sources.iter().zip(join_all(asked).await) {
            match tools {
                Ok(tools) => {
                    all += tools.len();
                    let rated = tools.into_iter().map(|tool| {
                        let relevance = score_tool(&source.1, &tool, &terms);
                        SearchResult {
                            relevance,
                            source,
                            tool,
                        }
                    });
                    found.extend(rated.filter(|result| result.relevance > 0));
                }
                Err(reason) => failed.push(sanitize(&reason).into_owned()),
            }
        }
        // The sort is stable: of equally relevant tools, the first stays first.
        found.sort_by_key(|result| std::cmp::Reverse(result.relevance));
        let text = render_results(all, &found, &failed);
        let named = |result: &SearchResult<'_>| json!({ "server": result.source.1, "tool": result.tool.name });
        let best: Vec<_> = found.iter().take(MAX_SHOWN).map(named).collect();
        Envelope::success(cut_lines(&text, context.limits.into()).text)
            .with_data(json!({ "query": query, "found": best, "total": found.len() }))
            .into()
    }
}

impl Gateway for ToolSearch {
    fn narrowed(&self, names: &[String]) -> Option<Arc<dyn Tool>> {
        // Without catalogues there are no parts to narrow to.
        if self.catalogues.is_empty() {
            return None;
        }
        let narrowed = |catalogue: &Arc<dyn ToolCatalogue>| match catalogue.calling_tool() {
            Some(_) => catalogue.narrow_to(names),
            None => Some(Arc::clone(catalogue)),
        };
        let catalogues = self
            .catalogues
            .iter()
            .map(narrowed)
            .collect::<Option<Vec<_>>>()?;
        Some(Arc::new(Self::with_deferred_tools(
            catalogues,
            self.deferred.clone(),
        )))
    }

    fn adapt_to_deferred(&self, deferred: &[Arc<dyn Tool>]) -> DeferralUpdate {
        if deferred.is_empty() && self.catalogues.is_empty() {
            return DeferralUpdate::Useless;
        }
        let shelf = (!deferred.is_empty()).then(|| Arc::new(DeferredTools::new(deferred)));
        DeferralUpdate::Replaced(Arc::new(Self::with_deferred_tools(
            self.catalogues.clone(),
            shelf,
        )))
    }

    fn narrowed_with(&self) -> Option<&str> {
        self.catalogues
            .iter()
            .find_map(|catalogue| catalogue.calling_tool())
    }
}

/// Renders the search result for the model: the best tools with their arguments, further tools by
/// name, and the reasons why sources could not be searched.
fn render_results(all: usize, found: &[SearchResult<'_>], failed: &[String]) -> String {
    let mut text = match found.len() {
        0 => format!("None of {all} tools fits."),
        some => format!("{some} of {all} tools fit:"),
    };
    let (best, further) = found.split_at(found.len().min(MAX_SHOWN));
    // Writing to a String cannot fail.
    for SearchResult {
        source: (catalogue, source),
        tool,
        ..
    } in best
    {
        let _ = write!(
            text,
            "\n\n{}\n{}",
            catalogue.heading(source),
            catalogue.describe(tool)
        );
    }
    if !further.is_empty() {
        let name = |result: &SearchResult<'_>| format!("{}/{}", result.source.1, result.tool.name);
        let names: Vec<_> = further.iter().take(MAX_NAMED).map(name).collect();
        let rest = further.len().saturating_sub(MAX_NAMED);
        let rest = if rest == 0 {
            String::new()
        } else {
            format!(" and {rest} more")
        };
        let _ = write!(text, "\n\nAlso: {}{rest}", sanitize(&names.join(", ")));
    }
    for reason in failed {
        let _ = write!(text, "\n[{reason}]");
    }
    text
}

#[cfg(test)]
mod tests;
