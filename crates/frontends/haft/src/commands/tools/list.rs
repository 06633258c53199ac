//! `haft tools list`: prints the tools, their sources, and their tokens.

use std::fmt::Write as _;

use haft_model::O200k;
use haft_project::external::{self, ExternalTool};
use haft_project::{KnowledgeKind, NamedItems};
use haft_tool::{Access, Registry, Tool};
use haft_types::{TokenCounter as _, ToolSet};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::commands::catalogue::{self, CatalogueContext};
use crate::commands::tools::ToolListArgs;
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::output::{self, TextTable};

/// The source of tools in the registry.
pub(super) const SOURCE: &str = "built-in";

/// A row of the list.
struct ToolRow<'a> {
    tool: &'a dyn Tool,
    offered: &'static str,
    tokens: u32,
}

/// Marks a tool that is sent with every request.
const OFFERED: &str = "yes";
/// Marks a tool that `tool_search` finds. It can be called, and costs no tokens until it is found.
const DEFERRED: &str = "deferred";

pub(super) async fn run(haft: &Haft, args: &ToolListArgs) -> anyhow::Result<()> {
    let registry = super::registry(haft.environment());
    if args.markdown {
        let mut offered = super::every_tool(haft.environment());
        offered.select(&[], &std::collections::BTreeMap::new())?;
        return output::print(&super::page::page(&offered, &registry));
    }
    let externals = Externals::find(haft, args).await?;
    let mut offered = registry.clone();
    let choice = &externals.place.settings.config.tools;
    let wanted = haft_engine::wanted_tools(&choice.offer, &externals.place.paths);
    offered
        .select(&wanted, &choice.profiles)
        .map_err(|error| usage_error(text!("tools-offer", error)))?;
    let rows: Vec<_> = registry
        .iter()
        .map(|tool| row(tool.as_ref(), &offered))
        .collect();
    let deferred = offered.deferred().count();
    if args.json {
        let built_in = rows.iter().map(as_json);
        return output::print_json(&built_in.chain(externals.json()).collect::<Vec<_>>().into());
    }
    let mut table = TextTable::new(&[
        text!("table-name"),
        text!("table-group"),
        text!("table-does"),
        text!("table-source"),
        text!("table-tokens"),
        text!("table-offered"),
    ]);
    for ToolRow {
        tool,
        offered,
        tokens,
    } in &rows
    {
        table.row(vec![
            tool.spec().name.clone(),
            tool.manual().group.name().to_owned(),
            output::localised(access_name(tool.access())),
            output::localised(SOURCE),
            tokens.to_string(),
            output::localised(offered),
        ]);
    }
    externals.rows().for_each(|row| table.row(row));
    let total: u32 = rows
        .iter()
        .filter(|row| row.offered == OFFERED)
        .map(|row| row.tokens)
        .sum();
    let count = rows.iter().filter(|row| row.offered == OFFERED).count();
    let mut told = String::new();
    if !externals.tools.is_empty() {
        let _ = writeln!(
            told,
            "{}",
            text!(
                "tools-external",
                count = externals.tools.len(),
                tokens = externals
                    .tools
                    .iter()
                    .map(|(_, tokens)| tokens)
                    .sum::<u32>()
            )
        );
    }
    if args.verbose {
        told.push_str(&catalogue::details(
            KnowledgeKind::Tools,
            &externals.found.shadowed,
            &externals.place,
        ));
    }
    let profiles = output::listed(&haft_tool::PROFILES);
    let offered = text!("tools-offered", count, total, deferred, profiles);
    output::print(&format!("{table}\n{offered}\n{told}"))
}

/// The user's own programs.
struct Externals {
    place: CatalogueContext,
    found: NamedItems<ExternalTool>,
    /// Each tool with the tokens of its known help.
    tools: Vec<(ExternalTool, u32)>,
}

impl Externals {
    async fn find(haft: &Haft, args: &ToolListArgs) -> anyhow::Result<Self> {
        let place = CatalogueContext::find(haft, &args.common)?;
        let mut problems = Vec::new();
        let found = external::load(&place.paths, &|name| place.is_built_in(name), &mut problems);
        catalogue::warn(&place, &problems);
        place
            .help
            .learn(&found.items, &CancellationToken::new())
            .await;
        let tokens =
            |tool: &ExternalTool| O200k.text(place.help.known(tool).text().unwrap_or_default());
        let tools = found
            .items
            .iter()
            .map(|tool| (tool.clone(), tokens(tool)))
            .collect();
        Ok(Self {
            place,
            found,
            tools,
        })
    }

    fn rows(&self) -> impl Iterator<Item = Vec<String>> {
        self.tools.iter().map(|(tool, tokens)| {
            let source = self.place.paths.shown(&tool.path);
            let own = ["external", access_name(Access::Execute), OFFERED].map(output::localised);
            let [group, access, offered] = own;
            vec![
                tool.name.clone(),
                group,
                access,
                source,
                tokens.to_string(),
                offered,
            ]
        })
    }

    fn json(&self) -> impl Iterator<Item = Value> {
        self.tools.iter().map(|(tool, tokens)| {
            json!({
                "name": tool.name,
                "group": "external",
                "access": access_name(Access::Execute),
                "source": tool.level.name(),
                "path": tool.path,
                "executable": tool.executable,
                "tokens": tokens,
                "offered": true,
                "aliases": [],
            })
        })
    }
}

fn row<'a>(tool: &'a dyn Tool, chosen: &Registry) -> ToolRow<'a> {
    let name = &tool.spec().name;
    let offered = if chosen.offers(name) {
        OFFERED
    } else if chosen
        .deferred()
        .any(|deferred| deferred.spec().name == *name)
    {
        DEFERRED
    } else {
        "no"
    };
    // A tool's description mentions other tools only if they were chosen, too.
    let spec = chosen
        .get(name)
        .map_or_else(|| tool.spec(), |chosen| chosen.spec());
    ToolRow {
        tool,
        offered,
        tokens: ToolSet::new(vec![spec.clone()], &O200k).tokens,
    }
}

fn as_json(row: &ToolRow<'_>) -> Value {
    let manual = row.tool.manual();
    json!({
        "name": row.tool.spec().name,
        "group": manual.group.name(),
        "access": access_name(row.tool.access()),
        "source": SOURCE,
        "tokens": row.tokens,
        "offered": row.offered == OFFERED,
        "deferred": row.offered == DEFERRED,
        "aliases": manual.aliases.iter().map(|alias| alias.name).collect::<Vec<_>>(),
    })
}

/// Returns the name of what calls with this access may do.
pub(super) fn access_name(access: Access) -> &'static str {
    match access {
        Access::Read => "reads",
        Access::State => "keeps",
        Access::Write => "writes",
        Access::Execute => "runs",
    }
}
