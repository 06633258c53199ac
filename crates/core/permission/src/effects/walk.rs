//! Walks a script and collects its effects, keeping track of the working folder.

use std::rc::Rc;

use haft_tool::Workspace;

use super::folders::WorkingFolders;
use super::risks::{Risk, RiskPosition, find_risks};
use super::wrappers::{InnerRun, UNREACHABLE_WORD, find_inner_runs};
use super::{
    CommandEffect, CommandRole, EffectKind, EffectPosition, EnclosingCommand, ProgramRun,
    RedirectFile,
};
use crate::shell::{
    CompoundCommand, CompoundKind, FunctionDefinition, JobMode, ListOperator, Pipeline, Redirect,
    RedirectKind, ShellCommand, ShellScript, ShellWord, SimpleCommand, WordValue,
};

/// The maximum nesting depth of commands that run other commands.
const MAX_DEPTH: usize = 12;
/// The maximum number of effects that are collected from one line.
const MAX_EFFECTS: usize = 2_000;

/// Lowercase variable names that a loop may not set, because programs or bash itself read these
/// variables.
const SPECIAL_VARIABLES: [&str; 7] = [
    "all_proxy",
    "auto_resume",
    "ftp_proxy",
    "histchars",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

pub(super) struct EffectWalk<'a> {
    workspace: &'a Workspace,
    effects: Vec<CommandEffect>,
    depth: usize,
}

/// The possible working folders after a command: `all` for any exit status of the command,
/// `success` for a successful command.
struct FoldersAfter {
    all: WorkingFolders,
    success: WorkingFolders,
}

impl FoldersAfter {
    fn unchanged_from(folders: &WorkingFolders) -> Self {
        Self {
            all: folders.clone(),
            success: folders.clone(),
        }
    }
}

