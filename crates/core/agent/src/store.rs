//! Opens the store with the user's conversations.

use std::sync::Arc;

use haft_store::{SqliteStore, Store};

use crate::clock::WallClock;
use crate::config::Config;
use crate::defaults_notice;
use crate::error::SetupError;
use crate::extension::Extension;
use crate::places::Places;

/// Opens the store for a single query or change, without backups.
pub fn open_store(
    places: &Places,
    config: &Config,
    extensions: &[Arc<dyn Extension>],
) -> Result<Arc<dyn Store>, SetupError> {
    match &config.store.url {
        Some(url) => connect_to_server(url, places, config, extensions),
        None => Ok(Arc::new(open_database(places, config)?)),
    }
}

/// Opens the store for a session, with backups.
pub(crate) fn open_store_with_backups(
    places: &Places,
    config: &Config,
    extensions: &[Arc<dyn Extension>],
) -> Result<Arc<dyn Store>, SetupError> {
    if let Some(url) = &config.store.url {
        return connect_to_server(url, places, config, extensions);
    }
    let mut database = open_database(places, config)?;
    database.start_backups(&places.backups_folder())?;
    Ok(Arc::new(database))
}

fn open_database(places: &Places, config: &Config) -> Result<SqliteStore, SetupError> {
    let fresh = !places.database_file().exists();
    let database = SqliteStore::open(&places.database_file(), &config.store, Arc::new(WallClock))?;
    if fresh {
        // A failure only leads to an unnecessary notice.
        drop(defaults_notice::mark_defaults_as_seen(places));
    }
    Ok(database)
}

/// Connects through the first extension that supports the server at `url`.
fn connect_to_server(
    url: &str,
    places: &Places,
    config: &Config,
    extensions: &[Arc<dyn Extension>],
) -> Result<Arc<dyn Store>, SetupError> {
    let connected = |extension: &Arc<dyn Extension>| {
        extension.connect_store(url, &config.store, &places.environment, Arc::new(WallClock))
    };
    Ok(extensions
        .iter()
        .find_map(connected)
        .ok_or(SetupError::NoServer)??)
}
