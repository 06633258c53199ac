//! Extracts the part of a text that contains the words of a query, on one line, with the words
//! highlighted.

use haft_text::{TermScript, fold_char};

use super::Snippet;
use super::index_terms::TERM_STYLE;
use super::query::SearchItem;

/// The length of a snippet in characters.
const SNIPPET_LEN: usize = 120;
/// The maximum number of characters of a snippet before its first match.
const MAX_LEAD_LEN: usize = 30;
/// The maximum number of matches that are collected; more matches would not improve the snippet.
const MAX_MATCHES: usize = 1_000;

/// The start and end of a match in a text, in characters, and the needle that matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SnippetMatch {
    start: usize,
    end: usize,
    /// The index of the needle that matched.
    needle: usize,
}

/// A run of characters to search for.
struct Needle {
    chars: Vec<char>,
    script: TermScript,
    prefix: bool,
}

/// Returns the best excerpt of the text for these items; `None` if the text contains none of them.
pub(crate) fn find_snippet(text: &str, items: &[SearchItem]) -> Option<Snippet> {
    let original: Vec<char> = text.chars().collect();
    let folded: Vec<char> = original.iter().copied().map(fold_char).collect();
    let needles: Vec<Needle> = items.iter().flat_map(build_needles).collect();
    let places = find_matches(&original, &folded, &needles);
    let best = find_best_match(&places)?;
    Some(cut_snippet(&original, &places, best))
}

/// Returns a snippet of a conversation's name and description; `None` unless every item occurs in
/// the name or the description.
pub fn find_name_snippet(name: &str, description: &str, items: &[SearchItem]) -> Option<Snippet> {
    let text = if description.is_empty() {
        name.to_owned()
    } else {
        format!("{name}: {description}")
    };
    let holds = |item: &SearchItem| match item.runs.as_slice() {
        [_] => find_snippet(&text, std::slice::from_ref(item)).is_some(),
        _ => item.is_phrase_in(name) || item.is_phrase_in(description),
    };
    let every = items.iter().all(holds);
    if every {
        find_snippet(&text, items)
    } else {
        None
    }
}

fn build_needles(item: &SearchItem) -> impl Iterator<Item = Needle> + '_ {
    let last = item.runs.len() - 1;
    item.runs
        .iter()
        .enumerate()
        .map(move |(index, (script, run))| Needle {
            chars: run.chars().collect(),
            script: *script,
            prefix: item.prefix && index == last,
        })
}

fn find_matches(original: &[char], folded: &[char], needles: &[Needle]) -> Vec<SnippetMatch> {
    let mut places = Vec::new();
    for start in 0..folded.len() {
        for (needle, wanted) in needles.iter().enumerate() {
            let end = start + wanted.chars.len();
            if folded.get(start..end) == Some(wanted.chars.as_slice())
                && is_whole_match(wanted, original, start, end)
            {
                places.push(SnippetMatch { start, end, needle });
            }
        }
        if places.len() >= MAX_MATCHES {
            break;
        }
    }
    places
}

/// True if the match is a whole word or a part of a compound name.
fn is_whole_match(wanted: &Needle, original: &[char], start: usize, end: usize) -> bool {
    if wanted.script == TermScript::Unspaced {
        return true;
    }
    let begins =
        start == 0 || !original[start - 1].is_alphanumeric() || is_part_start(original, start);
    let ends = wanted.prefix
        || original.get(end).is_none_or(|c| !c.is_alphanumeric())
        || is_part_start(original, end);
    begins && ends
}

/// True if a part of a compound name may begin at the character `at`, like a word in camel case.
fn is_part_start(original: &[char], at: usize) -> bool {
    original.get(at).is_some_and(|c| c.is_uppercase())
        || TERM_STYLE.classify_char(original[at - 1]) != TERM_STYLE.classify_char(original[at])
}

/// Returns the match that gives the snippet with the most different needles; of several such
/// matches, the first.
fn find_best_match(places: &[SnippetMatch]) -> Option<SnippetMatch> {
    let near = |place: &SnippetMatch| {
        let mut seen: Vec<usize> = places
            .iter()
            .filter(|other| {
                other.start >= place.start && other.end <= place.start + SNIPPET_LEN - MAX_LEAD_LEN
            })
            .map(|other| other.needle)
            .collect();
        seen.sort_unstable();
        seen.dedup();
        seen.len()
    };
    // Checking every match would be quadratic.
    let first = places.first().copied()?;
    Some(
        places
            .iter()
            .take(100)
            .copied()
            .fold((near(&first), first), |(most, best), place| {
                let here = near(&place);
                if here > most {
                    (here, place)
                } else {
                    (most, best)
                }
            })
            .1,
    )
}

