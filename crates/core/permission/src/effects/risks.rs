//! Finds words that make a known program run another program, or write where it usually only reads.
//! A prefix rule covers such a word only if the rule names the word itself.

use super::tables::{
    InputUse, LongForm, NameList, ProgramEntry, ProgramTables, RemoteShell, program_tables,
};
use super::wrappers::find_options_end;
use super::{awk, sed};
use crate::shell::{ShellWord, WordSplitting, WordValue};

/// A part of a command that an allow rule must name, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Risk {
    pub(crate) at: RiskPosition,
    /// The reason, as a phrase that follows the word in a message.
    pub(crate) what: &'static str,
}

/// The part of a command that a rule must name to allow the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RiskPosition {
    /// The rule must name the word at this index.
    Word(usize),
    /// The rule must name every word of the command.
    Whole,
    /// The risk is in the program's input, which no rule can name.
    Input,
}

const MAY_RUN_OR_WRITE: &str = "can make it run another program or write a file";
const IS_UNKNOWN_OPTION: &str = "is not among the options that are known to be harmless";
const IS_REMOTE_SCRIPT: &str = "is read by a shell on the other machine";
const MAY_BE_RISKY_OPTION: &str = "is only known to the shell and could be such an option";

/// Returns all parts of a command that an allow rule must name to cover the command.
pub(crate) fn find_risks(words: &[ShellWord]) -> Vec<Risk> {
    let Some(name) = words.first().and_then(ShellWord::base_name) else {
        return Vec::new();
    };
    let Some(tables) = program_tables() else {
        return vec![Risk {
            at: RiskPosition::Input,
            what: "cannot be looked up",
        }];
    };
    if tables.sed.contains(name) {
        return sed::find_risks(words);
    }
    if tables.awk.contains(name) {
        return awk::find_risks(words);
    }
    if tables.shell_state.contains(name) {
        return vec![Risk {
            at: RiskPosition::Whole,
            what: "changes what the shell does with the rest of the line",
        }];
    }
    let main = tables
        .find_programs(name)
        .find(|program| program.after.is_empty());
    let verb = main
        .and_then(|program| program.find_subcommand(words, 1).ok())
        .filter(|place| *place < words.len());
    if let Some(module) = find_module(words) {
        return find_module_risks(words, module);
    }
    let mut risks = Vec::new();
    for program in tables.find_programs(name) {
        if program.after.is_empty() {
            add_word_risks(program, words, 1, &mut risks);
        } else if let Some(place) = verb
            && program
                .after
                .iter()
                .any(|after| may_be_text(&words[place], after))
        {
            add_word_risks(program, words, place + 1, &mut risks);
        }
    }
    risks
}

/// Returns the index of the module that an interpreter runs, as in `python3 -m pytest`. `None` if
/// the module's name is not literal, or if other options than flags precede it.
pub(crate) fn find_module(words: &[ShellWord]) -> Option<usize> {
    let name = words.first()?.base_name()?;
    let option = program_tables()?
        .find_programs(name)
        .find_map(|program| program.module_option.as_deref())?;
    let place = words
        .iter()
        .position(|word| word.literal() == Some(option))?;
    // Flags such as `-u` and `-B`. Options with values, and operands, are left alone.
    let only_flags = words[1..place].iter().all(|word| {
        word.literal().is_some_and(|text| {
            matches!(text, "-u" | "-B" | "-E" | "-I" | "-s" | "-S" | "-O" | "-OO")
        })
    });
    let module = words.get(place + 1)?.literal()?;
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    (only_flags && module.split('.').all(is_name)).then_some(place + 1)
}

/// Returns the risks of a module that an interpreter runs: a rule must name the option and the
/// module, and every word that it must name if the module is called as a program.
fn find_module_risks(words: &[ShellWord], module: usize) -> Vec<Risk> {
    let named = [module - 1, module].map(|at| Risk {
        at: RiskPosition::Word(at),
        what: MAY_RUN_OR_WRITE,
    });
    let own = find_risks(&words[module..]).into_iter().map(|risk| Risk {
        at: match risk.at {
            RiskPosition::Word(at) => RiskPosition::Word(at + module),
            place @ (RiskPosition::Whole | RiskPosition::Input) => place,
        },
        ..risk
    });
    named.into_iter().chain(own).collect()
}

