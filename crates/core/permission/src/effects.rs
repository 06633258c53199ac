//! What a command line does, one thing at a time: every program it runs, whatever wraps it, every file it redirects to or
//! from, every variable it sets.
//!
//! Invariant: whatever bash would do with the line is a [`Deed`], and a deed whose content is only known to the shell is never
//! made to look known. A rule that allows must cover every deed.

mod awk;
mod folders;
mod risks;
mod sed;
mod shells;
mod tables;
mod walk;
mod wrappers;

pub(crate) use folders::{Folders, Ground, resolve};
pub(crate) use risks::{At, Peril, only_reads};

use std::rc::Rc;

use serde::Deserialize;

use super::shell::{Script, Word};

/// One thing a line does.
#[derive(Clone, Debug)]
pub(crate) struct Deed {
    pub(crate) act: Act,
    /// As it stands on the line.
    pub(crate) shown: String,
    /// The commands it is part of, the outermost first, itself last: a rule may name it through any of them.
    pub(crate) views: Vec<View>,
}

/// What is done.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// A program, a builtin or a function runs.
    Run(Run),
    /// A variable is set.
    Assign,
    /// A function is defined: from here on a name means something else.
    Define,
    /// A file is opened for writing.
    Write(File),
    /// A file is opened for reading.
    Read(File),
    /// Something runs that cannot be read off the line.
    Opaque(&'static str),
}

/// A command with its words.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) words: Rc<[Word]>,
    pub(crate) perils: Vec<Peril>,
    pub(crate) role: CommandRole,
    /// Where relative paths start.
    pub(crate) folders: Folders,
}

/// How a command takes part in what happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CommandRole {
    /// It does something itself, or changes what the command it wraps can do.
    #[default]
    Acts,
    /// It only runs what it wraps, in a way that changes nothing: what it wraps is judged in its place.
    Transparent,
}

/// A file of a redirect.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) word: Word,
    pub(crate) folders: Folders,
}

/// A command a deed is part of.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) assignments: Rc<[Word]>,
    pub(crate) words: Rc<[Word]>,
    pub(crate) reach: Reach,
}

/// Which words of a command a rule must name to speak of a deed in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The word at this place, with which the deed begins; its perils lie behind.
    From(usize),
    /// The word at this place, which holds the deed whole.
    Holds(usize),
}

/// Everything a script does.
pub(crate) fn deeds(script: &Script, ground: &Ground<'_>, start: Folders) -> Vec<Deed> {
    let mut walk = walk::Walk::new(ground);
    walk.script(script, start);
    walk.finish()
}
