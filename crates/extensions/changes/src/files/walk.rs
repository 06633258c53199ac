//! Lists every path of a tree, on several threads.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::UNIX_EPOCH;

use ignore::{DirEntry, WalkBuilder, WalkState};

use super::disk::{permission_bits, stamp_from_metadata};
use crate::versions::{FileStamp, FileVersion, KnownFile};

/// A path found while walking a tree, with its metadata.
pub(super) struct WalkedPath {
    /// The path, relative to the root.
    pub(super) path: PathBuf,
    pub(super) kind: PathKind,
    pub(super) mode: u32,
    pub(super) size: u64,
    pub(super) stamp: FileStamp,
    /// The creation time in nanoseconds, if the file system records it.
    pub(super) created_ns: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PathKind {
    File,
    Link,
    Folder,
    Other,
}

impl WalkedPath {
    fn new(path: PathBuf, metadata: &Metadata) -> Self {
        let kind = match metadata.file_type() {
            kind if kind.is_file() => PathKind::File,
            kind if kind.is_symlink() => PathKind::Link,
            kind if kind.is_dir() => PathKind::Folder,
            _ => PathKind::Other,
        };
        let born = metadata
            .created()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self {
            path,
            kind,
            mode: permission_bits(metadata),
            size: metadata.len(),
            stamp: stamp_from_metadata(metadata),
            created_ns: born.and_then(|age| i64::try_from(age.as_nanos()).ok()),
        }
    }

    /// True if the metadata proves that the path still has the version in `known`.
    pub(super) fn matches_known(&self, known: &KnownFile) -> bool {
        let same = known.stamp == Some(self.stamp);
        match known.version {
            FileVersion::Absent => false,
            FileVersion::Folder { mode } => self.kind == PathKind::Folder && self.mode == mode,
            FileVersion::File { mode, size, .. } => {
                same && self.kind == PathKind::File && (self.mode, self.size) == (mode, size)
            }
            FileVersion::Link { .. } => same && self.kind == PathKind::Link,
            FileVersion::Unsaved { size } => {
                same && self.kind != PathKind::Folder && self.size == size
            }
        }
    }
}

/// The result of walking a tree: the paths found, and the paths that could not be read.
#[derive(Default)]
pub(super) struct Walked {
    pub(super) found: Vec<WalkedPath>,
    /// Paths that could not be read, relative to the root.
    pub(super) unreadable: Vec<PathBuf>,
    /// True if the tree has more paths than the limit and the walk was stopped.
    pub(super) too_many: bool,
}

/// Walks the tree at `root`. Skips ignored paths, `.git`, other file systems, and the folders in
/// `skip`. Stops after `max_paths` paths.
pub(super) fn walk_tree(root: &Path, skip: &Arc<[PathBuf]>, max_paths: usize) -> Walked {
    let all = Mutex::new(Walked::default());
    let count = AtomicUsize::new(0);
    let full = AtomicBool::new(false);
    new_walk_builder(root, skip).build_parallel().run(|| {
        let mut collector = Collector {
            own: Walked::default(),
            all: &all,
        };
        let count = &count;
        let full = &full;
        Box::new(move |entry| {
            if count.fetch_add(1, Ordering::Relaxed) > max_paths {
                full.store(true, Ordering::Relaxed);
                return WalkState::Quit;
            }
            collector.add_entry(root, entry);
            WalkState::Continue
        })
    });
    let mut walked = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    walked.too_many = full.into_inner();
    walked
}

fn new_walk_builder(root: &Path, skip: &Arc<[PathBuf]>) -> WalkBuilder {
    let skip = Arc::clone(skip);
    let mut builder = WalkBuilder::new(root);
    // Uses the rules of `list_files`, except that hidden files are included and ignore files
    // outside the tree have no effect.
    builder
        .require_git(false)
        .git_global(false)
        .parents(false)
        .hidden(false)
        .follow_links(false);
    builder.same_file_system(true);
    builder.threads(thread::available_parallelism().map_or(1, |count| count.get().min(8)));
    builder.filter_entry(move |entry| {
        entry.file_name() != ".git" && !skip.iter().any(|skipped| skipped.as_path() == entry.path())
    });
    builder
}

/// Collects the paths that one thread of a walk finds, and adds them to `all` when the thread ends.
struct Collector<'a> {
    own: Walked,
    all: &'a Mutex<Walked>,
}

impl Collector<'_> {
    fn add_entry(&mut self, root: &Path, entry: Result<DirEntry, ignore::Error>) {
        let unreadable = match entry {
            Ok(entry) if entry.depth() == 0 => return,
            Ok(entry) => match (entry.path().strip_prefix(root), entry.metadata()) {
                (Ok(path), Ok(metadata)) => {
                    return self
                        .own
                        .found
                        .push(WalkedPath::new(path.to_owned(), &metadata));
                }
                (Ok(path), Err(_)) => Some(path.to_owned()),
                (Err(_), _) => None,
            },
            Err(error) => error_path(&error)
                .and_then(|path| path.strip_prefix(root).ok())
                .map(Path::to_owned),
        };
        self.own.unreadable.extend(unreadable);
    }
}

impl Drop for Collector<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.found.append(&mut self.own.found);
        all.unreadable.append(&mut self.own.unreadable);
    }
}

fn error_path(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            error_path(err)
        }
        _ => None,
    }
}
