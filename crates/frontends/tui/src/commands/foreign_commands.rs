//! Slash commands that other agents have: haft's equivalent, or an explanation.
//!
//! Built-in commands and the user's commands take precedence; a name is looked up here only if
//! neither has it.

/// haft's equivalent of another agent's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForeignCommand {
    /// An equivalent input for haft, to which the arguments of the command are appended.
    Input(&'static str),
    /// Runs `haft` with this argument and the typed arguments, and prints the output.
    Haft(&'static str),
    /// A sentence that names haft's alternative.
    Hint(&'static str),
}

/// Finds haft's equivalent of another agent's command, which is named without the slash.
pub(crate) fn find_equivalent(name: &str) -> Option<ForeignCommand> {
    let mut meanings =
        equivalents().filter(|(names, _)| names.split_whitespace().any(|known| known == name));
    match meanings.next() {
        Some((_, meaning)) => Some(
            meaning
                .strip_prefix("haft ")
                .map_or(ForeignCommand::Input(meaning), ForeignCommand::Haft),
        ),
        None => find_hint(name),
    }
}

/// Lists the names that have an equivalent, without those that have a hint.
pub(super) fn equivalent_names() -> impl Iterator<Item = &'static str> {
    equivalents().flat_map(|(names, _)| names.split_whitespace())
}

/// Lists the lines of the table: names, separated by spaces, and their meaning.
fn equivalents() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("familiar.txt")
        .lines()
        .filter_map(|line| line.split_once(" = "))
}

fn find_hint(name: &str) -> Option<ForeignCommand> {
    Some(ForeignCommand::Hint(match name {
        "login" | "logout" | "connect" | "auth" => text!("familiar-login"),
        "theme" | "themes" | "t" | "color" => text!("familiar-theme"),
        "vim" | "keybindings" | "multiline-mode" | "terminal-setup" => text!("familiar-keys"),
        "editor" | "edit" => text!("familiar-editor"),
        "thinking" | "details" | "reasoning" => text!("familiar-details"),
        "think-tokens" | "reasoning-effort" | "effort" => text!("familiar-effort"),
        "todos" | "todo" => text!("familiar-todos"),
        "memory" | "active_context" => text!("familiar-memory"),
        "add-dir" => text!("familiar-add-dir"),
        "export" | "share" | "save" | "copy" => text!("familiar-export"),
        "fork" | "branch" => text!("familiar-fork"),
        "review" | "pr-comments" => text!("familiar-review"),
        "map" | "map-refresh" | "index" | "index/build" | "index/query" => text!("familiar-map"),
        "web" | "fetch" => text!("familiar-web"),
        "paste" | "image" => text!("familiar-image"),
        "test" | "lint" => text!("familiar-test"),
        "recipe" | "prompts" | "prompt" => text!("familiar-prompts"),
        "bug" | "feedback" | "report" => text!("familiar-bug"),
        "upgrade" | "update" | "release-notes" => text!("familiar-upgrade"),
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_command_inputs_are_valid() {
        for name in [
            "exit",
            "new",
            "tokens",
            "plan",
            "chat",
            "code",
            "add",
            "drop",
            "ls",
            "sessions",
            "summarize",
            "revert",
        ] {
            let Some(ForeignCommand::Input(input)) = find_equivalent(name) else {
                panic!("{name}")
            };
            assert!(
                super::super::find_command(input).is_some(),
                "{name}: {input}"
            );
        }
        assert_eq!(find_equivalent("run"), Some(ForeignCommand::Input("!")));
        assert_eq!(find_equivalent("ps"), Some(ForeignCommand::Haft("jobs")));
        assert_eq!(find_equivalent("nothing-like-it"), None);
    }

    #[test]
    fn foreign_command_names_do_not_hide_built_in_commands() {
        for command in super::super::COMMANDS {
            assert_eq!(find_equivalent(command.name), None, "/{}", command.name);
        }
    }
}