/// Adds the risks of the words at index `from` and later.
fn add_word_risks(program: &ProgramEntry, words: &[ShellWord], from: usize, risks: &mut Vec<Risk>) {
    let mut operands = Vec::new();
    let mut reads_options = true;
    for (at, word) in words.iter().enumerate().skip(from) {
        reads_options &= word.literal() != Some("--");
        let risk = |what| Risk {
            at: RiskPosition::Word(at),
            what,
        };
        if program.is_risky(word, at) {
            risks.push(risk(MAY_RUN_OR_WRITE));
        } else if may_be_option(word) {
            risks.push(risk(MAY_BE_RISKY_OPTION));
        } else if reads_options && program.is_unknown_option(word) {
            risks.push(risk(IS_UNKNOWN_OPTION));
        } else if program.is_remote_script(word) {
            risks.push(risk(IS_REMOTE_SCRIPT));
        }
        if !word.is_flag() {
            operands.push(at);
            if program.stops_at_operand {
                break;
            }
        }
    }
    if !program.harmless.is_empty() {
        risks.extend(program.find_subcommand_risk(words, from));
    }
    let first = operands.first().and_then(|at| Some((*at, words.get(*at)?)));
    if let Some((at, word)) = first
        && program.verbs.iter().any(|verb| may_be_text(word, verb))
    {
        risks.push(Risk {
            at: RiskPosition::Word(at),
            what: MAY_RUN_OR_WRITE,
        });
    }
    if let Some(place) = program.writes_from {
        for (count, at) in operands.iter().enumerate() {
            // A word that expands to several words shifts those after it.
            if count >= place
                || words
                    .get(*at)
                    .is_some_and(|word| matches!(word.text, WordValue::Dynamic { .. }))
            {
                risks.push(Risk {
                    at: RiskPosition::Word(*at),
                    what: "is a file it would write",
                });
            }
        }
    }
    let reads_input = match program.input {
        InputUse::Data => false,
        InputUse::CommandsBelow(enough) => {
            operands.len() < enough || first.and_then(|(_, word)| word.literal()) == Some("-")
        }
        InputUse::Commands => true,
    };
    // If an option that a rule must name is present, it specifies the source of the commands
    // instead.
    let only_prints_info =
        matches!(words, [_, only] if matches!(only.literal(), Some("--version" | "--help")));
    if reads_input && !only_prints_info && (risks.is_empty() || program.input == InputUse::Commands)
    {
        risks.push(Risk {
            at: RiskPosition::Input,
            what: "takes commands from its input",
        });
    }
}

impl ProgramEntry {
    /// Returns the index of the program's subcommand, or, as an error, the index of an unknown
    /// option before the subcommand. For a program without harmless subcommands, the first operand
    /// counts as the subcommand.
    fn find_subcommand(&self, words: &[ShellWord], from: usize) -> Result<usize, usize> {
        if !self.harmless.is_empty() {
            return find_options_end(&self.before, words, from);
        }
        let operand = words.iter().skip(from).position(|word| !word.is_flag());
        Ok(operand.map_or(words.len(), |place| from + place))
    }

    /// Returns the risk of the program's subcommand, if there is one.
    fn find_subcommand_risk(&self, words: &[ShellWord], from: usize) -> Option<Risk> {
        const UNKNOWN_VERB: &str = "is not among the subcommands that are known to be harmless";
        const UNKNOWN_OPTION: &str = "has an option before its subcommand that is not known";
        match self.find_subcommand(words, from) {
            Err(_) => Some(Risk {
                at: RiskPosition::Whole,
                what: UNKNOWN_OPTION,
            }),
            Ok(place) => {
                let word = words.get(place)?;
                let known = word.literal().is_some_and(|verb| {
                    self.harmless
                        .iter()
                        .any(|known| match known.strip_suffix('*') {
                            Some(beginning) => verb.starts_with(beginning),
                            None => verb == known,
                        })
                });
                (!known).then_some(Risk {
                    at: RiskPosition::Word(place),
                    what: UNKNOWN_VERB,
                })
            }
        }
    }

    pub(super) fn is_risky(&self, word: &ShellWord, at: usize) -> bool {
        let text = match &word.text {
            WordValue::Literal(text) => text.as_str(),
            WordValue::Dynamic { lead, .. } => lead,
            WordValue::Home(_) => return false,
        };
        if self.words.iter().any(|known| {
            text == known
                || text
                    .strip_prefix(known)
                    .is_some_and(|rest| rest.starts_with('='))
        }) || self.prefixes.iter().any(|prefix| text.starts_with(prefix))
        {
            return true;
        }
        if self.assignments && text.contains('=') && !text.starts_with('-') {
            return true;
        }
        let name = text.trim_start_matches('-');
        let dashes = text.len() - name.len();
        let name = name.split('=').next().unwrap_or(name);
        let is_long = match self.long_form {
            // Most programs accept abbreviated long options.
            LongForm::Abbreviated => {
                dashes == 2 && self.long.iter().any(|known| known.starts_with(name))
            }
            LongForm::Exact => dashes == 2 && self.long.contains(name),
            LongForm::OneDash => {
                dashes > 0
                    && name.len() > 1
                    && self.long.iter().any(|known| known.starts_with(name))
            }
            LongForm::Whole => dashes > 0 && self.long.contains(name),
        };
        if dashes > 1 || is_long {
            return is_long && !name.is_empty();
        }
        let bundled = at == 1 && self.bundles_first;
        match text.strip_prefix('-').or(bundled.then_some(text)) {
            Some(letters) => letters.contains(|letter| self.short.contains(letter)),
            None => false,
        }
    }
}

