//! Finds the files that the words of a command name, or may name after the shell has expanded them.
//!
//! A word known only to the shell is compared as a [`shape`]. If it could become a
//! protected file or one that a rule denies, the command needs an approval.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use haft_types::{Decision, PROTECTED_PATHS, PermissionMode, STEERING_FILES, matches_listed_name};

use super::LineJudge;
use super::names::{Expanded, Operands, expand_words};
use crate::effects::{self, ProgramRun, TreeReading, WorkingFolders};
use crate::files::{Descent, FileAccess, MAX_CALL_ENTRIES, WalkEnd, walk_entries};
use crate::pattern::{CommandPattern, PathPattern};
use crate::protected::{find_protected_name, find_protected_name_in_workspace, fold_name};
use crate::rule::{CallPattern, PermissionRule};
use crate::shape::{self, ANY, ANY_IN_NAME, HOME, shapes_overlap};
use crate::shell::{ShellWord, WordValue};
use crate::verdict::Ruling;

/// The maximum number of words that are examined one by one because their values are known only to
/// the shell.
const MAX_UNKNOWN_WORDS: usize = 64;
/// The maximum length of the first component of a path that is attached to a cluster of options, in
/// bytes. Longer than any file name.
const MAX_ATTACHED_NAME: usize = 256;

/// A command with its file name patterns expanded.
struct ExpandedRun<'r> {
    run: Cow<'r, ProgramRun>,
    operands: Operands,
}

