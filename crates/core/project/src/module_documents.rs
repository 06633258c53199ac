//! Detects whether a project has module documents.
//!
//! The tools for module documents cost tokens in every request, so they are offered only if a
//! project has such a document. The search must not delay the start: it is breadth-first and
//! limited to a number of folders.

use std::collections::VecDeque;
use std::fs;

use crate::knowledge::KnowledgePaths;

/// The name of the file that documents a module, in the module's folder.
pub const DOCUMENT_FILE: &str = ".ac.mod.md";
/// The maximum number of folders that are searched for a module document.
const MAX_FOLDERS: usize = 500;
/// Folders that are not searched, because they contain dependencies or build outputs.
const SKIPPED_FOLDERS: [&str; 5] = ["node_modules", "target", "build", "dist", "vendor"];

/// True if the project is trusted and contains a module document. The search is breadth-first and
/// limited to a number of folders.
pub fn has_module_document(knowledge: &KnowledgePaths) -> bool {
    if !knowledge.trusted {
        return false;
    }
    let mut open = VecDeque::from([knowledge.root.clone()]);
    for _ in 0..MAX_FOLDERS {
        let Some(folder) = open.pop_front() else {
            break;
        };
        let Ok(entries) = fs::read_dir(folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let name = entry.file_name();
            if name == DOCUMENT_FILE && kind.is_file() {
                return true;
            }
            let name = name.to_string_lossy();
            if kind.is_dir() && !name.starts_with('.') && !SKIPPED_FOLDERS.contains(&name.as_ref())
            {
                open.push_back(entry.path());
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_finds_a_document_in_a_trusted_project() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        let knowledge = |trusted| KnowledgePaths {
            cwd: root.clone(),
            root: root.clone(),
            user: "/u".into(),
            trusted,
            home: None,
        };
        for name in ["node_modules/x", ".git/x", "a/b/c"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("node_modules/x").join(DOCUMENT_FILE), "").unwrap();
        fs::write(root.join(".git/x").join(DOCUMENT_FILE), "").unwrap();
        assert!(!has_module_document(&knowledge(true)));
        fs::write(root.join("a/b/c").join(DOCUMENT_FILE), "").unwrap();
        assert!(has_module_document(&knowledge(true)) && !has_module_document(&knowledge(false)));
    }
}
