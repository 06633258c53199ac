//! The slash commands of the terminal interface.

pub(crate) mod foreign_commands;

/// A built-in slash command.
#[derive(Clone, Copy, Debug)]
pub struct SlashCommand {
    /// The name, without the slash.
    pub name: &'static str,
    /// Returns the description of the command, in one line.
    pub help: fn() -> &'static str,
    /// The component that carries the command out.
    pub(crate) by: CommandHandler,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandHandler {
    /// The interface itself carries the command out.
    Own(InterfaceCommand),
    /// The owner of the session, not the interface, carries the command out.
    Session(SessionCommand),
    /// Runs `haft` with these arguments and prints the output.
    Haft(&'static [&'static str]),
    /// The session prints the changes of this conversation, even while a turn runs.
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
    Trust,
}

impl SlashCommand {
    const fn for_interface(
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

    const fn for_session(
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

    const fn for_haft(
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

/// All built-in commands, in the order of `/help`. Any other name is looked up among the user's
/// commands.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand::for_interface("help", || text!("commands-help"), InterfaceCommand::Help),
    SlashCommand::for_interface(
        "context",
        || text!("commands-context"),
        InterfaceCommand::Context,
    ),
    SlashCommand::for_session(
        "inspect",
        || text!("commands-inspect"),
        SessionCommand::Inspect,
    ),
    SlashCommand::for_interface("cost", || text!("commands-cost"), InterfaceCommand::Cost),
    SlashCommand::for_session(
        "compact",
        || text!("commands-compact"),
        SessionCommand::Compact,
    ),
    SlashCommand::for_session("clear", || text!("commands-clear"), SessionCommand::New),
    SlashCommand::for_session(
        "resume",
        || text!("commands-resume"),
        SessionCommand::Resume,
    ),
    SlashCommand::for_session(
        "rewind",
        || text!("commands-rewind"),
        SessionCommand::Rewind,
    ),
    SlashCommand::for_session("undo", || text!("commands-undo"), SessionCommand::Undo),
    SlashCommand::for_session("redo", || text!("commands-redo"), SessionCommand::Redo),
    SlashCommand::for_haft("commit", || text!("commands-commit"), &["commit"]),
    SlashCommand {
        name: "diff",
        help: || text!("commands-diff"),
        by: CommandHandler::Diff,
    },
    SlashCommand::for_session("model", || text!("commands-model"), SessionCommand::Model),
    SlashCommand::for_interface("mode", || text!("commands-mode"), InterfaceCommand::Mode),
    SlashCommand::for_session("files", || text!("commands-files"), SessionCommand::Files),
    SlashCommand::for_haft(
        "conversations",
        || text!("commands-conversations"),
        &["conversations", "list"],
    ),
    SlashCommand::for_haft("agents", || text!("commands-agents"), &["agents", "list"]),
    SlashCommand::for_haft(
        "commands",
        || text!("commands-commands"),
        &["commands", "list"],
    ),
    SlashCommand::for_haft("rules", || text!("commands-rules"), &["rules", "list"]),
    SlashCommand::for_haft("mcp", || text!("commands-mcp"), &["mcp", "list"]),
    SlashCommand::for_haft("models", || text!("commands-models"), &["models", "list"]),
    SlashCommand::for_haft(
        "permissions",
        || text!("commands-permissions"),
        &["permissions", "list"],
    ),
    SlashCommand::for_session("trust", || text!("commands-trust"), SessionCommand::Trust),
    SlashCommand::for_interface("quit", || text!("commands-quit"), InterfaceCommand::Quit),
];

/// Finds the built-in command that was typed, and its arguments.
pub(crate) fn find_command(typed: &str) -> Option<(SlashCommand, &str)> {
    let called = typed.trim().strip_prefix('/')?;
    let (name, arguments) = called
        .split_once(char::is_whitespace)
        .unwrap_or((called, ""));
    let found = COMMANDS.iter().find(|command| command.name == name)?;
    Some((*found, arguments.trim()))
}

/// Returns true if this is the name of a built-in command or of another agent's command.
pub fn is_command(name: &str) -> bool {
    COMMANDS.iter().any(|command| command.name == name)
        || foreign_commands::find_equivalent(name).is_some()
}

/// Lists the keys and their descriptions, in the order of `/help`.
pub(crate) fn list_keys() -> Vec<(&'static str, &'static str)> {
    vec![
        ("Enter", text!("commands-key-enter")),
        ("Alt-Enter", text!("commands-key-alt-enter")),
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
        ("Ctrl-A E K", text!("commands-key-readline")),
        ("Ctrl-L", text!("commands-key-ctrl-l")),
        ("Ctrl-Z", text!("commands-key-ctrl-z")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_returns_command_and_arguments() {
        let (found, arguments) = find_command("/resume  3fa9 ").unwrap();
        assert_eq!((found.name, arguments), ("resume", "3fa9"));
        assert!(
            find_command("/usr/bin/env").is_none()
                && find_command("help").is_none()
                && find_command("/helpme").is_none()
        );
    }
}