impl LineJudge<'_> {
    /// Returns the ruling of a path rule that denies, or requires an approval for, a file that the
    /// command names or may name.
    pub(super) fn find_strict_words_ruling(&self, run: &ProgramRun) -> Option<Ruling> {
        let of_files = |decision| {
            self.rules(decision)
                .iter()
                .any(|rule| matches!(rule.pattern(), CallPattern::Path(_)))
        };
        if !of_files(Decision::Deny) && !of_files(Decision::Ask) {
            return None;
        }
        let ExpandedRun { run, operands } = self.expand_patterns(run);
        let run = &*run;
        let mut seen = HashSet::new();
        let words = run
            .words
            .iter()
            .skip(1)
            .filter(|word| seen.insert(word.source.as_str()));
        let rulings = words.filter_map(|word| {
            let forms = self.list_path_forms(word, &run.folders);
            let rulings = [FileAccess::Read, FileAccess::Write]
                .into_iter()
                .filter_map(|usage| {
                    self.permissions
                        .find_strict_file_ruling(usage, &forms, self.workspace)
                });
            rulings.max_by_key(|ruling| ruling.decision)
        });
        rulings
            .max_by_key(|ruling| ruling.decision)
            .or_else(|| self.find_uncertain_words_ruling(run, operands))
    }

    /// Expands the patterns of a command, if their names can be determined.
    fn expand_patterns<'r>(&self, run: &'r ProgramRun) -> ExpandedRun<'r> {
        let plain = ExpandedRun {
            run: Cow::Borrowed(run),
            operands: Operands::Unknown,
        };
        let WorkingFolders::Known(folders) = &run.folders else {
            return plain;
        };
        match folders.as_slice() {
            [folder] if self.expands_patterns => {
                let Expanded { words, operands } = expand_words(&run.words, folder);
                ExpandedRun {
                    run: Cow::Owned(ProgramRun {
                        words: words.into(),
                        ..run.clone()
                    }),
                    operands,
                }
            }
            _ => plain,
        }
    }

    /// Returns the ruling for words that may become a file that a rule covers, or a folder with
    /// such a file.
    fn find_uncertain_words_ruling(&self, run: &ProgramRun, operands: Operands) -> Option<Ruling> {
        let words: Vec<&ShellWord> = run
            .words
            .iter()
            .skip(1)
            .filter(|word| word.literal().is_none())
            .collect();
        let reads = !effects::shows_no_content(&run.words);
        let read = reads
            .then(|| self.find_uncertain_ruling(FileAccess::Read, &words, &run.folders))
            .flatten();
        let writes = !effects::only_reads(&run.words, &run.risks);
        let write = || {
            writes
                .then(|| self.find_uncertain_ruling(FileAccess::Write, &words, &run.folders))
                .flatten()
        };
        read.or_else(write)
            .or_else(|| self.find_uncertain_tree_ruling(run, &words, operands))
            .or_else(|| self.find_stored_version_ruling(run))
    }

    /// Returns the ruling of a rule that may cover a file named by one of these words.
    pub(super) fn find_uncertain_ruling(
        &self,
        usage: FileAccess,
        words: &[&ShellWord],
        folders: &WorkingFolders,
    ) -> Option<Ruling> {
        let mut unknown = words.iter().filter(|word| !shape::is_known(&word.shape));
        let shapes = unknown
            .by_ref()
            .take(MAX_UNKNOWN_WORDS)
            .map(|word| (word, build_absolute_shapes(&word.shape, folders)));
        let shapes: Vec<_> = shapes.collect();
        let rest = unknown.next();
        let (rule, word) = self.strict_path_rules(usage).find_map(|(rule, path)| {
            let word = shapes
                .iter()
                .find(|(_, shapes)| {
                    shapes
                        .iter()
                        .any(|shape| path.may_match_shape(self.workspace, shape))
                })
                .map(|(word, _)| *word)
                .or(rest)?;
            Some((rule, word))
        })?;
        Some(make_uncertain_ruling(rule, &word.source))
    }

    /// Returns the ruling for a command that reads whole folders, which may contain a file that a
    /// rule covers.
    fn find_uncertain_tree_ruling(
        &self,
        run: &ProgramRun,
        unknown: &[&ShellWord],
        operands: Operands,
    ) -> Option<Ruling> {
        let reading = effects::detect_tree_reading(&run.words)?;
        let words = run.words.iter().skip(1).filter_map(ShellWord::literal);
        let mut folders: Vec<PathBuf> = words
            .filter_map(|word| effects::resolve_path(&run.folders, word))
            .flatten()
            .collect();
        folders.retain(|folder| folder.is_dir());
        if folders.is_empty() && operands == Operands::Unknown {
            folders = effects::resolve_path(&run.folders, ".")
                .unwrap_or_else(|| vec![self.workspace.root.clone()]);
        }
        let shapes = unknown
            .iter()
            .take(MAX_UNKNOWN_WORDS)
            .flat_map(|word| build_absolute_shapes(&word.shape, &run.folders));
        let shapes: Vec<String> = shapes.collect();
        let (rule, _) = self.strict_path_rules(FileAccess::Read).find(|(_, path)| {
            let inside = |shape: &str| path.may_match_below(self.workspace, shape, reading);
            shapes.iter().any(|shape| inside(shape))
                || folders.iter().any(|folder| {
                    inside(&folder.to_string_lossy())
                        && self.may_contain_unreadable(folder, reading)
                })
        })?;
        let program = run.words.first().map_or("it", |word| &word.source);
        let reason = format!(
            "`{program}` reads whole folders, and the rule `{rule}` may speak of files in them"
        );
        Some(Ruling::new(Decision::Ask, reason).with_rule(rule))
    }

    /// True if a folder may contain something that must not be read. Always true for the project
    /// itself, for folders outside the workspace, and for folders that are too large to be searched
    /// completely.
    fn may_contain_unreadable(&self, folder: &Path, reading: TreeReading) -> bool {
        if self.workspace.root.starts_with(folder) || !self.workspace.contains(folder) {
            return true;
        }
        let mut found = false;
        let seen = walk_entries(folder, MAX_CALL_ENTRIES, |path| {
            let hidden = path
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if hidden && reading == TreeReading::Visible {
                return Descent::No;
            }
            let forms = [path.to_owned()];
            found |= self
                .permissions
                .find_strict_file_ruling(FileAccess::Read, &forms, self.workspace)
                .is_some();
            if found { Descent::Stop } else { Descent::Yes }
        });
        found || seen == WalkEnd::LimitReached
    }

    /// Returns the path rules that deny or ask. Returns no rules in mode `yolo`, where uncertain
    /// matches are ignored.
    pub(super) fn strict_path_rules(
        &self,
        usage: FileAccess,
    ) -> impl Iterator<Item = (&PermissionRule, &PathPattern)> {
        let asks = self.permissions.mode != PermissionMode::Yolo;
        let rules = self
            .rules(Decision::Deny)
            .iter()
            .chain(self.rules(Decision::Ask))
            .filter(move |_| asks);
        rules.filter_map(move |rule| Some((rule, rule.path_pattern_for(usage.tool_names())?)))
    }

    /// Returns the paths that a word may name, either as a whole or in one of its parts.
    pub(super) fn list_path_forms(
        &self,
        word: &ShellWord,
        folders: &WorkingFolders,
    ) -> Vec<PathBuf> {
        let Some(text) = word.literal() else {
            return Vec::new();
        };
        let mut forms = Vec::new();
        for path in split_path_parts(text) {
            forms.extend(effects::resolve_path(folders, path).unwrap_or_default());
            match folders {
                WorkingFolders::Known(places) => {
                    forms.extend(places.iter().map(|place| place.join(path)));
                }
                WorkingFolders::Unknown => forms.push(self.workspace.root.join(path)),
            }
        }
        forms
    }

    /// Explains that a word names, or may name, a protected file that the command could change.
    pub(super) fn explain_protected_word(
        &self,
        rule: &PermissionRule,
        run: &ProgramRun,
    ) -> Option<String> {
        if effects::changes_nothing(&run.words, &run.risks) {
            return None;
        }
        let run = &*self.expand_patterns(run).run;
        // A rule that names every word was made with knowledge of the command's arguments.
        let exact = rule
            .command_pattern()
            .is_some_and(CommandPattern::names_all_words);
        let known = self
            .find_protected_word(run)
            .map(|(word, name)| format_protected_reason(word, name));
        known.or_else(|| {
            if exact {
                None
            } else {
                self.explain_maybe_protected(run)
            }
        })
    }

    /// Explains why a command needs an approval if the sandbox would let it change a file that
    /// steers later runs.
    pub(super) fn explain_steering_word(&self, run: &ProgramRun) -> Option<String> {
        let (word, name) = self
            .find_protected_word(run)
            .filter(|(_, name)| STEERING_FILES.contains(name))?;
        (!effects::changes_nothing(&run.words, &run.risks))
            .then(|| format_protected_reason(word, name))
    }

    /// Finds a word that names a protected file. Returns the word and the protected name.
    fn find_protected_word<'r>(&self, run: &'r ProgramRun) -> Option<(&'r str, &'static str)> {
        run.words.iter().skip(1).find_map(|word| {
            let text = match &word.text {
                WordValue::Literal(text) | WordValue::Home(text) => text,
                WordValue::Dynamic { .. } => return None,
            };
            let inside = |path: &PathBuf| {
                self.workspace
                    .contains(path)
                    .then(|| find_protected_name_in_workspace(self.workspace, path))
                    .flatten()
            };
            let written =
                split_path_parts(text).find_map(|path| find_protected_name(Path::new(path)));
            let name = written.or_else(|| {
                self.list_path_forms(word, &run.folders)
                    .iter()
                    .find_map(inside)
            })?;
            Some((word.source.as_str(), name))
        })
    }

    fn explain_maybe_protected(&self, run: &ProgramRun) -> Option<String> {
        let unknown = |word: &&ShellWord| matches!(word.text, WordValue::Dynamic { .. });
        let mut words = run.words.iter().skip(1).filter(unknown);
        let mut looked = words.by_ref().take(MAX_UNKNOWN_WORDS);
        let word = looked.find(|word| {
            build_absolute_shapes(&word.shape, &run.folders)
                .iter()
                .any(|shape| self.may_be_protected(shape))
        });
        let word = word.or_else(|| words.next())?;
        Some(format!(
            "`{}` may name a protected file: only the shell knows, and a rule for the beginning of a command does not cover that",
            word.source
        ))
    }

    /// True if a file whose path has this shape may be protected.
    fn may_be_protected(&self, shape: &str) -> bool {
        let root = self.workspace.root.to_string_lossy();
        let inside = shape.strip_prefix(&*root).unwrap_or(shape);
        let parts: Vec<String> = inside.split('/').map(fold_name).collect();
        inside.contains(ANY)
            || PROTECTED_PATHS.iter().chain(STEERING_FILES).any(|name| {
                let pattern = name.replace('*', &ANY_IN_NAME.to_string());
                let wanted: Vec<&str> = pattern.split('/').collect();
                parts.windows(wanted.len()).enumerate().any(|(at, window)| {
                    window
                        .iter()
                        .zip(&wanted)
                        .all(|(part, wanted)| shapes_overlap(part, wanted))
                        && (name.starts_with('.')
                            || window.iter().any(|part| part.contains(ANY_IN_NAME))
                            || {
                                // The shell only inserts names that exist.
                                let folder =
                                    inside.split('/').take(at).collect::<Vec<_>>().join("/");
                                let folder = format!(
                                    "{}{folder}",
                                    if inside.len() < shape.len() {
                                        &root
                                    } else {
                                        ""
                                    }
                                );
                                !shape::is_known(&folder) || has_entry(&folder, first_part(name))
                            })
                })
            })
    }
}

