//! The full-text index: a separate database, which is rebuilt from the conversations if it is lost.
//!
//! Invariant: the index contains exactly the messages and revisions up to the keys in its
//! `progress` table. Entries are the terms of [`extract_body_terms`]; the text itself is stored
//! only with the conversations. The index is filled when the thread is idle and before each search,
//! never by an append.

use std::path::{Path, PathBuf};

use haft_types::ContentHash;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior};

use super::failure::{DatabaseFile, SqliteFailure};
use super::read::NAMESPACE_PARAMETER;
use super::rows::{self, LISTED_COLUMNS};
use super::{files, lineage, open};
use crate::conversation::OwnedScope;
use crate::error::StoreError;
use crate::message::MessageSpan;
use crate::search::query::{self, SearchItem};
use crate::search::{SearchHit, extract_body_terms, name_snippet};
use crate::worker::Idle;

/// The version of the format of index entries. An index with another version is rebuilt.
const INDEX_VERSION: i32 = 1;
/// The number of messages that are indexed per transaction. The number is small, so that neither a
/// search nor the end of the process has to wait long.
const BATCH_SIZE: i64 = 256;
/// The number of candidates that a search reads at a time.
const CANDIDATE_BATCH_SIZE: u32 = 200;

const SCHEMA: &str = "
    CREATE VIRTUAL TABLE entries USING fts5 (
        terms, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 0'
    );
    -- Up to which keys entries were made. The hash of the last message shows when the conversations are others than they were.
    CREATE TABLE progress (
        one       INTEGER PRIMARY KEY CHECK (one = 1),
        message   INTEGER NOT NULL,
        hash      BLOB,
        revision  INTEGER NOT NULL
    ) STRICT;
    INSERT INTO progress VALUES (1, 0, NULL, 0);
";

/// The state of the index thread.
pub(super) struct IndexThread {
    place: DatabaseFile,
    /// The connections to the conversations and to the index, opened on first use.
    open: Option<Connections>,
}

struct Connections {
    conversations: Connection,
    index: Connection,
}

/// Returns the path of a database's index.
pub fn index_path(database: &Path) -> PathBuf {
    haft_files::containing_folder(database).join("search.db")
}

/// Removes the index of a database. The index is rebuilt on its next use.
pub fn remove_index(database: &Path) -> std::io::Result<()> {
    let path = index_path(database);
    ["-wal", "-shm", ""]
        .iter()
        .try_for_each(|addition| files::remove_if_exists(&files::append_suffix(&path, addition)))
}

impl IndexThread {
    pub(super) fn new(place: DatabaseFile) -> Self {
        Self { place, open: None }
    }

    /// Indexes one batch of messages. A failure is ignored; the next search reports it.
    pub(super) fn index_while_idle(&mut self) -> Idle {
        self.open_connections()
            .and_then(Connections::index_batch)
            .unwrap_or(Idle::Done)
    }

    /// Indexes all new messages, then searches for the items.
    pub(super) fn search(
        &mut self,
        items: &[SearchItem],
        place: &OwnedScope,
        limit: usize,
    ) -> Result<Vec<SearchHit>, SqliteFailure> {
        let look = |index: &mut Self| {
            let connections = index.open_connections()?;
            while connections.index_batch()? == Idle::More {}
            connections.find_hits(items, place, limit)
        };
        match look(self) {
            Err(SqliteFailure::Sqlite(error)) if is_corruption(&error) => {
                // The index contains nothing that is not in the conversations, so it can be
                // rebuilt.
                self.reset_index()?;
                look(self)
            }
            done => done,
        }
    }

    fn open_connections(&mut self) -> Result<&mut Connections, SqliteFailure> {
        let opened = match self.open.take() {
            Some(open) => open,
            None => self.connect()?,
        };
        Ok(self.open.insert(opened))
    }

    fn connect(&mut self) -> Result<Connections, SqliteFailure> {
        let conversations = open::open_connection(&self.place, open::Purpose::Read)?;
        match open_index(&self.place) {
            Err(SqliteFailure::Sqlite(error)) if is_corruption(&error) => {
                self.reset_index()?;
                Ok(Connections {
                    conversations,
                    index: open_index(&self.place)?,
                })
            }
            index => Ok(Connections {
                conversations,
                index: index?,
            }),
        }
    }

