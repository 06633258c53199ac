//! Reads the data that auto-coder's chat has stored about a project: the files in focus, and the
//! libraries in use.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::compat;
use crate::file_reading;
use crate::knowledge::KnowledgePaths;
use crate::problem::FileProblem;

/// The maximum number of files in focus. The number is limited because these files are part of
/// every request.
const MAX_FOCUS_FILES: usize = 100;

/// The part of the memory of auto-coder's chat that haft uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatMemory {
    /// The files in focus that exist in the project, relative to its root.
    pub focus_files: Vec<String>,
    /// The names of the libraries whose documentation the chat uses.
    pub libraries: Vec<String>,
}

/// Returns the existing files in which auto-coder's chat stores its memory of a project, in order
/// of precedence.
pub fn list_memory_files(root: &Path) -> Vec<PathBuf> {
    compat::MEMORY_FILES
        .iter()
        .chain(&compat::LIBRARY_LISTS)
        .map(|name| root.join(name))
        .filter(|path| path.is_file())
        .collect()
}

/// Reads the memory files of a trusted project. Invalid content is reported and skipped. The files
/// in focus come from the first file that has any; the libraries of all files are merged.
pub fn load_memory(knowledge: &KnowledgePaths, problems: &mut Vec<FileProblem>) -> ChatMemory {
    let mut found = ChatMemory::default();
    if !knowledge.trusted {
        return found;
    }
    for path in list_memory_files(&knowledge.root) {
        let Some(content) = read_memory_file(knowledge, &path, problems) else {
            continue;
        };
        let is_list = compat::LIBRARY_LISTS
            .iter()
            .any(|name| path == knowledge.root.join(name));
        let libraries = match content.get("libs") {
            None if is_list => collect_names(Some(&content)),
            libraries => collect_names(libraries),
        };
        for library in libraries {
            if !found.libraries.contains(&library) {
                found.libraries.push(library);
            }
        }
        if found.focus_files.is_empty() {
            found.focus_files = find_focus_files(knowledge, &content);
        }
    }
    found
}

fn read_memory_file(
    knowledge: &KnowledgePaths,
    path: &Path,
    problems: &mut Vec<FileProblem>,
) -> Option<Value> {
    let read = file_reading::read_file(knowledge, path, problems)?;
    serde_json::from_str(&read.text)
        .map_err(|error| {
            problems.push(FileProblem::new(
                path,
                format!("it is not JSON and is left out: {error}"),
            ));
        })
        .ok()
}

/// Returns the files in focus that exist in the project, relative to its root.
fn find_focus_files(knowledge: &KnowledgePaths, memory: &Value) -> Vec<String> {
    let real_root = knowledge
        .root
        .canonicalize()
        .unwrap_or_else(|_| knowledge.root.clone());
    let inside = |name: String| {
        let real = knowledge
            .root
            .join(name)
            .canonicalize()
            .ok()
            .filter(|real| real.is_file())?;
        Some(real.strip_prefix(&real_root).ok()?.display().to_string())
    };
    let files = memory
        .get("current_files")
        .map(|files| files.get("files").unwrap_or(files));
    collect_names(files)
        .into_iter()
        .filter_map(inside)
        .take(MAX_FOCUS_FILES)
        .collect()
}

/// Returns the strings in a JSON list, or the keys of a JSON object.
fn collect_names(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(list)) => list
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        Some(Value::Object(kept)) => kept.keys().cloned().collect(),
        Some(_) | None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn load_returns_only_files_and_libraries_of_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let mut knowledge = KnowledgePaths {
            root: root.clone(),
            cwd: root.clone(),
            trusted: true,
            user: "/u".into(),
            home: None,
        };
        assert_eq!(
            load_memory(&knowledge, &mut Vec::new()),
            ChatMemory::default()
        );
        let file = root.join(compat::MEMORY_FILES[0]);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(root.join("a.py"), "").unwrap();
        let absolute = root.join("a.py").display().to_string();
        let memory = serde_json::json!({
            "current_files": {"files": [absolute, "gone.py", "/etc/passwd"], "groups": {"g": []}},
            "libs": {"flask": {}, "a/requests": {}}, "conf": {"model": "x"},
        });
        fs::write(&file, memory.to_string()).unwrap();
        let read = load_memory(&knowledge, &mut Vec::new());
        assert_eq!(
            (read.focus_files, read.libraries),
            (
                vec!["a.py".to_owned()],
                vec!["flask".into(), "a/requests".into()]
            )
        );
        knowledge.trusted = false;
        assert_eq!(
            load_memory(&knowledge, &mut Vec::new()),
            ChatMemory::default()
        );
        knowledge.trusted = true;
        for odd in ["{", "[]", "{\"libs\": 3, \"current_files\": null}"] {
            fs::write(&file, odd).unwrap();
            assert_eq!(
                load_memory(&knowledge, &mut Vec::new()),
                ChatMemory::default(),
                "{odd}"
            );
        }
    }

    #[test]
    fn load_merges_the_libraries_of_all_memory_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let knowledge = KnowledgePaths {
            root: root.clone(),
            cwd: root.clone(),
            trusted: true,
            user: "/u".into(),
            home: None,
        };
        for name in ["a.py", "b.py"] {
            fs::write(root.join(name), "").unwrap();
        }
        for (name, content) in [
            (
                compat::MEMORY_FILES[0],
                r#"{"libs": {"flask": {}}, "current_files": {"files": []}}"#,
            ),
            (
                compat::MEMORY_FILES[1],
                r#"{"libs": ["flask", "requests"], "current_files": ["b.py", "a.py"]}"#,
            ),
            (compat::LIBRARY_LISTS[0], r#"{"u/numpy": {"added": 1}}"#),
            (compat::LIBRARY_LISTS[1], r#"{"libs": {"attrs": {}}}"#),
        ] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        assert_eq!(
            load_memory(&knowledge, &mut Vec::new()),
            ChatMemory {
                focus_files: vec!["b.py".into(), "a.py".into()],
                libraries: ["flask", "requests", "u/numpy", "attrs"]
                    .map(str::to_owned)
                    .to_vec(),
            }
        );
        fs::write(root.join(compat::LIBRARY_LISTS[1]), "[").unwrap();
        let mut problems = Vec::new();
        assert_eq!(load_memory(&knowledge, &mut problems).libraries.len(), 3);
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].path, root.join(compat::LIBRARY_LISTS[1]));
    }
}