/// Returns the shapes of the absolute paths that a word with the shape `text` may name.
fn build_absolute_shapes(text: &str, folders: &WorkingFolders) -> Vec<String> {
    if let Some(at) = text.rfind([ANY, HOME]) {
        let (name, rest) = text[at..].split_once('/').unwrap_or((&text[at..], ""));
        let behind = name.trim_start_matches([ANY, HOME]);
        let name = if behind == "." || shapes_overlap(behind, "..") {
            name.trim_end_matches(behind)
        } else {
            name
        };
        return vec![shape::join_shape(name, rest)];
    }
    let of_part = |part: &str| {
        let known = part
            .find(|c: char| !shape::is_known(c.encode_utf8(&mut [0; 4])))
            .unwrap_or(part.len());
        let lead = part
            .get(..known)
            .and_then(|lead| lead.rfind('/'))
            .map_or(0, |slash| slash + 1);
        let (folder, rest) = part.split_at(lead);
        let found = effects::resolve_path(folders, if folder.is_empty() { "." } else { folder });
        let found = found.map(|paths| {
            paths
                .iter()
                .map(|path| path.to_string_lossy().into_owned())
                .collect()
        });
        let found: Vec<String> = found.unwrap_or_else(|| vec![ANY.to_string()]);
        found
            .iter()
            .map(|folder| shape::join_shape(folder.trim_end_matches('/'), rest))
            .collect::<Vec<_>>()
    };
    split_path_parts(text).flat_map(of_part).collect()
}

