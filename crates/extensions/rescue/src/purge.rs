//! Deletes conversations permanently: from the database with its free pages and log, the search
//! index, every backup, and the file versions.
//!
//! Invariant: when [`purge_conversations`] returns, no file of the store contains data that only
//! these conversations had.

use std::collections::HashSet;

use haft_changes::versions::SqliteVersions;
use haft_store::database::{self, DatabaseFile, SqliteFailure};
use haft_store::{Backups, StoreError, find_damaged_copies};
use haft_types::{ContentHash, ConversationId};
use rusqlite::{Connection, OptionalExtension};

use crate::StoreFiles;

/// The conversations that contain work or messages of the conversations to purge.
#[derive(Debug, Default)]
pub struct RelatedConversations {
    /// The conversations of sub-agents, including the sub-agents of those sub-agents.
    pub sub_agents: Vec<ConversationId>,
    /// The conversations that, because of forks, share messages with a conversation to purge.
    pub forks: Vec<ConversationId>,
}

/// Finds the conversations, in the trash or not, that are related to the conversations in `ids`.
pub fn find_related_conversations(
    store: &StoreFiles,
    ids: &[ConversationId],
) -> Result<RelatedConversations, StoreError> {
    let place = database_file(store);
    let connection = database::open_connection(&place)?;
    query_related_conversations(&connection, ids).map_err(|failure| place.to_store_error(failure))
}

fn query_related_conversations(
    connection: &Connection,
    ids: &[ConversationId],
) -> Result<RelatedConversations, SqliteFailure> {
    let mut all = ids.to_vec();
    let mut looked = 0;
    while let Some(parent) = all.get(looked).cloned() {
        let sql = "SELECT id FROM conversations WHERE json_extract(metadata, '$.parent') = ?1";
        add_unseen_ids(connection, sql, &parent, &mut all)?;
        looked += 1;
    }
    let sub_agents = all.split_off(ids.len());
    let mut sharing: Vec<_> = ids.iter().chain(&sub_agents).cloned().collect();
    let known = sharing.len();
    for source in sharing.clone() {
        let sql = "SELECT id FROM conversations WHERE key IN (SELECT conversation FROM lineage WHERE source =
                   (SELECT key FROM conversations WHERE id = ?1))";
        add_unseen_ids(connection, sql, &source, &mut sharing)?;
    }
    Ok(RelatedConversations {
        sub_agents,
        forks: sharing.split_off(known),
    })
}

fn add_unseen_ids(
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

/// Deletes conversations from all files of a store. Returns the number of backups that contained
/// one of the conversations.
pub fn purge_conversations(
    store: &StoreFiles,
    ids: &[ConversationId],
) -> Result<usize, StoreError> {
    let failed = |source| StoreError::Io {
        action: "remove what is left beside",
        path: store.database.clone(),
        source,
    };
    database::remove_leftovers(&store.database, &store.backups).map_err(failed)?;
    purge_from_database(&database_file(store), ids)?;
    database::remove_search_index(&store.database).map_err(failed)?;
    let backups = Backups::new(
        &store.database,
        &store.backups,
        &store.config,
        store.clock.clone(),
    )
    .list()?;
    let mut changed = 0;
    for backup in backups {
        let place = DatabaseFile {
            path: backup.path,
            lock_timeout: store.config.lock_timeout(),
        };
        changed += usize::from(purge_from_database(&place, ids)?);
    }
    // The damaged copies are deleted, because their content cannot be read reliably.
    for copy in find_damaged_copies(&store.database) {
        ["-wal", "-shm", ""]
            .iter()
            .try_for_each(|end| remove_if_exists(&database::append_suffix(&copy, end)))
            .map_err(failed)?;
    }
    let versions = SqliteVersions::new(&store.versions, &store.config, store.clock.clone());
    versions.purge(ids).map_err(|error| StoreError::Database {
        path: store.versions.clone(),
        source: error.into(),
    })?;
    Ok(changed)
}

fn database_file(store: &StoreFiles) -> DatabaseFile {
    DatabaseFile {
        path: store.database.clone(),
        lock_timeout: store.config.lock_timeout(),
    }
}

fn remove_if_exists(path: &std::path::Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The SQL statements that delete all rows of a conversation, in an order in which no row is
/// deleted before the rows that refer to it.
const DELETE_ROWS: [&str; 8] = [
    "DELETE FROM requests WHERE conversation = ?1",
    "DELETE FROM facts WHERE conversation = ?1",
    "DELETE FROM states WHERE conversation = ?1",
    "DELETE FROM revisions WHERE conversation = ?1",
    "DELETE FROM messages WHERE conversation = ?1",
    "DELETE FROM lineage WHERE conversation = ?1 OR source = ?1",
    "DELETE FROM current_conversations WHERE conversation = ?1",
    "DELETE FROM conversations WHERE key = ?1",
];

/// Deletes conversations from one database. Returns true if the database contained one of them.
/// Data that was deleted earlier is overwritten even if it contained none.
fn purge_from_database(place: &DatabaseFile, ids: &[ConversationId]) -> Result<bool, StoreError> {
    let mut connection = database::open_connection(place)?;
    delete_and_vacuum(&mut connection, place, ids).map_err(|failure| place.to_store_error(failure))
}

fn delete_and_vacuum(
    connection: &mut Connection,
    place: &DatabaseFile,
    ids: &[ConversationId],
) -> Result<bool, SqliteFailure> {
    connection.pragma_update(None, "secure_delete", "ON")?;
    let transaction = database::begin_repair(connection)?;
    let mut held = false;
    for id in ids {
        let sql = "SELECT key FROM conversations WHERE id = ?1";
        let key: Option<i64> = transaction
            .query_row(sql, [id.as_str()], |row| row.get(0))
            .optional()?;
        if let Some(key) = key {
            DELETE_ROWS
                .iter()
                .try_for_each(|sql| transaction.execute(sql, [key]).map(drop))?;
            held = true;
        }
    }
    delete_unused_texts(&transaction)?;
    transaction.commit()?;
    // VACUUM rewrites every page, so that no page contains deleted or replaced data.
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
}

/// Deletes texts that are no longer referenced by any logged request.
fn delete_unused_texts(connection: &Connection) -> Result<(), SqliteFailure> {
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
