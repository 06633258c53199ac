//! Finds the commands that a wrapper such as `sudo`, `xargs` or `find` runs.

use std::rc::Rc;

use super::tables::{CommandForm, ProgramTables, WrapperEntry, program_tables};
use super::{CommandRole, shells};
use crate::shape::ANY;
use crate::shell::{ShellScript, ShellWord, WordSplitting, WordValue};

/// A word index beyond the end of every command, for an effect that is not in any word of the line,
/// so that no rule can name the effect.
pub(super) const UNREACHABLE_WORD: usize = usize::MAX / 2;
const LAUNCHES_PROGRAM: &str = "a program that runs what its arguments say";

/// Everything that one command runs: other commands, assignments, and scripts.
pub(super) struct InnerRuns {
    pub(super) role: CommandRole,
    pub(super) inner: Vec<InnerRun>,
}

impl InnerRuns {
    /// Returns the role of the command itself. The command can be transparent only if its name is
    /// not a path, because a path could lead to another program of that name.
    pub(super) fn role_for(&self, words: &[ShellWord]) -> CommandRole {
        let bare = words
            .first()
            .and_then(ShellWord::literal)
            .is_some_and(|name| !name.contains('/'));
        let wraps_one = matches!(self.inner.as_slice(), [InnerRun::Command { .. }]);
        if bare && wraps_one {
            self.role
        } else {
            CommandRole::Acts
        }
    }

    pub(super) fn none() -> Self {
        Self {
            role: CommandRole::Acts,
            inner: Vec::new(),
        }
    }

    /// Creates an unknown effect, which a rule can cover only by naming the word at index `at`.
    pub(super) fn opaque_at(at: usize, why: &'static str) -> Self {
        Self {
            role: CommandRole::Acts,
            inner: vec![InnerRun::Opaque { at, why }],
        }
    }
}

/// One command, assignment, or script that a command runs.
pub(super) enum InnerRun {
    Command {
        /// The index of the command's first word among the words of the wrapper.
        from: usize,
        words: Rc<[ShellWord]>,
        same_shell: bool,
    },
    Assignment {
        at: usize,
        word: ShellWord,
    },
    Script {
        /// The index of the last word that contains the script.
        at: usize,
        script: ShellScript,
        same_shell: bool,
    },
    Opaque {
        at: usize,
        why: &'static str,
    },
}

/// Returns everything that a command runs in addition to its own program.
pub(super) fn find_inner_runs(words: &[ShellWord]) -> InnerRuns {
    let Some(name) = words.first().and_then(ShellWord::base_name) else {
        return InnerRuns::none();
    };
    let Some(tables) = program_tables() else {
        return InnerRuns::opaque_at(UNREACHABLE_WORD, "a program that cannot be looked up");
    };
    match name {
        "eval" => shells::find_eval_runs(words),
        "command" if matches!(words.get(1).and_then(ShellWord::literal), Some("-v" | "-V")) => {
            InnerRuns::none()
        }
        _ if tables.find.contains(name) => find_exec_runs(words),
        _ if tables.shells.contains(name) || tables.foreign_shells.contains(name) => {
            shells::find_shell_runs(tables, name, words)
        }
        _ => {
            let wrapped = |wrapper| {
                skip_subcommand(tables, name, wrapper, words)
                    .map(|from| parse_known_wrapper(wrapper, words, from))
            };
            let runs = tables
                .find_wrapper(name)
                .and_then(wrapped)
                .unwrap_or_else(InnerRuns::none);
            if runs.inner.is_empty() && tables.launchers.contains(name) {
                find_launcher_runs(words)
            } else {
                runs
            }
        }
    }
}

/// Returns the index after the subcommand of a wrapper, or `None` if the subcommand runs no other
/// command.
fn skip_subcommand(
    tables: &ProgramTables,
    name: &str,
    wrapper: &WrapperEntry,
    words: &[ShellWord],
) -> Option<usize> {
    if wrapper.verbs.is_empty() {
        return Some(1);
    }
    let program = tables
        .find_programs(name)
        .find(|program| program.after.is_empty());
    let at = find_options_end(program.map_or(wrapper, |program| &program.before), words, 1).ok()?;
    let verb = |length: usize| {
        words
            .get(at..at + length)?
            .iter()
            .map(ShellWord::literal)
            .collect::<Option<Vec<_>>>()
    };
    let length = (1..=2)
        .find(|length| verb(*length).is_some_and(|verb| wrapper.verbs.contains(&verb.join(" "))))?;
    Some(at + length)
}

/// Returns the command that a wrapper with known options runs.
fn parse_known_wrapper(wrapper: &WrapperEntry, words: &[ShellWord], from: usize) -> InnerRuns {
    const UNKNOWN_OPTION: &str = "an option of a wrapper that this program does not know";
    let Ok(options) = find_options_end(wrapper, words, from) else {
        return InnerRuns::opaque_at(words.len() - 1, UNKNOWN_OPTION);
    };
    let mut at = options + wrapper.operands;
    let mut inner = Vec::new();
    while wrapper.assignments
        && let Some(word) = words.get(at)
        && crate::shell::is_assignment(&word.source)
    {
        inner.push(InnerRun::Assignment {
            at,
            word: word.clone(),
        });
        at += 1;
    }
    // Also if nothing seems to follow: one word may expand to several, and the last of them to a
    // command.
    if words.iter().take(at).any(|word| word.literal().is_none()) {
        return InnerRuns::opaque_at(
            words.len() - 1,
            "an option of a wrapper that only the shell knows",
        );
    }
    let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty()) else {
        return InnerRuns {
            role: CommandRole::Acts,
            inner,
        };
    };
    let rest: Vec<ShellWord> = match wrapper.command {
        CommandForm::Joined => return shells::build_joined_script_runs(words, at),
        CommandForm::WithInput => append_unknown_input(words.get(1..at).unwrap_or_default(), rest),
        CommandForm::Words => rest.to_vec(),
    };
    if wrapper.elsewhere {
        inner.push(InnerRun::Opaque {
            at,
            why: LAUNCHES_PROGRAM,
        });
    }
    inner.push(InnerRun::Command {
        from: at,
        words: rest.into(),
        same_shell: wrapper.same_shell,
    });
    InnerRuns {
        role: wrapper.role,
        inner,
    }
}

