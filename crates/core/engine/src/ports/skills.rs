//! The skills of a project and its user, read from their files.

use haft_project::skills::{self, Skill};
use haft_project::{FileProblem, KnowledgeKind, KnowledgePaths, NamedItems};
use haft_text::Masker;
use haft_tool::{CaseDocument, OpenedSkill, SkillShelf};

use crate::prompt::stamps::Stamps;

/// So many files of a skill are named.
const MOST_FILES: usize = 100;

/// The skills as they were found; their text is read when they are used. Their descriptions are
/// looked at before every request.
pub(crate) struct FoundSkills {
    paths: KnowledgePaths,
    masker: Masker,
    found: NamedItems<Skill>,
}

impl FoundSkills {
    /// Looks for skills; none when there are none.
    pub(crate) fn look(paths: &KnowledgePaths, masker: &Masker) -> Option<Self> {
        // What is wrong with one is reported by `SkillWatch`.
        let found = skills::load(paths, &mut Vec::new());
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

    /// What the model reads in advance: names and descriptions.
    pub(crate) fn listed(&self) -> CaseDocument {
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

/// The files that skills come from, as they were when they were last described.
pub(crate) struct SkillWatch {
    stamps: Stamps,
    /// What people have not seen yet.
    problems: Vec<FileProblem>,
}

impl SkillWatch {
    /// Looks at them.
    pub(crate) fn of(paths: &KnowledgePaths) -> Self {
        let tops: Vec<_> = paths
            .folders(KnowledgeKind::Skills)
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
        let stamps = Stamps::of(
            tops.iter()
                .cloned()
                .chain(folders.iter().cloned())
                .chain(files),
        );
        let mut problems = Vec::new();
        skills::load(paths, &mut problems);
        Self { stamps, problems }
    }

    /// What people should know and have not seen.
    pub(crate) fn take_problems(&mut self) -> Vec<String> {
        self.problems
            .drain(..)
            .map(|problem| problem.to_string())
            .collect()
    }

    /// Whether one of them was added, changed or removed since.
    pub(crate) fn changed(&mut self, paths: &KnowledgePaths) -> bool {
        if self.stamps.same() {
            return false;
        }
        *self = Self::of(paths);
        true
    }
}

impl SkillShelf for FoundSkills {
    fn names(&self) -> Vec<String> {
        self.found
            .items
            .iter()
            .map(|skill| skill.name.clone())
            .collect()
    }

    fn open(&self, name: &str) -> Option<OpenedSkill> {
        let now = skills::load(&self.paths, &mut Vec::new());
        let skill = now.get(name)?;
        Some(OpenedSkill {
            text: self.masker.mask(&skill.text).into_owned(),
            folder: skill.folder().to_owned(),
            files: skill.files(MOST_FILES),
        })
    }
}
