//! The record of changes and of their reversals: steps, each with the paths it changed.
//!
//! Invariant: steps are only added, in the order they happened. The change of a path by a step is a
//! row that is written once; later only the version after the change, and the step that reversed
//! it, are filled in. A row names only contents that are stored.

use std::path::{Path, PathBuf};

use haft_store::database::SqliteFailure;
use haft_tool::CallName;
use haft_types::{ConversationId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row};

use super::content::{self, FileContent};
use super::version::{FileVersion, path_bytes, read_path};

/// The number of a step. Later steps have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId(pub i64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A tool call that changed files.
    Call,
    /// An undo, which reverses the changes of calls.
    Undo,
    /// A redo, which reverses the changes of an undo.
    Redo,
}

impl StepKind {
    fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Undo => "undo",
            Self::Redo => "redo",
        }
    }

    fn from_name(name: &str) -> Result<Self, SqliteFailure> {
        [Self::Call, Self::Undo, Self::Redo]
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| SqliteFailure::Damaged(format!("`{name}` is not a kind of step")))
    }
}

/// A call, undo, or redo that changed files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStep {
    pub id: StepId,
    pub kind: StepKind,
    /// The call that changed the files or requested the undo or redo. `None` if the user requested
    /// the undo or redo.
    pub call: Option<CallName>,
    /// The time at which the step began.
    pub at: Timestamp,
    /// True if the step was completed. False for an undo or redo that was interrupted by a kill.
    pub done: bool,
    /// The changed paths, ordered by path.
    pub changes: Vec<PathChange>,
}

/// The change that a step made to one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// The absolute path.
    pub path: PathBuf,
    /// The version before the change.
    pub before: FileVersion,
    /// The version after the change. `None` if the process was killed before this version was
    /// recorded.
    pub after: Option<FileVersion>,
    /// The undo or redo that last reversed the change.
    pub taken_back: Option<StepId>,
}

/// A change to a path, made by an undo or redo, that reverses earlier changes to the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reversal {
    pub path: PathBuf,
    /// The version before the reversal.
    pub before: FileVersion,
    /// The version after the reversal.
    pub after: FileVersion,
    /// The steps whose changes of this path are reversed.
    pub of: Vec<StepId>,
}

/// Returns the step that records a call's changes, and adds one if the call has none yet.
fn find_or_add_step(
    connection: &Connection,
    conversation: &ConversationId,
    call: &CallName,
    now: Timestamp,
) -> Result<i64, SqliteFailure> {
    let found = connection
        .prepare_cached(
            "SELECT key FROM steps WHERE conversation = ?1 AND kind = 'call' AND message_id = ?2 AND call_id = ?3",
        )?
        .query_row((conversation.as_str(), call.message_id.to_string(), &call.call_id), |row| row.get(0))
        .optional()?;
    match found {
        Some(key) => Ok(key),
        None => add_step(connection, conversation, StepKind::Call, Some(call), now),
    }
}

fn add_step(
    connection: &Connection,
    conversation: &ConversationId,
    kind: StepKind,
    call: Option<&CallName>,
    now: Timestamp,
) -> Result<i64, SqliteFailure> {
    connection
        .prepare_cached(
            "INSERT INTO steps (conversation, kind, message_id, call_id, tool, at, done)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute((
            conversation.as_str(),
            kind.name(),
            call.map(|call| call.message_id.to_string()),
            call.map(|call| &call.call_id),
            call.map(|call| &call.tool),
            now.to_string(),
            kind == StepKind::Call,
        ))?;
    Ok(connection.last_insert_rowid())
}

/// Returns `version` if its content is stored or if it has no content, else
/// [`FileVersion::Unsaved`].
fn check_stored(
    connection: &Connection,
    version: FileVersion,
) -> Result<FileVersion, SqliteFailure> {
    Ok(match version {
        FileVersion::File { hash, size, .. } if !content::is_stored(connection, hash)? => {
            FileVersion::Unsaved { size }
        }
        FileVersion::Link { hash } if !content::is_stored(connection, hash)? => {
            FileVersion::Unsaved { size: 0 }
        }
        version => version,
    })
}

/// Records the versions of paths before a call changes them. A path that was already saved for this
/// call keeps its first version.
pub(super) fn save_before(
    connection: &Connection,
    conversation: &ConversationId,
    call: &CallName,
    now: Timestamp,
    before: &[(PathBuf, FileVersion)],
    contents: &[FileContent],
) -> Result<(), SqliteFailure> {
    let step = find_or_add_step(connection, conversation, call, now)?;
    let statement =
        "INSERT INTO changes (step, path, before_kind, before_mode, before_size, before_hash)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (step, path) DO NOTHING";
    write_versions(connection, step, statement, before, contents)
}

