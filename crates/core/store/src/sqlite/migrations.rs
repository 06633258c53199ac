//! Numbered changes of the database format. A released change is never edited; a new change gets
//! the next number.

use rusqlite::{Connection, TransactionBehavior};

use super::failure::SqliteFailure;

/// The number in the header of a database file that identifies it as haft's: `haft` in ASCII.
pub(super) const APPLICATION_ID: i32 = i32::from_be_bytes(*b"haft");

const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_conversations.sql"),
    include_str!("migrations/0002_project_states.sql"),
    include_str!("migrations/0003_forks_revisions_trash.sql"),
];

/// The format version that this version of haft writes.
pub(super) const FORMAT_VERSION: u32 = MIGRATIONS.len() as u32;

/// Returns the application id and the format version of a database. Both are zero for an empty
/// database.
pub(super) fn read_identity(connection: &Connection) -> Result<(i32, u32), rusqlite::Error> {
    let application = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let format = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok((application, format))
}

/// Migrates the database to [`FORMAT_VERSION`] in one transaction. Safe if another process migrates
/// the database at the same time.
pub(super) fn migrate_database(connection: &mut Connection) -> Result<(), SqliteFailure> {
    if read_identity(connection)? == (APPLICATION_ID, FORMAT_VERSION) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read again now that no other process can write.
    let (_, format) = read_identity(&transaction)?;
    for migration in MIGRATIONS.iter().skip(format as usize) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    // A newer version of haft may have migrated the database first. Its format is kept, and the
    // next check rejects it.
    transaction.pragma_update(None, "user_version", format.max(FORMAT_VERSION))?;
    transaction.commit()?;
    Ok(())
}
