//! Agents: roles that can be given to a sub-agent (SPEC 13.3).

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::file;
use crate::front_matter::{self, Words};
use crate::ground::{Ground, Kind, Level};
use crate::named::{Found, named};
use crate::problem::Problem;

/// Which tools an agent is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentTools {
    /// Every tool.
    All,
    /// These; none when empty.
    Only(Vec<String>),
}

/// A role for a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// What it is good for.
    pub description: String,
    /// Which tools it is given.
    pub tools: AgentTools,
    /// Its model; that of whoever starts it when absent.
    pub model: Option<String>,
    /// Whether it is told the project's rules.
    pub include_rules: bool,
    /// Whether it changes files in a git worktree of its own.
    pub worktree: bool,
    /// A system prompt in place of the usual one.
    pub system_prompt: Option<String>,
    /// Who it is told to be.
    pub role: String,
    /// Where it lies.
    pub path: PathBuf,
    /// Whose it is.
    pub level: Level,
}

named!(Agent);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    name: Option<String>,
    description: Option<String>,
    tools: Option<Words>,
    model: Option<String>,
    #[serde(alias = "include-rules")]
    include_rules: bool,
    worktree: bool,
    system_prompt: Option<String>,
    system_prompt_file: Option<PathBuf>,
}

/// Reads the agents; a file that cannot be used is named and skipped.
pub fn load(ground: &Ground, problems: &mut Vec<Problem>) -> Found<Agent> {
    let mut found = Found::default();
    for folder in ground.folders(Kind::Agents) {
        for path in file::markdown(&folder.path) {
            let Some(read) = file::read(ground, &path, problems) else { continue };
            match agent(ground, &path, folder.level, &read.text, problems) {
                Ok(agent) => found.add(agent),
                Err(Some(what)) => problems.push(Problem::new(&path, format!("{what}; it is skipped"))),
                // The front matter could not be read, which is told already.
                Err(None) => {}
            }
        }
    }
    found.sorted()
}

fn agent(
    ground: &Ground,
    path: &Path,
    level: Level,
    text: &str,
    problems: &mut Vec<Problem>,
) -> Result<Agent, Option<String>> {
    let parted = front_matter::part::<Head>(path, text, problems);
    if parted.broken {
        return Err(None);
    }
    let head = parted.head;
    let given = |value: Option<String>, key: &str| {
        let value = value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        value.ok_or_else(|| Some(format!("the front matter gives no `{key}`")))
    };
    let name = given(head.name, "name")?;
    if name.contains(|letter: char| letter.is_whitespace() || letter.is_control() || letter == '/') {
        return Err(Some(format!("`{name}` is not a name: use letters, digits, `-` and `_`")));
    }
    let system_prompt = match (head.system_prompt, head.system_prompt_file) {
        (Some(_), Some(_)) => return Err(Some("give `system_prompt` or `system_prompt_file`, not both".to_owned())),
        (prompt, None) => prompt,
        (None, Some(file)) => {
            let file = path.parent().unwrap_or(Path::new("/")).join(file);
            let before = problems.len();
            let Some(read) = file::read(ground, &file, problems) else {
                let why = problems.drain(before..).next().map(|problem| problem.to_string()).unwrap_or_default();
                return Err(Some(format!("its `system_prompt_file` cannot be used: {why}")));
            };
            Some(read.text)
        }
    };
    let tools = match head.tools {
        None => AgentTools::All,
        Some(Words(words)) if words.iter().any(|word| word == "*") => AgentTools::All,
        Some(Words(words)) => AgentTools::Only(words),
    };
    let model = head.model.filter(|model| !model.trim().is_empty() && model != "inherit");
    Ok(Agent {
        name,
        description: given(head.description, "description")?,
        tools,
        model,
        include_rules: head.include_rules,
        worktree: head.worktree,
        system_prompt,
        role: parted.body.trim().to_owned(),
        path: path.to_owned(),
        level,
    })
}
