//! Loads `AGENTS.md`, the instruction files of other programs (`CLAUDE.md`, `GEMINI.md`, Copilot's
//! instructions), and the files they import.
//!
//! The files of the root and of every folder down to the working directory always apply; the
//! nearest comes last and so takes precedence. The files of deeper folders apply once a file below
//! them is touched. `@path` in an instruction file imports the named file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::compat;
use crate::file_reading::{self, ReadBounds};
use crate::knowledge::KnowledgePaths;
use crate::problem::FileProblem;

/// The instruction file that is read first in a folder, before the instruction files of other
/// programs.
const AGENTS_FILE: &str = "AGENTS.md";
/// The maximum length of a chain of imports, in files.
const MAX_IMPORT_DEPTH: usize = 5;

/// The content of an instruction file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instructions {
    pub path: PathBuf,
    pub text: String,
}

/// Returns the folders whose instruction files apply if the files in `touched` have been read or
/// changed. The outermost folder comes first.
pub fn applicable_folders<'a>(
    knowledge: &KnowledgePaths,
    touched: impl Iterator<Item = &'a Path>,
) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut add_down_to = |folder: &Path| {
        let Ok(below) = folder.strip_prefix(&knowledge.root) else {
            return;
        };
        let mut at = knowledge.root.clone();
        let mut chain = vec![at.clone()];
        for part in below.components() {
            at.push(part);
            chain.push(at.clone());
        }
        for folder in chain {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
    };
    add_down_to(&knowledge.cwd);
    touched.filter_map(Path::parent).for_each(add_down_to);
    folders
}

/// Returns the paths of all possible instruction files of `folders` and of the user. The files need
/// not exist.
pub fn candidate_files(knowledge: &KnowledgePaths, folders: &[PathBuf]) -> Vec<PathBuf> {
    let of_project = folders
        .iter()
        .filter(|_| knowledge.trusted)
        .flat_map(|folder| {
            std::iter::once(AGENTS_FILE)
                .chain(compat::INSTRUCTION_FILES)
                .map(|name| folder.join(name))
        });
    of_project
        .chain([knowledge.user.join(AGENTS_FILE)])
        .collect()
}

/// Reads the file `CODE_LAW.md` in the project's root. The file name may have any case. If there
/// are several such files, the upper-case name is preferred.
pub fn load_code_law(
    knowledge: &KnowledgePaths,
    problems: &mut Vec<FileProblem>,
) -> Option<Instructions> {
    // Upper case sorts first.
    let name = file_reading::list_names(&knowledge.root)
        .into_iter()
        .find(|name| name.eq_ignore_ascii_case("CODE_LAW.md"))?;
    let path = knowledge.root.join(name);
    let text = file_reading::read_file(knowledge, &path, problems)?.text;
    Some(Instructions { path, text })
}

/// Reads the instruction files of `folders`, and then the user's own. If several paths link to one
/// file, or several files have equal texts, the text is loaded only once.
pub fn load_instructions(
    knowledge: &KnowledgePaths,
    folders: &[PathBuf],
    problems: &mut Vec<FileProblem>,
) -> Vec<Instructions> {
    let mut reader = InstructionReader {
        knowledge,
        seen_paths: HashSet::new(),
        seen_texts: HashSet::new(),
        found: Vec::new(),
        problems,
    };
    for path in candidate_files(knowledge, folders) {
        let within = if path.starts_with(&knowledge.root) {
            ReadBounds::Project
        } else {
            ReadBounds::Anywhere
        };
        reader.read_file(&path, within, &mut Vec::new());
    }
    reader.found
}

struct InstructionReader<'a> {
    knowledge: &'a KnowledgePaths,
    seen_paths: HashSet<PathBuf>,
    /// The texts that were already loaded, so that a copy is skipped: `CLAUDE.md` is often a copy
    /// of `AGENTS.md`.
    seen_texts: HashSet<String>,
    found: Vec<Instructions>,
    problems: &'a mut Vec<FileProblem>,
}

