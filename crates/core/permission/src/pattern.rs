//! Patterns of rules: the words of a command, or files.
//!
//! An allow rule is applied narrowly: each of its words must be present, literally and in its
//! position. An ask or deny rule is applied widely: any path to the program, any spelling of a
//! file, options before a subcommand.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use haft_tool::Workspace;

use super::effects::{OptionSet, TreeReading, is_option, may_be_option};
use super::protected;
use super::shape::{self, ANY, HOME, shapes_overlap};
use super::shell::{self, ShellWord, WordSplitting, WordValue};

/// The pattern of a rule for commands: the words with which a command begins, as in `git status:*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandPattern {
    assignments: Vec<WordValue>,
    words: Vec<WordValue>,
    further: FurtherWords,
}

/// Controls whether a matching command may have further words after those of the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FurtherWords {
    Any,
    None,
}

/// The result of applying an ask or deny rule to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PatternMatch {
    No,
    /// The pattern may match, depending on a word whose value is known only to the shell.
    Maybe,
    Yes,
}

impl CommandPattern {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (named, more) = match text.strip_suffix(":*").or_else(|| text.strip_suffix(" *")) {
            Some(named) => (named.trim_end(), FurtherWords::Any),
            None => (text, FurtherWords::None),
        };
        let simple = shell::parse_simple_command(named).map_err(|why| format!("it has {why}"))?;
        if simple.words.is_empty() {
            return Err("it names no command".to_owned());
        }
        let literal = |word: ShellWord| match word.text {
            text @ (WordValue::Literal(_) | WordValue::Home(_)) => Ok(text),
            WordValue::Dynamic { .. } => Err(format!("`{}` is not a literal word", word.source)),
        };
        Ok(Self {
            assignments: simple
                .assignments
                .into_iter()
                .map(literal)
                .collect::<Result<_, _>>()?,
            words: simple
                .words
                .into_iter()
                .map(literal)
                .collect::<Result<_, _>>()?,
            further: more,
        })
    }

    /// Returns true if an allow rule with this pattern covers the command, word by word.
    pub(super) fn matches_exactly(&self, assignments: &[ShellWord], words: &[ShellWord]) -> bool {
        let same = |named: &[WordValue], found: &[ShellWord]| {
            named
                .iter()
                .zip(found)
                .all(|(name, word)| *name == word.text)
        };
        self.assignments.len() == assignments.len()
            && same(&self.assignments, assignments)
            && match self.further {
                FurtherWords::Any => self.words.len() <= words.len(),
                FurtherWords::None => self.words.len() == words.len(),
            }
            && same(&self.words, words)
    }

    /// Returns true if the pattern itself names the word at index `place`.
    pub(super) fn names_word_at(&self, place: usize) -> bool {
        place < self.words.len()
    }

    /// Returns true if the pattern names every word of a matching command, so no further words may
    /// follow.
    pub(super) fn names_all_words(&self) -> bool {
        self.further == FurtherWords::None
    }

    /// Applies the pattern as an ask or deny rule, in all spellings in which a user or model could
    /// write the command.
    pub(super) fn match_widely(&self, words: &[ShellWord]) -> PatternMatch {
        let Some((program, arguments)) = words.split_first() else {
            return PatternMatch::No;
        };
        let Some((wanted, rest)) = self.words.split_first() else {
            return PatternMatch::No;
        };
        let begins = match (program.base_name(), base_name(wanted)) {
            (Some(found), wanted) if found.eq_ignore_ascii_case(wanted) => PatternMatch::Yes,
            (Some(_), _) => return PatternMatch::No,
            (None, _) => PatternMatch::Maybe,
        };
        begins.min(
            self.match_in_order(rest, arguments)
                .max(self.match_in_any_order(base_name(wanted), rest, arguments)),
        )
    }

    /// Matches options in any position, cluster, and spelling, and matches the other words in
    /// order.
    fn match_in_any_order(
        &self,
        program: &str,
        named: &[WordValue],
        found: &[ShellWord],
    ) -> PatternMatch {
        let (options, operands): (Vec<_>, Vec<_>) = named
            .iter()
            .cloned()
            .partition(|word| is_option(get_known_text(word)));
        if options.is_empty() {
            return PatternMatch::No;
        }
        let wanted = OptionSet::from_words(program, options.iter());
        let given = OptionSet::from_words(program, found.iter().map(|word| &word.text));
        let bare: Vec<ShellWord> = found
            .iter()
            .filter(|word| !word.is_flag())
            .cloned()
            .collect();
        let ordered = match self.further {
            FurtherWords::Any => self
                .match_in_order(&operands, found)
                .max(self.match_in_order(&operands, &bare)),
            FurtherWords::None if given.is_subset_of(&wanted) => {
                self.match_next_words(&operands, &bare)
            }
            FurtherWords::None => PatternMatch::No,
        };
        let unknown = if found.iter().any(may_be_option) {
            PatternMatch::Maybe
        } else {
            PatternMatch::No
        };
        ordered.min(if wanted.is_subset_of(&given) {
            PatternMatch::Yes
        } else {
            unknown
        })
    }

    /// Matches the words in order. Options before a subcommand are skipped, each with or without a
    /// value.
    fn match_in_order(&self, rest: &[WordValue], arguments: &[ShellWord]) -> PatternMatch {
        let mut reached = vec![false; arguments.len() + 3];
        reached[0] = true;
        let mut best = PatternMatch::No;
        for place in 0..=arguments.len() {
            if !reached[place] {
                continue;
            }
            best = best.max(self.match_next_words(rest, &arguments[place..]));
            if !rest.is_empty() && arguments.get(place).is_some_and(ShellWord::is_flag) {
                reached[place + 1] = true;
                reached[place + 2] = true;
            }
        }
        best
    }

    /// Matches the words of the pattern against the first words of `found`.
    fn match_next_words(&self, named: &[WordValue], found: &[ShellWord]) -> PatternMatch {
        for (place, wanted) in named.iter().enumerate() {
            let Some(word) = found.get(place) else {
                return PatternMatch::No;
            };
            if word.text == *wanted {
                continue;
            }
            match &word.text {
                // The word could expand to this word and all that follow.
                WordValue::Dynamic {
                    splits: WordSplitting::Yes,
                    ..
                } => return PatternMatch::Maybe,
                WordValue::Dynamic {
                    lead,
                    splits: WordSplitting::No,
                } if get_known_text(wanted).starts_with(lead.as_str()) => {
                    return PatternMatch::Maybe;
                }
                WordValue::Literal(_)
                | WordValue::Home(_)
                | WordValue::Dynamic {
                    splits: WordSplitting::No,
                    ..
                } => {
                    return PatternMatch::No;
                }
            }
        }
        let rest = found.get(named.len()..).unwrap_or_default();
        match self.further {
            FurtherWords::Any => PatternMatch::Yes,
            FurtherWords::None if rest.is_empty() => PatternMatch::Yes,
            // A word known only to the shell may expand to nothing.
            FurtherWords::None if rest.iter().all(|word| word.literal().is_none()) => {
                PatternMatch::Maybe
            }
            FurtherWords::None => PatternMatch::No,
        }
    }

    /// Returns true if the pattern's words occur in sequence anywhere in a text that is not parsed
    /// as a command line.
    pub(super) fn occurs_in(&self, text: &str) -> bool {
        let between = |c: char| c.is_whitespace() || ";&|()<>{}'\"`\\$=,".contains(c);
        // Quotes and escapes inside a word do not hide it.
        let closed: String = text.chars().filter(|c| !"'\"\\".contains(*c)).collect();
        [text, closed.as_str()].iter().any(|text| {
            let tokens: Vec<&str> = text
                .split(between)
                .filter(|token| !token.is_empty())
                .collect();
            tokens.windows(self.words.len().max(1)).any(|window| {
                let mut pairs = window.iter().zip(&self.words);
                let first = pairs.next().is_some_and(|(token, wanted)| {
                    token
                        .rsplit('/')
                        .next()
                        .is_some_and(|name| name.eq_ignore_ascii_case(base_name(wanted)))
                });
                first && pairs.all(|(token, wanted)| *token == get_known_text(wanted))
            })
        })
    }
}

