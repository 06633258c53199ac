//! Takes conversations out of a store for good: out of the database, its free pages and its log,
//! the search index, every backup, and the versions of files.
//!
//! Invariant: when [`purge`] returns, no file of the store holds anything that only these
//! conversations held.

use std::collections::HashSet;

use haft_changes::versions::SqliteVersions;
use haft_store::database::{self, DatabaseFile, SqliteFailure};
use haft_store::{Backups, StoreError, damaged_copies};
use haft_types::{ContentHash, ConversationId};
use rusqlite::{Connection, OptionalExtension};

use crate::Patient;

/// What a conversation is not alone with.
#[derive(Debug, Default)]
pub struct PurgeFamily {
    /// The conversations of its sub-agents, and theirs.
    pub sub_agents: Vec<ConversationId>,
    /// Those that share its messages, because they were forked from it.
    pub forks: Vec<ConversationId>,
}

/// Finds what belongs to these conversations, in the trash, too.
pub fn family(patient: &Patient, ids: &[ConversationId]) -> Result<PurgeFamily, StoreError> {
    let place = place(patient);
    let connection = database::connect(&place)?;
    let find = || {
        let mut all = ids.to_vec();
        let mut looked = 0;
        while let Some(parent) = all.get(looked).cloned() {
            let sql = "SELECT id FROM conversations WHERE json_extract(metadata, '$.parent') = ?1";
            add_new(&connection, sql, &parent, &mut all)?;
            looked += 1;
        }
        let sub_agents = all.split_off(ids.len());
        let mut sharing: Vec<_> = ids.iter().chain(&sub_agents).cloned().collect();
        let known = sharing.len();
        for source in sharing.clone() {
            let sql = "SELECT id FROM conversations WHERE key IN (SELECT conversation FROM lineage WHERE source =
                       (SELECT key FROM conversations WHERE id = ?1))";
            add_new(&connection, sql, &source, &mut sharing)?;
        }
        Ok(PurgeFamily {
            sub_agents,
            forks: sharing.split_off(known),
        })
    };
    find().map_err(|failure: SqliteFailure| place.explain(failure))
}

fn add_new(
    connection: &Connection,
    sql: &str,
    of: &ConversationId,
    all: &mut Vec<ConversationId>,
) -> Result<(), SqliteFailure> {
    let mut statement = connection.prepare_cached(sql)?;
    for id in statement.query_map([of.as_str()], |row| row.get::<_, String>(0))? {
        let id = ConversationId::new(id?);
        if !all.contains(&id) {
            all.push(id);
        }
    }
    Ok(())
}

/// Removes conversations from everything the store keeps. Gives how many backups were changed.
pub fn purge(patient: &Patient, ids: &[ConversationId]) -> Result<usize, StoreError> {
    let failed = |source| StoreError::Io {
        action: "remove what is left beside",
        path: patient.database.clone(),
        source,
    };
    database::remove_leftovers(&patient.database, &patient.backups).map_err(failed)?;
    purge_file(&place(patient), ids)?;
    database::remove_search_index(&patient.database).map_err(failed)?;
    let backups = Backups::new(
        &patient.database,
        &patient.backups,
        &patient.config,
        patient.clock.clone(),
    )
    .list()?;
    let mut changed = 0;
    for backup in backups {
        let place = DatabaseFile {
            path: backup.path,
            lock_timeout: patient.config.lock_timeout(),
        };
        changed += usize::from(purge_file(&place, ids)?);
    }
    // They cannot be read reliably, so nothing says what they hold.
    for copy in damaged_copies(&patient.database) {
        ["-wal", "-shm", ""]
            .iter()
            .try_for_each(|end| remove(&database::beside(&copy, end)))
            .map_err(failed)?;
    }
    let versions = SqliteVersions::at(&patient.versions, &patient.config, patient.clock.clone());
    versions.purge(ids).map_err(|error| StoreError::Database {
        path: patient.versions.clone(),
        source: error.into(),
    })?;
    Ok(changed)
}

fn place(patient: &Patient) -> DatabaseFile {
    DatabaseFile {
        path: patient.database.clone(),
        lock_timeout: patient.config.lock_timeout(),
    }
}

fn remove(path: &std::path::Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What holds the rows of a conversation, those first that others do not refer to.
const ROWS: [&str; 8] = [
    "DELETE FROM requests WHERE conversation = ?1",
    "DELETE FROM facts WHERE conversation = ?1",
    "DELETE FROM states WHERE conversation = ?1",
    "DELETE FROM revisions WHERE conversation = ?1",
    "DELETE FROM messages WHERE conversation = ?1",
    "DELETE FROM lineage WHERE conversation = ?1 OR source = ?1",
    "DELETE FROM current_conversations WHERE conversation = ?1",
    "DELETE FROM conversations WHERE key = ?1",
];

/// Removes conversations from one database. Says whether it held any; what was deleted from it
/// earlier is overwritten either way.
fn purge_file(place: &DatabaseFile, ids: &[ConversationId]) -> Result<bool, StoreError> {
    let mut connection = database::connect(place)?;
    let mut purge = || {
        connection.pragma_update(None, "secure_delete", "ON")?;
        let transaction = database::begin(&mut connection)?;
        let mut held = false;
        for id in ids {
            let sql = "SELECT key FROM conversations WHERE id = ?1";
            let key: Option<i64> = transaction
                .query_row(sql, [id.as_str()], |row| row.get(0))
                .optional()?;
            if let Some(key) = key {
                ROWS.iter()
                    .try_for_each(|sql| transaction.execute(sql, [key]).map(drop))?;
                held = true;
            }
        }
        sweep_texts(&transaction)?;
        transaction.commit()?;
        // Writes every page anew: what was once deleted, or changed, is in none of them.
        connection.execute_batch("VACUUM")?;
        let busy: i64 =
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy != 0 {
            return Err(StoreError::InUse {
                path: place.path.clone(),
            }
            .into());
        }
        Ok(held)
    };
    purge().map_err(|failure: SqliteFailure| place.explain(failure))
}

/// Removes the texts that no logged request refers to.
fn sweep_texts(connection: &Connection) -> Result<(), SqliteFailure> {
    let mut used = HashSet::new();
    let mut bodies = connection.prepare("SELECT body FROM requests")?;
    let mut rows = bodies.query([])?;
    while let Some(row) = rows.next()? {
        let body: String = row.get(0)?;
        let words = body.split(|c: char| !c.is_ascii_hexdigit());
        used.extend(
            words
                .filter_map(|word| word.parse::<ContentHash>().ok())
                .map(|hash| hash.0),
        );
    }
    let mut texts = connection.prepare("SELECT hash FROM texts")?;
    let all = texts
        .query_map([], |row| row.get::<_, [u8; 16]>(0))?
        .collect::<Result<Vec<_>, _>>()?;
    for hash in all.iter().filter(|hash| !used.contains(*hash)) {
        connection.execute("DELETE FROM texts WHERE hash = ?1", [hash])?;
    }
    Ok(())
}
