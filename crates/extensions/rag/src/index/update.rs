//! Updates an index to the current content of its folders.
//!
//! A file is read again if its size or times have changed, and indexed again if its content has
//! changed.
//!
//! Invariant: a file and all its passages are written in one transaction, so a killed process
//! leaves each file's entry either old or new.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::PassageIndex;
use crate::chunks::{TextChunk, split_chunks};
use crate::files::{self, CollectionFile};
use crate::terms;

/// The number of files per transaction, which limits the time that other processes wait.
const BATCH_SIZE: usize = 100;

/// The result of an index update: the numbers of files, and the missing folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexUpdate {
    /// The number of new or changed files that were indexed.
    pub indexed: u64,
    /// The number of files that were read because their times had changed, although their content
    /// is unchanged.
    pub unchanged: u64,
    /// The number of files that were removed from the index.
    pub removed: u64,
    /// The folders that don't exist. Files that were indexed below them stay in the index.
    pub missing: Vec<PathBuf>,
}

/// The index entry of a file: its id, and the stamp at the time of indexing.
struct IndexedFile {
    id: i64,
    stamp: String,
}

impl PassageIndex {
    /// Indexes the new and changed files in `folders`, and removes the entries of deleted files.
    pub(crate) fn update(&mut self, folders: &[PathBuf]) -> rusqlite::Result<IndexUpdate> {
        let mut update = IndexUpdate::default();
        let mut known = load_indexed_files(&self.connection)?;
        let mut fresh: Vec<(CollectionFile, &Path)> = Vec::new();
        for folder in folders {
            if !folder.is_dir() {
                known.retain(|path, _| !path.starts_with(folder));
                update.missing.push(folder.clone());
                continue;
            }
            for listed in files::list_files(folder) {
                match known.remove(&listed.path) {
                    Some(one) if one.stamp == listed.stamp => {}
                    // A file below two of the folders is listed twice. The second time,
                    // `index_file` skips it.
                    Some(_) | None => fresh.push((listed, folder)),
                }
            }
        }
        for some in fresh.chunks(BATCH_SIZE) {
            let writing = self
                .connection
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            for (listed, folder) in some {
                index_file(&writing, listed, folder, &mut update)?;
            }
            writing.commit()?;
        }
        let gone: Vec<i64> = known.into_values().map(|one| one.id).collect();
        for some in gone.chunks(BATCH_SIZE) {
            let writing = self
                .connection
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            for id in some {
                remove_passages(&writing, *id)?;
                update.removed += writing.execute("DELETE FROM file WHERE id = ?1", [id])? as u64;
            }
            writing.commit()?;
        }
        Ok(update)
    }
}

fn load_indexed_files(connection: &Connection) -> rusqlite::Result<HashMap<PathBuf, IndexedFile>> {
    let mut statement = connection.prepare("SELECT path, id, stamp FROM file")?;
    let rows = statement.query_map([], |row| {
        let path = std::ffi::OsString::from_vec(row.get(0)?);
        Ok((
            PathBuf::from(path),
            IndexedFile {
                id: row.get(1)?,
                stamp: row.get(2)?,
            },
        ))
    })?;
    rows.collect()
}

/// Indexes one file. Skips the file if another process has just indexed it, or if only its times
/// have changed.
fn index_file(
    writing: &Transaction<'_>,
    listed: &CollectionFile,
    folder: &Path,
    update: &mut IndexUpdate,
) -> rusqlite::Result<()> {
    let path = listed.path.as_os_str().as_bytes();
    let known: Option<(i64, String, Vec<u8>)> = writing
        .prepare_cached("SELECT id, stamp, hash FROM file WHERE path = ?1")?
        .query_row([path], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    if known
        .as_ref()
        .is_some_and(|(_, stamp, _)| *stamp == listed.stamp)
    {
        return Ok(());
    }
    // An unreadable file gets an entry without text, until the file changes.
    let bytes = files::read_file(&listed.path).unwrap_or_default();
    let hash = blake3::hash(&bytes);
    if let Some((id, _, before)) = known {
        writing.execute(
            "UPDATE file SET stamp = ?2, hash = ?3 WHERE id = ?1",
            params![id, listed.stamp, hash.as_bytes()],
        )?;
        if before == hash.as_bytes() {
            update.unchanged += 1;
            return Ok(());
        }
        remove_passages(writing, id)?;
        insert_passages(writing, id, &bytes, &split_path_terms(&listed.path, folder))?;
    } else {
        writing
            .prepare_cached("INSERT INTO file (path, stamp, hash) VALUES (?1, ?2, ?3)")?
            .execute(params![path, listed.stamp, hash.as_bytes()])?;
        insert_passages(
            writing,
            writing.last_insert_rowid(),
            &bytes,
            &split_path_terms(&listed.path, folder),
        )?;
    }
    update.indexed += 1;
    Ok(())
}

/// Inserts a file's passages into the index, and also a row with the file's complete text, by which
/// files are ranked.
fn insert_passages(
    writing: &Transaction<'_>,
    file: i64,
    bytes: &[u8],
    path: &str,
) -> rusqlite::Result<()> {
    let text = files::decode_text(bytes).unwrap_or_default();
    let mut all = [String::new(), String::new(), String::new()];
    for TextChunk {
        start,
        end,
        names,
        comments,
        text,
    } in split_chunks(&text)
    {
        let hash = hash_chunk(&text);
        let [names, comments, text] = [names, comments, text].map(|part| terms::split_terms(&part));
        writing
            .prepare_cached(
                "INSERT INTO chunk (file, start, \"end\", hash) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![file, start as u32, end as u32, hash])?;
        writing
            .prepare_cached("INSERT INTO passage (rowid, path, names, comments, text) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![writing.last_insert_rowid(), path, names, comments, text])?;
        for (whole, part) in all.iter_mut().zip([names, comments, text]) {
            whole.push_str(&part);
        }
    }
    let [names, comments, text] = all;
    if !text.is_empty() {
        writing
            .prepare_cached("INSERT INTO whole (rowid, path, names, comments, text) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![file, path, names, comments, text])?;
    }
    Ok(())
}

/// Hashes the text of a passage. Embeddings are stored by this hash, so equal passages of several
/// files share an embedding.
pub(super) fn hash_chunk(text: &str) -> [u8; 32] {
    *blake3::hash(text.as_bytes()).as_bytes()
}

/// Deletes a file's passages from the index, and also the row with the file's complete text.
fn remove_passages(writing: &Transaction<'_>, file: i64) -> rusqlite::Result<()> {
    let chunks: Vec<i64> = writing
        .prepare_cached("SELECT id FROM chunk WHERE file = ?1")?
        .query_map([file], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for id in chunks {
        writing
            .prepare_cached("DELETE FROM passage WHERE rowid = ?1")?
            .execute([id])?;
    }
    writing
        .prepare_cached("DELETE FROM whole WHERE rowid = ?1")?
        .execute([file])?;
    writing
        .prepare_cached("DELETE FROM chunk WHERE file = ?1")?
        .execute([file])?;
    Ok(())
}

/// Returns the search terms in a file's path: first those in the name of the collection's folder,
/// then those in the path below the folder.
fn split_path_terms(path: &Path, folder: &Path) -> String {
    let inside = path.strip_prefix(folder).unwrap_or(path);
    let name = folder.file_name().unwrap_or(OsStr::new(""));
    terms::split_terms(&Path::new(name).join(inside).to_string_lossy())
}
