//! Exports sessions that are not a single text file: the databases of goose and opencode, and the
//! folders of older opencode versions and of `OpenHands`. The text has the format of the program's
//! own export, which the other modules read.
//!
//! Nothing is written: a database is opened read-only, and as immutable if it has no write-ahead
//! log.

use std::fs;
use std::path::{Path, PathBuf};

use haft_types::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use serde_json::{Map, Value, json};

use crate::conversation_builder::get_text;
use crate::{ImportError, time};

/// An entry in a list of the sessions that another agent's database contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// The id of the session in the database.
    pub id: String,
    /// The name of the session in the database, or its id if it has no name.
    pub name: String,
    /// The total size of the messages in the session, in bytes.
    pub bytes: u64,
    /// The time at which the session was last changed.
    pub changed: Option<Timestamp>,
}

/// Exports sessions that are not stored as one text file. If `path` is a database, these are all
/// its sessions, or only the one with the id `session`; if it belongs to an opencode or `OpenHands`
/// folder, they are the one session whose messages are in other files of that folder. Returns
/// `None` if the file at `path` is itself the text to import.
pub fn read_stored_text(path: &Path, session: Option<&str>) -> Result<Option<String>, ImportError> {
    if is_database(path) {
        let database = Database::open(path)?;
        let all = database.query_sessions(session)?;
        let texts: Result<Vec<_>, _> = all.iter().map(|one| database.export_session(one)).collect();
        return texts.map(|texts| Some(texts.join("\n")));
    }
    Ok(export_from_folder(path))
}

/// Lists those sessions in a database that have messages, ordered by id.
pub fn list_stored_sessions(path: &Path) -> Result<Vec<StoredSession>, ImportError> {
    let database = Database::open(path)?;
    let size = format!(
        "SELECT coalesce(sum(length({})), 0) FROM {} WHERE session_id = ?1",
        database.text, database.table
    );
    let mut all = Vec::new();
    for session in database.query_sessions(None)? {
        let Some(id) = get_text(&session, "id") else {
            continue;
        };
        let names = ["title", "name", "description"];
        let name = names
            .iter()
            .find_map(|key| get_text(&session, key).filter(|name| !name.is_empty()))
            .unwrap_or(id);
        let changed = session
            .get("updated_at")
            .or(session.get("time_updated"))
            .and_then(time::parse_timestamp);
        let bytes: i64 = database
            .connection
            .query_row(&size, [id], |row| row.get(0))?;
        all.push(StoredSession {
            id: id.into(),
            name: name.into(),
            bytes: bytes.unsigned_abs(),
            changed,
        });
    }
    all.retain(|session| session.bytes > 0);
    Ok(all)
}

/// True if a file begins with the signature of an SQLite database. False if the file cannot be
/// read.
pub fn is_database(path: &Path) -> bool {
    use std::io::Read as _;
    const MAGIC: &[u8; 16] = b"SQLite format 3\0";
    let mut begin = [0; MAGIC.len()];
    fs::File::open(path)
        .and_then(|mut file| file.read_exact(&mut begin))
        .is_ok()
        && begin == *MAGIC
}

/// An open database of goose or opencode, with the names that distinguish the two layouts.
struct Database {
    connection: Connection,
    /// The name of the table that contains the sessions.
    sessions: &'static str,
    /// The name of the table that contains the messages.
    table: &'static str,
    /// The name of the column that contains the text of a message.
    text: &'static str,
}

impl Database {
    fn open(path: &Path) -> Result<Self, ImportError> {
        let has_log = fs::metadata(append_to_name(path, "-wal")).is_ok_and(|log| log.len() > 0);
        let name = path
            .to_string_lossy()
            .replace('%', "%25")
            .replace('?', "%3f")
            .replace('#', "%23");
        let address = format!(
            "file:{name}?{}",
            if has_log { "mode=ro" } else { "immutable=1" }
        );
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(address, flags)?;
        let has = |table: &str| connection.table_exists(None, table);
        let (sessions, table, text) = if has("sessions")? && has("messages")? {
            ("sessions", "messages", "content_json")
        } else if has("session")? && has("part")? {
            ("session", "part", "data")
        } else {
            return Err(ImportError::Unknown);
        };
        Ok(Self {
            connection,
            sessions,
            table,
            text,
        })
    }

