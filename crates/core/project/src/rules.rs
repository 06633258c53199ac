//! Loads rules, which are texts that guide the model.
//!
//! Of the project's rule folders only the first that contains a rule file is used; the user's
//! folders are added after it. A file that is reached twice is loaded once.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;

use crate::compat;
use crate::file_reading;
use crate::front_matter::{self, SplitFile, WordList};
use crate::knowledge::{KnowledgeKind, KnowledgePaths, Level};
use crate::problem::FileProblem;

/// The condition under which a rule is sent.
#[derive(Clone, Debug)]
pub enum RuleScope {
    /// The rule is part of every request.
    Always,
    /// The rule is part of every request and contains an index of the other rules.
    Index,
    /// The rule is sent once a matching file is read, edited or mentioned.
    Matching(PathPatterns),
    /// The rule is sent only if the model reads its file.
    OnDemand,
}

/// A set of glob patterns for paths relative to the project's root.
#[derive(Clone, Debug)]
pub struct PathPatterns {
    patterns: Vec<String>,
    set: GlobSet,
}

impl PathPatterns {
    /// Returns the patterns as they are written in the rule file.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }

    /// True if a pattern matches a path relative to the project's root.
    pub fn matches(&self, path: &Path) -> bool {
        self.set.is_match(path)
    }

    /// Compiles the patterns. Invalid patterns are skipped, and a description of the problem is
    /// returned for each of them.
    fn new(patterns: Vec<String>) -> (Self, Vec<String>) {
        let mut builder = GlobSetBuilder::new();
        let mut wrong = Vec::new();
        for pattern in &patterns {
            let written = pattern.trim_start_matches("./").trim_start_matches('/');
            // A pattern without a slash matches in every folder. A pattern that matches a folder
            // also matches everything below it.
            let mut full = if written.contains('/') {
                written.to_owned()
            } else {
                format!("**/{written}")
            };
            if full.ends_with('/') {
                full.push_str("**");
            }
            match GlobBuilder::new(&full).literal_separator(true).build() {
                Ok(glob) => {
                    builder.add(glob);
                }
                Err(error) => wrong.push(format!(
                    "`{pattern}` is not a pattern of paths: {}",
                    error.kind()
                )),
            }
        }
        (
            Self {
                patterns,
                set: builder.build().unwrap_or_default(),
            },
            wrong,
        )
    }
}

