//! Instructions for kinds of tasks, read when one comes up.

use std::path::PathBuf;

/// The skills a conversation can use.
pub trait SkillShelf: Send + Sync {
    /// Their names, in order.
    fn names(&self) -> Vec<String>;

    /// Reads one as it is now; none when there is none of that name.
    fn open(&self, name: &str) -> Option<OpenedSkill>;
}

/// A skill that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedSkill {
    /// Its instructions.
    pub text: String,
    /// The folder with everything that belongs to it.
    pub folder: PathBuf,
    /// Its other files, by their path in the folder.
    pub files: Vec<String>,
}
