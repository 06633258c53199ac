//! Finds web addresses in text.

use std::ops::Range;

const SCHEMES: [&str; 2] = ["https://", "http://"];
/// Characters of an address besides ASCII letters and digits.
const ADDRESS_SIGNS: &str = "-._~:/?#[]@!$&'()*+,;=%|{}";
/// Characters that end a sentence rather than an address.
const SENTENCE_ENDS: &str = ".,;:!?'";
const BRACKETS: [(char, char); 3] = [('(', ')'), ('[', ']'), ('{', '}')];

/// Returns the byte ranges of the web addresses in `text`. Punctuation after an address is not
/// part of it. Addresses consist of printable ASCII characters only.
pub(crate) fn find_addresses(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some((start, scheme)) = find_scheme(text, from) {
        let behind = start + scheme.len();
        let length = text[behind..]
            .find(|c: char| !c.is_ascii_alphanumeric() && !ADDRESS_SIGNS.contains(c))
            .unwrap_or(text.len() - behind);
        let end = behind + trim_punctuation(&text[behind..behind + length]).len();
        if end > behind {
            found.push(start..end);
        }
        from = end.max(behind);
    }
    found
}

fn find_scheme(text: &str, from: usize) -> Option<(usize, &'static str)> {
    SCHEMES
        .into_iter()
        .filter_map(|scheme| Some((from + text[from..].find(scheme)?, scheme)))
        .min()
}

/// Removes punctuation from the end, and closing brackets that were opened before the address.
fn trim_punctuation(address: &str) -> &str {
    let mut rest = address;
    loop {
        let shorter = rest.trim_end_matches(|c| SENTENCE_ENDS.contains(c));
        let unbalanced = BRACKETS.into_iter().find(|(open, close)| {
            shorter.ends_with(*close)
                && shorter.matches(*close).count() > shorter.matches(*open).count()
        });
        let shorter = match unbalanced {
            Some((_, close)) => shorter.strip_suffix(close).unwrap_or(shorter),
            None => shorter,
        };
        if shorter.len() == rest.len() {
            return rest;
        }
        rest = shorter;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(text: &str) -> Vec<&str> {
        find_addresses(text)
            .into_iter()
            .map(|range| &text[range])
            .collect()
    }

    #[test]
    fn addresses_end_before_punctuation_and_other_scripts() {
        for (text, wanted) in [
            ("see https://a.test/x, then", "https://a.test/x"),
            ("(https://a.test/b_(c))", "https://a.test/b_(c)"),
            (
                "<http://127.0.0.1:80/?a=b&c#d>.",
                "http://127.0.0.1:80/?a=b&c#d",
            ),
            ("见https://a.test/x，然后", "https://a.test/x"),
            ("[x](https://a.test).", "https://a.test"),
            ("\"https://a.test/\"", "https://a.test/"),
        ] {
            assert_eq!(addresses(text), [wanted], "{text}");
        }
        assert_eq!(
            addresses("http://a.test https://b.test"),
            ["http://a.test", "https://b.test"]
        );
        assert!(addresses("https:// and ftp://a.test and file:///x").is_empty());
    }
}