#[derive(Clone, Debug)]
pub struct RuleFile {
    /// The name of the rule file without its extension.
    pub name: String,
    pub path: PathBuf,
    pub level: Level,
    pub description: String,
    /// The condition under which the rule is sent.
    pub scope: RuleScope,
    /// The text of the rule, without the front matter.
    pub text: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RuleFrontMatter {
    description: Option<String>,
    #[serde(alias = "paths")]
    globs: WordList,
    #[serde(rename = "alwaysApply", alias = "always_apply")]
    always_apply: Option<bool>,
}

/// Returns the folders from which rules are loaded: the first folder of the project that contains a
/// rule file, and all folders of the user.
pub fn list_rule_folders(knowledge: &KnowledgePaths) -> Vec<crate::knowledge::KnowledgeFolder> {
    let mut from_project = false;
    let mut folders = knowledge.folders_of_kind(KnowledgeKind::Rules);
    folders.retain(|folder| {
        let first = folder.level != Level::Project || !from_project;
        let counts = first && !list_rule_files(&folder.path).is_empty();
        from_project |= counts && folder.level == Level::Project;
        counts
    });
    folders
}

/// Loads all rules, in the order in which they are sent.
pub fn load_rules(knowledge: &KnowledgePaths, problems: &mut Vec<FileProblem>) -> Vec<RuleFile> {
    let mut reached = HashSet::new();
    let mut rules = Vec::new();
    for folder in list_rule_folders(knowledge) {
        for path in list_rule_files(&folder.path) {
            let Some(read) = file_reading::read_file(knowledge, &path, problems) else {
                continue;
            };
            if reached.insert(read.real) {
                let mut rule = parse_rule(path, folder.level, &read.text, problems);
                if matches!(rule.scope, RuleScope::OnDemand)
                    && compat::rules_apply_always(&rule.path)
                {
                    rule.scope = RuleScope::Always;
                }
                rules.push(rule);
            }
        }
    }
    rules
}

/// Returns the rule files of a folder.
fn list_rule_files(folder: &Path) -> Vec<PathBuf> {
    file_reading::list_files_with_extension(folder, compat::rule_file_extensions(folder))
}

fn parse_rule(
    path: PathBuf,
    level: Level,
    text: &str,
    problems: &mut Vec<FileProblem>,
) -> RuleFile {
    let SplitFile { head, body, .. } =
        front_matter::split_file::<RuleFrontMatter>(&path, text, problems);
    let name = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    let applies = if name.eq_ignore_ascii_case("index") {
        RuleScope::Index
    } else if head.always_apply == Some(true) {
        RuleScope::Always
    } else if head.globs.0.is_empty() {
        RuleScope::OnDemand
    } else {
        let (globs, wrong) = PathPatterns::new(head.globs.0);
        problems.extend(wrong.into_iter().map(|what| FileProblem::new(&path, what)));
        RuleScope::Matching(globs)
    };
    let description = head.description.unwrap_or_default().trim().to_owned();
    RuleFile {
        name,
        path,
        level,
        description,
        scope: applies,
        text: body.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn globs(patterns: &[&str]) -> PathPatterns {
        PathPatterns::new(
            patterns
                .iter()
                .map(|pattern| (*pattern).to_owned())
                .collect(),
        )
        .0
    }

    #[test]
    fn globs_match_as_in_other_tools() {
        let matches = |pattern: &str, path: &str| globs(&[pattern]).matches(Path::new(path));
        assert!(matches("*.rs", "deep/down/a.rs"));
        assert!(matches("src/*.rs", "src/a.rs") && !matches("src/*.rs", "src/deep/a.rs"));
        assert!(matches("src/", "src/deep/a.rs") && matches("./src/**/*.ts", "src/x/y.ts"));
        assert!(matches("**/*.{ts,tsx}", "a.tsx") && !matches("**/*.{ts,tsx}", "a.js"));
    }

    #[test]
    fn load_takes_the_first_project_folder_and_adds_the_users() {
        let project = tempfile::tempdir().unwrap();
        let user = tempfile::tempdir().unwrap();
        let root = project.path().canonicalize().unwrap();
        let knowledge = KnowledgePaths {
            cwd: root.clone(),
            root: root.clone(),
            trusted: true,
            user: user.path().canonicalize().unwrap(),
            home: None,
        };
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        fs::create_dir_all(root.join(".haft/rules")).unwrap();
        write(
            root.join(".autocoderrules/b.md"),
            "---\nalwaysApply: true\n---\nB",
        );
        write(
            root.join(".autocoderrules/a.md"),
            "---\nglobs: '*.py'\n---\nA",
        );
        write(root.join(".autocoderrules/sub/c.md"), "not looked for");
        write(
            root.join(".autocoderrules/index.md"),
            "---\nglobs: [\n---\nRead a.md.",
        );
        write(root.join(".claude/rules/late.md"), "too late");
        write(knowledge.user.join("rules/mine.md"), "mine");
        let mut problems = Vec::new();
        let rules = load_rules(&knowledge, &mut problems);
        let shown: Vec<_> = rules
            .iter()
            .map(|rule| {
                let when = match &rule.scope {
                    RuleScope::Always => "always",
                    RuleScope::Index => "index",
                    RuleScope::Matching(_) => "globs",
                    RuleScope::OnDemand => "on demand",
                };
                (rule.name.as_str(), when, rule.text.as_str())
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("a", "globs", "A"),
                ("b", "always", "B"),
                ("index", "index", "Read a.md."),
                ("mine", "on demand", "mine"),
            ]
        );
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].path.ends_with("index.md") && problems[0].line.is_some());
    }

    #[test]
    fn load_does_not_follow_a_link_out_of_the_project() {
        let project = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let root = project.path().canonicalize().unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        fs::create_dir_all(root.join(".haft/rules")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), root.join(".haft/rules/x.md"))
            .unwrap();
        let user = root.join("none");
        let knowledge = KnowledgePaths {
            cwd: root.clone(),
            root,
            trusted: true,
            user,
            home: None,
        };
        let mut problems = Vec::new();
        assert!(load_rules(&knowledge, &mut problems).is_empty());
        assert!(
            problems[0].what.contains("leads out of the project"),
            "{problems:?}"
        );
    }
}