/// Records the versions of saved paths after a call. Paths that the call left unchanged are removed
/// from the record.
pub(super) fn save_after(
    connection: &Connection,
    conversation: &ConversationId,
    call: &CallName,
    now: Timestamp,
    after: &[(PathBuf, FileVersion)],
    contents: &[FileContent],
) -> Result<(), SqliteFailure> {
    let step = find_or_add_step(connection, conversation, call, now)?;
    let statement =
        "UPDATE changes SET after_kind = ?3, after_mode = ?4, after_size = ?5, after_hash = ?6
                     WHERE step = ?1 AND path = ?2";
    write_versions(connection, step, statement, after, contents)?;
    delete_unchanged(connection, step)
}

fn write_versions(
    connection: &Connection,
    step: i64,
    statement: &str,
    versions: &[(PathBuf, FileVersion)],
    contents: &[FileContent],
) -> Result<(), SqliteFailure> {
    contents
        .iter()
        .try_for_each(|content| content.insert(connection))?;
    let mut statement = connection.prepare_cached(statement)?;
    for (path, version) in versions {
        let columns = check_stored(connection, *version)?.to_columns();
        statement.execute((
            step,
            path_bytes(path),
            columns.kind,
            columns.mode,
            columns.size,
            columns.hash,
        ))?;
    }
    Ok(())
}

fn delete_unchanged(connection: &Connection, step: i64) -> Result<(), SqliteFailure> {
    connection
        .prepare_cached(
            "DELETE FROM changes WHERE step = ?1 AND before_kind = after_kind AND before_mode = after_mode
             AND before_hash IS after_hash AND before_kind <> 'unsaved'",
        )?
        .execute([step])?;
    connection
        .prepare_cached("DELETE FROM steps WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM changes WHERE step = ?1)")?
        .execute([step])?;
    Ok(())
}

/// Records a call's file changes that were found by scans. A change is skipped if another step
/// recorded it after the step `since`. Returns the recorded paths.
pub(super) fn save_scanned(
    connection: &Connection,
    conversation: &ConversationId,
    call: &CallName,
    now: Timestamp,
    since: StepId,
    changes: &[(PathBuf, FileVersion, FileVersion)],
) -> Result<Vec<PathBuf>, SqliteFailure> {
    let step = find_or_add_step(connection, conversation, call, now)?;
    let mut kept = Vec::with_capacity(changes.len());
    for (path, before, after) in changes {
        let before = check_stored(connection, *before)?;
        let after = check_stored(connection, *after)?;
        if is_made_by_other_step(connection, step, since, path, after)? {
            continue;
        }
        let again = "ON CONFLICT (step, path)
                     DO UPDATE SET after_kind = ?7, after_mode = ?8, after_size = ?9, after_hash = ?10";
        insert_change(connection, step, path, (before, after), again)?;
        kept.push(path.clone());
    }
    delete_unchanged(connection, step)?;
    Ok(kept)
}

/// Inserts a change into the table. `on_conflict` is the SQL clause that applies if the step
/// already has a change for the path.
fn insert_change(
    connection: &Connection,
    step: i64,
    path: &Path,
    (before, after): (FileVersion, FileVersion),
    on_conflict: &str,
) -> Result<(), SqliteFailure> {
    let old = before.to_columns();
    let new = after.to_columns();
    let sql = format!(
        "INSERT INTO changes (step, path, before_kind, before_mode, before_size, before_hash,
                              after_kind, after_mode, after_size, after_hash)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) {on_conflict}"
    );
    connection.prepare_cached(&sql)?.execute((
        step,
        path_bytes(path),
        old.kind,
        old.mode,
        old.size,
        old.hash,
        new.kind,
        new.mode,
        new.size,
        new.hash,
    ))?;
    Ok(())
}

fn is_made_by_other_step(
    connection: &Connection,
    own: i64,
    since: StepId,
    path: &Path,
    after: FileVersion,
) -> Result<bool, SqliteFailure> {
    let mut statement = connection.prepare_cached(
        "SELECT after_kind, after_mode, after_size, after_hash FROM changes
         WHERE path = ?1 AND step > ?2 AND step <> ?3 AND after_kind IS NOT NULL ORDER BY step DESC LIMIT 1",
    )?;
    let mut rows = statement.query((path_bytes(path), since.0, own))?;
    match rows.next()? {
        Some(row) => Ok(FileVersion::from_row(row, 0)? == after),
        None => Ok(false),
    }
}

