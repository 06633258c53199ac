//! Built-in knowledge of whole commands: rules for commands that read and cannot change anything,
//! and rules for commands that commit and do nothing else.
//!
//! Invariant: a built-in rule covers a command only inside the sandbox that limits writes to the
//! project and blocks the network, with options that `builtin/reading.toml` lists, and with paths
//! in the project that are not protected. A command with any other word needs an approval.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use haft_tool::{Workspace, follow_links};
use haft_types::PROTECTED_PATHS;
use serde::Deserialize;

use super::effects::{self, ProgramRun, WorkingFolders};
use super::protected::{find_protected_name, find_protected_name_in_workspace};
use super::rule::{EXECUTE_TOOL, PermissionRule};
use super::shape;
use super::shell::{ShellWord, WordSplitting, WordValue};

/// A built-in rule that covers a read-only command or a commit, if all of its words are among those
/// that the rule lists.
#[derive(Debug)]
pub(super) struct ReadingRule {
    pub(super) rule: PermissionRule,
    command: ReadingCommand,
}

/// An entry of `reading.toml`, where the fields are documented.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ReadingCommand {
    rule: String,
    flags: String,
    valued: String,
    long: Vec<String>,
    long_valued: Vec<String>,
    words: Vec<String>,
    words_valued: Vec<String>,
    numbers: bool,
    operands: OperandKind,
    patterns: Vec<String>,
    most: Option<usize>,
    script: Option<String>,
    without: Vec<String>,
    files_only: bool,
    expanded: bool,
}

/// The kind of operands that a command takes; `reading.toml` describes each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OperandKind {
    #[default]
    Paths,
    Inside,
    Text,
    Pattern,
    None,
    Any,
}

#[derive(Deserialize)]
struct ReadingTable {
    command: Vec<ReadingCommand>,
}

/// Returns the rules for reading commands. The list is empty if the table cannot be parsed, which a
/// test rules out.
pub(super) fn reading_rules() -> &'static [ReadingRule] {
    static RULES: LazyLock<Vec<ReadingRule>> =
        LazyLock::new(|| parse_rules(include_str!("builtin/reading.toml")));
    &RULES
}

/// Returns the rules for commands that write only the parts of a repository that a commit changes,
/// and that run no other program.
pub(super) fn commit_rules() -> &'static [ReadingRule] {
    static RULES: LazyLock<Vec<ReadingRule>> =
        LazyLock::new(|| parse_rules(include_str!("builtin/commits.toml")));
    &RULES
}

fn parse_rules(table: &str) -> Vec<ReadingRule> {
    let table: Option<ReadingTable> = toml::from_str(table).ok();
    let commands = table.into_iter().flat_map(|table| table.command);
    let rule = |command: ReadingCommand| {
        let rule =
            PermissionRule::parse(&format!("{EXECUTE_TOOL}({}:*)", command.rule), None).ok()?;
        Some(ReadingRule { rule, command })
    };
    commands.filter_map(rule).collect()
}

impl ReadingRule {
    /// True if the command is git, which reads the configuration of the folder that it runs in.
    pub(super) fn runs_git(&self) -> bool {
        self.command.rule.split(' ').next() == Some("git")
    }

    /// Returns a command line for each long option that the rule lists.
    #[cfg(test)]
    pub(super) fn example_lines(&self) -> Vec<String> {
        let ReadingCommand {
            rule,
            long,
            long_valued,
            ..
        } = &self.command;
        let options = long.iter().chain(long_valued);
        options.map(|option| format!("{rule} --{option}")).collect()
    }

    /// Returns true if the rule covers the whole command.
    pub(super) fn covers(&self, run: &ProgramRun, workspace: &Workspace) -> bool {
        let mut words: Vec<&ShellWord> = run.words.iter().collect();
        let starts_so = |words: &[&ShellWord], at: usize, text: &str| {
            words.get(at).and_then(|word| word.literal()) == Some(text)
        };
        if self.runs_git() && starts_so(&words, 1, "--no-pager") {
            words.remove(1);
        }
        let named: Vec<&str> = self.command.rule.split(' ').collect();
        if !named
            .iter()
            .enumerate()
            .all(|(at, text)| starts_so(&words, at, text))
        {
            return false;
        }
        let place = CommandPlace {
            folders: &run.folders,
            workspace,
        };
        let rest = &words[named.len()..];
        (!self.runs_git() || place.has_no_bare_repository())
            && self.command.accepts_words(rest, &place)
            && run.risks.iter().all(|risk| match risk.at {
                // A pattern's expansion was already checked by `accepts_words`.
                effects::RiskPosition::Word(at) => run
                    .words
                    .get(at)
                    .is_some_and(|word| word.literal().is_none()),
                effects::RiskPosition::Whole | effects::RiskPosition::Input => false,
            })
    }
}

