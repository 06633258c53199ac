//! Loads skills, which are instructions for a kind of task in the public format (`SKILL.md` in a
//! folder of its own).
//!
//! The prompt contains only the name and the description; the model reads the rest on demand.

use std::path::{Path, PathBuf};

use haft_text::NameRule;
use serde::Deserialize;

use crate::file_reading;
use crate::front_matter;
use crate::knowledge::{KnowledgeKind, KnowledgePaths, Level};
use crate::named::{NamedItems, named};
use crate::problem::FileProblem;

/// The maximum length of a description in the public format, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    /// A description of the skill's purpose, and of the tasks for which it is used.
    pub description: String,
    /// The path of the `SKILL.md` file.
    pub path: PathBuf,
    pub level: Level,
    /// The body of `SKILL.md`, without the front matter.
    pub text: String,
}

impl Skill {
    /// Returns the folder that contains the files of the skill.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Returns at most `max_files` files of the skill other than `SKILL.md`, relative to its
    /// folder.
    pub fn list_files(&self, max_files: usize) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.folder().to_owned()];
        while let Some(folder) = open.pop() {
            for name in file_reading::list_names(&folder) {
                let path = folder.join(name);
                let Ok(metadata) = path.symlink_metadata() else {
                    continue;
                };
                if metadata.is_dir() {
                    open.push(path);
                } else if metadata.is_file() && path != self.path && found.len() < max_files {
                    found.push(
                        path.strip_prefix(self.folder())
                            .unwrap_or(&path)
                            .display()
                            .to_string(),
                    );
                }
            }
        }
        found.sort();
        found
    }
}

named!(Skill);

#[derive(Default, Deserialize)]
#[serde(default)]
struct SkillFrontMatter {
    name: Option<String>,
    description: Option<String>,
}

/// Loads all skills. An unusable skill is reported and skipped.
pub fn load_skills(
    knowledge: &KnowledgePaths,
    problems: &mut Vec<FileProblem>,
) -> NamedItems<Skill> {
    let mut found = NamedItems::default();
    for folder in knowledge.folders_of_kind(KnowledgeKind::Skills) {
        for name in file_reading::list_names(&folder.path) {
            let path = folder.path.join(&name).join("SKILL.md");
            if !path.is_file() {
                continue;
            }
            let Some(read) = file_reading::read_file(knowledge, &path, problems) else {
                continue;
            };
            add_skill(&mut found, &name, path, folder.level, &read.text, problems);
        }
    }
    found.sort_by_name()
}

fn add_skill(
    found: &mut NamedItems<Skill>,
    folder: &str,
    path: PathBuf,
    level: Level,
    text: &str,
    problems: &mut Vec<FileProblem>,
) {
    let parted = front_matter::split_file::<SkillFrontMatter>(&path, text, problems);
    if parted.broken {
        return;
    }
    let mut skip =
        |what: String| problems.push(FileProblem::new(&path, format!("{what}; it is skipped")));
    let (Some(name), Some(description)) = (parted.head.name, parted.head.description) else {
        return skip("the front matter must give `name` and `description`".to_owned());
    };
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    if !NameRule::Slug.allows(&name) {
        return skip(format!(
            "`{name}` is not a name: use up to 64 of a-z, 0-9 and single `-`"
        ));
    }
    if description.is_empty() || description.chars().count() > MAX_DESCRIPTION_CHARS {
        return skip(format!(
            "its `description` must have 1 to {MAX_DESCRIPTION_CHARS} characters"
        ));
    }
    if name != folder {
        problems.push(FileProblem::new(
            &path,
            format!("its name is `{name}`, but its folder is `{folder}`; they should be the same"),
        ));
    }
    found.add(Skill {
        name,
        description,
        path,
        level,
        text: parted.body.trim().to_owned(),
    });
}
