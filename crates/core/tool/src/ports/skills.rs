//! Skills: instructions for kinds of tasks, loaded on demand.

use std::path::PathBuf;

/// The skills available to a conversation.
pub trait SkillSource: Send + Sync {
    /// Returns the names of the skills, in order.
    fn skill_names(&self) -> Vec<String>;

    /// Reads the current content of a skill; `None` if no skill has this name.
    fn open_skill(&self, name: &str) -> Option<OpenedSkill>;
}

/// The content of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedSkill {
    /// The instructions for the model.
    pub text: String,
    /// The folder of the skill.
    pub folder: PathBuf,
    /// The other files of the skill, by their paths relative to its folder.
    pub files: Vec<String>,
}