/// The state of parsing a command's words: options are recognized until `--`, and after it every
/// word is an operand.
enum ParseState {
    Options,
    OperandsOnly,
}

impl ReadingCommand {
    /// Returns true if these words may follow the command's name.
    fn accepts_words(&self, words: &[&ShellWord], place: &CommandPlace<'_>) -> bool {
        if self.operands == OperandKind::Any {
            return words.iter().all(|word| word.literal().is_some());
        }
        let mut reading = ParseState::Options;
        let mut operands = Vec::new();
        let mut has_pattern = false;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(text) = word.literal() else {
                operands.push(*word);
                continue;
            };
            match self.classify_word(text, &reading) {
                WordKind::Unlisted => return false,
                WordKind::Listed => {}
                WordKind::Operand => operands.push(*word),
                WordKind::EndOfOptions => reading = ParseState::OperandsOnly,
                WordKind::Test => {
                    if words.next().and_then(|value| value.literal()).is_none() {
                        return false;
                    }
                }
                WordKind::Option { name, wants_value } => {
                    let is_pattern = self.patterns.contains(&name);
                    has_pattern |= is_pattern;
                    if !wants_value {
                        continue;
                    }
                    let is_fit = words.next().is_some_and(|value| match &value.text {
                        WordValue::Literal(text) => {
                            self.has_no_excluded_text(text)
                                && (is_pattern || text.is_empty() || place.contains_path(text))
                        }
                        // The expansion stays one word, and where a value is expected it cannot
                        // become an option.
                        WordValue::Dynamic {
                            splits: WordSplitting::No,
                            ..
                        } => is_pattern && self.expanded,
                        WordValue::Home(_)
                        | WordValue::Dynamic {
                            splits: WordSplitting::Yes,
                            ..
                        } => false,
                    });
                    if !is_fit {
                        return false;
                    }
                }
            }
        }
        self.accepts_operands(&operands, has_pattern, place)
    }

    /// Returns true if the rule allows these operands for a command that runs in these folders.
    fn accepts_operands(
        &self,
        operands: &[&ShellWord],
        has_pattern: bool,
        place: &CommandPlace<'_>,
    ) -> bool {
        let paths = match self.operands {
            OperandKind::Inside => {
                return operands
                    .iter()
                    .all(|word| word.literal().is_some_and(|text| place.contains_path(text)));
            }
            OperandKind::Paths => operands,
            OperandKind::Pattern if has_pattern => operands,
            OperandKind::Pattern => match operands.split_first() {
                None => operands,
                Some((pattern, rest)) => {
                    let fits = |text: &str| {
                        self.script
                            .as_ref()
                            .is_none_or(|script| text.chars().all(|c| script.contains(c)))
                    };
                    if !pattern.literal().is_some_and(fits) {
                        return false;
                    }
                    rest
                }
            },
            OperandKind::Text | OperandKind::Any => {
                return operands.iter().all(|word| word.literal().is_some());
            }
            OperandKind::None => return operands.is_empty(),
        };
        let is_readable =
            |word: &&ShellWord| place.may_read(word) && !(self.files_only && place.is_folder(word));
        self.most.is_none_or(|most| paths.len() <= most) && paths.iter().all(is_readable)
    }

    /// Returns true if `text` contains none of the excluded substrings.
    fn has_no_excluded_text(&self, text: &str) -> bool {
        self.without
            .iter()
            .all(|excluded| !text.contains(excluded.as_str()))
    }

    fn classify_word(&self, text: &str, reading: &ParseState) -> WordKind {
        let is = |list: &[String]| list.iter().any(|known| known == text);
        let is_option = match reading {
            ParseState::Options => text.len() > 1 && text.starts_with('-'),
            ParseState::OperandsOnly => false,
        };
        match text {
            _ if !self.has_no_excluded_text(text) => WordKind::Unlisted,
            "--" if is_option => WordKind::EndOfOptions,
            _ if is(&self.words) => WordKind::Listed,
            _ if is(&self.words_valued) => WordKind::Test,
            _ if is_option => self.parse_option(text).unwrap_or(WordKind::Unlisted),
            _ => WordKind::Operand,
        }
    }

    /// Parses an option of the command. Returns `None` if the rule does not list the option.
    fn parse_option(&self, text: &str) -> Option<WordKind> {
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) = long
                .split_once('=')
                .map_or((long, None), |(name, value)| (name, Some(value)));
            let valued = self.long_valued.iter().any(|known| known == name);
            let known = valued || self.long.iter().any(|known| known == name);
            return known.then(|| WordKind::Option {
                name: name.to_owned(),
                wants_value: valued && value.is_none(),
            });
        }
        let letters = text.strip_prefix('-')?;
        if self.numbers && letters.chars().all(|c| c.is_ascii_digit()) {
            return Some(WordKind::Listed);
        }
        for (at, letter) in letters.char_indices() {
            if self.valued.contains(letter) {
                let wants_value = at + letter.len_utf8() == letters.len();
                return Some(WordKind::Option {
                    name: letter.to_string(),
                    wants_value,
                });
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(WordKind::Listed)
    }
}

