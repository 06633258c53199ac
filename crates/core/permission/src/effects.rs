//! Collects the effects of a command line: every program it runs, including wrapped ones, every
//! file it redirects to or from, and every variable it sets.
//!
//! Invariant: everything that bash would do with the line is a [`CommandEffect`], and an effect
//! whose content is known only to the shell never appears as known. An allow rule must cover every
//! effect.

mod awk;
mod folders;
mod options;
mod risks;
mod sed;
mod shells;
mod tables;
mod trees;
mod versions;
mod walk;
mod wrappers;

pub(crate) use folders::{WorkingFolders, resolve_path};
pub(crate) use options::{OptionSet, is_option};
pub(crate) use risks::{
    Risk, RiskPosition, changes_nothing, find_module, find_risks, may_be_option, only_reads,
    shows_no_content, writes_named_files,
};
pub(crate) use trees::{TreeReading, detect_tree_reading};
pub(crate) use versions::{RepositoryChoice, VersionReading, detect_version_reading};

use std::rc::Rc;

use haft_tool::Workspace;
use serde::Deserialize;

use super::shell::{ShellScript, ShellWord};

/// An effect of a command line, such as a program that runs or a file that is opened.
#[derive(Clone, Debug)]
pub(crate) struct CommandEffect {
    pub(crate) kind: EffectKind,
    /// The effect as written on the command line.
    pub(crate) shown: String,
    /// The nested commands around the effect, from the outermost to the one that causes it. A rule
    /// that matches any of these commands covers the effect.
    pub(crate) enclosing: Vec<EnclosingCommand>,
}

#[derive(Clone, Debug)]
pub(crate) enum EffectKind {
    /// A program, a builtin, or a function runs.
    Run(ProgramRun),
    /// A variable is set.
    Assign,
    /// A function is defined, so a name means something else in the rest of the line.
    Define,
    /// A file is opened for writing.
    Write(RedirectFile),
    /// A file is opened for reading.
    Read(RedirectFile),
    /// Something runs that cannot be determined from the line, described by a noun phrase.
    Opaque(&'static str),
}

/// A command that runs, with its words and risks.
#[derive(Clone, Debug)]
pub(crate) struct ProgramRun {
    pub(crate) words: Rc<[ShellWord]>,
    pub(crate) risks: Vec<Risk>,
    pub(crate) role: CommandRole,
    /// The folders to which relative paths may refer.
    pub(crate) folders: WorkingFolders,
}

/// Records whether a command has effects of its own or only runs another command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CommandRole {
    /// The command has effects of its own, or changes the environment of a command that it wraps.
    #[default]
    Acts,
    /// The command only runs the wrapped command, without changing anything; the wrapped command is
    /// decided in its place.
    Transparent,
}

/// The file of a redirect.
#[derive(Clone, Debug)]
pub(crate) struct RedirectFile {
    pub(crate) word: ShellWord,
    pub(crate) folders: WorkingFolders,
}

/// A command that contains an effect.
#[derive(Clone, Debug)]
pub(crate) struct EnclosingCommand {
    pub(crate) assignments: Rc<[ShellWord]>,
    pub(crate) words: Rc<[ShellWord]>,
    pub(crate) position: EffectPosition,
}

/// The position of an effect in an enclosing command, which determines the words that a rule must
/// name to cover the effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EffectPosition {
    /// The effect begins with the word at this index, and its risks are in later words.
    From(usize),
    /// The word at this index contains the whole effect.
    Holds(usize),
}

/// Returns all effects of a script.
pub(crate) fn collect_effects(
    script: &ShellScript,
    workspace: &Workspace,
    start: WorkingFolders,
) -> Vec<CommandEffect> {
    let mut walk = walk::EffectWalk::new(workspace);
    walk.walk_script(script, start);
    walk.finish()
}