/// Returns the command that `xargs` runs, with the unknown input of `xargs` inserted or appended.
fn append_unknown_input(options: &[ShellWord], rest: &[ShellWord]) -> Vec<ShellWord> {
    let replaced = options.iter().enumerate().find_map(|(place, option)| {
        let option = option.literal()?;
        if option == "-I" || option == "--replace" {
            return options
                .get(place + 1)
                .and_then(ShellWord::literal)
                .map(str::to_owned);
        }
        option
            .strip_prefix("-I")
            .or_else(|| option.strip_prefix("--replace="))
            .map(str::to_owned)
    });
    match replaced {
        None => rest
            .iter()
            .cloned()
            .chain([ShellWord::unknown("…")])
            .collect(),
        Some(mark) => rest.iter().map(|word| replace_mark(word, &mark)).collect(),
    }
}

/// Returns `word` with its first `mark` replaced by unknown text.
fn replace_mark(word: &ShellWord, mark: &str) -> ShellWord {
    match word.literal().and_then(|text| text.split_once(mark)) {
        Some((lead, rest)) => ShellWord {
            source: word.source.clone(),
            text: WordValue::Dynamic {
                lead: lead.to_owned(),
                splits: WordSplitting::No,
            },
            shape: format!("{lead}{ANY}{rest}"),
            scripts: Vec::new(),
        },
        None => word.clone(),
    }
}

/// Returns the index after the options from `from` on, or, as an error, the index of an unknown
/// option.
pub(super) fn find_options_end(
    options: &WrapperEntry,
    words: &[ShellWord],
    from: usize,
) -> Result<usize, usize> {
    let mut at = from;
    while let Some(word) = words.get(at) {
        let Some(text) = word.literal() else {
            return Ok(at);
        };
        if text == "--" {
            return Ok(at + 1);
        }
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) = long
                .split_once('=')
                .map_or((long, None), |(name, value)| (name, Some(value)));
            at += match value {
                Some(_) if options.long_valued.contains(name) => 1,
                None if options.long_valued.contains(name) => 2,
                None if options.long.contains(name) => 1,
                _ => return Err(at),
            };
        } else if let Some(letters) = text.strip_prefix('-') {
            at += count_cluster_words(options, letters).ok_or(at)?;
        } else {
            return Ok(at);
        }
    }
    Ok(at)
}

/// Returns the number of words that a cluster of option letters occupies, including a separate
/// value, or `None` if a letter is unknown.
fn count_cluster_words(options: &WrapperEntry, letters: &str) -> Option<usize> {
    if letters.is_empty() {
        return options.lone_dash.then_some(1);
    }
    for (place, letter) in letters.char_indices() {
        if options.valued.contains(letter) {
            let last = place + letter.len_utf8() == letters.len();
            return Some(if last { 2 } else { 1 });
        }
        if !options.flags.contains(letter) {
            return None;
        }
    }
    Some(1)
}

/// Returns the commands that `find` runs for its files.
fn find_exec_runs(words: &[ShellWord]) -> InnerRuns {
    let mut inner = Vec::new();
    let runs = |word: &ShellWord| {
        matches!(
            word.literal(),
            Some("-exec" | "-execdir" | "-ok" | "-okdir")
        )
    };
    let mut at = 1;
    while let Some(place) = words.iter().skip(at).position(runs) {
        let from = at + place + 1;
        let rest = words.get(from..).unwrap_or_default();
        let is =
            |place: usize, text: &str| rest.get(place).and_then(ShellWord::literal) == Some(text);
        let ends = |place: &usize| {
            is(*place, ";") || (is(*place, "+") && *place > 0 && is(place - 1, "{}"))
        };
        let length = (0..rest.len()).find(ends).unwrap_or(rest.len());
        let command: Vec<ShellWord> = rest
            .iter()
            .take(length)
            .map(|word| replace_mark(word, "{}"))
            .collect();
        if !command.is_empty() {
            inner.push(InnerRun::Command {
                from,
                words: command.into(),
                same_shell: false,
            });
        }
        // Another `-exec` inside the command is one of the command's words.
        at = from + length;
    }
    InnerRuns {
        role: CommandRole::Acts,
        inner,
    }
}

/// Finds the effect of a launcher, a program with many ways to run others. A rule must name at
/// least the launcher's first operand.
fn find_launcher_runs(words: &[ShellWord]) -> InnerRuns {
    let operand = words.iter().skip(1).position(|word| !word.is_flag());
    let at = operand.map_or(UNREACHABLE_WORD, |place| place + 1);
    InnerRuns::opaque_at(at, LAUNCHES_PROGRAM)
}
