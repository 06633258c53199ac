//! Keeps the store within its size limit: removes unreferenced contents first, then the least
//! recently used versions.
//!
//! Invariant: contents that a live conversation or a live tree refers to are never removed,
//! whatever the size.

use std::path::Path;

use haft_store::database::{SqliteFailure, begin_immediate};
use haft_types::ConversationId;
use rusqlite::Connection;

use super::live::{self, LiveUse};

/// The share of the size limit, in tenths, at which trimming stops, so that the next write does not
/// trim again.
const TARGET_TENTHS: u64 = 9;

/// Returns the number of bytes in use by the database, without free pages.
pub(super) fn used_bytes(connection: &Connection) -> Result<u64, SqliteFailure> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
    Ok(pages.saturating_mul(pragma("page_size")?).cast_unsigned())
}

/// Removes old versions if the store exceeds `cap` bytes, until it is well below `cap` or until
/// only versions in use are left.
pub(super) fn trim_to_cap(
    connection: &mut Connection,
    folder: &Path,
    cap: u64,
) -> Result<(), SqliteFailure> {
    if used_bytes(connection)? <= cap {
        return Ok(());
    }
    let target = cap / 10 * TARGET_TENTHS;
    let transaction = begin_immediate(connection)?;
    remove_unreferenced_contents(&transaction)?;
    while used_bytes(&transaction)? > target
        && (drop_oldest_tree(&transaction, folder)? || drop_oldest_steps(&transaction, folder)?)
    {
        remove_unreferenced_contents(&transaction)?;
    }
    transaction.commit()?;
    // Returns free pages to the file system; each row is one page.
    let mut vacuum = connection.prepare("PRAGMA incremental_vacuum")?;
    let mut pages = vacuum.query([])?;
    while pages.next()?.is_some() {}
    // Only this statement truncates the write-ahead log. A concurrent reader may prevent the
    // truncation for now.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

/// Deletes the changes of the given conversations and overwrites the deleted data in the file.
pub(super) fn purge_conversations(
    connection: &mut Connection,
    conversations: &[ConversationId],
) -> Result<(), SqliteFailure> {
    connection.pragma_update(None, "secure_delete", "ON")?;
    let transaction = begin_immediate(connection)?;
    for conversation in conversations {
        transaction.execute(
            "DELETE FROM steps WHERE conversation = ?1",
            [conversation.as_str()],
        )?;
    }
    transaction.execute("DELETE FROM trees", [])?;
    remove_unreferenced_contents(&transaction)?;
    transaction.commit()?;
    connection.execute_batch("VACUUM")?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

/// Removes contents that are referenced by no change and no tree.
fn remove_unreferenced_contents(connection: &Connection) -> Result<(), SqliteFailure> {
    connection.execute(
        "DELETE FROM contents WHERE hash NOT IN (
             SELECT before_hash FROM changes WHERE before_hash IS NOT NULL
             UNION SELECT after_hash FROM changes WHERE after_hash IS NOT NULL
             UNION SELECT hash FROM tree_files WHERE hash IS NOT NULL)",
        [],
    )?;
    Ok(())
}

/// Removes the stored state of the least recently scanned tree that is not in use. Returns false if
/// there is no such tree.
fn drop_oldest_tree(connection: &Connection, folder: &Path) -> Result<bool, SqliteFailure> {
    let mut statement =
        connection.prepare_cached("SELECT key, root FROM trees ORDER BY used_at")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let key: i64 = row.get(0)?;
        let root: Vec<u8> = row.get(1)?;
        if !live::is_in_use(folder, LiveUse::Tree(&root)) {
            connection.execute("DELETE FROM trees WHERE key = ?1", [key])?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes the recorded changes of one conversation: of those not in use, the one whose last file
/// change is the oldest. Returns false if there is no such conversation.
fn drop_oldest_steps(connection: &Connection, folder: &Path) -> Result<bool, SqliteFailure> {
    let mut statement = connection
        .prepare_cached("SELECT conversation FROM steps GROUP BY conversation ORDER BY max(key)")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let conversation: String = row.get(0)?;
        if !live::is_in_use(folder, LiveUse::Conversation(&conversation)) {
            connection.execute("DELETE FROM steps WHERE conversation = ?1", [&conversation])?;
            return Ok(true);
        }
    }
    Ok(false)
}
