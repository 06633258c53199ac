//! The README's table, `docs/commands.md` and `docs/settings.md`, compared with the program.
//! `UPDATE_DOCS=1` writes them instead.

mod pages;
mod settings;

use std::path::{Path, PathBuf};

use clap::{Arg, Command};

use super::*;
use crate::cli::Cli;

/// Names of commands, each with the page in `docs/` that describes the command.
const PAGES: [(&str, &str); 33] = [
    ("run", "runs"),
    ("review", "runs"),
    ("commit", "runs"),
    ("workflows", "workflows"),
    ("attach", "runs"),
    ("jobs", "runs"),
    ("conversations", "conversations"),
    ("rewind", "undo"),
    ("context", "context"),
    ("proxy", "proxy"),
    ("serve", "inspector"),
    ("rules", "knowledge"),
    ("skills", "knowledge"),
    ("commands", "knowledge"),
    ("agents", "agents"),
    ("worktrees", "agents"),
    ("lib", "knowledge"),
    ("rag", "rag"),
    ("useful", "context"),
    ("notes", "knowledge"),
    ("tools", "tools"),
    ("mcp", "mcp"),
    ("trust", "security"),
    ("changes", "undo"),
    ("undo", "undo"),
    ("redo", "undo"),
    ("permissions", "permissions"),
    ("sandbox", "security"),
    ("hooks", "hooks"),
    ("models", "models"),
    ("config", "configuration"),
    ("doctor", "troubleshooting"),
    ("events", "events"),
];

/// The commands in the README's table; `docs/commands.md` has all of them.
const README_COMMANDS: [&str; 8] = [
    "run",
    "conversations",
    "context",
    "mcp",
    "undo",
    "permissions",
    "models",
    "doctor",
];

const BEGIN: &str = "<!-- commands: written by a test, see docs/commands.md -->\n";
const END: &str = "<!-- end of commands -->\n";

const UPDATE_HINT: &str = "run `UPDATE_DOCS=1 cargo test --workspace --lib reference`";

fn grouped_commands() -> impl Iterator<Item = &'static str> {
    GROUPS
        .iter()
        .flat_map(|(_, names)| names.iter().copied())
        .filter(|name| *name != "help")
}

#[test]
fn commands_are_each_in_one_group() {
    let haft = Cli::definition();
    for command in haft.get_subcommands() {
        let name = command.get_name();
        assert_eq!(
            grouped_commands()
                .filter(|grouped| *grouped == name)
                .count(),
            1,
            "`{name}` belongs in one group"
        );
    }
}

#[test]
fn help_lines_are_one_short_sentence() {
    fn check(command: &Command, path: &str) {
        let path = format!("{path} {}", command.get_name());
        let line = about_text(command);
        let first = line.chars().next();
        assert!(
            first.is_some_and(char::is_uppercase) && !line.ends_with('.'),
            "{path}: {line}"
        );
        command
            .get_subcommands()
            .for_each(|inner| check(inner, &path));
    }
    for command in Cli::definition().get_subcommands() {
        check(command, "haft");
        assert!(about_text(command).len() <= 80, "{}", about_text(command));
    }
}

/// The pages describe the build with all extensions that have commands.
#[cfg(all(
    feature = "imports",
    feature = "lab",
    feature = "mcp",
    feature = "proxy",
    feature = "rag",
    feature = "serve",
    feature = "web",
    feature = "workflows"
))]
#[test]
fn readme_and_docs_match_the_help() {
    if !cfg!(feature = "postgres") {
        assert!(
            std::env::var_os("UPDATE_DOCS").is_none(),
            "nothing was written, because the pages name the queue, which this build lacks; {UPDATE_HINT}"
        );
        println!("skipped: the pages name the queue, which is built with `--features postgres`");
        return;
    }
    let readme = root().join("README.md");
    let text = std::fs::read_to_string(&readme).unwrap();
    let (front, rest) = text
        .split_once(BEGIN)
        .expect("the README has a table of commands");
    let (_, behind) = rest.split_once(END).expect("the table ends");
    compare_or_update(
        &readme,
        &format!("{front}{BEGIN}{}{END}{behind}", render_readme_table()),
    );
    compare_or_update(&root().join("docs/commands.md"), &render_commands_page());
    compare_or_update(
        &root().join("docs/settings.md"),
        &settings::render_settings_page(),
    );
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn compare_or_update(path: &Path, text: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return std::fs::write(path, text).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == text,
        "{} differs from the command line; {UPDATE_HINT}",
        path.display()
    );
}