/// The role of a word among a command's arguments, according to the command's table entry.
enum WordKind {
    /// The word is not listed, so the rule does not cover the command.
    Unlisted,
    /// The word is a listed option or a listed word that needs no further check.
    Listed,
    /// The word is listed and takes the next word as its value, which is not a path.
    Test,
    Option {
        /// The name of a long option without its dashes, or the letter of a short option that takes
        /// a value.
        name: String,
        /// True if the next word is the option's value.
        wants_value: bool,
    },
    EndOfOptions,
    Operand,
}

/// The possible working folders of a command, and the workspace.
struct CommandPlace<'a> {
    folders: &'a WorkingFolders,
    workspace: &'a Workspace,
}

impl CommandPlace<'_> {
    /// Returns true if `text`, interpreted as a path, is inside the workspace.
    fn contains_path(&self, text: &str) -> bool {
        let resolved = effects::resolve_path(self.folders, text);
        resolved.is_some_and(|paths| paths.iter().all(|path| self.workspace.contains(path)))
    }

    /// Returns true if all files that a word may name can be read without an approval.
    fn may_read(&self, word: &ShellWord) -> bool {
        match &word.text {
            WordValue::Literal(text) => self.contains_path(text) && !self.is_protected(text),
            WordValue::Home(_)
            | WordValue::Dynamic {
                splits: WordSplitting::Yes,
                ..
            } => false,
            WordValue::Dynamic {
                splits: WordSplitting::No,
                ..
            } => self.may_read_pattern(&word.shape),
        }
    }

    /// Returns true if all files that match a pattern can be read without an approval. The last
    /// part of the pattern is looked up in its folder on disk.
    fn may_read_pattern(&self, shape: &str) -> bool {
        let (folder, name) = shape
            .rsplit_once('/')
            .map_or(("", shape), |(folder, name)| (folder, name));
        let folder_name = if folder.is_empty() && !shape.starts_with('/') {
            "."
        } else {
            folder
        };
        if name.contains([shape::ANY, shape::HOME])
            || name.starts_with(['.', '-'])
            || !shape::is_known(folder)
        {
            return false;
        }
        let Some(folders) = effects::resolve_path(self.folders, folder_name) else {
            return false;
        };
        let inside =
            |path: &Path| self.workspace.contains(path) && is_unprotected(self.workspace, path);
        let fits = |entry: fs::DirEntry| {
            let is_option =
                folder.is_empty() && entry.file_name().as_encoded_bytes().starts_with(b"-");
            let matches = shape::shapes_overlap(name, &entry.file_name().to_string_lossy());
            let is_link = entry.file_type().map_or(true, |kind| kind.is_symlink());
            if !matches {
                return true;
            }
            let leads_out = is_link
                && !follow_links(Path::new("/"), &entry.path().to_string_lossy())
                    .is_ok_and(|path| inside(&path));
            !is_option && !leads_out
        };
        folders.iter().all(|folder| {
            inside(folder)
                && fs::read_dir(folder)
                    .into_iter()
                    .flatten()
                    .all(|entry| entry.is_ok_and(fits))
        })
    }

    fn is_protected(&self, text: &str) -> bool {
        let written = find_protected_name(Path::new(text))
            .is_some_and(|name| PROTECTED_PATHS.contains(&name));
        let resolved = effects::resolve_path(self.folders, text);
        written
            || resolved.is_none_or(|paths| {
                paths
                    .iter()
                    .any(|path| !is_unprotected(self.workspace, path))
            })
    }

    fn is_folder(&self, word: &ShellWord) -> bool {
        let paths = word
            .literal()
            .and_then(|text| effects::resolve_path(self.folders, text));
        paths.is_none_or(|paths| paths.iter().any(|path| path.is_dir()))
    }

    /// Returns true if git would find the repository by a `.git` entry, and not as a bare
    /// repository: anyone may have written the configuration of a bare repository in the project.
    fn has_no_bare_repository(&self) -> bool {
        let places = effects::resolve_path(self.folders, ".").unwrap_or_default();
        !places.is_empty()
            && places.iter().all(|place| {
                let mut above = place.ancestors();
                above
                    .find(|folder| folder.join(".git").exists() || folder.join("HEAD").exists())
                    .is_none_or(|folder| folder.join(".git").exists())
            })
    }
}

/// True if a path contains no protected name. Steering files do not count as protected.
fn is_unprotected(workspace: &Workspace, path: &Path) -> bool {
    find_protected_name_in_workspace(workspace, path)
        .is_none_or(|name| !PROTECTED_PATHS.contains(&name))
}