fn first_part(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

/// True if a folder has an entry with this listed name, in any spelling that a file system may
/// treat as equal.
fn has_entry(folder: &str, name: &str) -> bool {
    let entries = fs::read_dir(if folder.is_empty() { "/" } else { folder });
    entries
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| matches_listed_name(&fold_name(&entry.file_name().to_string_lossy()), name))
}

fn format_protected_reason(word: &str, name: &str) -> String {
    format!("`{word}` is protected (`{name}`): such files decide what other programs run")
}

fn make_uncertain_ruling(rule: &PermissionRule, shown: &str) -> Ruling {
    let reason = format!("the rule `{rule}` may speak of `{shown}`: only the shell knows");
    Ruling::new(Decision::Ask, reason).with_rule(rule)
}

/// Returns the parts of a word that may be paths: the whole word, the texts that may be attached to
/// a cluster of short options, the text before the first colon, and the text after each separator.
fn split_path_parts(text: &str) -> impl Iterator<Item = &str> {
    let front = text.split_once(':').map(|(front, _)| front);
    let behind = text
        .match_indices(['=', '@', ':', ',', '<'])
        .take(16)
        .filter_map(|(at, _)| text.get(at + 1..));
    std::iter::once(text)
        .chain(list_attached_values(text))
        .chain(front)
        .chain(behind)
        .filter(|part| !part.is_empty())
}

/// Returns the texts that may be the value of the last option in a cluster such as
/// `-ft.git/hooks`. Only the program knows how many letters are options, so every split is
/// returned, up to the first character that is no option letter.
pub(super) fn list_attached_values(text: &str) -> impl Iterator<Item = &str> {
    let cluster = text
        .strip_prefix('-')
        .filter(|rest| !rest.starts_with('-'))
        .unwrap_or_default();
    // The first character is an option in any case: `rg` has the option `-.`.
    let mut places = cluster.char_indices().skip(1);
    let end = places
        .find(|(_, c)| "./=:,@<".contains(*c))
        .map_or(cluster.len(), |(at, _)| at);
    let starts = cluster.char_indices().skip(1).map(|(at, _)| at);
    starts
        .skip_while(move |at| at + MAX_ATTACHED_NAME < end)
        .take_while(move |at| *at <= end)
        .filter_map(move |at| cluster.get(at..))
}
