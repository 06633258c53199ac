//! Checks the files beside the database: the search index, the backups, and the file versions.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haft_changes::versions::{SqliteVersions, VersionsError};
use haft_store::Backups;
use haft_store::database::{remove_search_index, search_index as index_of};
use haft_types::ContentHash;
use rusqlite::{Connection, OpenFlags};

use super::{Check, CheckHealth, StoreFiles, format_file_size};

/// Checks the search index. A damaged index is removed, because the next search rebuilds it from
/// the conversations.
pub(super) fn check_search_index(database: &Path) -> Check {
    const NAME: &str = "search index";
    let path = index_of(database);
    if !path.exists() {
        return Check::new(
            NAME,
            CheckHealth::Skipped,
            "it is made with the first search",
        );
    }
    let Err(problem) = check_index_integrity(&path) else {
        return Check::new(
            NAME,
            CheckHealth::Ok,
            format!("it is whole ({})", format_file_size(&path)),
        );
    };
    match remove_search_index(database) {
        Ok(()) => Check::new(
            NAME,
            CheckHealth::Repaired,
            format!("it was damaged ({problem}); the next search makes it anew"),
        ),
        Err(error) => Check::new(
            NAME,
            CheckHealth::Warning,
            format!("{} cannot be removed: {error}", path.display()),
        ),
    }
}

/// Runs SQLite's integrity check on the full-text index.
fn check_index_integrity(path: &Path) -> Result<(), rusqlite::Error> {
    let index = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    index.busy_timeout(Duration::from_secs(10))?;
    index.execute(
        "INSERT INTO entries (entries) VALUES ('integrity-check')",
        [],
    )?;
    index.query_row("SELECT message FROM progress", [], |row| {
        row.get::<_, i64>(0)
    })?;
    Ok(())
}

/// Checks that backups exist and that they can be read.
pub(super) fn check_backups(store: &StoreFiles) -> Check {
    const NAME: &str = "backups";
    let backups = Backups::new(
        &store.database,
        &store.backups,
        &store.config,
        Arc::clone(&store.clock),
    );
    let all = match backups.list() {
        Ok(all) => all,
        Err(error) => return Check::new(NAME, CheckHealth::Warning, error.to_string()),
    };
    // A database that was replaced by a restore may be damaged, so it is not checked.
    let (copies, replaced): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|backup| !backup.is_replaced_database());
    let Some(newest) = copies.last() else {
        let message = "there are none yet";
        return Check::new(
            NAME,
            if store.database.exists() {
                CheckHealth::Warning
            } else {
                CheckHealth::Skipped
            },
            message,
        );
    };
    let bad: Vec<String> = copies
        .iter()
        .filter_map(|backup| {
            Some(format!(
                "{}: {}",
                backup.name,
                check_backup(&backup.path).err()?
            ))
        })
        .collect();
    let newest = newest.made_at.strftime("%Y-%m-%d %H:%M");
    if bad.is_empty() {
        let aside = if replaced.is_empty() {
            String::new()
        } else {
            format!("; {} were put aside by restores", replaced.len())
        };
        return Check::new(
            NAME,
            CheckHealth::Ok,
            format!(
                "{} are whole, the newest of {newest} UTC{aside}",
                copies.len()
            ),
        );
    }
    let message = format!("{} of {} cannot be used", bad.len(), copies.len());
    Check::new(NAME, CheckHealth::Warning, message).with_details(bad)
}

/// Checks that a backup can be read, without creating files beside it.
fn check_backup(path: &Path) -> Result<(), String> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let answer = Connection::open_with_flags(immutable_uri(path), flags)
        .and_then(|opened| opened.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)));
    match answer {
        Ok(found) if found == "ok" => Ok(()),
        Ok(found) => Err(found),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns a URI with which SQLite opens a database as immutable, and therefore creates no files
/// beside it.
fn immutable_uri(path: &Path) -> String {
    let path = path
        .to_string_lossy()
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    format!("file:{path}?immutable=1")
}

/// Checks the store of the file versions from which changes are undone.
pub(super) fn check_versions(store: &StoreFiles) -> Check {
    const NAME: &str = "file versions";
    let versions = SqliteVersions::new(&store.versions, &store.config, Arc::clone(&store.clock));
    if !versions.exists() {
        return Check::new(NAME, CheckHealth::Skipped, "no file was changed yet");
    }
    match find_unreadable_versions(&store.versions, &versions) {
        Ok((count, bad)) if bad.is_empty() => Check::new(
            NAME,
            CheckHealth::Ok,
            format!("{count} contents are what was stored"),
        ),
        Ok((count, bad)) => {
            let message = format!(
                "{} of {count} contents cannot be read; calls that need them cannot be undone",
                bad.len()
            );
            Check::new(NAME, CheckHealth::Damaged, message).with_details(bad)
        }
        Err(error) => {
            let message = format!("they cannot be read ({error}); nothing can be undone");
            Check::new(NAME, CheckHealth::Damaged, message)
        }
    }
}

fn find_unreadable_versions(
    folder: &Path,
    versions: &SqliteVersions,
) -> Result<(usize, Vec<String>), Box<dyn std::error::Error>> {
    let path = folder.join("versions.db");
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Err(found.into());
    }
    let mut statement = connection.prepare("SELECT hash FROM contents")?;
    let hashes = statement
        .query_map([], |row| row.get(0))?
        .collect::<Result<Vec<[u8; 16]>, _>>()?;
    let mut bad = Vec::new();
    for hash in &hashes {
        match versions.read_content(ContentHash(*hash)) {
            // A content that was removed in the meantime was trimmed as intended.
            Ok(_) | Err(VersionsError::Gone { .. }) => {}
            Err(error) => bad.push(error.to_string()),
        }
    }
    Ok((hashes.len(), bad))
}
