//! The form of a summary: five sections under fixed headings, in a fixed order.
//!
//! haft writes the title and the time span. A model's text is parsed into the sections; a text in
//! any other form is refused, so that "ok" can never replace an archive.

use std::collections::BTreeSet;

use crate::reduce::compaction::SummaryRefusal;

/// The headings of a summary's sections, which stay English if the summary is in another language.
const HEADINGS: [&str; 5] = [
    "Objectives & Status",
    "Technical Context",
    "Completed Milestones",
    "Key Insights & Decisions",
    "File System State",
];
/// The number of sections of a summary that must have text.
const MIN_SECTIONS: usize = 3;
/// The title of an archive. Haft writes it, but a model may repeat it in its summary.
const TITLE: &str = "Archived Session Summary";
/// Texts that leave a section without content, as letters and digits only: marks of an empty
/// section, placeholders, and acknowledgments.
const EMPTY: [&str; 50] = [
    "none",
    "n/a",
    "na",
    "nothing",
    "nothingtoreport",
    "notapplicable",
    "empty",
    "unknown",
    "tbd",
    "todo",
    "tobefilledin",
    "tobedetermined",
    "placeholder",
    "text",
    "unchanged",
    "nochange",
    "nochanges",
    "asbefore",
    "same",
    "sameasbefore",
    "sameasabove",
    "asabove",
    "seeabove",
    "ok",
    "okay",
    "yes",
    "done",
    "alldone",
    "complete",
    "completed",
    "fine",
    "good",
    "sure",
    "gotit",
    "understood",
    "acknowledged",
    "noted",
    "summary",
    "summarized",
    "summarised",
    "无",
    "没有",
    "不适用",
    "同上",
    "好",
    "好的",
    "明白",
    "完成",
    "なし",
    "없음",
];

/// Returns the sections that have text, under their headings and in the order of the form. Text
/// before the first heading is dropped.
pub(super) fn extract_sections(summary: &str) -> Result<String, SummaryRefusal> {
    let mut sections: [Vec<&str>; HEADINGS.len()] = Default::default();
    let mut current = None;
    let mut is_fenced = false;
    for line in summary.lines() {
        let heading = if is_fenced {
            Heading::None
        } else {
            parse_heading(line)
        };
        match heading {
            Heading::Section(index) => current = Some(index),
            Heading::Title => current = None,
            Heading::Other(name) => return Err(SummaryRefusal::OtherHeading(name.to_owned())),
            Heading::None => {
                is_fenced ^= line.trim_start().starts_with("```");
                if let Some(index) = current {
                    sections[index].push(line);
                }
            }
        }
    }
    let filled: Vec<_> = HEADINGS
        .iter()
        .zip(&sections)
        .filter(|(_, lines)| lines.iter().any(|line| has_text(line)))
        .collect();
    // A sentence that is repeated under every heading is the text of one section.
    let different: BTreeSet<_> = filled
        .iter()
        .map(|(_, lines)| letters(&lines.concat()))
        .collect();
    if different.len() < MIN_SECTIONS {
        return Err(SummaryRefusal::TooFewSections {
            found: different.len(),
            needed: MIN_SECTIONS,
        });
    }
    let texts: Vec<_> = filled
        .iter()
        .map(|(heading, lines)| format!("## {heading}\n{}", lines.join("\n").trim()))
        .collect();
    Ok(texts.join("\n\n"))
}

/// The heading on a line of a summary, if there is one.
enum Heading<'a> {
    None,
    Title,
    /// One of [`HEADINGS`], given by its index.
    Section(usize),
    Other(&'a str),
}

fn parse_heading(line: &str) -> Heading<'_> {
    let line = line.trim();
    let marked = line.trim_start_matches('#');
    let is_marked =
        marked.len() < line.len() && (marked.is_empty() || marked.starts_with([' ', '\t']));
    let name = marked
        .trim_matches(|c: char| c.is_whitespace() || matches!(c, '#' | '*' | '_' | ':' | '：'));
    let number = name.trim_start_matches(|c: char| c.is_ascii_digit());
    let name = match number.strip_prefix(['.', ')']) {
        Some(rest) if number.len() < name.len() => rest.trim_start(),
        Some(_) | None => name,
    };
    let plain = |text: &str| text.to_lowercase().replace(" and ", " & ");
    let known = HEADINGS
        .iter()
        .position(|heading| plain(heading) == plain(name));
    match known {
        Some(index) => Heading::Section(index),
        None if plain(name) == plain(TITLE) => Heading::Title,
        None if is_marked && !name.is_empty() => Heading::Other(name),
        None => Heading::None,
    }
}

fn has_text(line: &str) -> bool {
    let text = letters(line);
    !text.is_empty() && !EMPTY.contains(&text.as_str())
}

/// Returns the letters, digits and slashes of a text, in lower case.
fn letters(text: &str) -> String {
    let is_kept = |c: &char| c.is_alphanumeric() || *c == '/';
    text.chars()
        .filter(is_kept)
        .collect::<String>()
        .to_lowercase()
}
