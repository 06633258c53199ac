//! The commands in groups: one list for `haft --help`, the README's table and `docs/commands.md`.
//!
//! A command's help line is written once, in its clap definition. A test writes it into the two
//! pages, or fails where they differ.

use std::fmt::Write;

use clap::Command;

/// A heading of the help and the commands below it, in the order people meet them.
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

/// The template of `haft --help`, with the commands of this build.
pub(crate) fn help_template(haft: &Command) -> String {
    let mut template = "{about}\n\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        let _ = write!(template, "\n{title}:\n");
        for (name, about) in names
            .iter()
            .filter_map(|name| Some((name, about(haft, name)?)))
        {
            let _ = writeln!(template, "  {name:<15}{about}");
        }
    }
    let _ = write!(template, "\nOptions:\n{{options}}\n\n{EXIT_CODES}");
    template
}

/// The help line of a command; none when it is not in this build.
fn about(haft: &Command, name: &str) -> Option<String> {
    // clap adds this one when it parses.
    if name == "help" {
        return Some("Show help for a command".to_owned());
    }
    haft.find_subcommand(name).map(line)
}

fn line(command: &Command) -> String {
    command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