fn cut_snippet(original: &[char], places: &[SnippetMatch], best: SnippetMatch) -> Snippet {
    let mut from = best.start.saturating_sub(MAX_LEAD_LEN);
    let to = original.len().min(from + SNIPPET_LEN.max(best.end - from));
    // Avoids starting inside a word if a space is near.
    if from > 0
        && let Some(space) = original[from..best.start]
            .iter()
            .position(|c| c.is_whitespace())
    {
        from += space + 1;
    }
    let mut text = String::new();
    let mut shift = 0;
    if from > 0 {
        text.push('…');
        shift = 1;
    }
    text.extend(original[from..to].iter().map(|c| {
        if c.is_whitespace() || c.is_control() {
            ' '
        } else {
            *c
        }
    }));
    if to < original.len() {
        text.push('…');
    }
    let mut highlights: Vec<(usize, usize)> = Vec::new();
    for place in places
        .iter()
        .filter(|place| place.start >= from && place.end <= to)
    {
        let start = place.start - from + shift;
        let end = place.end - from + shift;
        match highlights.last_mut() {
            Some(last) if start < last.1 => last.1 = last.1.max(end),
            Some(_) | None => highlights.push((start, end)),
        }
    }
    Snippet { text, highlights }
}

#[cfg(test)]
mod tests {
    use super::super::query::parse_items;
    use super::*;

    fn marked(text: &str, query: &str) -> Option<String> {
        find_snippet(text, &parse_items(query)).map(|snippet| snippet.with_highlights("[", "]"))
    }

    #[test]
    fn snippet_marks_whole_words_in_any_case() {
        assert_eq!(
            marked("The Login test: log in, LOGIN.", "login").unwrap(),
            "The [Login] test: log in, [LOGIN]."
        );
        assert_eq!(marked("Das ÜBER", "über").unwrap(), "Das [ÜBER]");
        assert_eq!(marked("relogin", "login"), None);
        assert_eq!(
            marked("the deployment", "deplo*").unwrap(),
            "the [deplo]yment"
        );
        assert_eq!(
            marked("run readFile or read_file", "file read").unwrap(),
            "run [read][File] or [read]_[file]"
        );
        assert_eq!(
            marked("call readFile", "readfile").unwrap(),
            "call [readFile]"
        );
    }

    #[test]
    fn snippet_marks_scripts_without_spaces_anywhere() {
        assert_eq!(
            marked("請運行測試然後提交", "測試").unwrap(),
            "請運行[測試]然後提交"
        );
        assert_eq!(marked("測試ok了", "測試ok").unwrap(), "[測試][ok]了");
    }

    #[test]
    fn snippet_cuts_a_long_text_around_the_best_match() {
        let text = format!(
            "apple {} the apple and\nthe pear {}",
            "filler ".repeat(100),
            "more ".repeat(100)
        );
        let marked = marked(&text, "pear apple").unwrap();
        assert!(marked.starts_with('…') && marked.ends_with('…'), "{marked}");
        assert!(
            marked.contains("the [apple] and the [pear] more"),
            "{marked}"
        );
        assert!(marked.chars().count() < SNIPPET_LEN + 10, "{marked}");
    }

    #[test]
    fn in_name_matches_phrases_within_one_field() {
        let found = |name: &str, about: &str, query: &str| {
            find_name_snippet(name, about, &parse_items(query)).is_some()
        };
        assert!(found("Fix the login form", "", "\"login form\""));
        assert!(
            !found("The form of a login", "", "\"login form\""),
            "the order counts"
        );
        assert!(!found("login", "form", "\"login form\""), "not across both");
        assert!(found("The form of a login", "", "login form"));
        assert!(
            found("x", "the Login  Forms", "\"login form*\"")
                && found("readFile now", "", "read_file")
        );
        assert!(found("請運行測試ok", "", "測試ok"));
    }

    #[test]
    fn snippet_is_none_without_a_match() {
        assert_eq!(marked("", "a"), None);
        assert_eq!(marked("other words", "absent"), None);
    }
}
