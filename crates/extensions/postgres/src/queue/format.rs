//! The format of the queue's tables, and its migrations.

use sqlx::PgConnection;

use crate::failure::PostgresFailure;

/// The SQL migrations that create and upgrade the queue's tables, oldest first. A released
/// migration is never edited. They are separate from those of the conversations, because a team
/// without workers has no queue tables.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/queue_0001.sql"),
    include_str!("../migrations/queue_0002.sql"),
    include_str!("../migrations/queue_0003.sql"),
];

/// The version of the table format that this build of haft reads and writes.
pub(super) const FORMAT_VERSION: i32 = (MIGRATIONS.len() as u32).cast_signed();

/// The statement that creates the table with the format version.
pub(crate) const CREATE_FORMAT_TABLE: &str =
    "CREATE TABLE IF NOT EXISTS queue_format (format INTEGER NOT NULL)";

/// Fails if the queue's tables have a newer format than this build of haft.
pub(super) fn check_format(found: i32) -> Result<(), PostgresFailure> {
    if found > FORMAT_VERSION {
        return Err(PostgresFailure::NewerFormat {
            found: found.unsigned_abs(),
            known: FORMAT_VERSION.unsigned_abs(),
        });
    }
    Ok(())
}

/// Returns true if the tables exist and have the format of this build of haft. A role without the
/// right to create tables needs nothing else.
pub(super) async fn is_current(connection: &mut PgConnection) -> Result<bool, PostgresFailure> {
    let sql = "SELECT max(format) FROM queue_format";
    match sqlx::query_scalar::<_, Option<i32>>(sql)
        .fetch_one(connection)
        .await
    {
        Ok(found) => {
            let found = found.unwrap_or(0);
            check_format(found)?;
            Ok(found == FORMAT_VERSION)
        }
        Err(error) if crate::failure::is_missing_table(&error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Creates or upgrades the tables, in the transaction of the caller.
pub(crate) async fn migrate_tables(connection: &mut PgConnection) -> Result<(), PostgresFailure> {
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema()::text || ' queue format'::text, 0::bigint))";
    sqlx::query(lock).execute(&mut *connection).await?;
    sqlx::raw_sql(CREATE_FORMAT_TABLE)
        .execute(&mut *connection)
        .await?;
    let found: Option<i32> = sqlx::query_scalar("SELECT format FROM queue_format")
        .fetch_optional(&mut *connection)
        .await?;
    let format = found.unwrap_or(0);
    if format >= FORMAT_VERSION {
        return check_format(format);
    }
    for migration in MIGRATIONS.iter().skip(format.unsigned_abs() as usize) {
        sqlx::raw_sql(*migration).execute(&mut *connection).await?;
    }
    let set = if found.is_some() {
        "UPDATE queue_format SET format = $1"
    } else {
        "INSERT INTO queue_format VALUES ($1)"
    };
    sqlx::query(set)
        .bind(FORMAT_VERSION)
        .execute(connection)
        .await?;
    Ok(())
}
