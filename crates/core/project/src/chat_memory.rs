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

/// Returns the path of the file in which auto-coder's chat stores its memory of a project.
pub fn memory_file(root: &Path) -> PathBuf {
    root.join(compat::MEMORY_FILE)
}

/// Reads the memory file of a trusted project. Invalid content is reported and skipped.
pub fn load_memory(knowledge: &KnowledgePaths, problems: &mut Vec<FileProblem>) -> ChatMemory {
    let path = memory_file(&knowledge.root);
    if !knowledge.trusted || !path.is_file() {
        return ChatMemory::default();
    }
    let Some(read) = file_reading::read_file(knowledge, &path, problems) else {
        return ChatMemory::default();
    };
    let memory: Value = match serde_json::from_str(&read.text) {
        Ok(memory) => memory,
        Err(error) => {
            problems.push(FileProblem::new(
                &path,
                format!("it is not JSON and is left out: {error}"),
            ));
            return ChatMemory::default();
        }
    };
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
    ChatMemory {
        focus_files: collect_names(files)
            .into_iter()
            .filter_map(inside)
            .take(MAX_FOCUS_FILES)
            .collect(),
        libraries: collect_names(memory.get("libs")),
    }
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
        fs::create_dir_all(memory_file(&root).parent().unwrap()).unwrap();
        fs::write(root.join("a.py"), "").unwrap();
        let absolute = root.join("a.py").display().to_string();
        let memory = serde_json::json!({
            "current_files": {"files": [absolute, "gone.py", "/etc/passwd"], "groups": {"g": []}},
            "libs": {"flask": {}, "a/requests": {}}, "conf": {"model": "x"},
        });
        fs::write(memory_file(&root), memory.to_string()).unwrap();
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
            fs::write(memory_file(&root), odd).unwrap();
            assert_eq!(
                load_memory(&knowledge, &mut Vec::new()),
                ChatMemory::default(),
                "{odd}"
            );
        }
    }
}
