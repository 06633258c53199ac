//! What can be typed after a slash.

pub(crate) mod familiar;

/// A command of haft's own.
#[derive(Clone, Copy, Debug)]
pub struct SlashCommand {
    /// Its name, without the slash.
    pub name: &'static str,
    /// What it does, in one line.
    pub help: fn() -> &'static str,
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
    Inspect,
}

/// Every command of haft's own, in the order help shows them. Any other name is looked for among the user's commands.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand { name: "help", help: || text!("commands-help"), by: CommandHandler::Own(InterfaceCommand::Help) },
    SlashCommand {
        name: "context",
        help: || text!("commands-context"),
        by: CommandHandler::Own(InterfaceCommand::Context),
    },
    SlashCommand {
        name: "inspect",
        help: || text!("commands-inspect"),
        by: CommandHandler::Session(SessionCommand::Inspect),
    },
    SlashCommand { name: "cost", help: || text!("commands-cost"), by: CommandHandler::Own(InterfaceCommand::Cost) },
    SlashCommand {
        name: "compact",
        help: || text!("commands-compact"),
        by: CommandHandler::Session(SessionCommand::Compact),
    },
    SlashCommand { name: "clear", help: || text!("commands-clear"), by: CommandHandler::Session(SessionCommand::New) },
    SlashCommand {
        name: "resume",
        help: || text!("commands-resume"),
        by: CommandHandler::Session(SessionCommand::Resume),
    },
    SlashCommand {
        name: "rewind",
        help: || text!("commands-rewind"),
        by: CommandHandler::Session(SessionCommand::Rewind),
    },
    SlashCommand { name: "undo", help: || text!("commands-undo"), by: CommandHandler::Session(SessionCommand::Undo) },
    SlashCommand { name: "redo", help: || text!("commands-redo"), by: CommandHandler::Session(SessionCommand::Redo) },
    SlashCommand { name: "commit", help: || text!("commands-commit"), by: CommandHandler::Haft(&["commit", "--yes"]) },
    SlashCommand { name: "diff", help: || text!("commands-diff"), by: CommandHandler::Diff },
    SlashCommand {
        name: "model",
        help: || text!("commands-model"),
        by: CommandHandler::Session(SessionCommand::Model),
    },
    SlashCommand { name: "mode", help: || text!("commands-mode"), by: CommandHandler::Own(InterfaceCommand::Mode) },
    SlashCommand {
        name: "files",
        help: || text!("commands-files"),
        by: CommandHandler::Session(SessionCommand::Files),
    },
    SlashCommand {
        name: "conversations",
        help: || text!("commands-conversations"),
        by: CommandHandler::Haft(&["conversations", "list"]),
    },
    SlashCommand { name: "agents", help: || text!("commands-agents"), by: CommandHandler::Haft(&["agents", "list"]) },
    SlashCommand {
        name: "commands",
        help: || text!("commands-commands"),
        by: CommandHandler::Haft(&["commands", "list"]),
    },
    SlashCommand { name: "rules", help: || text!("commands-rules"), by: CommandHandler::Haft(&["rules", "list"]) },
    SlashCommand { name: "mcp", help: || text!("commands-mcp"), by: CommandHandler::Haft(&["mcp", "list"]) },
    SlashCommand { name: "models", help: || text!("commands-models"), by: CommandHandler::Haft(&["models", "list"]) },
    SlashCommand {
        name: "permissions",
        help: || text!("commands-permissions"),
        by: CommandHandler::Haft(&["permissions", "list"]),
    },
    SlashCommand { name: "quit", help: || text!("commands-quit"), by: CommandHandler::Own(InterfaceCommand::Quit) },
];

/// The command that was typed, with what stands after it; none if it is not one of haft's own.
pub(crate) fn find(typed: &str) -> Option<(SlashCommand, &str)> {
    let called = typed.trim().strip_prefix('/')?;
    let (name, arguments) = called.split_once(char::is_whitespace).unwrap_or((called, ""));
    let found = COMMANDS.iter().find(|command| command.name == name)?;
    Some((*found, arguments.trim()))
}

/// Whether the terminal has a command of this name, be it under a name that another agent uses.
pub fn is_command(name: &str) -> bool {
    COMMANDS.iter().any(|command| command.name == name) || familiar::find(name).is_some()
}

/// Keys, in the order help shows them.
pub(crate) fn keys() -> Vec<(&'static str, &'static str)> {
    vec![
        ("Enter", text!("commands-key-enter")),
        ("Alt-Enter, Ctrl-J", text!("commands-key-alt-enter")),
        ("Esc", text!("commands-key-esc")),
        ("Esc Esc", text!("commands-key-esc-esc")),
        ("Shift-Tab", text!("commands-key-shift-tab")),
        ("Ctrl-C", text!("commands-key-ctrl-c")),
        ("Ctrl-D", text!("commands-key-ctrl-d")),
        ("Up, Down", text!("commands-key-up-down")),
        ("Ctrl-R", text!("commands-key-ctrl-r")),
        ("Tab", text!("commands-key-tab")),
        ("Ctrl-O", text!("commands-key-ctrl-o")),
        ("Ctrl-T", text!("commands-key-ctrl-t")),
        ("Ctrl-G", text!("commands-key-ctrl-g")),
        ("Ctrl-V", text!("commands-key-ctrl-v")),
        ("Ctrl-A E U K W Y", text!("commands-key-readline")),
        ("Ctrl-L", text!("commands-key-ctrl-l")),
        ("Ctrl-Z", text!("commands-key-ctrl-z")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_with_what_stands_after_them() {
        let (found, arguments) = find("/resume  3fa9 ").unwrap();
        assert_eq!((found.name, arguments), ("resume", "3fa9"));
        assert!(find("/usr/bin/env").is_none() && find("help").is_none() && find("/helpme").is_none());
    }
}
