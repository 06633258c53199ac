//! `haft tools show`: prints a tool as the model sees it.

use std::fmt::Write as _;

use haft_project::{KnowledgeKind, external};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::list::{BUILT_IN_SOURCE, access_verb};
use crate::cli::options::JsonArgs;
use crate::commands::catalogue::{self, CatalogueContext};
use crate::exit::usage_error;
use crate::haft::{Haft, Settings};
use crate::output;

/// Shows an external tool. Runs the tool to get its help text, because the user waits for the
/// output.
async fn show_external_tool(
    haft: &Haft,
    settings: Settings,
    name: &str,
    as_json: bool,
) -> anyhow::Result<()> {
    let place = CatalogueContext::with_settings(haft, settings)?;
    let found = external::load_tools(
        &place.paths,
        &|name| place.is_built_in(name),
        &mut Vec::new(),
    );
    let tool = found.get(name);
    let tool = tool.ok_or_else(|| usage_error(text!("tools-unknown", name)))?;
    place.help.query_tool(tool, &CancellationToken::new()).await;
    catalogue::show_item(KnowledgeKind::Tools, name, as_json, &place)
}

pub(super) async fn run(haft: &Haft, name: &str, args: &JsonArgs) -> anyhow::Result<()> {
    let settings = haft.load(&args.common)?;
    let registry = super::build_full_registry(haft.environment());
    let Some(found) = registry.resolve(name) else {
        return show_external_tool(haft, settings, name, args.json).await;
    };
    let tool = found.tool;
    let spec = tool.spec();
    let manual = tool.manual();
    let aliases: Vec<_> = manual.aliases.iter().map(|alias| alias.name).collect();
    let example: Value = serde_json::from_str(manual.example).unwrap_or_default();
    let cases: Vec<_> = registry
        .case_documents()
        .filter(|case| case.tools.contains(&spec.name))
        .collect();
    if args.json {
        return output::print_json(&json!({
            "name": spec.name,
            "group": manual.group.name(),
            "access": access_verb(tool.access()),
            "source": BUILT_IN_SOURCE,
            "aliases": aliases,
            "description": spec.description,
            "parameters": spec.parameters,
            "example": example,
            "guideline": manual.guideline,
            "cases": cases.iter().map(|case| case.name.as_str()).collect::<Vec<_>>(),
        }));
    }
    let [access, source] = [access_verb(tool.access()), BUILT_IN_SOURCE].map(output::localize_text);
    let mut text = format!(
        "{} ({}, {access}, {source})\n",
        spec.name,
        manual.group.name()
    );
    // Writing to a String cannot fail.
    if !aliases.is_empty() {
        let _ = writeln!(
            text,
            "{}",
            text!("tools-aliases", aliases = output::join_names(&aliases))
        );
    }
    let _ = writeln!(
        text,
        "\n{}\n\n{}\n{:#}",
        spec.description,
        text!("tools-parameters"),
        spec.parameters
    );
    if !example.is_null() {
        let _ = writeln!(text, "\n{}:\n{example:#}", manual.example_of);
    }
    if !manual.guideline.is_empty() {
        let _ = writeln!(text, "\n{}", manual.guideline);
    }
    for case in cases {
        let _ = writeln!(text, "\n{case}");
    }
    output::print_text(&text)
}
