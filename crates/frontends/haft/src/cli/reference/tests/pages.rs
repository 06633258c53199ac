//! Commands and options in README and docs, checked against the command line: each is parsed as
//! haft would, and none is run.

use std::collections::BTreeSet;
use std::fs;

use clap::Command;
use clap::error::ErrorKind::{InvalidSubcommand, InvalidValue, UnknownArgument, ValueValidation};
use clap::error::{ContextKind, ContextValue};

use crate::cli::Cli;

/// Options of other programs that pages mention.
const FOREIGN: [&str; 45] = [
    "--%",
    "--agents",
    "--allow-dangerously-skip-permissions",
    "--baseline",
    "--bodies",
    "--cargo",
    "--cpus",
    "--every",
    "--ext-diff",
    "--features",
    "--git-dir",
    "--gpus",
    "--help",
    "--hostname-bin",
    "--jinja",
    "--keep",
    "--ldflags",
    "--locked",
    "--memory-gb",
    "--min-miss",
    "--no-default-features",
    "--no-requeue",
    "--node-ip-address",
    "--one-folder",
    "--out",
    "--output",
    "--path",
    "--pre",
    "--prices",
    "--profile",
    "--read",
    "--remap-path-prefix",
    "--replay",
    "--repository",
    "--requeue",
    "--root",
    "--sample",
    "--serve",
    "--suite",
    "--template",
    "--to-command",
    "--trailer",
    "--untrusted",
    "--version",
    "--worker-option",
];

/// A command line, the start of a command line, or an option, with the page that contains it.
struct Mention {
    page: String,
    line: String,
}

/// Returns the paths and texts of the README and the docs in both languages, except the page about
/// other agents, which has tests of its own.
fn read_pages() -> Vec<(String, String)> {
    let root = super::root();
    let mut paths = vec![root.join("README.md"), root.join("README.zh-CN.md")];
    for folder in ["docs", "docs/zh-CN"] {
        paths.extend(
            fs::read_dir(root.join(folder))
                .unwrap()
                .map(|entry| entry.unwrap().path()),
        );
    }
    let pages = paths
        .iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let pages = pages.filter(|path| !path.ends_with("coming-from.md"));
    pages
        .map(|path| {
            (
                path.display().to_string(),
                fs::read_to_string(path).unwrap(),
            )
        })
        .collect()
}

/// Returns all command lines of haft in code blocks and in running text, and all options that stand
/// alone.
fn find_mentions() -> (Vec<Mention>, Vec<Mention>) {
    let mut commands = Vec::new();
    let mut options = Vec::new();
    for (page, text) in read_pages() {
        let mut fence: Option<String> = None;
        for line in text.lines() {
            if let Some(info) = line.strip_prefix("```") {
                fence = if fence.is_some() {
                    None
                } else {
                    Some(info.to_owned())
                };
            } else if let Some(info) = &fence {
                let shell = ["sh", "console"]
                    .iter()
                    .any(|name| info.split(' ').next() == Some(name));
                let typed = if info.starts_with("console") {
                    line.strip_prefix("$ ")
                } else {
                    Some(line)
                };
                let parts = typed
                    .filter(|_| shell)
                    .into_iter()
                    .flat_map(simple_commands);
                commands.extend(parts.map(|line| Mention {
                    page: page.clone(),
                    line,
                }));
            } else {
                let spans = line
                    .split("``")
                    .step_by(2)
                    .flat_map(|part| part.split('`').skip(1).step_by(2));
                for span in spans {
                    let found = Mention {
                        page: page.clone(),
                        line: span.to_owned(),
                    };
                    match span {
                        _ if span.starts_with("haft ") => commands.push(found),
                        _ if span.starts_with("--") => options.push(found),
                        _ => {}
                    }
                }
            }
        }
    }
    (commands, options)
}

/// Returns the commands in a shell line that begin with `haft`, without preceding assignments and
/// without comments.
fn simple_commands(line: &str) -> Vec<String> {
    let line = line.split(" #").next().unwrap_or_default();
    let parts = line
        .split("&&")
        .flat_map(|part| part.split(" | "))
        .flat_map(|part| part.split("; "));
    let unassigned = parts.map(|part| {
        let words = part.trim().split(' ');
        words
            .skip_while(|word| word.contains('=') && !word.starts_with("haft"))
            .collect::<Vec<_>>()
            .join(" ")
    });
    unassigned
        .filter(|part| part.starts_with("haft "))
        .collect()
}