fn get_known_text(text: &WordValue) -> &str {
    match text {
        WordValue::Literal(text)
        | WordValue::Home(text)
        | WordValue::Dynamic { lead: text, .. } => text,
    }
}

fn base_name(text: &WordValue) -> &str {
    let path = get_known_text(text);
    path.rsplit('/').next().unwrap_or(path)
}

/// A pattern for files: a glob, relative to the project or absolute.
#[derive(Clone, Debug)]
pub(super) struct PathPattern {
    absolute: bool,
    exact: GlobMatcher,
    folded: GlobMatcher,
    shapes: Vec<String>,
}

impl PathPattern {
    pub(super) fn parse(glob: &str, home: Option<&Path>) -> Result<Self, String> {
        let glob = match glob.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let home = home.ok_or("`~` stands for a home folder, and there is none")?;
                format!("{}{rest}", globset::escape(&home.to_string_lossy()))
            }
            Some(_) | None => glob.strip_prefix("./").unwrap_or(glob).to_owned(),
        };
        if Path::new(&glob)
            .components()
            .any(|part| part == std::path::Component::ParentDir)
        {
            return Err(
                "`..` is not taken; write the path from the project's root, or an absolute one"
                    .to_owned(),
            );
        }
        let glob = glob
            .strip_suffix('/')
            .filter(|rest| !rest.is_empty())
            .unwrap_or(&glob)
            .to_owned();
        let build = |text: &str| {
            let built = GlobBuilder::new(text)
                .literal_separator(true)
                .backslash_escape(true)
                .build();
            built
                .map(|glob| glob.compile_matcher())
                .map_err(|error| error.to_string())
        };
        let absolute = glob.starts_with('/');
        let shapes = shape::build_glob_shapes(&glob);
        Ok(Self {
            absolute,
            exact: build(&glob)?,
            folded: build(&protected::fold_name(&glob))?,
            shapes,
        })
    }

    /// Returns the pattern as shapes of absolute paths. Every matching path fits one of the shapes.
    fn absolute_shapes(&self, workspace: &Workspace) -> impl Iterator<Item = String> {
        let bases: Vec<String> = if self.absolute {
            vec![String::new()]
        } else {
            let bases = std::iter::once(&workspace.root).chain(&workspace.extra);
            bases
                .map(|base| format!("{}/", base.to_string_lossy().trim_end_matches('/')))
                .collect()
        };
        bases.into_iter().flat_map(|base| {
            self.shapes
                .iter()
                .map(move |shape| format!("{base}{shape}"))
        })
    }

    /// Returns the file or folder that the pattern names, if the pattern is absolute and has no
    /// wildcards.
    pub(super) fn whole_path(&self) -> Option<PathBuf> {
        let [shape] = self.shapes.as_slice() else {
            return None;
        };
        let path = shape.strip_suffix(&['/', ANY][..]).unwrap_or(shape);
        let path = path.strip_suffix('/').unwrap_or(path);
        (self.absolute && shape::is_known(path)).then(|| PathBuf::from(path))
    }

    /// Returns true if an ask or deny rule with this pattern may cover a file whose path has the
    /// shape `shape`.
    pub(super) fn may_match_shape(&self, workspace: &Workspace, shape: &str) -> bool {
        let shape = protected::fold_name(shape);
        let home = HOME.to_string();
        // The file itself, or a folder above it. Denying the whole home folder is not possible.
        let slashes = shape
            .match_indices('/')
            .filter_map(|(at, _)| shape.get(..at));
        let forms: Vec<&str> = slashes
            .filter(|form| *form != home)
            .chain([shape.as_str()])
            .collect();
        let mut named = self
            .absolute_shapes(workspace)
            .map(|named| protected::fold_name(&named));
        named.any(|named| forms.iter().any(|form| shapes_overlap(form, &named)))
    }

    /// Returns true if an ask or deny rule with this pattern may cover a file below a folder whose
    /// path has the shape `shape`, counting only the files that the command would read.
    pub(super) fn may_match_below(
        &self,
        workspace: &Workspace,
        folder: &str,
        reading: TreeReading,
    ) -> bool {
        let below = protected::fold_name(&format!("{}/{ANY}", folder.trim_end_matches('/')));
        self.absolute_shapes(workspace).any(|named| {
            let known = named
                .find(|c: char| !shape::is_known(c.encode_utf8(&mut [0; 4])))
                .unwrap_or(named.len());
            let (known, unknown) = named.split_at(
                named
                    .get(..known)
                    .and_then(|known| known.rfind('/'))
                    .unwrap_or(0),
            );
            let is_hidden = reading == TreeReading::Visible
                && unknown.split('/').any(|part| part.starts_with('.'));
            let is_there = known.is_empty() || Path::new(known).exists();
            !is_hidden && is_there && shapes_overlap(&below, &protected::fold_name(&named))
        })
    }

    /// Returns true if an allow rule with this pattern covers `path`, whose links are resolved.
    pub(super) fn matches_exactly(&self, workspace: &Workspace, path: &Path) -> bool {
        if self.absolute {
            return self.exact.is_match(path);
        }
        path.strip_prefix(&workspace.root)
            .is_ok_and(|inside| self.exact.is_match(inside))
    }

    /// Returns true if an ask or deny rule with this pattern covers `path` or a folder above
    /// `path`, in any spelling.
    pub(super) fn matches_widely(&self, workspace: &Workspace, path: &Path) -> bool {
        let bases = std::iter::once(&workspace.root).chain(&workspace.extra);
        let forms: Vec<PathBuf> = if self.absolute {
            vec![path.to_owned()]
        } else {
            bases
                .filter_map(|base| path.strip_prefix(base).ok())
                .map(Path::to_owned)
                .collect()
        };
        forms.iter().flat_map(|form| form.ancestors()).any(|form| {
            !form.as_os_str().is_empty()
                && self
                    .folded
                    .is_match(Path::new(&protected::fold_name(&form.to_string_lossy())))
        })
    }
}
