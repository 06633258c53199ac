//! Finds synonyms that occur in programs and their documentation, such as "folder" and "directory".
//!
//! Only questions are expanded, and synonyms weigh less than the words of the question.

/// Returns the synonyms of `terms`, without the terms themselves.
pub(crate) fn find_synonyms(terms: &[String]) -> Vec<&'static str> {
    let asked: Vec<&str> = terms.iter().map(|term| strip_ending(term)).collect();
    let mut found = Vec::new();
    // Each line is a group of synonyms. A word may be in several groups.
    for group in include_str!("synonyms.txt")
        .lines()
        .map(|line| line.split(' '))
    {
        if group
            .clone()
            .any(|word| asked.contains(&strip_ending(word)))
        {
            for word in group {
                if !asked.contains(&strip_ending(word)) && !found.contains(&word) {
                    found.push(word);
                }
            }
        }
    }
    found
}

/// Removes a common English ending from a word of more than four letters. The result need not be a
/// word, because it is only compared with other results of this function.
fn strip_ending(word: &str) -> &str {
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
    fn synonyms_of_a_word_are_the_rest_of_its_group() {
        let asked = |terms: &[&str]| {
            find_synonyms(
                &terms
                    .iter()
                    .map(|term| (*term).to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(asked(&["folders"]), ["directory", "dir"]);
        assert_eq!(asked(&["folder", "directory"]), ["dir"]);
        assert!(asked(&["zebra"]).is_empty());
    }
}
