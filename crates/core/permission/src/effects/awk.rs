//! Finds the words of an `awk` command that could run a program or write a file.

use super::risks::{Risk, RiskPosition, may_be_option};
use crate::shell::ShellWord;

const MAY_RUN_OR_WRITE: &str = "could make `awk` write a file or run a program";

pub(super) fn find_risks(words: &[ShellWord]) -> Vec<Risk> {
    let mut risks = Vec::new();
    let mut note = |at: usize| {
        risks.push(Risk {
            at: RiskPosition::Word(at),
            what: MAY_RUN_OR_WRITE,
        });
    };
    let mut at = 1;
    let mut has_program = false;
    while let Some(word) = words.get(at) {
        match word.literal() {
            Some("--") if !has_program => {}
            // The value may be attached or the next word.
            Some("-F" | "-v") if !has_program => at += 1,
            Some(text) if !has_program && (text.starts_with("-F") || text.starts_with("-v")) => {}
            Some(text) if !has_program && text.len() > 1 && text.starts_with('-') => note(at),
            Some(text) => {
                if !has_program && !is_harmless(text) {
                    note(at);
                }
                has_program = true;
            }
            None => {
                if !has_program || may_be_option(word) {
                    note(at);
                }
                has_program = true;
            }
        }
        at += 1;
    }
    risks
}

/// True if an `awk` program contains nothing that could pipe, redirect, run, load, or change its
/// input. Returns false even for a harmless comparison with `>`.
fn is_harmless(program: &str) -> bool {
    !program.contains(['|', '>', '@'])
        && !["system", "getline", "ARGV", "SYMTAB"]
            .iter()
            .any(|word| program.contains(word))
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    #[test]
    fn is_harmless_accepts_only_programs_that_print() {
        assert!(is_harmless("{ print $1 }"));
        assert!(is_harmless("NR==1 && $2 ~ /x/ { n += $3 } END { print n }"));
        for program in [
            "BEGIN{system(\"id\")}",
            "{print > \"f\"}",
            "{print | \"sh\"}",
            "\"id\" | getline",
            "@load \"x\"",
            "{while((getline l)<\"f\")print l}",
            "BEGIN{ARGV[1]=\"f\";ARGC=2}1",
            "BEGIN{SYMTAB[\"ARG\" \"V\"][1]=\"f\"}1",
        ] {
            assert!(!is_harmless(program), "{program}");
        }
    }
}
