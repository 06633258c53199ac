//! A PostgreSQL server for tests: the one `HAFT_POSTGRES` names, with a new schema for each test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use haft_postgres::PostgresStore;
use haft_store::conformance::TickingClock;
use haft_store::{StoreConfig, StoreError};
use haft_types::Clock;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

/// A schema or database on the server, for one test.
pub(crate) struct Server {
    url: String,
    place: Place,
}

/// The schema or database that belongs to one test.
enum Place {
    Schema(String),
    Database(String),
}

impl Server {
    /// Returns a new schema; prints a line and returns `None` if there is no server.
    pub(crate) async fn new() -> Option<Self> {
        Self::with(Place::Schema).await
    }

    /// Returns a new database, for tests that end connections.
    pub(crate) async fn with_database() -> Option<Self> {
        Self::with(Place::Database).await
    }

    async fn with(place: impl FnOnce(String) -> Place) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let Ok(url) = std::env::var("HAFT_POSTGRES") else {
            println!("skipped: HAFT_POSTGRES does not name a PostgreSQL server");
            return None;
        };
        let name = format!(
            "test_{}_{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let server = Self {
            url,
            place: place(name),
        };
        let create = match &server.place {
            Place::Schema(name) => format!("CREATE SCHEMA {name}"),
            Place::Database(name) => format!("CREATE DATABASE {name}"),
        };
        execute_sql(&server.url, create).await;
        Some(server)
    }

    /// Removes the schema or database.
    pub(crate) async fn end(self) {
        let remove = match &self.place {
            Place::Schema(name) => format!("DROP SCHEMA {name} CASCADE"),
            Place::Database(name) => format!("DROP DATABASE {name} WITH (FORCE)"),
        };
        execute_sql(&self.url, remove).await;
    }

    /// Executes a change without the store.
    pub(crate) async fn change(&self, sql: &str) {
        execute_sql(&self.url(), sql.to_owned()).await;
    }

    /// Returns the number of connections to this database that are idle in a transaction.
    pub(crate) async fn open_transactions(&self) -> i64 {
        let mut connection = PgConnection::connect(&self.url()).await.unwrap();
        let sql = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
        sqlx::query_scalar(sql)
            .fetch_one(&mut connection)
            .await
            .unwrap()
    }

    /// Returns the texts that a query selects.
    pub(crate) async fn texts(&self, sql: &'static str) -> Vec<String> {
        let mut connection = PgConnection::connect(&self.url()).await.unwrap();
        sqlx::query_scalar(sql)
            .fetch_all(&mut connection)
            .await
            .unwrap()
    }

    /// Returns the number that a query selects.
    pub(crate) async fn count(&self, sql: String) -> i64 {
        select_number(&self.url(), sql).await
    }

    /// Like [`Self::count`], as another role.
    pub(crate) async fn count_as(&self, role: &str, sql: String) -> i64 {
        select_number(&self.url_of_role(role), sql).await
    }

    /// Returns another client that has executed `sql` and stays connected.
    pub(crate) async fn hold(&self, sql: &'static str) -> PgConnection {
        let mut connection = PgConnection::connect(&self.url()).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
        connection
    }

    /// Recreates the schema empty.
    pub(crate) async fn empty(&self) {
        if let Place::Schema(name) = &self.place {
            execute_sql(
                &self.url,
                format!("DROP SCHEMA {name} CASCADE; CREATE SCHEMA {name}"),
            )
            .await;
        }
    }

    /// Returns the address of the schema or database.
    pub(crate) fn url(&self) -> String {
        let mark = if self.url.contains('?') { '&' } else { '?' };
        match &self.place {
            Place::Schema(name) => format!("{}{mark}options[search_path]={name}", self.url),
            Place::Database(name) => format!("{}{mark}dbname={name}", self.url),
        }
    }

    /// Returns the address for another role of the server.
    pub(crate) fn url_of_role(&self, role: &str) -> String {
        let url = self.url();
        let (scheme, rest) = url.split_once("://").unwrap();
        let rest = rest.split_once('@').map_or(rest, |(_, rest)| rest);
        format!("{scheme}://{role}@{rest}")
    }

    pub(crate) fn try_connect(&self) -> Result<PostgresStore, StoreError> {
        // Long enough for a busy machine, short enough for tests that wait for the timeout.
        let config = StoreConfig {
            lock_timeout_ms: 2_000,
            ..StoreConfig::default()
        };
        PostgresStore::connect(&self.url(), &config, TickingClock::new() as Arc<dyn Clock>)
    }

    pub(crate) fn connect(&self) -> PostgresStore {
        self.try_connect().unwrap()
    }
}

async fn execute_sql(url: &str, sql: String) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(&mut connection)
        .await
        .unwrap();
}

async fn select_number(url: &str, sql: String) -> i64 {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_one(&mut connection)
        .await
        .unwrap()
}
