//! The commands of a project that haft would run once the project is trusted, for people to read
//! before they decide.

use std::path::Path;

use serde_json::Value;

use crate::Footprint;
use crate::compat;
use crate::footprint::{load_declared_hooks, read_declared_servers};
use crate::knowledge::KnowledgeKind;

/// A command that haft would run once the project is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectCommand {
    pub kind: ProjectCommandKind,
    /// The point of a hook, or the name of a server; empty for a program.
    pub name: String,
    /// The command line. For a server that is reached by its address, the address.
    pub line: String,
    /// The file that declares the command, relative to the project's root; empty for a program.
    pub file: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectCommandKind {
    Hook,
    /// An MCP server.
    Server,
    /// A program in a folder of external tools. haft asks it for its help, and the model may call
    /// it.
    Program,
}

/// Lists the commands that haft would run if the project were trusted.
pub fn list_project_commands(root: &Path) -> Vec<ProjectCommand> {
    let hooks = load_declared_hooks(root)
        .into_iter()
        .map(|hook| ProjectCommand {
            kind: ProjectCommandKind::Hook,
            name: hook.point.name().to_owned(),
            file: hook
                .path
                .strip_prefix(root)
                .unwrap_or(&hook.path)
                .display()
                .to_string(),
            line: hook.command,
        });
    let servers = read_declared_servers(root)
        .into_iter()
        .map(|(name, server)| ProjectCommand {
            kind: ProjectCommandKind::Server,
            name,
            line: server_line(&server),
            file: ".mcp.json".to_owned(),
        });
    let own = format!(".haft/{}", KnowledgeKind::Tools.folder_name());
    let folders: Vec<_> = compat::project_folders(KnowledgeKind::Tools)
        .map(str::to_owned)
        .chain([own])
        .map(|folder| format!("{folder}/"))
        .collect();
    let footprint = Footprint::read_project(root);
    let programs = footprint
        .files()
        .keys()
        .filter(|file| folders.iter().any(|folder| file.starts_with(folder)))
        .map(|file| ProjectCommand {
            kind: ProjectCommandKind::Program,
            name: String::new(),
            line: file.clone(),
            file: String::new(),
        });
    hooks.chain(servers).chain(programs).collect()
}

/// Returns the command line of a declared server, or its address.
fn server_line(server: &Value) -> String {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let arguments = server["args"].as_array().into_iter().flatten();
    let words: Vec<_> = std::iter::once(&server["command"])
        .chain(arguments)
        .filter_map(text)
        .collect();
    if words.is_empty() {
        text(&server["url"]).unwrap_or_else(|| server.to_string())
    } else {
        words.join(" ")
    }
}
