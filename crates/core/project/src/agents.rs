//! Loads agents, which define roles for sub-agents.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::file_reading::{self, ReadBounds};
use crate::front_matter::{self, WordList};
use crate::knowledge::{KnowledgeKind, KnowledgePaths, Level};
use crate::named::{NamedItems, named};
use crate::problem::FileProblem;

/// The tools that an agent may use: all or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentTools {
    /// All tools that are offered.
    All,
    /// Only the tools with these names. An empty list allows no tools.
    Only(Vec<String>),
}

/// The definition of an agent, loaded from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentDefinition {
    pub name: String,
    /// A description of the agent's purpose.
    pub description: String,
    pub tools: AgentTools,
    /// The model that the agent uses, or `None` to use the model of the parent agent.
    pub model: Option<String>,
    /// True if the agent's prompt contains the project's rules.
    pub include_rules: bool,
    /// True if the agent changes files in a git worktree of its own.
    pub worktree: bool,
    /// True if the agent uses the model, tools, system prompt and documents of the agent that
    /// starts it, byte for byte, so that it reads them from the provider's cache.
    pub fork: bool,
    /// The system prompt that replaces the built-in one; `None` keeps the built-in prompt.
    pub system_prompt: Option<String>,
    /// The text that defines the role in the system message.
    pub role: String,
    /// The path of the agent's file.
    pub path: PathBuf,
    pub level: Level,
}

named!(AgentDefinition);

#[derive(Default, Deserialize)]
#[serde(default)]
struct AgentFrontMatter {
    name: Option<String>,
    description: Option<String>,
    tools: Option<WordList>,
    model: Option<String>,
    #[serde(alias = "include-rules")]
    include_rules: bool,
    worktree: bool,
    fork: bool,
    system_prompt: Option<String>,
    system_prompt_file: Option<PathBuf>,
}

/// Loads all agent files. An unusable file is reported in `problems` and skipped.
pub fn load_agents(
    knowledge: &KnowledgePaths,
    problems: &mut Vec<FileProblem>,
) -> NamedItems<AgentDefinition> {
    load_agents_after(&[], knowledge, problems)
}

/// Loads all agent files. The agents in `preset` come first, and take precedence over agent files
/// with the same names.
pub fn load_agents_after(
    preset: &[AgentDefinition],
    knowledge: &KnowledgePaths,
    problems: &mut Vec<FileProblem>,
) -> NamedItems<AgentDefinition> {
    let mut found = NamedItems::default();
    preset.iter().cloned().for_each(|agent| found.add(agent));
    for folder in knowledge.folders_of_kind(KnowledgeKind::Agents) {
        for path in file_reading::list_markdown_files(&folder.path) {
            let Some(read) = file_reading::read_file(knowledge, &path, problems) else {
                continue;
            };
            match parse_agent(knowledge, &path, folder.level, &read, problems) {
                Ok(agent) => found.add(agent),
                Err(Some(what)) => {
                    problems.push(FileProblem::new(&path, format!("{what}; it is skipped")));
                }
                // The problem with the front matter has already been reported.
                Err(None) => {}
            }
        }
    }
    found.sort_by_name()
}

