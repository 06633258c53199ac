//! What can be typed after a slash.

/// A command of haft's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlashCommand {
    /// Its name, without the slash.
    pub name: &'static str,
    /// What it does, in a few words.
    pub help: &'static str,
    /// Who does it.
    pub(crate) by: CommandHandler,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandHandler {
    /// The interface itself.
    Own(InterfaceCommand),
    /// Whoever holds the session.
    Session(SessionCommand),
    /// `haft` with these arguments, whose output is shown.
    Haft(&'static [&'static str]),
    /// The changes of this conversation, shown while a turn runs too.
    Diff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InterfaceCommand {
    Help,
    Context,
    Cost,
    Mode,
    Quit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionCommand {
    New,
    Resume,
    Rewind,
    Model,
    Files,
    Undo,
    Redo,
    Compact,
}

/// Every command of haft's own, in the order help shows them. Any other name is looked for among the user's commands.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand { name: "help", help: "keys and commands", by: CommandHandler::Own(InterfaceCommand::Help) },
    SlashCommand {
        name: "context",
        help: "where the tokens went; /context edit",
        by: CommandHandler::Own(InterfaceCommand::Context),
    },
    SlashCommand { name: "cost", help: "tokens and money so far", by: CommandHandler::Own(InterfaceCommand::Cost) },
    SlashCommand {
        name: "compact",
        help: "archive older rounds now: /compact [what to keep]",
        by: CommandHandler::Session(SessionCommand::Compact),
    },
    SlashCommand { name: "clear", help: "begin a new conversation", by: CommandHandler::Session(SessionCommand::New) },
    SlashCommand {
        name: "resume",
        help: "go on with another conversation",
        by: CommandHandler::Session(SessionCommand::Resume),
    },
    SlashCommand {
        name: "rewind",
        help: "back to something you said",
        by: CommandHandler::Session(SessionCommand::Rewind),
    },
    SlashCommand {
        name: "undo",
        help: "take back the last change of files",
        by: CommandHandler::Session(SessionCommand::Undo),
    },
    SlashCommand {
        name: "redo",
        help: "bring back what was taken back",
        by: CommandHandler::Session(SessionCommand::Redo),
    },
    SlashCommand { name: "diff", help: "what this conversation changed in files", by: CommandHandler::Diff },
    SlashCommand { name: "model", help: "ask another model", by: CommandHandler::Session(SessionCommand::Model) },
    SlashCommand {
        name: "mode",
        help: "what may happen without asking: /mode plan",
        by: CommandHandler::Own(InterfaceCommand::Mode),
    },
    SlashCommand {
        name: "files",
        help: "what the model is told of files; /files add, remove, clear",
        by: CommandHandler::Session(SessionCommand::Files),
    },
    SlashCommand {
        name: "conversations",
        help: "list conversations",
        by: CommandHandler::Haft(&["conversations", "list"]),
    },
    SlashCommand { name: "agents", help: "roles for sub-agents", by: CommandHandler::Haft(&["agents", "list"]) },
    SlashCommand { name: "commands", help: "your own commands", by: CommandHandler::Haft(&["commands", "list"]) },
    SlashCommand { name: "rules", help: "words the model works by", by: CommandHandler::Haft(&["rules", "list"]) },
    SlashCommand { name: "mcp", help: "MCP servers", by: CommandHandler::Haft(&["mcp", "list"]) },
    SlashCommand { name: "models", help: "models that are declared", by: CommandHandler::Haft(&["models", "list"]) },
    SlashCommand {
        name: "permissions",
        help: "what may happen without asking",
        by: CommandHandler::Haft(&["permissions", "list"]),
    },
    SlashCommand { name: "quit", help: "leave", by: CommandHandler::Own(InterfaceCommand::Quit) },
];

/// The command that was typed, with what stands after it; none if it is not one of haft's own.
pub(crate) fn find(typed: &str) -> Option<(SlashCommand, &str)> {
    let called = typed.trim().strip_prefix('/')?;
    let (name, arguments) = called.split_once(char::is_whitespace).unwrap_or((called, ""));
    let name = if name == "exit" { "quit" } else { name };
    let found = COMMANDS.iter().find(|command| command.name == name)?;
    Some((*found, arguments.trim()))
}

/// Keys, in the order help shows them.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("Enter", "send"),
    ("Alt-Enter, Ctrl-J", "new line"),
    ("Esc", "interrupt"),
    ("Esc Esc", "back to something you said"),
    ("Shift-Tab", "another mode: what may happen without asking"),
    ("Ctrl-C", "interrupt, clear, or leave"),
    ("Ctrl-D", "leave, when nothing is typed"),
    ("Up, Down", "what was sent before"),
    ("Ctrl-R", "search what was sent before"),
    ("Tab", "complete a command or an @file"),
    ("Ctrl-O", "all of the last result"),
    ("Ctrl-T", "show or hide the TODO list"),
    ("Ctrl-G", "write in your editor"),
    ("Ctrl-A E U K W Y", "move and cut as in a shell"),
    ("Ctrl-L", "draw again"),
    ("Ctrl-Z", "to the shell; `fg` comes back"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_with_what_stands_after_them() {
        let (found, arguments) = find("/resume  3fa9 ").unwrap();
        assert_eq!((found.name, arguments), ("resume", "3fa9"));
        assert_eq!(find("/exit").unwrap().0.name, "quit");
        assert!(find("/usr/bin/env").is_none() && find("help").is_none() && find("/helpme").is_none());
    }
}