/// Returns the id of the newest step of all conversations.
pub(super) fn newest_step(connection: &Connection) -> Result<StepId, SqliteFailure> {
    let newest: Option<i64> = connection
        .prepare_cached("SELECT max(key) FROM steps")?
        .query_row([], |row| row.get(0))?;
    Ok(StepId(newest.unwrap_or(0)))
}

/// Returns the recorded calls, undos and redos of a conversation, oldest first.
pub(super) fn list_steps(
    connection: &Connection,
    conversation: &ConversationId,
) -> Result<Vec<FileStep>, SqliteFailure> {
    let mut statement = connection.prepare_cached(
        "SELECT key, kind, message_id, call_id, tool, at, done, path, before_kind, before_mode, before_size, before_hash,
                after_kind, after_mode, after_size, after_hash, taken_back
         FROM steps JOIN changes ON changes.step = steps.key WHERE conversation = ?1 ORDER BY key, path",
    )?;
    let mut rows = statement.query([conversation.as_str()])?;
    let mut steps: Vec<FileStep> = Vec::new();
    while let Some(row) = rows.next()? {
        let id = StepId(row.get(0)?);
        let change = read_change(row)?;
        match steps.last_mut() {
            Some(last) if last.id == id => last.changes.push(change),
            _ => steps.push(read_step(row, id, change)?),
        }
    }
    Ok(steps)
}

fn read_step(row: &Row<'_>, id: StepId, first: PathChange) -> Result<FileStep, SqliteFailure> {
    let kind: String = row.get(1)?;
    let message: Option<String> = row.get(2)?;
    let call_id: Option<String> = row.get(3)?;
    let tool: Option<String> = row.get(4)?;
    let at: String = row.get(5)?;
    let damaged =
        |what: &str| SqliteFailure::Damaged(format!("step {} has an unreadable {what}", id.0));
    let call = match (message, call_id) {
        (Some(message), Some(call_id)) => Some(CallName {
            message_id: message.parse().map_err(|_| damaged("message id"))?,
            call_id,
            tool: tool.unwrap_or_default(),
        }),
        _ => None,
    };
    Ok(FileStep {
        id,
        kind: StepKind::from_name(&kind)?,
        call,
        at: at.parse().map_err(|_| damaged("time"))?,
        done: row.get(6)?,
        changes: vec![first],
    })
}

fn read_change(row: &Row<'_>) -> Result<PathChange, SqliteFailure> {
    let known = row.get::<_, Option<String>>(12)?.is_some();
    Ok(PathChange {
        path: read_path(row, 7)?,
        before: FileVersion::from_row(row, 8)?,
        after: if known {
            Some(FileVersion::from_row(row, 12)?)
        } else {
            None
        },
        taken_back: row.get::<_, Option<i64>>(16)?.map(StepId),
    })
}

/// Records that an undo or redo is about to start. Returns the id of its step.
pub(super) fn begin_reversal(
    connection: &Connection,
    conversation: &ConversationId,
    kind: StepKind,
    call: Option<&CallName>,
    now: Timestamp,
    reversals: &[Reversal],
    contents: &[FileContent],
) -> Result<StepId, SqliteFailure> {
    contents
        .iter()
        .try_for_each(|content| content.insert(connection))?;
    let step = add_step(connection, conversation, kind, call, now)?;
    for Reversal {
        path,
        before,
        after,
        of,
    } in reversals
    {
        insert_change(connection, step, path, (*before, *after), "")?;
        for reversed in of {
            connection
                .prepare_cached("UPDATE changes SET taken_back = ?3 WHERE step = ?1 AND path = ?2")?
                .execute((reversed.0, path_bytes(path), step))?;
        }
    }
    Ok(StepId(step))
}

/// Marks an undo or redo as done, and deletes its entries for the paths that it failed to change.
pub(super) fn finish_reversal(
    connection: &Connection,
    step: StepId,
    failed: &[&Path],
) -> Result<(), SqliteFailure> {
    for path in failed {
        connection
            .prepare_cached("DELETE FROM changes WHERE step = ?1 AND path = ?2")?
            .execute((step.0, path_bytes(path)))?;
        connection
            .prepare_cached(
                "UPDATE changes SET taken_back = NULL WHERE taken_back = ?1 AND path = ?2",
            )?
            .execute((step.0, path_bytes(path)))?;
    }
    connection
        .prepare_cached("UPDATE steps SET done = 1 WHERE key = ?1")?
        .execute([step.0])?;
    connection
        .prepare_cached("DELETE FROM steps WHERE key = ?1 AND NOT EXISTS (SELECT 1 FROM changes WHERE step = ?1)")?
        .execute([step.0])?;
    Ok(())
}
