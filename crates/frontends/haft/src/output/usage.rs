//! Shows the help and the errors of the command line in the language of the process.
//!
//! English comes from the doc comments, through clap. For Chinese, the help of every command,
//! argument, and possible value is replaced with its message in
//! `messages/command_line/zh-CN/help.ftl` before clap renders the page. Clap's own texts, such as
//! headings and errors, are then translated line by line with `usage.ftl`.

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::sync::LazyLock;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{Arg, Command};
use haft_messages::{Language, MessageFile, Phrases, optional_message};

use crate::cli::Cli;
use crate::cli::reference;

/// The line width if output is not a terminal.
const DEFAULT_COLUMNS: usize = 100;

/// Help texts by command. `help-mcp-add` is the message of `haft mcp add`; its attributes are its
/// longer texts and the help of its arguments by their ids. `help-shared` has the help of arguments
/// that several commands share.
static HELP: MessageFile = MessageFile::new(
    "help",
    "",
    include_str!("../../messages/command_line/zh-CN/help.ftl"),
);

/// Clap's own texts in Chinese.
static CLAP_TEXTS: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new(&MessageFile::new(
        "usage",
        include_str!("../../messages/command_line/en/usage.ftl"),
        include_str!("../../messages/command_line/zh-CN/usage.ftl"),
    ))
});

/// Returns the Chinese help text of a key.
fn help_message(key: &str) -> Option<&'static str> {
    optional_message(&HELP, Language::Chinese, key)
}

fn is_english() -> bool {
    haft_messages::current_language() == Language::English
}

/// Disables clap's line breaks if its output will be translated: a paragraph must be one line.
pub(crate) fn disable_wrapping(definition: Command) -> Command {
    if is_english() {
        definition
    } else {
        definition.term_width(0)
    }
}

/// Renders a requested help page in the language of the process. Other errors stay as they are.
///
/// Translating the definition takes longer than parsing the arguments, so it is done only if a
/// page is shown.
pub(crate) fn translate_help(error: clap::Error, args: &[OsString]) -> clap::Error {
    let is_page = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if is_english() || !is_page {
        return error;
    }
    let mut definition = translate_definition(&Cli::definition());
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        definition = definition.arg_required_else_help(true);
    }
    definition
        .try_get_matches_from_mut(args)
        .err()
        .unwrap_or(error)
}

/// Returns the definition of the command line with all help texts in Chinese.
fn translate_definition(definition: &Command) -> Command {
    let definition = translate_command(definition.clone(), "help-haft").term_width(0);
    let template = reference::help_template(&definition, help_message);
    definition.help_template(template)
}

/// Translates the help of a command, its arguments, and its subcommands. A text without a
/// translation stays English.
fn translate_command(mut command: Command, key: &str) -> Command {
    let own = |name: &str| help_message(&format!("{key}.{name}"));
    if let Some(text) = help_message(key) {
        command = command.about(text);
    }
    if let Some(text) = own("long") {
        command = command.long_about(text);
    }
    if let Some(text) = own("after") {
        command = command.after_help(text);
    }
    if let Some(text) = own("after-long") {
        command = command.after_long_help(text);
    }
    command
        .mut_args(|arg| {
            translate_arg(arg, |name| {
                own(name).or_else(|| help_message(&format!("help-shared.{name}")))
            })
        })
        .mut_subcommands(|inner| {
            let parent = if key == "help-haft" { "help" } else { key };
            let key = format!("{parent}-{}", inner.get_name());
            translate_command(inner, &key)
        })
}

/// Translates the help of an argument and its possible values. `text` finds a translation by name.
fn translate_arg(mut arg: Arg, text: impl Fn(&str) -> Option<&'static str>) -> Arg {
    let id = arg.get_id().to_string();
    let has_help = arg.get_help().is_some();
    if let Some(text) = text(&id).filter(|_| has_help) {
        arg = arg.help(text);
    }
    let has_long_help = arg.get_long_help().is_some();
    if let Some(text) = text(&format!("{id}-long")).filter(|_| has_long_help) {
        arg = arg.long_help(text);
    }
    if !arg.get_action().takes_values() {
        return arg;
    }
    let values = arg.get_possible_values();
    if values.iter().all(|value| value.get_help().is_none()) {
        return arg;
    }
    let translated = |value: PossibleValue| {
        let name = format!("{id}-value-{}", value.get_name());
        match text(&name) {
            Some(text) => value.help(text),
            None => value,
        }
    };
    // The definition only renders pages, so the type that the values parse to does not matter.
    arg.value_parser(PossibleValuesParser::new(
        values.into_iter().map(translated),
    ))
}

