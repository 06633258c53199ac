//! `haft tools list`.

use haft_model::O200k;
use haft_tool::{Access, Registry, Source, Tool};
use haft_types::ToolSet;
use serde_json::{Value, json};

use crate::cli::ToolListArgs;
use crate::exit::mistake;
use crate::output::{self, Table};

/// A tool of the list.
struct Row<'a> {
    tool: &'a dyn Tool,
    source: &'a str,
    offered: bool,
    tokens: u32,
}

pub(super) fn run(args: &ToolListArgs) -> anyhow::Result<()> {
    let registry = super::registry()?;
    if args.markdown {
        return output::print(&super::page::page(&registry));
    }
    let (_, loaded) = super::super::configuration(&args.common)?;
    let mut offered = registry.clone();
    let choice = &loaded.config.tools;
    offered.select(&choice.offer, &choice.profiles).map_err(|error| mistake(format!("`tools.offer`: {error}")))?;
    let rows: Vec<_> = registry.iter().map(|tool| row(tool.as_ref(), &registry, &offered)).collect();
    if args.json {
        return output::print_json(&rows.iter().map(as_json).collect::<Vec<_>>().into());
    }
    let mut table = Table::new(&["NAME", "GROUP", "DOES", "SOURCE", "TOKENS", "OFFERED"]);
    for Row { tool, source, offered, tokens } in &rows {
        table.row(vec![
            tool.spec().name.clone(),
            tool.manual().group.name().to_owned(),
            access_name(tool.access()).to_owned(),
            (*source).to_owned(),
            tokens.to_string(),
            if *offered { "yes" } else { "no" }.to_owned(),
        ]);
    }
    let total: u32 = rows.iter().filter(|row| row.offered).map(|row| row.tokens).sum();
    let count = rows.iter().filter(|row| row.offered).count();
    output::print(&format!(
        "{table}\n{count} tools are offered: {total} tokens of every request. `[tools] offer` or `--allowed-tools` chooses \
         others, by name, group, or profile ({}).\n",
        haft_tool::PROFILES.join(", ")
    ))
}

fn row<'a>(tool: &'a dyn Tool, registry: &'a Registry, offered: &Registry) -> Row<'a> {
    let name = &tool.spec().name;
    Row {
        tool,
        source: registry.source(name).map_or("", Source::name),
        offered: offered.get(name).is_some(),
        tokens: ToolSet::new(vec![tool.spec().clone()], &O200k).tokens,
    }
}

fn as_json(row: &Row<'_>) -> Value {
    let manual = row.tool.manual();
    json!({
        "name": row.tool.spec().name,
        "group": manual.group.name(),
        "access": access_name(row.tool.access()),
        "source": row.source,
        "tokens": row.tokens,
        "offered": row.offered,
        "aliases": manual.aliases.iter().map(|alias| alias.name).collect::<Vec<_>>(),
    })
}

/// What a call may do, in one word.
pub(super) fn access_name(access: Access) -> &'static str {
    match access {
        Access::Read => "reads",
        Access::State => "keeps",
        Access::Write => "writes",
        Access::Execute => "runs",
    }
}
