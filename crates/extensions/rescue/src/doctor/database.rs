//! Checks the database of conversations: its pages, its rows, and the references between rows.

use std::collections::HashMap;
use std::path::Path;

use haft_store::database::{self, DatabaseFile, SqliteFailure, keep_damaged_log};
use haft_store::{StoreError, find_damaged_copies};
use haft_types::{ConversationId, Message};
use rusqlite::{Connection, Row};

use super::{Check, CheckHealth, StoreFiles, format_file_size};

const DATABASE: &str = "database";

/// Runs every check of the database. If the database cannot be opened, only the first check is run.
pub(super) fn check_database(store: &StoreFiles) -> Vec<Check> {
    let path = &store.database;
    if !path.exists() {
        return vec![Check::new(
            DATABASE,
            CheckHealth::Skipped,
            "there are no conversations yet",
        )];
    }
    let place = DatabaseFile {
        path: path.clone(),
        lock_timeout: store.config.lock_timeout(),
    };
    let mut checks = Vec::from_iter(check_log(path));
    let mut connection = match database::open_connection(&place) {
        Ok(connection) => connection,
        // The database could not be opened, but it is not necessarily damaged.
        Err(
            error @ (StoreError::NewerFormat { .. }
            | StoreError::LockTimeout { .. }
            | StoreError::Io { .. }),
        ) => {
            checks.push(Check::new(
                DATABASE,
                CheckHealth::Warning,
                error.to_string(),
            ));
            return checks;
        }
        Err(error) => {
            checks.push(Check::new(
                DATABASE,
                CheckHealth::Damaged,
                error.to_string(),
            ));
            return checks;
        }
    };
    for (name, check) in CHECKS {
        checks.push(check(&mut connection).unwrap_or_else(|failure| {
            let problem = place.to_store_error(failure);
            Check::new(
                name,
                CheckHealth::Damaged,
                format!("it cannot be looked at: {problem}"),
            )
        }));
    }
    let first = checks.iter_mut().find(|check| check.name == DATABASE);
    if let Some(first) = first.filter(|check| check.health == CheckHealth::Ok) {
        first.message = format!("{} ({})", first.message, format_file_size(path));
    }
    checks
}

/// Reports damage to the write-ahead log that was found by this or an earlier check. Returns `None`
/// if the log is undamaged.
fn check_log(database: &Path) -> Option<Check> {
    const NAME: &str = "log";
    if let Err(error) = keep_damaged_log(database) {
        return Some(Check::new(
            NAME,
            CheckHealth::Damaged,
            format!("it is damaged, and no copy can be kept: {error}"),
        ));
    }
    let copies = find_damaged_copies(database);
    if copies.is_empty() {
        return None;
    }
    let message = "the newest messages were lost to damage; these copies of the log were kept";
    let details = copies
        .iter()
        .map(|copy| copy.display().to_string())
        .collect();
    Some(Check::new(NAME, CheckHealth::Damaged, message).with_details(details))
}

type CheckFn = fn(&mut Connection) -> Result<Check, SqliteFailure>;

const CHECKS: [(&str, CheckFn); 4] = [
    (DATABASE, check_integrity),
    ("messages", check_messages),
    ("references", check_references),
    ("requests", check_requests),
];

/// Runs SQLite's checks of pages, trees, and foreign keys, and rebuilds indexes that don't match
/// their tables.
fn check_integrity(connection: &mut Connection) -> Result<Check, SqliteFailure> {
    let found = run_integrity_check(connection)?;
    if found.is_empty() {
        return Ok(check_foreign_keys(connection)?.unwrap_or_else(|| {
            Check::new(DATABASE, CheckHealth::Ok, "pages and trees are whole")
        }));
    }
    if found.iter().all(|line| line.contains("index")) {
        connection.execute_batch("REINDEX")?;
        if run_integrity_check(connection)?.is_empty() {
            let check = Check::new(
                DATABASE,
                CheckHealth::Repaired,
                "indexes did not fit their tables and were made anew",
            );
            return Ok(check.with_details(found));
        }
    }
    Ok(Check::new(DATABASE, CheckHealth::Damaged, "pages are damaged").with_details(found))
}

