//! Prompts the user calls by name: `/review src/main.rs` becomes what the command of that name says.

use std::path::Path;

use haft_project::{Ground, commands};

use crate::exit::mistake;
use crate::output;

/// The prompt with a command in front put in its place. What only looks like one, as a path does, stays as it is.
pub(crate) fn expand(prompt: String, ground: &Ground) -> anyhow::Result<String> {
    let Some(called) = prompt.strip_prefix('/') else { return Ok(prompt) };
    let (name, arguments) = called.split_once(char::is_whitespace).unwrap_or((called, ""));
    let is_name = |letter: char| letter.is_alphanumeric() || "-_:.".contains(letter);
    if name.is_empty() || !name.chars().all(is_name) {
        return Ok(prompt);
    }
    let mut problems = Vec::new();
    let found = commands::load(ground, &mut problems);
    if let Some(command) = found.get(name) {
        for problem in problems.iter().filter(|problem| problem.path == command.path) {
            output::tell(&haft_text::sanitise(&format!("haft: {problem}")));
        }
        return Ok(command.expand(arguments));
    }
    if Path::new("/").join(name).exists() {
        return Ok(prompt);
    }
    let names: Vec<_> = found.items.iter().map(|command| format!("/{}", command.name)).collect();
    let there = match names.as_slice() {
        [] if ground.obeyed => "there are none (`haft commands add` adds one)".to_owned(),
        [] => "those of a project count once it is trusted (`haft trust`)".to_owned(),
        names => format!("there are {}", names.join(", ")),
    };
    Err(mistake(format!("there is no command `/{name}`; {there}")))
}