    fn reset_index(&mut self) -> Result<(), SqliteFailure> {
        self.open = None;
        remove_index(&self.place.path).map_err(|source| {
            let path = index_path(&self.place.path);
            StoreError::Io {
                action: "remove the damaged index",
                path,
                source,
            }
            .into()
        })
    }
}

fn is_corruption(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

fn open_index(place: &DatabaseFile) -> Result<Connection, SqliteFailure> {
    let path = index_path(&place.path);
    open::create_database_file(&path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut index = Connection::open_with_flags(&path, flags)?;
    index.busy_timeout(place.lock_timeout)?;
    open::enable_wal(&index, place)?;
    // Entries that are lost in a power cut are indexed again.
    index.pragma_update(None, "synchronous", "NORMAL")?;
    let transaction = index.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version != INDEX_VERSION {
        transaction.execute_batch("DROP TABLE IF EXISTS entries; DROP TABLE IF EXISTS progress")?;
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "user_version", INDEX_VERSION)?;
    }
    transaction.commit()?;
    index.set_prepared_statement_cache_capacity(16);
    Ok(index)
}

impl Connections {
    /// Indexes at most [`BATCH_SIZE`] messages and revisions. Does nothing if another process has
    /// already indexed all of them.
    fn index_batch(&mut self) -> Result<Idle, SqliteFailure> {
        let transaction = self
            .index
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let progress = "SELECT message, hash, revision FROM progress";
        let (mut message, hash, mut revision): (i64, Option<[u8; 16]>, i64) = transaction
            .query_row(progress, [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        if !is_last_message_unchanged(&self.conversations, message, hash)? {
            transaction.execute_batch(
                "INSERT INTO entries (entries) VALUES ('delete-all');
                 UPDATE progress SET message = 0, hash = NULL, revision = 0",
            )?;
            (message, revision) = (0, 0);
        }
        let mut last_hash = hash;
        let mut left = BATCH_SIZE;
        // Messages come first: a revision is indexed after its message.
        let sql = "SELECT key, hash, body FROM messages WHERE key > ?1 ORDER BY key LIMIT ?2";
        for row in self
            .conversations
            .prepare_cached(sql)?
            .query_and_then((message, left), read_unindexed)?
        {
            let new = row?;
            insert_entry(&transaction, new.key, &new.terms)?;
            (message, last_hash) = (new.key, Some(new.hash.0));
            left -= 1;
        }
        let sql = "SELECT key, hash, body FROM revisions WHERE key > ?1 ORDER BY key LIMIT ?2";
        for row in self
            .conversations
            .prepare_cached(sql)?
            .query_and_then((revision, left), read_unindexed)?
        {
            let new = row?;
            insert_entry(&transaction, -new.key, &new.terms)?;
            revision = new.key;
            left -= 1;
        }
        if left == BATCH_SIZE {
            return Ok(Idle::Done);
        }
        transaction
            .prepare_cached("UPDATE progress SET message = ?1, hash = ?2, revision = ?3")?
            .execute((message, last_hash, revision))?;
        transaction.commit()?;
        Ok(if left == 0 { Idle::More } else { Idle::Done })
    }

    fn find_hits(
        &mut self,
        items: &[SearchItem],
        place: &OwnedScope,
        limit: usize,
    ) -> Result<Vec<SearchHit>, SqliteFailure> {
        let mut hits = search_names(&self.conversations, items, place, limit)?;
        let wanted = query::to_fts5_query(items);
        let mut statement = self.index.prepare_cached(
            "SELECT rowid FROM entries WHERE entries MATCH ?1 ORDER BY rank, rowid DESC LIMIT ?2 OFFSET ?3",
        )?;
        let mut seen = std::collections::HashSet::new();
        let mut offset = 0;
        while hits.len() < limit {
            let rows = statement.query_map((&wanted, CANDIDATE_BATCH_SIZE, offset), |row| {
                row.get::<_, i64>(0)
            })?;
            let candidates = rows.collect::<Result<Vec<_>, _>>()?;
            for candidate in &candidates {
                if hits.len() >= limit {
                    break;
                }
                let Some(at) = find_message(&self.conversations, *candidate)? else {
                    continue;
                };
                // A message and each of its revisions are separate entries.
                if seen.insert(at) {
                    hits.extend(build_hit(&self.conversations, at, items, place)?);
                }
            }
            if candidates.len() < CANDIDATE_BATCH_SIZE as usize {
                break;
            }
            offset += CANDIDATE_BATCH_SIZE;
        }
        Ok(hits)
    }
}

/// True if the message that was indexed last is unchanged. If it has changed, a backup was
/// restored, and the index is outdated.
fn is_last_message_unchanged(
    conversations: &Connection,
    message: i64,
    hash: Option<[u8; 16]>,
) -> Result<bool, SqliteFailure> {
    let Some(hash) = hash else {
        return Ok(message == 0);
    };
    let there = conversations
        .prepare_cached("SELECT hash FROM messages WHERE key = ?1")?
        .query_row([message], |row| row.get::<_, [u8; 16]>(0))
        .optional()?;
    Ok(there == Some(hash))
}

/// A message or revision that is not yet indexed.
struct UnindexedRow {
    key: i64,
    hash: ContentHash,
    terms: String,
}

fn read_unindexed(row: &rusqlite::Row<'_>) -> Result<UnindexedRow, SqliteFailure> {
    let key = row.get(0)?;
    let hash = ContentHash(row.get(1)?);
    Ok(UnindexedRow {
        key,
        hash,
        terms: extract_body_terms(rows::text_column(row, 2)?),
    })
}

fn insert_entry(index: &Connection, key: i64, terms: &str) -> Result<(), SqliteFailure> {
    index
        .prepare_cached("INSERT INTO entries (rowid, terms) VALUES (?1, ?2)")?
        .execute((key, terms))?;
    Ok(())
}

/// Returns the database key of the conversation that contains an indexed message, and the position
/// of the message.
fn find_message(
    conversations: &Connection,
    entry: i64,
) -> Result<Option<(i64, i64)>, SqliteFailure> {
    let sql = match entry {
        ..0 => "SELECT conversation, position FROM revisions WHERE key = ?1",
        0.. => "SELECT conversation, position FROM messages WHERE key = ?1",
    };
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    Ok(conversations
        .prepare_cached(sql)?
        .query_row([entry.abs()], read)
        .optional()?)
}

/// Returns a hit for the message at this position. The hit names the conversation that owns the
/// message, or one of its forks if the owner is out of scope.
fn build_hit(
    conversations: &Connection,
    (source, position): (i64, i64),
    items: &[SearchItem],
    place: &OwnedScope,
) -> Result<Option<SearchHit>, SqliteFailure> {
    let sql = format!(
        "SELECT {LISTED_COLUMNS}, key FROM conversations
         WHERE {} AND key IN (SELECT conversation FROM lineage WHERE source = ?2 AND last_position >= ?3)
         ORDER BY key = ?2 DESC, updated_at DESC LIMIT 1",
        place.sql_condition(NAMESPACE_PARAMETER)
    );
    let mut statement = conversations.prepare_cached(&sql)?;
    let mut rows = statement.query((place.namespace(), source, position))?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let conversation = rows::read_listed_conversation(row)?;
    let key = row.get(6)?;
    let message = lineage::load_messages(
        conversations,
        (key, &conversation.id),
        MessageSpan::single(position),
    )?
    .pop();
    Ok(message.and_then(|message| SearchHit::for_message(conversation, &message, items)))
}

/// Returns the conversations whose name or description contains every item.
fn search_names(
    conversations: &Connection,
    items: &[SearchItem],
    place: &OwnedScope,
    limit: usize,
) -> Result<Vec<SearchHit>, SqliteFailure> {
    let sql = format!(
        "SELECT {LISTED_COLUMNS}, description FROM conversations WHERE {} ORDER BY updated_at DESC, key DESC",
        place.sql_condition(NAMESPACE_PARAMETER)
    );
    let mut statement = conversations.prepare_cached(&sql)?;
    let mut rows = statement.query([place.namespace()])?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()?
        && hits.len() < limit
    {
        let name = rows::text_column(row, 1)?;
        let description = rows::text_column(row, 6)?;
        if let Some(snippet) = name_snippet(name, description, items) {
            hits.push(SearchHit {
                conversation: rows::read_listed_conversation(row)?,
                message: None,
                snippet,
            });
        }
    }
    Ok(hits)
}
