//! A PostgreSQL server for tests: the one `HAFT_POSTGRES` names, with a schema of its own for each test.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use haft_store::{PostgresStore, StoreConfig, StoreError};
use haft_types::Clock;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::support::Ticking;

/// A schema on the server, which goes away with this.
pub(crate) struct Server {
    url: String,
    schema: String,
}

impl Server {
    /// A new one; none, with a line that says so, where there is no server.
    pub(crate) async fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let Ok(url) = std::env::var("HAFT_POSTGRES") else {
            println!("skipped: HAFT_POSTGRES does not name a PostgreSQL server");
            return None;
        };
        let schema = format!("test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let server = Self { url, schema };
        server.tell(format!("CREATE SCHEMA {}", server.schema)).await;
        Some(server)
    }

    async fn tell(&self, sql: String) {
        let mut connection = PgConnection::connect(&self.url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    }

    /// Removes what the test made.
    pub(crate) async fn end(self) {
        self.tell(format!("DROP SCHEMA {} CASCADE", self.schema)).await;
    }

    /// Changes something behind the store's back.
    pub(crate) async fn change(&self, sql: &str) {
        self.tell(format!("SET search_path = {}; {sql}", self.schema)).await;
    }

    /// The address with this schema.
    pub(crate) fn url(&self) -> String {
        let mark = if self.url.contains('?') { '&' } else { '?' };
        format!("{}{mark}options[search_path]={}", self.url, self.schema)
    }

    pub(crate) fn try_connect(&self) -> Result<PostgresStore, StoreError> {
        let config = StoreConfig { lock_timeout_ms: 300, ..StoreConfig::default() };
        PostgresStore::connect(&self.url(), &config, Ticking::new() as Arc<dyn Clock>)
    }

    pub(crate) fn connect(&self) -> PostgresStore {
        self.try_connect().unwrap()
    }
}