impl InstructionReader<'_> {
    /// Reads a file and then the files it imports. `chain` contains the files through which this
    /// file was imported.
    fn read_file(&mut self, path: &Path, within: ReadBounds, chain: &mut Vec<PathBuf>) {
        if !path.is_file() {
            return;
        }
        let Some(read) = file_reading::read_named_file(self.knowledge, path, within, self.problems)
        else {
            return;
        };
        if !self.seen_paths.insert(read.real.clone()) {
            return;
        }
        if self.seen_texts.insert(read.text.clone()) && !read.text.trim().is_empty() {
            self.found.push(Instructions {
                path: path.to_owned(),
                text: read.text.clone(),
            });
        }
        chain.push(read.real.clone());
        for Import { line, target } in find_imports(&read.text) {
            self.read_import(path, line, &target, chain);
        }
        chain.pop();
    }

    fn read_import(&mut self, from: &Path, line: usize, target: &str, chain: &mut Vec<PathBuf>) {
        // If one file in the chain is in the project, the import is confined to the project,
        // because anyone may have written that file.
        let confined = chain
            .iter()
            .any(|real| ReadBounds::for_references_in(self.knowledge, real) == ReadBounds::Project);
        let within = if confined {
            ReadBounds::Project
        } else {
            ReadBounds::Anywhere
        };
        let path = match (target.strip_prefix("~/"), &self.knowledge.home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_), None) => return,
            (None, _) => from.parent().unwrap_or(Path::new("/")).join(target),
        };
        let Ok(real) = path.canonicalize() else {
            if Path::new(target)
                .extension()
                .is_some_and(|extension| extension == "md")
            {
                self.problems.push(
                    FileProblem::new(from, format!("`@{target}` names a file that is not there"))
                        .at_line(line),
                );
            }
            return;
        };
        if !real.is_file() {
            return;
        }
        if chain.contains(&real) {
            self.problems.push(
                FileProblem::new(
                    from,
                    format!("`@{target}` imports a file that imports this one"),
                )
                .at_line(line),
            );
        } else if chain.len() >= MAX_IMPORT_DEPTH {
            let what = format!(
                "`@{target}` is left out: imports lead on at most {MAX_IMPORT_DEPTH} files"
            );
            self.problems
                .push(FileProblem::new(from, what).at_line(line));
        } else {
            self.read_file(&path, within, chain);
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Import {
    line: usize,
    target: String,
}

/// Returns the paths that a text imports: those after an `@`, unless the `@` is in code.
fn find_imports(text: &str) -> Vec<Import> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        // Every second piece is between backticks and therefore code.
        for part in line.split('`').step_by(2) {
            let words = part
                .split_whitespace()
                .filter_map(|word| word.strip_prefix('@'));
            let paths = words.map(|word| word.trim_end_matches([',', '.', ';', ':', ')']));
            let looks_like_one = |word: &&str| word.contains(['/', '.']) && !word.contains("..@");
            found.extend(paths.filter(looks_like_one).map(|word| Import {
                line: index + 1,
                target: word.to_owned(),
            }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Place {
        folder: tempfile::TempDir,
        knowledge: KnowledgePaths,
    }

    fn place(files: &[(&str, &str)], cwd: &str) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        for (name, text) in files {
            let path = top.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = top.join("project");
        let knowledge = KnowledgePaths {
            cwd: root.join(cwd),
            root,
            trusted: true,
            user: top.join("user"),
            home: Some(top.join("home")),
        };
        Place { folder, knowledge }
    }

    fn load_names_and_problems(place: &Place, touched: &[&str]) -> (Vec<String>, Vec<String>) {
        let touched: Vec<_> = touched
            .iter()
            .map(|path| place.knowledge.root.join(path))
            .collect();
        let folders = applicable_folders(&place.knowledge, touched.iter().map(PathBuf::as_path));
        let mut problems = Vec::new();
        let found = load_instructions(&place.knowledge, &folders, &mut problems);
        let top = place.folder.path().canonicalize().unwrap();
        let name = |one: Instructions| one.path.strip_prefix(&top).unwrap().display().to_string();
        (
            found.into_iter().map(name).collect(),
            problems
                .iter()
                .map(|problem| problem.what.clone())
                .collect(),
        )
    }

    #[test]
    fn load_returns_outer_files_first_and_deep_ones_once_touched() {
        let place = place(
            &[
                ("project/AGENTS.md", "root"),
                ("project/CLAUDE.md", "root"),
                ("project/a/AGENTS.md", "a"),
                ("project/a/b/CLAUDE.md", "b"),
                ("project/c/AGENTS.md", "c"),
                ("user/AGENTS.md", "user"),
            ],
            "a",
        );
        assert_eq!(
            load_names_and_problems(&place, &[]).0,
            ["project/AGENTS.md", "project/a/AGENTS.md", "user/AGENTS.md"]
        );
        assert_eq!(
            load_names_and_problems(&place, &["c/x.rs", "a/b/y.rs"]).0,
            [
                "project/AGENTS.md",
                "project/a/AGENTS.md",
                "project/c/AGENTS.md",
                "project/a/b/CLAUDE.md",
                "user/AGENTS.md"
            ]
        );
    }

    #[test]
    fn imports_follow_the_importing_file_and_appear_once() {
        let place = place(
            &[
                (
                    "project/CLAUDE.md",
                    "See @docs/style.md, and `@docs/not.md`.\n```\n@docs/not.md\n```\n@docs/style.md",
                ),
                ("project/docs/style.md", "Style. @more.md"),
                ("project/docs/more.md", "More. @style.md @gone.md @someone"),
                ("project/docs/not.md", "not"),
            ],
            "",
        );
        let (names, problems) = load_names_and_problems(&place, &[]);
        assert_eq!(
            names,
            [
                "project/CLAUDE.md",
                "project/docs/style.md",
                "project/docs/more.md"
            ]
        );
        assert_eq!(
            problems,
            [
                "`@style.md` imports a file that imports this one",
                "`@gone.md` names a file that is not there"
            ]
        );
    }

    #[test]
    fn project_files_import_nothing_from_outside() {
        let place = place(
            &[
                ("project/CLAUDE.md", "@../secret.md @~/secret.md"),
                ("secret.md", "s"),
                ("home/secret.md", "s"),
            ],
            "",
        );
        let (names, problems) = load_names_and_problems(&place, &[]);
        assert_eq!(names, ["project/CLAUDE.md"]);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(
            problems
                .iter()
                .all(|what| what.contains("leads out of the project")),
            "{problems:?}"
        );
    }

    /// Holds for every spelling and every chain of imports.
    #[test]
    fn import_of_any_spelling_stays_in_the_project() {
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().canonicalize().unwrap().join("secret.md");
        fs::write(&secret, "the secret").unwrap();
        let secret = secret.display().to_string();
        let spellings = [
            format!("@{secret}"),
            format!("@/{secret}"),
            format!("@/proc/self/root{secret}"),
            format!("@docs/../..{}{secret}", "/..".repeat(12)),
            "@/etc/passwd".to_owned(),
            "@/proc/self/environ".to_owned(),
            "@/proc/self/cwd/Cargo.toml".to_owned(),
            "@~/secret.md".to_owned(),
            "@docs/link.md".to_owned(),
            "@docs/folder/secret.md".to_owned(),
            "@../user/config.toml".to_owned(),
        ];
        for spelling in &spellings {
            // Imported by the file itself, by a file that it imports, and by the user's file that
            // imports it.
            let direct = [("project/AGENTS.md", spelling.as_str())];
            let over = [
                ("project/CLAUDE.md", "@more.md"),
                ("project/more.md", spelling.as_str()),
            ];
            let through = [
                ("user/AGENTS.md", "@../project/notes.md"),
                ("project/notes.md", spelling.as_str()),
            ];
            for files in [&direct[..], &over[..], &through[..]] {
                let mut files = files.to_vec();
                files.extend([
                    ("home/secret.md", "the secret"),
                    ("user/config.toml", "the secret"),
                    ("project/docs/a", ""),
                ]);
                let place = place(&files, "");
                let docs = place.knowledge.root.join("docs");
                std::os::unix::fs::symlink(&secret, docs.join("link.md")).unwrap();
                std::os::unix::fs::symlink(outside.path(), docs.join("folder")).unwrap();
                let mut problems = Vec::new();
                let found = load_instructions(
                    &place.knowledge,
                    std::slice::from_ref(&place.knowledge.root),
                    &mut problems,
                );
                let said: String = found.iter().map(|one| one.text.as_str()).collect();
                for word in ["the secret", "root:", "PATH=", "[package]"] {
                    assert!(
                        !said.contains(word),
                        "{spelling} in {files:?} brought in: {said}"
                    );
                }
                assert!(
                    !problems.is_empty(),
                    "{spelling} in {files:?} is left out without a word"
                );
            }
        }
    }

    #[test]
    fn imports_follow_links_and_absolute_paths_inside_the_project() {
        let place = place(
            &[
                ("project/docs/style.md", "Style."),
                ("project/docs/names.md", "Names."),
            ],
            "",
        );
        let root = place.knowledge.root.clone();
        std::os::unix::fs::symlink("docs/style.md", root.join("style.md")).unwrap();
        let text = format!("@style.md and @{}", root.join("docs/names.md").display());
        fs::write(root.join("AGENTS.md"), text).unwrap();
        let (names, problems) = load_names_and_problems(&place, &[]);
        assert_eq!(
            names,
            [
                "project/AGENTS.md",
                "project/style.md",
                "project/docs/names.md"
            ]
        );
        assert_eq!(problems, Vec::<String>::new());
    }

    #[test]
    fn user_file_imports_any_file_the_user_can_read() {
        let place = place(
            &[
                ("user/AGENTS.md", "@~/mine.md @more.md"),
                ("home/mine.md", "mine"),
                ("user/more.md", "more"),
            ],
            "",
        );
        assert_eq!(
            load_names_and_problems(&place, &[]).0,
            ["user/AGENTS.md", "home/mine.md", "user/more.md"]
        );
    }
}
