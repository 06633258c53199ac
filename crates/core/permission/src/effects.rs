//! What a command line does, one thing at a time: every program it runs, whatever wraps it, every
//! file it redirects to or from, every variable it sets.
//!
//! Invariant: whatever bash would do with the line is a [`CommandEffect`], and an effect whose
//! content is only known to the shell is never made to look known. A rule that allows must cover
//! every effect.

mod awk;
mod folders;
mod options;
mod risks;
mod sed;
mod shells;
mod tables;
mod trees;
mod walk;
mod wrappers;

pub(crate) use folders::{WorkingFolders, resolve};
pub(crate) use options::{OptionSet, is_option};
pub(crate) use risks::{
    Risk, RiskPosition, changes_nothing, could_be_flag, only_reads, risks, shows_no_content,
};
pub(crate) use trees::{TreeReading, tree_reading};

use std::rc::Rc;

use haft_tool::Workspace;
use serde::Deserialize;

use super::shell::{ShellScript, ShellWord};

/// One thing a line does.
#[derive(Clone, Debug)]
pub(crate) struct CommandEffect {
    pub(crate) kind: EffectKind,
    /// As it stands on the line.
    pub(crate) shown: String,
    /// The commands it is part of, the outermost first, itself last: a rule may name it through
    /// any of them.
    pub(crate) enclosing: Vec<EnclosingCommand>,
}

/// What is done.
#[derive(Clone, Debug)]
pub(crate) enum EffectKind {
    /// A program, a builtin or a function runs.
    Run(ProgramRun),
    /// A variable is set.
    Assign,
    /// A function is defined: from here on a name means something else.
    Define,
    /// A file is opened for writing.
    Write(RedirectFile),
    /// A file is opened for reading.
    Read(RedirectFile),
    /// Something runs that cannot be read off the line.
    Opaque(&'static str),
}

/// A command with its words.
#[derive(Clone, Debug)]
pub(crate) struct ProgramRun {
    pub(crate) words: Rc<[ShellWord]>,
    pub(crate) risks: Vec<Risk>,
    pub(crate) role: CommandRole,
    /// Where relative paths start.
    pub(crate) folders: WorkingFolders,
}

/// How a command takes part in what happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CommandRole {
    /// It does something itself, or changes what the command it wraps can do.
    #[default]
    Acts,
    /// It only runs what it wraps, in a way that changes nothing: what it wraps is judged in its
    /// place.
    Transparent,
}

/// A file of a redirect.
#[derive(Clone, Debug)]
pub(crate) struct RedirectFile {
    pub(crate) word: ShellWord,
    pub(crate) folders: WorkingFolders,
}

/// A command an effect is part of.
#[derive(Clone, Debug)]
pub(crate) struct EnclosingCommand {
    pub(crate) assignments: Rc<[ShellWord]>,
    pub(crate) words: Rc<[ShellWord]>,
    pub(crate) position: EffectPosition,
}

/// Which words of a command a rule must name to speak of an effect in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EffectPosition {
    /// The word at this place, with which the effect begins; its risks lie behind.
    From(usize),
    /// The word at this place, which holds the effect whole.
    Holds(usize),
}

/// Everything a script does.
pub(crate) fn of_script(
    script: &ShellScript,
    workspace: &Workspace,
    start: WorkingFolders,
) -> Vec<CommandEffect> {
    let mut walk = walk::Walk::new(workspace);
    walk.script(script, start);
    walk.finish()
}
