//! What `doctor` needs of the database: ways in, and the repairs that lose nothing.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_types::{ContentHash, ConversationId};
use rusqlite::{Connection, OpenFlags, Transaction};

use super::failure::{DatabaseFile, SqliteFailure};
use super::locks::DatabaseUse;
use super::{files, lineage, open, requests, rows, write};
use crate::error::StoreError;

/// Opens the database for looking and repairing.
pub(crate) fn connect(place: &DatabaseFile) -> Result<Connection, StoreError> {
    open::connect(place, open::Purpose::Write)
}

/// A transaction in which repairs are made.
pub(crate) fn begin(connection: &mut Connection) -> Result<Transaction<'_>, SqliteFailure> {
    write::begin(connection)
}

/// Makes every conversation the last source of itself that is not.
pub(crate) fn mend_lineage(connection: &Connection) -> Result<(), SqliteFailure> {
    let mut statement = connection.prepare(
        "SELECT key, coalesce((SELECT max(step) FROM lineage WHERE lineage.conversation = key), 0) FROM conversations
         WHERE NOT EXISTS (SELECT 1 FROM lineage WHERE lineage.conversation = key AND source = key)",
    )?;
    let missing = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let missing: Vec<(i64, i64)> = missing.collect::<Result<_, _>>()?;
    missing.into_iter().try_for_each(|(key, steps)| lineage::begin(connection, key, steps + 1))
}

/// Raises counters that are lower than what is there: the next message must not take the place of one.
pub(crate) fn mend_counters(connection: &Connection) -> Result<(), SqliteFailure> {
    connection.execute(
        "UPDATE conversations SET messages = there.last
         FROM (SELECT lineage.conversation AS key, max(messages.position) AS last FROM lineage
               JOIN messages ON messages.conversation = lineage.source AND messages.position <= lineage.last_position
               GROUP BY lineage.conversation) AS there
         WHERE there.key = conversations.key AND there.last > conversations.messages",
        [],
    )?;
    connection.execute(
        "UPDATE conversations SET requests = there.last
         FROM (SELECT conversation AS key, max(number) AS last FROM requests GROUP BY conversation) AS there
         WHERE there.key = conversations.key AND there.last > conversations.requests",
        [],
    )?;
    Ok(())
}

/// Checks that every logged request of a conversation can be made whole, and says how many there are.
pub(crate) fn requests(connection: &mut Connection, id: &ConversationId) -> Result<u64, SqliteFailure> {
    let outlines = requests::outlines(connection, id)?;
    let key = rows::key(connection, id)?;
    // Most segments are those of the request before: each is looked for once.
    let mut seen = HashSet::new();
    for outline in &outlines {
        let number = outline.summary.number;
        if !has_text(connection, outline.tools)? {
            return Err(SqliteFailure::Damaged(format!("the tools of request {number} are gone")));
        }
        for segment in &outline.segments {
            if seen.insert((segment.message, segment.hash))
                && !lineage::stored_as(connection, key, segment.message, segment.hash)?
                && !has_text(connection, segment.hash)?
            {
                let message = segment.message;
                return Err(SqliteFailure::Damaged(format!("message `{message}` of request {number} is gone")));
            }
        }
    }
    Ok(outlines.len() as u64)
}

fn has_text(connection: &Connection, hash: ContentHash) -> Result<bool, SqliteFailure> {
    Ok(connection.prepare_cached("SELECT 1 FROM texts WHERE hash = ?1")?.exists([&hash.0])?)
}

/// Removes what killed processes left, unless one that is at work may still need it. Gives what was removed.
pub(crate) fn remove_leftovers(database: &Path, backups: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    let mut remove = |path: PathBuf| -> std::io::Result<()> {
        if path.exists() {
            files::remove(&path)?;
            removed.push(path);
        }
        Ok(())
    };
    // A restore has the database alone; one that was killed before its last step left the old database in place.
    if let Ok(_nobody_restores) = DatabaseUse::together(database, Duration::ZERO) {
        remove(files::beside(database, ".new"))?;
    }
    if let Ok(_nobody_copies) = DatabaseUse::backup(database, Duration::ZERO) {
        remove(backups.join("unfinished"))?;
    }
    Ok(removed)
}

/// Checks the search index by its own means.
pub(crate) fn search_index(path: &Path) -> Result<(), rusqlite::Error> {
    let index = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    index.busy_timeout(Duration::from_secs(10))?;
    index.execute("INSERT INTO entries (entries) VALUES ('integrity-check')", [])?;
    index.query_row("SELECT message FROM progress", [], |row| row.get::<_, i64>(0))?;
    Ok(())
}

/// Checks a backup without changing anything beside it.
pub(crate) fn backup(path: &Path) -> Result<(), String> {
    let check = || -> Result<String, rusqlite::Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(immutable(path), flags)?;
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
    };
    match check() {
        Ok(found) if found == "ok" => Ok(()),
        Ok(found) => Err(found),
        Err(error) => Err(error.to_string()),
    }
}

/// The address of a file that nobody writes to.
fn immutable(path: &Path) -> String {
    let path = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{path}?immutable=1")
}