impl ProgramEntry {
    /// True if a word is a long option that the program's list of known options does not contain.
    fn is_unknown_option(&self, word: &ShellWord) -> bool {
        let Some(name) = word.literal().and_then(|text| text.strip_prefix("--")) else {
            return false;
        };
        let name = name.split('=').next().unwrap_or(name);
        let is_known = |known: &str| match self.long_form {
            LongForm::Abbreviated | LongForm::OneDash => known.starts_with(name),
            LongForm::Exact | LongForm::Whole => known == name,
        };
        let before = &self.before;
        let lists = [&self.known, &before.long, &before.long_valued];
        !self.known.is_empty()
            && !name.is_empty()
            && !lists.iter().any(|list| list.iter().any(is_known))
    }

    /// True if a shell on another machine could interpret the word as more than a plain name.
    fn is_remote_script(&self, word: &ShellWord) -> bool {
        let is_plain = |c: char| c.is_alphanumeric() || "_./:=@%+,-".contains(c);
        let text = match &word.text {
            WordValue::Literal(text) | WordValue::Home(text) => text,
            WordValue::Dynamic { .. } => return self.remote_shell == RemoteShell::Words,
        };
        let is_read = match self.remote_shell {
            RemoteShell::None => false,
            RemoteShell::Words => true,
            RemoteShell::Paths => text.contains(':'),
        };
        is_read && !text.chars().all(is_plain)
    }
}

/// True if the value of a word is `text`, or may be `text` after expansion by the shell.
fn may_be_text(word: &ShellWord, text: &str) -> bool {
    match &word.text {
        WordValue::Literal(known) => known == text,
        WordValue::Home(_) => false,
        WordValue::Dynamic {
            splits: WordSplitting::Yes,
            ..
        } => true,
        WordValue::Dynamic {
            lead,
            splits: WordSplitting::No,
        } => text.starts_with(lead.as_str()),
    }
}

/// True if the value of a word is known only to the shell and may be an option.
pub(crate) fn may_be_option(word: &ShellWord) -> bool {
    match &word.text {
        WordValue::Literal(_) | WordValue::Home(_) => false,
        WordValue::Dynamic {
            splits: WordSplitting::Yes,
            ..
        } => true,
        WordValue::Dynamic {
            lead,
            splits: WordSplitting::No,
        } => lead.is_empty() || lead.starts_with('-'),
    }
}

/// True if a command reads the files that its words name and writes none of them.
pub(crate) fn only_reads(words: &[ShellWord], risks: &[Risk]) -> bool {
    risks.is_empty() && is_listed(words, |tables| &tables.readers)
}

/// True if a command changes none of the files that its words name, because the program or its
/// subcommand only reads.
pub(crate) fn changes_nothing(words: &[ShellWord], risks: &[Risk]) -> bool {
    let pair = || match words {
        [program, verb, ..] => Some(format!("{} {}", program.base_name()?, verb.literal()?)),
        _ => None,
    };
    only_reads(words, risks)
        || (risks.is_empty()
            && program_tables()
                .zip(pair())
                .is_some_and(|(tables, pair)| tables.lookers.contains(&pair)))
}

/// True if a command writes, moves or removes the files that its words name.
pub(crate) fn writes_named_files(words: &[ShellWord], risks: &[Risk]) -> bool {
    let may_write = is_listed(words, |tables| &tables.writers);
    may_write || (!risks.is_empty() && is_listed(words, |tables| &tables.readers))
}

/// True if a command discloses nothing of the content of the files that its words name.
pub(crate) fn shows_no_content(words: &[ShellWord]) -> bool {
    is_listed(words, |tables| &tables.closed)
}

fn is_listed(words: &[ShellWord], list: impl Fn(&ProgramTables) -> &NameList) -> bool {
    let name = words.first().and_then(ShellWord::base_name);
    name.zip(program_tables())
        .is_some_and(|(name, tables)| list(tables).contains(name))
}
