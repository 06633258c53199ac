//! The command line's own help and errors in the language of the process. English is clap's, out of
//! the doc comments. Chinese is made of it line by line: `messages/zh-CN/help.txt` has what the doc
//! comments say, `usage.txt` what clap does.

use std::io::{IsTerminal as _, Write as _};
use std::sync::LazyLock;

use clap::error::ErrorKind;
use haft_messages::{Language, Phrases};

/// Where lines are broken when there is no terminal.
const USUAL_COLUMNS: usize = 100;

/// English paragraphs without a period at their end, and what they are in Chinese.
static SAID: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::of(&[
        include_str!("../../messages/zh-CN/help.txt"),
        include_str!("../../messages/zh-CN/usage.txt"),
    ])
});

fn is_english() -> bool {
    haft_messages::spoken() == Language::English
}

/// The definition, whose help can be translated: a paragraph is a line.
pub(crate) fn translatable(definition: clap::Command) -> clap::Command {
    if is_english() {
        definition
    } else {
        definition.term_width(0)
    }
}

/// What clap says, or asks to be shown.
pub(crate) fn report(error: &clap::Error) {
    if is_english() || error.kind() == ErrorKind::DisplayVersion {
        drop(error.print());
        return;
    }
    let page = page(&error.render().ansi().to_string());
    if error.use_stderr() {
        let page = shown(&page, std::io::stderr().is_terminal());
        drop(writeln!(std::io::stderr(), "{}", page.trim_end()));
    } else {
        drop(print(&page));
    }
}

/// The short help of a command.
pub(crate) fn print_help(mut definition: clap::Command) -> anyhow::Result<()> {
    if is_english() {
        return Ok(definition.print_help()?);
    }
    print(&page(
        &translatable(definition).render_help().ansi().to_string(),
    ))
}

fn print(page: &str) -> anyhow::Result<()> {
    super::print_exact(&format!(
        "{}\n",
        shown(page, std::io::stdout().is_terminal()).trim_end()
    ))
}

/// The page with its styles where clap would show them, else without.
fn shown(page: &str, is_terminal: bool) -> String {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    if is_terminal && !dumb && !set("NO_COLOR") {
        page.to_owned()
    } else {
        unstyled(page)
    }
}

const STYLE: char = '\u{1b}';
const RESET: &str = "\u{1b}[0m";

/// The text without styles.
fn unstyled(text: &str) -> String {
    let mut parts = text.split(STYLE);
    let first = parts.next().unwrap_or_default().to_owned();
    first
        + &parts
            .filter_map(|part| part.split_once('m'))
            .map(|(_, text)| text)
            .collect::<String>()
}

/// What has a style in a line of clap's has it in its translation, too: names are the same in both,
/// and a heading ends with a colon.
fn restyled(english: &str, chinese: &str) -> String {
    let mut text = String::new();
    let mut rest = chinese;
    for piece in english.split(RESET) {
        let (Some(begin), Some(last)) = (piece.find(STYLE), piece.rfind(STYLE)) else {
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

/// A page in Chinese, broken for the terminal.
fn page(english: &str) -> String {
    let columns = haft_tui::columns().filter(|_| std::io::stdout().is_terminal());
    let columns = columns.map_or(USUAL_COLUMNS, |columns| columns.max(40));
    let mut text = String::new();
    let mut in_usage = false;
    for styled in english.lines() {
        let plain = unstyled(styled);
        in_usage = plain.starts_with("Usage:") || in_usage && plain.starts_with("       ");
        // The heading is a column shorter.
        let line = if in_usage {
            plain.strip_prefix(' ').unwrap_or(&plain)
        } else {
            &plain
        };
        let (front, said) = translated(line).unwrap_or_else(|| (String::new(), line.to_owned()));
        let hung = haft_tui::hung(&front, &said, columns);
        text += &(restyled(styled, &haft_text::sanitise(&hung)) + "\n");
    }
    text
}

/// A line in Chinese, in two parts: what stands before its text, and that; nothing where there is
/// no translation.
fn translated(line: &str) -> Option<(String, String)> {
    let text = line.trim_start();
    let (indent, _) = line.split_at(line.len() - text.len());
    if let Some(whole) = SAID.said(text) {
        return Some((indent.to_owned(), whole));
    }
    // `  -m, --model <MODEL>  The model`.
    let (at, gap) = text.rmatch_indices("  ").next()?;
    let (front, text) = text.split_at(at + gap.len());
    Some((format!("{indent}{front}"), SAID.said(text)?))
}

#[cfg(test)]
mod tests;
