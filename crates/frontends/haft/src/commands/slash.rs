//! Prompts the user calls by name: `/review src/main.rs` becomes what the command of that name
//! says.

use std::path::Path;

use haft_project::KnowledgePaths;
use haft_project::commands::{self, PromptPiece};
use haft_text::NameRule;

use crate::exit::usage_error;
use crate::output;

/// The prompt with a command in front put in its place, in pieces: it may have command lines to
/// run. What only looks like a command, as a path does, stays as it is.
pub(crate) fn expand(prompt: String, paths: &KnowledgePaths) -> anyhow::Result<Vec<PromptPiece>> {
    let (pieces, problems) = expand_and_tell(prompt, paths)?;
    for problem in problems {
        output::tell(&haft_text::sanitise(&format!("haft: {problem}")));
    }
    Ok(pieces)
}

/// The same, with what is wrong with the command's file, for callers that report it themselves.
pub(crate) fn expand_and_tell(
    prompt: String,
    paths: &KnowledgePaths,
) -> anyhow::Result<(Vec<PromptPiece>, Vec<String>)> {
    let untouched = |prompt| Ok((vec![PromptPiece::Text(prompt)], Vec::new()));
    let Some(called) = prompt.strip_prefix('/') else {
        return untouched(prompt);
    };
    let (name, arguments) = called
        .split_once(char::is_whitespace)
        .unwrap_or((called, ""));
    if !NameRule::Command.allows(name) {
        return untouched(prompt);
    }
    let mut problems = Vec::new();
    let found = commands::load(paths, &mut problems);
    if let Some(command) = found.get(name) {
        let problems = problems
            .iter()
            .filter(|problem| problem.path == command.path);
        return Ok((
            command.pieces(arguments),
            problems.map(ToString::to_string).collect(),
        ));
    }
    if Path::new("/").join(name).exists() {
        return untouched(prompt);
    }
    if haft_tui::is_command(name) {
        return Err(usage_error(text!("slash-terminal", name)));
    }
    let names: Vec<_> = found
        .items
        .iter()
        .map(|command| format!("/{}", command.name))
        .collect();
    let there = match names.as_slice() {
        [] if paths.trusted => text!("slash-none").to_owned(),
        [] => text!("slash-untrusted").to_owned(),
        names => text!("slash-there-are", names = output::listed(names)),
    };
    Err(usage_error(text!("slash-unknown", name, there)))
}
