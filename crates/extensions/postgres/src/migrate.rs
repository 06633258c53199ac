//! Creates and upgrades the tables on request, for teams whose workers may not do that.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use haft_store::StoreError;
use sqlx::PgConnection;

use crate::connect::{self, PostgresServer};
use crate::failure::PostgresFailure;
use crate::queue::format as queue_format;
use crate::session::{self, PostgresSession};

/// Creates the tables of the conversations and of the queue, or upgrades them to the format of this
/// build of haft. Blocks, and must not be called within an async runtime.
pub fn migrate_server(url: &str, lock_timeout: Duration) -> Result<(), StoreError> {
    run_once(url, lock_timeout, async |connection| {
        connect::migrate_in_transaction(&mut *connection).await?;
        queue_format::migrate_tables(connection).await
    })
}

/// Gives `role` the rights that workers and users need: to read and change the rows of haft's
/// tables, without the right to create, change or remove tables. Blocks, like [`migrate_server`].
pub fn grant_data_rights(url: &str, lock_timeout: Duration, role: &str) -> Result<(), StoreError> {
    run_once(url, lock_timeout, async |connection| {
        let sql = "SELECT format('GRANT USAGE ON SCHEMA %I TO %I; '::text, current_schema(), $1::text) ||
                       (SELECT string_agg(format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I.%I TO %I'::text, current_schema(), name, $1::text), '; '::text)
                        FROM unnest($2::text[]) AS name)";
        let grant: String = sqlx::query_scalar(sql)
            .bind(role)
            .bind(list_relations())
            .fetch_one(&mut *connection)
            .await?;
        sqlx::raw_sql(sqlx::AssertSqlSafe(grant))
            .execute(connection)
            .await?;
        Ok(())
    })
}

/// Returns all migrations as one SQL script, for review or for another tool that runs it on an
/// empty schema.
pub fn migration_sql() -> String {
    let mut script = String::new();
    for (table, create, migrations) in [
        (
            "haft_format",
            connect::CREATE_FORMAT_TABLE,
            connect::MIGRATIONS,
        ),
        (
            "queue_format",
            queue_format::CREATE_FORMAT_TABLE,
            queue_format::MIGRATIONS,
        ),
    ] {
        let _ = writeln!(script, "{create};");
        for migration in migrations {
            script.push_str(migration);
        }
        let _ = writeln!(script, "INSERT INTO {table} VALUES ({});", migrations.len());
    }
    script
}

/// Returns the names of the tables and views that the migrations create.
fn list_relations() -> Vec<String> {
    let script = migration_sql();
    let created = script.lines().filter_map(|line| {
        let line = line.trim();
        line.strip_prefix("CREATE TABLE ")
            .or_else(|| line.strip_prefix("CREATE VIEW "))
    });
    created
        .filter_map(|rest| {
            let rest = rest.strip_prefix("IF NOT EXISTS ").unwrap_or(rest);
            Some(rest.split([' ', '(']).next()?.to_owned())
        })
        .collect()
}

fn run_once<T>(
    url: &str,
    lock_timeout: Duration,
    job: impl AsyncFnOnce(&mut PgConnection) -> Result<T, PostgresFailure>,
) -> Result<T, StoreError> {
    let server = Arc::new(PostgresServer::new(url, lock_timeout)?);
    let mut session = PostgresSession::new(&server)?;
    let done = session.run(async |connection| {
        session::run_transaction(connection, session::BEGIN_WRITE, job).await
    });
    done.map_err(|failure| server.to_store_error(failure.explain_migration()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_relations_names_the_tables_and_views_of_all_migrations() {
        let relations = list_relations();
        for name in [
            "haft_format",
            "conversations",
            "writers",
            "names",
            "queue_format",
            "queue_tasks",
            "queue_log",
            "queue_pauses",
            "queue_ready",
        ] {
            assert!(
                relations.iter().any(|relation| relation == name),
                "{name}: {relations:?}"
            );
        }
        assert_eq!(
            relations.len(),
            migration_sql().matches("CREATE TABLE ").count()
                + migration_sql().matches("CREATE VIEW ").count()
        );
    }
}
