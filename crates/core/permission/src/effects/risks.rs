//! Words that make a known program run another one or write where it usually only reads: no prefix rule covers them unless it
//! names them itself.

use super::tables::{InputUse, ProgramEntry, tables};
use super::{awk, sed};
use crate::shell::{ShellWord, WordSplitting, WordValue};

/// A word that a rule must name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Risk {
    pub(crate) at: RiskPosition,
    /// A phrase that goes on after the word.
    pub(crate) what: &'static str,
}

/// What a rule must name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RiskPosition {
    /// The word at this place.
    Word(usize),
    /// Every word of the command.
    Whole,
    /// What comes in from elsewhere: no rule can.
    Input,
}

const RUNS: &str = "can make it run another program or write a file";
const UNKNOWN: &str = "is only known to the shell and could be such an option";

/// Everything in a command that a rule must name.
pub(super) fn risks(words: &[ShellWord]) -> Vec<Risk> {
    let Some(name) = words.first().and_then(ShellWord::base_name) else { return Vec::new() };
    let Some(tables) = tables() else {
        return vec![Risk { at: RiskPosition::Input, what: "cannot be looked up" }];
    };
    if tables.sed.contain(name) {
        return sed::risks(words);
    }
    if tables.awk.contain(name) {
        return awk::risks(words);
    }
    if tables.shell_state.contain(name) {
        return vec![Risk { at: RiskPosition::Whole, what: "changes what the shell does with the rest of the line" }];
    }
    let verb = words.iter().skip(1).find(|word| !word.is_flag()).and_then(ShellWord::literal);
    let mut risks = Vec::new();
    for program in tables.programs(name) {
        if program.after.is_none() || program.after.as_deref() == verb {
            look(program, words, &mut risks);
        }
    }
    risks
}

fn look(program: &ProgramEntry, words: &[ShellWord], risks: &mut Vec<Risk>) {
    let mut operands = Vec::new();
    for (at, word) in words.iter().enumerate().skip(1) {
        let risk = |what| Risk { at: RiskPosition::Word(at), what };
        if program.is_risky(word, at) {
            risks.push(risk(RUNS));
        } else if could_be_flag(word) {
            risks.push(risk(UNKNOWN));
        }
        if !word.is_flag() {
            operands.push(at);
            if program.stops_at_operand {
                break;
            }
        }
    }
    let text = |place: usize| operands.get(place).and_then(|at| words.get(*at)).and_then(ShellWord::literal);
    let operand = |place: usize| operands.get(place).and_then(|at| words.get(*at).map(|word| (*at, word)));
    let could_be = |place: usize, text: &str| operand(place).is_some_and(|(_, word)| could_be(word, text));
    let verb = program.verbs.iter().find(|verb| match verb.split_once(' ') {
        Some((first, second)) => could_be(0, first) && (could_be(1, second) || splits(operand(0))),
        None => could_be(0, verb),
    });
    if let (Some(verb), Some(at)) = (verb, operands.first()) {
        // A pair is named by its second word.
        let at = if verb.contains(' ') { operands.get(1).unwrap_or(at) } else { at };
        risks.push(Risk { at: RiskPosition::Word(*at), what: RUNS });
    }
    if let Some(place) = program.writes_from {
        for (count, at) in operands.iter().enumerate() {
            // A word that becomes several pushes those behind it on.
            if count >= place || splits(operand(count)) {
                risks.push(Risk { at: RiskPosition::Word(*at), what: "is a file it would write" });
            }
        }
    }
    let reads_input = match program.input {
        InputUse::Data => false,
        InputUse::CommandsBelow(enough) => operands.len() < enough || text(0) == Some("-"),
        InputUse::Commands => true,
    };
    // An option that a rule must name says where the commands come from instead.
    if reads_input && (risks.is_empty() || program.input == InputUse::Commands) {
        risks.push(Risk { at: RiskPosition::Input, what: "takes commands from its input" });
    }
}

impl ProgramEntry {
    fn is_risky(&self, word: &ShellWord, at: usize) -> bool {
        let text = match &word.text {
            WordValue::Literal(text) => text.as_str(),
            WordValue::Dynamic { lead, .. } => lead,
            WordValue::Home(_) => return false,
        };
        if self
            .words
            .iter()
            .any(|known| text == known || text.strip_prefix(known).is_some_and(|rest| rest.starts_with('=')))
            || self.prefixes.iter().any(|prefix| text.starts_with(prefix))
        {
            return true;
        }
        if self.assignments && text.contains('=') && !text.starts_with('-') {
            return true;
        }
        if let Some(long) = text.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or(long);
            // Most programs take the beginning of a long option for the whole.
            return !name.is_empty() && self.long.iter().any(|known| known.starts_with(name));
        }
        let bundled = at == 1 && self.bundles_first;
        match text.strip_prefix('-').or(bundled.then_some(text)) {
            Some(letters) => letters.contains(|letter| self.short.contains(letter)),
            None => false,
        }
    }
}

/// Whether a word is this one, or could turn out to be.
fn could_be(word: &ShellWord, text: &str) -> bool {
    match &word.text {
        WordValue::Literal(known) => known == text,
        WordValue::Home(_) => false,
        WordValue::Dynamic { splits: WordSplitting::Yes, .. } => true,
        WordValue::Dynamic { lead, splits: WordSplitting::No } => text.starts_with(lead.as_str()),
    }
}

/// Whether a word may become several: a pattern becomes the names of all files it fits.
fn splits(word: Option<(usize, &ShellWord)>) -> bool {
    word.is_some_and(|(_, word)| matches!(word.text, WordValue::Dynamic { .. }))
}

/// Whether a word that only the shell knows could turn out to be an option.
pub(super) fn could_be_flag(word: &ShellWord) -> bool {
    match &word.text {
        WordValue::Literal(_) | WordValue::Home(_) => false,
        WordValue::Dynamic { splits: WordSplitting::Yes, .. } => true,
        WordValue::Dynamic { lead, splits: WordSplitting::No } => lead.is_empty() || lead.starts_with('-'),
    }
}

/// Whether a command reads what its words name and writes none of it.
pub(crate) fn only_reads(words: &[ShellWord], risks: &[Risk]) -> bool {
    risks.is_empty()
        && words
            .first()
            .and_then(ShellWord::base_name)
            .is_some_and(|name| tables().is_some_and(|tables| tables.readers.contain(name)))
}
