//! Words that mean much the same in programs and their documents: who asks for a folder may mean a
//! directory.
//!
//! Only the question is widened, and what is found this way counts less than the words that were
//! used.

/// Words that mean much the same as one of these, without these themselves.
pub(crate) fn of(terms: &[String]) -> Vec<&'static str> {
    let asked: Vec<&str> = terms.iter().map(|term| stem(term)).collect();
    let mut found = Vec::new();
    // One group of them a line; a word may stand in several.
    for group in include_str!("synonyms.txt")
        .lines()
        .map(|line| line.split(' '))
    {
        if group.clone().any(|word| asked.contains(&stem(word))) {
            for word in group {
                if !asked.contains(&stem(word)) && !found.contains(&word) {
                    found.push(word);
                }
            }
        }
    }
    found
}

/// A word without its ending, roughly: enough to find it in a group.
fn stem(word: &str) -> &str {
    if word.len() <= 4 {
        return word;
    }
    let endings = ["ings", "ing", "ed", "es", "s"];
    endings
        .iter()
        .find_map(|ending| word.strip_suffix(ending))
        .unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_bring_those_of_their_group_but_not_themselves() {
        let asked = |terms: &[&str]| {
            of(&terms
                .iter()
                .map(|term| (*term).to_owned())
                .collect::<Vec<_>>())
        };
        assert_eq!(asked(&["folders"]), ["directory", "dir"]);
        assert_eq!(asked(&["folder", "directory"]), ["dir"]);
        assert!(asked(&["zebra"]).is_empty());
    }
}
