//! Who may read the files of a store, and what a killed process left behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use haft_store::database::{self, beside, search_index};

use super::{Check, CheckHealth};

/// Makes everything private that is ours, and removes what nobody needs.
pub(super) fn check(database: &Path, backups: &Path) -> Vec<Check> {
    let Some(folder) = database.parent().filter(|folder| folder.exists()) else {
        return vec![Check::new("files", CheckHealth::Skipped, "nothing is stored yet")];
    };
    let (mut repaired, mut failed) = (Vec::new(), Vec::new());
    let mut note = |done: io::Result<Option<String>>, path: &Path| match done {
        Ok(Some(done)) => repaired.push(done),
        Ok(None) => {}
        Err(error) => failed.push(format!("{}: {error}", path.display())),
    };
    for path in [folder, backups, &folder.join("locks")] {
        note(make_private(path, 0o700), path);
    }
    let index = search_index(database);
    let logs = [beside(database, "-wal"), beside(database, "-shm"), beside(&index, "-wal"), beside(&index, "-shm")];
    for path in [database.to_path_buf(), index].iter().chain(&logs) {
        note(make_private(path, 0o600), path);
    }
    match database::remove_leftovers(database, backups) {
        Ok(left) => {
            let removed = |left: &PathBuf| format!("removed {}, which a killed process left", left.display());
            repaired.extend(left.iter().map(removed));
        }
        Err(error) => failed.push(format!("what killed processes left cannot be removed: {error}")),
    }
    vec![if !failed.is_empty() {
        Check::new("files", CheckHealth::Warning, "some files cannot be put in order").with_details(failed)
    } else if !repaired.is_empty() {
        Check::new("files", CheckHealth::Repaired, "files were put in order").with_details(repaired)
    } else {
        Check::new("files", CheckHealth::Ok, format!("{} is for its owner only", folder.display()))
    }]
}

#[cfg(unix)]
fn make_private(path: &Path, mode: u32) -> io::Result<Option<String>> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata?,
    };
    let before = metadata.permissions().mode() & 0o777;
    let for_others = before & 0o077;
    if for_others == 0 {
        return Ok(None);
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(Some(format!("{} could be read by others ({before:03o}), which is over", path.display())))
}

#[cfg(not(unix))]
fn make_private(_path: &Path, _mode: u32) -> io::Result<Option<String>> {
    Ok(None)
}
