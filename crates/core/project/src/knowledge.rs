//! Lists the folders in which knowledge of a project is searched, in order of precedence.
//!
//! Every kind of knowledge has this order: the project's own folder, then the user's, then the
//! user's folder for this project. On each level haft's folder precedes those of other programs
//! ([`crate::compat`]).

use std::path::{Path, PathBuf};

use crate::compat;

/// A kind of file that guides or extends the model's work, each stored in folders of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KnowledgeKind {
    /// Texts that guide the model.
    Rules,
    /// Roles for sub-agents.
    Agents,
    /// Instructions for kinds of tasks, loaded on demand.
    Skills,
    /// Prompts that the user calls by name.
    Commands,
    /// Programs that the model can run.
    Tools,
    /// Sequences of agent steps that are run by name.
    Workflows,
}

impl KnowledgeKind {
    /// Returns the name of the folders that contain this kind of knowledge.
    pub fn folder_name(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Agents => "agents",
            Self::Skills => "skills",
            Self::Commands => "commands",
            Self::Tools => "tools",
            Self::Workflows => "workflows",
        }
    }
}

/// The owner of a knowledge folder, and the projects to which the folder applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A folder inside the project.
    Project,
    /// A folder of the user that applies to all projects.
    User,
    /// A folder of the user that applies to one project only.
    Repository,
}

impl Level {
    /// Returns the name of the level as shown in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Repository => "user, for this project",
        }
    }
}

/// A knowledge folder, which need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnowledgeFolder {
    pub path: PathBuf,
    pub level: Level,
}

/// The paths from which the knowledge folders of a project and its user are derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnowledgePaths {
    /// The root of the project.
    pub root: PathBuf,
    /// The working directory, at or below the root.
    pub cwd: PathBuf,
    /// True if the project is trusted. Files of an untrusted project are not read.
    pub trusted: bool,
    /// The user's configuration folder.
    pub user: PathBuf,
    /// The user's home folder, in which other programs have their folders.
    pub home: Option<PathBuf>,
}

impl KnowledgePaths {
    /// Returns the last component of the root's path. It is also the name of the user's folders for
    /// this project.
    pub fn project_name(&self) -> String {
        self.root
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// Returns the folders for one kind of knowledge, in order of precedence.
    pub fn folders_of_kind(&self, kind: KnowledgeKind) -> Vec<KnowledgeFolder> {
        let mut found = Vec::new();
        let mut add = |path: PathBuf, level| {
            if !found
                .iter()
                .any(|folder: &KnowledgeFolder| folder.path == path)
            {
                found.push(KnowledgeFolder { path, level });
            }
        };
        if self.trusted {
            add(self.project_folder(kind), Level::Project);
            compat::project_folders(kind)
                .for_each(|name| add(self.root.join(name), Level::Project));
        }
        add(self.user_folder(kind), Level::User);
        if let Some(home) = &self.home {
            compat::home_folders(kind).for_each(|name| add(home.join(name), Level::User));
        }
        let name = self.project_name();
        if !name.is_empty() {
            add(
                self.user.join("repos").join(&name).join(kind.folder_name()),
                Level::Repository,
            );
            if let Some(home) = &self.home {
                compat::repository_folders(kind).for_each(|folder| {
                    add(
                        home.join(folder).join("repos").join(&name),
                        Level::Repository,
                    );
                });
            }
        }
        found
    }

    /// Returns haft's own folder in the project for one kind of knowledge.
    pub fn project_folder(&self, kind: KnowledgeKind) -> PathBuf {
        self.root.join(".haft").join(kind.folder_name())
    }

    /// Returns the folder for one kind of knowledge in the user's configuration folder, which
    /// applies to all projects.
    pub fn user_folder(&self, kind: KnowledgeKind) -> PathBuf {
        self.user.join(kind.folder_name())
    }

    /// Returns a path in the form shown to people and the model. A path in the project is relative
    /// to the root.
    pub fn display_path(&self, path: &Path) -> String {
        path.strip_prefix(&self.root)
            .unwrap_or(path)
            .display()
            .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knowledge(trusted: bool) -> KnowledgePaths {
        KnowledgePaths {
            root: "/work/shop".into(),
            cwd: "/work/shop/src".into(),
            trusted,
            user: "/home/u/.config/haft".into(),
            home: Some("/home/u".into()),
        }
    }

    fn folder_paths(knowledge: &KnowledgePaths, kind: KnowledgeKind) -> Vec<String> {
        knowledge
            .folders_of_kind(kind)
            .into_iter()
            .map(|folder| folder.path.display().to_string())
            .collect()
    }

    #[test]
    fn folders_are_the_projects_then_the_users() {
        assert_eq!(
            folder_paths(&knowledge(true), KnowledgeKind::Rules),
            [
                "/work/shop/.haft/rules",
                "/work/shop/.autocoderrules",
                "/work/shop/.auto-coder/.autocoderrules",
                "/work/shop/.auto-coder/autocoderrules",
                "/work/shop/.claude/rules",
                "/work/shop/.cursor/rules",
                "/home/u/.config/haft/rules",
                "/home/u/.auto-coder/autocoderrules",
                "/home/u/.config/haft/repos/shop/rules",
                "/home/u/.auto-coder/autocoderrules/repos/shop",
            ]
        );
        assert_eq!(
            folder_paths(&knowledge(true), KnowledgeKind::Skills),
            [
                "/work/shop/.haft/skills",
                "/work/shop/.claude/skills",
                "/work/shop/.agents/skills",
                "/home/u/.config/haft/skills",
                "/home/u/.claude/skills",
                "/home/u/.agents/skills",
                "/home/u/.config/haft/repos/shop/skills",
            ]
        );
    }

    #[test]
    fn folders_exclude_an_untrusted_project() {
        for kind in [
            KnowledgeKind::Rules,
            KnowledgeKind::Agents,
            KnowledgeKind::Skills,
            KnowledgeKind::Commands,
            KnowledgeKind::Tools,
            KnowledgeKind::Workflows,
        ] {
            assert!(
                folder_paths(&knowledge(false), kind)
                    .iter()
                    .all(|path| path.starts_with("/home/u")),
                "{kind:?}"
            );
        }
    }
}