fn render_readme_table() -> String {
    let haft = Cli::definition();
    let mut text = "\n| command | what it does |\n| --- | --- |\n".to_owned();
    for name in README_COMMANDS {
        let command = haft.find_subcommand(name).unwrap();
        let link =
            page_of(name).map_or_else(String::new, |page| format!(" ([docs](docs/{page}.md))"));
        let _ = writeln!(text, "| `haft {name}` | {}{link} |", about_text(command));
    }
    text.push('\n');
    text
}

/// Returns the name of the page in `docs/` that describes a command.
fn page_of(name: &str) -> Option<&'static str> {
    PAGES
        .iter()
        .find(|(of, _)| *of == name)
        .map(|(_, page)| *page)
}

/// Renders `docs/commands.md`.
fn render_commands_page() -> String {
    let mut haft = Cli::definition();
    haft.build();
    let mut page = "# Commands\n\nEvery command of haft, as `haft help COMMAND` shows it. Written by a test: run \
                    `UPDATE_DOCS=1 cargo test --workspace --lib reference` after a change of the command line.\n\n\
                    `haft` without a command opens the [terminal interface](terminal.md); it takes the options of `haft run`. \
                    `haft -p PROMPT` is `haft run PROMPT`.\n\n"
        .to_owned();
    for (title, names) in GROUPS {
        let _ = write!(page, "## {title}\n\n");
        for name in names.iter().filter(|name| **name != "help") {
            render_command_section(
                &mut page,
                haft.find_subcommand(name).unwrap(),
                &format!("haft {name}"),
                3,
            );
        }
    }
    page.push_str(EXIT_CODES);
    page.push('\n');
    page
}

fn render_command_section(page: &mut String, command: &Command, path: &str, depth: usize) {
    let _ = write!(
        page,
        "{} {path}\n\n{}.\n\n",
        "#".repeat(depth),
        about_text(command)
    );
    if let Some(more) = page_of(command.get_name()).filter(|_| depth == 3) {
        let _ = write!(page, "More: [{more}.md]({more}.md).\n\n");
    }
    let long = command
        .get_long_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    if let Some((_, more)) = long.split_once("\n\n") {
        let more = if more.contains("\n  ") {
            format!("```text\n{more}\n```")
        } else {
            more.to_owned()
        };
        let _ = write!(page, "{more}\n\n");
    }
    let arguments: Vec<_> = command
        .get_arguments()
        .filter(|arg| is_shown(arg))
        .collect();
    if !arguments.is_empty() {
        page.push_str("| argument | meaning |\n| --- | --- |\n");
        for argument in arguments {
            let help = argument
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let _ = writeln!(
                page,
                "| `{}` | {} |",
                argument_name(argument),
                help.replace('|', "\\|")
            );
        }
        page.push('\n');
    }
    for inner in command
        .get_subcommands()
        .filter(|inner| inner.get_name() != "help" && !inner.is_hide_set())
    {
        render_command_section(
            page,
            inner,
            &format!("{path} {}", inner.get_name()),
            depth + 1,
        );
    }
}

/// True if the argument is listed: every command has `--help`, and `--set` is described with the
/// configuration.
fn is_shown(argument: &Arg) -> bool {
    !argument.is_hide_set() && !["help", "set"].contains(&argument.get_id().as_str())
}

fn argument_name(argument: &Arg) -> String {
    let values = argument
        .get_value_names()
        .unwrap_or_default()
        .join(" ")
        .replace('|', "\\|");
    let takes_value = argument.get_action().takes_values();
    let names = [
        argument.get_short().map(|c| format!("-{c}")),
        argument.get_long().map(|name| format!("--{name}")),
    ];
    let names = names.into_iter().flatten().collect::<Vec<_>>().join(", ");
    match (names.is_empty(), takes_value) {
        (true, _) => values,
        (false, true) => format!("{names} {values}"),
        (false, false) => names,
    }
}