fn run_integrity_check(connection: &Connection) -> Result<Vec<String>, SqliteFailure> {
    let mut statement = connection.prepare("PRAGMA integrity_check(1000)")?;
    let lines = statement
        .query_map([], |row| row.get::<_, String>(0))?
        .collect::<Result<Vec<_>, _>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

fn check_foreign_keys(connection: &Connection) -> Result<Option<Check>, SqliteFailure> {
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let read = |row: &Row<'_>| {
        let table: String = row.get(0)?;
        let key: Option<i64> = row.get(1)?;
        let parent: String = row.get(2)?;
        let key = key.map_or_else(String::new, |key| format!(" {key}"));
        Ok(format!(
            "row{key} of `{table}` refers to a row of `{parent}` that is not there"
        ))
    };
    let found = statement
        .query_map([], read)?
        .collect::<Result<Vec<String>, rusqlite::Error>>()?;
    if found.is_empty() {
        return Ok(None);
    }
    Ok(Some(
        Check::new(
            DATABASE,
            CheckHealth::Damaged,
            "rows refer to rows that are not there",
        )
        .with_details(found),
    ))
}

/// Checks that every message and every revision can be read and matches its hash.
fn check_messages(connection: &mut Connection) -> Result<Check, SqliteFailure> {
    let ids = read_conversation_ids(connection)?;
    let mut found = Vec::new();
    let mut count = 0_u64;
    for (table, what) in [
        ("messages", "message"),
        ("revisions", "a revision of message"),
    ] {
        let mut statement = connection.prepare(&format!(
            "SELECT conversation, position, hash, body FROM {table}"
        ))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            count += u64::from(table == "messages");
            let conversation: i64 = row.get(0)?;
            let position: i64 = row.get(1)?;
            if let Some(problem) = find_row_problem(row)? {
                found.push(format!(
                    "{what} {position} of {}: {problem}",
                    format_conversation(&ids, conversation)
                ));
            }
        }
    }
    if found.is_empty() {
        return Ok(Check::new(
            "messages",
            CheckHealth::Ok,
            format!("{count} messages are what was stored"),
        ));
    }
    let message = format!(
        "{} of {count} messages cannot be read as they were stored",
        found.len()
    );
    Ok(Check::new("messages", CheckHealth::Damaged, message).with_details(found))
}

fn find_row_problem(row: &Row<'_>) -> Result<Option<String>, SqliteFailure> {
    let hash = row.get_ref(2)?;
    let body = row.get_ref(3)?;
    let (Ok(hash), Ok(body)) = (hash.as_blob(), body.as_str()) else {
        return Ok(Some("its columns are not what they should be".to_owned()));
    };
    Ok(match serde_json::from_str::<Message>(body) {
        Err(error) => Some(error.to_string()),
        Ok(message) if message.content_hash().0 != hash => {
            Some("its content is not what was stored".to_owned())
        }
        Ok(_) => None,
    })
}

