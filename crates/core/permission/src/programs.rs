//! Names the programs that a command line starts, for the log. Arguments, assignments, and
//! redirects are never included.

use crate::shell::{CompoundCommand, ShellCommand, ShellScript, ShellWord, parse_line};

/// The maximum number of program names per line.
const MAX_NAMES: usize = 8;

/// The maximum number of characters in a name; a longer word is unlikely to be a program's name.
const MAX_NAME_CHARS: usize = 64;

/// Returns the names of the programs that `line` starts, without duplicates, in the order of their
/// first use. A program with a computed name is left out, and the result is empty for a line that
/// cannot be parsed.
pub fn find_program_names(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    if let Ok(script) = parse_line(line) {
        collect_script_names(&script, &mut names);
    }
    names
}

fn collect_script_names(script: &ShellScript, names: &mut Vec<String>) {
    for command in script.items.iter().flat_map(|pipeline| &pipeline.commands) {
        match command {
            ShellCommand::Simple(simple) => {
                if let Some(name) = simple.words.first().and_then(ShellWord::base_name)
                    && names.len() < MAX_NAMES
                    && is_plain_name(name)
                    && !names.iter().any(|known| known == name)
                {
                    names.push(name.to_owned());
                }
                simple
                    .assignments
                    .iter()
                    .chain(&simple.words)
                    .for_each(|word| collect_word_names(word, names));
            }
            ShellCommand::Compound(compound) => collect_compound_names(compound, names),
            ShellCommand::Function(function) => collect_compound_names(&function.body, names),
            ShellCommand::Test { words, .. } => words
                .iter()
                .for_each(|word| collect_word_names(word, names)),
        }
    }
}

fn collect_compound_names(compound: &CompoundCommand, names: &mut Vec<String>) {
    compound
        .words
        .iter()
        .for_each(|word| collect_word_names(word, names));
    compound
        .scripts
        .iter()
        .for_each(|script| collect_script_names(script, names));
}

fn collect_word_names(word: &ShellWord, names: &mut Vec<String>) {
    word.scripts
        .iter()
        .for_each(|script| collect_script_names(script, names));
}

fn is_plain_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._+-[".contains(c);
    !name.is_empty() && name.chars().count() <= MAX_NAME_CHARS && name.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_names_contain_no_arguments() {
        for (line, expected) in [
            ("git commit -m 'a secret'", vec!["git"]),
            (
                "TOKEN=secret make -j2 && ./run.sh secret | /usr/bin/tee out",
                vec!["make", "run.sh", "tee"],
            ),
            ("for x in secret; do echo $x; done", vec!["echo"]),
            ("echo $(cat secret.txt) > secret", vec!["echo", "cat"]),
            ("$PROGRAM secret", vec![]),
            ("'a secret sentence' x", vec![]),
            ("echo 'unfinished secret", vec![]),
            ("echo a; echo b", vec!["echo"]),
        ] {
            assert_eq!(find_program_names(line), expected, "{line}");
        }
    }
}