impl<'a> EffectWalk<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> Self {
        Self {
            workspace,
            effects: Vec::new(),
            depth: 0,
        }
    }

    pub(super) fn finish(self) -> Vec<CommandEffect> {
        self.effects
    }

    /// Walks a whole script and returns the possible working folders at its end.
    pub(super) fn walk_script(
        &mut self,
        script: &ShellScript,
        start: WorkingFolders,
    ) -> WorkingFolders {
        self.walk_nested_script(script, start, &[])
    }

    /// Walks a script that is part of the commands in `enclosing`, and returns the possible working
    /// folders at its end.
    fn walk_nested_script(
        &mut self,
        script: &ShellScript,
        start: WorkingFolders,
        enclosing: &[EnclosingCommand],
    ) -> WorkingFolders {
        let mut all = start.clone();
        let mut success = start;
        for item in &script.items {
            let here = match item.operator {
                ListOperator::And => success.clone(),
                ListOperator::Then | ListOperator::Or => all.clone(),
            };
            let after = self.walk_pipeline(item, &here, enclosing);
            success = after.success;
            all = all.union(after.all).union(success.clone());
        }
        all
    }

    fn walk_pipeline(
        &mut self,
        item: &Pipeline,
        here: &WorkingFolders,
        enclosing: &[EnclosingCommand],
    ) -> FoldersAfter {
        match item.commands.as_slice() {
            [only] if item.mode == JobMode::Foreground => self.walk_command(only, here, enclosing),
            several => {
                // Each command runs in a separate shell.
                for command in several {
                    self.walk_command(command, here, enclosing);
                }
                FoldersAfter::unchanged_from(here)
            }
        }
    }

    fn walk_command(
        &mut self,
        command: &ShellCommand,
        here: &WorkingFolders,
        enclosing: &[EnclosingCommand],
    ) -> FoldersAfter {
        match command {
            ShellCommand::Simple(simple) => self.walk_simple(simple, here, enclosing),
            ShellCommand::Compound(compound) => {
                let all = self.walk_compound(compound, here, enclosing);
                FoldersAfter {
                    success: all.clone(),
                    all,
                }
            }
            ShellCommand::Function(FunctionDefinition { name, body }) => {
                self.add_effect(EffectKind::Define, format!("{name}()"), enclosing.to_vec());
                self.walk_compound(body, &WorkingFolders::Unknown, enclosing);
                FoldersAfter::unchanged_from(here)
            }
            ShellCommand::Test { words, redirects } => {
                self.walk_substitutions(words, here, enclosing);
                self.walk_redirects(redirects, here, enclosing);
                FoldersAfter::unchanged_from(here)
            }
        }
    }

    fn walk_compound(
        &mut self,
        compound: &CompoundCommand,
        here: &WorkingFolders,
        enclosing: &[EnclosingCommand],
    ) -> WorkingFolders {
        self.walk_substitutions(&compound.words, here, enclosing);
        self.walk_redirects(&compound.redirects, here, enclosing);
        let moves = compound.scripts.iter().any(may_change_folder);
        let again = match &compound.kind {
            CompoundKind::Group
            | CompoundKind::Subshell
            | CompoundKind::If
            | CompoundKind::Case => false,
            CompoundKind::Loop => moves,
            CompoundKind::For { variable } => {
                if !variable.chars().all(|c| c.is_ascii_lowercase() || c == '_')
                    || SPECIAL_VARIABLES.contains(&variable.as_str())
                {
                    self.add_effect(
                        EffectKind::Assign,
                        format!("for {variable}"),
                        enclosing.to_vec(),
                    );
                }
                moves
            }
        };
        // The second iteration of a loop begins in the folder where the first one ended.
        let mut at = if again {
            WorkingFolders::Unknown
        } else {
            here.clone()
        };
        for script in &compound.scripts {
            let after = self.walk_nested_script(script, at.clone(), enclosing);
            at = at.union(after);
        }
        match compound.kind {
            CompoundKind::Subshell => here.clone(),
            CompoundKind::Group
            | CompoundKind::If
            | CompoundKind::Case
            | CompoundKind::Loop
            | CompoundKind::For { .. } => at,
        }
    }

    fn walk_simple(
        &mut self,
        simple: &SimpleCommand,
        here: &WorkingFolders,
        enclosing: &[EnclosingCommand],
    ) -> FoldersAfter {
        self.walk_substitutions(&simple.assignments, here, enclosing);
        self.walk_substitutions(&simple.words, here, enclosing);
        self.walk_redirects(&simple.redirects, here, enclosing);
        if simple.words.is_empty() {
            for assignment in &simple.assignments {
                self.add_effect(
                    EffectKind::Assign,
                    assignment.source.clone(),
                    enclosing.to_vec(),
                );
            }
            return FoldersAfter::unchanged_from(here);
        }
        let own = EnclosingCommand {
            assignments: simple.assignments.iter().cloned().collect(),
            words: simple.words.iter().cloned().collect(),
            position: EffectPosition::From(0),
        };
        let words = Rc::clone(&own.words);
        let mut enclosing = enclosing.to_vec();
        enclosing.push(own);
        self.walk_run(&words, here, &enclosing)
    }

    /// Adds the effects of a command and of the commands that it wraps.
    fn walk_run(
        &mut self,
        words: &Rc<[ShellWord]>,
        here: &WorkingFolders,
        enclosing: &[EnclosingCommand],
    ) -> FoldersAfter {
        let shown = format_command(words, enclosing);
        self.depth += 1;
        let after = if self.depth > MAX_DEPTH || self.effects.len() > MAX_EFFECTS {
            // No rule can name commands at this depth, because the wrapped command is unknown.
            let enclosing = reposition_all(enclosing, EffectPosition::Holds(UNREACHABLE_WORD));
            self.add_effect(
                EffectKind::Opaque("too deep or too long to be followed"),
                shown,
                enclosing,
            );
            FoldersAfter {
                all: WorkingFolders::Unknown,
                success: WorkingFolders::Unknown,
            }
        } else {
            self.walk_inner_runs(words, &shown, here, enclosing)
        };
        self.depth -= 1;
        after
    }

    fn walk_inner_runs(
        &mut self,
        words: &Rc<[ShellWord]>,
        shown: &str,
        here: &WorkingFolders,
        enclosing: &[EnclosingCommand],
    ) -> FoldersAfter {
        let unwrapped = find_inner_runs(words);
        let mut found = find_risks(words);
        let moved = self.find_folders_after_cd(words, here);
        if let Some(FoldersAfter {
            all: WorkingFolders::Unknown,
            ..
        }) = moved
        {
            found.push(Risk {
                at: RiskPosition::Whole,
                what: "leaves the project, or goes where only the shell knows",
            });
        }
        // Assignments before the command also apply to the wrapped command.
        let plain = enclosing
            .last()
            .is_none_or(|outer| outer.assignments.is_empty());
        let role = if plain {
            unwrapped.role_for(words)
        } else {
            CommandRole::Acts
        };
        let run = ProgramRun {
            words: Rc::clone(words),
            risks: found,
            role,
            folders: here.clone(),
        };
        self.add_effect(EffectKind::Run(run), shown.to_owned(), enclosing.to_vec());
        let mut after = FoldersAfter::unchanged_from(here);
        for inner in unwrapped.inner {
            match inner {
                InnerRun::Command {
                    from,
                    words: inner,
                    same_shell,
                } => {
                    let done = self.walk_run(
                        &inner,
                        here,
                        &enclose_command(enclosing, from, Rc::clone(&inner)),
                    );
                    if same_shell {
                        after = done;
                    }
                }
                InnerRun::Assignment { at, word } => {
                    self.add_effect(
                        EffectKind::Assign,
                        word.source,
                        reposition_all(enclosing, EffectPosition::From(at)),
                    );
                }
                InnerRun::Script {
                    at,
                    script,
                    same_shell,
                } => {
                    let enclosing = reposition_all(enclosing, EffectPosition::Holds(at));
                    let done = self.walk_nested_script(&script, here.clone(), &enclosing);
                    if same_shell {
                        after = FoldersAfter {
                            success: done.clone(),
                            all: done,
                        };
                    }
                }
                InnerRun::Opaque { at, why } => {
                    let enclosing = reposition_all(enclosing, EffectPosition::Holds(at));
                    self.add_effect(EffectKind::Opaque(why), shown.to_owned(), enclosing);
                }
            }
        }
        moved.unwrap_or(after)
    }

    /// Returns the working folders after a command that changes the working folder, or `None` for
    /// any other command.
    fn find_folders_after_cd(
        &self,
        words: &[ShellWord],
        here: &WorkingFolders,
    ) -> Option<FoldersAfter> {
        let name = words.first().and_then(ShellWord::base_name)?;
        let unknown = || FoldersAfter {
            all: WorkingFolders::Unknown,
            success: WorkingFolders::Unknown,
        };
        match name {
            "cd" => {}
            "pushd" | "popd" | "source" | "." => return Some(unknown()),
            _ => return None,
        }
        let target = match words {
            [_, target] => target,
            [_, dashes, target] if dashes.literal() == Some("--") => target,
            _ => return Some(unknown()),
        };
        let entered = target
            .literal()
            .and_then(|path| here.enter(path, self.workspace));
        Some(match entered {
            Some(success) => FoldersAfter {
                all: here.clone(),
                success,
            },
            None => unknown(),
        })
    }

    fn walk_substitutions(
        &mut self,
        words: &[ShellWord],
        here: &WorkingFolders,
        enclosing: &[EnclosingCommand],
    ) {
        for script in words.iter().flat_map(|word| &word.scripts) {
            // Rules name words, but not the scripts that run inside a word.
            let enclosing: Vec<_> = enclosing
                .iter()
                .filter(|outer| matches!(outer.position, EffectPosition::Holds(_)))
                .cloned()
                .collect();
            self.walk_nested_script(script, here.clone(), &enclosing);
        }
    }

    fn walk_redirects(
        &mut self,
        redirects: &[Redirect],
        here: &WorkingFolders,
        enclosing: &[EnclosingCommand],
    ) {
        for Redirect { kind, target } in redirects {
            self.walk_substitutions(std::slice::from_ref(target), here, enclosing);
            let file = || RedirectFile {
                word: target.clone(),
                folders: here.clone(),
            };
            let null = target.literal() == Some("/dev/null");
            match kind {
                RedirectKind::Write if !null => {
                    self.add_effect(
                        EffectKind::Write(file()),
                        format!("> {}", target.source),
                        enclosing.to_vec(),
                    );
                }
                RedirectKind::Read if !null => {
                    self.add_effect(
                        EffectKind::Read(file()),
                        format!("< {}", target.source),
                        enclosing.to_vec(),
                    );
                }
                RedirectKind::Write | RedirectKind::Read | RedirectKind::Inner => {}
            }
        }
    }

    fn add_effect(&mut self, kind: EffectKind, shown: String, enclosing: Vec<EnclosingCommand>) {
        self.effects.push(CommandEffect {
            kind,
            shown,
            enclosing,
        });
    }
}

