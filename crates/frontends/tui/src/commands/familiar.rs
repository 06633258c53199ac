//! Slash commands as users of other agents know them: what to do instead, or the answer where there
//! is nothing to do.
//!
//! Commands of haft's own and of the user come first; a name is looked up here only when neither
//! has it.

/// What a name of another agent stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Familiar {
    /// Input with the same effect, to which the arguments are added.
    Input(&'static str),
    /// `haft` with these arguments, a space between two, whose output is shown.
    Haft(&'static str),
    /// What haft has in its place.
    Hint(&'static str),
}

/// The name, without the slash; none if no other agent is known to have it.
pub(crate) fn find(name: &str) -> Option<Familiar> {
    let lines = include_str!("familiar.txt")
        .lines()
        .filter_map(|line| line.split_once(" = "));
    let mut meanings =
        lines.filter(|(names, _)| names.split_whitespace().any(|known| known == name));
    match meanings.next() {
        Some((_, meaning)) => Some(
            meaning
                .strip_prefix("haft ")
                .map_or(Familiar::Input(meaning), Familiar::Haft),
        ),
        None => hint(name),
    }
}

fn hint(name: &str) -> Option<Familiar> {
    Some(Familiar::Hint(match name {
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
        "map" | "map-refresh" | "index" => text!("familiar-map"),
        "web" | "fetch" => text!("familiar-web"),
        "paste" | "image" => text!("familiar-image"),
        "test" | "lint" => text!("familiar-test"),
        "recipe" | "prompts" | "prompt" => text!("familiar-prompts"),
        "chat" => text!("familiar-chat"),
        "bug" | "feedback" | "report" => text!("familiar-bug"),
        "upgrade" | "update" | "release-notes" => text!("familiar-upgrade"),
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_one_that_haft_takes() {
        for name in [
            "exit",
            "new",
            "tokens",
            "plan",
            "code",
            "add",
            "drop",
            "ls",
            "sessions",
            "summarize",
            "revert",
        ] {
            let Some(Familiar::Input(input)) = find(name) else {
                panic!("{name}")
            };
            assert!(super::super::find(input).is_some(), "{name}: {input}");
        }
        assert_eq!(find("run"), Some(Familiar::Input("!")));
        assert_eq!(find("ps"), Some(Familiar::Haft("jobs list")));
        assert_eq!(find("nothing-like-it"), None);
    }

    #[test]
    fn no_name_hides_one_of_hafts_own() {
        for command in super::super::COMMANDS {
            assert_eq!(find(command.name), None, "/{}", command.name);
        }
    }
}