/// Splits a line into words and resolves quotes, up to the first placeholder such as `<FILE>`,
/// redirection, or line continuation.
fn split_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == ' ' => words.push(String::new()),
            _ => words.last_mut().unwrap().push(c),
        }
    }
    let open = |word: &String| {
        ["…", "[", "<", ">", "{"]
            .iter()
            .any(|sign| word.starts_with(sign))
            || word == "\\"
    };
    words
        .into_iter()
        .take_while(|word| !open(word))
        .filter(|word| !word.is_empty())
        .collect()
}

/// True if the word is a placeholder for a value, such as `MODE`, `A|B` or `…`.
fn is_placeholder(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    name.contains(['…', '|', '$'])
        || name
            .chars()
            .all(|c| c.is_ascii_uppercase() || "-_./0123456789".contains(c))
}

/// Returns the error of a command line, or `None` if the line is a valid command or the start of
/// one.
fn find_problem(line: &str) -> Option<String> {
    let first = line
        .split(' ')
        .nth(1)
        .filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
    let known = |name: &str| name == "help" || Cli::definition().find_subcommand(name).is_some();
    // `haft modles` is the example of a mistyped command.
    if let Some(name) = first.filter(|name| !known(name) && *name != "modles") {
        return Some(format!("`{name}` is no command"));
    }
    let error = Cli::definition()
        .try_get_matches_from(split_words(line))
        .err()?;
    let named = [
        ContextKind::InvalidArg,
        ContextKind::InvalidSubcommand,
        ContextKind::InvalidValue,
    ];
    let named = named
        .iter()
        .filter_map(|kind| error.get(*kind))
        .any(|value| match value {
            ContextValue::String(word) => is_placeholder(word),
            _ => false,
        });
    let wrong = [
        UnknownArgument,
        InvalidSubcommand,
        InvalidValue,
        ValueValidation,
    ]
    .contains(&error.kind());
    (wrong && !named).then(|| error.to_string())
}

fn collect_long_options(command: &Command, found: &mut BTreeSet<String>) {
    for argument in command.get_arguments() {
        found.extend(argument.get_long().map(|name| format!("--{name}")));
        found.extend(
            argument
                .get_all_aliases()
                .into_iter()
                .flatten()
                .map(|name| format!("--{name}")),
        );
    }
    command
        .get_subcommands()
        .for_each(|inner| collect_long_options(inner, found));
}

#[test]
fn pages_name_commands_that_exist() {
    let (commands, _) = find_mentions();
    assert!(commands.len() > 300, "{} commands", commands.len());
    let said = |found: &Mention| {
        Some(format!(
            "{}: {}\n{}",
            found.page,
            found.line,
            find_problem(&found.line)?
        ))
    };
    let wrong: Vec<_> = commands.iter().filter_map(said).collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        commands.len(),
        wrong.join("\n")
    );
}

#[test]
fn pages_name_options_that_exist() {
    let mut known = BTreeSet::new();
    collect_long_options(&Cli::definition(), &mut known);
    let (_, options) = find_mentions();
    let unknown = options.iter().filter(|found| {
        let name = found
            .line
            .split([' ', '=', ',', '…'])
            .next()
            .unwrap_or_default();
        let begins = name.ends_with('-') && known.iter().any(|known| known.starts_with(name));
        !known.contains(name) && !FOREIGN.contains(&name) && !begins
    });
    let unknown: Vec<_> = unknown
        .map(|found| format!("{}: {}", found.page, found.line))
        .collect();
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn find_problem_detects_wrong_commands_and_options() {
    let wrong = [
        "haft modle list",
        "haft run --permision-mode ask x",
        "haft run --permission-mode asc x",
        "haft mcp ad x",
    ];
    for line in wrong {
        assert!(find_problem(line).is_some(), "{line}");
    }
    for line in [
        "haft run --permission-mode MODE",
        "haft KIND list",
        "haft config get",
        "haft run -r ID \"yes, do it\"",
    ] {
        assert!(
            find_problem(line).is_none(),
            "{line}: {:?}",
            find_problem(line)
        );
    }
    assert_eq!(
        simple_commands("A=1 haft run x | head && haft undo  # back"),
        ["haft run x", "haft undo"]
    );
}
