//! Numbered changes of the format. A released one is never edited: the next change is the next
//! number.

use rusqlite::{Connection, TransactionBehavior};

use super::failure::SqliteFailure;

/// Marks a file as ours in its header: `haft` in ASCII.
pub(super) const APPLICATION_ID: i32 = i32::from_be_bytes(*b"haft");

const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_conversations.sql"),
    include_str!("migrations/0002_project_states.sql"),
    include_str!("migrations/0003_forks_revisions_trash.sql"),
];

/// The format this version writes.
pub(super) const FORMAT: u32 = MIGRATIONS.len() as u32;

/// The mark and the format of a database, both zero for an empty one.
pub(super) fn identity(connection: &Connection) -> Result<(i32, u32), rusqlite::Error> {
    let application = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let format = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok((application, format))
}

/// Brings the database to [`FORMAT`]: all steps or none. Another process may be doing the same.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), SqliteFailure> {
    if identity(connection)? == (APPLICATION_ID, FORMAT) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read again now that nobody else can write.
    let (_, format) = identity(&transaction)?;
    for migration in MIGRATIONS.iter().skip(format as usize) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    // A newer process may have been faster; what it wrote is refused by the next check, not turned
    // back here.
    transaction.pragma_update(None, "user_version", format.max(FORMAT))?;
    transaction.commit()?;
    Ok(())
}