fn read_conversation_ids(connection: &Connection) -> Result<HashMap<i64, String>, SqliteFailure> {
    let mut statement = connection.prepare("SELECT key, id FROM conversations")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn format_conversation(ids: &HashMap<i64, String>, key: i64) -> String {
    ids.get(&key).map_or_else(
        || format!("conversation number {key}"),
        |id| format!("conversation `{id}`"),
    )
}

/// Checks the message counts of conversations, their lineage, and the current conversation of each
/// namespace. Repairs everything except missing messages.
fn check_references(connection: &mut Connection) -> Result<Check, SqliteFailure> {
    let transaction = database::begin_repair(connection)?;
    let mut repaired = Vec::new();
    let without = "SELECT id FROM conversations
                   WHERE NOT EXISTS (SELECT 1 FROM lineage WHERE lineage.conversation = key AND source = key)";
    for id in query_texts(&transaction, without)? {
        repaired.push(format!(
            "conversation `{id}` did not name itself as the source of its messages"
        ));
    }
    database::repair_lineage(&transaction)?;

    let mut missing = Vec::new();
    for MessageCounts {
        id,
        recorded: said,
        count,
        last,
    } in count_messages(&transaction)?
    {
        if count != last || said > last {
            missing.push(format!(
                "conversation `{id}` has {count} of {} messages",
                said.max(last)
            ));
        } else if said < last {
            repaired.push(format!(
                "conversation `{id}` counted {said} messages and has {count}"
            ));
        }
    }
    raise_counters(&transaction)?;

    let dangling = "SELECT namespace FROM current_conversations
                    WHERE conversation NOT IN (SELECT key FROM conversations)";
    for namespace in query_texts(&transaction, dangling)? {
        repaired.push(format!(
            "the current conversation of `{namespace}` is not there"
        ));
    }
    transaction
        .execute("DELETE FROM current_conversations WHERE conversation NOT IN (SELECT key FROM conversations)", [])?;
    transaction.commit()?;

    Ok(if !missing.is_empty() {
        missing.extend(repaired);
        Check::new("references", CheckHealth::Damaged, "messages are missing").with_details(missing)
    } else if !repaired.is_empty() {
        Check::new(
            "references",
            CheckHealth::Repaired,
            "what could be counted again was counted again",
        )
        .with_details(repaired)
    } else {
        Check::new("references", CheckHealth::Ok, "no message is missing")
    })
}

/// Raises counters that are too low, so that no new message or request reuses a number.
fn raise_counters(connection: &Connection) -> Result<(), SqliteFailure> {
    connection.execute(
        "UPDATE conversations SET messages = there.last
         FROM (SELECT lineage.conversation AS key, max(messages.position) AS last FROM lineage
               JOIN messages ON messages.conversation = lineage.source AND messages.position <= lineage.last_position
               GROUP BY lineage.conversation) AS there
         WHERE there.key = conversations.key AND there.last > conversations.messages",
        [],
    )?;
    connection.execute(
        "UPDATE conversations SET requests = there.last
         FROM (SELECT conversation AS key, max(number) AS last FROM requests GROUP BY conversation) AS there
         WHERE there.key = conversations.key AND there.last > conversations.requests",
        [],
    )?;
    Ok(())
}

fn query_texts(connection: &Connection, sql: &str) -> Result<Vec<String>, SqliteFailure> {
    let mut statement = connection.prepare(sql)?;
    Ok(statement
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?)
}

/// The recorded and the actual number of messages in a conversation.
struct MessageCounts {
    id: String,
    /// The number of messages according to the row of the conversation.
    recorded: i64,
    /// The number of the conversation's messages that actually exist.
    count: i64,
    /// The position of the conversation's last message, or 0 if it has none.
    last: i64,
}

fn count_messages(connection: &Connection) -> Result<Vec<MessageCounts>, SqliteFailure> {
    let mut statement = connection.prepare(
        "SELECT conversations.id, conversations.messages, count(messages.key), coalesce(max(messages.position), 0)
         FROM conversations
         LEFT JOIN lineage ON lineage.conversation = conversations.key
         LEFT JOIN messages ON messages.conversation = lineage.source AND messages.position <= lineage.last_position
         GROUP BY conversations.key ORDER BY conversations.key",
    )?;
    let read = |row: &Row<'_>| {
        Ok(MessageCounts {
            id: row.get(0)?,
            recorded: row.get(1)?,
            count: row.get(2)?,
            last: row.get(3)?,
        })
    };
    Ok(statement.query_map([], read)?.collect::<Result<_, _>>()?)
}

/// Checks that every logged request can be reconstructed.
fn check_requests(connection: &mut Connection) -> Result<Check, SqliteFailure> {
    let ids = query_texts(
        connection,
        "SELECT id FROM conversations WHERE requests > 0 AND deleted_at IS NULL ORDER BY key",
    )?;
    let mut found = Vec::new();
    let mut count = 0_u64;
    for id in ids {
        match database::check_requests(connection, &ConversationId::new(&id)) {
            Ok(checked) => count += checked,
            Err(failure @ SqliteFailure::Sqlite(_)) => return Err(failure),
            Err(failure) => found.push(format!("conversation `{id}`: {}", failure.description())),
        }
    }
    if found.is_empty() {
        return Ok(Check::new(
            "requests",
            CheckHealth::Ok,
            format!("{count} logged requests can be made whole"),
        ));
    }
    let message = "some logged requests cannot be made whole; conversations are not affected";
    Ok(Check::new("requests", CheckHealth::Damaged, message).with_details(found))
}