fn parse_agent(
    knowledge: &KnowledgePaths,
    path: &Path,
    level: Level,
    read: &file_reading::FileText,
    problems: &mut Vec<FileProblem>,
) -> Result<AgentDefinition, Option<String>> {
    let parted = front_matter::split_file::<AgentFrontMatter>(path, &read.text, problems);
    if parted.broken {
        return Err(None);
    }
    let head = parted.head;
    let require_text = |value: Option<String>, key: &str| {
        let value = value
            .map(|value| value.trim().to_owned())
            .filter(|value| !value.is_empty());
        value.ok_or_else(|| Some(format!("the front matter gives no `{key}`")))
    };
    let name = require_text(head.name, "name")?;
    if name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/') {
        return Err(Some(format!(
            "`{name}` is not a name: use letters, digits, `-` and `_`"
        )));
    }
    let system_prompt = match (head.system_prompt, head.system_prompt_file) {
        (Some(_), Some(_)) => {
            return Err(Some(
                "give `system_prompt` or `system_prompt_file`, not both".to_owned(),
            ));
        }
        (prompt, None) => prompt,
        (None, Some(file)) => {
            let file = path.parent().unwrap_or(Path::new("/")).join(file);
            let before = problems.len();
            let within = ReadBounds::for_references_in(knowledge, &read.real);
            let Some(read) = file_reading::read_named_file(knowledge, &file, within, problems)
            else {
                let why = problems
                    .drain(before..)
                    .next()
                    .map(|problem| problem.to_string())
                    .unwrap_or_default();
                return Err(Some(format!(
                    "its `system_prompt_file` cannot be used: {why}"
                )));
            };
            Some(read.text)
        }
    };
    let tools = match head.tools {
        None => AgentTools::All,
        Some(WordList(names)) if names.iter().any(|name| name == "*") => AgentTools::All,
        Some(WordList(names)) => AgentTools::Only(names),
    };
    let model = head
        .model
        .filter(|model| !model.trim().is_empty() && model != "inherit");
    if head.fork {
        let other = match (&model, &system_prompt) {
            (Some(model), _) => Some(format!("`model: {model}`")),
            (None, Some(_)) => Some("a system prompt of its own".to_owned()),
            (None, None) => None,
        };
        if let Some(other) = other {
            return Err(Some(format!(
                "`fork: true` excludes {other}, because a fork has the model and the system prompt of the agent that starts it (remove one of them)"
            )));
        }
    }
    Ok(AgentDefinition {
        name,
        description: require_text(head.description, "description")?,
        tools,
        model,
        include_rules: head.include_rules,
        worktree: head.worktree,
        fork: head.fork,
        system_prompt,
        role: parted.body.trim().to_owned(),
        path: path.to_owned(),
        level,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn project_agent_reads_its_prompt_only_from_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let agents = top.join("project/.haft/agents");
        fs::create_dir_all(&agents).unwrap();
        fs::create_dir_all(top.join("user/agents")).unwrap();
        fs::write(top.join("secret.md"), "the secret").unwrap();
        fs::write(agents.join("prompt.txt"), "the prompt").unwrap();
        std::os::unix::fs::symlink(top.join("secret.md"), agents.join("link.txt")).unwrap();
        let knowledge = KnowledgePaths {
            root: top.join("project"),
            cwd: top.join("project"),
            trusted: true,
            user: top.join("user"),
            home: None,
        };
        let prompt_of = |folder: &Path, named: &str| {
            let text =
                format!("---\nname: a\ndescription: d\nsystem_prompt_file: {named}\n---\nRole.");
            fs::write(folder.join("a.md"), text).unwrap();
            let mut problems = Vec::new();
            let found = load_agents(&knowledge, &mut problems);
            let prompt = found
                .items
                .first()
                .and_then(|agent| agent.system_prompt.clone());
            fs::remove_file(folder.join("a.md")).unwrap();
            (
                prompt,
                problems.iter().map(ToString::to_string).collect::<String>(),
            )
        };
        let absolute = top.join("secret.md").display().to_string();
        for named in [
            absolute.as_str(),
            "../../../secret.md",
            "link.txt",
            "/proc/self/environ",
            "/etc/passwd",
        ] {
            let (prompt, problems) = prompt_of(&agents, named);
            assert_eq!(prompt, None, "{named}");
            assert!(
                problems.contains("leads out of the project"),
                "{named}: {problems}"
            );
        }
        assert_eq!(
            prompt_of(&agents, "prompt.txt").0.as_deref(),
            Some("the prompt")
        );
        // The user's own agent may name any file that the user can read.
        assert_eq!(
            prompt_of(&top.join("user/agents"), &absolute).0.as_deref(),
            Some("the secret")
        );
    }
}
