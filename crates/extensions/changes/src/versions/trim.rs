//! Keeps the store within its size: what nobody can ask for goes first, then what was used longest
//! ago.
//!
//! Invariant: nothing a live conversation or a live tree refers to is removed, whatever the size.

use std::path::Path;

use haft_store::database::{SqliteFailure, immediate};
use haft_types::ConversationId;
use rusqlite::Connection;

use super::live::{self, LiveUse};

/// Trimming goes on until this share of the cap is left, so that it is not due again at once.
const TARGET: u64 = 9;

/// The bytes in use.
pub(super) fn used_bytes(connection: &Connection) -> Result<u64, SqliteFailure> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
    Ok(pages.saturating_mul(pragma("page_size")?).cast_unsigned())
}

/// Removes until the store is well within `cap` bytes, or only what is live is left.
pub(super) fn trim(
    connection: &mut Connection,
    folder: &Path,
    cap: u64,
) -> Result<(), SqliteFailure> {
    if used_bytes(connection)? <= cap {
        return Ok(());
    }
    let target = cap / 10 * TARGET;
    let transaction = immediate(connection)?;
    sweep(&transaction)?;
    while used_bytes(&transaction)? > target
        && (drop_tree(&transaction, folder)? || drop_steps(&transaction, folder)?)
    {
        sweep(&transaction)?;
    }
    transaction.commit()?;
    // Gives the room back to the file system; each row returned is one page.
    let mut vacuum = connection.prepare("PRAGMA incremental_vacuum")?;
    let mut pages = vacuum.query([])?;
    while pages.next()?.is_some() {}
    // What is free is cut off the file only here. Somebody who still reads may keep it from
    // happening now.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

/// Removes what these conversations changed, and every trace of it in the file.
pub(super) fn purge(
    connection: &mut Connection,
    conversations: &[ConversationId],
) -> Result<(), SqliteFailure> {
    connection.pragma_update(None, "secure_delete", "ON")?;
    let transaction = immediate(connection)?;
    for conversation in conversations {
        transaction.execute(
            "DELETE FROM steps WHERE conversation = ?1",
            [conversation.as_str()],
        )?;
    }
    transaction.execute("DELETE FROM trees", [])?;
    sweep(&transaction)?;
    transaction.commit()?;
    connection.execute_batch("VACUUM")?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

/// Removes the contents nothing refers to.
fn sweep(connection: &Connection) -> Result<(), SqliteFailure> {
    connection.execute(
        "DELETE FROM contents WHERE hash NOT IN (
             SELECT before_hash FROM changes WHERE before_hash IS NOT NULL
             UNION SELECT after_hash FROM changes WHERE after_hash IS NOT NULL
             UNION SELECT hash FROM tree_files WHERE hash IS NOT NULL)",
        [],
    )?;
    Ok(())
}

/// Forgets the tree that was scanned longest ago and is in use by nobody.
fn drop_tree(connection: &Connection, folder: &Path) -> Result<bool, SqliteFailure> {
    let mut statement =
        connection.prepare_cached("SELECT key, root FROM trees ORDER BY used_at")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (key, root): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
        if !live::is_used(folder, LiveUse::Tree(&root)) {
            connection.execute("DELETE FROM trees WHERE key = ?1", [key])?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// Forgets the changes of the conversation that changed files longest ago and is in use by nobody.
fn drop_steps(connection: &Connection, folder: &Path) -> Result<bool, SqliteFailure> {
    let mut statement = connection
        .prepare_cached("SELECT conversation FROM steps GROUP BY conversation ORDER BY max(key)")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let conversation: String = row.get(0)?;
        if !live::is_used(folder, LiveUse::Conversation(&conversation)) {
            connection.execute("DELETE FROM steps WHERE conversation = ?1", [&conversation])?;
            return Ok(true);
        }
    }
    Ok(false)
}
