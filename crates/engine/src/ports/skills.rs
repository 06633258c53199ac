//! The skills of a project and its user, read from their files.

use haft_project::skills::{self, Skill};
use haft_project::{Found, Ground};
use haft_text::Masker;
use haft_tool::{CaseDocument, OpenedSkill, SkillShelf};

/// So many files of a skill are named.
const MOST_FILES: usize = 100;

/// The skills as they were found; their text is read when they are used.
pub(crate) struct FoundSkills {
    ground: Ground,
    masker: Masker,
    found: Found<Skill>,
}

impl FoundSkills {
    /// Looks for skills; none when there are none.
    pub(crate) fn look(ground: &Ground, masker: &Masker) -> Option<Self> {
        // What is wrong with one is told by `haft skills list`.
        let found = skills::load(ground, &mut Vec::new());
        (!found.items.is_empty()).then(|| Self { ground: ground.clone(), masker: masker.clone(), found })
    }

    /// What the model is told in advance: names and descriptions.
    pub(crate) fn listed(&self) -> CaseDocument {
        let line = |skill: &Skill| format!("- `{}`: {}", skill.name, self.masker.mask(&skill.description));
        let lines: Vec<_> = self.found.items.iter().map(line).collect();
        let text = format!(
            "When the task fits one of these, read it with `use_skill` before you begin:\n\n{}",
            lines.join("\n")
        );
        CaseDocument { name: "Skills".to_owned(), text, tools: vec!["use_skill".to_owned()] }
    }
}

impl SkillShelf for FoundSkills {
    fn names(&self) -> Vec<String> {
        self.found.items.iter().map(|skill| skill.name.clone()).collect()
    }

    fn open(&self, name: &str) -> Option<OpenedSkill> {
        let now = skills::load(&self.ground, &mut Vec::new());
        let skill = now.get(name)?;
        Some(OpenedSkill {
            text: self.masker.mask(&skill.text).into_owned(),
            folder: skill.folder().to_owned(),
            files: skill.files(MOST_FILES),
        })
    }
}
