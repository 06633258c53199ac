//! The slash commands of the terminal interface.

pub(crate) mod familiar;

/// A built-in slash command.
#[derive(Clone, Copy, Debug)]
pub struct SlashCommand {
    /// The name, without the slash.
    pub name: &'static str,
    /// Returns the description, in one line.
    pub help: fn() -> &'static str,
    /// The component that carries the command out.
    pub(crate) by: CommandHandler,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandHandler {
    /// The interface itself.
    Own(InterfaceCommand),
    /// The owner of the session.
    Session(SessionCommand),
    /// `haft` with these arguments. Its output is printed.
    Haft(&'static [&'static str]),
    /// The session, which prints the changes of this conversation even while a turn runs.
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

impl SlashCommand {
    const fn own(
        name: &'static str,
        help: fn() -> &'static str,
        command: InterfaceCommand,
    ) -> Self {
        Self {
            name,
            help,
            by: CommandHandler::Own(command),
        }
    }

    const fn of_session(
        name: &'static str,
        help: fn() -> &'static str,
        command: SessionCommand,
    ) -> Self {
        Self {
            name,
            help,
            by: CommandHandler::Session(command),
        }
    }

    const fn haft(
        name: &'static str,
        help: fn() -> &'static str,
        arguments: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            help,
            by: CommandHandler::Haft(arguments),
        }
    }
}

/// All built-in commands, in the order of `/help`. Other names are looked up among the user's
/// commands.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand::own("help", || text!("commands-help"), InterfaceCommand::Help),
    SlashCommand::own(
        "context",
        || text!("commands-context"),
        InterfaceCommand::Context,
    ),
    SlashCommand::of_session(
        "inspect",
        || text!("commands-inspect"),
        SessionCommand::Inspect,
    ),
    SlashCommand::own("cost", || text!("commands-cost"), InterfaceCommand::Cost),
    SlashCommand::of_session(
        "compact",
        || text!("commands-compact"),
        SessionCommand::Compact,
    ),
    SlashCommand::of_session("clear", || text!("commands-clear"), SessionCommand::New),
    SlashCommand::of_session(
        "resume",
        || text!("commands-resume"),
        SessionCommand::Resume,
    ),
    SlashCommand::of_session(
        "rewind",
        || text!("commands-rewind"),
        SessionCommand::Rewind,
    ),
    SlashCommand::of_session("undo", || text!("commands-undo"), SessionCommand::Undo),
    SlashCommand::of_session("redo", || text!("commands-redo"), SessionCommand::Redo),
    SlashCommand::haft("commit", || text!("commands-commit"), &["commit", "--yes"]),
    SlashCommand {
        name: "diff",
        help: || text!("commands-diff"),
        by: CommandHandler::Diff,
    },
    SlashCommand::of_session("model", || text!("commands-model"), SessionCommand::Model),
    SlashCommand::own("mode", || text!("commands-mode"), InterfaceCommand::Mode),
    SlashCommand::of_session("files", || text!("commands-files"), SessionCommand::Files),
    SlashCommand::haft(
        "conversations",
        || text!("commands-conversations"),
        &["conversations", "list"],
    ),
    SlashCommand::haft("agents", || text!("commands-agents"), &["agents", "list"]),
    SlashCommand::haft(
        "commands",
        || text!("commands-commands"),
        &["commands", "list"],
    ),
    SlashCommand::haft("rules", || text!("commands-rules"), &["rules", "list"]),
    SlashCommand::haft("mcp", || text!("commands-mcp"), &["mcp", "list"]),
    SlashCommand::haft("models", || text!("commands-models"), &["models", "list"]),
    SlashCommand::haft(
        "permissions",
        || text!("commands-permissions"),
        &["permissions", "list"],
    ),
    SlashCommand::own("quit", || text!("commands-quit"), InterfaceCommand::Quit),
];

/// Finds the built-in command that was typed, and its arguments.
pub(crate) fn find(typed: &str) -> Option<(SlashCommand, &str)> {
    let called = typed.trim().strip_prefix('/')?;
    let (name, arguments) = called
        .split_once(char::is_whitespace)
        .unwrap_or((called, ""));
    let found = COMMANDS.iter().find(|command| command.name == name)?;
    Some((*found, arguments.trim()))
}

/// Returns true if the terminal has a command of this name, including the names of other agents.
pub fn is_command(name: &str) -> bool {
    COMMANDS.iter().any(|command| command.name == name) || familiar::find(name).is_some()
}

/// Lists the keys and their descriptions, in the order of `/help`.
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
    fn find_returns_command_and_arguments() {
        let (found, arguments) = find("/resume  3fa9 ").unwrap();
        assert_eq!((found.name, arguments), ("resume", "3fa9"));
        assert!(
            find("/usr/bin/env").is_none() && find("help").is_none() && find("/helpme").is_none()
        );
    }
}
