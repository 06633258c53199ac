//! Compares the options of commands in any order, cluster, or spelling.

use super::tables::{LongForm, program_tables};
use crate::shell::WordValue;

/// A set of options, each stored under its canonical name.
#[derive(Debug)]
pub(crate) struct OptionSet(Vec<String>);

impl OptionSet {
    /// Collects the options among the words of `program`.
    pub(crate) fn from_words<'a>(
        program: &str,
        words: impl Iterator<Item = &'a WordValue>,
    ) -> Self {
        let texts = words.filter_map(|word| match word {
            WordValue::Literal(text) => Some(text.as_str()),
            WordValue::Home(_) | WordValue::Dynamic { .. } => None,
        });
        let clusters = program_tables().is_none_or(|tables| {
            tables
                .find_programs(program)
                .all(|program| matches!(program.long_form, LongForm::Abbreviated | LongForm::Exact))
        });
        let mut found = Vec::new();
        for text in texts
            .take_while(|text| *text != "--")
            .filter(|text| is_option(text))
        {
            if clusters && !text.starts_with("--") {
                let letters = text.chars().skip(1);
                found.extend(letters.flat_map(|letter| {
                    find_canonical_names(program, letter.encode_utf8(&mut [0; 4]))
                }));
            } else {
                let name = text.trim_start_matches('-');
                found.extend(find_canonical_names(
                    program,
                    name.split('=').next().unwrap_or(name),
                ));
            }
        }
        Self(found)
    }

    /// True if `others` contains every option of this set, in full or abbreviated.
    pub(crate) fn is_subset_of(&self, others: &Self) -> bool {
        self.0.iter().all(|wanted| {
            others.0.iter().any(|found| {
                wanted == found || (found.len() > 1 && wanted.starts_with(found.as_str()))
            })
        })
    }
}

/// True if a word has the form of an option.
pub(crate) fn is_option(text: &str) -> bool {
    text.len() > 1 && text.starts_with('-')
}

/// Returns the canonical name of an option: the first of its synonyms. If a long option is
/// abbreviated, several options may match, and all of their names are returned.
fn find_canonical_names(program: &str, option: &str) -> Vec<String> {
    let same = program_tables()
        .into_iter()
        .flat_map(|tables| &tables.spellings)
        .filter(|same| same.names.contains(program));
    let means = |known: &str| known == option || (option.len() > 1 && known.starts_with(option));
    let groups = same
        .flat_map(|same| &same.options)
        .filter(|group| group.iter().any(means));
    let firsts: Vec<String> = groups
        .filter_map(|group| group.iter().next().map(str::to_owned))
        .collect();
    if firsts.is_empty() {
        vec![option.to_owned()]
    } else {
        firsts
    }
}
