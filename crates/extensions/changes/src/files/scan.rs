//! Finds the changes in a tree since its last scan.
//!
//! Invariant: after a scan, `known` describes the tree, and every content it names is stored. A
//! file is read only if its mode, size, times, or inode differ from those of its last read. Files
//! that are too large are watched but not saved.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use super::disk::{inspect_path, stamp_from_metadata};
use super::walk::{PathKind, WalkedPath, walk_tree};
use crate::versions::{
    FileContent, FileStamp, FileVersion, KnownFile, SqliteVersions, TreeUpdate, VersionsError,
};

/// The limits on the files that a scan saves and on the number of paths that it visits.
#[derive(Clone, Copy, Debug)]
pub struct ScanLimits {
    /// The maximum size of a saved file, in bytes. The default is 4 MiB.
    pub file: u64,
    /// The maximum total size of the saved files, in bytes. The default is 512 MiB.
    pub total: u64,
    /// The maximum number of paths in a tree. A larger tree is not scanned. The default is 300,000.
    pub paths: usize,
}

impl Default for ScanLimits {
    fn default() -> Self {
        Self {
            file: 4 * 1024 * 1024,
            total: 512 * 1024 * 1024,
            paths: 300_000,
        }
    }
}

/// The number of compressed bytes that a scan collects before it writes them to the store.
const MAX_BATCH_BYTES: usize = 16 * 1024 * 1024;

/// A path at which the new scan found another version than the previous scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The absolute path of the file, link or folder.
    pub path: PathBuf,
    /// The version that the previous scan found.
    pub before: FileVersion,
    /// The version that the new scan found.
    pub after: FileVersion,
}

/// The result of scanning a tree: the differences, or that the tree was too large to be scanned.
#[derive(Debug)]
pub enum ScanOutcome {
    /// The differences from the last scan, ordered by path.
    Changed(Vec<Difference>),
    /// The tree has more paths than the limit, and was not scanned.
    TooLarge,
}

/// A tree of files and its state at the last scan.
pub struct Tree {
    root: PathBuf,
    limits: ScanLimits,
    skip: Arc<[PathBuf]>,
    known: HashMap<PathBuf, ScanSlot>,
    /// True once `known` has been read from the store.
    loaded: bool,
    /// The total size of the saved files, in bytes.
    saved: u64,
    /// The sequence number of the last scan.
    scan: u32,
    /// The stamp of `.git/info/exclude`, which shows whether the repository's ignore rules have
    /// changed.
    exclude_stamp: Option<FileStamp>,
    /// The start of the last scan, in nanoseconds of the file system's clock.
    since: i64,
}

struct ScanSlot {
    known: KnownFile,
    /// The sequence number of the last scan that found the path.
    scan: u32,
}

/// The differences and new contents that a scan in progress has found so far.
#[derive(Default)]
struct ScanPass {
    /// The start of the scan, in nanoseconds of the file system's clock.
    now: i64,
    differences: Vec<Difference>,
    /// Paths that were not found by the previous scan.
    appeared: Vec<(WalkedPath, FileVersion)>,
    update: TreeUpdate,
    /// The total size of the contents in `update` after compression, in bytes.
    packed: usize,
}

