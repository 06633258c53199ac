//! Active context: short descriptions of a project's folders, which haft writes and reads itself.
//!
//! Those that auto-coder wrote are read for folders that have none of haft's. That of `src/pay` is
//! `.haft/active-context/src/pay/active.md`. Nothing is written through a link that leads
//! elsewhere.

use std::io;
use std::path::{Component, Path, PathBuf};

use haft_files::Durability;

use crate::compat;
use crate::file;
use crate::knowledge::KnowledgePaths;
use crate::problem::FileProblem;

/// Where they lie.
const FOLDER: &str = ".haft/active-context";
const FILE: &str = "active.md";
/// So many are read, so deep, and so much of each: they are part of every request.
const MOST: usize = 100;
const DEEPEST: usize = 12;
const LARGEST: usize = 4 * 1024;

/// The description of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The folder, below the project's root; empty for the root itself.
    pub folder: PathBuf,
    /// What it says.
    pub text: String,
}

/// All descriptions of a project that is trusted, in the order of their folders. Those of folders
/// that are gone are left out.
pub fn load(knowledge: &KnowledgePaths, problems: &mut Vec<FileProblem>) -> Vec<Description> {
    let mut found = Vec::new();
    if knowledge.trusted {
        for top in [FOLDER, compat::ACTIVE_CONTEXT] {
            read(knowledge, top, Path::new(""), 0, &mut found, problems);
        }
        found.sort_by(|a, b| a.folder.cmp(&b.folder));
    }
    found
}

fn read(
    knowledge: &KnowledgePaths,
    top: &str,
    folder: &Path,
    depth: usize,
    found: &mut Vec<Description>,
    problems: &mut Vec<FileProblem>,
) {
    let place = knowledge.root.join(top).join(folder);
    let names = file::names(&place);
    let path = place.join(FILE);
    let is_file = path
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_file());
    let is_new = !found.iter().any(|one| one.folder == folder);
    if is_file && is_new && found.len() < MOST && knowledge.root.join(folder).is_dir() {
        let read = file::read(knowledge, &path, problems);
        let text = read
            .map(|read| cut(read.text.trim()).to_owned())
            .filter(|text| !text.is_empty());
        found.extend(text.map(|text| Description {
            folder: folder.to_owned(),
            text,
        }));
    }
    if depth < DEEPEST {
        let is_folder = |name: &String| {
            place
                .join(name)
                .symlink_metadata()
                .is_ok_and(|metadata| metadata.is_dir())
        };
        for name in names.iter().filter(|name| is_folder(name)) {
            read(
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

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(LARGEST))
        .unwrap_or_default()
}

/// All of them as the model reads them; none when there are none.
pub fn text(descriptions: &[Description]) -> Option<String> {
    let one = |description: &Description| {
        let folder = description.folder.display().to_string();
        let folder = if folder.is_empty() {
            ".".to_owned()
        } else {
            folder
        };
        format!("## `{folder}`\n\n{}", description.text)
    };
    let all: Vec<_> = descriptions.iter().map(one).collect();
    (!all.is_empty()).then(|| {
        format!(
            "What folders of this project hold, and what changed there last. Files may have changed since.\n\n{}",
            all.join("\n\n")
        )
    })
}

/// Writes the description of a folder.
pub fn write(knowledge: &KnowledgePaths, folder: &Path, text: &str) -> io::Result<()> {
    let path = place(knowledge, folder)?;
    let is_link = |path: &Path| {
        path.symlink_metadata()
            .is_ok_and(|metadata| metadata.is_symlink())
    };
    let mut inside = path.ancestors().take_while(|path| *path != knowledge.root);
    if let Some(link) = inside.find(|path| is_link(path)) {
        return Err(io::Error::other(format!("{} is a link", link.display())));
    }
    haft_files::replace(
        &path,
        format!("{}\n", cut(text.trim())).as_bytes(),
        Durability::PowerCut,
    )
}

/// The file of a folder's description.
fn place(knowledge: &KnowledgePaths, folder: &Path) -> io::Result<PathBuf> {
    if folder
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
    {
        return Ok(knowledge.root.join(FOLDER).join(folder).join(FILE));
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
    fn what_is_written_is_read_again_while_its_folder_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let knowledge = knowledge(&root, true);
        assert_eq!(text(&load(&knowledge, &mut Vec::new())), None);
        fs::create_dir_all(root.join("src/pay")).unwrap();
        write(&knowledge, Path::new("src/pay"), " Takes money.\n").unwrap();
        write(&knowledge, Path::new(""), &"x".repeat(10_000)).unwrap();
        write(&knowledge, Path::new("gone"), "Nothing.").unwrap();
        let found = load(&knowledge, &mut Vec::new());
        assert_eq!(
            found
                .iter()
                .map(|one| one.folder.to_str().unwrap())
                .collect::<Vec<_>>(),
            ["", "src/pay"]
        );
        assert_eq!(found[0].text.len(), LARGEST);
        assert!(
            text(&found)
                .unwrap()
                .ends_with("## `src/pay`\n\nTakes money.")
        );
        assert!(load(&self::knowledge(&root, false), &mut Vec::new()).is_empty());
        for (folder, text) in [("src", "By auto-coder."), ("src/pay", "Older.")] {
            let place = root.join(compat::ACTIVE_CONTEXT).join(folder);
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join(FILE), text).unwrap();
        }
        let found: Vec<_> = load(&knowledge, &mut Vec::new())
            .into_iter()
            .skip(1)
            .map(|one| one.text)
            .collect();
        assert_eq!(found, ["By auto-coder.", "Takes money."]);
    }

    #[test]
    fn nothing_is_written_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let knowledge = knowledge(&folder.path().canonicalize().unwrap(), true);
        assert!(write(&knowledge, Path::new("../out"), "x").is_err());
        fs::create_dir_all(knowledge.root.join(FOLDER)).unwrap();
        std::os::unix::fs::symlink(other.path(), knowledge.root.join(FOLDER).join("src")).unwrap();
        assert!(write(&knowledge, Path::new("src/deep"), "x").is_err());
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
    }
}
