//! Stores the state of each tree at its last scan.

use std::path::{Path, PathBuf};

use haft_store::database::SqliteFailure;
use haft_types::Timestamp;
use rusqlite::{Connection, OptionalExtension};

use super::content::FileContent;
use super::version::{FileVersion, path_bytes, read_path};

/// File metadata that changes whenever the content of the file changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    /// The time of the last write, in nanoseconds.
    pub mtime_ns: i64,
    /// The time of the last change of content or metadata, in nanoseconds.
    pub ctime_ns: i64,
    pub inode: u64,
    pub device: u64,
}

/// The state of a path at the last scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownFile {
    pub version: FileVersion,
    /// The stamp that shows whether the path is unchanged. `None` if the path must be read again.
    pub stamp: Option<FileStamp>,
}

/// The changes that a scan makes to the stored state of a tree. Paths are relative to the root.
#[derive(Debug, Default)]
pub struct TreeUpdate {
    /// Paths that are new or changed since the last scan.
    pub known: Vec<(PathBuf, KnownFile)>,
    /// Paths that no longer exist, or that are now ignored.
    pub gone: Vec<PathBuf>,
    /// The contents of known paths that are not stored yet.
    pub contents: Vec<FileContent>,
}

/// Returns the state of each file at the last scan of the tree at `root`, with its path relative to
/// `root`.
pub(super) fn read_tree(
    connection: &Connection,
    root: &Path,
) -> Result<Vec<(PathBuf, KnownFile)>, SqliteFailure> {
    let mut statement = connection.prepare_cached(
        "SELECT path, kind, mode, size, hash, mtime_ns, ctime_ns, inode, device FROM tree_files
         WHERE tree = (SELECT key FROM trees WHERE root = ?1)",
    )?;
    let mut rows = statement.query([path_bytes(root)])?;
    let mut files = Vec::new();
    while let Some(row) = rows.next()? {
        let stamp = match row.get::<_, Option<i64>>(5)? {
            Some(mtime_ns) => Some(FileStamp {
                mtime_ns,
                ctime_ns: row.get(6)?,
                inode: row.get::<_, i64>(7)?.cast_unsigned(),
                device: row.get::<_, i64>(8)?.cast_unsigned(),
            }),
            None => None,
        };
        files.push((
            read_path(row, 0)?,
            KnownFile {
                version: FileVersion::from_row(row, 1)?,
                stamp,
            },
        ));
    }
    Ok(files)
}

/// Stores the result of a scan, including new contents.
pub(super) fn update_tree(
    connection: &Connection,
    root: &Path,
    update: &TreeUpdate,
    now: Timestamp,
) -> Result<(), SqliteFailure> {
    let tree = find_or_add_tree(connection, root, now)?;
    update
        .contents
        .iter()
        .try_for_each(|content| content.insert(connection))?;
    let mut insert = connection.prepare_cached(
        "INSERT OR REPLACE INTO tree_files (tree, path, kind, mode, size, hash, mtime_ns, ctime_ns, inode, device)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    for (path, known) in &update.known {
        let columns = known.version.to_columns();
        let stamp = known.stamp;
        insert.execute((
            tree,
            path_bytes(path),
            columns.kind,
            columns.mode,
            columns.size,
            columns.hash,
            stamp.map(|stamp| stamp.mtime_ns),
            stamp.map(|stamp| stamp.ctime_ns),
            stamp.map(|stamp| stamp.inode.cast_signed()),
            stamp.map(|stamp| stamp.device.cast_signed()),
        ))?;
    }
    let mut delete =
        connection.prepare_cached("DELETE FROM tree_files WHERE tree = ?1 AND path = ?2")?;
    for path in &update.gone {
        delete.execute((tree, path_bytes(path)))?;
    }
    Ok(())
}

fn find_or_add_tree(
    connection: &Connection,
    root: &Path,
    now: Timestamp,
) -> Result<i64, SqliteFailure> {
    let found = connection
        .prepare_cached("UPDATE trees SET used_at = ?2 WHERE root = ?1 RETURNING key")?
        .query_row((path_bytes(root), now.to_string()), |row| row.get(0))
        .optional()?;
    if let Some(key) = found {
        return Ok(key);
    }
    connection
        .prepare_cached("INSERT INTO trees (root, used_at) VALUES (?1, ?2)")?
        .execute((path_bytes(root), now.to_string()))?;
    Ok(connection.last_insert_rowid())
}
