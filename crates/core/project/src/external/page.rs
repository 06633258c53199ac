//! Writes the document that describes the external tools to the model.

use std::fmt::Write as _;
use std::path::Path;

use super::{ExternalTool, Help};
use crate::knowledge::{KnowledgeKind, KnowledgePaths};

const HOW_TO_ADD: &str = "\
## Adding a tool

A tool is a file directly in one of the folders above, `.haft/tools` in the project: an executable without an ending, or a \
script that ends in `.py`, `.sh`, `.js`, `.rb`, `.pl`, `.php`, `.go` or `.rs`. Called with `help`, it prints how it is used and \
exits with 0; or a comment at its head says so, from a line with `Usage:` on. The user adds it with `haft tools add NAME FILE`.";

/// Returns the heading and the text of the document about external tools, or `None` if there are no
/// tools.
pub fn render_document(
    knowledge: &KnowledgePaths,
    tools: &[(ExternalTool, Help)],
) -> Option<(String, String)> {
    if tools.is_empty() {
        return None;
    }
    let failed = tools
        .iter()
        .filter(|(_, help)| *help == Help::Missing)
        .count();
    let folders: Vec<_> = knowledge
        .folders_of_kind(KnowledgeKind::Tools)
        .into_iter()
        .filter(|folder| tools.iter().any(|(tool, _)| tool.folder() == folder.path))
        .map(|folder| format!("`{}`", knowledge.display_path(&folder.path)))
        .collect();
    let mut text = format!(
        "Tools found: {}; of {failed} it could not be learnt how they are used.\nFolders, in the order in which they are looked \
         through: {}.\nRun a tool with `execute_command` as its entry says. A built-in tool of the same name goes before it.\n",
        tools.len(),
        folders.join(", ")
    );
    for (tool, help) in tools {
        write_tool_section(&mut text, knowledge, tool, help);
    }
    text.push('\n');
    text.push_str(HOW_TO_ADD);
    Some((
        format!("External tools of {}", knowledge.project_name()),
        text,
    ))
}

fn write_tool_section(
    text: &mut String,
    knowledge: &KnowledgePaths,
    tool: &ExternalTool,
    help: &Help,
) {
    let run = match tool.command_to_start() {
        Some(words) => {
            let words: Vec<_> = words
                .iter()
                .map(|word| quote_for_shell(&path_from_cwd(knowledge, Path::new(word))))
                .collect();
            format!("run it as `{}`", words.join(" "))
        }
        None => "it must be compiled first".to_owned(),
    };
    let executable = if tool.executable {
        "executable"
    } else {
        "not executable"
    };
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "\n## {}\n\nFolder: `{}`; {executable}; {run}.",
        tool.name,
        knowledge.display_path(tool.folder())
    );
    match help.text() {
        Some(help) => {
            let fence = choose_code_fence(help);
            let _ = writeln!(text, "{fence}text\n{}\n{fence}", help.trim());
        }
        None => {
            let _ = writeln!(
                text,
                "`{}` says nothing of its use; look at its file before you run it.",
                tool.name
            );
        }
    }
}

/// Returns the path of a tool as a command must write it: relative to the working directory, in
/// which commands are run.
fn path_from_cwd(knowledge: &KnowledgePaths, path: &Path) -> String {
    if knowledge.cwd == knowledge.root {
        knowledge.display_path(path)
    } else {
        path.display().to_string()
    }
}

/// Quotes a word for a POSIX shell if it is empty or contains special characters.
pub fn quote_for_shell(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+@%,=:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Returns a code fence that is longer than any code fence in the text.
fn choose_code_fence(text: &str) -> String {
    let longest = text
        .lines()
        .map(|line| {
            line.trim_start()
                .bytes()
                .take_while(|byte| *byte == b'`')
                .count()
        })
        .max();
    "`".repeat(longest.unwrap_or(0).max(2) + 1)
}
