//! Low-level access to haft's database files, for other crates that use or check such a file:
//! creation, failures, the frames of the log, and repairs that only the store can make. Users of a
//! store do not need this module.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_types::{ContentHash, ConversationId};
use rusqlite::{Connection, Transaction};

pub use super::damaged_log::keep_damaged_log;
pub use super::failure::{DatabaseFile, SqliteFailure};
pub use super::files::append_suffix;
pub use super::index::{index_path as search_index, remove_index as remove_search_index};
use super::locks::DatabaseUse;
pub use super::open::{create_database_file, enable_wal};
pub use super::write::begin_immediate;
use super::{files, lineage, open, requests, rows, write};
use crate::error::StoreError;
pub use crate::write_ahead_log::{LogFrame, PAGE_SIZE, WriteAheadLog, read_up_to};

/// Opens the database for inspection and repair.
pub fn open_connection(place: &DatabaseFile) -> Result<Connection, StoreError> {
    open::open_connection(place, open::Purpose::Write)
}

/// Begins a transaction for repairs, which takes the write lock at once.
pub fn begin_repair(connection: &mut Connection) -> Result<Transaction<'_>, SqliteFailure> {
    write::begin_write(connection)
}

/// Repairs every conversation that is missing from the list of its own message sources, by adding
/// it as the last source.
pub fn repair_lineage(connection: &Connection) -> Result<(), SqliteFailure> {
    let mut statement = connection.prepare(
        "SELECT key, coalesce((SELECT max(step) FROM lineage WHERE lineage.conversation = key), 0) FROM conversations
         WHERE NOT EXISTS (SELECT 1 FROM lineage WHERE lineage.conversation = key AND source = key)",
    )?;
    let missing = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let missing: Vec<(i64, i64)> = missing.collect::<Result<_, _>>()?;
    missing
        .into_iter()
        .try_for_each(|(key, steps)| lineage::add_own_source(connection, key, steps + 1))
}

/// Checks that every logged request of a conversation can be restored, and returns their number.
pub fn check_requests(
    connection: &mut Connection,
    id: &ConversationId,
) -> Result<u64, SqliteFailure> {
    let outlines = requests::load_outlines(connection, id)?;
    let key = rows::require_key(connection, id)?;
    // Most segments occur in the previous request too; each one is checked once.
    let mut seen = HashSet::new();
    for outline in &outlines {
        let number = outline.summary.number;
        if !is_text_stored(connection, outline.tools)? {
            return Err(SqliteFailure::Damaged(format!(
                "the tools of request {number} are gone"
            )));
        }
        for segment in outline.segments.iter() {
            if seen.insert((segment.message, segment.hash))
                && !lineage::has_original_content(connection, key, segment.message, segment.hash)?
                && !is_text_stored(connection, segment.hash)?
            {
                let message = segment.message;
                return Err(SqliteFailure::Damaged(format!(
                    "message `{message}` of request {number} is gone"
                )));
            }
        }
    }
    Ok(outlines.len() as u64)
}

fn is_text_stored(connection: &Connection, hash: ContentHash) -> Result<bool, SqliteFailure> {
    Ok(connection
        .prepare_cached("SELECT 1 FROM texts WHERE hash = ?1")?
        .exists([&hash.0])?)
}

/// Removes files that killed processes left behind, but none that a running process may still need.
/// Returns the paths of the removed files.
pub fn remove_leftovers(database: &Path, backups: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    let mut remove = |path: PathBuf| -> std::io::Result<()> {
        if path.exists() {
            files::remove_if_exists(&path)?;
            removed.push(path);
        }
        Ok(())
    };
    // A restore locks the database exclusively. A restore that was killed before its last step left
    // the old database in place.
    if let Ok(_nobody_restores) = DatabaseUse::lock_for_use(database, Duration::ZERO) {
        remove(append_suffix(database, ".new"))?;
    }
    if let Ok(_nobody_copies) = DatabaseUse::lock_for_backup(database, Duration::ZERO) {
        remove(backups.join("unfinished"))?;
    }
    Ok(removed)
}
