//! Parses a search query into items, all of which must be found.

use haft_text::{TermScript, TextRun};

use super::index_terms::{TERM_STYLE, extract_run_terms, extract_terms};

/// One word or phrase of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchItem {
    /// The runs of the item with their scripts, in order and in lowercase.
    pub(crate) runs: Vec<(TermScript, String)>,
    /// The terms of the item in their indexed form, in order.
    pub terms: Vec<String>,
    /// True if the last term matches any word that begins with it.
    pub prefix: bool,
}

impl SearchItem {
    /// True if the terms occur consecutively in a text.
    pub(crate) fn is_phrase_in(&self, text: &str) -> bool {
        let all = extract_terms(text);
        let terms: Vec<_> = all.split(' ').collect();
        let same = |(index, (term, wanted)): (usize, (&&str, &String))| {
            let last = index + 1 == self.terms.len();
            *term == wanted || self.prefix && last && term.starts_with(wanted.as_str())
        };
        terms
            .windows(self.terms.len().max(1))
            .any(|window| window.iter().zip(&self.terms).enumerate().all(same))
    }
}

/// Parses the items of a query. Returns no items if the query contains no word.
pub(crate) fn parse_items(text: &str) -> Vec<SearchItem> {
    let mut items = Vec::new();
    // Every second piece was in quotes; an unclosed quote extends to the end.
    for (index, piece) in text.split('"').enumerate() {
        if index % 2 == 1 {
            items.extend(parse_item(piece));
        } else {
            items.extend(piece.split_whitespace().filter_map(parse_item));
        }
    }
    items
}

fn parse_item(text: &str) -> Option<SearchItem> {
    let runs: Vec<TextRun<'_>> = TERM_STYLE.split_runs(text).collect();
    let last = runs.last()?;
    let mut terms: Vec<String> = runs.iter().flat_map(extract_run_terms).collect();
    let mut prefix = text.ends_with('*');
    if last.script == TermScript::Unspaced {
        if last.text.chars().count() > 1 {
            // In the searched text the run may continue after this one ends.
            terms.pop();
        } else {
            prefix = true;
        }
    }
    let runs = runs
        .iter()
        .map(|run| (run.script, run.fold_text()))
        .collect();
    Some(SearchItem {
        runs,
        terms,
        prefix,
    })
}

/// Returns the query in the syntax of FTS5. Terms contain only letters and digits, so they need no
/// escaping.
pub(crate) fn to_fts5_query(items: &[SearchItem]) -> String {
    let phrases = items.iter().map(|item| {
        format!(
            "\"{}\"{}",
            item.terms.join(" "),
            if item.prefix { " *" } else { "" }
        )
    });
    phrases.collect::<Vec<_>>().join(" AND ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_fts5(text: &str) -> String {
        to_fts5_query(&parse_items(text))
    }

    #[test]
    fn parse_recognizes_words_phrases_and_prefixes() {
        assert_eq!(as_fts5("login Test"), r#""login" AND "test""#);
        assert_eq!(
            as_fts5(r#"the "exact words" deplo*"#),
            r#""the" AND "exact words" AND "deplo" *"#
        );
        assert_eq!(as_fts5("read_file"), r#""read file""#);
        assert_eq!(as_fts5(r#""unclosed phrase"#), r#""unclosed phrase""#);
    }

    #[test]
    fn parse_splits_scripts_without_spaces_into_pairs() {
        assert_eq!(as_fts5("測試"), r#""測試""#);
        assert_eq!(as_fts5("行測試"), r#""行測 測試""#);
        assert_eq!(as_fts5("測"), r#""測" *"#);
        assert_eq!(as_fts5("測試ok"), r#""測試 試 ok""#);
    }

    #[test]
    fn parse_quotes_fts5_operators() {
        assert_eq!(
            as_fts5("a AND (b OR NEAR(c)) ^d -e col:f"),
            r#""a" AND "and" AND "b" AND "or" AND "near c" AND "d" AND "e" AND "col f""#
        );
        assert_eq!(as_fts5("!? \"\" * "), "");
    }
}
