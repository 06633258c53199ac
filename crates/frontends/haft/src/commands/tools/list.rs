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

/// The source that the list shows for the tools of the registry.
pub(super) const BUILT_IN_SOURCE: &str = "built-in";

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
    let registry = super::build_registry(haft.environment());
    if args.markdown {
        let mut offered = super::build_full_registry(haft.environment());
        offered.select_tools(&[], &std::collections::BTreeMap::new())?;
        return output::print_text(&super::page::render_page(&offered, &registry));
    }
    let externals = ExternalTools::load(haft, args).await?;
    let mut offered = registry.clone();
    let choice = &externals.place.settings.config.tools;
    let wanted = haft_engine::resolve_wanted_tools(&choice.offer, &externals.place.paths);
    offered
        .select_tools(&wanted, &choice.profiles)
        .map_err(|error| usage_error(text!("tools-offer", error)))?;
    let rows: Vec<_> = registry
        .iter()
        .map(|tool| tool_row(tool.as_ref(), &offered))
        .collect();
    let deferred = offered.deferred_tools().count();
    if args.json {
        let built_in = rows.iter().map(row_to_json);
        return output::print_json(
            &built_in
                .chain(externals.json_rows())
                .collect::<Vec<_>>()
                .into(),
        );
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
        table.add_row(vec![
            tool.spec().name.clone(),
            tool.manual().group.name().to_owned(),
            output::localize_text(access_verb(tool.access())),
            output::localize_text(BUILT_IN_SOURCE),
            tokens.to_string(),
            output::localize_text(offered),
        ]);
    }
    externals.table_rows().for_each(|row| table.add_row(row));
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
        told.push_str(&catalogue::describe_search(
            KnowledgeKind::Tools,
            &externals.found.shadowed,
            &externals.place,
        ));
    }
    let profiles = output::join_names(&haft_tool::BUILT_IN_PROFILES);
    let offered = text!("tools-offered", count, total, deferred, profiles);
    output::print_text(&format!("{table}\n{offered}\n{told}"))
}

/// The user's own programs that the model can call as tools.
struct ExternalTools {
    place: CatalogueContext,
    found: NamedItems<ExternalTool>,
    /// Each tool with the token count of its known help text.
    tools: Vec<(ExternalTool, u32)>,
}

impl ExternalTools {
    async fn load(haft: &Haft, args: &ToolListArgs) -> anyhow::Result<Self> {
        let place = CatalogueContext::load(haft, &args.common)?;
        let mut problems = Vec::new();
        let found =
            external::load_tools(&place.paths, &|name| place.is_built_in(name), &mut problems);
        catalogue::report_problems(&place, &problems);
        place
            .help
            .query_tools(&found.items, &CancellationToken::new())
            .await;
        let tools = found
            .items
            .iter()
            .map(|tool| {
                let help = place.help.cached_help(tool);
                let tokens = O200k.count_text(help.text().unwrap_or_default());
                (tool.clone(), tokens)
            })
            .collect();
        Ok(Self {
            place,
            found,
            tools,
        })
    }

    fn table_rows(&self) -> impl Iterator<Item = Vec<String>> {
        self.tools.iter().map(|(tool, tokens)| {
            let source = self.place.paths.display_path(&tool.path);
            let own =
                ["external", access_verb(Access::Execute), OFFERED].map(output::localize_text);
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

    fn json_rows(&self) -> impl Iterator<Item = Value> {
        self.tools.iter().map(|(tool, tokens)| {
            json!({
                "name": tool.name,
                "group": "external",
                "access": access_verb(Access::Execute),
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

fn tool_row<'a>(tool: &'a dyn Tool, chosen: &Registry) -> ToolRow<'a> {
    let name = &tool.spec().name;
    let offered = if chosen.offers_tool(name) {
        OFFERED
    } else if chosen
        .deferred_tools()
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

fn row_to_json(row: &ToolRow<'_>) -> Value {
    let manual = row.tool.manual();
    json!({
        "name": row.tool.spec().name,
        "group": manual.group.name(),
        "access": access_verb(row.tool.access()),
        "source": BUILT_IN_SOURCE,
        "tokens": row.tokens,
        "offered": row.offered == OFFERED,
        "deferred": row.offered == DEFERRED,
        "aliases": manual.aliases.iter().map(|alias| alias.name).collect::<Vec<_>>(),
    })
}

/// Returns the verb for the effect of calls with this access, such as `reads`.
pub(super) fn access_verb(access: Access) -> &'static str {
    match access {
        Access::Read => "reads",
        Access::State => "keeps",
        Access::Write => "writes",
        Access::Execute => "runs",
    }
}
