//! Reads and writes short descriptions of a project's folders, the active context.
//!
//! If haft has not described a folder, auto-coder's description of the folder is read. The
//! description of `src/pay` is in `.haft/active-context/src/pay/active.md`. Writing never follows a
//! link.

use std::io;
use std::path::{Component, Path, PathBuf};

use haft_files::Durability;

use crate::compat;
use crate::file_reading;
use crate::knowledge::KnowledgePaths;
use crate::problem::FileProblem;

/// The folder that contains the descriptions of a project's folders, relative to the project's
/// root.
const CONTEXT_FOLDER: &str = ".haft/active-context";
const DESCRIPTION_FILE: &str = "active.md";
/// The maximum number of folder descriptions that are read. The number is limited because all
/// descriptions are part of every request.
const MAX_DESCRIPTIONS: usize = 100;
/// The maximum depth to which the folder of descriptions is searched.
const MAX_DEPTH: usize = 12;
/// The maximum size of the description of a folder, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 4 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The path of the described folder, relative to the project's root; empty for the root itself.
    pub folder: PathBuf,
    pub text: String,
}

/// Reads all descriptions of a trusted project, sorted by folder. Descriptions of folders that no
/// longer exist are skipped.
pub fn load_descriptions(
    knowledge: &KnowledgePaths,
    problems: &mut Vec<FileProblem>,
) -> Vec<Description> {
    let mut found = Vec::new();
    if knowledge.trusted {
        for top in [CONTEXT_FOLDER, compat::ACTIVE_CONTEXT] {
            read_folder(knowledge, top, Path::new(""), 0, &mut found, problems);
        }
        found.sort_by(|a, b| a.folder.cmp(&b.folder));
    }
    found
}

fn read_folder(
    knowledge: &KnowledgePaths,
    top: &str,
    folder: &Path,
    depth: usize,
    found: &mut Vec<Description>,
    problems: &mut Vec<FileProblem>,
) {
    let place = knowledge.root.join(top).join(folder);
    let names = file_reading::list_names(&place);
    let path = place.join(DESCRIPTION_FILE);
    let is_file = path
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_file());
    let is_new = !found.iter().any(|one| one.folder == folder);
    if is_file && is_new && found.len() < MAX_DESCRIPTIONS && knowledge.root.join(folder).is_dir() {
        let read = file_reading::read_file(knowledge, &path, problems);
        let text = read
            .map(|read| truncate_description(read.text.trim()).to_owned())
            .filter(|text| !text.is_empty());
        found.extend(text.map(|text| Description {
            folder: folder.to_owned(),
            text,
        }));
    }
    if depth < MAX_DEPTH {
        let folders = names.iter().filter(|name| {
            place
                .join(name)
                .symlink_metadata()
                .is_ok_and(|metadata| metadata.is_dir())
        });
        for name in folders {
            read_folder(
                knowledge,
                top,
                &folder.join(name),
                depth + 1,
                found,
                problems,
            );
        }
    }
}

fn truncate_description(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_DESCRIPTION_BYTES))
        .unwrap_or_default()
}

/// Returns all descriptions as one text for the model, or `None` if there are no descriptions.
pub fn render_descriptions(descriptions: &[Description]) -> Option<String> {
    let render = |description: &Description| {
        let folder = description.folder.display().to_string();
        let folder = if folder.is_empty() {
            ".".to_owned()
        } else {
            folder
        };
        format!("## `{folder}`\n\n{}", description.text)
    };
    let all: Vec<_> = descriptions.iter().map(render).collect();
    (!all.is_empty()).then(|| {
        format!(
            "What folders of this project hold, and what changed there last. Files may have changed since.\n\n{}",
            all.join("\n\n")
        )
    })
}

/// Writes the description of `folder`, a path relative to the project's root. Fails if a link is on
/// the way to the file.
pub fn write_description(knowledge: &KnowledgePaths, folder: &Path, text: &str) -> io::Result<()> {
    let path = description_path(knowledge, folder)?;
    let mut inside = path.ancestors().take_while(|path| *path != knowledge.root);
    let link = inside.find(|path| {
        path.symlink_metadata()
            .is_ok_and(|metadata| metadata.is_symlink())
    });
    if let Some(link) = link {
        return Err(io::Error::other(format!("{} is a link", link.display())));
    }
    haft_files::replace_file(
        &path,
        format!("{}\n", truncate_description(text.trim())).as_bytes(),
        Durability::PowerCut,
    )
}

/// Returns the path of the file that contains the description of a folder.
fn description_path(knowledge: &KnowledgePaths, folder: &Path) -> io::Result<PathBuf> {
    if folder
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
    {
        return Ok(knowledge
            .root
            .join(CONTEXT_FOLDER)
            .join(folder)
            .join(DESCRIPTION_FILE));
    }
    Err(io::Error::other(format!(
        "{} is not a folder of the project",
        folder.display()
    )))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn knowledge(root: &Path, trusted: bool) -> KnowledgePaths {
        KnowledgePaths {
            root: root.to_owned(),
            cwd: root.to_owned(),
            user: "/u".into(),
            trusted,
            home: None,
        }
    }

    #[test]
    fn load_returns_written_text_while_the_folder_exists() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let knowledge = knowledge(&root, true);
        assert_eq!(
            render_descriptions(&load_descriptions(&knowledge, &mut Vec::new())),
            None
        );
        fs::create_dir_all(root.join("src/pay")).unwrap();
        write_description(&knowledge, Path::new("src/pay"), " Takes money.\n").unwrap();
        write_description(&knowledge, Path::new(""), &"x".repeat(10_000)).unwrap();
        write_description(&knowledge, Path::new("gone"), "Nothing.").unwrap();
        let found = load_descriptions(&knowledge, &mut Vec::new());
        assert_eq!(
            found
                .iter()
                .map(|one| one.folder.to_str().unwrap())
                .collect::<Vec<_>>(),
            ["", "src/pay"]
        );
        assert_eq!(found[0].text.len(), MAX_DESCRIPTION_BYTES);
        assert!(
            render_descriptions(&found)
                .unwrap()
                .ends_with("## `src/pay`\n\nTakes money.")
        );
        assert!(load_descriptions(&self::knowledge(&root, false), &mut Vec::new()).is_empty());
        for (folder, text) in [("src", "By auto-coder."), ("src/pay", "Older.")] {
            let place = root.join(compat::ACTIVE_CONTEXT).join(folder);
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join(DESCRIPTION_FILE), text).unwrap();
        }
        let found: Vec<_> = load_descriptions(&knowledge, &mut Vec::new())
            .into_iter()
            .skip(1)
            .map(|one| one.text)
            .collect();
        assert_eq!(found, ["By auto-coder.", "Takes money."]);
    }

    #[test]
    fn write_rejects_folders_outside_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let knowledge = knowledge(&folder.path().canonicalize().unwrap(), true);
        assert!(write_description(&knowledge, Path::new("../out"), "x").is_err());
        fs::create_dir_all(knowledge.root.join(CONTEXT_FOLDER)).unwrap();
        std::os::unix::fs::symlink(
            other.path(),
            knowledge.root.join(CONTEXT_FOLDER).join("src"),
        )
        .unwrap();
        assert!(write_description(&knowledge, Path::new("src/deep"), "x").is_err());
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
    }
}
