//! Saves the workspace changes of a task in the queue's database, so that another worker can
//! continue the task.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use haft_store::StoreError;

use super::TaskQueue;
use super::fence::TaskLease;
use super::lease_writes::with_held;

/// The path under which the record of a run is saved among the files of its workspace. No workspace
/// contains this path.
pub const TASK_RECORD_PATH: &str = "/run.json";

/// The state of a saved path: removed, a file, a link or a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptKind {
    /// The path was removed.
    Absent,
    /// A regular file.
    File,
    /// A symbolic link, whose content is its target.
    Link,
    /// A folder.
    Folder,
}

impl KeptKind {
    fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::File => "file",
            Self::Link => "link",
            Self::Folder => "folder",
        }
    }
}

/// A path that a task changed in its workspace, with its saved content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// The path, relative to the top of the workspace.
    pub path: PathBuf,
    pub kind: KeptKind,
    /// The permission bits of the file or folder. 0 for a removed path.
    pub mode: u32,
    pub content: Vec<u8>,
}

impl TaskQueue {
    /// Saves these files for their task, replacing the earlier saved states of their paths.
    pub fn save_files(&self, lease: TaskLease, files: &[KeptFile]) -> Result<(), StoreError> {
        if files.is_empty() {
            return Ok(());
        }
        let sql = with_held!(
            "INSERT INTO queue_files (task, path, kind, mode, content)
             SELECT held.id, f.path, f.kind, f.mode, f.content
             FROM held, unnest($3::bytea[], $4::text[], $5::bigint[], $6::bytea[]) AS f (path, kind, mode, content)
             ON CONFLICT (task, path) DO UPDATE SET kind = excluded.kind, mode = excluded.mode, content = excluded.content"
        );
        // A statement must not change a row twice.
        let newest: BTreeMap<_, _> = files.iter().map(|file| (&file.path, file)).collect();
        let files: Vec<_> = newest.into_values().collect();
        let paths: Vec<_> = files
            .iter()
            .map(|file| file.path.as_os_str().as_bytes())
            .collect();
        let kinds: Vec<_> = files.iter().map(|file| file.kind.name()).collect();
        let modes: Vec<_> = files.iter().map(|file| i64::from(file.mode)).collect();
        let contents: Vec<_> = files.iter().map(|file| file.content.as_slice()).collect();
        self.run_with_lease(lease, async |connection| {
            let query = sqlx::query(sql).bind(lease.task).bind(lease.epoch);
            let query = query.bind(paths).bind(kinds).bind(modes).bind(contents);
            Ok(query.execute(connection).await?.rows_affected())
        })
    }

    /// Returns the saved record of a task's run, which contains the progress of its workflow.
    /// Returns `None` if no record is saved.
    pub fn read_record(&self, task: i64) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT content FROM queue_files WHERE task = $1 AND path = $2";
        self.run_statement(async |connection| {
            let query = sqlx::query_scalar(sql)
                .bind(task)
                .bind(TASK_RECORD_PATH.as_bytes());
            Ok(query.fetch_optional(connection).await?)
        })
    }

    /// Returns all saved paths that a task has changed so far, each folder before its entries.
    pub fn read_files(&self, task: i64) -> Result<Vec<KeptFile>, StoreError> {
        let sql = "SELECT path, kind, mode, content FROM queue_files WHERE task = $1 AND path <> $2 ORDER BY path";
        self.run_statement(async |connection| {
            let rows: Vec<(Vec<u8>, String, i64, Vec<u8>)> = sqlx::query_as(sql)
                .bind(task)
                .bind(TASK_RECORD_PATH.as_bytes())
                .fetch_all(connection)
                .await?;
            let file = |(path, kind, mode, content): (Vec<u8>, String, i64, Vec<u8>)| KeptFile {
                path: OsString::from_vec(path).into(),
                kind: match kind.as_str() {
                    "file" => KeptKind::File,
                    "link" => KeptKind::Link,
                    "folder" => KeptKind::Folder,
                    _ => KeptKind::Absent,
                },
                mode: u32::try_from(mode).unwrap_or(0o644),
                content,
            };
            Ok(rows.into_iter().map(file).collect())
        })
    }
}
