//! `haft tools`: describes the tools that the model can call, counts their calls, and manages the
//! user's own programs.

mod full_registry;
mod list;
mod page;
mod show;
mod stats;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use haft_agent::HostEnvironment;
use haft_project::KnowledgeKind;
use haft_tool::Registry;
use haft_tools::{LimitsConfig, Running};

use super::catalogue;
use crate::cli::options::{Common, JsonArgs};
use crate::commands::catalogue::CatalogueCommand;
use crate::commands::useful::ConversationArg;
use crate::exit::ProcessExit;
use crate::haft::Haft;
use crate::wiring;

pub(crate) use full_registry::build_full_registry;

#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ToolsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools, where they come from, and how many tokens each costs in every request.
    List(ToolListArgs),
    /// Show a tool as the model sees it: description, schema, example, aliases; the help of an
    /// external one.
    Show {
        /// The tool's name or one of its aliases.
        name: String,
        #[command(flatten)]
        output: JsonArgs,
    },
    /// Add a program of your own, which the model runs as a command; for all your projects with
    /// `--user`.
    Add {
        /// The program's file name, without an extension or with that of its language, such as
        /// `lint.py`.
        name: String,
        /// The program to copy; standard input when absent.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Add it for all your projects.
        #[arg(long)]
        user: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Remove a program from a folder of haft's.
    Remove {
        /// The program's file name.
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// Show the calls, errors and result tokens of each tool in a conversation.
    Stats {
        #[command(flatten)]
        of: ConversationArg,
        #[command(flatten)]
        output: JsonArgs,
    },
}

#[derive(Debug, Default, Args)]
pub(crate) struct ToolListArgs {
    /// Show shadowed entries (another of the same name takes precedence) and the folders searched.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The reference as the page of the documentation.
    #[arg(long, hide = true, conflicts_with = "json")]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) fn run(haft: &Haft, command: Option<ToolsCommand>) -> anyhow::Result<ProcessExit> {
    match command.unwrap_or_else(|| ToolsCommand::List(ToolListArgs::default())) {
        ToolsCommand::List(args) => wiring::build_runtime()?.block_on(list::run(haft, &args))?,
        ToolsCommand::Show { name, output } => {
            wiring::build_runtime()?.block_on(show::run(haft, &name, &output))?;
        }
        ToolsCommand::Add {
            name,
            file,
            user,
            common,
        } => {
            return catalogue::run_subcommand(
                haft,
                KnowledgeKind::Tools,
                Some(CatalogueCommand::Add {
                    name,
                    file,
                    user,
                    common,
                }),
            );
        }
        ToolsCommand::Remove { name, common } => {
            return catalogue::run_subcommand(
                haft,
                KnowledgeKind::Tools,
                Some(CatalogueCommand::Remove { name, common }),
            );
        }
        ToolsCommand::Stats { of, output } => {
            wiring::build_runtime()?.block_on(stats::run(haft, &of, &output))?;
        }
    }
    Ok(ProcessExit::Completed)
}

/// Returns the registry of the built-in tools, with English descriptions.
pub(crate) fn build_registry(environment: &HostEnvironment) -> Registry {
    let supervisor = Arc::new(environment.supervisor());
    let readers = wiring::build_readers(&supervisor);
    let running = Arc::new(Running::new(supervisor, LimitsConfig::default()).with_readers(readers));
    haft_engine::all_tools(&running, haft_types::PromptLanguage::English)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use haft_model::O200k;
    use haft_types::{ToolProtocol, ToolSet};

    use super::*;

    /// Checks the tools of every request in a project without agents, MCP servers and document
    /// collections.
    #[test]
    fn default_tool_set_is_small() {
        for protocol in [ToolProtocol::Native, ToolProtocol::Xml, ToolProtocol::React] {
            for interactive in [true, false] {
                let mut registry = build_registry(&HostEnvironment::default());
                registry.set_protocol(protocol);
                if !interactive {
                    registry.set_unusable("ask_followup_question");
                }
                registry.select_tools(&[], &BTreeMap::new()).unwrap();
                let offered = ToolSet::new(registry.specs(), &O200k);
                let names: Vec<_> = offered
                    .specs
                    .iter()
                    .map(|spec| spec.name.as_str())
                    .collect();
                assert!(offered.specs.len() <= 16, "{names:?}");
                assert!(
                    offered.tokens <= 4_200,
                    "{} tokens: {names:?}",
                    offered.tokens
                );
                assert_eq!(names.contains(&"ask_followup_question"), interactive);
                assert_eq!(names.contains(&"edit_file"), !protocol.is_text());
                assert_eq!(names.contains(&"replace_in_file"), protocol.is_text());
                assert_eq!(names.contains(&"attempt_completion"), protocol.is_text());
                for spec in &offered.specs {
                    for named in registry
                        .deferred_tools()
                        .map(|tool| tool.spec().name.as_str())
                    {
                        let told = spec.name != "tool_search"
                            && spec.description.contains(&format!("`{named}`"));
                        assert!(
                            !told,
                            "`{}` names `{named}`, which is not offered",
                            spec.name
                        );
                    }
                }
            }
        }
    }
}
