//! Rejects texts that cannot be a summary: empty or unfinished ones, and those that imitate another
//! speaker.
//!
//! The agent trusts a summary like its own memory, but the summary is made from text of any origin:
//! pages, files, output. Text that looks like a program's own marks, a change of speaker or an
//! order to forget is refused. A report of such text inside a line is accepted.

use std::sync::Arc;

use haft_types::{Entry, Role};

use crate::reduce::compaction::SummaryRefusal;
use crate::reduce::language::{ScriptCounts, WritingScript};

/// Tags and other markers that only programs write. A summary that contains one is refused.
const MARKS: [&str; 14] = [
    "<tool_call",
    "<function_call",
    "<invoke",
    "<session>",
    "</session>",
    "<archived_summary",
    "</archived_summary",
    "<system-reminder",
    "</system-reminder",
    "<system>",
    "<|im_start|>",
    "<|im_end|>",
    "<|system|>",
    "[inst]",
];

/// The beginnings of lines that introduce another speaker. `User:` and `System:` are missing
/// because either may begin a plain fact.
const SPEAKERS: [&str; 8] = [
    "Human:",
    "Assistant:",
    "USER:",
    "SYSTEM:",
    "[user",
    "[assistant",
    "[tool",
    "[system",
];

/// The verbs with which a line begins that revokes the agent's instructions.
const REVOKING_VERBS: [&str; 3] = ["ignore", "disregard", "forget"];
const REVOKED_OBJECTS: [&str; 6] = [
    "instruction",
    "instructions",
    "prompt",
    "prompts",
    "directions",
    "everything",
];

/// The beginnings of replies in which a model declines to write a summary.
const DECLINING_OPENINGS: [&str; 8] = [
    "i'm sorry",
    "i’m sorry",
    "i am sorry",
    "sorry,",
    "i can't",
    "i can’t",
    "i cannot",
    "as an ai",
];

/// The lowercase heading that every summary begins with.
const TITLE: &str = "archived session summary";

/// Removes the text that models put around a summary: an introduction, and a fence.
pub(super) fn strip_wrapping(summary: &str) -> &str {
    let mut text = summary.trim();
    let inner = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'));
    if let Some((language, inner)) = inner
        && language.chars().all(char::is_alphanumeric)
    {
        text = inner.trim();
    }
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let heading = line.trim_end().trim_matches(['#', '*', ' ', '\r']);
        if heading.eq_ignore_ascii_case(TITLE) {
            return text[start..].trim();
        }
        start += line.len();
    }
    text
}

/// Returns an error if the text cannot be a summary of these messages.
pub(super) fn check_content<'a>(
    summary: &str,
    messages: impl Iterator<Item = &'a Arc<Entry>>,
) -> Result<(), SummaryRefusal> {
    if !summary.chars().any(char::is_alphanumeric) {
        return Err(SummaryRefusal::Empty);
    }
    // Invisible characters would hide a mark from this check, but not from a model.
    let visible: String = summary.chars().filter(|c| !is_invisible(*c)).collect();
    let lower = visible.to_lowercase();
    if let Some(mark) = MARKS.into_iter().find(|mark| lower.contains(mark)) {
        return Err(SummaryRefusal::Hostile(mark));
    }
    if let Some(speaker) = SPEAKERS.into_iter().find(|speaker| {
        visible
            .lines()
            .any(|line| line.trim_start().starts_with(speaker))
    }) {
        return Err(SummaryRefusal::Hostile(speaker));
    }
    for line in lower.lines() {
        let line = line.trim_start_matches([' ', '\t', '-', '*', '>', '#', '"', '\'']);
        if let Some(order) = REVOKING_VERBS
            .into_iter()
            .find(|order| revokes_instructions(line, order))
        {
            return Err(SummaryRefusal::Hostile(order));
        }
    }
    if !lower.contains(TITLE)
        && DECLINING_OPENINGS
            .into_iter()
            .any(|beginning| lower.trim_start().starts_with(beginning))
    {
        return Err(SummaryRefusal::Declined);
    }
    if summary
        .lines()
        .filter(|line| line.trim_start().starts_with("```"))
        .count()
        % 2
        == 1
    {
        return Err(SummaryRefusal::Cut);
    }
    let users = messages.filter(|entry| entry.message.role == Role::User);
    let said: String = users.map(|entry| entry.message.joined_text()).collect();
    if is_other_language(summary, &said) {
        return Err(SummaryRefusal::OtherLanguage);
    }
    Ok(())
}

/// True if most of a summary is in a non-Latin script of which the user has not written a word.
/// Much of a user's text is pasted, so one word is enough.
fn is_other_language(summary: &str, said: &str) -> bool {
    const MIN_LETTERS: usize = 2;
    match ScriptCounts::from_text(summary).dominant_script() {
        WritingScript::Latin => false,
        script => ScriptCounts::from_text(said).count_letters(script) < MIN_LETTERS,
    }
}

/// True if the line orders the agent to forget its instructions.
fn revokes_instructions(line: &str, order: &str) -> bool {
    let Some(rest) = line
        .strip_prefix(order)
        .filter(|rest| rest.starts_with(' '))
    else {
        return false;
    };
    rest.split(|c: char| !c.is_alphanumeric())
        .take(8)
        .any(|word| REVOKED_OBJECTS.contains(&word))
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}
