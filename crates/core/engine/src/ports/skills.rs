//! The skills of a project and its user, loaded from their files.

use haft_project::skills::{self, Skill};
use haft_project::{FileProblem, KnowledgeKind, KnowledgePaths, NamedItems};
use haft_text::Masker;
use haft_tool::{CaseDocument, OpenedSkill, SkillSource};

use crate::prompt::file_stamps::Stamps;

/// The maximum number of a skill's files that are listed.
const MAX_LISTED_FILES: usize = 100;

/// The skills that were found. The text of a skill is read when the skill is used. [`SkillWatch`]
/// checks before every request whether descriptions have changed.
pub(crate) struct FoundSkills {
    paths: KnowledgePaths,
    masker: Masker,
    found: NamedItems<Skill>,
}

impl FoundSkills {
    /// Loads the skills. Returns `None` if no skills exist.
    pub(crate) fn load(paths: &KnowledgePaths, masker: &Masker) -> Option<Self> {
        // Problems are reported by `SkillWatch`.
        let found = skills::load_skills(paths, &mut Vec::new());
        if !found.items.is_empty() {
            let names: Vec<_> = found
                .items
                .iter()
                .map(|skill| skill.name.as_str())
                .collect();
            tracing::info!(names = names.join(", "), "skills loaded");
        }
        (!found.items.is_empty()).then(|| Self {
            paths: paths.clone(),
            masker: masker.clone(),
            found,
        })
    }

    /// Returns the names and descriptions of the skills, for the system message.
    pub(crate) fn describe_skills(&self) -> CaseDocument {
        let line = |skill: &Skill| {
            format!(
                "- `{}`: {}",
                skill.name,
                self.masker.mask(&skill.description)
            )
        };
        let lines: Vec<_> = self.found.items.iter().map(line).collect();
        let text = format!(
            "When the task fits one of these, read it with `use_skill` before you begin:\n\n{}",
            lines.join("\n")
        );
        CaseDocument {
            name: "Skills".to_owned(),
            text,
            tools: vec!["use_skill".to_owned()],
        }
    }
}

/// The state of the skills' files at the time when the skills were last described to the model.
pub(crate) struct SkillWatch {
    stamps: Stamps,
    /// Problems with the skills' files that have not been shown to the user yet.
    problems: Vec<FileProblem>,
}

impl SkillWatch {
    /// Records the current state of the files, and loads the skills to find problems.
    pub(crate) fn new(paths: &KnowledgePaths) -> Self {
        let tops: Vec<_> = paths
            .folders_of_kind(KnowledgeKind::Skills)
            .into_iter()
            .map(|folder| folder.path)
            .collect();
        let below = tops
            .iter()
            .filter_map(|top| std::fs::read_dir(top).ok())
            .flatten()
            .flatten();
        let folders: Vec<_> = below
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect();
        let files = folders.iter().map(|folder| folder.join("SKILL.md"));
        let stamps = Stamps::new(
            tops.iter()
                .cloned()
                .chain(folders.iter().cloned())
                .chain(files),
        );
        let mut problems = Vec::new();
        skills::load_skills(paths, &mut problems);
        Self { stamps, problems }
    }

    /// Takes the problems that the user has not seen yet.
    pub(crate) fn take_problems(&mut self) -> Vec<String> {
        self.problems
            .drain(..)
            .map(|problem| problem.to_string())
            .collect()
    }

    /// Returns true if a skill was added, changed or removed since the last check, and records the
    /// new state.
    pub(crate) fn refresh_if_changed(&mut self, paths: &KnowledgePaths) -> bool {
        if self.stamps.is_unchanged() {
            return false;
        }
        *self = Self::new(paths);
        true
    }
}

impl SkillSource for FoundSkills {
    fn skill_names(&self) -> Vec<String> {
        self.found
            .items
            .iter()
            .map(|skill| skill.name.clone())
            .collect()
    }

    fn open_skill(&self, name: &str) -> Option<OpenedSkill> {
        let now = skills::load_skills(&self.paths, &mut Vec::new());
        let skill = now.get(name)?;
        Some(OpenedSkill {
            text: self.masker.mask(&skill.text).into_owned(),
            folder: skill.folder().to_owned(),
            files: skill.list_files(MAX_LISTED_FILES),
        })
    }
}
