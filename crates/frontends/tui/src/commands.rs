//! The slash commands of the terminal interface.

pub(crate) mod foreign_commands;

use haft_agent::split_words;

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
    /// Runs `haft` with the command's name and the typed arguments, and prints the output.
    Haft,
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
    View,
    Agent,
    Useful,
    Notes,
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

    const fn for_haft(name: &'static str, help: fn() -> &'static str) -> Self {
        Self {
            name,
            help,
            by: CommandHandler::Haft,
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
    SlashCommand::for_haft("commit", || text!("commands-commit")),
    SlashCommand {
        name: "diff",
        help: || text!("commands-diff"),
        by: CommandHandler::Diff,
    },
    SlashCommand::for_session("model", || text!("commands-model"), SessionCommand::Model),
    SlashCommand::for_interface("mode", || text!("commands-mode"), InterfaceCommand::Mode),
    SlashCommand::for_session("files", || text!("commands-files"), SessionCommand::Files),
    SlashCommand::for_session("view", || text!("commands-view"), SessionCommand::View),
    SlashCommand::for_session("agent", || text!("commands-agent"), SessionCommand::Agent),
    SlashCommand::for_session(
        "useful",
        || text!("commands-useful"),
        SessionCommand::Useful,
    ),
    SlashCommand::for_session("notes", || text!("commands-notes"), SessionCommand::Notes),
    SlashCommand::for_haft("conversations", || text!("commands-conversations")),
    SlashCommand::for_haft("agents", || text!("commands-agents")),
    SlashCommand::for_haft("commands", || text!("commands-commands")),
    SlashCommand::for_haft("rules", || text!("commands-rules")),
    SlashCommand::for_haft("mcp", || text!("commands-mcp")),
    SlashCommand::for_haft("models", || text!("commands-models")),
    SlashCommand::for_haft("permissions", || text!("commands-permissions")),
    SlashCommand::for_session("trust", || text!("commands-trust"), SessionCommand::Trust),
    SlashCommand::for_interface("quit", || text!("commands-quit"), InterfaceCommand::Quit),
];

/// Finds the built-in command that was typed, and its arguments.
pub(crate) fn find_command(typed: &str) -> Option<(SlashCommand, &str)> {
    let (name, arguments) = split_first_word(typed.trim().strip_prefix('/')?);
    let found = COMMANDS.iter().find(|command| command.name == name)?;
    Some((*found, arguments))
}

/// Splits text into its first word and the rest, without the blanks between them.
pub(crate) fn split_first_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

/// Returns the arguments of `haft` for a command that was typed at the terminal: `/rules /add x`
/// runs `haft rules add x`, and `/config KEY:VALUE` runs `haft config set KEY VALUE`.
pub(crate) fn haft_arguments(command: &str, typed: &str) -> Vec<String> {
    let setting = typed.split_once(':').filter(|(key, _)| {
        command == "config" && !key.starts_with('/') && !key.contains(char::is_whitespace)
    });
    let words = match setting {
        Some((key, value)) => vec!["set".to_owned(), key.to_owned(), value.trim().to_owned()],
        None => split_words(typed.strip_prefix('/').unwrap_or(typed)),
    };
    std::iter::once(command.to_owned()).chain(words).collect()
}

/// Returns true if this is the name of a built-in command or of another agent's command.
pub fn is_command(name: &str) -> bool {
    COMMANDS.iter().any(|command| command.name == name)
        || foreign_commands::find_equivalent(name).is_some()
}

/// Lists the names of the built-in commands, and of other agents' commands that have an equivalent.
pub fn command_names() -> impl Iterator<Item = &'static str> {
    let built_in = COMMANDS.iter().map(|command| command.name);
    built_in.chain(foreign_commands::equivalent_names())
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

    #[test]
    fn haft_arguments_drop_the_slash_of_the_verb() {
        for (command, typed, expected) in [
            ("rules", "", "rules"),
            ("rules", "/list", "rules|list"),
            ("rules", "list", "rules|list"),
            ("lib", "/add x", "lib|add|x"),
            ("models", "--all", "models|--all"),
            ("mcp", "/add x -- /bin/y 'a b'", "mcp|add|x|--|/bin/y|a b"),
            ("commit", "the user's name", "commit|the|user's|name"),
            ("config", "/list", "config|list"),
            ("config", "model:a/b:8b", "config|set|model|a/b:8b"),
            ("config", "model: a/b", "config|set|model|a/b"),
            ("config", "get a:b", "config|get|a:b"),
            ("rag", "a:b", "rag|a:b"),
        ] {
            let arguments = haft_arguments(command, typed).join("|");
            assert_eq!(arguments, expected, "{command} {typed}");
        }
    }

    #[test]
    fn command_names_are_commands() {
        let names: Vec<_> = command_names().collect();
        assert!(names.contains(&"quit") && names.contains(&"coding") && names.contains(&"lib"));
        assert!(names.iter().all(|name| is_command(name)), "{names:?}");
    }
}
