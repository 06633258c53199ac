//! The command line's own help and errors in the language of the process. English is clap's, out of the doc comments. Chinese is
//! made of it line by line: `messages/zh-CN/help.txt` has what the doc comments say, `usage.txt` what clap does.

use std::collections::HashMap;
use std::io::IsTerminal as _;
use std::sync::LazyLock;

use clap::error::ErrorKind;
use haft_messages::Language;

/// Where lines are broken when there is no terminal.
const USUAL_COLUMNS: usize = 100;

/// English paragraphs without a period at their end, and what they are in Chinese.
static SAID: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let files = [include_str!("../../messages/zh-CN/help.txt"), include_str!("../../messages/zh-CN/usage.txt")];
    let lines = files.into_iter().flat_map(str::lines).filter(|line| !line.starts_with('#') && !line.is_empty());
    let lines: Vec<_> = lines.collect();
    lines.chunks_exact(2).filter_map(|pair| Some((*pair.first()?, pair.last()?.trim()))).collect()
});

fn is_english() -> bool {
    haft_messages::spoken() == Language::English
}

/// The definition, whose help can be translated: a paragraph is a line.
pub(crate) fn translatable(definition: clap::Command) -> clap::Command {
    if is_english() { definition } else { definition.term_width(0) }
}

/// What clap says, or asks to be shown.
pub(crate) fn report(error: &clap::Error) {
    if is_english() || error.kind() == ErrorKind::DisplayVersion {
        drop(error.print());
    } else if error.use_stderr() {
        super::tell(page(&error.to_string()).trim_end());
    } else {
        drop(super::say(page(&error.to_string()).trim_end()));
    }
}

/// The short help of a command.
pub(crate) fn print_help(mut definition: clap::Command) -> anyhow::Result<()> {
    if is_english() {
        return Ok(definition.print_help()?);
    }
    super::say(page(&translatable(definition).render_help().to_string()).trim_end())
}

/// A page in Chinese, broken for the terminal.
fn page(english: &str) -> String {
    let columns = haft_tui::columns().filter(|_| std::io::stdout().is_terminal());
    let columns = columns.map_or(USUAL_COLUMNS, |columns| columns.max(40));
    let mut text = String::new();
    let mut in_usage = false;
    for line in english.lines() {
        in_usage = line.starts_with("Usage:") || in_usage && line.starts_with("       ");
        // The heading is a column shorter.
        let line = if in_usage { line.strip_prefix(' ').unwrap_or(line) } else { line };
        let (front, said) = translated(line).unwrap_or_else(|| (String::new(), line.to_owned()));
        text += &(haft_tui::hung(&front, &said, columns) + "\n");
    }
    text
}

/// A line in Chinese, in two parts: what stands before its text, and that; nothing where there is no translation.
fn translated(line: &str) -> Option<(String, String)> {
    let text = line.trim_start();
    let (indent, _) = line.split_at(line.len() - text.len());
    if let Some(whole) = said(text) {
        return Some((indent.to_owned(), whole));
    }
    // `  -m, --model <MODEL>  The model`.
    let (at, gap) = text.rmatch_indices("  ").next()?;
    let (front, text) = text.split_at(at + gap.len());
    Some((format!("{indent}{front}"), said(text)?))
}

/// A text in Chinese: as a whole, or by the form it has.
fn said(english: &str) -> Option<String> {
    let stem = english.strip_suffix('.').unwrap_or(english);
    let whole = SAID.get(stem).filter(|_| !stem.contains("{}")).map(|text| (*text).to_owned());
    let forms = || SAID.iter().filter(|(form, _)| form.contains("{}"));
    let by_form = || forms().find_map(|(form, text)| filled(text, &values(form, stem)?));
    let end = if stem == english { "" } else { "。" };
    if english.is_empty() { Some(String::new()) } else { Some(whole.or_else(by_form)? + end) }
}

/// What stands in a text for each `{}` of a form; nothing where it has another form.
fn values<'a>(form: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let mut parts = form.split("{}");
    let mut rest = text.strip_prefix(parts.next()?)?;
    let mut values = Vec::new();
    let parts: Vec<_> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        let is_last = at + 1 == parts.len();
        let (value, behind) = if is_last { (rest.strip_suffix(part)?, "") } else { rest.split_once(part)? };
        values.push(value);
        rest = behind;
    }
    Some(values)
}

/// The translation of a form with its values; nothing where one of them must be translated, and is not.
fn filled(template: &str, values: &[&str]) -> Option<String> {
    let mut parts = template.split('{');
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let (slot, behind) = part.split_once('}')?;
        let number: usize = slot.trim_end_matches(['!', '?']).parse().ok()?;
        let value = values.get(number.checked_sub(1)?)?;
        let own = said(value.trim_start()).filter(|_| slot.ends_with(['!', '?']));
        text += &own.or_else(|| (!slot.ends_with('!')).then(|| (*value).to_owned()))?;
        text += behind;
    }
    Some(text)
}

#[cfg(test)]
mod tests;
