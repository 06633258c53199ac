//! Checks the permissions of a store's files, and removes files left by killed processes.

use std::io;
use std::path::{Path, PathBuf};

use haft_store::database::{self, append_suffix, search_index};

use super::{Check, CheckHealth};

/// Restricts access to the store's files to the user, and removes temporary files that killed
/// processes left behind.
pub(super) fn check_files(database: &Path, backups: &Path) -> Vec<Check> {
    let Some(folder) = database.parent().filter(|folder| folder.exists()) else {
        return vec![Check::new(
            "files",
            CheckHealth::Skipped,
            "nothing is stored yet",
        )];
    };
    let mut repaired = Vec::new();
    let mut failed = Vec::new();
    let mut note = |done: io::Result<Option<String>>, path: &Path| match done {
        Ok(Some(done)) => repaired.push(done),
        Ok(None) => {}
        Err(error) => failed.push(format!("{}: {error}", path.display())),
    };
    for path in [folder, backups, &folder.join("locks")] {
        note(make_private(path), path);
    }
    let index = search_index(database);
    let logs = [
        append_suffix(database, "-wal"),
        append_suffix(database, "-shm"),
        append_suffix(&index, "-wal"),
        append_suffix(&index, "-shm"),
    ];
    for path in [database.to_path_buf(), index].iter().chain(&logs) {
        note(make_private(path), path);
    }
    match database::remove_leftovers(database, backups) {
        Ok(left) => {
            let removed =
                |left: &PathBuf| format!("removed {}, which a killed process left", left.display());
            repaired.extend(left.iter().map(removed));
        }
        Err(error) => failed.push(format!(
            "what killed processes left cannot be removed: {error}"
        )),
    }
    vec![if !failed.is_empty() {
        Check::new(
            "files",
            CheckHealth::Warning,
            "some files cannot be put in order",
        )
        .with_details(failed)
    } else if !repaired.is_empty() {
        Check::new("files", CheckHealth::Repaired, "files were put in order").with_details(repaired)
    } else {
        Check::new(
            "files",
            CheckHealth::Ok,
            format!("{} is for its owner only", folder.display()),
        )
    }]
}

fn make_private(path: &Path) -> io::Result<Option<String>> {
    let report = |before| {
        format!(
            "{} could be read by others ({before:03o}), which is over",
            path.display()
        )
    };
    Ok(haft_files::tighten_mode(path)?.map(report))
}