/// Prints clap's error, or the help page that was requested.
pub(crate) fn print_error(error: &clap::Error) {
    if is_english() || error.kind() == ErrorKind::DisplayVersion {
        drop(error.print());
        return;
    }
    let page = translate_page(&error.render().ansi().to_string());
    if error.use_stderr() {
        let page = keep_or_strip_styles(&page, std::io::stderr().is_terminal());
        drop(writeln!(std::io::stderr(), "{}", page.trim_end()));
    } else {
        drop(print_page(&page));
    }
}

/// Prints the short help of haft.
pub(crate) fn print_help() -> anyhow::Result<()> {
    let mut definition = Cli::definition();
    if is_english() {
        return Ok(definition.print_help()?);
    }
    let mut definition = translate_definition(&definition);
    print_page(&translate_page(
        &definition.render_help().ansi().to_string(),
    ))
}

fn print_page(page: &str) -> anyhow::Result<()> {
    super::print_exact(&format!(
        "{}\n",
        keep_or_strip_styles(page, std::io::stdout().is_terminal()).trim_end()
    ))
}

/// Returns the page with its styles if clap would show them, else without styles.
fn keep_or_strip_styles(page: &str, is_terminal: bool) -> String {
    let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if is_terminal && !dumb && !no_color {
        page.to_owned()
    } else {
        strip_styles(page)
    }
}

const STYLE_START: char = '\u{1b}';
const RESET: &str = "\u{1b}[0m";

fn strip_styles(text: &str) -> String {
    let mut parts = text.split(STYLE_START);
    let first = parts.next().unwrap_or_default().to_owned();
    first
        + &parts
            .filter_map(|part| part.split_once('m'))
            .map(|(_, text)| text)
            .collect::<String>()
}

/// Copies the styles of a line from clap to its translation. Styled words are either names, which
/// are not translated, or headings, which end with a colon.
fn copy_styles(english: &str, chinese: &str) -> String {
    let mut text = String::new();
    let mut rest = chinese;
    for piece in english.split(RESET) {
        let (Some(begin), Some(last)) = (piece.find(STYLE_START), piece.rfind(STYLE_START)) else {
            continue;
        };
        let Some((code, word)) = piece[last..].split_once('m') else {
            continue;
        };
        let style = &piece[begin..=last + code.len()];
        let blanks = rest.len() - rest.trim_start().len();
        let heading = || {
            rest.find('：')
                .filter(|_| word.ends_with(':'))
                .map(|end| (blanks, end + '：'.len_utf8()))
        };
        let Some((from, to)) = rest
            .find(word)
            .map(|at| (at, at + word.len()))
            .or_else(heading)
        else {
            continue;
        };
        text.extend([&rest[..from], style, &rest[from..to], RESET]);
        rest = &rest[to..];
    }
    text + rest
}

/// Translates a page to Chinese and wraps it for the terminal.
fn translate_page(english: &str) -> String {
    let columns = haft_tui::terminal_columns().filter(|_| std::io::stdout().is_terminal());
    let columns = columns.map_or(DEFAULT_COLUMNS, |columns| columns.max(40));
    let mut text = String::new();
    let mut in_usage = false;
    for styled in english.lines() {
        let plain = strip_styles(styled);
        in_usage = plain.starts_with("Usage:") || in_usage && plain.starts_with("       ");
        // In Chinese, the heading is one column shorter.
        let line = if in_usage {
            plain.strip_prefix(' ').unwrap_or(&plain)
        } else {
            &plain
        };
        let (front, said) = translate_line(line);
        let hung = haft_tui::wrap_after_front(&front, &said, columns);
        text += &(copy_styles(styled, &haft_text::sanitize(&hung)) + "\n");
    }
    text
}

/// Splits a line from clap into its front, such as an option, and its text. The text is translated
/// if it is clap's own.
fn translate_line(line: &str) -> (String, String) {
    let text = line.trim_start();
    let (indent, _) = line.split_at(line.len() - text.len());
    // `- json:  One JSON object`, a value of an argument.
    if let Some((name, help)) = text.strip_prefix("- ").and_then(|it| it.split_once(':')) {
        return (
            indent.to_owned(),
            format!("- {name}：{}", help.trim_start()),
        );
    }
    // `  -m, --model <MODEL>  The model`.
    let front = text.rfind("  ").map_or(0, |at| at + 2);
    let (front, text) = text.split_at(front);
    let text = CLAP_TEXTS
        .translate(text)
        .unwrap_or_else(|| text.to_owned());
    (format!("{indent}{front}"), text)
}

#[cfg(test)]
mod tests;