/// Returns a copy of `enclosing` for an effect at `position` of the innermost command.
fn reposition_all(
    enclosing: &[EnclosingCommand],
    position: EffectPosition,
) -> Vec<EnclosingCommand> {
    enclosing
        .iter()
        .map(|outer| reposition(outer, position))
        .collect()
}

/// Adds `inner`, a command that begins at word `from` of the innermost command, to the enclosing
/// commands.
fn enclose_command(
    enclosing: &[EnclosingCommand],
    from: usize,
    inner: Rc<[ShellWord]>,
) -> Vec<EnclosingCommand> {
    let mut enclosing = reposition_all(enclosing, EffectPosition::From(from));
    enclosing.push(EnclosingCommand {
        assignments: Rc::new([]),
        words: inner,
        position: EffectPosition::From(0),
    });
    enclosing
}

/// Returns `outer` with a new position of the effect: the position of the innermost command in
/// `outer`, plus the position of the effect in the innermost command.
fn reposition(outer: &EnclosingCommand, position: EffectPosition) -> EnclosingCommand {
    let position = match (outer.position, position) {
        // An effect that is contained in one word stays contained in it.
        (EffectPosition::Holds(at), _) => EffectPosition::Holds(at),
        (EffectPosition::From(base), EffectPosition::From(at)) => EffectPosition::From(base + at),
        (EffectPosition::From(base), EffectPosition::Holds(at)) => EffectPosition::Holds(base + at),
    };
    EnclosingCommand {
        position,
        ..outer.clone()
    }
}

