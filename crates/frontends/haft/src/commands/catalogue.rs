//! `haft rules`, `haft agents`, `haft skills`, `haft commands`, and the external tools of `haft
//! tools`: one implementation for all kinds of project knowledge.

mod change;
mod items;

use std::fmt::Write as _;
use std::path::PathBuf;

use self::items::{CatalogueItem, CatalogueListing};
use clap::{Args, Subcommand};
use haft_agent::{
    OfferedArgument, OfferedPrompt, Project, build_help_settings, find_knowledge_and_trust,
};
use haft_engine::ToolHelp;
use haft_project::external::HelpCache;
use haft_project::{FileProblem, KnowledgeKind, KnowledgePaths, Shadowed, ShadowedBy, TrustState};
use serde_json::{Value, json};

use crate::cli::options::{Common, JsonArgs};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::{Haft, Settings};
use crate::output::{self, TextTable};

#[derive(Debug, Args)]
pub(crate) struct CatalogueArgs {
    /// Lists when absent.
    #[command(subcommand)]
    pub(crate) command: Option<CatalogueCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CatalogueCommand {
    /// List all entries and where they come from.
    List {
        /// Show shadowed entries (another of the same name takes precedence) and the folders
        /// searched.
        #[arg(short, long)]
        verbose: bool,
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Show an entry.
    Show {
        /// The entry's name.
        name: String,
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Add an entry to this project, or for all your projects with `--user`.
    Add {
        /// The entry's name.
        name: String,
        /// A Markdown file to copy, or the folder of a skill; standard input when absent.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Add it for all your projects.
        #[arg(long)]
        user: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Remove an entry from a folder of haft's.
    Remove {
        /// The entry's name.
        name: String,
        #[command(flatten)]
        common: Common,
    },
}

/// The folders, the project and the configuration that a command works with.
pub(super) struct CatalogueContext {
    pub(super) settings: Settings,
    project: Project,
    pub(super) paths: KnowledgePaths,
    trust_state: TrustState,
    /// The help texts of external tools.
    pub(super) help: ToolHelp,
    /// The names of built-in tools.
    built_in: Vec<String>,
}

impl CatalogueContext {
    pub(super) fn load(haft: &Haft, common: &Common) -> anyhow::Result<Self> {
        Self::with_settings(haft, haft.load(common)?)
    }

    /// Like [`Self::load`], but takes a configuration that is already loaded.
    pub(super) fn with_settings(haft: &Haft, settings: Settings) -> anyhow::Result<Self> {
        let project = haft.project(None)?;
        let (paths, trust_state) = find_knowledge_and_trust(&settings.places, &project)?;
        let asking = build_help_settings(&settings.places, &settings.config, &project);
        let help = ToolHelp::new(
            HelpCache::in_folder(settings.places.tool_help_folder()),
            asking,
        );
        let built_in = super::tools::build_registry(haft.environment())
            .iter()
            .map(|tool| tool.spec().name.clone())
            .collect();
        Ok(Self {
            settings,
            project,
            paths,
            trust_state,
            help,
            built_in,
        })
    }

    pub(super) fn is_built_in(&self, name: &str) -> bool {
        self.built_in.iter().any(|one| one == name)
    }

    /// Returns the name of the model for an agent whose file names the model `named`. If that is
    /// another model, also returns the reason.
    pub(super) fn agent_model(&self, named: Option<&str>) -> (Option<String>, Option<String>) {
        haft_agent::resolve_agent_model(self.settings.environment(), &self.settings.config, named)
    }

    /// Returns the known prompts of MCP servers, which are listed as commands.
    fn server_prompts(&self, kind: KnowledgeKind) -> anyhow::Result<Vec<OfferedPrompt>> {
        match kind {
            KnowledgeKind::Commands => {
                Ok(self.settings.open_prompt_sources(&self.project)?.prompts())
            }
            KnowledgeKind::Rules
            | KnowledgeKind::Agents
            | KnowledgeKind::Skills
            | KnowledgeKind::Tools
            | KnowledgeKind::Workflows => Ok(Vec::new()),
        }
    }
}

pub(crate) fn run_subcommand(
    haft: &Haft,
    kind: KnowledgeKind,
    command: Option<CatalogueCommand>,
) -> anyhow::Result<ProcessExit> {
    let all = CatalogueCommand::List {
        verbose: false,
        output: JsonArgs::default(),
    };
    match command.unwrap_or(all) {
        CatalogueCommand::List { verbose, output } => {
            list_items(
                kind,
                verbose,
                output.json,
                &CatalogueContext::load(haft, &output.common)?,
            )?;
        }
        CatalogueCommand::Show { name, output } => {
            show_item(
                kind,
                &name,
                output.json,
                &CatalogueContext::load(haft, &output.common)?,
            )?;
        }
        CatalogueCommand::Add {
            name,
            file,
            user,
            common,
        } => {
            change::add_item(
                kind,
                &name,
                file.as_deref(),
                user,
                &CatalogueContext::load(haft, &common)?,
            )?;
        }
        CatalogueCommand::Remove { name, common } => {
            change::remove_item(kind, &name, &CatalogueContext::load(haft, &common)?)?;
        }
    }
    Ok(ProcessExit::Completed)
}

/// Returns the name and the description of each item of the kind `kind`. Returns nothing if the
/// configuration cannot be loaded.
pub(super) fn list_names(haft: &Haft, kind: KnowledgeKind) -> Vec<(String, String)> {
    let Ok(place) = CatalogueContext::load(haft, &Common::default()) else {
        return Vec::new();
    };
    let found = items::load_items(kind, &place.paths, &place);
    found
        .list
        .iter()
        .map(|item| (item.name.clone(), item.about.clone()))
        .collect()
}

/// Reports problems with files, and warns if the project's own files are left out because the
/// project is not trusted.
pub(super) fn report_problems(place: &CatalogueContext, problems: &[FileProblem]) {
    if !place.trust_state.is_trusted() {
        output::print_to_stderr(&text!(
            "catalogue-untrusted",
            project = place.project.root.display()
        ));
    }
    for problem in problems {
        output::print_to_stderr(&output::localize_text(format_args!("warning: {problem}")));
    }
}

fn list_items(
    kind: KnowledgeKind,
    verbose: bool,
    json: bool,
    place: &CatalogueContext,
) -> anyhow::Result<()> {
    let found = items::load_items(kind, &place.paths, place);
    let prompts = place.server_prompts(kind)?;
    report_problems(place, &found.problems);
    if json {
        return output::print_json(&json!({
            kind.folder_name(): found.list.iter().map(CatalogueItem::to_json).chain(prompts.iter().map(prompt_to_json)).collect::<Vec<_>>(),
            "shadowed": found.shadowed.iter().map(shadowed_item_to_json).collect::<Vec<_>>(),
            "problems": found.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }));
    }
    let mut text = String::new();
    if found.list.is_empty() && prompts.is_empty() {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{}",
            text!("catalogue-empty", folder = kind.folder_name())
        );
    } else {
        let of_agents = kind == KnowledgeKind::Agents;
        let model = of_agents.then_some(text!("table-model"));
        let headings: Vec<_> = [text!("table-name"), description_heading(kind)]
            .into_iter()
            .chain(model)
            .chain([text!("table-from"), text!("table-file")])
            .collect();
        let mut table = TextTable::new(&headings);
        for item in &found.list {
            let model = of_agents.then(|| item.describe_model());
            let from = [
                output::localize_text(item.level.name()),
                place.paths.display_path(&item.path),
            ];
            table.add_row(
                [item.name.clone(), item.about.clone()]
                    .into_iter()
                    .chain(model)
                    .chain(from)
                    .collect(),
            );
        }
        for prompt in &prompts {
            let server = output::localize_text(format_args!("server {}", prompt.server));
            table.add_row(vec![
                prompt.name.clone(),
                prompt.description.clone(),
                "mcp".to_owned(),
                server,
            ]);
        }
        text.push_str(&table.to_string());
    }
    if verbose {
        text.push_str(&describe_search(kind, &found.shadowed, place));
    }
    output::print_text(&text)
}

fn shadowed_item_to_json(one: &Shadowed) -> Value {
    let by = match &one.by {
        ShadowedBy::File(path) => json!(path),
        ShadowedBy::BuiltIn => json!("built-in"),
    };
    json!({"name": one.name, "path": one.path, "by": by})
}

/// Describes which files are shadowed by others, and which folders were searched.
pub(super) fn describe_search(
    kind: KnowledgeKind,
    shadowed: &[Shadowed],
    place: &CatalogueContext,
) -> String {
    let mut text = String::new();
    for one in shadowed {
        let by = match &one.by {
            ShadowedBy::File(path) => place.paths.display_path(path),
            ShadowedBy::BuiltIn => text!("catalogue-built-in").to_owned(),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{}",
            text!(
                "catalogue-unused",
                path = place.paths.display_path(&one.path),
                name = one.name,
                by
            )
        );
    }
    text.extend([text!("catalogue-folders"), "\n"]);
    for folder in place.paths.folders_of_kind(kind) {
        let path = place.paths.display_path(&folder.path);
        let path = if folder.path.is_dir() {
            path
        } else {
            text!("catalogue-folder-missing", path)
        };
        let _ = writeln!(text, "  {path}");
    }
    text
}

fn description_heading(kind: KnowledgeKind) -> &'static str {
    match kind {
        KnowledgeKind::Rules => text!("table-sent"),
        KnowledgeKind::Agents
        | KnowledgeKind::Skills
        | KnowledgeKind::Commands
        | KnowledgeKind::Tools
        | KnowledgeKind::Workflows => text!("table-description"),
    }
}

/// Converts a prompt of an MCP server to JSON, in the form of a command.
fn prompt_to_json(prompt: &OfferedPrompt) -> Value {
    let OfferedPrompt {
        name,
        server,
        description,
        ..
    } = prompt;
    json!({"name": name, "from": "mcp", "server": server, "description": description, "argument_hint": prompt.argument_hint()})
}

/// Describes the source of a prompt's text and the prompt's arguments, one line each.
fn describe_prompt(prompt: &OfferedPrompt) -> String {
    let line = |argument: &OfferedArgument| {
        let needed = if argument.required {
            text!("mcp-prompt-needed")
        } else {
            text!("mcp-prompt-optional")
        };
        format!("{} ({needed}): {}", argument.name, argument.description)
    };
    let lines: Vec<_> = prompt.arguments.iter().map(line).collect();
    let takes = if lines.is_empty() {
        text!("mcp-prompt-no-arguments").to_owned()
    } else {
        lines.join("\n")
    };
    text!("mcp-prompt-about", server = prompt.server, takes)
}

pub(super) fn show_item(
    kind: KnowledgeKind,
    name: &str,
    json: bool,
    place: &CatalogueContext,
) -> anyhow::Result<()> {
    if let Some(prompt) = place
        .server_prompts(kind)?
        .iter()
        .find(|prompt| prompt.name == name)
    {
        let mut value = prompt_to_json(prompt);
        let about = describe_prompt(prompt);
        value["text"] = json!(about);
        let text = format!(
            "{name} {}\n{}\n\n{about}\n",
            prompt.argument_hint(),
            prompt.description
        );
        return if json {
            output::print_json(&value)
        } else {
            output::print_text(&text)
        };
    }
    let found = items::load_items(kind, &place.paths, place);
    let item = found.find_item(kind, name)?;
    if json {
        let mut value = item.to_json();
        value["text"] = json!(item.text);
        return output::print_json(&value);
    }
    output::print_text(&format!(
        "{} ({}, {})\n{}\n\n{}\n",
        item.name,
        output::localize_text(item.level.name()),
        place.paths.display_path(&item.path),
        item.about,
        item.text
    ))
}

impl CatalogueListing {
    /// Returns the item with this name. The error describes the problem with the item's file, or
    /// lists the known names.
    fn find_item(&self, kind: KnowledgeKind, name: &str) -> anyhow::Result<&CatalogueItem> {
        self.list
            .iter()
            .find(|item| item.name == name)
            .ok_or_else(|| {
                let is_about_item = |problem: &&FileProblem| {
                    let skill = problem
                        .path
                        .parent()
                        .filter(|_| kind == KnowledgeKind::Skills);
                    let stem = skill
                        .and_then(std::path::Path::file_name)
                        .or_else(|| problem.path.file_stem());
                    stem.is_some_and(|stem| stem == name)
                };
                if let Some(problem) = self.problems.iter().find(is_about_item) {
                    return usage_error(format!("`{name}` cannot be used: {problem}"));
                }
                let names: Vec<_> = self.list.iter().map(|item| item.name.as_str()).collect();
                let there = if names.is_empty() {
                    text!("catalogue-there-are-none").to_owned()
                } else {
                    text!("catalogue-there-are", names = output::join_names(&names))
                };
                usage_error(text!(
                    "catalogue-unknown",
                    name,
                    folder = kind.folder_name(),
                    there
                ))
            })
    }
}
