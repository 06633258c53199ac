//! Copies a project, so that calls can run again without changing it.

use std::fs;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use crate::exit::usage_error;

/// The maximum size of the files that are copied, in bytes.
const MAX_BYTES: u64 = 1 << 30;
/// The folder of git, which is copied whole.
const GIT_FOLDER: &str = ".git";

/// Copies the files of a project that git does not ignore, and its repository, to `copy`. Returns
/// the path of the copy.
pub(super) fn copy_project(project: &Path, copy: &Path) -> anyhow::Result<PathBuf> {
    let mut bytes = 0;
    let mut walk = WalkBuilder::new(project);
    walk.hidden(false).follow_links(false).require_git(false);
    walk.filter_entry(|entry| entry.depth() == 0 || entry.file_name() != GIT_FOLDER);
    for entry in walk.build() {
        copy_entry(&entry?.into_path(), project, copy, &mut bytes)?;
    }
    let repository = project.join(GIT_FOLDER);
    if repository.exists() {
        let mut walk = WalkBuilder::new(&repository);
        walk.standard_filters(false).follow_links(false);
        for entry in walk.build() {
            copy_entry(&entry?.into_path(), project, copy, &mut bytes)?;
        }
    }
    Ok(copy.to_owned())
}

/// Copies a file, a folder without its entries, or a link.
fn copy_entry(path: &Path, project: &Path, copy: &Path, bytes: &mut u64) -> anyhow::Result<()> {
    let to = copy.join(path.strip_prefix(project)?);
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_dir() {
        fs::create_dir_all(&to)?;
    } else if metadata.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(path)?, &to)?;
    } else if metadata.is_file() {
        *bytes += metadata.len();
        if *bytes > MAX_BYTES {
            let project = project.display();
            return Err(usage_error(text!(
                "conversations-replay-too-large",
                project
            )));
        }
        fs::copy(path, &to)?;
    }
    Ok(())
}
