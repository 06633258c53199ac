//! Groups the commands for `haft --help`, the README's table and `docs/commands.md`.
//!
//! A command's help line is written once, in its clap definition. A test copies the help lines to
//! the README and `docs/commands.md`, or fails if these files differ.

use std::fmt::Write;

use clap::Command;

/// A heading of the help and the commands below it, in the order in which users need them.
type Group = (&'static str, &'static [&'static str]);

const GROUPS: [Group; 8] = [
    (
        "Run",
        &[
            "run",
            "chat",
            "review",
            "commit",
            "workflows",
            "attach",
            "jobs",
            "queue",
            "worker",
            "acp",
            "demo",
        ],
    ),
    ("Conversations", &["conversations", "rewind"]),
    ("Context", &["context", "proxy", "serve"]),
    (
        "Knowledge",
        &[
            "rules",
            "skills",
            "commands",
            "agents",
            "worktrees",
            "lib",
            "rag",
            "useful",
            "notes",
        ],
    ),
    ("Tools", &["tools", "mcp"]),
    (
        "Safety",
        &[
            "trust",
            "changes",
            "undo",
            "redo",
            "permissions",
            "sandbox",
            "hooks",
        ],
    ),
    ("Models", &["models", "count"]),
    (
        "System",
        &[
            "config",
            "doctor",
            "logs",
            "events",
            "man",
            "completions",
            "help",
        ],
    ),
];

const EXIT_CODES: &str = "Exit codes: 0 completed, 1 failed, 2 usage or configuration, 3 a person is needed, 4 a limit was reached, 130 cancelled.";

/// Returns the template of `haft --help`, with the commands of this build. `translation` returns
/// the translation of a text by its key; without a translation, the text stays English.
pub(crate) fn help_template(
    haft: &Command,
    translation: impl Fn(&str) -> Option<&'static str>,
) -> String {
    let mut template = "{about}\n\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        match translation(&format!("help-groups.{title}")) {
            Some(heading) => {
                let _ = write!(template, "\n{heading}\n");
            }
            None => {
                let _ = write!(template, "\n{title}:\n");
            }
        }
        for (name, about) in names
            .iter()
            .filter_map(|name| Some((name, help_line(haft, name, &translation)?)))
        {
            let _ = writeln!(template, "  {name:<15}{about}");
        }
    }
    let _ = write!(template, "\nOptions:\n{{options}}\n\n");
    template.push_str(translation("help-groups.exit_codes").unwrap_or(EXIT_CODES));
    template
}

/// Returns the help line of a command, or `None` if this build lacks the command.
fn help_line(
    haft: &Command,
    name: &str,
    translation: impl Fn(&str) -> Option<&'static str>,
) -> Option<String> {
    // Clap adds the command `help` only when it parses a command line.
    if name == "help" {
        let help = translation("help-groups.help").unwrap_or("Show help for a command");
        return Some(help.to_owned());
    }
    haft.find_subcommand(name).map(about_text)
}

fn about_text(command: &Command) -> String {
    command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