/// Formats a command, with its assignments, as shown to the user.
fn format_command(words: &[ShellWord], enclosing: &[EnclosingCommand]) -> String {
    let assignments: &[ShellWord] = match enclosing.last() {
        Some(outer) if outer.position == EffectPosition::From(0) => &outer.assignments,
        Some(_) | None => &[],
    };
    let sources: Vec<_> = assignments
        .iter()
        .chain(words)
        .map(|word| word.source.as_str())
        .collect();
    sources.join(" ")
}

/// True if the working folder at the end of a script may differ from the one at its start.
fn may_change_folder(script: &ShellScript) -> bool {
    script
        .items
        .iter()
        .flat_map(|item| &item.commands)
        .any(|command| match command {
            ShellCommand::Simple(simple) => {
                simple
                    .words
                    .iter()
                    .enumerate()
                    .any(|(place, word)| match &word.text {
                        WordValue::Literal(text) => {
                            let moves = ["cd", "pushd", "popd", "eval", "source", "."];
                            moves.contains(&text.as_str()) || (place == 0 && text.contains("cd"))
                        }
                        WordValue::Home(_) | WordValue::Dynamic { .. } => place == 0,
                    })
            }
            ShellCommand::Compound(compound) => compound.scripts.iter().any(may_change_folder),
            ShellCommand::Function(_) => true,
            ShellCommand::Test { .. } => false,
        })
}