impl Tree {
    /// Creates a tree at `root`, which must be canonical. The folders in `skip` are not scanned.
    pub fn new(root: &Path, limits: ScanLimits, skip: Arc<[PathBuf]>) -> Self {
        Self {
            root: root.to_owned(),
            limits,
            skip,
            known: HashMap::new(),
            loaded: false,
            saved: 0,
            scan: 0,
            exclude_stamp: None,
            since: 0,
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the paths whose content is not saved, with their sizes, largest first.
    pub fn unsaved_files(&self) -> Vec<(PathBuf, u64)> {
        let unsaved = self
            .known
            .iter()
            .filter_map(|(path, slot)| match slot.known.version {
                FileVersion::Unsaved { size } => Some((self.root.join(path), size)),
                FileVersion::Absent
                | FileVersion::File { .. }
                | FileVersion::Link { .. }
                | FileVersion::Folder { .. } => None,
            });
        let mut unsaved: Vec<_> = unsaved.collect();
        unsaved.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        unsaved
    }

    /// Scans the whole tree and saves new contents.
    pub fn scan(&mut self, versions: &SqliteVersions) -> Result<ScanOutcome, VersionsError> {
        // Contents that could not be stored must not count as stored in the next scan.
        self.try_scan(versions).inspect_err(|_| {
            self.known.clear();
            self.loaded = false;
            self.saved = 0;
        })
    }

    fn try_scan(&mut self, versions: &SqliteVersions) -> Result<ScanOutcome, VersionsError> {
        if !self.loaded {
            self.load_known(versions)?;
        }
        let mut pass = ScanPass {
            now: versions.current_file_time()?,
            ..ScanPass::default()
        };
        let walked = walk_tree(&self.root, &self.skip, self.limits.paths);
        if walked.too_many {
            return Ok(ScanOutcome::TooLarge);
        }
        self.scan = self.scan.wrapping_add(1);
        let doubtful = self.mark_unchanged_paths(walked.found);
        self.read_doubtful_files(versions, doubtful, &mut pass)?;
        let gone = self.remove_missing_paths(&walked.unreadable, &mut pass);
        let rules_changed = self.update_exclude_stamp()
            | pass.differences.iter().any(|one| is_ignore_file(&one.path));
        self.classify_new_paths(&gone, rules_changed, &mut pass);
        self.since = pass.now;
        self.flush_update(versions, &mut pass)?;

        let mut differences = pass.differences;
        for difference in &mut differences {
            difference.path = self.root.join(&difference.path);
        }
        differences.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(ScanOutcome::Changed(differences))
    }

    fn load_known(&mut self, versions: &SqliteVersions) -> Result<(), VersionsError> {
        for (path, known) in versions.known_files(&self.root)? {
            self.saved += saved_bytes(known.version);
            self.known.insert(path, ScanSlot { known, scan: 0 });
        }
        self.loaded = true;
        Ok(())
    }

    /// Marks unchanged paths as found by this scan. Returns the remaining paths, smallest file
    /// first, so that as many files as possible fit into the size limit.
    fn mark_unchanged_paths(&mut self, found: Vec<WalkedPath>) -> Vec<WalkedPath> {
        let mut doubtful = Vec::new();
        for found in found {
            match self.known.get_mut(&found.path) {
                Some(slot) if found.matches_known(&slot.known) => slot.scan = self.scan,
                Some(_) | None => doubtful.push(found),
            }
        }
        doubtful.sort_by(|one, other| {
            one.size
                .cmp(&other.size)
                .then_with(|| one.path.cmp(&other.path))
        });
        doubtful
    }

    /// Uses several threads to read the files that may have changed, and records their versions.
    fn read_doubtful_files(
        &mut self,
        versions: &SqliteVersions,
        doubtful: Vec<WalkedPath>,
        pass: &mut ScanPass,
    ) -> Result<(), VersionsError> {
        let mut to_read = Vec::with_capacity(doubtful.len());
        let mut room = self.limits.total.saturating_sub(self.saved);
        for found in doubtful {
            let own = self
                .known
                .get(&found.path)
                .map_or(0, |slot| saved_bytes(slot.known.version));
            let needs = found.size.saturating_sub(own);
            let worth_reading = match found.kind {
                PathKind::File => found.size <= self.limits.file && needs <= room,
                PathKind::Link => true,
                PathKind::Folder | PathKind::Other => false,
            };
            if worth_reading {
                room -= needs.min(room);
                to_read.push(found);
            } else {
                let known = entry_without_content(&found);
                self.record_path(found, known, pass);
            }
        }
        let root = self.root.clone();
        read_files(&root, self.limits.file, to_read, |found, known, content| {
            if known.version == FileVersion::Absent {
                // Removed between the walk and the read.
                return Ok(());
            }
            if let Some(content) = content {
                pass.packed += content.stored_size();
                pass.update.contents.push(content);
            }
            // A stamp from the current moment is dropped: a later write could get an identical one.
            let stamp = known
                .stamp
                .filter(|stamp| stamp.ctime_ns < pass.now || !known.version.is_saved());
            self.record_path(found, KnownFile { stamp, ..known }, pass);
            if pass.packed > MAX_BATCH_BYTES {
                self.flush_update(versions, pass)
            } else {
                Ok(())
            }
        })
    }

    /// Records the version of a path, and also a difference if the previous scan found another
    /// version.
    fn record_path(&mut self, found: WalkedPath, known: KnownFile, pass: &mut ScanPass) {
        let old = self.known.insert(
            found.path.clone(),
            ScanSlot {
                known,
                scan: self.scan,
            },
        );
        self.saved += saved_bytes(known.version);
        pass.update.known.push((found.path.clone(), known));
        match old {
            Some(ScanSlot { known: old, .. }) => {
                self.saved = self.saved.saturating_sub(saved_bytes(old.version));
                let differs = old.version != known.version
                    || !known.version.is_saved() && old.stamp != known.stamp;
                if differs {
                    let before = old.version;
                    let after = known.version;
                    pass.differences.push(Difference {
                        path: found.path,
                        before,
                        after,
                    });
                }
            }
            None => pass.appeared.push((found, known.version)),
        }
    }

    /// Removes the paths that the walk did not find, and returns the device and inode numbers of
    /// the removed files.
    fn remove_missing_paths(
        &mut self,
        unreadable: &[PathBuf],
        pass: &mut ScanPass,
    ) -> HashSet<(u64, u64)> {
        let scan = self.scan;
        let mut inodes = HashSet::new();
        let missing = self
            .known
            .iter()
            .filter(|(_, slot)| slot.scan != scan)
            .map(|(path, _)| path.clone());
        for path in missing.collect::<Vec<_>>() {
            if unreadable
                .iter()
                .any(|unreadable| path.starts_with(unreadable))
            {
                // The state of unreadable paths is unknown until the next scan.
                self.known.entry(path).and_modify(|slot| slot.scan = scan);
                continue;
            }
            let Some(ScanSlot { known, .. }) = self.known.remove(&path) else {
                continue;
            };
            self.saved = self.saved.saturating_sub(saved_bytes(known.version));
            pass.update.gone.push(path.clone());
            inodes.extend(known.stamp.map(|stamp| (stamp.device, stamp.inode)));
            // The path may still exist and only be ignored from now on.
            let seen = inspect_path(&self.root.join(&path), self.limits.file);
            let after = seen.version;
            if after != known.version {
                pass.update.contents.extend(seen.pack());
                pass.differences.push(Difference {
                    path,
                    before: known.version,
                    after,
                });
            }
        }
        inodes
    }

    /// Records new paths as created. If the ignore rules changed, a path may have existed and been
    /// ignored before: its earlier content is then recorded as unknown, or the path is skipped.
    fn classify_new_paths(
        &self,
        gone: &HashSet<(u64, u64)>,
        rules_changed: bool,
        pass: &mut ScanPass,
    ) {
        for (found, after) in std::mem::take(&mut pass.appeared) {
            let was_moved = gone.contains(&(found.stamp.device, found.stamp.inode));
            let is_new = !rules_changed
                || was_moved
                || found.created_ns.is_some_and(|born| born >= self.since);
            let was_touched = found.stamp.ctime_ns >= self.since;
            let before = if is_new {
                FileVersion::Absent
            } else if was_touched && found.kind != PathKind::Folder {
                FileVersion::Unsaved { size: found.size }
            } else {
                continue;
            };
            pass.differences.push(Difference {
                path: found.path,
                before,
                after,
            });
        }
    }

    fn update_exclude_stamp(&mut self) -> bool {
        let now = self
            .root
            .join(".git/info/exclude")
            .symlink_metadata()
            .ok()
            .map(|metadata| stamp_from_metadata(&metadata));
        std::mem::replace(&mut self.exclude_stamp, now) != now
    }

    fn flush_update(
        &self,
        versions: &SqliteVersions,
        pass: &mut ScanPass,
    ) -> Result<(), VersionsError> {
        let update = std::mem::take(&mut pass.update);
        pass.packed = 0;
        if update.known.is_empty() && update.gone.is_empty() && update.contents.is_empty() {
            return Ok(());
        }
        versions.update_tree(&self.root, &update)
    }
}

/// Returns the state to store for a path whose content is not read.
fn entry_without_content(found: &WalkedPath) -> KnownFile {
    let version = match found.kind {
        PathKind::Folder => FileVersion::Folder { mode: found.mode },
        PathKind::File | PathKind::Link | PathKind::Other => {
            FileVersion::Unsaved { size: found.size }
        }
    };
    KnownFile {
        version,
        stamp: Some(found.stamp),
    }
}

fn saved_bytes(version: FileVersion) -> u64 {
    match version {
        FileVersion::File { size, .. } => size,
        FileVersion::Absent
        | FileVersion::Link { .. }
        | FileVersion::Folder { .. }
        | FileVersion::Unsaved { .. } => 0,
    }
}

fn is_ignore_file(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name == ".gitignore" || name == ".ignore")
}

/// Uses several threads to read files, and passes each file with its version to `take`, in no
/// particular order.
fn read_files(
    root: &Path,
    largest: u64,
    to_read: Vec<WalkedPath>,
    mut take: impl FnMut(WalkedPath, KnownFile, Option<FileContent>) -> Result<(), VersionsError>,
) -> Result<(), VersionsError> {
    let threads = thread::available_parallelism()
        .map_or(1, |count| count.get().min(4))
        .min(to_read.len());
    let next = AtomicUsize::new(0);
    let paths: Vec<PathBuf> = to_read.iter().map(|found| root.join(&found.path)).collect();
    let mut waiting: Vec<Option<WalkedPath>> = to_read.into_iter().map(Some).collect();
    thread::scope(|scope| {
        // A short queue, because each entry may hold a file of the maximum size.
        let (tell, hashed) = mpsc::sync_channel(16);
        for _ in 0..threads {
            let tell = tell.clone();
            let next = &next;
            let paths = &paths;
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = paths.get(index) else { return };
                    let seen = inspect_path(path, largest);
                    let known = KnownFile {
                        version: seen.version,
                        stamp: seen.stamp,
                    };
                    if tell.send((index, known, seen.pack())).is_err() {
                        return;
                    }
                }
            });
        }
        drop(tell);
        for (index, known, content) in hashed {
            if let Some(found) = waiting.get_mut(index).and_then(Option::take) {
                take(found, known, content)?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests;