    /// Returns the rows of a query, each as an object with one key per column.
    fn query_rows(&self, query: &str, argument: Option<&str>) -> Result<Vec<Value>, ImportError> {
        let mut statement = self.connection.prepare(query)?;
        let names: Vec<String> = statement
            .column_names()
            .into_iter()
            .map(str::to_owned)
            .collect();
        let rows = statement.query_map([argument], |row| row_to_object(row, &names))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn query_sessions(&self, id: Option<&str>) -> Result<Vec<Value>, ImportError> {
        self.query_rows(
            &format!(
                "SELECT * FROM {} WHERE ?1 IS NULL OR id = ?1 ORDER BY id",
                self.sessions
            ),
            id,
        )
    }

    /// Exports one session in the format that the export command of goose or opencode writes.
    fn export_session(&self, session: &Value) -> Result<String, ImportError> {
        let id = get_text(session, "id");
        let mut session = session.clone();
        if self.sessions == "sessions" {
            let rows = self.query_rows(
                "SELECT * FROM messages WHERE session_id = ?1 ORDER BY id",
                id,
            )?;
            let message = |row: &Value| {
                json!({ "role": row.get("role"), "created": row.get("created_timestamp"),
                    "content": row.get("content_json"), "metadata": row.get("metadata_json") })
            };
            session["conversation"] = rows.iter().map(message).collect();
            session["model_config"] = session["model_config_json"].take();
            return Ok(session.to_string());
        }
        let messages = self.query_rows(
            "SELECT id, data FROM message WHERE session_id = ?1 ORDER BY time_created, id",
            id,
        )?;
        let parts = self.query_rows(
            "SELECT message_id, data FROM part WHERE session_id = ?1 ORDER BY id",
            id,
        )?;
        let message = |row: &Value| {
            let own = parts
                .iter()
                .filter(|part| part["message_id"] == row["id"])
                .map(|part| &part["data"]);
            json!({ "info": row["data"], "parts": own.collect::<Vec<_>>() })
        };
        session["time"] = json!({ "created": session["time_created"] });
        session["parentID"] = session["parent_id"].take();
        Ok(json!({ "info": session, "messages": messages.iter().map(message).collect::<Vec<_>>() }).to_string())
    }
}

/// Converts a database row to a JSON object with the column names as keys. Texts that contain JSON
/// are parsed.
fn row_to_object(row: &Row<'_>, names: &[String]) -> rusqlite::Result<Value> {
    let mut object = Map::new();
    for (index, name) in names.iter().enumerate() {
        let value = match row.get_ref(index)? {
            ValueRef::Null | ValueRef::Blob(_) => Value::Null,
            ValueRef::Integer(number) => number.into(),
            ValueRef::Real(number) => number.into(),
            ValueRef::Text(text) => {
                let text = String::from_utf8_lossy(text);
                let read = (name == "data" || name.ends_with("_json"))
                    .then(|| serde_json::from_str(&text).ok());
                read.flatten().unwrap_or_else(|| text.into())
            }
        };
        object.insert(name.clone(), value);
    }
    Ok(object.into())
}

/// Appends `end` to the file name of a path.
fn append_to_name(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Exports a session that is stored as a folder of files: by `OpenHands` (`base_state.json`,
/// `events/*.json`), or by an older version of opencode without a database
/// (`session/PROJECT/ID.json`, `message/ID/*.json`, `part/MESSAGE/*.json`).
fn export_from_folder(path: &Path) -> Option<String> {
    let values = |folder: PathBuf| {
        let mut files: Vec<_> = fs::read_dir(folder)
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        files.retain(|file| file.extension().is_some_and(|end| end == "json"));
        files.sort();
        // An unreadable file becomes null, which is counted as skipped later.
        let values = files.iter().map(|file| {
            let text = fs::read_to_string(file).unwrap_or_default();
            serde_json::from_str::<Value>(&text).unwrap_or_default()
        });
        Some(values.collect::<Vec<_>>())
    };
    let id = path
        .file_stem()?
        .to_str()
        .filter(|id| id.starts_with("ses_") || *id == "base_state")?;
    let info: Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    if id == "base_state" {
        let events = values(path.parent()?.join("events"))?;
        return Some(
            json!({ "id": info.get("id"), "stats": info.get("stats"), "history": events })
                .to_string(),
        );
    }
    let root = path.ancestors().nth(3)?;
    let message = |info: Value| {
        let parts = get_text(&info, "id")
            .and_then(|id| values(root.join("part").join(id)))
            .unwrap_or_default();
        json!({ "info": info, "parts": parts })
    };
    let messages: Vec<_> = values(root.join("message").join(id))?
        .into_iter()
        .map(message)
        .collect();
    Some(json!({ "info": info, "messages": messages }).to_string())
}
